"""Order: cycles in what must stand after, or needs, something else."""

from __future__ import annotations

from collections.abc import Mapping, Sequence


def cycle_in(edges: Mapping[str, Sequence[str]]) -> list[str] | None:
    """A cycle of `edges` (each name to those it points at) as its names in order, or None.

    The name that is least in sorting stands first, so that one cycle is always shown in one way.
    """
    done: set[str] = set()
    for start in sorted(edges):
        path: list[str] = []
        # Names to look at, with the length that the path has before them.
        waiting = [(start, 0)]
        while waiting:
            name, length = waiting.pop()
            done.update(path[length:])
            del path[length:]
            if name in path:
                cycle = path[path.index(name) :]
                first = cycle.index(min(cycle))
                return cycle[first:] + cycle[:first]
            if name in done:
                continue
            path.append(name)
            waiting.extend((target, len(path)) for target in edges.get(name, ()))
        done.update(path)
    return None


def shown(cycle: list[str]) -> str:
    """`a -> b -> a`."""
    return " -> ".join([*cycle, cycle[0]])
