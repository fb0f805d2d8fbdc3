"""A shop for the oracle: a harness state made by hand, scenarios of it, and runs through a real agent."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec

from harnessctl.bundle import Bundle, make_bundle
from harnessctl.bundle.state import (
    Action,
    Block,
    HarnessState,
    Hook,
    Limit,
    Message,
    Part,
    Prompt,
    Rule,
    Skill,
    Surface,
    Tool,
)
from harnessctl.bundle.text import Text
from harnessctl.manifests.specs.harness import DEFAULT_LIMITS
from harnessctl.records.comment import CommentInput
from harnessctl.records.scenario import Fact, Gold, GoldCall, Scenario
from harnessctl.records.trajectory import Trajectory
from harnessctl.runtime.agent import Agent
from harnessctl.runtime.protocols import InjectedFault
from harnessctl.simulate.clock import still_clock
from harnessctl.simulate.flaws import flaw
from harnessctl.simulate.oracle import Oracle

CODE = """
PRICES = {1: 189, 2: 59}


def find_user(email):
    if email != "mira@example.com":
        raise LookupError("user not found")
    return {"user_id": "u1"}


def get_order(order_id):
    if order_id == "A9":
        raise PermissionError("another customer's order")
    return {"order_id": order_id, "status": "paid"}


def cancel_order(order_id):
    return {"order_id": order_id, "status": "cancelled"}


def get_product(link_id):
    return {"link_id": link_id, "price": PRICES[link_id], "list_price": 259}


def check_stock(link_id):
    return {"link_id": link_id, "stock": 7}


def search(query):
    return {"links": [1, 2]}


def show_card(link_id):
    return {"shown": True}
"""

NUMBER = {"type": "integer"}
TEXT = {"type": "string"}


def tool(name: str, properties: dict[str, Any], *tags: str, optional: tuple[str, ...] = (), **fields: Any) -> Tool:
    return Tool(
        name=name,
        description=[f"About {name}."],
        group=fields.pop("group", "retrieval"),
        tags=list(tags),
        parameters={
            "type": "object",
            "properties": properties,
            "required": [p for p in properties if p not in optional],
            "additionalProperties": False,
        },
        run=fields.pop("run", {"python": f"shop:{name}"}),
        **fields,
    )


TOOLS = [
    tool("load_skill", {"skill": TEXT}, run={"builtin": "load_skill"}),
    tool("find_user", {"email": TEXT}, "auth"),
    tool("get_order", {"order_id": TEXT}, "private", result={"type": "object", "required": ["order_id", "status"]}),
    tool("cancel_order", {"order_id": TEXT}, "private", effect="write"),
    tool("get_product", {"link_id": NUMBER}, "price", result={"type": "object", "required": ["price"]}),
    tool("check_stock", {"link_id": NUMBER}),
    tool("search", {"query": TEXT}),
    tool("show_card", {"link_id": NUMBER}, effect="write"),
    tool("stay_silent", {}, run=None, final={"reply": "", "route": "silent"}),
]


def skill(name: str, kind: Any = "reply") -> Skill:
    return Skill(
        name=name,
        kind=kind,
        description=[f"Does {name}."],
        body=[Part(text=["Fact first.\n"], rules=["first"])],
        rules=[Rule(id="first", text=["Say the fact first."])],
    )


def hook(id: str, event: Any, check: dict[str, Any] | None, action: str = "block", text: Text | None = None,
         **fields: Any) -> Hook:  # fmt: skip
    message = Message(text=text or [f"Not yet: {id}."], role=fields.pop("role", None), wrap=fields.pop("wrap", None))
    then = Action(
        action=action,
        message=message,
        max_retries=fields.pop("max_retries", None),
        exhausted=fields.pop("exhausted", None),
    )  # pyrefly: ignore
    place = "otherwise" if check is not None else "then"
    return Hook(id=id, event=event, check=check, when=fields.pop("when", {}), **{place: then}, **fields)


AUTHENTICATE = hook(
    "authenticate",
    "pre_tool",
    {"tool_called": {"tags": ["auth"], "ok": True, "scope": "session"}},
    when={"tags": ["private"]},
)
ORDER_FIRST = hook(
    "order-first",
    "pre_tool",
    {"tool_called": {"tools": ["get_order"], "ok": True, "same_args": ["order_id"]}},
    when={"tools": ["cancel_order"]},
)
PRICE_LOOKED_UP = hook(
    "price-looked-up",
    "stop",
    {"any": [{"regex": {"must_not": r"\d+ yuan"}}, {"tool_called": {"tags": ["price"], "ok": True}}]},
    "retry",
    max_retries=1,
    exhausted="block",
)
SHORT = hook("short", "stop", {"max_chars": {"limit": "reply_max_chars"}}, "retry", max_retries=1, exhausted="block")
NUMBERS = hook("numbers", "stop", {"grounded_numbers": {"ignore_below": 3}}, "retry", max_retries=2, exhausted="block")


def state(*hooks: Hook, surface: Surface | None = None, **limits: float) -> HarnessState:
    values: dict[str, float] = {**DEFAULT_LIMITS, "max_rounds": 6, "reply_max_chars": 60, **limits}
    return HarnessState(
        skills=[skill("item"), skill("orders"), skill("chat"), skill("nudge", "strategy")],
        tools=TOOLS,
        hooks=list(hooks),
        prompt=Prompt(blocks=[Block(id="base", template="You are the host.")]),
        limits={name: Limit(value=value) for name, value in values.items()},
        require_skill="reply",
        code={"shop": CODE},
        surface=surface or Surface(),
    )


def bundle(of: HarnessState) -> Bundle:
    return make_bundle(of, name="shop", version="1.0.0")


def call(name: str, /, **arguments: Any) -> GoldCall:
    return GoldCall(tool=name, arguments=arguments)


def scenario(text: str = "How much is link 1? Yes, do it.", *, id: str = "s1", **gold: Any) -> Scenario:
    gold.setdefault("skills", ["item"])
    gold.setdefault("replies", ["Here you are.", "There you are.", "It is done."])
    return Scenario(
        id=id,
        request=CommentInput(id=id, text=text),
        harness="shop",
        intent="price",
        family="price",
        language="en",
        gold=Gold(**gold),
    )


def price(**gold: Any) -> Scenario:
    return scenario(
        **{
            "calls": [call("get_product", link_id=1)],
            "facts": [Fact(any=["189 yuan"], source="get_product")],
            "replies": ["Link 1 is 189 yuan.", "It is 189 yuan, link 1.", "For 189 yuan it is yours."],
            "fallbacks": ["The link shows its price."],
            "claims": ["the lowest price ever"],
            "known": {"link_id": 1},
        }
        | gold
    )


class Told:
    """Faults by tool: what comes of its first, second, ... call; None is no fault."""

    def __init__(self, **by_tool: list[InjectedFault | None]) -> None:
        self.by_tool = by_tool

    def draw(self, request_id: str, tool: Tool, args: dict[str, Any], number: int) -> InjectedFault | None:
        faults = self.by_tool.get(tool.name, [])
        return faults[number] if number < len(faults) else None


TIMEOUT = InjectedFault(kind="timeout", status="timeout", error="no answer within 3 s")
MISFIT = InjectedFault(kind="malformed", status="error", error="the tool's result does not fit its schema: /price")
CUT = InjectedFault(kind="malformed", change=lambda result: '{"link_id": 1, "pri')
DENIED = InjectedFault(kind="denied", status="denied", error="not permitted: access was refused")
STALE = InjectedFault(
    kind="stale", change=lambda result: {"stale": True, "as_of": "an hour ago"} | result | {"price": 170}
)


def play(
    of: HarnessState,
    what: Scenario,
    *,
    faults: Told | None = None,
    flawed: str | None = None,
    seed: int = 0,
    loop: Any = "harness",
) -> Trajectory:
    """The scenario carried out by the oracle."""

    async def run() -> Trajectory:
        oracle = Oracle(of, lambda id: what, seed=seed, flaw=flaw(flawed) if flawed else None)
        async with await Agent.open(bundle(of), oracle, clock=still_clock(), faults=faults, env={}) as agent:
            return await agent.run(what.request)

    return asyncio.run(run())


def calls(trajectory: Trajectory) -> list[tuple[str, str]]:
    """(tool, status) of each call, skills aside."""
    return [(c.name, c.status) for c in trajectory.tools if c.name != "load_skill"]


def changed(of: HarnessState, **fields: Any) -> HarnessState:
    return msgspec.structs.replace(of, **fields)
