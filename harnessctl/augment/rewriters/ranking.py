"""Ranking: which of many wordings to keep, and in what order.

What always holds: the choice depends on the candidates and their order alone; each one kept differs in words from the
text and from every other; those that differ more from the text come first.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable
from typing import TypeVar

from harnessctl.augment.phrases import TOKEN

C = TypeVar("C")

#: A text with as many wordings as this needs none with a frame.
ENOUGH = 10


def grams(string: str) -> frozenset[str]:
    """The words of `string` and the pairs of neighbouring ones, lower case, without punctuation."""
    words = [word for word in TOKEN.findall(string.lower()) if word[0].isalnum() or word[0] == "\ue000"]
    return frozenset(words) | frozenset(f"{a} {b}" for a, b in itertools.pairwise(words))


def distance(one: frozenset[str], other: frozenset[str]) -> float:
    """1 less the Jaccard index: 0 for equal words in equal order, 1 for none in common."""
    shared = len(one & other)
    return 1 - shared / (len(one) + len(other) - shared) if one or other else 0.0


def choose(
    original: str, plain: Iterable[str], framed: Iterable[str], most: int, accepts: Callable[[str], bool]
) -> list[str]:
    """At most `most` candidates, unlike each other: of `plain`, and of `framed` where that gives fewer than ENOUGH.

    Greedily the one that is farthest from the text and from all chosen; those of `plain` and then the farthest first.
    """
    base = grams(original)
    chosen: dict[frozenset[str], tuple[float, str]] = {}
    out: list[str] = []
    for candidates, wanted in ((plain, most), (framed, min(most, ENOUGH))):
        if len(chosen) >= wanted:
            break
        found = _farthest(base, candidates, chosen, wanted - len(chosen), accepts)
        out += [candidate for _, candidate in sorted(found.values(), key=lambda member: -member[0])]
        chosen |= found
    return out


def _farthest(
    base: frozenset[str],
    candidates: Iterable[str],
    taken: dict[frozenset[str], tuple[float, str]],
    most: int,
    accepts: Callable[[str], bool],
) -> dict[frozenset[str], tuple[float, str]]:
    """(distance from `base`, candidate) by the grams of the candidate."""
    pool: dict[frozenset[str], str] = {}
    for candidate in candidates:
        its = grams(candidate)
        if its != base and its not in taken:
            pool.setdefault(its, candidate)
    far = {its: distance(base, its) for its in pool}
    nearest = {its: min([far[its], *(distance(its, other) for other in taken)]) for its in pool}
    found: dict[frozenset[str], tuple[float, str]] = {}
    while nearest and len(found) < most:
        best = max(nearest, key=lambda its: nearest[its] + far[its])
        del nearest[best]
        if accepts(pool[best]):
            found[best] = (far[best], pool[best])
            for its, near in nearest.items():
                nearest[its] = min(near, distance(its, best))
    return found
