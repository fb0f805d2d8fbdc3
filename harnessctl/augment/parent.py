"""Parent: what is worked out once of the state that is varied, so that a variant costs little.

What always holds: every skill that something unvarying names (a template, a text of the prompt or of a tool, a hook, a
condition, code) is pinned.
"""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Collection, Iterator, Mapping
from typing import Any

import msgspec

from harnessctl.augment.mentions import named_bare
from harnessctl.augment.users import pinned_rules, refs
from harnessctl.augment.words import parts_of, strings_in, with_parts, words_of
from harnessctl.bundle.sandbox import called_with_constant
from harnessctl.bundle.state import HarnessState
from harnessctl.bundle.text import Text

_QUOTED = re.compile(r"['\"`](?:skill:)?([^'\"`\n]+)(?=['\"`])")


class Parent:
    """Facts of a parent state; fits `operator.Facts`. The state must not be altered afterwards."""

    def __init__(self, state: HarnessState) -> None:
        self.state = state
        self.words: frozenset[str] = _words(state)
        self.pinned_skills: frozenset[str] = frozenset(_named_by_what_stays(state)) | named_bare(state)
        self.pinned_rules: frozenset[str] = pinned_rules(state)
        self.enforced: Mapping[str, tuple[str, ...]] = _enforced(state)


def _words(state: HarnessState) -> frozenset[str]:
    found: set[str] = set()
    for text in strings_in(msgspec.to_builtins(state)):
        found |= words_of(text)
    for name in (*(tool.name for tool in state.tools), *(skill.name for skill in state.skills)):
        found.update(parts_of(name))
        found.add(name.lower())
    return with_parts(found)


def _named_by_what_stays(state: HarnessState) -> Iterator[str]:
    skills = {skill.name for skill in state.skills}
    texts: list[Text] = []
    conditions = [state.private_when, state.silent_when]
    for block in state.prompt.blocks:
        texts += [block.heading, *(item.text for item in block.items)]
        conditions.append(block.when)
        if block.template is not None:
            yield from (name for _, name in called_with_constant(block.template, "skill") if name in skills)
            yield from _quoted_in(block.template, skills)
    for tool in state.tools:
        texts += [tool.description, *tool.docs.values()]
        yield from _quoted_in([tool.run, tool.simulate, tool.final], skills)
    for hook in state.hooks:
        yield from _quoted_in([hook.when, hook.check, hook.observe], skills)
        for action in (hook.otherwise, hook.then):
            if action is not None:
                texts += [action.message.text] if action.message is not None else []
                yield from _quoted_in([action.rewrite, action.fallback], skills)
    if state.prompt.framing is not None:
        texts.append(state.prompt.framing.lead)
    yield from (name for text in texts for name in refs(text, "skill") if name in skills)
    yield from _quoted_in([text for text in conditions if text is not None], skills)
    for source in state.code.values():
        yield from _quoted_in(list(_constants(source)), skills)
    yield from _quoted_in(list(state.files.values()), skills)


def _quoted_in(value: Any, skills: Collection[str]) -> Iterator[str]:
    """Skills that a string in a JSON value is, or names between quotes or as a code span."""
    for text in strings_in(value):
        if text in skills:
            yield text
        yield from (name for name in _QUOTED.findall(text) if name in skills)


def _constants(source: str) -> Iterator[str]:
    """The strings of a Python module; the module whole where it is no Python that this version reads."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SyntaxWarning)
            tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError):
        yield source
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


def _enforced(state: HarnessState) -> dict[str, tuple[str, ...]]:
    found: dict[str, tuple[str, ...]] = {}
    for hook in state.hooks:
        for rule in hook.enforces:
            found[rule] = (*found.get(rule, ()), hook.id)
    return found
