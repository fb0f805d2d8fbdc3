"""Report: what the scores of a run come to, by intent and in total [4.2].

What always holds: a mean is over the items that have the score, and says nothing where none has; AVG is the mean of each
item's own average of Accuracy and Effectiveness, taken before rounding.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import msgspec

from harnessctl.evaluate.files import path_of, read_records
from harnessctl.records.score import DIMENSIONS, Score
from harnessctl.trajectory import requests_done

#: The columns of a table, by the names of the paper.
COLUMNS = {
    "accuracy": "Acc",
    "effectiveness": "Eff",
    "average": "AVG",
    "tool_rationality": "Tool",
    "skill_selection": "Skill",
}
LEGEND = (
    "n items; means in percent: Acc Accuracy, Eff Effectiveness, AVG the mean of both, Tool Tool Rationality, "
    "Skill Skill Selection. `harnessctl docs evaluation` says how each is scored."
)
#: How many reasons a report lists.
LISTED = 12


class Row(msgspec.Struct, kw_only=True):
    """Means in [0, 1] over `items` items, of which `scored` have an AVG; null where no item has the score."""

    items: int
    scored: int
    accuracy: float | None = None
    effectiveness: float | None = None
    average: float | None = None
    tool_rationality: float | None = None
    skill_selection: float | None = None


class Report(msgspec.Struct, kw_only=True):
    """What a run came to. `coverage` is the share of items with an AVG.

    `faulted` counts items in which a fault was injected, `recovered` those of them whose AVG is 1 all the same. `reasons`
    are the commonest of each dimension, [dimension, reason, count]; `unscored` says why items have no score at all. `scorer`
    is who gave Accuracy and Effectiveness: the rules, or a panel.
    """

    suite: str
    title: str
    policy: str
    harness: str
    total: Row
    intents: dict[str, Row]
    languages: dict[str, Row]
    coverage: float
    stops: dict[str, int]
    faults: dict[str, int]
    faulted: int
    recovered: int
    reasons: list[tuple[str, str, int]]
    unscored: list[tuple[str, int]]
    scorer: str = "rules"


def row_of(scores: Iterable[Score]) -> Row:
    """The means of some scores."""
    found = list(scores)
    values = {name: [getattr(score, name) for score in found if getattr(score, name) is not None] for name in COLUMNS}
    means = {name: sum(given) / len(given) if given else None for name, given in values.items()}
    return Row(items=len(found), scored=len(values["average"]), **means)


def report_of(folder: Path, *, suite: str, title: str, policy: str, harness: str) -> Report:
    """The report of a run's records."""
    scores: list[Score] = list(read_records(folder, "scores"))
    faulted = [score for score in scores if score.faults]
    total = row_of(scores)
    return Report(
        suite=suite,
        title=title,
        policy=policy,
        harness=harness,
        total=total,
        intents=_rows(scores, "intent"),
        languages=_rows(scores, "language"),
        coverage=total.scored / total.items if total.items else 0.0,
        stops=_counted(stop for stop, _ in requests_done(path_of(folder, "trajectories")).values()),
        faults=_counted(kind for score in scores for kind in score.faults),
        faulted=len(faulted),
        recovered=sum(score.average == 1 for score in faulted),
        reasons=_reasons(scores),
        unscored=_unscored(scores),
        scorer=", ".join(sorted({score.scorer for score in scores})) or "rules",
    )


def _rows(scores: list[Score], field: str) -> dict[str, Row]:
    """A row for each value of a field, the commonest first."""
    names = _counted(getattr(score, field) for score in scores)
    return {name: row_of(score for score in scores if getattr(score, field) == name) for name in names}


def _counted(values: Iterable[str]) -> dict[str, int]:
    counts = Counter(values)
    return {name: counts[name] for name in sorted(counts, key=lambda name: (-counts[name], name))}


def _reasons(scores: list[Score]) -> list[tuple[str, str, int]]:
    counts = Counter(
        (name, reason)
        for score in scores
        for name in DIMENSIONS
        if (value := getattr(score, name)) is not None and value < 1
        for reason in score.reasons.get(name, ())
    )
    ordered = sorted(counts.items(), key=lambda entry: (-entry[1], entry[0]))
    return [(name, reason, count) for (name, reason), count in ordered[:LISTED]]


def _unscored(scores: list[Score]) -> list[tuple[str, int]]:
    whys = (why for score in scores if score.average is None for why in score.reasons.get("accuracy", ())[:1])
    return list(_counted(whys).items())[:LISTED]


def percent(value: float | None) -> str:
    """`94.8`, or a dash where there is no score."""
    return "-" if value is None else f"{100 * value:.1f}"


def cells(name: str, row: Row) -> tuple[str, ...]:
    """One line of a table."""
    return (name, str(row.items), *(percent(getattr(row, column)) for column in COLUMNS))


def markdown(report: Report) -> str:
    """The report as report.md of the run folder."""
    lines = [f"# {report.title}: {report.policy} under {report.harness}", ""]
    for label, rows in (("intent", report.intents), ("language", report.languages)):
        lines += _table(
            (label, "n", *COLUMNS.values()), [cells(n, r) for n, r in (*rows.items(), ("total", report.total))]
        )
    lines += [LEGEND, ""]
    if report.scorer != "rules":
        lines += [f"Acc and Eff are those of {report.scorer}; judging.md says how far it agrees with the rules.", ""]
    lines += [
        f"Scored: {percent(report.coverage)} % of {report.total.items} items. "
        f"Endings: {', '.join(f'{name} {count}' for name, count in report.stops.items())}.",
        "",
    ]
    if report.faulted:
        kinds = ", ".join(f"{name} {count}" for name, count in report.faults.items())
        lines += [
            f"Faults: {kinds}, in {report.faulted} items, of which {report.recovered} were answered in full all the same.",
            "",
        ]
    lines += [f"- No score for {count}: {why}" for why, count in report.unscored] + [""] * bool(report.unscored)
    if report.reasons:
        lines += _table(
            ("dimension", "what cost something", "items"),
            [(d, r.replace("|", "\\|"), str(c)) for d, r, c in report.reasons],
        )
    return "\n".join(lines).rstrip() + "\n"


def _table(head: tuple[str, ...], rows: list[tuple[str, ...]]) -> list[str]:
    return [f"| {' | '.join(cells)} |" for cells in (head, ("---",) * len(head), *rows)] + [""]
