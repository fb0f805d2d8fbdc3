"""The ReAct loop: the same model, tools and base prompt; no skills and no hooks."""

from __future__ import annotations

import asyncio

import pytest
from shop_agent import ToldModel, calls, comment, says, shop_bundle

from harnessctl.bundle.state import Action, Block, Hook, Message, Prompt
from harnessctl.errors import UsageError
from harnessctl.runtime.agent import Agent
from harnessctl.runtime.loop import Loop

PROMPT = Prompt(
    blocks=[
        Block(id="base", template="You are the host."),
        Block(id="skills", template="Skills:{% for s in skills %} {{ s.name }}{% endfor %}", when="skills"),
    ]
)
REFUSING = Hook(
    id="never", event="stop", check={"max_chars": 1}, otherwise=Action(action="block", message=Message(text=["No."]))
)


@pytest.mark.parametrize(
    ("loop", "stop", "system", "first_tool"),
    [
        ("harness", "hook_blocked", "You are the host.\n\nSkills: item-qa bargain", "load_skill"),
        ("react", "replied", "You are the host.", "get_product"),
    ],
)
def test_react_has_neither_skills_nor_hooks(loop: Loop, stop: str, system: str, first_tool: str) -> None:
    model = ToldModel(calls(("get_product", {"link_id": 3})), says("It is 89."))
    bundle = shop_bundle(prompt=PROMPT, hooks=[REFUSING])

    async def main() -> None:
        async with await Agent.open(bundle, model, loop=loop, env={}) as agent:
            trajectory = await agent.run(comment())
        assert (trajectory.stop, trajectory.loop) == (stop, loop)
        assert trajectory.bundle == bundle.digest
        assert model.seen[0][0]["content"] == system
        assert model.requests[0].tools[0]["function"]["name"] == first_tool
        assert trajectory.tools[0].result == {"name": "Sunscreen SPF50", "price": 89}

    asyncio.run(main())


def test_react_asks_for_no_skill() -> None:
    model = ToldModel(says("It is 89."))

    async def main() -> None:
        async with await Agent.open(shop_bundle(require_skill="reply"), model, loop="react", env={}) as agent:
            assert (await agent.run(comment())).stop == "replied"

    asyncio.run(main())


def test_limits_can_be_set_for_a_run_and_are_in_texts_and_records() -> None:
    model = ToldModel(calls(("load_skill", {"skill": "item-qa"})), says("x"))

    async def main() -> None:
        limits = {"reply_max_chars": 60, "deadline_s": 600}
        async with await Agent.open(shop_bundle(), model, limits=limits, env={}) as agent:
            trajectory = await agent.run(comment())
        assert trajectory.limits["deadline_s"] == 600
        assert "At most 60 characters." in trajectory.messages[3]["content"]
        with pytest.raises(UsageError, match="no such limit: dead_line; harness shop has deadline_s, "):
            await Agent.open(shop_bundle(), model, limits={"dead_line": 1}, env={})

    asyncio.run(main())
