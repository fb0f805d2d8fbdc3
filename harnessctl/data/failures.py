"""Failures: which outputs of a trajectory were sent back, and so are not to be learnt from [3.4, stage 1].

An output failed where the harness answered it with a reminder and not with what it asked for:
- a reply after which the policy was asked again (a stop or post_model hook, an empty reply, a wrong form, a skill
  that had to be loaded first), or with which the request ended otherwise than by being said;
- a call that was refused: `invalid` (arguments, names) or `blocked` (a hook, or the request had ended);
- a call whose result a post_tool hook sent back with `retry`, where the same tool was called again and then passed.

A call that failed by the tool's own fault (error, timeout, denied) did not: to go on from it is what is to be learnt.
"""

from __future__ import annotations

from dataclasses import dataclass

from harnessctl.data.outputs import Output
from harnessctl.records.trajectory import ToolCall, Trajectory

_REFUSED = frozenset({"invalid", "blocked"})
#: Endings at which a reply that the policy proposed was let through.
_PASSED = frozenset({"replied", "silent", "refused"})


@dataclass(slots=True, frozen=True)
class Failure:
    """What failed of an output: the calls `ids` of its message, or (`whole`) all of it."""

    whole: bool
    ids: frozenset[str] = frozenset()


def failures_of(trajectory: Trajectory, outputs: list[Output]) -> dict[int, Failure]:
    """The outputs that failed, by their place in `outputs`."""
    found: dict[int, Failure] = {}
    for place, output in enumerate(outputs):
        if output.group == "reply":
            if place < len(outputs) - 1 or trajectory.stop not in _PASSED:
                found[place] = Failure(whole=True)
            continue
        called = [call["id"] for call in trajectory.messages[output.message]["tool_calls"]]
        records = [record for record in trajectory.tools if record.round == output.call.round]
        ids = {record.id for record in records if record.status in _REFUSED} | _made_again(trajectory, output, records)
        if ids:
            found[place] = Failure(whole=ids.issuperset(called), ids=frozenset(ids))
    return found


def _made_again(trajectory: Trajectory, output: Output, records: list[ToolCall]) -> set[str]:
    """The calls of a round that a post_tool hook sent back and that were then made better."""
    sent_back = {
        (hook.round, hook.tool) for hook in trajectory.hooks if hook.event == "post_tool" and hook.decision == "retry"
    }
    found: set[str] = set()
    for record in records:
        if record.status != "ok" or (record.round, record.name) not in sent_back:
            continue
        if sum(other.name == record.name for other in records) > 1:
            continue  # a decision names the tool, not the call
        if any(
            later.round > output.call.round
            and later.name == record.name
            and later.status == "ok"
            and (later.round, later.name) not in sent_back
            for later in trajectory.tools
        ):
            found.add(record.id)
    return found
