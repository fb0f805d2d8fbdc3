"""Tokens: how much of a model's context a harness takes before anybody has said anything.

What always holds: the count depends on the state and the counting function alone. Values that a request fills in
(products, FAQ, the viewer's text) are not counted: a template counts by its literal text, each loop body once.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import jinja2.nodes
import msgspec

from harnessctl.bundle.sandbox import strict_environment
from harnessctl.bundle.state import HarnessState
from harnessctl.bundle.text import Text, render_text
from harnessctl.compile.shown import outline, show_text

#: Counts the tokens of a text. A tokenizer's `lambda text: len(tokenizer.encode(text).ids)` makes the counts exact.
CountTokens = Callable[[str], int]

_WIDE = 0x2E80


def estimate_tokens(text: str) -> int:
    """Tokens without a tokenizer: a code point from U+2E80 up (Chinese, Japanese, Korean, emoji) counts 1, others a quarter.

    The sum is rounded up.
    """
    wide = sum(ord(char) >= _WIDE for char in text)
    return wide + math.ceil((len(text) - wide) / 4)


def prompt_tokens(state: HarnessState, count: CountTokens = estimate_tokens) -> int:
    """Tokens of every request: literal text of the blocks, skills on offer (name, description), tool definitions."""
    texts: list[str] = []
    for block in state.prompt.blocks:
        if block.template is not None:
            tree = strict_environment().parse(block.template)
            texts.append("".join(data.data for data in tree.find_all(jinja2.nodes.TemplateData)))
        texts.append(_text(state, block.heading))
        texts.extend(_text(state, item.text) for item in block.items)
    for skill in state.skills:
        texts += [state.surface.skills.get(skill.name, skill.name), _text(state, skill.description)]
    for tool in state.tools:
        texts += [state.surface.tools.get(tool.name, tool.name), _text(state, tool.description)]
        if tool.parameters:
            texts.append(msgspec.json.encode(tool.parameters).decode())
        texts.extend(_text(state, text) for text in tool.docs.values())
    return sum(count(text) for text in texts if text)


def skill_tokens(state: HarnessState, count: CountTokens = estimate_tokens) -> dict[str, int]:
    """Tokens that each skill's body and rules add once it is loaded."""
    return {
        skill.name: count("\n".join([outline(skill.body), *(show_text(rule.text) for rule in skill.rules)]))
        for skill in state.skills
    }


def _text(state: HarnessState, text: Text) -> str:
    return render_text(text, tools=state.surface.tools, skills=state.surface.skills, limits=state.limit_values())
