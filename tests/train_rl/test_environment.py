"""Groups: which scenario, which harness, and what rollouts of one group share."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest

from harnessctl.bundle.state import Tool
from harnessctl.errors import HarnessctlError, LawBroken
from harnessctl.evaluate.repeats import SameFaults, named
from harnessctl.evaluate.setting import Setting
from harnessctl.runtime.protocols import InjectedFault, ModelReply
from harnessctl.train.policy import Policy
from harnessctl.train.rl.backends import LocalBackend
from harnessctl.train.rl.config import SEEDS_APART, RolloutConfig
from harnessctl.train.rl.environment import TRIES, Simulator
from harnessctl.train.rl.reward import RuleReward
from tests.decode_batched.conftest import ask
from tests.train_rl.rl_project import Project, rl_config


@pytest.fixture
def setting(stall: Project) -> Iterator[Setting]:
    with Setting(stall.root, stall.bundle, rl_config(sampling={"max_tokens": 4}).evaluation()) as opened:
        yield opened


def simulator(setting: Setting, policy: Any = None, **keys: Any) -> Simulator:
    backend: Any = LocalBackend(policy, RolloutConfig()) if policy is not None else None
    return Simulator(setting, judges=lambda name: setting.bundle, backend=backend, reward=RuleReward(), **keys)


def test_a_group_is_of_its_number_alone(setting: Setting) -> None:
    one, other = simulator(setting, variant_share=0.5), simulator(setting, variant_share=0.5)
    forth = [one.item(number) for number in range(12)]
    back = [other.item(number) for number in reversed(range(12))][::-1]
    assert [item.scenario for item in forth] == [item.scenario for item in back]
    assert [item.bundle.digest for item in forth] == [item.bundle.digest for item in back]
    assert 2 <= sum(item.variation is not None for item in forth) <= 10


def test_no_scenario_of_an_evaluation_is_trained_on(setting: Setting) -> None:
    assert simulator(setting).item(0).scenario.seed == SEEDS_APART


def test_items_come_up_again_under_other_variants(setting: Setting) -> None:
    made = simulator(setting, items=3, variant_share=1.0)
    first, again = made.item(1), made.item(4)
    assert first.scenario == again.scenario
    assert first.variation is not None
    assert again.variation is not None
    assert first.variation.number != again.variation.number


def test_a_refused_variant_is_told_and_another_taken(setting: Setting, monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[str] = []
    made = simulator(setting, variant_share=1.0, talk=told.append)
    real = setting.variant

    def variant(number: int, needs: Any) -> Any:
        if number % TRIES == 0:
            raise LawBroken("d", "needs", "made up")
        return real(number, needs)

    monkeypatch.setattr(setting, "variant", variant)
    item = made.item(2)
    assert item.variation is not None
    assert item.variation.number == 2 * TRIES + 1
    assert "group 2: a variant was refused" in told[0]
    monkeypatch.setattr(setting, "variant", lambda number, needs: variant(0, needs))
    assert made.item(2).variation is None
    assert len(told) == 1 + TRIES


class Listening:
    def __init__(self) -> None:
        self.asked: list[tuple[str, int]] = []

    def draw(self, request_id: str, tool: Tool, args: dict[str, Any], number: int) -> InjectedFault | None:
        self.asked.append((request_id, number))
        return None


def test_rollouts_of_a_group_meet_the_same_faults(setting: Setting) -> None:
    inner = Listening()
    tool = setting.bundle.state.tools[0]
    SameFaults(inner).draw("stall-0-000001#3.0", tool, {}, 0)
    SameFaults(inner).draw("stall-0-000001#3.7", tool, {}, 1)
    assert inner.asked == [("stall-0-000001", 0), ("stall-0-000001", 1)]


def test_each_rollout_has_an_id_of_its_own(setting: Setting) -> None:
    item = simulator(setting).item(5)
    one = named(item, "5.2")
    assert one.scenario.request.id == f"{item.scenario.id}#5.2"
    assert one.scenario.id == item.scenario.id
    assert item.scenario.request.id == item.scenario.id


def test_rollouts_of_a_group_differ_and_come_out_the_same_again(setting: Setting, policy: Policy) -> None:
    made = simulator(setting, policy)
    (first,) = made.groups([3], 3)
    (again,) = made.groups([3], 3)

    def said(group: Any) -> list[list[list[int]]]:
        return [[path.ids for path in rollout.trajectory.paths] for rollout in group.rollouts]

    assert said(first) == said(again)
    assert len({str(ids) for ids in said(first)}) == 3
    assert [r.score.scenario for r in first.rollouts] == [first.rollouts[0].score.scenario] * 3
    assert [r.trajectory.id.partition("#")[2] for r in first.rollouts] == ["3.0", "3.1", "3.2"]


@pytest.mark.parametrize("grammar", [False, True])
def test_calls_are_held_to_a_grammar_only_where_the_recipe_says_so(policy: Policy, grammar: bool) -> None:
    """Without one each token is the policy's own, which is what the loss takes it for."""

    async def reply() -> ModelReply:
        backend = LocalBackend(policy, RolloutConfig(grammar=grammar))
        model = await backend.open()
        try:
            async with backend.place():
                return await model.complete(ask(1))
        finally:
            await backend.close()

    found = asyncio.run(reply())
    assert found.completion_ids is not None
    text = policy.codec.decode(found.completion_ids)
    assert text.startswith("<tool_call>"[: len(text)]) == grammar


class Failing:
    async def grade(self, *_: Any) -> Any:
        raise HarnessctlError("the judge is gone")


def test_what_fails_beside_a_rollout_is_said_as_it_is(setting: Setting, policy: Policy) -> None:
    made = Simulator(
        setting,
        judges=lambda name: setting.bundle,
        backend=LocalBackend(policy, RolloutConfig()),
        reward=Failing(),
    )
    with pytest.raises(HarnessctlError, match="the judge is gone"):
        made.groups([0], 2)
