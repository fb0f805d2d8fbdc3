"""Mentions: which names stand in what a model reads otherwise than as references, so that to hide what is called so would
leave the name dangling. Parameters have no references at all; tools and skills stand bare where a server wrote the text."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from harnessctl.augment.laws.foreign import strings_in, template_names, told_values, told_words
from harnessctl.augment.laws.marks import Marks, marks_of, words_of
from harnessctl.augment.laws.places import all_texts
from harnessctl.augment.once import once
from harnessctl.bundle.state import HarnessState
from harnessctl.bundle.text import Text

_SPAN = re.compile(r"`([^`\n]+)`")
_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]*")
#: What an argument is put in place of in the reply of a final tool.
_SLOT = re.compile(r"\{[^{}]*\}")
#: What tells a made-up identifier from a word of the language: `link_id`, `linkId`, `sku2`.
_MADE_UP = re.compile(r"_|\d|[a-z][A-Z]")


@once
def mentioned(state: HarnessState) -> frozenset[str]:
    """Words that stand in a code span of some text, and made-up identifiers that stand in one bare.

    Texts are those of skills, tools, prompt blocks and hooks; of code, the sentences that it holds as strings.
    """
    found: set[str] = set()
    for text in _texts(state):
        for span in _SPAN.findall(text):
            found.update(_WORD.findall(span))
        found.update(word.rstrip(".-") for word in _WORD.findall(text) if _MADE_UP.search(word))
    return frozenset(found)


@once
def named_bare(state: HarnessState) -> frozenset[str]:
    """Tools and skills that a text, a template, a check without a message, a schema's values or an example's argument
    name bare."""
    names = {tool.name for tool in state.tools} | {skill.name for skill in state.skills}
    marks = [marks_of(text) for _, text in all_texts(state)]
    marks += [template_names(block.template).marks for block in state.prompt.blocks if block.template is not None]
    marks += [Marks(words=told_words(hook)) for hook in state.hooks]
    marks += [Marks(words=told_values(tool.parameters)) for tool in state.tools]
    found = {name for each in marks for name in each.meets(names)}
    load = next((t.name for t in state.tools if t.run is not None and t.run.get("builtin") == "load_skill"), None)
    for call in (c for skill in state.skills for example in skill.examples for m in example for c in m.calls):
        if call["tool"] != load:  # whose argument is a name and nothing else, and follows it
            for _, text in strings_in(call.get("arguments")):
                found |= words_of(text) & names
    return frozenset(found)


def _texts(state: HarnessState) -> Iterator[str]:
    for skill in state.skills:
        yield _plain(skill.description)
        yield from (_plain(part.text) for part in skill.body)
        yield from (_plain(rule.text) for rule in skill.rules)
        yield from (_plain(message.content) for example in skill.examples for message in example)
    for tool in state.tools:
        yield _plain(tool.description)
        yield from map(_plain, tool.docs.values())
        if tool.final is not None:
            yield _SLOT.sub(" ", str(tool.final.get("reply", "")))
    for block in state.prompt.blocks:
        yield block.template or ""
        yield _plain(block.heading)
        yield from (_plain(item.text) for item in block.items)
    for hook in state.hooks:
        for action in (hook.otherwise, hook.then):
            if action is not None and action.message is not None:
                yield _plain(action.message.text)
    for source in state.code.values():
        yield from _sentences(source)
    for source in state.files.values():
        yield "\n".join(span[0] for span in _SPAN.finditer(source))


def _plain(text: Text) -> str:
    return "".join(part if isinstance(part, str) else " " for part in text)


def _sentences(source: str) -> Iterator[str]:
    """Strings of Python code that hold more than one word, docstrings aside; of code that cannot be read, all of it."""
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError):
        yield source
        return
    passed: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            passed.add(id(node.value))
        elif isinstance(node, ast.JoinedStr):
            parts = [part for part in node.values if isinstance(part, ast.Constant)]
            passed.update(map(id, parts))
            yield " ".join(str(part.value) for part in parts)
        elif isinstance(node, ast.Constant) and id(node) not in passed:
            text = node.value
            if isinstance(text, str) and " " in text.strip():
                yield text
