"""Order: a random order in which what must come after something does, and what is fixed stays where it is.

What always holds: the result is a permutation of what was given; a fixed member keeps its index; every edge between
members holds wherever it held before. Members without edges and fixed places are shuffled evenly.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence, Set
from itertools import pairwise

from harnessctl.augment.stream import Stream
from harnessctl.bundle.state import Rule

#: How many shuffles are tried before the members are placed one by one.
TRIES = 4
#: How many exchanges are tried after that, at most; each looks at every edge.
MOST_SWAPS = 200


def reordered(
    names: Sequence[str],
    stream: Stream,
    *,
    after: Mapping[str, str] | None = None,
    fixed: Set[str] = frozenset(),
    lane: Callable[[str], str] | None = None,
) -> list[str] | None:
    """`names` in a new order, or None where there is no other that was found.

    `after` maps a member to the one that must stand before it; edges to strangers hold nothing. `lane` splits the
    members: each takes only places that members of its lane had.
    """
    places = [index for index, name in enumerate(names) if name not in fixed]
    if len(places) < 2:
        return None
    was = {name: index for index, name in enumerate(names)}
    edges = [(a, b) for b, a in (after or {}).items() if a in was and b in was and was[a] < was[b]]
    lanes: dict[str, list[int]] = {}
    for index in places:
        lanes.setdefault(lane(names[index]) if lane else "", []).append(index)
    names = list(names)
    out = list(names)
    for _ in range(TRIES):
        for spots in lanes.values():
            for spot, name in zip(spots, stream.shuffled([names[spot] for spot in spots]), strict=True):
                out[spot] = name
        if out != names and (not edges or _holds(out, edges)):
            return out
    return _swapped(names, lanes, edges, stream)


def edges_left(rules: Sequence[Rule], masked: Set[str]) -> dict[str, str]:
    """The `after` edges between the rules that are left; that of a masked one is handed on."""
    known = {rule.id: rule.after for rule in rules}
    out: dict[str, str] = {}
    for rule in rules:
        before = rule.after
        while before is not None and before in masked:
            before = known.get(before)
        if before is not None and rule.id not in masked:
            out[rule.id] = before
    return out


def _holds(names: Sequence[str], edges: Sequence[tuple[str, str]]) -> bool:
    at = {name: index for index, name in enumerate(names)}
    return all(at[a] < at[b] for a, b in edges)


def _swapped(
    names: Sequence[str], lanes: Mapping[str, Sequence[int]], edges: Sequence[tuple[str, str]], stream: Stream
) -> list[str] | None:
    """`names` after many random exchanges of neighbours, each of which leaves every edge as it should be; None where all
    led back."""
    pairs = [pair for spots in lanes.values() for pair in pairwise(spots)]
    now, found = list(names), None
    for _ in range(min(len(pairs) ** 2 + 8, MOST_SWAPS) if pairs else 0):
        i, j = stream.choice(pairs)
        now[i], now[j] = now[j], now[i]
        if not _holds(now, edges):
            now[i], now[j] = now[j], now[i]
        elif now != names:
            found = list(now)
    return found
