"""Settling: which skills of a batch can stand together in a project, and under which names.

What always holds: of two skills of which one mentions the other where no code span can be put, at most one is kept; a
skill that is kept has every mention of a known name in a code span of its own; the result depends on the batch and the
project's names alone.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from harnessctl.errors import Faults
from harnessctl.importing.front_matter import FrontMatter
from harnessctl.importing.mentions import Mended, Stuck, mend
from harnessctl.importing.names import MAX_NAME, KnownNames
from harnessctl.importing.report import Entry
from harnessctl.importing.sentences import cut
from harnessctl.importing.skill_fields import MAX_DESCRIPTION
from harnessctl.manifests.attributes import split
from harnessctl.manifests.markdown import SkillFile, read_skill

_MAX_LISTED = 5


@dataclass(slots=True)
class Draft:
    """A skill on its way in. `alias` is what the source calls it."""

    entry: Entry
    name: str
    alias: str
    description: str
    fields: dict[str, Any]
    front: FrontMatter
    side: dict[str, bytes] = field(default_factory=dict)
    rules: set[str] = field(default_factory=set)


def settle(drafts: list[Draft], known: KnownNames) -> list[Draft]:
    """The drafts that can stand together in the project; the others are refused with the mention that stands against it."""
    for draft in drafts:
        draft.rules = _rule_ids(draft)
        _rename_if_stuck(draft)
    pending = _without_twins(drafts)
    names = {draft.name for draft in pending}
    stuck = {draft.name: _stuck(draft, pending, names | known.marked()) for draft in pending}
    kept: list[Draft] = []
    fixed = known.marked() - names

    def refuse(draft: Draft, against: Stuck) -> None:
        pending.remove(draft)
        draft.entry.refuse(
            f"line {against.line} mentions the known name `{against.name}` {against.place}, where it cannot be put into a "
            f"code span and renaming would miss it; change the line in the source and import it again"
        )
        if draft.name in known.skills:  # an older one of this name stays
            fixed.add(draft.name)

    while pending:
        for draft in list(pending):
            against = next((s for s in stuck[draft.name] if s.name in fixed), None)
            if against is not None:
                refuse(draft, against)
        waiting = {draft.name for draft in pending}
        ready = [d for d in pending if not any(s.name in waiting for s in stuck[d.name])]
        if not ready and pending:  # they mention each other in a circle: the first gives way
            refuse(pending[0], next(s for s in stuck[pending[0].name] if s.name in waiting))
        for draft in ready:
            pending.remove(draft)
            kept.append(draft)
            fixed.add(draft.name)
    for draft in kept:
        _mend(draft, kept, fixed)
    return sorted(kept, key=lambda draft: draft.entry.source)


def _without_twins(drafts: list[Draft]) -> list[Draft]:
    """The drafts, later ones of a name refused."""
    first: dict[str, Draft] = {}
    for draft in drafts:
        if draft.name in first:
            source = first[draft.name].entry.source
            draft.entry.refuse(f"another skill of this import is called `{draft.name}`: {source}")
        else:
            first[draft.name] = draft
    return list(first.values())


def _rename_if_stuck(draft: Draft) -> None:
    """Call a skill otherwise when its own text has its name where no code span can be put: then that is only a word."""
    own = mend(draft.front.body, {draft.name}).stuck + mend(draft.description, {draft.name}).stuck
    if not own:
        return
    old, suffix = draft.name, "-imported" if draft.name.endswith("-skill") else "-skill"
    draft.name = draft.entry.name = old[: MAX_NAME - len(suffix)].rstrip("-") + suffix
    line = own[0].line + draft.front.body_line - 1
    more = f" and at {len(own) - 1} more such places" if len(own) > 1 else ""
    draft.entry.note(
        "changed", line, f"it is called `{draft.name}`: `{old}` stands {own[0].place}{more}, which renaming would miss"
    )


def _renamed(drafts: list[Draft]) -> dict[str, str]:
    """Names that the sources use for skills that are called otherwise here."""
    names = {draft.name for draft in drafts}
    return {d.alias: d.name for d in drafts if d.alias != d.name and d.alias not in names}


def _stuck(draft: Draft, drafts: list[Draft], names: set[str]) -> list[Stuck]:
    """Mentions of other skills and tools that cannot be mended, with lines of the source."""
    renamed = _renamed(drafts)
    found = [
        s._replace(line=draft.front.lines.get("description", 1))
        for s in mend(draft.description, names, renamed=renamed).stuck
    ]
    shift = draft.front.body_line - 1
    found += [s._replace(line=s.line + shift) for s in mend(draft.front.body, names, renamed=renamed).stuck]
    return [s for s in found if s.name != draft.name]


def _mend(draft: Draft, drafts: list[Draft], names: set[str]) -> None:
    """Put the draft's mentions into code spans, with a note for each line."""
    renamed = _renamed(drafts)
    described = mend(draft.description, names, renamed=renamed, rules=draft.rules)
    if len(described.text) > MAX_DESCRIPTION:  # the marks made it too long
        shorter = cut(draft.description, MAX_DESCRIPTION - len(described.text) + len(draft.description))
        described = mend(shorter, names, renamed=renamed, rules=draft.rules)
    body = mend(draft.front.body, names, renamed=renamed, rules=draft.rules)
    _note_mended(draft, described, draft.front.lines.get("description", 1), in_body=False)
    _note_mended(draft, body, draft.front.body_line, in_body=True)
    draft.description, draft.front.body = described.text, body.text


def _note_mended(draft: Draft, mended: Mended, line: int, *, in_body: bool) -> None:
    for at, written in mended.done[:_MAX_LISTED]:
        draft.entry.note("changed", line + at - 1 if in_body else line, f"a mention was written {written}")
    if len(mended.done) > _MAX_LISTED:
        draft.entry.note("changed", line, f"and {len(mended.done) - _MAX_LISTED} more mentions")


def _rule_ids(draft: Draft) -> set[str]:
    """The ids of the rules that the compiler will find; attribute lists that it would not take are put into code spans."""
    body = draft.front.body
    file, faults = _read_body(body)
    lines = body.split("\n")
    wrong = {f.line - 2 for f in faults.items if f.code in ("rule-attribute", "rule-id", "rule-duplicate")}
    wrong |= {place[0] - 2 for rule in file.rules for place in rule.places.values() if rule.values}
    for number in sorted(wrong):
        plain, match = split(lines[number - 1])
        if match is not None and "`" not in match[0]:
            lines[number - 1] = f"{plain} `{match[0].strip()}`"
            draft.entry.note(
                "changed",
                draft.front.body_line + number - 1,
                f"{match[0].strip()} would be read as attributes; it was put into a code span",
            )
    draft.front.body = "\n".join(lines)
    return {rule.id for rule in _read_body(draft.front.body)[0].rules}


def _read_body(body: str) -> tuple[SkillFile, Faults]:
    faults = Faults()
    file = read_skill("", f"---\n---\n{body}".encode(), faults)
    assert file is not None  # the text was decoded before
    return file, faults
