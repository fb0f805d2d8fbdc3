"""How fast an RL update is: python benchmarks/rl_update.py [--repeats 3] [--threads 1] [--models nano,smol] [--smol DIR]

Loss and gradient of one group of rollouts that share their prompt, twice: by `GRPOTrainer._compute_loss` of TRL on the padded
batch (no gradient checkpointing, token mean: `loss_type="bnpo"`), and by the stage `rl` with the prompt computed once. Same
weights, same ids, same advantages per token, float32, in one process, in turn; losses and gradients are compared first.
Tokens are those of the padded batch, for both sides, so that the ratio is one of times. Medians, by the clock and by the
process's CPU time (the latter holds on a busy machine too, with one thread).
"""

from __future__ import annotations

import argparse
import random
import statistics
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path as File
from typing import Any, NamedTuple

import torch
from transformers import AutoModelForCausalLM, LlamaConfig, LlamaForCausalLM, PreTrainedModel
from transformers.utils import logging

from harnessctl.train.base.config import MakeConfig
from harnessctl.train.base.making import llama_config
from harnessctl.train.rl.losses import surrogate
from harnessctl.train.rl.paths import Path, Said
from harnessctl.train.rl.prefix import Reader, Rows, read

LOW, HIGH = 0.2, 0.2


class Case(NamedTuple):
    name: str
    rollouts: int
    prompt: int
    said: int

    @property
    def tokens(self) -> int:
        return self.rollouts * (self.prompt + self.said)


CASES = {"nano": Case("nano", 8, 2000, 200), "smol": Case("smol", 2, 500, 100)}


def model_of(case: Case, folder: File) -> PreTrainedModel:
    """nano: of its shape, random weights; smol: from the catalog's folder."""
    if case.name == "smol":
        logging.disable_progress_bar()
        return AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32, local_files_only=True)
    torch.manual_seed(0)
    return LlamaForCausalLM(LlamaConfig(**llama_config(MakeConfig(), 8000, {})))


def rollouts_of(case: Case, vocab: int) -> list[Path]:
    draw = random.Random(0)
    prompt = [draw.randrange(vocab) for _ in range(case.prompt)]
    places = list(range(case.prompt, case.prompt + case.said))
    return [
        Path(
            ids=prompt + [draw.randrange(vocab) for _ in places],
            places=places,
            # The first half as tool-call tokens with one advantage, the rest as reply tokens with another.
            advantages=[a if n < case.said // 2 else b for n in range(case.said)],
            sampled=[0.0] * case.said,
        )
        for a, b in ((draw.gauss(0, 1), draw.gauss(0, 1)) for _ in range(case.rollouts))
    ]


def trl_loss(model: PreTrainedModel, paths: list[Path], case: Case) -> Callable[[], torch.Tensor]:
    # requests.py of this folder would be taken for the package that TRL imports.
    sys.path[:] = [entry for entry in sys.path if File(entry).resolve() != File(__file__).resolve().parent]
    from datasets import Dataset
    from trl import GRPOConfig, GRPOTrainer

    config = GRPOConfig(
        output_dir=tempfile.mkdtemp(),
        bf16=False,
        use_cpu=True,
        gradient_checkpointing=False,
        report_to=[],
        per_device_train_batch_size=case.rollouts,
        num_generations=case.rollouts,
        loss_type="bnpo",
        epsilon=LOW,
        epsilon_high=HIGH,
        beta=0.0,
        disable_dropout=True,
    )
    trainer = GRPOTrainer(
        model=model,
        reward_funcs=lambda completions, **_: [0.0] * len(completions),
        args=config,
        train_dataset=Dataset.from_dict({"prompt": ["a"] * case.rollouts}),
        processing_class=tokenizer_of(model.config.vocab_size),
    )
    trainer.current_gradient_accumulation_steps = 1
    ids = torch.tensor([list(path.ids) for path in paths])
    inputs = {
        "prompt_ids": ids[:, : case.prompt],
        "prompt_mask": torch.ones(case.rollouts, case.prompt, dtype=torch.int64),
        "completion_ids": ids[:, case.prompt :],
        "completion_mask": torch.ones(case.rollouts, case.said, dtype=torch.int64),
        "advantages": torch.tensor([list(path.advantages) for path in paths]),
        "num_items_in_batch": torch.tensor(float(case.rollouts * case.said)),
    }
    return lambda: trainer._compute_loss(model, inputs)


def tokenizer_of(size: int) -> Any:
    """A tokenizer that the trainer asks for and the loss does not use."""
    from tokenizers import Tokenizer
    from tokenizers.models import WordLevel
    from transformers import PreTrainedTokenizerFast

    words = WordLevel({f"w{n}": n for n in range(size)}, unk_token="w0")
    return PreTrainedTokenizerFast(tokenizer_object=Tokenizer(words), eos_token="w1", pad_token="w2", unk_token="w0")


def our_loss(model: PreTrainedModel, paths: list[Path], reader: Reader) -> Callable[[], torch.Tensor]:
    device = torch.device("cpu")

    def loss() -> torch.Tensor:
        rows: Rows = reader.rows(paths, device)
        said = Said.of(paths, device)
        found = read(model, rows, said.ids)
        old = found.log_probs.detach()
        return surrogate(found.log_probs, old, said.advantages, low=LOW, high=HIGH).losses.sum() / len(said.ids)

    return loss


class Cost(NamedTuple):
    wall: float
    cpu: float


def update(model: PreTrainedModel, loss: Callable[[], torch.Tensor]) -> Cost:
    model.zero_grad()
    wall, cpu = time.perf_counter(), time.process_time()
    loss().backward()
    return Cost(time.perf_counter() - wall, time.process_time() - cpu)


def compare(case: Case, folder: File, repeats: int) -> list[str]:
    model = model_of(case, folder)
    paths = rollouts_of(case, model.config.vocab_size)
    theirs = trl_loss(model, paths, case)
    model.train()
    update(model, theirs)
    expected = {name: p.grad.clone() for name, p in model.named_parameters() if p.grad is not None}
    ours = our_loss(model, paths, Reader.open(model, print))
    update(model, ours)
    gap = max(float((p.grad - expected[n]).abs().max()) for n, p in model.named_parameters() if p.grad is not None)
    costs: dict[str, list[Cost]] = {"TRL, padded": [], "rl, shared prefix": []}
    for _ in range(repeats):
        for name, loss in zip(costs, (theirs, ours), strict=True):
            costs[name].append(update(model, loss))
    lines: list[str] = []
    medians = {name: Cost(*(statistics.median(column) for column in zip(*found, strict=True))) for name, found in costs.items()}  # fmt: skip
    base = medians["TRL, padded"]
    for name, cost in medians.items():
        lines.append(
            f"| {case.name}: {case.rollouts} x ({case.prompt} + {case.said}) | {name} | {cost.wall:.2f} | {cost.cpu:.2f} "
            f"| {case.tokens / cost.wall:,.0f} | {base.wall / cost.wall:.2f}x | {base.cpu / cost.cpu:.2f}x |"
        )
    lines.append(f"| | largest difference of a gradient | {gap:.1e} | | | | |")
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--models", default="nano,smol")
    parser.add_argument("--smol", type=File, default=File.home() / ".cache" / "harnessctl" / "models" / "smol")
    given = parser.parse_args()
    torch.set_num_threads(given.threads)
    warnings.filterwarnings("ignore")
    print(f"{given.threads} threads, median of {given.repeats}")
    print("| rollouts | update | s | CPU s | tokens/s | ratio | CPU ratio |\n|---|---|---|---|---|---|---|")
    for name in given.models.split(","):
        if name == "smol" and not (given.smol / "config.json").is_file():
            print(f"| smol | not in {given.smol} | | | | | |")
            continue
        print("\n".join(compare(CASES[name], given.smol, given.repeats)), flush=True)


if __name__ == "__main__":
    main()
