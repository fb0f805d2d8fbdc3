"""Shown: states and texts as plain JSON that a person can compare.

What always holds: two states that differ show differently, and a Text shows as what a model reads wherever that is
enough to tell two of them apart.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from harnessctl.bundle.state import Part, Prompt, Skill
from harnessctl.bundle.text import Ref, Text

#: Fields of the state's structs that hold a Text, or a map to Texts.
TEXT_FIELDS = frozenset({"text", "description", "content", "heading", "docs", "lead"})


def show_text(text: Text, *, explicit: bool = False) -> str:
    """`text` with code spans for references and `{limit:name}` for numbers; `explicit` writes `tool:x` and `skill:x`."""
    out: list[str] = []
    for part in text:
        if isinstance(part, str):
            out.append(part)
        elif part.kind == "limit":
            out.append(f"{{limit:{part.name}}}")
        elif part.kind == "rule":
            out.append(f"`#{part.name}`")
        else:
            out.append(f"`{part.kind}:{part.name}`" if explicit else f"`{part.name}`")
    return "".join(out)


def show_pair(before: Text, after: Text) -> tuple[str, str]:
    """Both texts, in the plainest form in which they differ."""
    for explicit in (False, True):
        a, b = show_text(before, explicit=explicit), show_text(after, explicit=explicit)
        if a != b:
            return a, b
    # Equal words, cut into parts differently, or a reference beside the code span that looks like it.
    return msgspec.json.encode(before).decode(), msgspec.json.encode(after).decode()


def plain(value: Any, *, explicit: bool = False) -> Any:
    """A struct of the state as JSON with its texts shown; defaults are left out, as in the bundle."""
    if isinstance(value, Ref):
        return show_text([value], explicit=explicit)
    if isinstance(value, msgspec.Struct):
        out: dict[str, Any] = {}
        for field in msgspec.structs.fields(value):
            item = getattr(value, field.name)
            if item is field.default or (not item and item == _default(field)):
                continue
            if field.name in TEXT_FIELDS and isinstance(item, list):
                out[field.name] = show_text(item, explicit=explicit)
            elif field.name in TEXT_FIELDS and isinstance(item, Mapping):
                out[field.name] = {key: show_text(text, explicit=explicit) for key, text in item.items()}
            else:
                out[field.name] = plain(item, explicit=explicit)
        return out
    if isinstance(value, list):
        return [plain(item, explicit=explicit) for item in value]
    if isinstance(value, dict):
        return {key: plain(item, explicit=explicit) for key, item in value.items()}
    return value


def _default(field: msgspec.structs.FieldInfo) -> Any:
    return field.default_factory() if field.default_factory is not msgspec.NODEFAULT else field.default


def plain_pair(before: Any, after: Any) -> tuple[Any, Any]:
    """Both values as JSON, in the plainest form in which they differ (equal values show equal)."""
    a, b = plain(before), plain(after)
    if a == b and before != after:
        a, b = plain(before, explicit=True), plain(after, explicit=True)
        if a == b:
            a, b = msgspec.to_builtins(before), msgspec.to_builtins(after)
    return a, b


def outline(body: list[Part], *, explicit: bool = False) -> str:
    """A skill's body with each list of rules replaced by one line that says only how it is marked."""
    return "".join(
        f"[rules {part.marker}]\n" if part.rules else show_text(part.text, explicit=explicit) for part in body
    )


def skill_text(skill: Skill) -> str:
    """All that a model reads once the skill is loaded, without its name."""
    rules = "\n".join(show_text(rule.text) for rule in skill.rules)
    return f"{show_text(skill.description)}\n{outline(skill.body)}\n{rules}"


def block_texts(prompt: Prompt) -> list[str]:
    """Templates, headings and items of all blocks, in order."""
    return [
        text
        for block in prompt.blocks
        for text in (block.template, show_text(block.heading), *(show_text(item.text) for item in block.items))
        if text
    ]
