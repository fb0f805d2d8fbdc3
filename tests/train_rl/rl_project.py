"""The shipped mini harness with a tiny policy on disk, and groups of rollouts that are made up."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec

from harnessctl.policies import SamplingConfig
from harnessctl.records.score import Score
from harnessctl.records.trajectory import ModelCall, TokenPath, Trajectory
from harnessctl.train.config import LoopConfig, PolicyConfig
from harnessctl.train.rl.config import RlConfig
from harnessctl.train.rl.environment import Group, Rollout
from tests.decode.conftest import make_llama, make_tokenizer
from tests.train_core.project import TrainProject


def write_policy(folder: Path, *, context: int = 4096) -> Path:
    """A tiny Llama over bytes, in the Hugging Face layout."""
    tokenizer = make_tokenizer()
    make_llama(tokenizer, context=context).save_pretrained(folder)
    tokenizer.save(str(folder / "tokenizer.json"))
    return folder


def rl_config(**keys: Any) -> RlConfig:
    loop = {"steps": 2, "lr": 1e-3, "save_every": 1} | keys.pop("loop", {})
    sampling = {"temperature": 1.0, "top_p": 1.0, "max_tokens": 12} | keys.pop("sampling", {})
    given: dict[str, Any] = {
        "model": PolicyConfig(name="tiny", dtype="float32", device="cpu"),
        "loop": LoopConfig(**loop),
        "sampling": SamplingConfig(**sampling),
        "groups": 2,
        "rollouts": 2,
    }
    return RlConfig(**(given | keys))


class LowIds:
    """A reward by which the rollouts of a random policy differ: how low the ids are that it said, in the mean."""

    async def grade(self, item: Any, trajectory: Trajectory, score: Score) -> Score:
        del item
        said = [i for path in trajectory.paths for i, is_said in zip(path.ids, path.mask, strict=True) if is_said]
        lowness = 1 - sum(said) / (300 * max(1, len(said)))
        return msgspec.structs.replace(score, accuracy=lowness, tool_rationality=lowness)


class Project(TrainProject):
    """A project for jobs of rl."""

    stage = "rl"

    def with_context(self, context: int) -> Project:
        """With a policy that holds so many tokens."""
        return replace(self, model=write_policy(self.model.parent / f"holds-{context}", context=context))


def trajectory_of(ids: Sequence[int], said: int, logprobs: Sequence[float], *, name: str = "x#0.0") -> Trajectory:
    """One call, which proposes a reply: the last `said` of the ids."""
    start = len(ids) - said
    return Trajectory(
        id=name,
        bundle="b",
        harness="mini",
        loop="harness",
        model="tiny",
        request={},
        context={},
        limits={},
        started="",
        took_s=0.0,
        stop="replied",
        reply="",
        route="public",
        messages=[{"role": "user", "content": "?"}, {"role": "assistant", "content": "!"}],
        calls=[ModelCall(round=1, seen=1, started_s=0.0, ended_s=0.0, path=0, tokens=(start, len(ids)))],
        paths=[TokenPath(ids=list(ids), mask=[0] * start + [1] * said, logprobs=[0.0] * start + list(logprobs))],
    )


def score_of(reward: float | None, *, name: str = "x#0.0") -> Score:
    return Score(id=name, scenario="x", scorer="fake", bundle="b", accuracy=reward, effectiveness=reward)


class Made:
    """An environment whose rollouts a function makes."""

    def __init__(self, make: Callable[[int, int], Rollout]) -> None:
        self._make = make
        self.asked: list[list[int]] = []

    def groups(self, numbers: Sequence[int], rollouts: int) -> list[Group]:
        self.asked.append(list(numbers))
        return [Group(n, None, [self._make(n, which) for which in range(rollouts)]) for n in numbers]


PROMPT = list(range(40, 52))


def made_up(number: int, which: int) -> Rollout:
    """A rollout by chance, the same each time. Every fourth says nothing of the policy."""
    draw = random.Random(1000 * number + which)
    said = draw.randrange(1, 7)
    ids = [*PROMPT, number, *(draw.randrange(3, 200) for _ in range(said))]
    reward = None if which == 3 else draw.choice([0.0, 0.5, 1.0])
    return Rollout(trajectory_of(ids, said, [-draw.random() for _ in range(said)]), score_of(reward))
