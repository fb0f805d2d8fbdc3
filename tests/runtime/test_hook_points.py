"""What the loop does with each verdict at each lifecycle point."""

from __future__ import annotations

from typing import Any

import pytest
from shop_agent import GET_PRODUCT, PLACE_ORDER, ToldHooks, answer, calls, comment, roles, says, tool_texts

from harnessctl.runtime.scene import Scene, Verdict

LOOK = calls(("get_product", {"link_id": 3}))
SAY = says("It is 89.")
FALLBACK = Verdict(action="fallback", hook="h", reply="Please ask the shop.", route="private")
BLOCK = Verdict(action="block", hook="h", message="No.", role="tool")
STOP = Verdict(action="stop_loop", hook="h")


def retry(message: str = "Again.", role: Any = "user") -> Verdict:
    return Verdict(action="retry", hook="h", message=message, role=role)


def once(verdict: Verdict) -> Any:
    """A hook that gives `verdict` the first time and passes after that."""
    left = [verdict]
    return lambda scene: left.pop() if left else None


ANSWERS = {"pre_tool": [LOOK, SAY], "post_tool": [LOOK, SAY]}
EVENTS = ["input", "pre_model", "post_model", "pre_tool", "post_tool", "stop"]


@pytest.mark.parametrize("event", EVENTS)
def test_a_fallback_ends_with_its_own_reply(event: str) -> None:
    trajectory, _ = answer(*ANSWERS.get(event, [SAY]), hooks=ToldHooks(**{event: lambda scene: FALLBACK}))
    assert (trajectory.stop, trajectory.reply, trajectory.route) == ("hook_blocked", "Please ask the shop.", "private")
    assert trajectory.error == f"hook h at {event}: fallback"


@pytest.mark.parametrize("event", EVENTS)
def test_stop_loop_ends_and_says_nothing(event: str) -> None:
    trajectory, _ = answer(*ANSWERS.get(event, [SAY]), hooks=ToldHooks(**{event: lambda scene: STOP}))
    expected = "silent" if event == "input" else "hook_blocked"
    assert (trajectory.stop, trajectory.reply, trajectory.route) == (expected, "", "silent")


@pytest.mark.parametrize("event", ["input", "pre_model", "post_model", "stop"])
def test_a_block_ends_and_says_nothing(event: str) -> None:
    trajectory, model = answer(SAY, hooks=ToldHooks(**{event: lambda scene: BLOCK}))
    assert (trajectory.stop, trajectory.reply, trajectory.route) == ("hook_blocked", "", "silent")
    assert trajectory.error == f"hook h at {event}: block: No."
    assert len(model.requests) == (0 if event in ("input", "pre_model") else 1)


def test_input_rewrites_what_the_model_reads_and_not_the_record() -> None:
    def mask(scene: Scene) -> None:
        scene.message = scene.message.replace("13800138000", "[number]")

    trajectory, model = answer(SAY, request=comment("Call 13800138000"), hooks=ToldHooks(input=mask))
    assert model.seen[0][-1]["content"] == "Call [number]"
    assert trajectory.request["text"] == "Call 13800138000"


def test_pre_model_retry_tells_and_goes_on_in_the_same_round() -> None:
    def last_round(scene: Scene) -> Verdict | None:
        return retry("Last round: reply now.", "system") if scene.round == 2 else None

    trajectory, model = answer(LOOK, SAY, hooks=ToldHooks(pre_model=last_round), limits={"max_rounds": 2})
    assert model.seen[1][-1] == {"role": "system", "content": "Last round: reply now."}
    assert trajectory.stop == "replied"


def test_post_model_retry_uses_a_round() -> None:
    trajectory, model = answer(says("bad"), SAY, hooks=ToldHooks(post_model=once(retry())))
    assert model.seen[1][-2:] == [
        {"role": "assistant", "content": "bad"},
        {"role": "user", "content": "Again."},
    ]
    assert [c.round for c in trajectory.calls] == [1, 2]


def test_post_model_retry_answers_the_calls_it_stops() -> None:
    trajectory, model = answer(LOOK, SAY, hooks=ToldHooks(post_model=once(retry("Think first.", "tool"))))
    assert roles(model.seen[1]) == ["system", "user", "assistant", "tool"]
    assert tool_texts(trajectory) == ["Think first."]
    assert trajectory.tools[0].status == "blocked"


@pytest.mark.parametrize("role", ["user", "system"])
@pytest.mark.parametrize(
    ("event", "action", "notice"),
    [
        ("post_model", "retry", "Not run: see the message below."),
        ("pre_tool", "block", "Not run: see the message below."),
        ("pre_tool", "retry", "Not run: see the message below."),
        ("post_tool", "block", "Withheld: see the message below."),
    ],
)
def test_a_message_in_another_role_stands_after_all_results(event: str, action: Any, notice: str, role: Any) -> None:
    both = calls(("get_product", {"link_id": 3}), ("get_product", {"link_id": 4}))
    verdict = Verdict(action=action, hook="h", message="Log in first.", role=role)
    trajectory, model = answer(both, SAY, hooks=ToldHooks(**{event: once(verdict)}))
    assert roles(model.seen[1])[3:] == ["tool", "tool", role]
    assert model.seen[1][3]["content"] == notice
    assert model.seen[1][-1] == {"role": role, "content": "Log in first."}
    first = trajectory.tools[0]
    assert (first.status, first.result, first.error) == (
        "blocked",
        None,
        notice if event == "post_model" else "Log in first.",
    )


def test_post_model_rewrites_what_is_said_and_not_what_was_said() -> None:
    def shorten(scene: Scene) -> None:
        scene.output = "89."

    trajectory, _ = answer(SAY, hooks=ToldHooks(post_model=shorten))
    assert trajectory.reply == "89."
    assert trajectory.messages[-1]["content"] == SAY.content


@pytest.mark.parametrize("action", ["block", "retry"])
def test_pre_tool_keeps_a_call_from_running(action: Any) -> None:
    verdict = Verdict(action=action, hook="h", message="Log in first.", role="tool")
    trajectory, _ = answer(LOOK, SAY, hooks=ToldHooks(pre_tool=lambda scene: verdict))
    (call,) = trajectory.tools
    assert (call.status, call.error, call.result) == ("blocked", "Log in first.", None)
    assert tool_texts(trajectory) == ["Log in first."]
    assert trajectory.stop == "replied"


def test_pre_tool_rewrites_arguments_which_must_still_fit() -> None:
    def to(value: Any) -> Any:
        def rewrite(scene: Scene) -> None:
            scene.args = {"link_id": value}

        return ToldHooks(pre_tool=rewrite)

    trajectory, _ = answer(LOOK, SAY, hooks=to(4))
    assert trajectory.tools[0].result == {"name": "Hat", "price": 25}
    trajectory, _ = answer(LOOK, SAY, hooks=to("four"))
    assert trajectory.tools[0].status == "invalid"


def test_hooks_do_not_see_calls_that_could_not_be_read() -> None:
    seen: list[str] = []
    hooks = ToldHooks(pre_tool=lambda scene: seen.append(scene.tool.name))
    answer(calls(("get_product", "{"), ("nothing", {}), ("get_product", {})), SAY, hooks=hooks)
    assert seen == []


def test_post_tool_rewrites_the_result() -> None:
    def hide(scene: Scene) -> None:
        scene.result = {"name": scene.result["name"]}

    trajectory, _ = answer(LOOK, SAY, hooks=ToldHooks(post_tool=hide))
    assert tool_texts(trajectory) == ['{"name":"Sunscreen SPF50"}']
    assert trajectory.tools[0].result == {"name": "Sunscreen SPF50"}


def test_post_tool_block_replaces_the_result() -> None:
    trajectory, _ = answer(LOOK, SAY, hooks=ToldHooks(post_tool=lambda scene: BLOCK))
    (call,) = trajectory.tools
    assert (call.status, call.result, call.error) == ("blocked", None, "No.")
    assert tool_texts(trajectory) == ["No."]


def test_post_tool_retry_tells_after_all_results() -> None:
    both = calls(("get_product", {"link_id": 3}), ("get_product", {"link_id": 4}))
    hooks = ToldHooks(post_tool=once(retry("Check the stock.")))
    _, model = answer(both, SAY, hooks=hooks)
    assert roles(model.seen[1]) == ["system", "user", "assistant", "tool", "tool", "user"]
    assert model.seen[1][-1]["content"] == "Check the stock."


def test_post_tool_retry_in_the_role_of_a_tool_stands_in_the_result() -> None:
    hooks = ToldHooks(post_tool=once(retry("Check the stock.", "tool")))
    trajectory, _ = answer(LOOK, SAY, hooks=hooks)
    assert tool_texts(trajectory) == ['{"name":"Sunscreen SPF50","price":89}\n\nCheck the stock.']


def test_post_tool_sees_calls_that_were_not_run_but_none_after_the_end() -> None:
    seen: list[tuple[str, str]] = []
    hooks = ToldHooks(post_tool=lambda scene: seen.append((scene.tool.name, scene.status)))
    answer(
        calls(("get_product", "{"), ("get_product", {}), ("stay_silent", {}), ("get_product", {"link_id": 3})),
        hooks=hooks,
    )
    assert seen == [("get_product", "invalid"), ("get_product", "invalid"), ("stay_silent", "ok")]


def test_post_tool_retry_keeps_a_final_tool_from_ending() -> None:
    hooks = ToldHooks(post_tool=once(retry("Try to help first.")))
    trajectory, model = answer(calls(("refuse", {"topic": "x"})), SAY, hooks=hooks)
    assert (trajectory.stop, trajectory.reply) == ("replied", "It is 89.")
    assert model.seen[1][-1] == {"role": "user", "content": "Try to help first."}


def test_stop_retry_uses_a_round_and_the_next_reply_is_said() -> None:
    def short(scene: Scene) -> Verdict | None:
        return retry("Shorter.") if len(scene.reply) > 12 else None

    trajectory, model = answer(says("It costs 89 yuan today."), SAY, hooks=ToldHooks(stop=short))
    assert trajectory.reply == "It is 89."
    assert model.seen[1][-1] == {"role": "user", "content": "Shorter."}


def test_stop_rewrites_the_reply() -> None:
    def sign(scene: Scene) -> None:
        scene.reply += " Thanks!"

    assert answer(SAY, hooks=ToldHooks(stop=sign))[0].reply == "It is 89. Thanks!"


def test_a_reply_rewritten_to_nothing_is_silent() -> None:
    def drop(scene: Scene) -> None:
        scene.reply = ""

    assert answer(SAY, hooks=ToldHooks(stop=drop))[0].stop == "silent"


def test_end_hooks_see_the_reply_however_it_ended() -> None:
    seen: list[str] = []
    answer(SAY, hooks=ToldHooks(end=lambda scene: seen.append(scene.reply)))
    answer(SAY, hooks=ToldHooks(end=lambda scene: seen.append(scene.reply), input=lambda scene: FALLBACK))
    assert seen == ["It is 89.", "Please ask the shop."]


def test_decisions_are_in_the_record_with_their_round() -> None:
    hooks = ToldHooks(input=lambda scene: None, pre_tool=lambda scene: None, stop=lambda scene: None)
    trajectory, _ = answer(LOOK, SAY, hooks=hooks, tools=[GET_PRODUCT, PLACE_ORDER])
    assert [(d.event, d.round) for d in trajectory.hooks] == [("input", 0), ("pre_tool", 1), ("stop", 2)]
