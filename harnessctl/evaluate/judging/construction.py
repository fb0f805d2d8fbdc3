"""Construction: a calibration set without people: replies of the oracle and of its flaws, labelled by the rules.

What always holds: `source` is `construction`: the labels say what was done wrong on purpose, as far as rules see it. They
show whether a judge finds such mistakes; they do not show that it agrees with people. No faults are injected: what the host
was told is what the judge's look-ups tell.
"""

from __future__ import annotations

import copy
from pathlib import Path

import msgspec

from harnessctl.bundle.files import Bundle
from harnessctl.evaluate.config import EvalConfig, FaultsConfig
from harnessctl.evaluate.job import Job
from harnessctl.policies import ModelConfig, SamplingConfig
from harnessctl.records.calibration import CONSTRUCTION, CalibrationItem, Label, LabelledCall
from harnessctl.records.comment import CommentInput
from harnessctl.records.score import Score
from harnessctl.records.trajectory import Trajectory

#: Who answers item `i`: entry i modulo their number; null is the oracle itself. Flaws that a reply does not show
#: (`redundant-call`, `wrong-skill`) are there to see that a judge does not punish what viewers never hear.
ANSWERED_BY: tuple[str | None, ...] = (
    None,
    "wrong-tool",
    "ungrounded-number",
    None,
    "ignores-rule",
    "redundant-call",
    "over-long",
    "wrong-skill",
)


async def constructed(
    root: Path, bundle: Bundle, *, n: int, seed: int = 0, world: str | None = None
) -> list[CalibrationItem]:
    """`n` items, in the order of the seed's scenarios. Equal arguments give equal items."""
    found: dict[int, CalibrationItem] = {}
    config = EvalConfig(
        suite="live-qa",
        model=ModelConfig(name="none"),
        sampling=SamplingConfig(),
        seed=seed,
        world=world,
        n=n,
        faults=FaultsConfig(timeout=0, malformed=0, denied=0, stale=0),
    )
    job = Job(root, bundle, config)
    with job.setting() as setting:
        for flaw in dict.fromkeys(ANSWERED_BY):
            flawed = copy.copy(setting)  # world and families are opened once; the flaw is the policy's alone
            flawed.config = msgspec.structs.replace(config, flaw=flaw)
            rollouts = job.rollouts(flawed)
            try:
                for number in range(n):
                    if ANSWERED_BY[number % len(ANSWERED_BY)] == flaw:
                        trajectory, score = await rollouts.play(rollouts.item(number))
                        found[number] = _item(trajectory, score)
            finally:
                await rollouts.aclose()
    return [found[number] for number in sorted(found)]


def _item(trajectory: Trajectory, score: Score) -> CalibrationItem:
    reasons = [*score.reasons.get("accuracy", ()), *score.reasons.get("effectiveness", ())]
    return CalibrationItem(
        id=trajectory.id,
        labels=[
            Label(
                accuracy=None if score.accuracy is None else 1 if score.accuracy else 0,
                effectiveness=score.effectiveness,
                annotator="rules",
                reason="; ".join(dict.fromkeys(reasons)),
            )
        ],
        source=CONSTRUCTION,
        role="dev",
        request=msgspec.convert(trajectory.request, CommentInput),
        reply=trajectory.reply,
        route=trajectory.route,
        stop=trajectory.stop,
        context=trajectory.context,
        calls=[
            LabelledCall(
                name=call.name, arguments=call.arguments, status=call.status, result=call.result, error=call.error
            )
            for call in trajectory.tools
        ],
        world=trajectory.world,
        intent=score.intent,
        family=score.family,
        language=score.language,
    )
