"""Report: what the scores of a run come to, by intent and in total [4.2].

What always holds: a mean is over the items that have the score, and says nothing where none has; AVG is the mean of each
item's own: of its Accuracy and Effectiveness, or the share of its rubrics that were passed; taken before rounding.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path

import msgspec

from harnessctl.evaluate.edits import Case, Edited, cases_of, edited_of, findings_of
from harnessctl.evaluate.files import path_of, read_records
from harnessctl.evaluate.metrics import COLUMNS, legend
from harnessctl.evaluate.usage import Usage
from harnessctl.policies import PriceConfig
from harnessctl.records.score import DIMENSIONS, Score
from harnessctl.records.task import METRICS, metric_of
from harnessctl.trajectory import requests_ended

#: How many reasons a report lists, and cases before and after an edit.
LISTED = 12
CASES = 5


class Row(msgspec.Struct, kw_only=True):
    """Means in [0, 1] over `items` items, of which `scored` have an AVG; null where no item has the score. `rubrics` are the
    means of items' shares of passed rubrics, by metric."""

    items: int
    scored: int
    accuracy: float | None = None
    effectiveness: float | None = None
    average: float | None = None
    tool_rationality: float | None = None
    skill_selection: float | None = None
    rubrics: dict[str, float] = {}

    def value(self, metric: str) -> float | None:
        """The mean of a metric; null where no item has it."""
        return self.rubrics.get(metric) if metric in METRICS else getattr(self, metric)


class Report(msgspec.Struct, kw_only=True):
    """What a run came to. `coverage` is the share of items with an AVG.

    `faulted` counts items in which a fault was injected, `recovered` those of them whose AVG is 1 all the same. `reasons`
    are the commonest of each dimension, [dimension, reason, count]; `unscored` says why items have no score at all.
    `columns` are the metrics of the tables with their headings; `levels` has a row for each level of a built set,
    `findings` counts errors of naturalness by kind, `edited` compares them under two harnesses, and `cases` are replies
    under both. `scorer` is who gave Accuracy and Effectiveness: the rules, or a panel.
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
    usage: Usage
    faults: dict[str, int]
    faulted: int
    recovered: int
    reasons: list[tuple[str, str, int]]
    unscored: list[tuple[str, int]]
    columns: dict[str, str] = msgspec.field(default_factory=lambda: dict(COLUMNS))
    levels: dict[str, Row] = {}
    findings: dict[str, int] = {}
    edited: Edited | None = None
    cases: list[Case] = []
    scorer: str = "rules"


def row_of(scores: Iterable[Score]) -> Row:
    """The means of some scores."""
    found = list(scores)
    values = {name: [getattr(score, name) for score in found if getattr(score, name) is not None] for name in COLUMNS}
    means = {name: sum(given) / len(given) if given else None for name, given in values.items()}
    shares = {name: [share for score in found if (share := score.value(name)) is not None] for name in METRICS}
    rubrics = {name: sum(given) / len(given) for name, given in shares.items() if given}
    return Row(items=len(found), scored=len(values["average"]), rubrics=rubrics, **means)


def report_of(
    folder: Path,
    *,
    suite: str,
    title: str,
    policy: str,
    harness: str,
    price: PriceConfig | None = None,
    columns: Mapping[str, str] = COLUMNS,
) -> Report:
    """The report of a run's records; `price` is what tokens cost."""
    scores: list[Score] = list(read_records(folder, "scores"))
    faulted = [score for score in scores if score.faults]
    total = row_of(scores)
    usage, stops = Usage(), Counter[str]()
    for ended in requests_ended(path_of(folder, "trajectories")):
        stops[ended.stop] += 1
        usage.add(ended)
    return Report(
        suite=suite,
        title=title,
        policy=policy,
        harness=harness,
        total=total,
        intents=_rows(scores, "intent"),
        languages=_rows(scores, "language"),
        coverage=total.scored / total.items if total.items else 0.0,
        stops=_by_count(stops),
        usage=usage.priced(price),
        faults=_counted(kind for score in scores for kind in score.faults),
        faulted=len(faulted),
        recovered=sum(score.average == 1 for score in faulted),
        reasons=_reasons(scores),
        unscored=_unscored(scores),
        columns=dict(columns),
        levels=_levels(scores),
        findings=findings_of(scores),
        edited=edited_of(scores),
        cases=cases_of(folder, CASES) if any(score.arm == "after" for score in scores) else [],
        scorer=", ".join(sorted({score.scorer for score in scores})) or "rules",
    )


def _rows(scores: list[Score], field: str) -> dict[str, Row]:
    """A row for each value of a field, the commonest first."""
    names = _counted(getattr(score, field) for score in scores)
    return {name: row_of(score for score in scores if getattr(score, field) == name) for name in names}


def _levels(scores: list[Score]) -> dict[str, Row]:
    """A row for each level of difficulty, the easiest first."""
    rows = _rows(scores, "level")
    return {name: rows[name] for name in ("easy", "medium", "hard") if name in rows}


def _counted(values: Iterable[str]) -> dict[str, int]:
    return _by_count(Counter(values))


def _by_count(counts: Mapping[str, int]) -> dict[str, int]:
    return {name: counts[name] for name in sorted(counts, key=lambda name: (-counts[name], name))}


def _reasons(scores: list[Score]) -> list[tuple[str, str, int]]:
    counts = Counter(
        (metric_of(name), reason)
        for score in scores
        for name in (*DIMENSIONS, *score.rubrics)
        if (value := score.rubrics.get(name, getattr(score, name, None))) is not None and value < 1
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


def cells(name: str, row: Row, columns: Iterable[str] = tuple(COLUMNS)) -> tuple[str, ...]:
    """One line of a table."""
    return (name, str(row.items), *(percent(row.value(column)) for column in columns))


def markdown(report: Report) -> str:
    """The report as report.md of the run folder."""
    lines = [f"# {report.title}: {report.policy} under {report.harness}", ""]
    for label, rows in (("intent", report.intents), ("language", report.languages), ("level", report.levels)):
        if rows:
            lines += _table(
                (label, "n", *report.columns.values()),
                [cells(n, r, report.columns) for n, r in (*rows.items(), ("total", report.total))],
            )
    lines += [legend(report.columns), ""]
    if report.edited is not None:
        lines += _table(*report.edited.table())
        cases = [(one.asked, one.before, one.after) for one in report.cases]
        lines += _table(("asked", "before", "after"), [tuple(map(_cell, case)) for case in cases]) if cases else []
    elif report.findings:
        lines += _table(("error", "count"), [(kind, str(count)) for kind, count in report.findings.items()])
    if report.scorer != "rules":
        lines += [f"Acc and Eff are those of {report.scorer}; judging.md says how far it agrees with the rules.", ""]
    lines += [
        f"Scored: {percent(report.coverage)} % of {report.total.items} items. "
        f"Endings: {', '.join(f'{name} {count}' for name, count in report.stops.items())}.",
        "",
    ]
    if report.usage.prompt_tokens:
        lines += [f"Model: {report.usage.told()}.", ""]
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
            [(d, _cell(r), str(c)) for d, r, c in report.reasons],
        )
    return "\n".join(lines).rstrip() + "\n"


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " / ")


def _table(head: tuple[str, ...], rows: list[tuple[str, ...]]) -> list[str]:
    return [f"| {' | '.join(cells)} |" for cells in (head, ("---",) * len(head), *rows)] + [""]
