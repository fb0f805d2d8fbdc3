"""Hooks: how they send back and how they say it; and hooks that wait, fail or refuse once."""

from __future__ import annotations

import asyncio
import logging
from typing import Any, Literal

import pytest
from operator_trial import apply, draft_of, names, operator, seen, state_of, tool, varied

from harnessctl.bundle import HarnessState, make_bundle
from harnessctl.bundle.state import Action, Block, Hook, Limit, Message
from harnessctl.bundle.text import Ref
from harnessctl.bundle.variation import Changes, vary
from harnessctl.records.comment import CommentInput
from harnessctl.records.scenario import Needs
from harnessctl.records.trajectory import Trajectory
from harnessctl.runtime.agent import Agent
from harnessctl.runtime.models.scripted import ScriptedCall, ScriptedModel, ScriptedReply

Event = Literal["input", "pre_model", "post_model", "pre_tool", "post_tool", "stop", "end"]


def hook(
    id: str, event: Event, action: Any = "retry", *, role: Any = None, wrap: str | None = None, retries: int | None = 2
) -> Hook:
    message = Message(text=["Mind ", Ref("tool", "get"), "."], role=role, wrap=wrap)
    return Hook(
        id=id,
        event=event,
        check={"expr": "false"},
        otherwise=Action(action=action, message=message, max_retries=retries if action == "retry" else None),
    )


GET = tool("get", "link", run={"python": "shop:get"})
CODE = {"shop": "async def get(link):\n    return {'link': link, 'price': 5}\n"}


def state(*hooks: Hook, **fields: Any) -> HarnessState:
    return state_of(tools=[GET], hooks=hooks, code=CODE, **fields)


# messages


@pytest.mark.parametrize(
    ("event", "action", "is_read"),
    [
        ("input", "retry", True),
        ("pre_model", "retry", True),
        ("post_model", "retry", True),
        ("pre_tool", "retry", True),
        ("post_tool", "retry", True),
        ("stop", "retry", True),
        ("end", "retry", False),
        ("pre_tool", "block", True),
        ("post_tool", "block", True),
        ("input", "block", False),
        ("post_model", "block", False),
        ("stop", "block", False),
        ("stop", "warn", False),
        ("stop", "fallback", False),
        ("stop", "stop_loop", False),
    ],
)
def test_only_messages_that_a_model_reads_are_changed(event: Event, action: str, is_read: bool) -> None:
    draft = draft_of(state(hook("h", event, action)))
    for name in ("hook-message", "hook-wrap"):
        assert list(operator(name).targets(draft)) == (["h"] if is_read else [])


def test_a_message_is_reworded_with_its_references() -> None:
    changed = varied("hook-message", state(hook("h", "stop"))).hooks[0]
    assert changed.otherwise is not None
    assert changed.otherwise.message is not None
    assert changed.otherwise.message.text[1:] == ["Mind ", Ref("tool", "get"), "."]
    assert changed.check == {"expr": "false"}


def test_an_unconditional_hooks_message_is_reworded_too() -> None:
    base = Hook(id="h", event="post_tool", then=Action(action="retry", message=Message(text=["Go on."])))
    changed = varied("hook-message", state(base)).hooks[0]
    assert changed.then is not None
    assert changed.then.message is not None
    assert changed.then.message.text[1:] == ["Go on."]


@pytest.mark.parametrize(
    ("event", "action", "role", "roles", "new"),
    [
        ("pre_tool", "block", None, ["tool", "user"], {"user"}),
        ("pre_tool", "block", None, ["tool", "user", "system"], {"user", "system"}),
        ("pre_tool", "block", "user", ["tool", "user"], {"tool"}),
        ("post_model", "retry", None, ["tool", "user"], {"user"}),
        ("stop", "retry", None, ["tool", "user"], set()),
        ("stop", "retry", None, ["tool", "user", "system"], {"system"}),
        ("stop", "retry", "tool", ["tool", "user", "system"], {"system"}),
        ("stop", "retry", "system", ["user"], {"user"}),
        ("pre_model", "retry", None, ["system"], {"system"}),
        ("input", "retry", None, ["tool", "user", "system"], set()),
        ("post_tool", "block", None, [], set()),
    ],
)
def test_a_role_is_one_that_makes_a_difference(
    event: Event, action: str, role: Any, roles: list[str], new: set[str]
) -> None:
    found = set()
    for number in range(20):
        draft = draft_of(state(hook("h", event, action, role=role)), number=number)
        if apply("hook-role", draft, options={"roles": roles}):
            found.add(draft.changes.hooks["h"].role)
    assert found == new


def test_a_tag_is_another_one_or_none_where_there_was_one() -> None:
    bare = {varied("hook-wrap", state(hook("h", "stop")), number=n).hooks[0].otherwise.message.wrap for n in range(200)}  # type: ignore[union-attr]
    assert None not in bare
    assert bare == set(operator("hook-wrap").options["tags"])
    few = {"tags": ["note", "hint"]}
    tagged = {
        varied("hook-wrap", state(hook("h", "stop", wrap="note")), number=n, options=few)
        .hooks[0]
        .otherwise.message.wrap  # type: ignore[union-attr]
        for n in range(30)
    }
    assert tagged == {None, "hint"}


def test_changes_of_one_hook_add_up() -> None:
    draft = draft_of(state(hook("h", "post_tool")))
    for name in ("hook-role", "hook-wrap", "hook-retries", "hook-message"):
        assert apply(name, draft) == ["h"]
    action = seen(vary(draft.state, draft.changes)).hooks[0].otherwise
    assert action is not None
    assert action.message is not None
    assert (action.message.role, action.max_retries) == ("user", 1)
    assert action.message.wrap in operator("hook-wrap").options["tags"]
    assert action.message.text[0] in ("1! ", "2! ")


# retries


def retries(held: HarnessState, *, changes: Changes | None = None, **settings: Any) -> set[int | None]:
    found: set[int | None] = set()
    for number in range(40):
        draft = draft_of(held, number=number, changes=Changes() if changes is None else changes)
        apply("hook-retries", draft, **settings)
        found.add(vary(held, draft.changes).hooks[0].otherwise.max_retries)  # type: ignore[union-attr]
    return found


def test_retries_are_others_within_the_count() -> None:
    assert retries(state(hook("h", "stop"))) == {1, 3}
    assert retries(state(hook("h", "stop", retries=1)), count=[1, 2]) == {2}
    assert retries(state(hook("h", "stop")), count=[2, 2]) == {2}


def test_retries_fit_into_the_rounds() -> None:
    assert retries(state(hook("h", "stop", retries=1)), count=[1, 9]) == {2, 3}
    assert retries(state(hook("h", "stop", retries=1), require_skill="reply"), count=[1, 9]) == {2}
    assert retries(state(hook("h", "pre_model", retries=1)), count=[1, 4]) == {2, 3, 4}
    narrow = Changes(limits={"max_rounds": 3})
    held = state(hook("h", "stop", retries=1), limits={"max_rounds": Limit(value=6, range=[3, 8])})
    assert retries(held, changes=narrow, count=[1, 9]) == {2}


def test_endless_retries_and_other_actions_are_no_targets() -> None:
    held = state(hook("a", "stop", retries=None), hook("b", "pre_tool", "block"), hook("c", "end"))
    assert operator("hook-retries").targets(draft_of(held)) == ()


# hooks that are added


def play(held: HarnessState, *script: str | list[tuple[str, dict[str, Any]]]) -> Trajectory:
    replies = [
        ScriptedReply(content=step)
        if isinstance(step, str)
        else ScriptedReply(tool_calls=[ScriptedCall(name, args) for name, args in step])
        for step in script
    ]

    async def run() -> Trajectory:
        bundle = make_bundle(held, name="shop", version="1.0.0")
        async with await Agent.open(bundle, ScriptedModel(replies)) as agent:
            return await agent.run(CommentInput(id="t", text="Price?"))

    return asyncio.run(run())


LOOK = [("get", {"link": "3"})]


def said(trajectory: Trajectory) -> tuple[Any, ...]:
    return (trajectory.stop, trajectory.reply, trajectory.messages, [call.status for call in trajectory.tools])


@pytest.mark.parametrize("event", operator("hook-crash").options["events"])
def test_a_hook_that_crashes_changes_nothing_but_the_record(event: str) -> None:
    base = state(blocks=[Block(id="b", template="Help.")])
    plain = play(base, LOOK, "It is 5.")
    for number in range(4):
        changed = varied("hook-crash", base, number=number, options={"events": [event]})
        trajectory = play(changed, LOOK, "It is 5.")
        assert said(trajectory) == said(plain)
        (decision,) = {(d.hook, d.event, d.decision) for d in trajectory.hooks}
        assert decision == ("out-of-order", event, "error")


@pytest.mark.parametrize("way", ["check", "observe"])
def test_a_hook_that_waits_changes_nothing_but_the_record(way: str, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING)
    base = state()
    plain = play(base, LOOK, "It is 5.")
    for event in operator("hook-delay").options["events"]:
        options = {"events": [event], "ways": [way], "least_ms": 1, "most_ms": 2}
        trajectory = play(varied("hook-delay", base, options=options), LOOK, "It is 5.")
        assert said(trajectory) == said(plain)
        assert {(d.hook, d.event, d.decision) for d in trajectory.hooks} == {
            ("takes-its-time", event, "pass" if way == "check" else "observed")
        }
        assert all(d.took_s >= 0.0009 for d in trajectory.hooks)
    assert not caplog.records


def test_no_delay_within_the_bounds_adds_nothing() -> None:
    assert varied("hook-delay", state(), options={"least_ms": 6, "most_ms": 9}) == state()


def test_the_first_call_is_refused_and_the_second_goes_through() -> None:
    changed = varied("hook-deny", state())
    trajectory = play(changed, LOOK, LOOK, "It is 5.")
    assert [call.status for call in trajectory.tools] == ["blocked", "ok"]
    assert trajectory.reply == "It is 5."
    told = [m["content"] for m in trajectory.messages if m["role"] == "tool"]
    assert "`get`" in told[0]
    assert '"price"' in told[1]


def test_the_message_of_a_refusal_follows_a_new_name() -> None:
    draft = draft_of(state())
    apply("tool-rename", draft, only=["get"])
    apply("hook-deny", draft)
    changed = seen(vary(draft.state, draft.changes))
    new = changed.surface.tools["get"]
    trajectory = play(changed, [(new, {"link": "3"})], "Well.")
    assert f"`{new}`" in next(m["content"] for m in trajectory.messages if m["role"] == "tool")


@pytest.mark.parametrize(
    ("check", "is_free"),
    [
        ({"tool_called": {"tools": ["get"], "min": 0, "max": 1}}, False),
        ({"all": [{"not": {"tool_called": {"tags": ["look"], "max": 1}}}]}, False),
        ({"any": [{"expr": "calls('get') | length < 2"}]}, False),
        ({"tool_called": {"min": 0, "max": 1}}, False),
        ({"tool_called": {"tools": ["get"], "ok": True, "min": 0, "max": 1}}, True),
        ({"tool_called": {"tools": ["get"]}}, True),
        ({"tool_called": {"tools": ["put"], "min": 0, "max": 1}}, True),
        ({"expr": "calls() | length < 8"}, True),
    ],
)
def test_a_tool_whose_calls_are_counted_is_not_refused(check: dict[str, Any], is_free: bool) -> None:
    get = tool("get", "link", tags=["look"])
    put = tool("put", effect="write")
    held = state_of(
        tools=[get, put], hooks=[Hook(id="h", event="pre_tool", check=check, otherwise=Action(action="block"))]
    )
    assert bool(operator("hook-deny").targets(draft_of(held))) is is_free


def test_no_refusal_without_a_round_to_spare() -> None:
    assert apply("hook-deny", draft_of(state(), needs=Needs(min_rounds=4))) == []
    assert apply("hook-deny", draft_of(state(), needs=Needs(min_rounds=3))) == ["hooks"]
    narrow = Changes(limits={"max_rounds": 3})
    assert (
        apply("hook-deny", draft_of(state(limits={"max_rounds": Limit(value=6, range=[2, 8])}), changes=narrow)) == []
    )


def test_tools_to_refuse_are_chosen_by_pattern() -> None:
    assert apply("hook-deny", draft_of(state()), options={"tools": ["find*"]}) == []
    assert apply("hook-deny", draft_of(state()), options={"tools": ["g*"]}) == ["hooks"]


def test_added_hooks_have_ids_of_their_own() -> None:
    once = varied("hook-crash", varied("hook-deny", varied("hook-delay", state())))
    twice = varied("hook-crash", varied("hook-deny", varied("hook-delay", once)))
    ids = [h.id for h in twice.hooks]
    assert len(ids) == len(set(ids)) == 6
    assert once.code == twice.code


def test_every_operator_says_what_it_is() -> None:
    found = {name: operator(name) for name in names()}
    assert {op.name for op in found.values()} == set(found)
    assert {name for name, op in found.items() if not op.keeps_difficulty} == {"hook-deny", "item-mask"}
    assert {op.dimension for op in found.values()} == {"tool-definition", "system-prompt", "hook", "message"}
    assert all(op.__doc__ and "Target" in op.__doc__ for op in found.values())
