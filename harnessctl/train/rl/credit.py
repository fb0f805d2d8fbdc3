"""Credit: which of a trajectory's tokens gets which advantage [3.4].

What always holds: the tokens of a tool call and of the reasoning before it get A^tool, those of a reply (one that a hook sent
back, too) and of its reasoning A^reply; tokens that the policy did not say get none and are not learnt from.
"""

from __future__ import annotations

from harnessctl.data.encoding import Decoder
from harnessctl.data.groups import CODES, cot_lengths, token_groups
from harnessctl.records.score import Score
from harnessctl.records.trajectory import Trajectory
from harnessctl.score.rules import UNSCORED
from harnessctl.train.rl.advantages import DIMENSIONS, Advantage, Graded
from harnessctl.train.rl.paths import Path


def graded(trajectory: Trajectory, score: Score, decoder: Decoder) -> Graded | None:
    """What advantages are made of; null where the rollout says nothing of the policy: it failed by itself, has no score in any
    dimension, or the policy never said a token. `decoder` reads ids, to tell reasoning from the rest."""
    scores = scores_of(score)
    codes = {code for path in token_groups(trajectory) for code in path.groups}
    if trajectory.stop in UNSCORED or codes <= {0} or all(value is None for value in scores.values()):
        return None
    lengths = {str(group): length for group, length in cot_lengths(trajectory, decoder).items()}
    return Graded(scores=scores, has_call=CODES["tool"] in codes, cot=lengths)


def scores_of(score: Score) -> dict[str, float | None]:
    """The scores by dimension."""
    return {name: getattr(score, name) for names in DIMENSIONS.values() for name in names}


def paths_of(trajectory: Trajectory, advantage: Advantage) -> list[Path]:
    """What is learnt from a trajectory: each context in which the policy said something."""
    worth = {CODES["tool"]: advantage.tool or 0.0, CODES["reply"]: advantage.reply}
    found: list[Path] = []
    for path, marked in zip(trajectory.paths, token_groups(trajectory), strict=True):
        places = [place for place, code in enumerate(marked.groups) if code and place]
        if places:
            found.append(
                Path(
                    ids=path.ids,
                    places=places,
                    advantages=[worth[marked.groups[place]] for place in places],
                    sampled=[path.logprobs[place] for place in places],
                )
            )
    return found
