"""The shipped harnesses played by the oracle, with the ids of a policy's template and tokenizer."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from harnessctl.bundle.files import Bundle
from harnessctl.decode.encoded import EncodedModel
from harnessctl.decode.template import ChatTemplate
from harnessctl.decode.tokens import TokenCodec
from harnessctl.evaluate.config import EvalConfig, FaultsConfig
from harnessctl.evaluate.rollouts import Rollouts
from harnessctl.evaluate.setting import Setting
from harnessctl.policies import ModelConfig, OracleSource, SamplingConfig, open_oracle
from harnessctl.records.scenario import Scenario
from harnessctl.records.trajectory import Trajectory
from harnessctl.runtime.protocols import Model, ModelReply, ModelRequest
from harnessctl.simulate.clock import still_clock

FAULTS = FaultsConfig(timeout=0.15, malformed=0.1, denied=0.1, stale=0.1, persist=0.5)


class Turn(NamedTuple):
    """One question to a model and its answer; the messages are those of that moment."""

    request: ModelRequest
    reply: ModelReply


class Listening:
    """A model whose questions and answers are kept, by request."""

    def __init__(self, inner: Model) -> None:
        self._inner = inner
        self.name, self.template = inner.name, inner.template
        self.turns: dict[str, list[Turn]] = {}

    async def complete(self, request: ModelRequest) -> ModelReply:
        request = copy.copy(request)
        request.messages = copy.deepcopy(request.messages)
        reply = await self._inner.complete(request)
        self.turns.setdefault(request.request_id, []).append(Turn(request, reply))
        return reply

    async def aclose(self) -> None:
        await self._inner.aclose()


class Played(NamedTuple):
    """A trajectory, and the turns with the model that it came from."""

    trajectory: Trajectory
    turns: list[Turn]


async def play(root: Path, bundle: Bundle, template: ChatTemplate, codec: TokenCodec, **keys: Any) -> list[Played]:
    """`n` items of live-qa under `bundle`, by an oracle that has ids."""
    given = {"suite": "live-qa", "n": 20, "faults": FAULTS} | keys
    config = EvalConfig(model=ModelConfig(name="none"), sampling=SamplingConfig(), **given)
    scenarios: dict[str, Scenario] = {}
    with Setting(root, bundle, config) as setting:
        oracle = open_oracle(
            OracleSource(
                bundle, scenarios.__getitem__, clock=still_clock(), flaw=config.flaw, flaw_rate=config.flaw_rate
            )
        )
        model = Listening(EncodedModel(oracle, template, codec))
        rollouts = Rollouts(setting, judges=lambda name: bundle, model=model)
        played: list[Played] = []
        try:
            for number in range(config.n or 0):
                item = rollouts.item(number)
                scenarios[item.scenario.request.id] = item.scenario
                outcome = await rollouts.carry_out(item)
                trajectory = msgspec.json.decode(outcome.lines["trajectories"], type=Trajectory)
                played.append(Played(trajectory, model.turns.get(trajectory.id, [])))
        finally:
            await rollouts.aclose()
    return played
