"""Groups: which reward each token of a trajectory answers to, and how long was thought before it [3.4; design 8].

A call whose message has tool calls (a load_skill is one): all its tokens, the reasoning and the text before the calls
too, answer to the tools' rewards. A call that proposes a reply, one that a hook rejected too: to the reply's. So a
trajectory without a tool call has reply tokens only.
"""

from __future__ import annotations

import msgspec

from harnessctl.data.encoding import Decoder
from harnessctl.data.outputs import GROUPS, Group, outputs_of
from harnessctl.data.reasoning import reasoning_tokens
from harnessctl.records.trajectory import Trajectory

#: What stands for a group in a list of tokens; 0 is a token that is not the policy's, or not to be learnt from.
CODES: dict[Group, int] = {"tool": 1, "reply": 2}


class PathGroups(msgspec.Struct):
    """One token path: `groups` has a code for each id; `reasoning` counts the reasoning tokens of each group's calls,
    null where nobody could read the ids."""

    groups: list[int]
    reasoning: dict[Group, int] | None = None


def token_groups(trajectory: Trajectory, decoder: Decoder | None = None) -> list[PathGroups]:
    """The groups of each path's tokens; `decoder` reads the ids where reasoning is to be counted.

    RecordError where the trajectory contradicts itself.
    """
    found = [
        PathGroups([0] * len(path.ids), None if decoder is None else dict.fromkeys(GROUPS, 0))
        for path in trajectory.paths
    ]
    for output in outputs_of(trajectory):
        if output.path is None:
            continue
        path, into = trajectory.paths[output.path], found[output.path]
        for place in output.tokens:
            into.groups[place] = CODES[output.group] * path.mask[place]
        if decoder is not None and into.reasoning is not None:
            into.reasoning[output.group] += reasoning_tokens(path.ids[output.start : output.end], decoder)
    return found


def cot_lengths(trajectory: Trajectory, decoder: Decoder) -> dict[Group, int]:
    """L of the penalty q(L), for each group: the reasoning tokens of all its calls in the trajectory.

    Calls without ids count nothing.
    """
    lengths = dict.fromkeys(GROUPS, 0)
    for path in token_groups(trajectory, decoder):
        for group, length in (path.reasoning or {}).items():
            lengths[group] += length
    return lengths
