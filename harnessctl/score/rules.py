"""Rules: the scorer that needs no model: the four dimensions by what gold says, and the rubrics of a task [4.2, 3.4, C.3]."""

from __future__ import annotations

from collections.abc import Collection

from msgspec.structs import replace

from harnessctl.bundle.variation import Variation
from harnessctl.records.scenario import Scenario
from harnessctl.records.score import DIMENSIONS, Score
from harnessctl.records.trajectory import Trajectory
from harnessctl.score.accuracy import accuracy
from harnessctl.score.calls import LOAD_SKILL
from harnessctl.score.effectiveness import effectiveness
from harnessctl.score.rubrics import Verdicts
from harnessctl.score.scorer import Tables
from harnessctl.score.skill_selection import skill_selection
from harnessctl.score.tool_rationality import tool_rationality

#: Endings that say nothing about the policy.
UNSCORED = frozenset({"model_error", "cancelled"})


class RuleScorer:
    """A Scorer. `writes` names the harness's tools that write (canonical): a call of one that gold does not ask for is an
    overreach, and calls have their place before or after it. `loader` is the harness's name of the tool that loads
    skills."""

    name = "rules"

    def __init__(self, writes: Collection[str] = (), *, loader: str = LOAD_SKILL) -> None:
        self.writes = frozenset(writes)
        self.loader = loader

    def score(
        self,
        trajectory: Trajectory,
        scenario: Scenario,
        *,
        variation: Variation | None = None,
        after: Tables | None = None,
    ) -> Score:
        """The score; all null where the request failed by itself or has no gold."""
        score = Score(
            id=trajectory.id,
            scenario=scenario.id,
            scorer=self.name,
            bundle=trajectory.bundle,
            intent=scenario.intent,
            family=scenario.family,
            language=scenario.language,
            variant=None if variation is None else variation.number,
            faults=[call.fault for call in trajectory.tools if call.fault is not None],
            level="" if scenario.task is None else scenario.task.level,
            arm="" if scenario.task is None else scenario.task.arm,
        )
        why = unscorable(trajectory, scenario)
        if why is not None:
            score.reasons = {name: [why] for name in DIMENSIONS}
            return score
        if self.loader != LOAD_SKILL:
            tools = [replace(call, name=LOAD_SKILL) if call.name == self.loader else call for call in trajectory.tools]
            trajectory = replace(trajectory, tools=tools)
        found: dict[str, tuple[float | None, list[str]]] = {
            "accuracy": accuracy(trajectory, scenario, after=after, writes=self.writes),
            "effectiveness": effectiveness(trajectory, scenario),
            "tool_rationality": tool_rationality(trajectory, scenario, writes=self.writes),
            "skill_selection": skill_selection(trajectory, scenario),
        }
        for name, (value, _) in found.items():
            setattr(score, name, value)
        score.reasons = {name: reasons for name, (_, reasons) in found.items() if reasons}
        if scenario.task is not None and scenario.task.rubrics:
            verdicts = Verdicts(trajectory, scenario, scenario.task)
            score.rubrics, score.findings = verdicts.passed, verdicts.findings
            score.reasons |= verdicts.reasons
        return score


def unscorable(trajectory: Trajectory, scenario: Scenario) -> str | None:
    """Why a trajectory has no score at all, or None."""
    if scenario.gold is None:
        return "the scenario has no gold"
    if trajectory.stop in UNSCORED:
        return f"the request ended `{trajectory.stop}`: {trajectory.error or 'no cause is recorded'}"
    return None
