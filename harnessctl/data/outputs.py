"""Outputs: what the policy said in a trajectory, call by call, and where its ids stand.

What always holds: an output's ids lie within its path, all of them masked in or (where they are not to be learnt from)
all of them masked out; nothing else in a path is masked in.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal

from harnessctl.errors import RecordError
from harnessctl.records.trajectory import ModelCall, TokenPath, Trajectory

#: Which reward a token answers to [3.4]: `tool` for calls and what is thought and said before them, `reply` for replies.
Group = Literal["tool", "reply"]
GROUPS: tuple[Group, ...] = ("tool", "reply")


@dataclass(slots=True, frozen=True)
class Output:
    """One answer of the model. `message` is its place in the trajectory's messages, `after` that of the next output's (or
    the end): what lies between was told because of it. Its ids are `start` to `end` of path `path`; null without ids."""

    call: ModelCall
    message: int
    after: int
    group: Group
    path: int | None = None
    start: int = 0
    end: int = 0

    @property
    def tokens(self) -> range:
        """The places of its ids in the path."""
        return range(self.start, self.end)


def group_of(message: Mapping[str, Any]) -> Group:
    """The group of all tokens of an assistant's message: text and reasoning that come with a call lead up to it."""
    return "tool" if message.get("tool_calls") else "reply"


def outputs_of(trajectory: Trajectory) -> list[Output]:
    """The outputs in their order. Calls that failed have none.

    RecordError where the record contradicts itself: lists of different length, a call's ids outside its path or shared
    with another call, a token that is masked in and that no call sampled, a call without its message.
    """
    said = [call for call in trajectory.calls if call.error is None]
    ends = [*(call.seen for call in said), len(trajectory.messages)][1:]
    outputs: list[Output] = []
    for call, after in zip(said, ends, strict=True):
        message = trajectory.messages[call.seen] if 0 <= call.seen < len(trajectory.messages) else {}
        if message.get("role") != "assistant":
            raise _broken(trajectory, f"call {call.round} has no message of the assistant at messages[{call.seen}]")
        found = Output(call, call.seen, after, group_of(message))
        if call.tokens is not None:
            found = Output(call, call.seen, after, found.group, _path_of(trajectory, call), *call.tokens)
        outputs.append(found)
    for number, path in enumerate(trajectory.paths):
        _check_path(trajectory, number, path, [output for output in outputs if output.path == number])
    return outputs


def _path_of(trajectory: Trajectory, call: ModelCall) -> int:
    if call.path is None or not 0 <= call.path < len(trajectory.paths):
        raise _broken(trajectory, f"call {call.round} is of path {call.path}, and there are {len(trajectory.paths)}")
    return call.path


def _check_path(trajectory: Trajectory, number: int, path: TokenPath, outputs: list[Output]) -> None:
    size = len(path.ids)
    if not size == len(path.mask) == len(path.logprobs):
        raise _broken(
            trajectory, f"path {number} has {size} ids, {len(path.mask)} of mask and {len(path.logprobs)} logprobs"
        )
    for output in outputs:
        if not 0 <= output.start <= output.end <= size:
            raise _broken(
                trajectory,
                f"call {output.call.round} sampled ids {output.start} to {output.end} of path {number}, which has {size}",
            )
        if len(set(path.mask[output.start : output.end])) > 1:
            raise _broken(trajectory, f"path {number}: call {output.call.round} is masked in by halves")
    for before, after in pairwise(outputs):
        if after.start < before.end:
            raise _broken(
                trajectory, f"path {number}: calls {before.call.round} and {after.call.round} share sampled ids"
            )
    said = sum(sum(path.mask[output.start : output.end]) for output in outputs)
    if said != sum(path.mask):
        raise _broken(
            trajectory, f"path {number}: {sum(path.mask)} ids are masked in, and calls sampled {said} of them"
        )


def _broken(trajectory: Trajectory, what: str) -> RecordError:
    return RecordError(f"trajectory {trajectory.id}: {what}")
