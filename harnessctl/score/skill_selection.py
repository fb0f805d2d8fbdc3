"""Skill Selection: whether the skills that fit were loaded, in [0, 1] [3.4].

    S = (|loaded and due| + [nothing due]) / (|due| + [nothing due] + |extra|)

`due` are gold's skills; `extra` are loads of others (synthetic and noise skills too) and tries to load what there is not;
strategies of gold are neither. It is the Jaccard index of what was loaded and what was due; where nothing is due, one
load too many halves it. The paper gives no formula.
"""

from __future__ import annotations

from harnessctl.records.scenario import Scenario
from harnessctl.records.trajectory import Trajectory
from harnessctl.score.calls import is_load


def skill_selection(trajectory: Trajectory, scenario: Scenario) -> tuple[float | None, list[str]]:
    """The score and what cost something; None where the loop has no skills. `scenario` has gold."""
    gold = scenario.gold
    assert gold is not None
    if trajectory.loop == "react":
        return None, ["this loop has no skills"]
    loaded, due = set(trajectory.skills), set(gold.skills)
    unknown = [call for call in trajectory.tools if is_load(call) and call.status == "invalid"]
    extra = sorted(loaded - due - set(gold.strategies))
    reasons = [f"`{name}` was not loaded" for name in sorted(due - loaded)]
    reasons += [f"`{name}` was loaded and does not fit" for name in extra]
    reasons += [f"a skill was asked for that there is not: {call.arguments}" for call in unknown]
    nothing = 0 if due else 1
    return (len(loaded & due) + nothing) / (len(due) + nothing + len(extra) + len(unknown)), reasons
