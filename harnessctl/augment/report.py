"""Report: coverage as tables, for report.md and, shorter, for a terminal."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from harnessctl.augment.coverage import Coverage, Target


@dataclass(frozen=True)
class Section:
    """One table."""

    title: str
    columns: tuple[str, ...]
    rows: Sequence[tuple[str, ...]]


def brief(coverage: Coverage) -> list[Section]:
    """What fits on a screen: rules are summed up by their owner, and what is as it should be is left out."""
    return [s for s in (_operators(coverage), *_targets(coverage), _owners(coverage), _limits(coverage)) if s.rows]


def whole(coverage: Coverage) -> list[Section]:
    """Everything, one row a rule."""
    rules = [(name, _count(t.wordings, coverage), _share(t.masked, coverage)) for name, t in coverage.rules.items()]
    hooks = [(name, str(h.variants), str(h.distinct)) for name, h in coverage.hooks.items()]
    sections = [
        _operators(coverage),
        *_targets(coverage),
        Section("Rules and items", ("rule", "wordings", "masked"), rules),
        _limits(coverage),
        Section("Hooks", ("hook", "variants", "kinds of change"), hooks),
        Section("Texts without another wording", ("text",), [(place,) for place in coverage.without_wording]),
        Section(
            "Refused",
            ("variant", "law", "place", "reason"),
            [(str(r.number), r.law, r.place, r.reason) for r in coverage.refusals],
        ),
    ]
    return [section for section in sections if section.rows]


def markdown(coverage: Coverage, title: str) -> str:
    """report.md."""
    lines = [f"# {title}", "", *(f"- {line}" for line in summary(coverage)), ""]
    for section in whole(coverage):
        lines += [f"## {section.title}", "", _row(section.columns), _row(["---"] * len(section.columns))]
        lines += [_row(row) for row in section.rows]
        lines.append("")
    return "\n".join(lines)


def summary(coverage: Coverage) -> list[str]:
    """The counts as sentences."""
    wordless = len(coverage.without_wording)
    return [
        f"{coverage.variants} variants, {coverage.refused} refused",
        f"texts without another wording: {wordless}, kept as they are {coverage.fallbacks} times",
    ]


def _operators(coverage: Coverage) -> Section:
    rows = [
        (name, str(used.variants), _share(used.variants, coverage), str(used.targets), _count(used.distinct, coverage))
        for name, used in coverage.operators.items()
    ]
    return Section("Operators", ("operator", "variants", "share", "changes", "targets"), rows)


def _targets(coverage: Coverage) -> Iterable[Section]:
    skills = [
        (name, _count(t.names, coverage), _count(t.descriptions, coverage), _share(t.masked, coverage))
        for name, t in coverage.skills.items()
    ]
    yield Section("Skills: distinct surface forms", ("skill", "names", "descriptions", "masked"), skills)
    tools = [
        (name, _count(t.names, coverage), _count(t.descriptions, coverage), _count(t.parameters, coverage))
        for name, t in coverage.tools.items()
    ]
    yield Section("Tools: distinct surface forms", ("tool", "names", "descriptions", "parameters"), tools)


def _owners(coverage: Coverage) -> Section:
    owners: dict[str, list[Target]] = {}
    for name, target in coverage.rules.items():
        owners.setdefault(name.partition("#")[0], []).append(target)
    rows: list[tuple[str, ...]] = []
    for owner, targets in owners.items():
        wordings = sorted(target.wordings for target in targets)
        maskable = sum(target.masked > 0 for target in targets)
        rows.append(
            (
                owner,
                str(len(targets)),
                _count(wordings[0], coverage),
                _count(wordings[len(wordings) // 2], coverage),
                _count(wordings[-1], coverage),
                str(maskable),
            )
        )
    return Section(
        "Rules and items: wordings of one rule", ("of", "rules", "fewest", "median", "most", "ever masked"), rows
    )


def _limits(coverage: Coverage) -> Section:
    rows = [(name, str(v.variants), f"{v.least:g}", f"{v.most:g}") for name, v in coverage.limits.items()]
    return Section("Limits", ("limit", "variants", "least", "most"), rows)


def _share(count: int, coverage: Coverage) -> str:
    return f"{count / coverage.variants:.1%}" if coverage.variants else "-"


def _count(count: int, coverage: Coverage) -> str:
    """A number of forms; beyond `most_forms` they are not told apart."""
    return f"{count}+" if count >= coverage.most_forms else str(count)


def _row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|").replace("\n", " ") for cell in cells) + " |"
