"""Law e: every limit stays in its range, and every text cites the number that holds.

A number that is written out where nothing governs it (in a hook's message, in code) does not follow its limit; such a
limit stays what it is, so that no hook asks for 80 characters and checks 120.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from typing import TYPE_CHECKING

from harnessctl.augment.laws.broken import Broken
from harnessctl.augment.laws.foreign import strings_in
from harnessctl.augment.laws.places import all_texts
from harnessctl.bundle.state import HarnessState, Hook, Rule
from harnessctl.bundle.text import Ref, format_number

if TYPE_CHECKING:
    from harnessctl.augment.laws.known import Case

_CHARACTERS = frozenset({"codepoints", "characters", "chars"})
_IN_EXPRESSION = re.compile(r"\blimits\.(\w+)")


def check(case: Case) -> list[Broken]:
    """What breaks law e."""
    return [Broken("e", place, reason) for place, reason in _faults(case)]


def _faults(case: Case) -> Iterator[tuple[str, str]]:
    before, after = case.known.parent.limits, case.variant.limits
    if after is not before:
        yield from _limits(case)
    for place, rule in _governed(case.variant):
        cited = [part.name for part in rule.text if isinstance(part, Ref) and part.kind == "limit"]
        if rule.limit is not None and cited != [rule.limit]:
            yield place, f"is governed by `{rule.limit}` and cites {', '.join(cited) or 'no limit'}"
        elif case.thorough and rule.limit in after:
            number = format_number(after[rule.limit].value)
            if number not in case.view.render(rule.text):
                yield place, f"does not say {number}, the value of `{rule.limit}`"


def _limits(case: Case) -> Iterator[tuple[str, str]]:
    before, after, changed = case.known.parent.limits, case.variant.limits, case.changes.limits
    for name in before.keys() ^ after.keys():
        yield f"limits/{name}", "is new" if name in after else "is gone"
    for name in before.keys() & after.keys():
        old, new = before[name], after[name]
        if new is old:
            continue
        place = f"limits/{name}"
        if (new.range, new.unit) != (old.range, old.unit):
            yield place, "has another range or unit than the parent's"
        if new.value == old.value:
            continue
        if old.range is None:
            yield place, f"has no range and went from {old.value:g} to {new.value:g}"
            continue
        low, high = old.range
        if not low <= new.value <= high:
            yield place, f"is {new.value:g}, outside {low:g} to {high:g}"
        if (bounds := case.known.ranges.get(name)) is not None and not bounds[0] <= new.value <= bounds[1]:
            yield place, f"is {new.value:g}, outside the envelope's {bounds[0]:g} to {bounds[1]:g}"
        if float(old.value).is_integer() and not float(new.value).is_integer():
            yield place, f"counts whole things and is {new.value:g}"
        if (place_of := case.known.written_out.get(name)) is not None:
            yield (
                place,
                f"is written out at {place_of} as {format_number(old.value)} and went to {format_number(new.value)}",
            )
        if changed.get(name) != new.value:
            yield place, "is not the record's"


def written_out(state: HarnessState) -> dict[str, str]:
    """Limits whose value stands as plain digits where it cannot follow, with the place: in the message of a hook that
    reads the limit, or with the unit of characters anywhere."""
    found: dict[str, str] = {}
    for name, limit in state.limits.items():
        number = re.escape(format_number(limit.value))
        alone = re.compile(rf"(?<![A-Za-z0-9_.,]){number}(?![A-Za-z0-9_]|[.,]\d)")
        counted = re.compile(rf"(?<![A-Za-z0-9_.,]){number}[ -]?(?:characters?|chars?|codepoints?|letters|个字|字)")
        for place, text, readers in _ungoverned(state):
            reads = name in readers and alone.search(text) is not None
            if reads or (limit.unit in _CHARACTERS and counted.search(text) is not None):
                found.setdefault(name, place)
    return found


def _ungoverned(state: HarnessState) -> Iterator[tuple[str, str, Collection[str]]]:
    """(place, plain text, limits that what says it reads) of everything a model may read that cites no limit."""
    hooks = {f"hooks/{hook.id}/message": _limits_of(hook) for hook in state.hooks}
    for place, text in all_texts(state):
        if all(isinstance(part, str) or part.kind != "limit" for part in text):
            plain = "".join(part if isinstance(part, str) else " " for part in text)
            yield place, plain, hooks.get(place, ())
    for block in state.prompt.blocks:
        if block.template is not None:
            yield f"prompt/{block.id}/template", block.template, ()
    for name, source in state.code.items():
        yield f"code/{name}", source, ()


def _limits_of(hook: Hook) -> frozenset[str]:
    """Limits that a hook's check or condition names."""
    found: set[str] = set()
    for part in (hook.when, hook.check):
        for key, text in strings_in(part):
            found.update([text] if key == "limit" else _IN_EXPRESSION.findall(text))
    return frozenset(found)


def _governed(state: HarnessState) -> Iterator[tuple[str, Rule]]:
    for skill in state.skills:
        for rule in skill.rules:
            if rule.limit is not None:
                yield f"skills/{skill.name}/rules/{rule.id}", rule
    for block in state.prompt.blocks:
        for item in block.items:
            if item.limit is not None:
                yield f"prompt/{block.id}/items/{item.id}", item
