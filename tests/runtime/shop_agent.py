"""A small shop: a harness state made by hand, a model that says what it is told, and hooks that are plain functions."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import orjson

from harnessctl.bundle import Bundle, HarnessState, make_bundle
from harnessctl.bundle.state import Block, Limit, Part, Prompt, Rule, Skill, Tool
from harnessctl.bundle.text import Ref
from harnessctl.errors import ModelError
from harnessctl.manifests.specs.harness import DEFAULT_LIMITS
from harnessctl.records.comment import CommentInput, ViewerMessage
from harnessctl.records.trajectory import HookDecision, Trajectory
from harnessctl.runtime.agent import Agent
from harnessctl.runtime.clock import Clock
from harnessctl.runtime.code import Code
from harnessctl.runtime.loop import Loop, loop_state
from harnessctl.runtime.protocols import ModelReply, ModelRequest, ModelToolCall
from harnessctl.runtime.scene import PASS, Scene, Verdict
from harnessctl.runtime.surface import SurfaceView
from harnessctl.runtime.tools.toolset import ToolSet
from harnessctl.trajectory import encode_trajectory

SHOP = """
import asyncio

PRODUCTS = {3: {"name": "Sunscreen SPF50", "price": 89}, 4: {"name": "Hat", "price": 25}}
running = 0
most = 0


def get_product(link_id):
    return PRODUCTS.get(link_id)


def place_order(link_id, ctx):
    ctx.session.setdefault("orders", []).append(link_id)
    return {"orders": ctx.session["orders"]}


def broken(ctx):
    raise RuntimeError("the shop is on fire")


async def hang():
    await asyncio.Event().wait()


async def beside(n):
    global running, most
    running += 1
    most = max(most, running)
    await asyncio.sleep(0)
    running -= 1
    return {"n": n, "most": most}
"""


def tool(name: str, properties: dict[str, Any], **fields: Any) -> Tool:
    parameters = {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }
    fields.setdefault("run", {"python": f"shop:{name}"})
    fields.setdefault("group", "retrieval")
    return Tool(name=name, description=["About ", Ref("tool", name), "."], parameters=parameters, **fields)


LOAD_SKILL = tool("load_skill", {"skill": {"type": "string"}}, group="flow-control", run={"builtin": "load_skill"})
GET_PRODUCT = tool("get_product", {"link_id": {"type": "integer"}}, docs={"/properties/link_id": ["Number of a link."]})
PLACE_ORDER = tool("place_order", {"link_id": {"type": "integer"}}, effect="write", group="commerce")
REFUSE = tool(
    "refuse",
    {"topic": {"type": "string"}},
    group="flow-control",
    run=None,
    final={"reply": "We do not talk about {topic} here.", "route": "public"},
)
STAY_SILENT = tool("stay_silent", {}, group="flow-control", run=None, final={"reply": "", "route": "silent"})

ITEM_QA = Skill(
    name="item-qa",
    kind="reply",
    description=["Answers questions with ", Ref("tool", "get_product"), "."],
    body=[Part(text=["Fact first.\n\n## Rules\n"], rules=["lookup", "short"])],
    rules=[
        Rule(id="lookup", text=["Call ", Ref("tool", "get_product"), " first."], protected=True),
        Rule(id="short", text=["At most ", Ref("limit", "reply_max_chars"), " characters."]),
    ],
)
BARGAIN = Skill(name="bargain", kind="strategy", description=["Haggles."], body=[Part(text=["Hold the price."])])


def shop_state(**fields: Any) -> HarnessState:
    limits: dict[str, int | float] = DEFAULT_LIMITS | {"reply_max_chars": 80} | fields.pop("limits", {})
    defaults: dict[str, Any] = {
        "skills": [ITEM_QA, BARGAIN],
        "tools": [LOAD_SKILL, GET_PRODUCT, PLACE_ORDER, REFUSE, STAY_SILENT],
        "hooks": [],
        "prompt": Prompt(blocks=[Block(id="base", template="You are the host.")]),
        "code": {"shop": SHOP},
    }
    return HarnessState(**(defaults | fields), limits={name: Limit(value=value) for name, value in limits.items()})


def shop_bundle(**fields: Any) -> Bundle:
    return make_bundle(shop_state(**fields), name="shop", version="1.0.0")


Answer = ModelReply | ModelError | Exception | Callable[[ModelRequest], ModelReply]


class ToldModel:
    """Gives the answers in order; what it was asked is in `seen` (messages copied)."""

    name = "told"
    template: str | None = None

    def __init__(self, *answers: Answer) -> None:
        self.answers = list(answers)
        self.requests: list[ModelRequest] = []
        self.seen: list[list[dict[str, Any]]] = []

    async def complete(self, request: ModelRequest) -> ModelReply:
        self.requests.append(request)
        self.seen.append([dict(message) for message in request.messages])
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer(request) if callable(answer) else answer

    async def aclose(self) -> None:
        return None


class HangingModel(ToldModel):
    async def complete(self, request: ModelRequest) -> ModelReply:
        self.requests.append(request)
        await asyncio.Event().wait()
        raise AssertionError("nobody sets the event")


HookFunction = Callable[[Scene], Verdict | None]


class ToldHooks:
    """Hooks by event; each function may change the scene and gives a verdict or None for `pass`."""

    def __init__(self, **functions: HookFunction) -> None:
        self.functions = functions
        self.drained = False

    def has(self, event: str) -> bool:
        return event in self.functions

    async def run(self, event: str, scene: Scene) -> Verdict:
        verdict = self.functions[event](scene) or PASS
        scene.decisions.append(
            HookDecision(hook="told", event=event, round=scene.round, decision=verdict.action, took_s=0.0)
        )
        return verdict

    async def drain(self) -> None:
        self.drained = True


class StoppedClock:
    """Time that moves only when somebody sleeps, or by `advance`."""

    def __init__(self) -> None:
        self.time = 1000.0
        self.slept: list[float] = []

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.time += seconds

    def advance(self, seconds: float) -> None:
        self.time += seconds

    def clock(self) -> Clock:
        return Clock(monotonic=lambda: self.time, sleep=self.sleep)


def says(content: str, **fields: Any) -> ModelReply:
    return ModelReply(content=content, finish_reason="stop", **fields)


def calls(*named: tuple[str, Any], content: str | None = None, **fields: Any) -> ModelReply:
    """A message of tool calls; arguments that are text are given as they are."""
    return ModelReply(
        content=content,
        tool_calls=[
            ModelToolCall(f"c{i}", name, args if isinstance(args, str) else orjson.dumps(args).decode())
            for i, (name, args) in enumerate(named)
        ],
        finish_reason="tool_calls",
        **fields,
    )


def make_agent(
    bundle: Bundle, model: Any, hooks: ToldHooks | None = None, *, loop: Loop = "harness", **fields: Any
) -> Agent:
    state = loop_state(bundle, loop)
    surface = SurfaceView(state)
    clock: Clock | None = fields.get("clock")
    tools = ToolSet(state, code=Code(bundle.digest, state.code), surface=surface, env={}, clock=clock)
    told: Any = hooks or ToldHooks()
    return Agent(bundle, model, tools=tools, hooks=told, surface=surface, loop=loop, **fields)


def comment(text: str = "How much is link 3?", **fields: Any) -> CommentInput:
    return CommentInput(id=fields.pop("id", "r1"), text=text, **fields)


def group(*texts: tuple[str, str]) -> CommentInput:
    return CommentInput(id="r1", messages=[ViewerMessage(text, viewer) for viewer, text in texts])


def answer(
    *answers: Answer,
    request: CommentInput | None = None,
    hooks: ToldHooks | None = None,
    bundle: Bundle | None = None,
    agent: Mapping[str, Any] | None = None,
    **state: Any,
) -> tuple[Trajectory, ToldModel]:
    """One request through a fresh agent."""
    model = ToldModel(*answers)
    made = make_agent(bundle or shop_bundle(**state), model, hooks, **(agent or {}))
    return asyncio.run(made.run(request or comment())), model


def tool_texts(trajectory: Trajectory) -> list[str]:
    return [m["content"] for m in trajectory.messages if m["role"] == "tool"]


def roles(messages: Sequence[Mapping[str, Any]]) -> list[str]:
    return [m["role"] for m in messages]


def as_json(trajectory: Trajectory) -> dict[str, Any]:
    return orjson.loads(encode_trajectory(trajectory))
