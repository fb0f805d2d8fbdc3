"""Progress of a training: loss, throughput, rewards and what else the stage shows, in one line a step."""

from __future__ import annotations

import time
from collections.abc import Mapping

from harnessctl.cli.progress import Progress

#: Without a terminal there is a line at most so often.
QUIET_S = 5.0
#: Metrics in the line, with their short names and forms, in this order; then the families, with what goes before a name.
_SHOWN = (("loss", "loss", ".4g"), ("tokens_per_second", "tokens/s", ",.0f"), ("discarded", "discarded", ".0%"))
_FAMILIES = (
    ("held_out/", "held-out ", ".4g"),
    ("exact/", "exact ", ".2f"),
    ("reward/", "", ".3f"),
    ("cot/", "CoT ", ".1f"),
)


class TrainProgress:
    """Steps up to `total`, of which `done` were there before. A context manager."""

    def __init__(self, label: str, *, total: int, done: int = 0) -> None:
        self._progress = Progress(label, total=total, done=done, quiet_s=QUIET_S)
        self._total = total
        self._step = self._begun = done
        self._started: float | None = None

    def show(self, step: int, values: Mapping[str, float]) -> None:
        """Step `step` is done and came to `values`."""
        now = time.monotonic()
        text = line_of(values)
        if self._started is None:
            self._started, self._begun = now, step  # the first step may have had to warm up
        elif step > self._begun:
            left = (now - self._started) / (step - self._begun) * (self._total - step)
            text += f"  {duration(left)} left"
        while self._step < step:
            self._step += 1
            self._progress.advance(text)

    def __enter__(self) -> TrainProgress:
        self._progress.__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        self._progress.__exit__(None, None, None)


def line_of(values: Mapping[str, float]) -> str:
    """`loss 1.234  tokens/s 5,200  accuracy 0.41  discarded 12 %  CoT tool 31`, of what is there."""
    parts = [f"{short} {values[name]:{form}}" for name, short, form in _SHOWN if name in values]
    for family, before, form in _FAMILIES:
        parts += [
            f"{before}{name.removeprefix(family)} {value:{form}}"
            for name, value in values.items()
            if name.startswith(family)
        ]
    return "  ".join(parts)


def duration(seconds: float) -> str:
    """`12 s`, `3 min`, `2 h 05 min`."""
    if seconds < 100:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 100 else f"{minutes // 60} h {minutes % 60:02d} min"
