"""Tables: what a panel's pass came to, as rows for a terminal and as Markdown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from harnessctl.evaluate.judging.agreement import STEPS, Agreement
from harnessctl.evaluate.judging.comparing import PanelReport
from harnessctl.evaluate.report import percent

SHORT = {"accuracy": "Acc", "effectiveness": "Eff"}


class Table(msgspec.Struct, kw_only=True):
    """A title, a head and rows of text."""

    title: str
    head: tuple[str, ...]
    rows: list[tuple[str, ...]]

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
