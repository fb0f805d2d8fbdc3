"""Texts: every text of a state that may be reworded, with the place that `Changes.texts` knows it by.

What always holds: a verbatim rule or item is not among them, nor is a template, an example or a text without words; the
order is that of the state.
"""

from __future__ import annotations

from collections.abc import Iterator

from harnessctl.augment.operator import TextKind
from harnessctl.bundle.state import HarnessState
from harnessctl.bundle.text import Text


def texts_of(state: HarnessState) -> Iterator[tuple[str, Text, TextKind]]:
    """(place, text, kind) of each text of `state` that may be reworded."""
    return (member for member in _all_texts(state) if _has_words(member[1]))


def _all_texts(state: HarnessState) -> Iterator[tuple[str, Text, TextKind]]:
    for skill in state.skills:
        at = f"skills/{skill.name}"
        yield f"{at}/description", skill.description, "description"
        for index, part in enumerate(skill.body):
            yield f"{at}/parts/{index}", part.text, "lead"
        for rule in skill.rules:
            if not rule.verbatim:
                yield f"{at}/rules/{rule.id}", rule.text, "rule"
    for tool in state.tools:
        yield f"tools/{tool.name}/description", tool.description, "description"
        for pointer, text in tool.docs.items():
            yield f"tools/{tool.name}/docs{pointer}", text, "description"
    for block in state.prompt.blocks:
        yield f"prompt/{block.id}/heading", block.heading, "heading"
        for item in block.items:
            if not item.verbatim:
                yield f"prompt/{block.id}/items/{item.id}", item.text, "rule"
    for hook in state.hooks:
        action = hook.otherwise or hook.then
        if action is not None and action.message is not None:
            yield f"hooks/{hook.id}/message", action.message.text, "message"


def _has_words(text: Text) -> bool:
    return any(isinstance(part, str) and any(char.isalpha() for char in part) for part in text)
