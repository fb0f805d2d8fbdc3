"""Prompt: the pipeline's blocks joined into the system message and the viewer's message [2.2].

What always holds: what depends on the bundle alone is rendered once, when the bundle is loaded; viewer text reaches a
template only as a value. Blocks of one role are joined by a blank line; a block that renders to nothing is left out.
"""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Callable, Mapping
from typing import Any

from harnessctl.bundle.sandbox import compile_expression, compile_template, undeclared_names
from harnessctl.bundle.state import Block, HarnessState
from harnessctl.bundle.text import format_number
from harnessctl.errors import HarnessctlError
from harnessctl.runtime.newest import NewestFirst
from harnessctl.runtime.surface import SurfaceView

#: Names that are the same for every request of a bundle.
_CONSTANT_NAMES = frozenset({"tool", "skill", "limits", "skills", "range", "dict"})
#: How many system prompts keep their digest.
_DIGESTS_KEPT = 256

Part = str | Callable[[Mapping[str, Any]], str]


class PromptError(HarnessctlError):
    """A block of the prompt could not be rendered for this request's context; names the block."""


class PromptView:
    """The pipeline of one bundle, ready to render. PromptError when a constant block cannot be rendered."""

    def __init__(self, state: HarnessState, surface: SurfaceView) -> None:
        self._tools_json = surface.tools_json
        self._constants: dict[str, Any] = {
            "tool": surface.tool_name,
            "skill": surface.skill_name,
            "limits": {name: _plain(value) for name, value in surface.limits.items()},
            "skills": surface.skill_offers,
        }
        blocks = state.prompt.blocks
        self._system = self._parts([b for b in blocks if b.role == "system"], surface)
        self._user = self._parts([b for b in blocks if b.role == "user"], surface)
        self._framing = state.prompt.framing
        self._lead = surface.render(self._framing.lead) if self._framing is not None else ""
        self.digest = functools.lru_cache(maxsize=_DIGESTS_KEPT)(self._digest)

    def system(self, context: Mapping[str, Any], messages: list[dict[str, Any]]) -> str:
        """The system message; empty when no block has anything to say."""
        if len(self._system) == 1 and isinstance(self._system[0], str):
            return self._system[0]
        return self._join(self._system, context, messages)

    def user(self, context: Mapping[str, Any], messages: list[dict[str, Any]]) -> str:
        """The viewer's message: as the user blocks frame it, else the text (with names where there are several)."""
        framing = self._framing
        if framing is None:
            return self._said(context, messages)
        turned = {name: NewestFirst(context[name]) for name in framing.reverse if isinstance(context.get(name), list)}
        said = self._said({**context, **turned}, NewestFirst(messages) if "messages" in framing.reverse else messages)
        said = f"{self._lead}\n{said}" if self._lead else said
        return f"<{framing.wrap}>\n{said}\n</{framing.wrap}>" if framing.wrap else said

    def _said(self, context: Mapping[str, Any], messages: list[dict[str, Any]]) -> str:
        if self._user:
            return self._join(self._user, context, messages)
        if len(messages) == 1:
            return messages[0]["text"]
        return "\n".join(f"{m['viewer']}: {m['text']}" for m in messages)

    def _join(self, parts: list[Part], context: Mapping[str, Any], messages: list[dict[str, Any]]) -> str:
        names = {**context, **self._constants, "messages": messages}
        texts = (part if isinstance(part, str) else part(names) for part in parts)
        return "\n\n".join(text for text in texts if text)

    def _parts(self, blocks: list[Block], surface: SurfaceView) -> list[Part]:
        """The blocks with neighbouring constant ones joined."""
        parts: list[Part] = []
        for block in blocks:
            part: Part = self._part(block, surface)
            if isinstance(part, str) and parts and isinstance(parts[-1], str):
                parts[-1] = "\n\n".join(text for text in (parts[-1], part) if text)
            else:
                parts.append(part)
        return parts

    def _part(self, block: Block, surface: SurfaceView) -> Part:
        used: set[str] = set()
        if block.template is not None:
            used |= undeclared_names(block.template)
            render = _template(block)
        else:
            render = _constant(_items(block, surface))
        if block.when is not None:
            used |= undeclared_names("{{ (" + block.when + ") }}")
            render = _conditional(block.when, render)
        return render(self._constants) if used <= _CONSTANT_NAMES else render

    def _digest(self, system: str) -> str:
        """SHA-256 of a system message and the tools: equal prompts have equal digests."""
        hashed = hashlib.sha256(self._tools_json)
        hashed.update(b"\0")
        hashed.update(system.encode("utf-8", "surrogatepass"))
        return hashed.hexdigest()


def _template(block: Block) -> Callable[[Mapping[str, Any]], str]:
    assert block.template is not None
    template = compile_template(block.template)

    def render(names: Mapping[str, Any]) -> str:
        try:
            return template.render(names).strip()
        except Exception as error:  # an author's template may fail in any way
            raise PromptError(f"prompt block {block.id}: {type(error).__name__}: {error}") from error

    return render


def _constant(text: str) -> Callable[[Mapping[str, Any]], str]:
    return lambda names: text


def _conditional(when: str, render: Callable[[Mapping[str, Any]], str]) -> Callable[[Mapping[str, Any]], str]:
    is_shown = compile_expression(when)
    return lambda names: render(names) if is_shown(names) else ""


def _items(block: Block, surface: SurfaceView) -> str:
    heading = surface.render(block.heading)
    lines = ["- " + surface.render(rule.text).replace("\n", "\n  ") for rule in block.items]
    return "\n".join([heading, *lines] if heading else lines)


def _plain(value: int | float) -> int | float:
    """A limit as templates print it: 80, never 80.0."""
    return int(format_number(value)) if float(value).is_integer() else value
