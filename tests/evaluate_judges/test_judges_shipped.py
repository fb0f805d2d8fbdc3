"""The shipped judge on the shipped host: what it is shown, and that it looks facts up in the same world."""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path
from typing import Any

import orjson
import pytest
from judge_project import Judging, answer, judged

from harnessctl.bundle.files import Bundle
from harnessctl.compile.revision import compiled
from harnessctl.evaluate.judging.case import labelled_case
from harnessctl.evaluate.judging.construction import constructed
from harnessctl.evaluate.judging.roles import check_roles, load_roles, unfit_judge
from harnessctl.records.calibration import CalibrationItem
from harnessctl.records.vote import Vote
from harnessctl.simulate.world import LiveWorld, open_world


@pytest.fixture(scope="module")
def shop(repository: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the shipped project."""
    root = tmp_path_factory.mktemp("shop")
    for name in ("manifests", "skills"):
        shutil.copytree(repository / name, root / name, ignore=shutil.ignore_patterns("__pycache__"))
    return root


@pytest.fixture(scope="module")
def live_judge(shop: Path) -> Bundle:
    return compiled(shop, "live-judge")


@pytest.fixture(scope="module")
def shop_world(shop: Path):
    world = open_world(shop / "manifests" / "worlds" / "live-room.yaml", cache=shop / "build" / "worlds")
    yield world
    world.close()


@pytest.fixture(scope="module")
def items(shop: Path) -> list[CalibrationItem]:
    return asyncio.run(constructed(shop, compiled(shop, "live-stream"), n=24))


def test_the_shipped_roles_are_separate_and_their_judge_can_judge(shop: Path, live_judge: Bundle):
    assert check_roles(shop, lambda name: compiled(shop, name)).items == []
    assert load_roles(shop).roles.panel.models == ["deepseek-pro", "glm", "qwen-max"]
    assert unfit_judge(live_judge) == ""
    assert {tool.name for tool in live_judge.state.tools} >= {"get_product", "search_faq", "get_order", "quote_price"}


@pytest.mark.parametrize("harness", ["live-stream", "mini"])
def test_a_judge_is_shown_all_that_the_host_was_shown(
    shop: Path, live_judge: Bundle, shop_world: LiveWorld, items: list[CalibrationItem], harness: str
):
    made = items[:8] if harness == "live-stream" else asyncio.run(constructed(shop, compiled(shop, harness), n=4))
    cases = [case for each in made if (case := labelled_case(each)) is not None]
    model = Judging()
    votes = judged(shop, live_judge, {harness: model}, *cases, world=shop_world, workers=1)
    assert all(of_item[0].accuracy == 1 for of_item in votes)
    for case, request in zip(cases, model.requests, strict=True):
        system, user = request.messages[0]["content"], request.messages[1]["content"]
        assert case.request.viewer_messages()[0].text in user
        assert case.reply in user or not case.reply
        assert all(call["name"] in user for call in case.calls)
        assert case.context["room"]["name"] in system
        assert "What a right answer does" not in system
        assert f"Item {case.id}\n" in user
        assert {tool["function"]["name"] for tool in request.tools} == {tool.name for tool in live_judge.state.tools}


def test_each_evidence_tool_looks_into_the_same_world(
    shop: Path, live_judge: Bundle, shop_world: LiveWorld, items: list[CalibrationItem]
):
    """What the host's own tools told it, the judge's tools tell again."""
    known = {tool.name for tool in live_judge.state.tools} - {"load_skill"}
    cases = [case for each in items if (case := labelled_case(each)) is not None]
    calls = {
        case.id: (call["name"], call["arguments"], call["result"])
        for case in cases
        for call in case.calls
        if call["name"] in known and call["status"] == "ok"
    }
    assert len(calls) > 8

    def says(item: str, number: int) -> Any:
        return calls[item][:2] if number == 0 else answer(item)

    asked = [case for case in cases if case.id in calls]
    model = Judging(says)
    votes: list[list[Vote]] = judged(shop, live_judge, {"again": model}, *asked, world=shop_world, workers=1)
    told: dict[str, Any] = {}
    for request in model.requests:
        results = [m["content"] for m in request.messages if m["role"] == "tool"]
        if results:
            told[request.messages[1]["content"].split()[1]] = orjson.loads(results[0])
    assert [of_item[0].lookups for of_item in votes] == [1] * len(asked)
    assert told == {name: result for name, (_, _, result) in calls.items()}
    assert any("****" in repr(result) for result in told.values())  # personal numbers stay hidden from a judge, too


def test_skills_of_grading_can_be_loaded(
    shop: Path, live_judge: Bundle, shop_world: LiveWorld, items: list[CalibrationItem]
):
    case = labelled_case(items[0])
    assert case is not None
    loads = ["grade-facts", "grade-coverage"]

    def says(item: str, number: int) -> Any:
        return ("load_skill", {"skill": loads[number]}) if number < 2 else answer(item)

    model = Judging(says)
    (vote,) = judged(shop, live_judge, {"skilled": model}, case, world=shop_world)[0]
    assert (vote.accuracy, vote.lookups) == (1, 2)
    tools = [m["content"] for m in model.requests[-1].messages if m["role"] == "tool"]
    assert "false promise" in tools[0] and "0.5" in tools[1]
