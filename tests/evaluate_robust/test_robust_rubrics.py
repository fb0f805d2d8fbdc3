"""Rubrics on made-up trajectories: TC, RC, ACQ, TCO, what faults excuse, and a score's averages."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from harnessctl.records.scenario import Gold, GoldCall, Scenario
from harnessctl.records.score import Score
from harnessctl.records.task import Addresses, Called, Checked, Mentions, Ordered, Says, Task
from harnessctl.records.trajectory import Trajectory
from harnessctl.score.rubrics import Verdicts
from harnessctl.score.rules import RuleScorer
from tests.score.score_cases import call, gold, load, look_up, scenario, trajectory

PRODUCT = GoldCall(tool="get_product", arguments={"link_id": 3})
STOCK = GoldCall(tool="check_stock", arguments={"link_id": 3})
TC = Called(id="TC", plans=[[PRODUCT]])
RC = Says(id="RC", any=["89 yuan", "89元"], source="get_product")
ACQ = Addresses(id="ACQ", about=["89 yuan", "link 3"], units=["yuan"])


def verdict(rubric: Checked, run: Trajectory, right: Gold | None = None, **fields: Any) -> tuple[bool, list[str]]:
    task = Task(set="made-up", rubrics=[rubric])
    asked = msgspec.structs.replace(scenario(gold() if right is None else right, **fields), task=task)
    assert isinstance(asked, Scenario)
    found = Verdicts(run, asked, task)
    return found.passed[rubric.id], found.reasons.get(rubric.id, [])


def test_tc_wants_the_call_with_its_arguments() -> None:
    assert verdict(TC, trajectory()) == (True, [])
    assert verdict(TC, trajectory("x", look_up(status="error"))) == (False, ["not called: `get_product`"])
    other = call("get_product_archive", {"price": 89}, link_id=3)
    assert verdict(TC, trajectory("x", other))[0] is False
    assert verdict(TC, trajectory("x", call("get_product", {}, link_id=4)))[0] is False


def test_tc_takes_any_of_the_plans_whole() -> None:
    either = Called(id="TC", plans=[[PRODUCT, STOCK], [STOCK]])
    assert verdict(either, trajectory("x", call("check_stock", {}, link_id=3)))[0] is True
    assert verdict(either, trajectory("x", look_up())) == (False, ["not called: `check_stock`"])


def test_rc_wants_what_the_tool_told() -> None:
    assert verdict(RC, trajectory("Link 3 costs ¥89.00."))[0] is True
    assert verdict(RC, trajectory("Link 3 is 98 yuan.")) == (False, ["not said: 89 yuan"])
    assert verdict(RC, trajectory(""))[0] is False


def test_a_call_lost_to_a_fault_excuses_it_and_its_fact() -> None:
    spoiled = [look_up(status="timeout", fault="timeout", at=at) for at in (1, 2)]
    run = trajectory("Please tap link 3.", *spoiled)
    assert verdict(TC, run)[0] is True
    assert verdict(RC, run)[0] is True
    assert verdict(ACQ, run)[0] is True
    once = trajectory("Please tap link 3.", spoiled[0])
    assert verdict(TC, once)[0] is False, "another try would have mended it"


@pytest.mark.parametrize(
    ("reply", "passed"),
    [
        ("Link 3 is 89 yuan.", True),
        ("It is 129 yuan.", True),  # wrong, and an answer
        ("Please have a look at link 3.", True),
        ("Link 4 is 89 yuan.", False),
        ("How lovely that you are here.", False),
        ("3号是89元。", False),
        ("", False),
    ],
)
def test_acq_is_of_the_subject_not_of_the_truth(reply: str, passed: bool) -> None:
    assert verdict(ACQ, trajectory(reply))[0] is passed


def test_acq_wants_a_question_where_one_is_due() -> None:
    asking = Addresses(id="ACQ", asks=True)
    right = gold(calls=[], facts=[], replies=["Which link do you mean?"])
    assert verdict(asking, trajectory("Which one is it?"), right)[0] is True
    assert verdict(asking, trajectory("It is lovely."), right) == (False, ["a question back was due"])


def test_acq_wants_the_ending_that_gold_has() -> None:
    assert verdict(ACQ, trajectory("", stop="hook_blocked"))[0] is False


ORDER = Ordered(id="TCO", tools=["check_stock", "get_product"])


def test_tco_reads_the_first_calls() -> None:
    stock = call("check_stock", {}, link_id=3)
    assert verdict(ORDER, trajectory("x", load("item-qa"), stock, look_up()))[0] is True
    assert verdict(ORDER, trajectory("x", look_up(), stock)) == (
        False,
        ["`get_product` was called before `check_stock`"],
    )
    assert verdict(ORDER, trajectory("x", look_up())) == (False, ["`check_stock` was not called"])
    blocked = call("get_product", None, status="blocked", link_id=3)
    assert verdict(ORDER, trajectory("x", blocked, stock, look_up()))[0] is True


def test_tco_first_and_last() -> None:
    stock = call("check_stock", {}, link_id=3)
    first = msgspec.structs.replace(ORDER, first=True)
    last = msgspec.structs.replace(ORDER, last=True)
    assert verdict(first, trajectory("x", load("item-qa"), stock, look_up()))[1] == [
        "`load_skill` was called before `check_stock`"
    ]
    assert verdict(first, trajectory("x", stock, look_up(), load("item-qa")))[0] is True
    assert verdict(last, trajectory("x", stock, look_up(), load("item-qa")))[1] == [
        "`load_skill` was called after `get_product`"
    ]
    assert verdict(last, trajectory("x", stock, look_up()))[0] is True


def test_making_a_spoiled_call_again_is_no_step_of_the_order() -> None:
    stock = [
        call("check_stock", None, status="timeout", fault="timeout", link_id=3),
        call("check_stock", {}, link_id=3),
    ]
    assert verdict(ORDER, trajectory("x", stock[0], look_up(), stock[1]))[0] is True


def test_without_skills_their_order_is_not_asked() -> None:
    wants_skill = Ordered(id="TCO", tools=["load_skill", "get_product"])
    task = Task(set="made-up", rubrics=[wants_skill, RC])
    asked = msgspec.structs.replace(scenario(gold()), task=task)
    found = Verdicts(trajectory("Link 3 is 89 yuan.", look_up(), loop="react"), asked, task)
    assert found.passed == {"RC": True}


def test_a_harness_with_another_loader_is_scored_the_same() -> None:
    wants_skill = Ordered(id="TCO", tools=["load_skill", "get_product"])
    asked = msgspec.structs.replace(scenario(gold()), task=Task(set="made-up", rubrics=[wants_skill]))
    opened = call("open_guide", {"skill": "item-qa", "loaded": True}, skill="item-qa")
    score = RuleScorer(loader="open_guide").score(trajectory("Link 3 is 89 yuan.", opened, look_up()), asked)
    assert score.rubrics == {"TCO": True}


def test_avg_is_the_share_of_rubrics_passed() -> None:
    task = Task(set="made-up", level="hard", rubrics=[ACQ, RC, TC, Mentions(id="FI", text="hello")])
    asked = msgspec.structs.replace(scenario(gold()), task=task)
    score = RuleScorer().score(trajectory(), asked)
    assert score.rubrics == {"ACQ": True, "RC": True, "TC": True, "FI": False}
    assert (score.average, score.value("FI"), score.value("TCO"), score.level) == (0.75, 0.0, None, "hard")
    assert score.accuracy == 1, "the dimensions are there beside them"
    assert score.reasons["FI"] == ["does not say: hello"]


def test_several_rubrics_of_a_metric_are_a_share() -> None:
    score = Score(id="a", scenario="a", scorer="rules", bundle="", rubrics={"RC-1": True, "RC-2": False, "TC": True})
    assert (score.value("RC"), score.value("TC"), score.average) == (0.5, 1.0, 2 / 3)


def test_no_score_is_no_rubric() -> None:
    asked = msgspec.structs.replace(scenario(gold()), task=Task(set="made-up", rubrics=[RC]))
    score = RuleScorer().score(trajectory("", stop="model_error", error="gone"), asked)
    assert (score.rubrics, score.average, score.value("RC")) == ({}, None, None)


def test_scores_without_rubrics_read_as_before() -> None:
    line = b'{"format":"harnessctl/score.v1","id":"a","scenario":"a","scorer":"rules","bundle":"b","accuracy":1.0,"effectiveness":0.5}'
    score = msgspec.json.decode(line, type=Score)
    assert (score.average, score.rubrics, score.value("accuracy")) == (0.75, {}, 1.0)
    assert msgspec.json.encode(score) == line
