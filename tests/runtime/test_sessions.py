"""Sessions: what one turn leaves to the next."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from shop_agent import (
    HangingModel,
    ToldHooks,
    ToldModel,
    as_json,
    calls,
    comment,
    make_agent,
    roles,
    says,
    shop_bundle,
    tool,
)

from harnessctl.bundle.state import Block, Prompt
from harnessctl.records.trajectory import Trajectory
from harnessctl.runtime.scene import Scene, Verdict
from harnessctl.runtime.session import SessionStore, turn_history

LOAD = calls(("load_skill", {"skill": "item-qa"}))
LOOK = calls(("get_product", {"link_id": 3}))
ALL = ["calls", "skills", "history"]


def turns(
    *answers: Any, texts: list[str], hooks: ToldHooks | None = None, **state: Any
) -> tuple[list[Trajectory], ToldModel]:
    """Each text as a turn of the session `s`."""
    model = ToldModel(*answers)
    agent = make_agent(shop_bundle(**state), model, hooks)

    async def main() -> list[Trajectory]:
        return [await agent.run(comment(text, id=f"t{i}", session="s")) for i, text in enumerate(texts)]

    return asyncio.run(main()), model


def test_history_is_the_context_of_the_next_turn() -> None:
    trajectories, model = turns(LOOK, says("89."), says("In stock."), texts=["Price?", "Stock?"], session_keep=ALL)
    assert [(t.turn, t.session, t.stop) for t in trajectories] == [(0, "s", "replied"), (1, "s", "replied")]
    assert roles(model.seen[2]) == ["system", "user", "assistant", "tool", "assistant", "user"]
    assert model.seen[2][4:] == [{"role": "assistant", "content": "89."}, {"role": "user", "content": "Stock?"}]
    assert trajectories[1].messages[:6] == model.seen[2]


def test_without_keep_each_turn_is_its_own() -> None:
    trajectories, model = turns(LOAD, says("89."), says("In stock."), texts=["Price?", "Stock?"])
    assert roles(model.seen[2]) == ["system", "user"]
    assert [t.turn for t in trajectories] == [0, 1] and trajectories[1].skills == []


def test_kept_skills_need_no_second_load() -> None:
    trajectories, _ = turns(
        LOAD, says("89."), says("In stock."), texts=["a", "b"], session_keep=ALL, require_skill="reply"
    )
    assert [t.stop for t in trajectories] == ["replied", "replied"]
    assert trajectories[1].skills == ["item-qa"]


def test_kept_skills_without_history_stand_in_the_prompt() -> None:
    _, model = turns(LOAD, says("89."), says("Yes."), texts=["a", "b"], session_keep=["skills"], require_skill="reply")
    assert model.seen[2][0]["content"].startswith("You are the host.\n\nFact first.\n\n## Rules\n")
    assert roles(model.seen[2]) == ["system", "user"]


def test_hooks_see_the_sessions_calls() -> None:
    seen: list[int] = []
    hooks = ToldHooks(stop=lambda scene: seen.append(len(scene.session.calls)))
    turns(LOOK, says("89."), says("Yes."), texts=["a", "b"], session_keep=["calls"], hooks=hooks)
    assert seen == [0, 1]


def test_the_tools_own_dict_lives_as_long_as_the_session() -> None:
    order = calls(("place_order", {"link_id": 3}))
    trajectories, _ = turns(order, says("Done."), order, says("Again."), texts=["a", "b"])
    assert trajectories[1].tools[0].result == {"orders": [3, 3]}


def test_a_session_has_so_many_turns() -> None:
    trajectories, model = turns(says("1"), says("2"), texts=["a", "b", "c"], limits={"max_turns": 2})
    assert trajectories[2].stop == "round_limit" and len(model.requests) == 2
    assert trajectories[2].error == "the session has had its 2 turns (max_turns)"


def test_what_was_said_instead_is_what_the_next_turn_reads() -> None:
    def stop(scene: Scene) -> None:
        scene.reply = scene.reply.upper()

    _, model = turns(says("yes."), says("no."), texts=["a", "b"], session_keep=ALL, hooks=ToldHooks(stop=stop))
    assert model.seen[1][2] == {"role": "assistant", "content": "YES."}


def test_a_final_tools_reply_is_in_the_history() -> None:
    refuse = calls(("refuse", {"topic": "x"}), ("get_product", {"link_id": 3}))
    _, model = turns(refuse, says("ok"), texts=["a", "b"], session_keep=ALL)
    assert roles(model.seen[1]) == ["system", "user", "assistant", "tool", "tool", "assistant", "user"]
    assert model.seen[1][5]["content"] == "We do not talk about x here."


def test_a_blocked_turn_leaves_the_viewers_words() -> None:
    hooks = ToldHooks(stop=lambda scene: Verdict(action="block", hook="h") if scene.session.turns == 0 else None)
    _, model = turns(says("bad"), says("ok"), texts=["a", "b"], session_keep=ALL, hooks=hooks)
    assert roles(model.seen[1]) == ["system", "user", "assistant", "user"]


def test_a_turn_cut_off_in_a_call_leaves_a_context_that_an_endpoint_takes() -> None:
    hang = tool("hang", {}, timeout_s=1000.0)
    trajectories, model = turns(
        calls(("hang", {})), says("ok"), texts=["a", "b"], session_keep=ALL, tools=[hang], limits={"deadline_s": 0.02}
    )
    assert trajectories[0].stop == "deadline"
    assert roles(model.seen[1]) == ["system", "user", "assistant", "tool", "user"]


def test_the_prompt_is_made_anew_each_turn() -> None:
    prompt = Prompt(
        inputs={"properties": {"stock": {"type": "integer"}}},
        blocks=[
            Block(id="s", template="Stock {{ stock }}"),
            Block(id="u", role="user", template="Q: {{ messages[0].text }}"),
        ],
    )
    model = ToldModel(says("1"), says("2"))
    agent = make_agent(shop_bundle(prompt=prompt, session_keep=ALL), model)

    async def main() -> None:
        await agent.run(comment("a", id="1", session="s", context={"stock": 5}))
        await agent.run(comment("b", id="2", session="s", context={"stock": 4}))

    asyncio.run(main())
    assert [m["content"] for m in model.seen[1]] == ["Stock 4", "Q: a", "1", "Q: b"]


def test_a_cancelled_turn_leaves_no_trace() -> None:
    agent = make_agent(shop_bundle(session_keep=ALL), HangingModel())

    async def main() -> None:
        task = asyncio.create_task(agent.run(comment(session="s")))
        await asyncio.sleep(0.01)
        task.cancel()
        await asyncio.wait([task])

    asyncio.run(main())
    state = agent.sessions.get("s").state
    assert (state.turns, state.history) == (0, [])


def test_turns_of_one_session_wait_for_each_other() -> None:
    order: list[str] = []

    def said(name: str) -> Any:
        def answer(request: Any) -> Any:
            order.append(request.messages[-1]["content"])
            return says(name)

        return answer

    agent = make_agent(shop_bundle(session_keep=ALL), ToldModel(said("1"), said("2"), said("3")))

    async def main() -> list[Trajectory]:
        return await asyncio.gather(*(agent.run(comment(t, id=t, session="s")) for t in "abc"))

    assert [t.turn for t in asyncio.run(main())] == [0, 1, 2]
    assert order == ["a", "b", "c"]


def test_a_store_is_bounded_and_forgets_the_one_used_longest_ago() -> None:
    store = SessionStore(capacity=2)
    store.get("a")
    store.get("b")
    store.get("a")
    store.get("c")
    assert "a" in store and "b" not in store and len(store) == 2
    assert store.forget("a") and not store.forget("a")
    with pytest.raises(ValueError, match="at least one"):
        SessionStore(capacity=0)


def test_a_session_under_way_is_not_forgotten() -> None:
    store = SessionStore(capacity=1)

    async def main() -> None:
        async with store.get("a").lock:
            store.get("b")
            assert "a" in store and "b" in store
        store.get("c")
        assert "a" not in store and "b" not in store and "c" in store

    asyncio.run(main())


@given(st.lists(st.sampled_from(["user", "call", "text"]), max_size=6), st.sampled_from(["", "said"]))
def test_history_always_answers_its_calls(kinds: list[str], reply: str) -> None:
    messages: list[dict[str, Any]] = []
    for i, kind in enumerate(kinds):
        if kind == "call":
            messages.append({"role": "assistant", "content": None, "tool_calls": [{"id": f"{i}a"}, {"id": f"{i}b"}]})
            messages.append({"role": "tool", "tool_call_id": f"{i}a", "content": "x"})
            if i < len(kinds) - 1:
                messages.append({"role": "tool", "tool_call_id": f"{i}b", "content": "x"})
        else:
            messages.append({"role": "assistant" if kind == "text" else "user", "content": kind})
    history, is_unchanged = turn_history(messages, reply, "not run")
    asked = [c["id"] for m in history for c in m.get("tool_calls", ())]
    assert asked == [m["tool_call_id"] for m in history if m["role"] == "tool"]
    if reply:
        assert history[-1] == {"role": "assistant", "content": "said"}
    assert is_unchanged == (history[: len(messages)] == messages)


def test_a_session_goes_on_from_its_recorded_turns() -> None:
    texts = ["Price?", "Stock?", "Size?"]

    def run(restored: bool) -> tuple[list[dict[str, Any]], Trajectory]:
        model = ToldModel(LOAD, LOOK, says("89."), calls(("refuse", {"topic": "x"})), says("M."))
        bundle = shop_bundle(session_keep=ALL, require_skill="reply")
        agent = make_agent(bundle, model)

        async def main() -> Trajectory:
            nonlocal agent
            for number, text in enumerate(texts):
                last = await agent.run(comment(text, id=f"t{number}", session="s"))
                if restored:  # the process ends after each turn
                    recorded.append(as_json(last))
                    agent = make_agent(bundle, model)
                    for turn in recorded:
                        agent.restore(msgspec.convert(turn, Trajectory))
            return last

        recorded: list[dict[str, Any]] = []
        last = asyncio.run(main())
        return model.seen[-1], last

    unbroken, broken = run(False), run(True)
    assert unbroken[0] == broken[0]
    assert (unbroken[1].turn, unbroken[1].skills, unbroken[1].stop) == (2, ["item-qa"], "replied")
    assert (broken[1].turn, broken[1].skills, broken[1].stop) == (2, ["item-qa"], "replied")
