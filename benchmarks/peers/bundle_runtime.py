"""Ours: the bundle runtime with one skill, ten tools, four hooks and a trajectory written to a real file."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from benchmarks import workload
from harnessctl.bundle import Bundle, HarnessState, make_bundle
from harnessctl.bundle.state import Action, Block, Hook, Limit, Message, Part, Prompt, Skill, Tool
from harnessctl.manifests.specs.harness import DEFAULT_LIMITS
from harnessctl.records.comment import CommentInput
from harnessctl.runtime.agent import Agent
from harnessctl.runtime.models.endpoint import Endpoint
from harnessctl.runtime.models.openai import OpenAIModel
from harnessctl.trajectory import TrajectoryWriter


def _block(text: str) -> Action:
    return Action(action="block", message=Message(text=[text]))


HOOKS = [
    Hook(
        id="message-length",
        event="pre_model",
        check={"max_chars": {"value": workload.MAX_MESSAGE_CHARS, "target": "message"}},
        otherwise=_block("The question is too long."),
    ),
    Hook(
        id="no-promises",
        event="post_model",
        check={"forbid_phrases": {"phrases": workload.FORBIDDEN, "target": "output"}},
        otherwise=_block("Promise nothing."),
    ),
    Hook(
        id="skill-first",
        event="pre_tool",
        when={"tools": ["get_product_info_by_link_id"]},
        check={"tool_called": {"tools": ["load_skill"], "ok": True}},
        otherwise=_block("Load the skill first."),
    ),
    Hook(
        id="no-traceback",
        event="post_tool",
        check={"regex": {"must_not": workload.TRACEBACK, "target": "result"}},
        otherwise=_block("The tool failed."),
    ),
]


def _tool(name: str, function: workload.Tool) -> Tool:
    schema = workload.parameters(function)
    docs = {f"/properties/{n}": [value.pop("description")] for n, value in schema["properties"].items()}
    run: dict[str, Any] = {"builtin": "load_skill"} if name == "load_skill" else {"python": f"shop:{name}"}
    return Tool(
        name=name,
        description=[workload.description(function)],
        group="retrieval",
        parameters=schema,
        docs=docs,
        run=run,
    )


def shop_bundle() -> Bundle:
    """The harness of the workload; its tools are the workload's own source, carried in the bundle."""
    state = HarnessState(
        skills=[
            Skill(
                name="item-qa",
                kind="reply",
                description=["Answers price, stock and size questions on one item."],
                body=[Part(text=[workload.SKILL])],
            )
        ],
        tools=[_tool(name, function) for name, function in workload.TOOLS.items()],
        hooks=HOOKS,
        prompt=Prompt(blocks=[Block(id="policy", template=workload.SYSTEM)]),
        limits={name: Limit(value=value) for name, value in DEFAULT_LIMITS.items()},
        code={"shop": inspect.getsource(workload)},
    )
    return make_bundle(state, name="shop", version="1.0.0")


async def setup(base_url: str, *, stream: bool, record: Path) -> Callable[[], Awaitable[str]]:
    model = OpenAIModel(Endpoint(model="mock", base_url=base_url, stream=stream))
    agent = await Agent.open(shop_bundle(), model)
    writer = TrajectoryWriter(record)
    count = 0

    async def request() -> str:
        nonlocal count
        count += 1
        trajectory = await agent.run(CommentInput(id=f"request-{count}", text=workload.QUESTION))
        writer.write(trajectory)
        if trajectory.stop != "replied":
            raise RuntimeError(f"{trajectory.stop}: {trajectory.error}")
        return trajectory.reply

    return request
