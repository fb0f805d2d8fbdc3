"""A small harness of five tools and two skills, and its scenes, for tests of hooks."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import msgspec

from harnessctl.bundle.state import HarnessState, Hook, Limit, Part, Prompt, Rule, Skill, Surface, Tool
from harnessctl.bundle.text import Ref
from harnessctl.records.comment import CommentInput
from harnessctl.records.trajectory import HookDecision, ToolCall
from harnessctl.runtime.checks.judge import Judge
from harnessctl.runtime.code import Code
from harnessctl.runtime.hooks import HookSet
from harnessctl.runtime.scene import Scene, SessionState, Verdict
from harnessctl.runtime.surface import SurfaceView

TOOLS = [
    Tool(name="get_product", description=["Looks an item up."], group="retrieval"),
    Tool(name="find_user", description=["Finds a user."], group="retrieval", tags=["auth"]),
    Tool(name="add_to_cart", description=["Puts an item in."], group="commerce", tags=["cart"], effect="write"),
    Tool(name="send_coupon", description=["Sends a coupon."], group="marketing", effect="write"),
    Tool(name="refuse", description=["Ends."], group="flow-control"),
]
SKILLS = [
    Skill(
        name="item-qa",
        kind="reply",
        description=["Answers."],
        body=[Part(text=["Shipping is free from 39 yuan; "], rules=["short"])],
        rules=[Rule(id="short", text=["At most ", Ref("limit", "reply_max_chars"), " characters."])],
    ),
    Skill(name="push-deal", kind="strategy", description=["Sells."], body=[]),
]
EVENTS = ("input", "pre_model", "post_model", "pre_tool", "post_tool", "stop", "end")


def state(
    hooks: list[dict[str, Any]],
    *,
    code: dict[str, str] | None = None,
    files: dict[str, str] | None = None,
    surface: Surface | None = None,
) -> HarnessState:
    return HarnessState(
        skills=SKILLS,
        tools=TOOLS,
        hooks=[msgspec.convert({"id": f"hook-{i}", **hook}, Hook) for i, hook in enumerate(hooks)],
        prompt=Prompt(blocks=[]),
        limits={"reply_max_chars": Limit(value=20), "max_rounds": Limit(value=4)},
        code=code or {},
        files=files or {},
        surface=surface or Surface(),
    )


def hook_set(*hooks: dict[str, Any], judge: Judge | None = None, **parts: Any) -> HookSet:
    made = state(list(hooks), **parts)
    return HookSet(made, code=Code("0" * 64, made.code), surface=SurfaceView(made), judge=judge)


def call(name: str, status: str = "ok", result: Any = None, **arguments: Any) -> ToolCall:
    return ToolCall(
        round=1, id="c", name=name, arguments=arguments, status=status, started_s=0, ended_s=0, result=result
    )


def scene(event: str = "stop", *, tool: str | None = None, session: str | None = None, **fields: Any) -> Scene:
    """A scene at `event`, with every target filled in as the loop would have it."""
    now = time.monotonic()
    made = Scene(
        request=CommentInput(id="r1", text="how much is it", session=session),
        context={"room": {"id": "r9", "price": 89.0}},
        limits={"reply_max_chars": 20, "max_rounds": 4},
        session=SessionState(),
        world=None,
        started=now,
        deadline=now + 60,
        message="how much is it",
        round=1,
    )
    if event not in ("input", "pre_model"):
        made.output = "the output"
    if event in ("pre_tool", "post_tool"):
        made.tool = next(t for t in TOOLS if t.name == (tool or "add_to_cart"))
        made.args = {"item": "i1", "quantity": 2}
    if event == "post_tool":
        made.status, made.result = "ok", {"price": 89}
    if event in ("stop", "end"):
        made.reply = "It costs 89 yuan."
    for name, value in fields.items():
        setattr(made, name, value)
    return made


async def _run(hooks: HookSet, event: str, at: Scene) -> Verdict:
    verdict = await hooks.run(event, at)
    await hooks.drain()
    return verdict


def run(hooks: HookSet, event: str = "stop", at: Scene | None = None) -> tuple[Verdict, Scene]:
    at = at if at is not None else scene(event)
    return asyncio.run(_run(hooks, event, at)), at


def decide(check: dict[str, Any], event: str = "stop", at: Scene | None = None, **parts: Any) -> HookDecision:
    """What a hook with this check, which blocks otherwise, decided; as it is recorded."""
    hook = {"event": event, "check": check, "otherwise": {"action": "block"}}
    _, seen = run(hook_set(hook, **parts), event, at if at is not None else scene(event))
    return seen.decisions[-1]
