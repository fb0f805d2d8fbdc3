"""Twins of tools: what they are called, say and answer, and that a harness with them keeps the laws."""

from __future__ import annotations

import asyncio

import msgspec
import pytest
from robust_jobs import built, host

from harnessctl.augment.languages import Language
from harnessctl.augment.laws import Audit
from harnessctl.augment.twins import MODULE, scopes, twin, twin_names, twin_result, twin_source, twinned
from harnessctl.bundle.state import HarnessState, Tool
from harnessctl.bundle.variation import rebuild
from harnessctl.runtime.code import Code
from harnessctl.runtime.surface import SurfaceView


def of(harness: str, name: str) -> tuple[HarnessState, Tool]:
    state = host(harness).state
    return state, next(tool for tool in state.tools if tool.name == name)


@pytest.mark.parametrize("harness", ["live-stream", "mini"])
def test_every_tool_but_those_that_load_or_end_has_twins(harness: str) -> None:
    state = host(harness).state
    names = {tool.name for tool in twinned(state)}
    assert names == {tool.name for tool in state.tools} - {"load_skill", "stay_silent"}


def test_a_twin_is_near_in_name_description_and_parameters() -> None:
    state, tool = of("live-stream", "get_product")
    scope = scopes("en")[0]
    assert twin_names("get_product", scope) == ("get_product_archive", "get_archived_product")
    assert twin_names("quote", scope) == ("quote_archive", "archived_quote")
    made = twin(state, tool, scope, "get_product_archive", "en", MODULE)
    said = "".join(part for part in made.description if isinstance(part, str))
    assert said.startswith("Returns name, current price, stock,")
    assert said.endswith("of this room, as it was recorded last season; none of it holds now.")
    assert (made.parameters, made.docs) == (tool.parameters, tool.docs)
    assert made.effect == "none"


def test_a_harness_of_few_words_has_twins_of_few_words() -> None:
    state, tool = of("mini", "get_product")
    made = twin(state, tool, scopes("en")[1], "get_product_draft", "en", MODULE)
    assert made.description == ["price and facts of a link", " (draft of a later stream)"]


def test_twins_do_not_route_replies_or_open_doors() -> None:
    state, order = of("live-stream", "get_order")
    assert "personal" in order.tags
    assert "personal" not in twin(state, order, scopes("en")[0], "x", "en", MODULE).tags
    guarded = msgspec.structs.replace(
        state.hooks[0], id="auth", event="pre_tool", check={"any": [{"tool_called": {"tags": ["lookup"], "ok": True}}]}
    )
    wary = msgspec.structs.replace(state, hooks=[*state.hooks, guarded])
    assert twin(wary, order, scopes("en")[0], "x", "en", MODULE).tags == []


@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize("harness", ["live-stream", "mini"])
def test_a_twin_answers_in_the_shape_of_its_tool(harness: str, language: Language) -> None:
    state, tool = of(harness, "get_product")
    made = [twin(state, tool, scope, scope.name, language, MODULE) for scope in scopes(language)]
    assert all(one.run is not None for one in made)
    told = [twin_result(state, (one.run or {})["python"], {"link_id": 3}) for one in made]
    assert told == [twin_result(state, (one.run or {})["python"], {"link_id": 3}) for one in made]
    for one in told:
        assert {"price", "stock", "name", "record"} <= set(one)
        assert one.get("link_id", one.get("link")) == 3
        assert one["price"] > 0
    assert len({one["price"] for one in told}) > 1, "each scope has values of its own"
    assert twin_result(state, (made[0].run or {})["python"], {"link_id": 4})["price"] != told[0]["price"]


def test_the_code_is_one_module_that_runs_in_a_bundle() -> None:
    state = host("live-stream").state
    code = Code("", {MODULE: twin_source(state)})
    for tool in twinned(state):
        for scope in scopes("en"):
            function = code.function(f"{MODULE}:{tool.name}__{scope.name}__zh")
            answer = function()
            assert not asyncio.iscoroutine(answer)
            msgspec.json.encode(answer)


@pytest.mark.parametrize("harness", ["live-stream", "mini"])
def test_a_harness_with_distractors_keeps_the_laws_of_augmentation(harness: str) -> None:
    parent = host(harness)
    audit = Audit(parent.state)
    for item in built("tool-robust", harness).items[:12]:
        assert item.variation is not None
        bundle = rebuild(parent, item.variation)
        assert audit.check(item.variation, bundle.state, thorough=True) == []
        shown = {tool["function"]["name"] for tool in SurfaceView(bundle.state).tools}
        assert item.scenario.task is not None
        assert {one.tool for one in item.scenario.task.distractors} < shown


def test_a_further_block_is_no_augmentation() -> None:
    parent = host("mini")
    item = built("prompt-robust", "mini").items[0]
    assert item.variation is not None
    broken = Audit(parent.state).check(item.variation, rebuild(parent, item.variation).state)
    assert [one.law for one in broken if "a block that the parent does not have" in one.reason] == ["a"]
