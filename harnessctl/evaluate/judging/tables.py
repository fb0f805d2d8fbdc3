"""Tables: what a panel's pass came to, as rows for a terminal and as Markdown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from harnessctl.evaluate.judging.agreement import STEPS, Agreement
from harnessctl.evaluate.judging.calibration import Calibration
from harnessctl.evaluate.judging.comparing import PanelReport
from harnessctl.evaluate.report import percent

SHORT = {"accuracy": "Acc", "effectiveness": "Eff"}


class Table(msgspec.Struct, kw_only=True):
    """A title, a head and rows of text."""

    title: str
    head: tuple[str, ...]
    rows: Sequence[tuple[str, ...]]

    def markdown(self) -> list[str]:
        """The table's lines, an empty one last."""
        cells = [self.head, ("---",) * len(self.head), *self.rows]
        return [f"## {self.title}", "", *(f"| {' | '.join(_escaped(row))} |" for row in cells), ""]


def _escaped(row: Sequence[str]) -> list[str]:
    return [cell.replace("|", "\\|").replace("\n", " ") for cell in row]


def shown(kappa: float | None) -> str:
    """Kappa with three digits; a dash where it is not defined."""
    return "-" if kappa is None else f"{kappa:.3f}"


def voter_table(report: PanelReport) -> Table:
    """Each voter: coverage, own means, agreement with the panel."""
    rows = [
        (
            row.voter,
            f"{row.scored}/{row.votes}",
            percent(row.means["accuracy"]),
            percent(row.means["effectiveness"]),
            percent(row.accuracy.share),
            percent(row.effectiveness.share),
            str(row.lookups),
            str(row.attempts),
        )
        for row in report.voters
    ]
    head = ("voter", "scored", "Acc", "Eff", "=Acc", "=Eff", "look-ups", "asked")
    return Table(title=f"Voters of {report.scorer}, and how often each agrees with it (=)", head=head, rows=rows)


def agreement_table(title: str, found: Mapping[str, Agreement]) -> Table:
    """Agreement and kappa by dimension."""
    rows = [
        (SHORT[name], str(each.items), str(each.missing), percent(each.share), shown(each.kappa))
        for name, each in found.items()
    ]
    return Table(title=title, head=("", "items", "no grade", "agree %", "kappa"), rows=rows)


def confusion_table(name: str, reference: str, other: str, found: Agreement) -> Table:
    """How often each pair of grades came up; `-` is no grade."""
    grades = list(found.table)
    rows = [(grade, *(str(found.table[grade][column]) for column in grades)) for grade in grades]
    return Table(title=f"{SHORT[name]}: {reference} (rows) and {other}", head=("", *grades), rows=rows)


def panel_lines(report: PanelReport) -> list[str]:
    """What is said of a panel in sentences."""
    lines = [
        f"Judge {report.judge} ({report.judge_digest[:12]}); it sees "
        + ("gold besides the reply." if report.sees == "gold" else "the reply and what the host was shown, no gold."),
        f"Both verdicts for {percent(report.coverage)} % of {report.items} items "
        f"(Acc {report.verdicts['accuracy']}, Eff {report.verdicts['effectiveness']}; not judged {report.unasked}). "
        f"Voters differ on Acc in {report.split['accuracy']} items, on Eff in {report.split['effectiveness']}.",
    ]
    for row in report.voters:
        if row.causes:
            causes = ", ".join(f"{name} {count}" for name, count in row.causes.items())
            lines.append(f"No score of {row.voter}: {causes}.")
    return lines


def run_tables(report: PanelReport, rules: Mapping[str, Agreement]) -> list[Table]:
    """The tables of a judged run."""
    tables = [voter_table(report), agreement_table("The panel and the rules on the same items", rules)]
    return tables + [confusion_table(name, "rules", "panel", rules[name]) for name in STEPS]


def markdown(title: str, lines: Sequence[str], tables: Sequence[Table]) -> str:
    """A report as Markdown."""
    parts = [f"# {title}", "", *(f"{line}\n" for line in lines)]
    for table in tables:
        parts += table.markdown()
    return "\n".join(parts).rstrip() + "\n"


def calibration_lines(found: Calibration) -> list[str]:
    """What is said of a calibration in sentences: the labels' source and the set's role first."""
    sources = ", ".join(f"{name} {count}" for name, count in found.sources.items())
    roles = " and ".join(f"{name} set ({count} items)" for name, count in found.roles.items())
    lines = [f"Labels: {sources}. Role: {roles}. Set {found.set_digest[:12]}."]
    if not found.is_human:
        lines.append(
            "These labels are NOT of people: the simulator made the replies (the oracle and its flaws), the rules labelled "
            "them. Agreement shows that a judge finds planted mistakes, not that it agrees with people."
        )
    passed = [
        f"{len(ids)} {what}" for ids, what in ((found.duplicates, "labelled twice"), (found.absent, "absent")) if ids
    ]
    if passed:
        named = ", ".join([*found.duplicates, *found.absent][:5])
        lines.append(f"Items passed over: {', '.join(passed)} ({named}).")
    for name, ids in found.split.items():
        if ids:
            lines.append(f"No majority of annotators on {SHORT[name]}: {len(ids)} items ({', '.join(ids[:5])}).")
    people = [f"{SHORT[name]} {percent(share)} %" for name, share in found.annotators.items() if share is not None]
    if people:
        lines.append(f"Two annotators of one item agree: {', '.join(people)}.")
    return lines + panel_lines(found.panel)


def calibration_tables(found: Calibration) -> list[Table]:
    """Agreement, tables of both grades, voters, clusters, and the curve where there are several judges."""
    tables = [agreement_table(f"{found.panel.scorer} against the labels", found.agreement)]
    tables += [confusion_table(name, "label", "panel", found.agreement[name]) for name in STEPS]
    tables.append(voter_table(found.panel))
    rows = [
        (name, *(cell for step in STEPS for cell in (percent(held[step].share), shown(held[step].kappa))))
        for name, held in found.voters.items()
    ]
    tables.append(
        Table(title="Voters against the labels", head=("voter", "Acc %", "kappa", "Eff %", "kappa "), rows=rows)
    )
    if found.clusters:
        tables.append(
            Table(
                title="Where they disagree",
                head=("", "kind", "panel is", "items", "%", "words", "cases"),
                rows=[
                    (
                        SHORT[each.dimension],
                        each.kind,
                        each.direction,
                        str(each.count),
                        percent(each.share),
                        ", ".join(each.words),
                        ", ".join(each.cases[:3]),
                    )
                    for each in found.clusters
                ],
            )
        )
    if len(found.curve) > 1:
        tables.append(
            Table(
                title="Judges on this set, the latest last (Figure 9)",
                head=("judge", "digest", "Acc %", "kappa", "Eff %", "kappa ", "coverage %"),
                rows=[
                    (
                        each.judge,
                        each.judge_digest[:12],
                        percent(each.accuracy),
                        shown(each.accuracy_kappa),
                        percent(each.effectiveness),
                        shown(each.effectiveness_kappa),
                        percent(each.coverage),
                    )
                    for each in found.curve
                ],
            )
        )
    return tables
