"""Words: what counts as a word of a text, for names that must be unlike all of them."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator
from typing import Any

#: Runs of ASCII letters, digits, `_` and `-`, and runs of any letters: in `调用get_product` both readings count.
_ASCII = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_-]*")
_ANY = re.compile(r"\w[\w-]*")
#: How many texts' words are remembered; those that variants add come from a pool and again and again.
_TEXTS_KEPT = 4096
_JOINTS = re.compile(r"[_-]+")
_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")


@functools.lru_cache(maxsize=_TEXTS_KEPT)
def words_of(text: str) -> frozenset[str]:
    """The words of `text`, lower case; a hyphenated one counts whole and without the hyphens at its ends."""
    found = {word.lower() for word in _ASCII.findall(text)}
    if not text.isascii():
        found.update(word.lower() for word in _ANY.findall(text))
    found.update([word.strip("-_") for word in found if word[-1] in "-_" or word[0] == "_"])
    found.discard("")
    return frozenset(found)


def parts_of(name: str) -> list[str]:
    """The parts of a name, lower case: `get_product`, `get-product` and `getProduct` all have `get` and `product`."""
    return [part.lower() for piece in re.split(r"[_\-.\s]+", name) for part in _HUMP.split(piece) if part]


def with_parts(words: set[str]) -> frozenset[str]:
    """`words` and what those with joints are made of."""
    found = set(words)
    for word in words:
        if "_" in word or "-" in word:
            found.update(part for part in _JOINTS.split(word) if part)
    return frozenset(found)


def strings_in(value: Any) -> Iterator[str]:
    """Every string in a JSON value, keys included."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for key, item in value.items():
            yield key
            yield from strings_in(item)
    elif isinstance(value, list):
        for item in value:
            yield from strings_in(item)
