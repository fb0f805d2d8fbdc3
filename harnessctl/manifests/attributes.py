"""Attribute lists of rules and headings: `{#id .protected .verbatim after=x requires=y limit=z}`, `{.rules}`.

A brace is an attribute list only where it ends a line and begins with `#`, `.` or `word=`; anything else in braces is
text. Inside one, every word must be known.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Container
from dataclasses import dataclass, field

from harnessctl.errors import Fault, Faults
from harnessctl.manifests.violations import did_you_mean

RULE_ID = re.compile(r"^[a-z0-9]+([-_][a-z0-9]+)*$")
_LIST = re.compile(r"[ \t]*\{([ \t]*(?:[#.][^{}\s]+|(?:after|requires|limit|id)[ \t]*=|[A-Za-z_]+=)[^{}]*)\}[ \t]*$")
_FLAGS = ("protected", "verbatim")
_VALUES = ("after", "requires", "limit")
ALLOWED = "#id .protected .verbatim after=id requires=id limit=name"


@dataclass(slots=True)
class Attributes:
    """What an attribute list says; `cols` is the column of each value's first character."""

    id: str | None = None
    flags: set[str] = field(default_factory=set)
    values: dict[str, str] = field(default_factory=dict)
    cols: dict[str, int] = field(default_factory=dict)


def rule_name(text: str, taken: Container[str]) -> str:
    """The name of a rule that was given none: `r-` and 8 hexadecimal digits of its text's SHA-256.

    Line breaks do not count. A name that is taken already (the same text twice) gets `-2`, `-3`...
    """
    words = " ".join(text.split())
    base = name = "r-" + hashlib.sha256(words.encode("utf-8", "surrogatepass")).hexdigest()[:8]
    count = 1
    while name in taken:
        count += 1
        name = f"{base}-{count}"
    return name


def split(line: str) -> tuple[str, re.Match[str] | None]:
    """The line without the attribute list that ends it, and the list's match (group 1: its inside)."""
    if not line.rstrip().endswith("}"):
        return line, None
    # A list has no braces inside, so that it can only begin at the last one.
    brace = line.rfind("{")
    match = _LIST.match(line, len(line[:brace].rstrip(" \t"))) if brace >= 0 else None
    return (line[: match.start()], match) if match else (line, None)


def parse(path: str, line: int, col: int, match: re.Match[str], faults: Faults) -> Attributes:
    """The attributes of a rule; `col` is the column of the first character of the string that was matched."""
    out = Attributes()
    for token in re.finditer(r"\S+", match[1]):
        word, at = token[0], col + match.start(1) + token.start()

        def fault(code: str, message: str, got: str, allowed: str = "", hint: str = "", at: int = at) -> None:
            faults.add(Fault(path, line, at, code, message, got, allowed, hint))

        if word.startswith("#"):
            if out.id is not None:
                fault("rule-attribute", "a rule has two ids", word, "one #id")
            elif not RULE_ID.match(word[1:]):
                fault(
                    "rule-id",
                    "the id of a rule is not of the form that is allowed",
                    word,
                    "lower-case letters and digits, joined by single - or _",
                )
            else:
                out.id, out.cols["id"] = word[1:], at
        elif word.startswith("."):
            if word[1:] in _FLAGS:
                out.flags.add(word[1:])
            else:
                fault("rule-attribute", "an unknown attribute of a rule", word, ALLOWED, did_you_mean(word[1:], _FLAGS))
        else:
            name, equals, value = word.partition("=")
            if not equals or name not in _VALUES:
                hint = f"write .{name}" if name in _FLAGS else did_you_mean(name, [*_VALUES, *_FLAGS])
                hint = "write the id as #" + value if name == "id" else hint
                fault("rule-attribute", "an unknown attribute of a rule", word, ALLOWED, hint)
            elif not value:
                fault("rule-attribute", f"`{name}=` has no value", word, f"{name}=name without spaces")
            elif name in out.values:
                fault("rule-attribute", f"`{name}=` is given twice", word, "once")
            else:
                out.values[name], out.cols[name] = value.removeprefix("#"), at + len(name) + 1
    return out
