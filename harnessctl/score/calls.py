"""Calls: the calls that were made laid beside those of gold.

What always holds: each due call is hit once at most; loading a skill is no call here; a call that an injected fault
spoiled costs nothing, and neither does making it again.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from harnessctl.records.scenario import Gold, GoldCall
from harnessctl.records.trajectory import ToolCall

#: The name under which calls that load a skill are known here; a harness may have another one, see RuleScorer.
LOAD_SKILL = "load_skill"


@dataclass(slots=True)
class Slot:
    """A call of gold, and what came of it: `at` is the place of the call that hit it, `spoiled` counts faults."""

    gold: GoldCall
    at: int | None = None
    spoiled: int = 0

    @property
    def is_hit(self) -> bool:
        """Whether the call was made; one that faults spoiled each time was."""
        return self.at is not None or self.spoiled > 0


@dataclass(slots=True)
class Alignment:
    """`wasted` says of each call that should not have been made why; `unasked` are those of them that went through."""

    due: list[Slot]
    free: list[Slot]
    wasted: list[str] = field(default_factory=list)
    unasked: list[ToolCall] = field(default_factory=list)

    @property
    def missing(self) -> list[GoldCall]:
        """The due calls that nobody made."""
        return [slot.gold for slot in self.due if not slot.is_hit]

    def late(self, writes: Collection[str]) -> list[GoldCall]:
        """Due calls that came after a call that writes and that gold has them before."""
        found: list[GoldCall] = []
        for place, slot in enumerate(self.due):
            after = [other.at for other in self.due[place + 1 :] if other.gold.tool in writes and other.at is not None]
            if slot.at is not None and any(at < slot.at for at in after):
                found.append(slot.gold)
        return found


def plans(gold: Gold) -> list[list[GoldCall]]:
    """The lists of calls of which one is due."""
    return [gold.calls, *gold.alternatives]


def align(made: Sequence[ToolCall], due: Sequence[GoldCall], gold: Gold) -> Alignment:
    """`made` beside `due`, one of the plans of `gold`. Its prelude and optional calls are free, once each."""
    out = Alignment([Slot(call) for call in due], [Slot(call) for call in (*gold.prelude, *gold.optional)])
    for at, call in enumerate(made):
        if is_load(call):
            continue
        if call.status in ("invalid", "blocked"):
            out.wasted.append(f"`{call.name}` was called wrongly: {call.status}")
            continue
        fits = [slot for slot in (*out.due, *out.free) if equal_call(call, slot.gold)]
        still = [slot for slot in fits if slot.at is None]
        if still:
            slot = still[0] if len(still) == 1 else max(still, key=lambda slot: len(compared(slot.gold)))
            if call.fault is None:
                slot.at = at
            else:
                slot.spoiled += 1
            continue
        out.wasted.append(f"`{call.name}` was called again" if fits else f"`{call.name}` was not asked for")
        if call.status == "ok":
            out.unasked.append(call)
    return out


def is_load(call: ToolCall) -> bool:
    """Whether a call loads a skill, or tried to."""
    return call.name == LOAD_SKILL


def compared(gold: GoldCall) -> Collection[str]:
    """The arguments of a gold call that must be equal."""
    return gold.arguments if gold.compare is None else gold.compare


def equal_call(made: ToolCall, gold: GoldCall) -> bool:
    """Whether a call is the one that gold names; arguments that are not compared may be anything."""
    if made.name != gold.tool:
        return False
    wanted, given = gold.arguments, made.arguments
    for name in compared(gold):  # noqa: SIM110 - asked for every call beside every slot, and a generator costs half of it
        if not equal_values(given.get(name), wanted.get(name)):
            return False
    return True


def equal_values(one: Any, other: Any) -> bool:
    """Equality of JSON values: 3 is 3.0, and texts are compared without case, width and outer spaces."""
    if isinstance(one, str) and isinstance(other, str):
        return one == other or _folded(one) == _folded(other)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(equal_values, one, other))
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        return one.keys() == other.keys() and all(equal_values(value, other[key]) for key, value in one.items())
    return bool(one == other and isinstance(one, bool) == isinstance(other, bool))


def _folded(text: str) -> str:
    return " ".join(unicodedata.normalize("NFKC", text).casefold().split())
