"""Report: what a training came to, as Markdown: what it began from, what it spent, and its curves."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

#: So many rows has the table of the curves at most.
ROWS = 16
#: What is not a curve of learning.
_LEFT_OUT = ("seconds/", "tokens_per_second", "tokens", "skipped", "lr")


def markdown(title: str, facts: Sequence[tuple[str, str]], lines: Sequence[dict[str, Any]]) -> str:
    """The report. `facts` are (name, value); `lines` are those of metrics.jsonl."""
    text = [f"# {title}", "", *(f"- {name}: {value}" for name, value in facts), ""]
    columns = curve_names(lines)
    if not columns:
        return "\n".join([*text, "No step was taken.", ""])
    text += ["## Curves", "", _row(["step", *columns]), _row(["---:"] * (len(columns) + 1))]
    text += [
        _row([str(line["step"]), *(shown(line.get(name)) for name in columns)]) for line in _spread(lines, columns)
    ]
    return "\n".join([*text, ""])


def curve_names(lines: Sequence[dict[str, Any]]) -> list[str]:
    """The curves that the lines have, in the order in which they appear."""
    names = dict.fromkeys(name for line in lines for name in line if name != "step")
    return [name for name in names if not name.startswith(_LEFT_OUT[0]) and name not in _LEFT_OUT]


def shown(value: float | None) -> str:
    """A number in four digits; nothing where there is none."""
    return "" if value is None else f"{value:.4g}"


def _spread(lines: Sequence[dict[str, Any]], columns: Sequence[str]) -> list[dict[str, Any]]:
    """At most ROWS lines, evenly spread, first and last among them; each says the mean since the one before."""
    ends = sorted({round(index * (len(lines) - 1) / (ROWS - 1)) for index in range(ROWS)}) if len(lines) > 1 else [0]
    rows: list[dict[str, Any]] = []
    begin = 0
    for end in ends:
        part = lines[begin : end + 1]
        row: dict[str, Any] = {"step": lines[end]["step"]}
        for name in columns:
            held = [line[name] for line in part if line.get(name) is not None]
            if held:
                row[name] = sum(held) / len(held)
        rows.append(row)
        begin = end + 1
    return rows


def _row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cells) + " |"
