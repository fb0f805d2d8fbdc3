"""The loop with the bundle's own hooks and tools: nothing here is a fake but the model."""

from __future__ import annotations

import asyncio
from typing import Any

from shop_agent import GET_PRODUCT, ITEM_QA, LOAD_SKILL, PLACE_ORDER, ToldModel, calls, comment, says, shop_bundle, tool

from harnessctl.bundle.state import Action, Hook, Message, Surface
from harnessctl.bundle.text import Ref
from harnessctl.records.trajectory import Trajectory
from harnessctl.runtime.agent import Agent

LOGIN = tool("get_product", {"link_id": {"type": "integer"}}, tags=["auth"])
HOOKS = [
    Hook(
        id="log-in-first",
        event="pre_tool",
        when={"effects": ["write"]},
        check={"tool_called": {"tags": ["auth"], "ok": True, "scope": "session"}},
        otherwise=Action(action="block", message=Message(text=["Call ", Ref("tool", "get_product"), " first."])),
    ),
    Hook(
        id="grounded",
        event="stop",
        check={"grounded_numbers": {}},
        otherwise=Action(
            action="retry", message=Message(text=["Say only numbers that were looked up."]), max_retries=1
        ),
    ),
    Hook(
        id="broken",
        event="post_model",
        check={"python": "nowhere:check"},
        otherwise=Action(action="block", message=Message(text=["x"])),
        on_error="pass",
    ),
]
SURFACE = Surface(tools={"get_product": "sign_in"})


def run(*answers: Any, texts: tuple[str, ...] = ("Order link 3",), **state: Any) -> tuple[list[Trajectory], ToldModel]:
    model = ToldModel(*answers)
    bundle = shop_bundle(hooks=HOOKS, tools=[LOAD_SKILL, LOGIN, PLACE_ORDER], session_keep=["calls"], **state)

    async def main() -> list[Trajectory]:
        async with await Agent.open(bundle, model, env={}) as agent:
            return [await agent.run(comment(t, id=str(i), session="s")) for i, t in enumerate(texts)]

    return asyncio.run(main()), model


def test_a_write_is_let_through_after_the_log_in_of_the_same_message() -> None:
    both = calls(("place_order", {"link_id": 3}), ("sign_in", {"link_id": 3}), ("place_order", {"link_id": 3}))
    (trajectory,), _ = run(both, says("Ordered."), surface=SURFACE)
    assert [(c.name, c.status) for c in trajectory.tools] == [
        ("place_order", "blocked"),
        ("get_product", "ok"),
        ("place_order", "ok"),
    ]
    assert trajectory.messages[3]["content"] == "Call `sign_in` first."


def test_the_log_in_holds_for_the_session() -> None:
    trajectories, _ = run(
        calls(("get_product", {"link_id": 3})),
        says("Hello."),
        calls(("place_order", {"link_id": 3})),
        says("Ordered."),
        texts=("Hi", "Order link 3"),
    )
    assert trajectories[1].tools[0].status == "ok"


def test_numbers_out_of_nowhere_are_sent_back_once_then_blocked() -> None:
    (trajectory,), model = run(says("It is 77 yuan."), says("It is 78 yuan."))
    assert model.seen[1][-1] == {"role": "user", "content": "Say only numbers that were looked up."}
    assert (trajectory.stop, trajectory.reply) == ("hook_blocked", "")
    assert [(d.hook, d.decision) for d in trajectory.hooks if d.event == "stop"] == [
        ("grounded", "retry"),
        ("grounded", "block"),
    ]


def test_a_hook_that_cannot_run_is_named_and_the_rest_works() -> None:
    (trajectory,), _ = run(says("Hello."))
    assert trajectory.stop == "replied"
    (broken,) = [d for d in trajectory.hooks if d.hook == "broken"]
    assert broken.decision == "error" and "nowhere" in (broken.error or "")


def test_many_requests_at_once_do_not_mix() -> None:
    def look(request: Any) -> Any:
        number = int(request.messages[1]["content"].rsplit(" ", 1)[1])
        if request.messages[-1]["role"] == "tool":
            return says(request.messages[-1]["content"])
        return calls(("get_product", {"link_id": number}))

    model = ToldModel(*([look] * 200))
    bundle = shop_bundle(skills=[ITEM_QA], tools=[LOAD_SKILL, GET_PRODUCT])

    async def main() -> list[Trajectory]:
        async with await Agent.open(bundle, model, env={}) as agent:
            return await asyncio.gather(*(agent.run(comment(f"link {3 + i % 2}", id=str(i))) for i in range(100)))

    for number, trajectory in enumerate(asyncio.run(main())):
        assert ("Hat" if number % 2 else "Sunscreen") in trajectory.reply
        assert [c.arguments for c in trajectory.tools] == [{"link_id": 3 + number % 2}]
