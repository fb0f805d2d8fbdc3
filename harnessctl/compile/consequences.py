"""Consequences: faults that only follow from a source or a value that could not be read."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from harnessctl.compile.unit import Unit
from harnessctl.errors import Fault
from harnessctl.manifests.locate import FOLDER_KINDS

#: Faults that may only mean that a source of one of these kinds could not be read.
_CONSEQUENCES = {
    "tool-unknown": ("Tools",),
    "tag-unknown": ("Tools",),
    "group-unknown": ("Tools",),
    "parameter-unknown": ("Tools",),
    "server-unknown": ("Tools",),
    "example-arguments": ("Tools",),
    "skill-unknown": ("Skill",),
    "rule-unknown": ("Skill",),
    "require-skill": ("Skill",),
    "ref-unknown": ("Tools", "Skill"),
    "limit-unknown": ("Harness",),
    "harness-unknown": ("Harness",),
    "harness-missing": ("Harness",),
    "prompt-unknown": ("PromptPipeline",),
    "world-unknown": ("World",),
    "include-unknown": ("Skill", "Tools", "Hooks"),
    "ref-not-included": ("Tools", "Skill"),
}


#: Faults of a file that is then not among the sources, or without its rules.
_UNREAD = frozenset({"source-outside", "source-unreadable", "source-place", "skill-missing", "skill-front-matter"})


def without_consequences(faults: Sequence[Fault], units: Iterable[Unit]) -> list[Fault]:
    """The faults without those that may come from a source or a value that could not be read: that one comes first."""
    unread = {unit.file.kind for unit in units if not unit.outline}
    unread |= {kind for fault in faults if fault.code in _UNREAD for kind in _kinds_at(fault.path)}
    unreadable = {(fault.path, fault.line, fault.col) for fault in faults if fault.code in ("yaml-number", "yaml-tag")}
    return [
        fault
        for fault in faults
        if unread.isdisjoint(_CONSEQUENCES.get(fault.code, ()))
        and not (fault.code in ("schema-type", "json-schema") and (fault.path, fault.line, fault.col) in unreadable)
    ]


def _kinds_at(path: str) -> tuple[str, ...]:
    """The kinds of source that a file or folder of this path may be, or hold."""
    top, _, rest = path.partition("/")
    if top == "skills":
        return ("Skill",)
    if top != "manifests" or path.endswith(".py"):
        return ()
    kind = FOLDER_KINDS.get(rest.partition("/")[0])
    return (kind,) if kind else ("Harness",) if rest else ("Harness", *FOLDER_KINDS.values())
