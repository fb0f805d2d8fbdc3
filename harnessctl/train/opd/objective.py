"""OPD's objective: full-vocabulary reverse KL from the policy to its base on the policy's own answers [3.4, stage 2].

    L = 1/N  sum over prompts x, over t of y ~ p_s( . | x):  KL( p_s( . | x, y_<t) || p_b( . | x, y_<t) ),   N = sum |y|

The answers are sampled with the weights of the very step, and no gradient goes through the sampling (as in on-policy
distillation [Agarwal et al. 2024] and TRL's DistillationTrainer with beta=1): of the gradient of the sequences' KL what is
left out is how earlier tokens change later contexts. Prompt tokens are never counted. Not TRL's trainer, because a LoRA
student there has no adapter-off base (it fails), and for the resume law of all stages (see train/sft/objective.py).

    step: prompts of (seed, step) -> answers of the policy -> micro-batches -> base's states (no gradient)
          -> policy's states -> KL of each sampled position, logits of a few positions at a time
"""

from __future__ import annotations

from typing import Any

import torch
from accelerate import Accelerator
from accelerate.utils import gather_object
from torch import nn

from harnessctl.train.objective import StepData
from harnessctl.train.opd.base import Base
from harnessctl.train.opd.config import OpdConfig
from harnessctl.train.opd.divergence import divergence_from
from harnessctl.train.opd.prompts import Prompts
from harnessctl.train.opd.room import give_back
from harnessctl.train.opd.student import Student
from harnessctl.train.policy import Policy
from harnessctl.train.sft.batches import micro_batches
from harnessctl.train.sft.rows import Rows, Tokens, packed, padded


class OpdObjective:
    """`module` is the TokenLoss around the policy's model, as the loop has prepared it."""

    def __init__(
        self,
        module: nn.Module,
        policy: Policy,
        base: Base,
        prompts: Prompts,
        student: Student,
        config: OpdConfig,
        *,
        accelerator: Accelerator,
        is_packed: bool,
    ) -> None:
        self._module = module
        self._policy = policy
        self._base = base
        self._prompts = prompts
        self._student = student
        self._config = config
        self._accelerator = accelerator
        self._is_packed = is_packed
        self._loss = divergence_from(base.logits, config.temperature)

    def data(self, step: int) -> StepData:
        """Ask this process's share of the step's prompts."""
        mine = self._accelerator
        prompts = self._prompts.step(step, self._config.prompts_per_step)[mine.process_index :: mine.num_processes]
        give_back(self._policy.device, cycles=False)
        answers = self._student.answer(prompts)
        give_back(self._policy.device, cycles=True)
        said = answers.tokens
        bins = micro_batches([len(one) for one in said], size=self._config.micro_tokens, is_packed=self._is_packed)
        micro = [[said[place] for place in one] for one in bins]
        counts = (sum(one.weight for one in said), sum(map(len, said)), answers.cut, len(micro))
        everyone = gather_object([counts]) if mine.num_processes > 1 else [counts]
        weight, tokens, cut = (sum(one[at] for one in everyone) for at in range(3))
        micro += [[] for _ in range(max(1, *(one[3] for one in everyone)) - len(micro))]
        asked = self._config.prompts_per_step
        return StepData(
            micro=micro,
            weight=weight,
            metrics={"tokens": tokens, "answer_tokens": weight / asked, "cut": cut / asked},
        )

    def loss(self, micro: list[Tokens]) -> tuple[torch.Tensor, dict[str, float]]:
        """The sum of the divergences of one micro-batch's sampled positions, and the policy's entropy."""
        rows: Rows = (packed if self._is_packed else padded)(micro).to(self._policy.device)
        with self._policy.autocast():
            with torch.no_grad():
                wanted = self._base.states(rows)
            sums: Any = self._module(rows, self._loss, wanted)
        total, entropy = sums
        return total, {"entropy": float(entropy)}
