"""Report: how a draft head came to follow its policy, alone or beside another one [5.5, Figure]."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from harnessctl.errors import RecordError
from harnessctl.train.metrics import read_metrics
from harnessctl.train.mtp.acceptance import Acceptance
from harnessctl.train.report import shown

#: A run's own table is kept under this name in its folder; `beside` reads it from another's.
FILE = "draft-head.json"
_POINTS = 12


class DraftRun(msgspec.Struct, kw_only=True):
    """What one run says of itself: `title` (source and policy), and its acceptance before and after."""

    title: str
    before: Acceptance
    after: Acceptance


def read_run(folder: Path) -> tuple[DraftRun, list[dict[str, Any]]]:
    """What a finished run of mtp-adapt says of itself, and its metrics. RecordError when it is none."""
    path = folder / FILE
    if not path.is_file():
        raise RecordError(f"{folder}: no {FILE} there", hint="beside= takes the folder of a finished run of mtp-adapt")
    try:
        return msgspec.json.decode(path.read_bytes(), type=DraftRun), read_metrics(folder)
    except msgspec.DecodeError as error:
        raise RecordError(f"{path}: not the record of a draft head: {error}") from error


def draft_report(runs: Sequence[tuple[DraftRun, list[dict[str, Any]]]]) -> str:
    """Markdown: acceptance by depth before and after, and the mean losses since the row before, for each run."""
    text = ["# Draft heads", ""]
    for run, _ in runs:
        text += [f"## Acceptance: {run.title}", "", *_acceptance(run), ""]
    curves: dict[str, list[dict[str, Any]]] = {}
    for run, lines in runs:
        same = sum(title.startswith(run.title) for title in curves)
        curves[f"{run.title} ({same + 1})" if same else run.title] = lines
    text += ["## Loss by step", "", *_curves(curves), ""]
    return "\n".join(text)


def _acceptance(run: DraftRun) -> list[str]:
    asked = run.after
    rows = [["rule", "when", *(f"depth {k}" for k in range(len(asked.greedy))), "accept length"]]
    rows.append(["---"] * 2 + ["---:"] * (len(rows[0]) - 2))
    sampled = f"sampled, T={asked.temperature:g} top-p={asked.top_p:g}, thresholds 1.0/1.0"
    for when, found in (("before", run.before), ("after", run.after)):
        rows.append(["greedy", when, *map(shown, found.greedy), shown(found.greedy_length)])
        rows.append([sampled, when, *map(shown, found.sampled), shown(found.sampled_length)])
    return ["| " + " | ".join(row) + " |" for row in rows]


def _curves(runs: Mapping[str, Sequence[dict[str, Any]]]) -> list[str]:
    """One row for each span of steps; the runs side by side, each with its loss and those of its depths."""
    names = {
        title: ["loss", *sorted({name for line in lines for name in line if name.startswith("loss/")})]
        for title, lines in runs.items()
    }
    head = ["up to step", *(f"{title}: {name}" for title in runs for name in names[title])]
    rows = [head, ["---:"] * len(head)]
    last = max((line["step"] for lines in runs.values() for line in lines), default=0)
    ends = sorted({max(1, round(last * (place + 1) / _POINTS)) for place in range(_POINTS)}) if last else []
    for begin, end in zip([0, *ends], ends, strict=False):
        row = [str(end)]
        for title, lines in runs.items():
            span = [line for line in lines if begin < line["step"] <= end]
            row += [shown(_mean([line[name] for line in span if name in line])) for name in names[title]]
        rows.append(row)
    return ["| " + " | ".join(row) + " |" for row in rows]


def _mean(values: Sequence[float]) -> float | None:
    return sum(values) / len(values) if values else None
