"""Embed: Python modules that a variant carries for the tools and hooks which were added to it."""

from __future__ import annotations

from harnessctl.augment.operator import Draft


def embed(draft: Draft, name: str, source: str) -> str:
    """Give the variant the module `source` and say under which name: `name`, numbered where that is another's.

    A module whose text is the same in each variant is loaded once a process, so that many variants stay cheap.
    """
    given, number = name, 1
    while True:
        held = draft.state.code.get(given, draft.changes.code.get(given))
        if held is None:
            draft.changes.code[given] = source
        if held is None or held == source:
            return given
        number += 1
        given = f"{name}_{number}"


def fresh_hook_id(draft: Draft, stem: str) -> str:
    """`stem`, numbered where a hook is called so already."""
    taken = {hook.id for hook in (*draft.state.hooks, *draft.changes.added_hooks)}
    given, number = stem, 1
    while given in taken:
        number += 1
        given = f"{stem}-{number}"
    return given
