"""Text: what a model reads, with its references kept apart from its words.

A Text is a list whose members are plain strings and `Ref`s. Only refs change when names or limits change;
strings are never searched and replaced. A ref to a tool, a skill or a rule is shown as a code span.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import msgspec


class Ref(msgspec.Struct, frozen=True):
    """A reference by canonical name: a tool, a skill, a rule (`rule`, shown as its id), or a limit's number."""

    kind: Literal["tool", "skill", "rule", "limit"]
    name: str


Text = list[str | Ref]


def format_number(value: int | float) -> str:
    """A limit as a model reads it: `80`, `2.5`, never `80.0`."""
    return str(int(value)) if float(value).is_integer() else repr(float(value))


def render_text(
    text: Text, *, tools: Mapping[str, str], skills: Mapping[str, str], limits: Mapping[str, int | float]
) -> str:
    """`text` as a model reads it. The maps go from canonical name to surface name; a name not in them stays as it is."""
    out: list[str] = []
    for part in text:
        if isinstance(part, str):
            out.append(part)
        elif part.kind == "limit":
            out.append(format_number(limits[part.name]))
        elif part.kind == "rule":
            out.append(f"`#{part.name}`")
        else:
            names = tools if part.kind == "tool" else skills
            out.append(f"`{names.get(part.name, part.name)}`")
    return "".join(out)
