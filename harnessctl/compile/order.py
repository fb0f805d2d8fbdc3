"""Order: cycles in what must stand after, or needs, something else."""

from __future__ import annotations

from collections.abc import Mapping


def cycle_in(edges: Mapping[str, str | None]) -> list[str] | None:
    """A cycle of `edges` (each name to the one it points at) as its names in order, or None.

    The name that is least in sorting stands first, so that one cycle is always shown in one way.
    """
    done: set[str] = set()
    for start in sorted(edges):
        path: list[str] = []
        name: str | None = start
        while name is not None and name in edges and name not in done:
            if name in path:
                cycle = path[path.index(name) :]
                first = cycle.index(min(cycle))
                return cycle[first:] + cycle[:first]
            path.append(name)
            name = edges[name]
        done.update(path)
    return None


def shown(cycle: list[str]) -> str:
    """`a -> b -> a`."""
    return " -> ".join([*cycle, cycle[0]])
