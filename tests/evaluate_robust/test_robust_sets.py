"""Built sets: what an item has, that each of its rubrics can be passed and failed, and what was not taken."""

from __future__ import annotations

from collections import Counter

import pytest
from robust_jobs import ROOT, N, built, host, job_of, opened, scores

from harnessctl.augment.stream import Stream
from harnessctl.bundle.set_item import SetItem
from harnessctl.bundle.variation import rebuild
from harnessctl.errors import UsageError
from harnessctl.evaluate.building.making import MOST_IN_VAIN, Refused, build, content_key
from harnessctl.evaluate.building.near import COUNTS
from harnessctl.evaluate.building.orders import order_for
from harnessctl.evaluate.sets import set_named
from harnessctl.records.comment import CommentInput, ViewerMessage
from harnessctl.records.scenario import Scenario
from harnessctl.records.task import Task, metric_of
from harnessctl.runtime.prompt import PromptView
from harnessctl.runtime.surface import SurfaceView
from harnessctl.score.facts import is_said
from harnessctl.score.phrases import Said
from harnessctl.simulate.obeying import keeps

HOSTS = ["live-stream", "mini"]
SETS = ["tool-robust", "prompt-robust"]


def task_of(item: SetItem) -> Task:
    assert item.scenario.task is not None
    return item.scenario.task


@pytest.mark.parametrize("harness", HOSTS)
@pytest.mark.parametrize("suite", SETS)
def test_no_item_is_like_another(suite: str, harness: str) -> None:
    items = built(suite, harness).items
    assert len(items) == N
    assert len({content_key(item.scenario) for item in items}) == N
    assert len({item.scenario.id for item in items}) == N
    assert {item.scenario.language for item in items} == {"en", "zh"}
    assert {task_of(item).level for item in items} == {"easy", "medium", "hard"}


@pytest.mark.parametrize("harness", HOSTS)
@pytest.mark.parametrize("suite", SETS)
def test_the_oracle_passes_every_rubric(suite: str, harness: str) -> None:
    found = scores(suite, harness, N)
    assert [score.average for score in found] == [1.0] * N
    assert all(score.accuracy == score.effectiveness == score.skill_selection == 1 for score in found)
    assert Counter(metric_of(name) for score in found for name in score.rubrics) == Counter(
        metric_of(rubric.id) for item in built(suite, harness).items for rubric in task_of(item).rubrics
    )


@pytest.mark.parametrize("harness", HOSTS)
@pytest.mark.parametrize("suite", SETS)
def test_a_longer_set_begins_with_the_shorter_one(suite: str, harness: str) -> None:
    assert built(suite, harness, 8).items == built(suite, harness).items[:8]
    other = {content_key(item.scenario) for item in built(suite, harness, 8, 1).items}
    assert other != {content_key(item.scenario) for item in built(suite, harness, 8).items}


@pytest.mark.parametrize("harness", HOSTS)
def test_what_was_looked_at_was_taken_or_has_a_reason(harness: str) -> None:
    for suite in SETS:
        found = built(suite, harness)
        assert found.drawn == len(found.items) + found.rejected.total() + found.passed_over.total()
        known = {"duplicate", "oracle misses it", "told without the tool", "rubric cannot fail", "distractor answers",
                 "no instruction fits", "hook objects"}  # fmt: skip
        assert set(found.rejected) <= known


@pytest.mark.parametrize("harness", HOSTS)
def test_tool_items_have_the_distractors_of_their_level(harness: str) -> None:
    for item in built("tool-robust", harness).items:
        task = task_of(item)
        kinds = Counter(one.near for one in task.distractors)
        twins, siblings, far = COUNTS[task.level or "easy"]
        assert (kinds["twin"], kinds["sibling"] <= siblings, kinds["far"]) == (twins, True, far)
        gold = item.scenario.gold
        assert gold is not None and item.variation is not None
        due = {call.tool for call in gold.calls}
        assert {one.like for one in task.distractors if one.near == "twin"} <= due
        assert not {one.like for one in task.distractors if one.near == "sibling"} & due
        state = rebuild(host(harness), item.variation).state
        assert {one.tool for one in task.distractors} <= {tool.name for tool in state.tools}
        assert {metric_of(rubric.id) for rubric in task.rubrics} == {"ACQ", "RC", "TC"}


@pytest.mark.parametrize("harness", HOSTS)
def test_no_fact_of_a_tool_item_is_told_without_the_tool(harness: str) -> None:
    for item in built("tool-robust", harness).items:
        gold = item.scenario.gold
        assert gold is not None
        facts = [fact for fact in gold.facts if fact.source is not None]
        for text in gold.fallbacks:
            assert not any(is_said(fact, Said(text)) for fact in facts), (text, facts)


@pytest.mark.parametrize("harness", HOSTS)
def test_prompt_items_show_their_instructions_to_the_model(harness: str) -> None:
    for item in built("prompt-robust", harness).items:
        task = task_of(item)
        assert item.variation is not None and item.scenario.gold is not None
        state = rebuild(host(harness), item.variation).state
        block = state.prompt.blocks[-1]
        surface = SurfaceView(state)
        shown = [surface.render(rule.text) for rule in block.items]
        assert shown == task.instructions
        instructions = [rubric for rubric in task.rubrics if metric_of(rubric.id) == "FI"]
        assert len(instructions) == {"easy": 1, "medium": 2, "hard": 3}[task.level or "easy"]
        plain = item.scenario.gold.replies
        assert 2 * sum(keeps(text, instructions) for text in plain) <= len(plain)
        if not any("{{" in (part.template or "") for part in state.prompt.blocks):
            assert all(text in PromptView(state, surface).system({}, []) for text in shown)


def test_orders_are_asked_where_a_tool_is_due() -> None:
    items = built("prompt-robust", "live-stream").items
    ordered = [item for item in items if any(rubric.id == "TCO" for rubric in task_of(item).rubrics)]
    assert len(items) / 3 < len(ordered) < len(items)
    for item in ordered:
        gold = item.scenario.gold
        assert gold is not None
        rubric = next(rubric for rubric in task_of(item).rubrics if rubric.id == "TCO")
        assert {call.tool for call in (*gold.calls, *gold.optional)} | {"load_skill"} >= set(rubric.tools)


def test_an_order_names_tools_by_reference() -> None:
    setting = opened(job_of("live-qa", "live-stream", 1))
    found = [order_for(setting.scenario(n), setting.planner, Stream(n)) for n in range(60)]
    orders = [order for order in found if order is not None]
    assert 0 < len(orders) < len(found), "talk has no calls to put in order"
    for order in orders:
        refs = [part for part in order.text if not isinstance(part, str)]
        assert [part.kind for part in refs] == ["tool", "tool"]


class _Maker:
    """Takes every scenario, or none; what is asked is the number's rest by `kinds`."""

    name = "made-up"

    def __init__(self, kinds: int, refused: Refused | None = None) -> None:
        self.kinds, self.refused, self.is_closed = kinds, refused, False

    def scenario(self, number: int) -> Scenario:
        request = CommentInput(id=str(number), text=f"question {number % self.kinds}")
        return Scenario(id=str(number), request=request, harness="h", intent="i", family="f", language="en")

    def bars(self, key: str) -> bool:
        return False

    async def make(self, scenario: Scenario, number: int) -> SetItem | Refused:
        return self.refused or SetItem(set=self.name, scenario=scenario)

    async def aclose(self) -> None:
        self.is_closed = True


def test_duplicates_are_replaced_by_what_follows() -> None:
    maker = _Maker(5)
    found = build(lambda: maker, 5)
    assert [item.scenario.id for item in found.items] == list("01234")
    assert maker.is_closed
    with pytest.raises(UsageError, match=f"{5 + MOST_IN_VAIN} scenarios .* give 5 items that pass, not 6") as caught:
        build(lambda: _Maker(5), 6)
    assert "duplicate (2000)" in caught.value.hint


def test_what_is_refused_is_counted() -> None:
    with pytest.raises(UsageError) as caught:
        build(lambda: _Maker(10**6, Refused("no good")), 1)
    assert f"no good ({MOST_IN_VAIN})" in caught.value.hint


def test_progress_is_told_item_by_item() -> None:
    told: list[tuple[int, int]] = []
    build(lambda: _Maker(10), 3, lambda done, of: told.append((done, of)))
    assert told == [(1, 3), (2, 3), (3, 3)]


def test_the_same_words_are_the_same_question_whoever_asks() -> None:
    one = _Maker(9).scenario(1)
    said = ViewerMessage("  Question  1", viewer="Mia")
    request = CommentInput(id="x", messages=[said], context={"history": [1]})
    other = Scenario(id="x", request=request, harness="h", intent="i", family="f", language="en")
    assert content_key(one) == content_key(other)
    there = CommentInput(id="x", text="question 1", room="north")
    assert content_key(one) != content_key(
        Scenario(id="x", request=there, harness="h", intent="i", family="f", language="en")
    )


def test_sets_have_the_papers_sizes() -> None:
    assert [(set_named(name).size) for name in SETS] == [1532, 491]
    assert list(set_named("tool-robust").columns.values()) == ["ACQ", "RC", "TC", "AVG"]
    assert list(set_named("prompt-robust").columns.values()) == ["ACQ", "FI", "TCO", "AVG"]
    assert (ROOT / "manifests" / "suites" / "tool-robust.yaml").exists()
