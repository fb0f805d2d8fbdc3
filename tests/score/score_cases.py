"""Made-up trajectories and scenarios for the scorers' tests."""

from __future__ import annotations

from typing import Any

from harnessctl.records.comment import CommentInput
from harnessctl.records.scenario import Fact, Gold, GoldCall, Scenario
from harnessctl.records.trajectory import ToolCall, Trajectory

WRITES = ("create_ticket", "issue_coupon")


def gold(**fields: Any) -> Gold:
    """Gold of a price question: link 3, which costs 89 yuan."""
    given: dict[str, Any] = {
        "skills": ["item-qa"],
        "calls": [GoldCall(tool="get_product", arguments={"link_id": 3})],
        "facts": [Fact(any=["89 yuan", "¥89"], source="get_product")],
        "replies": ["Link 3 is 89 yuan."],
    }
    return Gold(**(given | fields))


def scenario(gold: Gold | None, *, text: str = "how much is link 3?", language: str = "en") -> Scenario:
    return Scenario(
        id="s1", request=CommentInput(id="r1", text=text), harness="shop", intent="product-question", family="price",
        language=language, gold=gold,
    )  # fmt: skip


def call(name: str = "get_product", result: Any = None, *, status: str = "ok", at: int = 1, fault: str | None = None, **arguments: Any) -> ToolCall:  # fmt: skip
    return ToolCall(
        round=at, id="c", name=name, arguments=arguments, status=status, started_s=0.0, ended_s=0.0, result=result,
        fault=fault,
    )  # type: ignore[arg-type]  # fmt: skip


def look_up(**fields: Any) -> ToolCall:
    return call("get_product", {"link_id": 3, "price": 89, "list_price": 129, "stock": 40}, link_id=3, **fields)


def load(skill: str, *, status: str = "ok", at: int = 1) -> ToolCall:
    return call(
        "load_skill", {"skill": skill, "loaded": True} if status == "ok" else None, status=status, at=at, skill=skill
    )


def trajectory(reply: str = "Link 3 is 89 yuan.", *tools: ToolCall, **fields: Any) -> Trajectory:
    """What a right answer to `gold()` looks like; `tools` and fields replace parts of it."""
    given: dict[str, Any] = {
        "stop": "replied",
        "route": "public",
        "skills": ["item-qa"],
        "tools": list(tools) or [load("item-qa"), look_up()],
        "limits": {"max_rounds": 6, "reply_max_chars": 80},
        "request": {"id": "r1", "text": "how much is link 3?"},
        "context": {},
    }
    return Trajectory(
        id="r1", bundle="b", harness="shop", loop=fields.pop("loop", "harness"), model="m", started="", took_s=0.0,
        reply=reply, **(given | fields),
    )  # fmt: skip
