"""Tool calls: what the model reads of them, what runs beside what, and in which order it is answered."""

from __future__ import annotations

from typing import Any

import pytest
from shop_agent import GET_PRODUCT, PLACE_ORDER, SHOP, ToldHooks, answer, calls, comment, says, tool, tool_texts

from harnessctl.records.trajectory import Trajectory

SAY = says("Done.")


def first_call(name: str, args: Any, **state: Any) -> Trajectory:
    return answer(calls((name, args)), SAY, **state)[0]


def test_an_unknown_tool_is_told_with_those_there_are() -> None:
    trajectory = first_call("get_products", {"link_id": 3}, tools=[GET_PRODUCT, PLACE_ORDER])
    assert tool_texts(trajectory) == ["There is no tool `get_products`. Tools: `get_product`, `place_order`."]
    (call,) = trajectory.tools
    assert (call.name, call.arguments, call.status) == ("get_products", {"link_id": 3}, "invalid")


@pytest.mark.parametrize(
    ("written", "cause"),
    [
        ('{"link_id": 3', "unexpected end of data"),
        ("[3]", "it is an array"),
        ("null", "it is null"),
        ("3", "it is a number"),
        ("true", "it is a boolean"),
        ('{"link_id": NaN}', "unexpected character"),
        ("link 3, please", "unexpected character"),
    ],
)
def test_broken_arguments_are_told_kept_and_never_repaired(written: str, cause: str) -> None:
    trajectory = first_call("get_product", written)
    (call,) = trajectory.tools
    assert (call.status, call.arguments, call.raw) == ("invalid", {}, written)
    (text,) = tool_texts(trajectory)
    assert text.startswith("The arguments of `get_product` must be a JSON object: ") and cause in text
    assert text.endswith(f"You wrote: {written}")
    shown = trajectory.messages[2]["tool_calls"][0]["function"]["arguments"]
    assert shown == "{}"  # an endpoint refuses a context with arguments that are no object


def test_long_broken_arguments_are_quoted_in_part() -> None:
    trajectory = first_call("get_product", "x" * 10_000_000)
    assert len(tool_texts(trajectory)[0]) < 400
    assert len(trajectory.tools[0].raw or "") == 10_000_000


def test_no_arguments_at_all_are_no_arguments() -> None:
    trajectory = first_call("stay_silent", "")
    assert (trajectory.stop, trajectory.tools[0].raw) == ("silent", None)


def test_arguments_that_do_not_fit_are_told() -> None:
    trajectory = first_call("get_product", {"link_id": "three", "colour": "red"})
    (call,) = trajectory.tools
    assert call.status == "invalid" and call.arguments == {"link_id": "three", "colour": "red"}
    assert "link_id" in tool_texts(trajectory)[0] and "colour" in tool_texts(trajectory)[0]


def test_a_tool_that_fails_is_told_and_recorded() -> None:
    trajectory = first_call("broken", {}, tools=[tool("broken", {})])
    (call,) = trajectory.tools
    assert call.status == "error" and "the shop is on fire" in (call.error or "")
    assert tool_texts(trajectory) == [f"error: {call.error}"]
    assert trajectory.stop == "replied"


def test_a_tool_that_hangs_times_out() -> None:
    trajectory = first_call("hang", {}, tools=[tool("hang", {}, timeout_s=0.01)])
    assert trajectory.tools[0].status == "timeout"
    assert trajectory.stop == "replied"


def test_calls_run_beside_each_other_within_the_limit_and_are_answered_in_order() -> None:
    beside = tool("beside", {"n": {"type": "integer"}})
    message = calls(*(("beside", {"n": n}) for n in range(5)))
    for limit, most in ((1, 1), (2, 2), (8, 5)):
        code = f"# {limit}\n" + SHOP
        trajectory, _ = answer(message, SAY, tools=[beside], limits={"max_parallel_tools": limit}, code={"shop": code})
        assert [c.result["n"] for c in trajectory.tools] == [0, 1, 2, 3, 4]
        assert max(c.result["most"] for c in trajectory.tools) == most
        assert [m["tool_call_id"] for m in trajectory.messages if m["role"] == "tool"] == ["c0", "c1", "c2", "c3", "c4"]


def test_a_write_runs_alone_after_the_calls_before_it() -> None:
    seen: list[tuple[str, list[str]]] = []

    def pre_tool(scene: Any) -> None:
        seen.append((scene.tool.name, [c.name for c in scene.calls]))

    answer(
        calls(("get_product", {"link_id": 3}), ("place_order", {"link_id": 3}), ("get_product", {"link_id": 4})),
        SAY,
        hooks=ToldHooks(pre_tool=pre_tool),
    )
    assert seen == [
        ("get_product", []),
        ("place_order", ["get_product"]),
        ("get_product", ["get_product", "place_order"]),
    ]


def test_ids_that_are_missing_or_doubled_are_given() -> None:
    message = calls(("get_product", {"link_id": 3}), ("get_product", {"link_id": 4}))
    message.tool_calls[0].id = ""
    message.tool_calls[1].id = ""
    trajectory, _ = answer(message, SAY)
    ids = [call["id"] for call in trajectory.messages[2]["tool_calls"]]
    assert ids == ["call_1_0", "call_1_1"]
    assert [m["tool_call_id"] for m in trajectory.messages if m["role"] == "tool"] == ids


def test_the_tools_own_dict_lives_as_long_as_the_request() -> None:
    trajectory, _ = answer(
        calls(("place_order", {"link_id": 3})), calls(("place_order", {"link_id": 4})), SAY, request=comment("both")
    )
    assert trajectory.tools[-1].result == {"orders": [3, 4]}


def test_a_call_cannot_outlive_the_request() -> None:
    hang = tool("hang", {}, timeout_s=1000.0)
    trajectory = first_call("hang", {}, tools=[hang], limits={"deadline_s": 0.02})
    assert trajectory.stop == "deadline"
    assert trajectory.tools[0].status == "timeout"
