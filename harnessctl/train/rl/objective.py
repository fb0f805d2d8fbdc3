"""RL's objective: rollouts of the policy as it is, their advantages, and the clipped loss over its tokens [3.4, Algorithm 1].

    for each batch:
        draw scenarios, each under the original harness or a variant          environment.py
        n rollouts of each, graded in four dimensions                         environment.py, reward.py
        advantages within each group, zero ones discarded, batch-normalised   advantages.py
        per token: A^tool or A^reply                                          credit.py
        `updates` steps: L = 1/N sum over policy tokens of the clipped loss   losses.py

N counts the policy's tokens of the trajectories that were not discarded, over all micro-batches and processes. Read top to bottom with
harnessctl/train/loop.py it is the whole of the training; not TRL's GRPOTrainer, which has no advantages by token group,
drops nothing, cannot run an agent's loop on SGLang, and computes a shared prompt once for each rollout.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from accelerate import Accelerator
from accelerate.utils import gather_object
from torch import nn
from transformers import PreTrainedModel

from harnessctl.data.encoding import Decoder
from harnessctl.decode.prompt import PromptEncoder
from harnessctl.errors import TrainingError
from harnessctl.train.forest import use_forests
from harnessctl.train.objective import StepData
from harnessctl.train.policy import Policy
from harnessctl.train.rl.advantages import Advantage, Graded, batch_advantages, group_advantages
from harnessctl.train.rl.config import RlConfig
from harnessctl.train.rl.credit import graded, paths_of, scores_of
from harnessctl.train.rl.environment import Environment, Group, Rollout
from harnessctl.train.rl.losses import k3, surrogate
from harnessctl.train.rl.paths import Path, Said
from harnessctl.train.rl.prefix import Read, Reader, read, read_nothing
from harnessctl.train.rl.summary import Tally, metrics_of

#: What one pass reads: paths of one group; empty where another process has more of them than this one.
Micro = Sequence[Path]


@dataclass(slots=True, frozen=True)
class Judged:
    """A rollout on its way to the loss: what it is graded by (null: it says nothing of the policy), and its advantages before
    and after the batch normalisation (null: discarded)."""

    group: Group
    rollout: Rollout
    graded: Graded | None
    raw: Advantage | None = None
    final: Advantage | None = None

    def tally(self) -> Tally:
        """The rollout in short."""
        trajectory, score = self.rollout.trajectory, self.rollout.score
        return Tally(
            stop=trajectory.stop,
            is_variant=self.group.variant is not None,
            scores=scores_of(score),
            cot=dict(self.graded.cot) if self.graded is not None else {},
            said=sum(sum(path.mask) for path in trajectory.paths),
            raw=self.raw,
            is_kept=self.final is not None,
        )


class RlObjective:
    """Learns from the groups of `environment`. `reference` is the policy as it was at its start, where a KL term wants it and
    the policy has no adapter to switch off. `record` is given every batch."""

    def __init__(
        self,
        policy: Policy,
        config: RlConfig,
        environment: Environment,
        reader: Reader,
        *,
        accelerator: Accelerator,
        reference: PreTrainedModel | None = None,
        record: Callable[[int, Sequence[Judged]], None] | None = None,
    ) -> None:
        self._policy = policy
        self._decoder = PromptEncoder(policy.template, policy.codec)
        self._config = config
        self._environment = environment
        self._reader = reader
        self._accelerator = accelerator
        self._reference = reference
        if reference is not None and reader.shares:
            use_forests(reference)
        if config.recompute:
            forget(policy.model)
        self._record = record
        self._batch: tuple[int, StepData] | None = None

    def data(self, step: int) -> StepData:
        """The batch that step `step` learns from, its rollouts made before the first of its updates."""
        batch, update = divmod(step, self._config.updates)
        if update == 0:
            self._batch = None
            self._batch = (batch, self._made(batch, step))
            return self._batch[1]
        if self._batch is None or self._batch[0] != batch:
            raise TrainingError(
                f"step {step + 1} is update {update + 1} of its batch, whose rollouts belong to weights that are gone",
                hint="go on from a point between batches",
            )
        held = self._batch[1]
        return StepData(held.micro, held.weight, {"tokens": held.metrics["tokens"]})

    def _made(self, batch: int, step: int) -> StepData:
        config, processes = self._config, self._accelerator.num_processes
        numbers = range(batch * config.groups, (batch + 1) * config.groups)
        began = time.perf_counter()
        groups = self._environment.groups(numbers[self._accelerator.process_index :: processes], config.rollouts)
        played = time.perf_counter() - began
        check_answered(groups)
        judged = self._normalised([one for group in groups for one in judge(group, config, step, self._decoder)])
        if self._record is not None:
            self._record(step, judged)
        micro = self._micro(judged)
        weight = sum(len(path.places) for paths in micro for path in paths)
        share = {
            "tallies": [one.tally() for one in judged],
            "weight": weight,
            "tokens": sum(self._reader.size(paths) for paths in micro if paths),
            "unshared": sum(len(path.read) for paths in micro for path in paths),
            "micro": len(micro),
        }
        shares = gather_object([share])
        micro += [[]] * (max(1, *(one["micro"] for one in shares)) - len(micro))
        tallies = [tally for one in shares for tally in one["tallies"]]
        metrics = metrics_of(tallies)
        metrics["tokens"] = sum(one["tokens"] for one in shares)
        metrics["tokens/unshared"] = sum(one["unshared"] for one in shares)
        metrics["rollouts/tokens_per_second"] = sum(tally.said for tally in tallies) / max(played, 1e-9)
        metrics["penalty/weight"] = config.cot.weight_at(step)
        return StepData(self._with_others(micro), sum(one["weight"] for one in shares), metrics)

    def _normalised(self, judged: list[Judged]) -> list[Judged]:
        """With the advantages of the batch, which is that of all processes."""
        mine = [one.raw for one in judged if one.raw is not None]
        all_of_them: list[list[Advantage]] = gather_object([mine])
        final = batch_advantages([advantage for raw in all_of_them for advantage in raw])
        start = sum(len(raw) for raw in all_of_them[: self._accelerator.process_index])
        own = iter(final[start : start + len(mine)])
        return [one if one.raw is None else replace(one, final=next(own)) for one in judged]

    def _micro(self, judged: Sequence[Judged]) -> list[Micro]:
        """The paths of what was kept, those of a group together."""
        by_group: dict[int, list[Path]] = {}
        for one in judged:
            if one.final is not None:
                by_group.setdefault(one.group.number, []).extend(paths_of(one.rollout.trajectory, one.final))
        budget = self._config.micro_tokens
        return [chunk for paths in by_group.values() for chunk in self._reader.chunks(paths, budget)]

    def _with_others(self, micro: Sequence[Micro]) -> list[Micro]:
        """With the log-probabilities before the batch's first update where it has several, and of the start's for the KL."""
        found: list[Micro] = list(micro)
        if self._config.updates > 1:
            found = [self._told(paths, "old", self._policy.model) for paths in found]
        if self._config.kl and self._policy.has_adapter:
            with self._policy.adapter_off():
                found = [self._told(paths, "reference", self._policy.model) for paths in found]
        elif self._config.kl:
            if self._reference is None:
                raise TrainingError("the KL term needs the policy as it was at its start")
            found = [self._told(paths, "reference", self._reference) for paths in found]
        return found

    @torch.no_grad()
    def _told(self, paths: Micro, name: str, model: nn.Module) -> list[Path]:
        log_probs = iter(self._read(paths, Said.of(paths, self._policy.device), model).log_probs.tolist())
        return [replace(path, **{name: [next(log_probs) for _ in path.places]}) for path in paths]

    def loss(self, micro: Micro) -> tuple[torch.Tensor, dict[str, float]]:
        """The sum of the clipped losses of a micro-batch's tokens, and of the KL term."""
        config = self._config
        said = Said.of(micro, self._policy.device)
        found = self._read(micro, said, self._policy.model)
        old = found.log_probs.detach() if said.old is None else said.old
        clipped = surrogate(
            found.log_probs,
            old,
            said.advantages,
            low=config.clip_low,
            high=config.clip_high,
            sequences=said.sequences if config.ratio == "sequence" else None,
        )
        loss = clipped.losses.sum() + found.nothing
        gap = old - said.sampled
        shown = {
            "entropy": found.entropy.sum(),
            "ratio": clipped.ratio.sum(),
            "clip_share": clipped.clipped.sum(),
            "mismatch": gap.abs().sum(),
            "mismatch_kl": (gap.exp() - gap - 1).sum(),
        }
        if config.kl and said.reference is not None:
            apart = k3(found.log_probs, said.reference)
            loss = loss + config.kl * apart.sum()
            shown["kl"] = apart.detach().sum()
        return loss, {name: float(value) for name, value in shown.items()}

    def _read(self, paths: Micro, said: Said, model: nn.Module) -> Read:
        # Layers forget what they work out in training mode alone, which is made to differ in nothing else.
        model.train(self._config.recompute and torch.is_grad_enabled())
        try:
            with self._policy.autocast():
                if not paths:
                    return read_nothing(model, self._policy.device)
                rows = self._reader.rows(paths, self._policy.device)
                return read(model, rows, said.ids, temperature=self._config.temperature)
        finally:
            model.eval()


def judge(group: Group, config: RlConfig, step: int, decoder: Decoder) -> list[Judged]:
    """A group's rollouts with their advantages before the batch normalisation."""
    found = [Judged(group, rollout, graded(rollout.trajectory, rollout.score, decoder)) for rollout in group.rollouts]
    raw = iter(group_advantages([one.graded for one in found if one.graded is not None], config.cot, step=step))
    return [one if one.graded is None else replace(one, raw=next(raw)) for one in found]


def check_answered(groups: Sequence[Group]) -> None:
    """TrainingError when the model failed in every rollout: there is nothing to learn from, and the next batch will be no better."""
    ended = [rollout.trajectory for group in groups for rollout in group.rollouts]
    if ended and all(trajectory.stop == "model_error" for trajectory in ended):
        raise TrainingError(
            f"the policy answered in none of {len(ended)} rollouts: {ended[0].error or 'no cause is recorded'}"
        )


def forget(model: Any) -> None:
    """Let a model's layers work out again on the way back what they have worked out, where it is in training mode; no dropout comes
    with that."""
    model.activation_checkpointing_enable({"use_reentrant": False})
    for layer in model.modules():
        if isinstance(layer, nn.Dropout):
            layer.p = 0.0
        if getattr(layer, "attention_dropout", 0.0):
            layer.attention_dropout = 0.0
