"""How fast SFT is, and what OPD takes of memory beside it:

    python benchmarks/sft.py [--repeats 3] [--samples 32] [--threads 1] [--micro 2048] [--no-memory]

Speed: the same samples through TRL's `SFTTrainer` as it comes (8 rows at a time, unpacked, padded to the longest, gradient
checkpointing on; ids and labels are given, so that nothing is tokenised) and through the objective of the stage `sft`,
packed, the beginning that samples on one harness have in common read once; TRL without gradient
checkpointing too. One optimizer step for as many samples on each side, same model, float32, in
one process, in turn; first the losses of all are compared. Tokens are those of the samples, without padding. The lengths
are those of an oracle's trajectories on the mini host and its variants, in a vocabulary of 8,000 that is made of their text;
the model has nano's shape and random weights.

Memory: the peak (VmHWM) of a process that takes two steps of the stage `sft` with LoRA on the same model and samples, and
of one that takes two of the stage `opd`, sampling included, with micro-batches of as many tokens.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec
import torch
from accelerate import Accelerator
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import LlamaConfig, LlamaForCausalLM

from harnessctl.bundle.files import Bundle
from harnessctl.compile.revision import compiled
from harnessctl.evaluate.setting import Setting
from harnessctl.train.base.config import MakeConfig
from harnessctl.train.base.making import llama_config
from harnessctl.train.config import LoopConfig, LoraConfig, PolicyConfig
from harnessctl.train.job import Job
from harnessctl.train.metrics import Metrics
from harnessctl.train.sft.config import DataConfig, SftConfig
from harnessctl.train.sft.data import data_of
from harnessctl.train.sft.objective import SftObjective
from harnessctl.train.sft.rows import Tokens
from harnessctl.train.sft.token_loss import TokenLoss

REPOSITORY = Path(__file__).resolve().parents[1]
VOCABULARY = 8000
SPEED_BOUND, MEMORY_BOUND = 1.5, 1.3
SPECIAL = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")


def mini() -> Bundle:
    return compiled(REPOSITORY, "mini")


def config_of(scenarios: int, micro: int, *, lora: bool) -> SftConfig:
    policy = PolicyConfig(name="nano-like", dtype="float32", device="cpu", lora=LoraConfig() if lora else None)
    return SftConfig(
        model=policy,
        loop=LoopConfig(steps=2, lr=1e-4),
        data=DataConfig(n=scenarios, eval_share=0.0),
        micro_tokens=micro,
        micro_batches=2,
    )


def tokenizer_of(bundle: Bundle) -> Tokenizer:
    """Made of what the harness and the world's viewers say."""
    from harnessctl.train.sft.gathering import evaluation_config

    with Setting(REPOSITORY, bundle, evaluation_config(config_of(1, 1, lora=False))) as setting:
        texts = [json.dumps(setting.scenario(number).request.text, ensure_ascii=False) for number in range(500)]
        states = [setting.variant(number, None).bundle.state for number in range(20)]
    texts += [msgspec.json.encode(state).decode() for state in [bundle.state, *states]]
    made = Tokenizer(models.BPE())
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=VOCABULARY,
        special_tokens=[AddedToken(token, special=True) for token in SPECIAL],
        initial_alphabet=alphabet,
        show_progress=False,
    )
    made.train_from_iterator(texts, trainer)
    return made


def write_model(folder: Path, tokenizer: Tokenizer) -> Path:
    torch.manual_seed(0)
    config = llama_config(MakeConfig(), VOCABULARY, {"bos_token_id": 1, "eos_token_id": 2})
    LlamaForCausalLM(LlamaConfig(**config)).save_pretrained(folder)
    tokenizer.save(str(folder / "tokenizer.json"))
    return folder


def job_of(folder: Path, model: Path, bundle: Bundle, config: Any, stage: str) -> Job:
    metrics = Metrics(folder, board=False)
    return Job(
        REPOSITORY, folder, config, bundle, {}, model, metrics, lambda text: None, stage=stage, recipe={"of": stage}
    )


Step = Callable[[], float]


def ours(samples: Sequence[Tokens], harnesses: Sequence[str], model_folder: Path, micro: int) -> Step:
    """One optimizer step over all samples; returns their mean loss before it."""
    from harnessctl.train.policy import load_policy

    config = config_of(1, micro, lora=False)
    policy = load_policy(config.model, model_folder)
    module = TokenLoss(policy.model)
    assert module.why_not_packed() is None

    def objective_of() -> SftObjective:
        return SftObjective(
            module,
            policy,
            samples,
            [],
            config,
            accelerator=Accelerator(cpu=True),
            is_packed=True,
            harnesses=harnesses,
        )

    config.micro_batches = objective_of().per_epoch
    objective = objective_of()
    optimizer = torch.optim.AdamW(module.parameters(), lr=1e-5, fused=True)

    def step() -> float:
        data = objective.data(0)
        total = 0.0
        for one in data.micro:
            loss, _ = objective.loss(one)
            (loss / data.weight).backward()
            total += loss.item() / data.weight
        torch.nn.utils.clip_grad_norm_(module.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
        return total

    return step


def trl(samples: Sequence[Tokens], model_folder: Path, **options: Any) -> Step:
    """As much by SFTTrainer: 8 rows a batch, accumulated to one step over all samples."""
    # requests.py of this folder would be taken for the package that TRL imports.
    sys.path[:] = [entry for entry in sys.path if Path(entry).resolve() != Path(__file__).resolve().parent]
    from datasets import Dataset
    from transformers import PreTrainedTokenizerFast
    from trl import SFTConfig, SFTTrainer

    tokenizer = PreTrainedTokenizerFast(
        tokenizer_file=str(model_folder / "tokenizer.json"), pad_token=SPECIAL[0], eos_token=SPECIAL[2]
    )
    rows = {
        "input_ids": [one.ids.tolist() for one in samples],
        "labels": [[-100, *torch.where(one.mask.bool(), one.ids, -100).tolist()[1:]] for one in samples],
    }
    batch = 8
    config = SFTConfig(
        output_dir=tempfile.mkdtemp(),
        bf16=False,
        use_cpu=True,
        report_to=[],
        save_strategy="no",
        logging_steps=1,
        disable_tqdm=True,
        learning_rate=1e-5,
        max_length=None,
        max_steps=1,
        gradient_accumulation_steps=-(-len(samples) // batch),
        per_device_train_batch_size=batch,
        dataset_kwargs={"skip_prepare_dataset": True},
        **options,
    )
    model = LlamaForCausalLM.from_pretrained(model_folder, dtype=torch.float32)
    trainer = SFTTrainer(model=model, args=config, train_dataset=Dataset.from_dict(rows), processing_class=tokenizer)

    def step() -> float:
        with contextlib.redirect_stdout(sys.stderr):
            return trainer.train().training_loss

    return step


def speed(samples: Sequence[Tokens], harnesses: Sequence[str], model: Path, micro: int, repeats: int) -> dict[str, Any]:
    sides: dict[str, Step] = {
        "harnessctl": ours(samples, harnesses, model, micro),
        "trl": trl(samples, model),
        "trl_no_checkpointing": trl(samples, model, activation_checkpointing=False),
    }
    losses = {name: step() for name, step in sides.items()}
    assert max(losses.values()) - min(losses.values()) < 1e-3, losses
    took: dict[str, list[tuple[float, float]]] = {name: [] for name in sides}
    for _ in range(repeats):
        for name, step in sides.items():
            wall, cpu = time.perf_counter(), time.process_time()
            step()
            took[name].append((time.perf_counter() - wall, time.process_time() - cpu))
    tokens = sum(map(len, samples))
    found: dict[str, Any] = {"losses": losses, "tokens": tokens, "samples": len(samples), "micro_tokens": micro}
    for at, clock in enumerate(("wall", "cpu")):
        each = {name: tokens / statistics.median(one[at] for one in times) for name, times in took.items()}
        found[f"tokens_per_second_{clock}"] = each
        found[f"ratio_{clock}"] = {name: each["harnessctl"] / each[name] for name in sides if name != "harnessctl"}
    return found


def peak_mb() -> float:
    line = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM:"))
    return int(line.split()[1]) / 1024


def take_steps(stage: str, folder: Path, model: Path, micro: int) -> None:
    """Two steps of a stage in this process; prints its peak."""
    from harnessctl.train.opd.config import OpdConfig, StudentConfig
    from harnessctl.train.opd.stage import STAGE as OPD
    from harnessctl.train.rl.config import RolloutConfig
    from harnessctl.train.sft.stage import STAGE as SFT

    config: Any = config_of(32, micro, lora=True)
    if stage == "opd":
        config = OpdConfig(
            model=config.model,
            loop=config.loop,
            student=StudentConfig(max_tokens=96),
            rollout=RolloutConfig(rows=16),
            prompts_per_step=32,
            micro_tokens=micro,
        )
    (SFT if stage == "sft" else OPD).run(job_of(folder, model, mini(), config, stage))
    print(json.dumps({"peak_mb": peak_mb()}))


def memory(model: Path, micro: int, threads: int) -> dict[str, float]:
    found: dict[str, float] = {}
    for stage in ("sft", "opd"):
        with tempfile.TemporaryDirectory() as folder:
            command = [sys.executable, __file__, "--stage", stage, "--folder", folder, "--model", str(model)]
            command += ["--micro", str(micro), "--threads", str(threads)]
            done = subprocess.run(command, check=True, capture_output=True, text=True)
            found[stage] = json.loads(done.stdout.splitlines()[-1])["peak_mb"]
    return found | {"ratio": found["opd"] / found["sft"]}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--samples", type=int, default=32)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--micro", type=int, default=2048, help="tokens of a packed micro-batch")
    parser.add_argument("--no-speed", action="store_true")
    parser.add_argument("--no-memory", action="store_true")
    parser.add_argument("--stage", help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--model", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    if options.stage:
        take_steps(options.stage, options.folder, options.model, options.micro)
        return
    with tempfile.TemporaryDirectory() as folder:
        bundle = mini()
        model = write_model(Path(folder) / "model", tokenizer_of(bundle))
        found: dict[str, Any] = {}
        if not options.no_speed:
            config = config_of(options.samples, options.micro, lora=False)
            job = job_of(Path(folder) / "run", model, bundle, config, "sft")
            examples = data_of(job).learnt
            examples = examples[: options.samples]
            samples = [one.tokens for one in examples]
            lengths = sorted(map(len, samples))
            found["lengths"] = {"least": lengths[0], "median": statistics.median(lengths), "most": lengths[-1]}
            found |= speed(samples, [one.bundle for one in examples], model, options.micro, options.repeats)
        if not options.no_memory:
            found["peak_mb"] = memory(model, options.micro, options.threads)
    print(json.dumps(found, indent=2))
    is_fast = options.no_speed or found["ratio_cpu"]["trl"] >= SPEED_BOUND
    is_small = options.no_memory or found["peak_mb"]["ratio"] <= MEMORY_BOUND
    sys.exit(0 if is_fast and is_small else 1)


if __name__ == "__main__":
    main()
