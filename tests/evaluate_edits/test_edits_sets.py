"""The sets of edit compliance: two splits with nothing in common, and situations that provoke talk of what is not known."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from harnessctl.bundle.set_item import SetItem
from harnessctl.bundle.state import Tool
from harnessctl.compile.revision import compiled
from harnessctl.evaluate.building.edit_items import seed_of, split_of
from harnessctl.evaluate.building.making import content_key
from harnessctl.evaluate.config import EvalConfig, FaultsConfig
from harnessctl.evaluate.job import Job
from harnessctl.evaluate.rollouts import Rollouts
from harnessctl.evaluate.sets import set_named
from harnessctl.evaluate.setting import Setting
from harnessctl.manifests.specs.world import FaultRates
from harnessctl.policies import ModelConfig, SamplingConfig
from harnessctl.records.comment import CommentInput
from harnessctl.records.scenario import Gold, GoldCall, Scenario
from harnessctl.records.task import Natural, Task
from harnessctl.simulate.faults import Faults
from harnessctl.simulate.situations import KINDS, Situations

SPLITS = {"dev": "edit-compliance", "test": "edit-compliance-held-out"}
N = 90


@pytest.fixture(scope="module")
def setting(repository: Path) -> Iterator[Setting]:
    config = EvalConfig(
        suite="edit-compliance", model=ModelConfig(name=""), sampling=SamplingConfig(), n=N,
        faults=FaultsConfig(timeout=0.0, malformed=0.0, denied=0.0, stale=0.0),
    )  # fmt: skip
    with Job(repository, compiled(repository, "mini"), config).setting() as opened:
        for name in SPLITS.values():
            set_named(name).items(opened)
        yield opened


def items(setting: Setting, split: str) -> list[SetItem]:
    return setting.built[SPLITS[split]].items


def situation(item: SetItem) -> str:
    assert item.scenario.task is not None
    return item.scenario.task.situation


def test_the_sizes_are_the_papers() -> None:
    assert [set_named(name).size for name in SPLITS.values()] == [500, 1000]


def test_no_scenario_is_in_both_splits(setting: Setting) -> None:
    dev, test = items(setting, "dev"), items(setting, "test")
    assert len(dev) == len(test) == N
    assert {i.scenario.id for i in dev}.isdisjoint(i.scenario.id for i in test)
    asked = {content_key(i.scenario) for i in dev}
    assert asked.isdisjoint(content_key(i.scenario) for i in test)
    assert len(asked) == N


def test_no_seed_is_of_both_splits(setting: Setting) -> None:
    seeds = {seed_of(seed, split) for seed in range(200) for split in ("dev", "test")}
    assert len(seeds) == 400 and min(seeds) > 10**6, "nor of any other set"
    assert {i.scenario.seed for i in items(setting, "dev")} == {seed_of(0, "dev")}
    assert {i.scenario.seed for i in items(setting, "test")} == {seed_of(0, "test")}


def test_what_can_be_asked_is_divided_one_to_two() -> None:
    split = [split_of(0, f"key {number}") for number in range(3000)]
    assert 900 < split.count("dev") < 1100
    assert split == [split_of(0, f"key {number}") for number in range(3000)]
    assert split != [split_of(1, f"key {number}") for number in range(3000)]


@pytest.mark.parametrize("split", ["dev", "test"])
def test_situations_are_well_represented(setting: Setting, split: str) -> None:
    found = [situation(item) for item in items(setting, split)]
    provoked = [kind for kind in found if kind]
    assert 0.3 * N < len(provoked) < 0.7 * N
    assert set(provoked) == set(KINDS)
    for item in items(setting, split):
        gold = item.scenario.gold
        assert gold is not None
        assert not situation(item) or (gold.calls and gold.fallbacks), "a due call, and a natural way on without it"


def test_every_due_call_meets_the_situation(setting: Setting) -> None:
    async def play() -> list[tuple[SetItem, Any, Any]]:
        rollouts = Rollouts(
            setting, judges=lambda name: setting.bundle, items=set_named("edit-compliance").items(setting)
        )
        try:
            return [
                (item, *await rollouts.play(rollouts.item(number)))
                for number, item in enumerate(items(setting, "dev")[:40])
            ]
        finally:
            await rollouts.aclose()

    for item, trajectory, score in asyncio.run(play()):
        gold = item.scenario.gold
        assert gold is not None
        due = {call.tool for call in gold.calls}
        hit = [call.fault for call in trajectory.tools if call.name in due]
        expected = {situation(item)} if situation(item) else {None}
        assert set(hit) <= expected | ({"timeout"} if situation(item) == "missing" else set()), item.scenario.id
        assert bool(hit) is bool(due) or gold.alternatives
        assert (score.value("NAT"), score.findings) == (1.0, [])
        assert score.accuracy == score.effectiveness == 1, "what a situation keeps back is nobody's fault"


TOOL = Tool(name="get", description=[], group="g")
WRITER = Tool(name="put", description=[], group="g", effect="write")


def asked(kind: str, *, arm: str = "") -> Scenario:
    gold = Gold(calls=[GoldCall(tool="get"), GoldCall(tool="put")])
    task = Task(set="x", rubrics=[Natural(id="NAT")], situation=kind, arm=arm)
    request = CommentInput(id="r", text="?")
    return Scenario(id="r", request=request, harness="h", intent="i", family="f", language="en", gold=gold, task=task)


def test_a_situation_comes_every_time_and_to_due_tools_alone() -> None:
    for kind in KINDS:
        faults = Situations({"r": asked(kind)}, None)
        drawn = [faults.draw("r", TOOL, {"link": 3}, number) for number in range(3)]
        assert [fault.kind for fault in drawn if fault is not None] == [kind] * 3
        assert faults.draw("r", Tool(name="other", description=[], group="g"), {}, 0) is None
        assert faults.draw("stranger", TOOL, {}, 0) is None


def test_missing_data_is_an_answer_with_nothing_in_it() -> None:
    fault = Situations({"r": asked("missing")}, None).draw("r", TOOL, {"link": 3}, 0)
    assert fault is not None and fault.change is not None
    told = {"link": 3, "name": "Tea", "price": 89, "left": True, "specs": {"size": "M"}, "options": ["red"]}
    assert fault.change(told) == {
        "link": 3, "name": "", "price": None, "left": None, "specs": {"size": ""}, "options": [],
    }  # fmt: skip
    written = Situations({"r": asked("missing")}, None).draw("r", WRITER, {}, 0)
    assert written is not None and (written.kind, written.change) == ("timeout", None), "what was written was told"


def test_both_arms_meet_the_same_faults_of_the_world() -> None:
    inner = Faults(FaultRates(timeout=0.3, malformed=0.2, denied=0.1, stale=0.1), seed=5)
    plain = msgspec.structs.replace(asked(""), task=None)
    faults = Situations({"r": plain, "r@edited": plain}, inner)
    for number in range(40):
        one, other = (faults.draw(name, TOOL, {"n": number}, 0) for name in ("r", "r@edited"))
        assert (one is None) is (other is None) and (one is None or other is None or one.kind == other.kind)
