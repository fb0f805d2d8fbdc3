"""NameMaker: new identifiers for tools, skills and parameters.

What always holds: a new name is a whole word that occurs nowhere in the parent nor, so far, in the variant, in no case;
no two names that one maker gave are equal (parameters: within a tool). A tool or parameter is `[A-Za-z0-9_-]{1,64}` and
begins with a letter or `_`, a skill is a slug. A name that is taken is drawn again, at last numbered, so that there
always is one.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Literal

from harnessctl.augment.lexicon import ADJECTIVES, FIELDS, NOUNS, OPAQUE, SYNONYMS, THINGS, VERBS
from harnessctl.augment.stream import Stream
from harnessctl.augment.words import parts_of
from harnessctl.errors import UsageError

STYLES = ("synonym", "plain", "opaque")
Kind = Literal["tool", "skill", "parameter"]

_TRIES = 8
_MAX_CHARS = 64
_JOINT = {"tool": "_", "skill": "-", "parameter": "_"}
_VALID = {
    "tool": re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,63}"),
    "skill": re.compile(r"(?=.{1,64}\Z)[a-z0-9]+(-[a-z0-9]+)*"),
    "parameter": re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,63}"),
}


class NameMaker:
    """Names of one variant; fits `operator.Names`. `words` are those of the parent, lower case."""

    def __init__(self, words: Collection[str]) -> None:
        self._words = words
        self._taken: set[str] = set()
        self._names: set[str] = set()
        self._parameters: dict[str, set[str]] = {}
        self._all_parameters: set[str] = set()

    def are_unlike(self, words: Collection[str]) -> bool:
        """Whether none of `words` is a name that was given so far."""
        return self._names.isdisjoint(words) and self._all_parameters.isdisjoint(words)

    def add_words(self, words: Iterable[str]) -> None:
        """Words, lower case, that the variant has besides those of its parent; no name given later is one of them."""
        self._taken.update(words)

    def tool(self, canonical: str, stream: Stream, styles: Sequence[str]) -> str:
        """A new name for a tool; one of `styles` is drawn."""
        return self._given(self._new("tool", canonical, stream, styles, self._is_free))

    def skill(self, canonical: str, stream: Stream, styles: Sequence[str]) -> str:
        """A new name for a skill, a slug."""
        return self._given(self._new("skill", canonical, stream, styles, self._is_free))

    def parameter(self, tool: str, canonical: str, stream: Stream, styles: Sequence[str]) -> str:
        """A new name for a parameter, unlike all others of its tool; another tool's may have the same."""
        own = self._parameters.setdefault(tool, set())

        def is_free(name: str) -> bool:
            return name not in own and name not in self._words and name not in self._taken

        name = self._new("parameter", canonical, stream, styles, is_free)
        own.add(name.lower())
        self._all_parameters.add(name.lower())
        return name

    def wished(self, kind: Literal["tool", "skill"], name: str, stream: Stream) -> str:
        """`name` for a member that is added, where nothing is called so; a synonym of it otherwise."""
        if self._is_free(name.lower()) and _VALID[kind].fullmatch(name):
            return self._given(name)
        return self._given(self._new(kind, name, stream, ("synonym",), self._is_free))

    def _is_free(self, name: str) -> bool:
        return name not in self._words and name not in self._taken and name not in self._all_parameters

    def _given(self, name: str) -> str:
        self._taken.add(name.lower())
        self._names.add(name.lower())
        return name

    def _new(
        self, kind: Kind, canonical: str, stream: Stream, styles: Sequence[str], is_free: Callable[[str], bool]
    ) -> str:
        style = stream.choice(styles)
        if style not in STYLES:
            raise UsageError(f"no style of names `{style}`", hint=f"styles are {', '.join(STYLES)}")
        name = ""
        for way in (style, "plain"):
            for _ in range(_TRIES):
                name = _draw(kind, way, canonical, stream)
                if name and name.lower() != canonical.lower() and is_free(name.lower()):
                    return name
        joint, number = _JOINT[kind], 2
        while not is_free(f"{name}{joint}{number}"):
            number += 1
        return f"{name}{joint}{number}"


def _draw(kind: Kind, style: str, canonical: str, stream: Stream) -> str:
    """A name in a style, perhaps one that is taken; empty where the style has none."""
    if style == "synonym":
        return _synonym(kind, canonical, stream)
    if style == "opaque":
        head = {"tool": "op_", "skill": "s-", "parameter": "p_"}[kind]
        return head + "".join(stream.choice(OPAQUE) for _ in range(4))
    if kind == "skill":
        return f"{stream.choice(ADJECTIVES)}-{stream.choice(THINGS)}"
    if kind == "tool":
        return f"{stream.choice(VERBS)}_{stream.choice(NOUNS)}"
    return f"{stream.choice(FIELDS)}_{stream.choice(NOUNS)}"


def _synonym(kind: Kind, canonical: str, stream: Stream) -> str:
    """The name with its parts replaced, one at least; empty where no part has a synonym."""
    choices, joint = _choices(kind, canonical)
    if not choices:
        return ""
    # An own part counts for one choice among its synonyms; all own parts are the old name, which is drawn again.
    name = joint.join([stream.choice(words) if len(words) > 1 else words[0] for words in choices])
    return name if len(name) <= _MAX_CHARS and _VALID[kind].fullmatch(name) else ""


@functools.lru_cache(maxsize=4096)
def _choices(kind: Kind, canonical: str) -> tuple[tuple[tuple[str, ...], ...], str]:
    """For each part of a name, itself and its synonyms; and what joins them."""
    parts = parts_of(canonical)
    if not canonical.isascii() or not any(part in SYNONYMS for part in parts):
        return (), ""
    joint = "-" if kind == "skill" or ("-" in canonical and "_" not in canonical) else "_"
    return tuple((part, *SYNONYMS.get(part, ())) for part in parts), joint
