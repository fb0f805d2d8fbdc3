"""Rounds: the calls of a plan grouped by the messages that make them.

What always holds: look-ups share a message where neither leans on the other; a call that writes or ends the request has
a message of its own, unless the rounds are too few, and then stands after those before it, as the runtime runs them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import orjson

from harnessctl.records.scenario import Scenario

S = TypeVar("S", bound="Any")

#: An identifier: one word with a digit in it. Other texts a model makes up itself (a query, a reason).
_IDENTIFIER = re.compile(r"[^\s\d]*\d\S*")


def is_told(arguments: dict[str, Any], scenario: Scenario) -> bool:
    """Whether the identifiers among the arguments are told by the viewer or the request's context; others have to come
    from a look-up before."""
    wanted = [value for value in _texts(arguments) if _IDENTIFIER.fullmatch(value)]
    if not wanted:
        return True
    told = "\n".join(message.text for message in scenario.request.viewer_messages())
    told += orjson.dumps(scenario.request.context).decode()
    return all(value in told for value in wanted)


def _texts(value: Any) -> list[str]:
    if isinstance(value, str):
        return [value]
    members = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return [text for member in members for text in _texts(member)]


def grouped(
    steps: Sequence[S], may_join: Callable[[S, Sequence[S], Sequence[S]], bool], *, one_by_one: bool
) -> list[list[S]]:
    """`steps` in groups, in their order; `may_join(step, steps answered before, group)` decides."""
    groups: list[list[S]] = []
    done = 0
    for number, step in enumerate(steps):
        if groups and not one_by_one and may_join(step, steps[:done], groups[-1]):
            groups[-1].append(step)
        else:
            groups.append([step])
            done = number
    return groups


def fit(
    groups: Sequence[Sequence[S]], is_alone: Callable[[str], bool], most: int
) -> tuple[tuple[tuple[S, ...], ...] | None, int]:
    """(the groups in at most `most` messages, or None; the least number of messages that they take).

    Two groups can be made by one message where the call on either side of the seam runs alone.
    """
    out = [tuple(group) for group in groups]
    least = 0
    for number, group in enumerate(out):
        if not number or not (is_alone(out[number - 1][-1].tool) or is_alone(group[0].tool)):
            least += 1
    while len(out) > most:
        seam = next(
            (n for n in range(len(out) - 1, 0, -1) if is_alone(out[n - 1][-1].tool) or is_alone(out[n][0].tool)), None
        )
        if seam is None:
            return None, least
        out[seam - 1 : seam + 1] = [out[seam - 1] + out[seam]]
    return tuple(out), least
