"""Objective: what a draft head learns from in each step, and how it fares meanwhile."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from harnessctl.train.mtp.acceptance import Acceptance, measure
from harnessctl.train.mtp.collect import HiddenStates
from harnessctl.train.mtp.config import MtpConfig
from harnessctl.train.mtp.head import NextNHead
from harnessctl.train.mtp.loss import counts, depth_losses, depth_weights, is_counted
from harnessctl.train.mtp.rows import Row, read_row
from harnessctl.train.objective import StepData
from harnessctl.train.sft.batches import Batches, share


@dataclass(slots=True, frozen=True)
class _Micro:
    """A row, and by depth what a sum is multiplied with so that, divided by the step's weight, it is a mean."""

    row: Row
    scales: list[float]


class MtpObjective:
    """The loss of [5.5] over packed rows of the sequences `train`; the acceptance along `heldout` every so many steps.

    Every process reads the rows of its share; the held-out sequences are read by all.
    """

    def __init__(
        self,
        states: HiddenStates,
        train: Sequence[int],
        heldout: Sequence[int],
        head: NextNHead,
        config: MtpConfig,
        *,
        autocast: Callable[[], Any],
        process: int = 0,
        processes: int = 1,
    ) -> None:
        self._head = head
        self._states = states
        self._train = list(train)
        self._heldout = list(heldout)
        self._config = config
        self._autocast = autocast
        self._process, self._processes = process, processes
        self._weights = depth_weights(config.depths, config.weights, config.beta)
        self._batches = Batches(
            [states.lengths[number] for number in train],
            size=config.row_tokens,
            per_step=config.rows,
            seed=config.seed,
            is_packed=True,
        )

    def data(self, step: int) -> StepData:
        """The rows of step `step` of this process; the weight is Z over all processes."""
        micro = [[self._train[place] for place in places] for places in self._batches.step(step)]
        totals = self._terms([number for numbers in micro for number in numbers])
        weight = sum(w * n for w, n in zip(self._weights, totals, strict=True))
        scales = [weight / n if n else 0.0 for n in totals]
        mine = share(micro, process=self._process, processes=self._processes)
        metrics: dict[str, float] = {}
        if self._config.measure_every is not None and step and step % self._config.measure_every == 0:
            metrics = shown(self.acceptance())
        tokens = sum(self._states.lengths[number] for numbers in micro for number in numbers)
        return StepData(
            [_Micro(read_row(self._states, numbers, self._head), scales) for numbers in mine],
            weight,
            {"tokens": tokens, **metrics},
        )

    def loss(self, micro: _Micro) -> tuple[torch.Tensor, dict[str, float]]:
        """The weighted sum over depths and positions; to be shown, the mean loss and the share of hits of each depth."""
        row, config = micro.row, self._config
        counted = [is_counted(row.mask, row.segments, depth, config.labels) for depth in range(1, config.depths)]
        drafted = torch.stack(counted).any(0) if counted else None
        with self._autocast():
            outputs = self._head(
                row.hidden, row.ids, row.segments, row.positions, config.depths, config.embeddings, drafted
            )
            losses, hits = depth_losses(
                outputs,
                self._head.logits,
                row.ids,
                row.mask,
                row.segments,
                labels=config.labels,
                rows_at_once=self._head.rows_at_once,
            )
        sums: dict[str, float] = {}
        for depth, scale in enumerate(micro.scales):
            sums[f"loss/depth_{depth}"] = float(losses[depth].detach()) * scale
            sums[f"hit/depth_{depth}"] = hits[depth] * scale
        total = torch.stack([w * loss for w, loss in zip(self._weights, losses, strict=True)]).sum()
        return total, sums

    def acceptance(self) -> Acceptance:
        """The head's acceptance as it is now, along the held-out sequences."""
        config = self._config
        rows = (read_row(self._states, [number], self._head) for number in self._heldout)
        with self._autocast():
            return measure(self._head, rows, depths=config.depths, temperature=config.temperature, top_p=config.top_p)

    def _terms(self, numbers: Sequence[int]) -> list[int]:
        """The terms of each depth in these sequences."""
        totals = [0] * self._config.depths
        for number in numbers:
            mask = self._states.mask(number)[None]
            for depth, n in enumerate(counts(mask, torch.ones_like(mask), self._config.depths, self._config.labels)):
                totals[depth] += n
        return totals


def shown(acceptance: Acceptance) -> dict[str, float]:
    """Metrics of an acceptance."""
    found: dict[str, float] = {
        "acceptance/greedy_length": acceptance.greedy_length,
        "acceptance/sampled_length": acceptance.sampled_length,
    }
    for rule, rates in (("greedy", acceptance.greedy), ("sampled", acceptance.sampled)):
        found |= {f"acceptance/{rule}_{depth}": rate for depth, rate in enumerate(rates) if rate is not None}
    return found


def split(scenarios: Sequence[str], heldout: int, seed: int) -> tuple[list[int], list[int]]:
    """Which sequences are trained on, and which are held out, given the scenario of each: `heldout` of them, but no more
    than a quarter, filled up to whole scenarios. The rollouts of one scenario say nearly the same, so that nothing of a
    held-out one is trained on; only where there is but one scenario its sequences are parted."""
    names = list(scenarios) if len(set(scenarios)) > 1 else [str(number) for number in range(len(scenarios))]
    generator = torch.Generator().manual_seed(seed)
    distinct = list(dict.fromkeys(names))
    order: list[int] = torch.randperm(len(distinct), generator=generator).tolist()
    most = min(heldout, max(1, len(names) // 4))
    held: list[int] = []
    for place in order:
        members = [number for number, name in enumerate(names) if name == distinct[place]]
        if len(held) < most and len(held) + len(members) < len(names):
            held += members
    apart = set(held)
    return [number for number in range(len(names)) if number not in apart], sorted(held)
