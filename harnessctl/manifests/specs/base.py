"""What all manifest kinds share: the base struct, names, versions and limits."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

ApiVersion = Literal["harnessctl/v1"]

#: The end of a pattern: `$` alone would let a final line break through.
END = r"$(?!\n)"

Slug = Annotated[
    str,
    Meta(
        pattern=r"^[a-z0-9]+(-[a-z0-9]+)*" + END,
        min_length=1,
        max_length=64,
        description="lower-case letters, digits and single hyphens",
    ),
]
Identifier = Annotated[
    str,
    Meta(
        pattern=r"^[A-Za-z_][A-Za-z0-9_.-]*" + END,
        min_length=1,
        max_length=64,
        description="a name that a model can call: a letter or _ first, then letters, digits and _ . -",
    ),
]
Name = Annotated[
    str,
    Meta(pattern=r"^[a-z][a-z0-9_]*" + END, max_length=64, description="lower-case letters, digits and underscores"),
]
Version = Annotated[
    str,
    Meta(
        pattern=r"^[0-9]+\.[0-9]+\.[0-9]+(-[0-9A-Za-z.-]+)?(\+[0-9A-Za-z.-]+)?" + END,
        max_length=64,
        description="semantic version, quoted if YAML could read it as a number",
    ),
]
Seconds = Annotated[float, Meta(gt=0, description="seconds")]
JsonSchema = Annotated[
    dict[str, Any], Meta(description="a JSON Schema; older drafts are accepted and re-declared as 2020-12")
]
Expression = Annotated[str, Meta(min_length=1, description="a sandboxed expression; an undefined name makes it false")]


class Spec(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    """Base of every spec: unknown fields are errors."""


class Limit(Spec, kw_only=True):
    """A number that governs behaviour; `range` is where augmentation and operators may move it."""

    value: int | float
    range: Annotated[list[int | float], Meta(min_length=2, max_length=2)] | None = None
    unit: Literal["codepoints", "seconds", "rounds", "turns", "calls", "bytes", "items", "percent", "yuan"] | None = (
        None
    )


class LimitRef(Spec, kw_only=True):
    """`{limit: name}`: the effective value of one of the harness's limits."""

    limit: Name


class Rule(Spec, kw_only=True):
    """A numbered instruction that augmentation may reword, mask and move, within its attributes."""

    id: Annotated[str, Meta(pattern=r"^[a-z0-9]+([-_][a-z0-9]+)*" + END)] | None = None
    text: Annotated[str, Meta(min_length=1)]
    protected: Annotated[bool, Meta(description="never masked")] = False
    verbatim: Annotated[bool, Meta(description="never reworded")] = False
    after: Annotated[str | None, Meta(description="id of a rule that must stand before this one")] = None
    requires: Annotated[str | None, Meta(description="id of a rule that must be present when this one is")] = None
    limit: Annotated[
        Name | None, Meta(description="the limit that governs the digits in the text; they occur once")
    ] = None
