"""SFT's objective: cross-entropy over the policy's own tokens of accepted trajectories [3.4, stage 1].

    L = -1/N  sum over samples, over t with mask_t = 1, of  log p(y_t | y_<t)        N = all such tokens of the step

What the harness put in (prompt, tool results, hook messages) is read and never learnt. Read top to bottom with
harnessctl/train/loop.py it is the whole of the training.

Not TRL's SFTTrainer, though it was to be: its checkpoints are not atomic and hold pickled state, its order of samples after
a resume is found by skipping through the data loader, and a loss that is no number goes on into the weights. The loop of all
stages has one law for those three. What is TRL's is kept: packing by falling length (its `bfd`), in rows of which no sequence sees another, the loss over the step's tokens as one sum (`num_items_in_batch`), LoRA by PEFT, engine by accelerate. A
test has loss and gradients of one step equal to SFTTrainer's.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from accelerate import Accelerator
from torch import nn

from harnessctl.train.objective import StepData
from harnessctl.train.policy import Policy
from harnessctl.train.sft.batches import Batches, families_of, micro_batches, share
from harnessctl.train.sft.config import SftConfig
from harnessctl.train.sft.rows import Tokens, packed, padded
from harnessctl.train.sft.token_loss import cross_entropy
from harnessctl.train.together import summed


class SftObjective:
    """`module` is the TokenLoss around the policy's model, as the loop has prepared it. The loss of `held_out` is shown
    every `eval_every` steps, as it is with the weights that the step begins with. `harnesses` names what each sample was
    made under: those of one name begin alike, and share that where they are packed."""

    def __init__(
        self,
        module: nn.Module,
        policy: Policy,
        samples: Sequence[Tokens],
        held_out: Sequence[Tokens],
        config: SftConfig,
        *,
        accelerator: Accelerator,
        is_packed: bool,
        harnesses: Sequence[str] | None = None,
    ) -> None:
        self._module = module
        self._policy = policy
        self._samples = samples
        self._held_out = held_out
        self._config = config
        self._accelerator = accelerator
        self._is_packed = is_packed
        self._batches = Batches(
            [len(sample) for sample in samples],
            size=config.micro_tokens,
            per_step=config.micro_batches,
            seed=config.seed,
            is_packed=is_packed,
            families=None if harnesses is None else families_of(samples, harnesses),
        )
        self.per_epoch = self._batches.per_epoch

    def data(self, step: int) -> StepData:
        """The step's share of the epoch."""
        bins = self._batches.step(step)
        chosen = [self._samples[place] for micro in bins for place in micro]
        shown = {
            "epoch": (step + 1) * len(bins) / self.per_epoch,
            "samples": len(chosen),
            "tokens": sum(map(len, chosen)),
        }
        if step % self._config.eval_every == 0:
            shown |= self.held_out_loss()
        micro = [[self._samples[place] for place in one] for one in self._mine(bins)]
        return StepData(micro=micro, weight=sum(sample.weight for sample in chosen), metrics=shown)

    def loss(self, micro: list[Tokens]) -> tuple[torch.Tensor, dict[str, float]]:
        """The cross-entropy of one micro-batch, and how many of its tokens were the likeliest."""
        total, right = self._sums(micro)
        return total, {"token_accuracy": float(right)}

    @torch.no_grad()
    def held_out_loss(self) -> dict[str, float]:
        """The mean loss of the held-out samples, over all processes; nothing where there are none."""
        held = self._held_out
        if not held:
            return {}
        bins = micro_batches([len(one) for one in held], size=self._config.micro_tokens, is_packed=self._is_packed)
        sums = {"loss": 0.0, "token_accuracy": 0.0}
        for one in self._mine(bins):
            total, right = self._sums([held[place] for place in one])
            sums["loss"] += float(total)
            sums["token_accuracy"] += float(right)
        weight = sum(sample.weight for sample in held)
        return {f"held_out/{name}": value / weight for name, value in summed(sums, self._accelerator).items()}

    def _sums(self, micro: list[Tokens]) -> tuple[torch.Tensor, torch.Tensor]:
        rows = (packed if self._is_packed else padded)(micro).to(self._policy.device)
        with self._policy.autocast():
            sums: tuple[torch.Tensor, torch.Tensor] = self._module(rows, cross_entropy)
        return sums

    def _mine(self, bins: Sequence[list[int]]) -> list[list[int]]:
        every = self._accelerator
        return share(bins, process=every.process_index, processes=every.num_processes)
