"""Hooks: those of the parent keep what they look at, check and do; retries, role, wrap and wording are the record's."""

from __future__ import annotations

import functools
import importlib.util
from typing import Any

from harnessctl.augment.laws.foreign import strings_in
from harnessctl.augment.laws.known import Case
from harnessctl.augment.laws.places import action_of
from harnessctl.augment.laws.structure.comparing import TAG, Fields, Found, in_order, others, text
from harnessctl.bundle.state import Action, Hook, Message

_MOST_RETRIES = 10

_HOOK = Fields("id", "event", "when", "check", "observe", "on_error", "timeout_s", "enforces")
_ACTION = Fields("action", "exhausted", "rewrite", "fallback")


def check_hooks(case: Case) -> Found:
    """Hooks that are not as they should be."""
    known, changes = case.known, case.changes
    added = {hook.id: hook for hook in changes.added_hooks}
    names = [hook.id for hook in case.variant.hooks]
    yield from in_order("hooks", [name for name in names if name not in added], list(known.hooks))
    if len(set(names)) != len(names):
        yield "hooks", "two hooks have one id"
    for hook in case.variant.hooks:
        old = known.hooks.get(hook.id)
        if old is None:
            if added.get(hook.id) != hook:
                yield f"hooks/{hook.id}", "is neither the parent's nor in the record"
            yield from _code_of(case, hook)
        elif hook is not old:
            yield from _hook(case, old, hook)


def _code_of(case: Case, hook: Hook) -> Found:
    """The modules that an added hook's check runs are in the variant, or are installed."""
    for part in (hook.check, hook.observe):
        for key, named in strings_in(part):
            module = named.partition(":")[0]
            if key == "python" and module not in case.variant.code and not _is_installed(module.partition(".")[0]):
                yield f"hooks/{hook.id}", f"runs {named}, and the variant holds no such code"


@functools.lru_cache(maxsize=256)
def _is_installed(package: str) -> bool:
    try:
        return importlib.util.find_spec(package) is not None
    except (ImportError, ValueError):
        return False


def _hook(case: Case, old: Hook, new: Hook) -> Found:
    place = f"hooks/{old.id}/"
    yield from others(old, new, _HOOK, place)
    before, after = action_of(old), action_of(new)
    if before is None or after is None or (old.then is None) != (new.then is None):
        if before is not after:
            yield f"{place}action", "is not the parent's"
        return
    yield from others(before, after, _ACTION, place)
    change = changes_of(case, old.id)
    if after.max_retries != before.max_retries:
        if before.action != "retry" or after.max_retries is None or not 1 <= after.max_retries <= _MOST_RETRIES:
            yield f"{place}max_retries", f"went from {before.max_retries} to {after.max_retries}"
        if change is None or change.max_retries != after.max_retries:
            yield f"{place}max_retries", "is not the record's"
    yield from _message(case, place, before, after)


def changes_of(case: Case, hook: str) -> Any:
    """What the record says of a hook of the parent."""
    return case.changes.hooks.get(hook)


def _message(case: Case, place: str, before: Action, after: Action) -> Found:
    old: Message | None = before.message
    new: Message | None = after.message
    if old is None or new is None:
        if old is not new:
            yield f"{place}message", "is there in only one of parent and variant"
        return
    yield from text(case, f"{place}message", old.text, new.text)
    change = changes_of(case, place.split("/")[1])
    if new.role != old.role and (change is None or change.role != new.role):
        yield f"{place}message", f"is said as {new.role}, which the record does not say"
    if new.wrap != old.wrap:
        if change is None or change.wrap is None or (change.wrap or None) != new.wrap:
            yield f"{place}message", f"is wrapped in {new.wrap}, which the record does not say"
        if new.wrap is not None and not TAG.fullmatch(new.wrap):
            yield f"{place}message", f"`{new.wrap}` is no tag"
