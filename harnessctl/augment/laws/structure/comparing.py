"""Comparing: the comparisons that all of law a is made of."""

from __future__ import annotations

import re
from collections.abc import Iterator
from operator import attrgetter, is_
from typing import Any

from harnessctl.augment.laws.known import Case
from harnessctl.augment.laws.schemas import same
from harnessctl.bundle.state import Block, Rule
from harnessctl.bundle.text import Text

#: (place, reason) of what is broken.
Found = Iterator[tuple[str, str]]
#: A tag around a message.
TAG = re.compile(r"[a-z][a-z0-9_-]*")


class Fields:
    """Fields that are to be equal; they are compared at once, which is fast where they are the same objects."""

    def __init__(self, *names: str) -> None:
        self.names = names
        self.of = attrgetter(*names)


def others(old: Any, new: Any, fields: Fields, place: str) -> Found:
    """Fields of two members that are not equal; `place` is what stands before a field's name."""
    before, after = fields.of(old), fields.of(new)
    if all(map(is_, before, after)):
        return
    for field, one, other in zip(fields.names, before, after, strict=True):
        if one is not other and not same(one, other):
            yield f"{place}{field}", "is not the parent's"


def text(case: Case, place: str, old: Text, new: Text) -> Found:
    """A text is the parent's, or the record's new wording."""
    if new is old:
        return
    recorded = case.changes.texts.get(place)
    if recorded is None:
        if new != old:
            yield place, "has another wording, which the record does not have"
    elif new is not recorded and new != recorded:
        yield place, "has another wording than the record"


def in_order(place: str, names: list[str], due: list[str]) -> Found:
    """`names` are those that are due, in the order that is due."""
    if names == due:
        return
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        yield place, f"{', '.join(twice)} stand there twice"
    elif sorted(names) == sorted(due):
        yield place, "are in an order that the record does not have"
    else:
        strange = sorted(set(names) ^ set(due))
        yield place, f"of parent, record and variant, not all have {', '.join(strange)}"


def after_edges(place: str, old: list[Rule] | list[Block], shown: list[str]) -> Found:
    """Each stands after what it is to stand after; where that is masked, after what that was to stand after."""
    edges = {member.id: member.after for member in old if member.after is not None}
    if not edges:
        return
    position = {name: number for number, name in enumerate(shown)}
    parent = {member.id: number for number, member in enumerate(old)}
    for name, after in edges.items():
        at, seen = after, {name}
        while at is not None and at not in position and at not in seen:
            seen.add(at)
            at = edges.get(at)
        if name not in position or at is None or at not in position:
            continue
        if position[at] > position[name] and parent[at] < parent[name]:
            yield f"{place}/{name}", f"stands before {at}, which it is to stand after"
