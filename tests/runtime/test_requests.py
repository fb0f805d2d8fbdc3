"""A request from its text to its record, and every way in which it ends."""

from __future__ import annotations

import pytest
from shop_agent import (
    GET_PRODUCT,
    LOAD_SKILL,
    REFUSE,
    ToldHooks,
    answer,
    as_json,
    calls,
    comment,
    group,
    roles,
    says,
    shop_bundle,
    tool_texts,
)

from harnessctl.errors import ModelError
from harnessctl.runtime.scene import Scene, Verdict

LOAD = calls(("load_skill", {"skill": "item-qa"}))
LOOK = calls(("get_product", {"link_id": 3}))
SAY = says("Link 3 is Sunscreen SPF50, 89 yuan.")


def test_a_request_loads_a_skill_looks_up_and_replies() -> None:
    trajectory, model = answer(LOAD, LOOK, SAY, require_skill="reply")
    assert (trajectory.stop, trajectory.reply, trajectory.route) == ("replied", SAY.content, "public")
    assert trajectory.skills == ["item-qa"]
    assert [(c.name, c.arguments, c.status, c.round) for c in trajectory.tools] == [
        ("load_skill", {"skill": "item-qa"}, "ok", 1),
        ("get_product", {"link_id": 3}, "ok", 2),
    ]
    assert roles(trajectory.messages) == ["system", "user", "assistant", "tool", "assistant", "tool", "assistant"]
    assert tool_texts(trajectory) == [
        "Fact first.\n\n## Rules\n- Call `get_product` first.\n- At most 80 characters.",
        '{"name":"Sunscreen SPF50","price":89}',
    ]
    assert [call.seen for call in trajectory.calls] == [2, 4, 6]
    assert [len(seen) for seen in model.seen] == [2, 4, 6]
    assert trajectory.error is None and trajectory.warnings == []
    assert as_json(trajectory)["format"] == "harnessctl/trajectory.v1"


def test_the_model_is_offered_the_tools_with_the_skills_as_an_enum() -> None:
    _, model = answer(says("Hi."))
    load, look = model.requests[0].tools[:2]
    assert load["function"]["parameters"]["properties"]["skill"]["enum"] == ["item-qa", "bargain"]
    assert look["function"]["parameters"]["properties"]["link_id"]["description"] == "Number of a link."
    assert model.requests[0].stable == 1 and model.requests[0].cache_key


def test_messages_of_several_viewers_get_one_reply() -> None:
    trajectory, model = answer(says("Both are in stock."), request=group(("Ann", "Is 3 there?"), ("Bo", "And 4?")))
    assert model.seen[0][-1] == {"role": "user", "content": "Ann: Is 3 there?\nBo: And 4?"}
    assert trajectory.reply == "Both are in stock."


def test_a_final_tool_refuses() -> None:
    trajectory, _ = answer(calls(("refuse", {"topic": "politics"})))
    assert (trajectory.stop, trajectory.reply) == ("refused", "We do not talk about politics here.")
    assert trajectory.tools[0].status == "ok"


def test_a_final_tool_keeps_silent() -> None:
    trajectory, _ = answer(calls(("stay_silent", {})))
    assert (trajectory.stop, trajectory.reply, trajectory.route) == ("silent", "", "silent")


def test_a_final_tools_reply_with_arguments_passes_the_stop_hooks() -> None:
    def stop(scene: Scene) -> Verdict | None:
        return Verdict(action="retry", hook="h", message="Say less.") if "politics" in scene.reply else None

    trajectory, _ = answer(
        calls(("refuse", {"topic": "politics"})), calls(("refuse", {"topic": "that"})), hooks=ToldHooks(stop=stop)
    )
    assert (trajectory.stop, trajectory.reply) == ("refused", "We do not talk about that here.")


def test_a_final_tools_fixed_reply_is_said_as_it_is() -> None:
    fixed = type(REFUSE)(**{**{f: getattr(REFUSE, f) for f in REFUSE.__struct_fields__}, "final": {"reply": "No."}})
    hooks = ToldHooks(stop=lambda scene: Verdict(action="block", hook="h"))
    trajectory, _ = answer(calls(("refuse", {"topic": "x"})), hooks=hooks, tools=[fixed])
    assert (trajectory.stop, trajectory.reply) == ("refused", "No.")


def test_calls_after_a_final_tool_are_not_run() -> None:
    trajectory, _ = answer(calls(("refuse", {"topic": "x"}), ("place_order", {"link_id": 3})))
    assert [(c.name, c.status) for c in trajectory.tools] == [("refuse", "ok"), ("place_order", "blocked")]
    assert tool_texts(trajectory)[1] == "Not run: the request had ended."


def test_rounds_run_out() -> None:
    looks = [calls(("get_product", {"link_id": n})) for n in range(4)]
    trajectory, model = answer(*looks)
    assert (trajectory.stop, trajectory.reply, trajectory.route) == ("round_limit", "", "silent")
    assert len(model.requests) == 4
    assert trajectory.error == "4 rounds (max_rounds) were used up without a reply"


def test_an_identical_call_repeated_ends_the_request() -> None:
    trajectory, _ = answer(LOOK, LOOK, LOOK, SAY, limits={"max_repeats": 3})
    assert trajectory.stop == "repeat_detected"
    assert [c.status for c in trajectory.tools] == ["ok", "ok", "blocked"]


def test_a_write_makes_looking_again_no_repeat() -> None:
    order = calls(("place_order", {"link_id": 3}))
    trajectory, _ = answer(LOOK, order, LOOK, SAY, limits={"max_repeats": 2})
    assert trajectory.stop == "replied"


def test_unknown_tools_and_broken_arguments_are_told_and_repeat_too() -> None:
    odd = calls(("get_products", {"link_id": 3}))
    trajectory, _ = answer(odd, odd, limits={"max_repeats": 2})
    assert trajectory.stop == "repeat_detected"
    assert trajectory.tools[0].status == "invalid"


def test_a_reply_before_a_reply_skill_is_sent_back() -> None:
    trajectory, model = answer(
        says("89."), calls(("load_skill", {"skill": "bargain"})), says("89."), require_skill="reply"
    )
    assert trajectory.stop == "model_error"  # the model had nothing left to say
    assert model.seen[1][-1] == {
        "role": "user",
        "content": "Load the skill that fits with `load_skill` before you reply. Reply skills: `item-qa`.",
    }
    assert model.seen[3][-1]["role"] == "user"


def test_rounds_run_out_without_the_skill() -> None:
    trajectory, _ = answer(says("89."), says("89!"), require_skill="reply", limits={"max_rounds": 2})
    assert (trajectory.stop, trajectory.reply) == ("round_limit", "")


def test_a_skill_enters_once() -> None:
    trajectory, _ = answer(LOAD, LOAD, says("Ok."))
    assert tool_texts(trajectory)[1] == "`item-qa` is loaded already; its text stands above."
    assert trajectory.skills == ["item-qa"]
    assert [c.result for c in trajectory.tools] == [
        {"skill": "item-qa", "loaded": True},
        {"skill": "item-qa", "loaded": False},
    ]


def test_a_skill_that_is_not_on_offer() -> None:
    trajectory, _ = answer(calls(("load_skill", {"skill": "item_qa"})), says("Ok."))
    assert tool_texts(trajectory) == ["There is no skill `item_qa`. Skills: `item-qa`, `bargain`."]
    assert trajectory.tools[0].status == "invalid" and trajectory.skills == []


def test_without_skills_there_is_no_load_skill() -> None:
    _, model = answer(says("Ok."), skills=[], tools=[LOAD_SKILL, GET_PRODUCT])
    assert [t["function"]["name"] for t in model.requests[0].tools] == ["get_product"]


@pytest.mark.parametrize("content", ["", "   \n", None])
def test_an_empty_message_uses_a_round(content: str | None) -> None:
    empty = says("")
    empty.content = content
    trajectory, model = answer(empty, SAY)
    assert trajectory.stop == "replied"
    assert model.seen[1][-2:] == [
        {"role": "assistant", "content": content or ""},
        {"role": "user", "content": "Your last message was empty. Call a tool or write the reply."},
    ]


def test_a_model_that_breaks_its_protocol_ends_only_the_request() -> None:
    trajectory, _ = answer(KeyError("choices"))
    assert (trajectory.stop, trajectory.error) == ("model_error", "KeyError: 'choices'")


def test_a_fault_that_no_try_mends() -> None:
    trajectory, model = answer(ModelError("401 Unauthorized", retryable=False, hint="set the key"))
    assert trajectory.stop == "model_error" and len(model.requests) == 1
    assert trajectory.error == "401 Unauthorized\n    hint: set the key"
    assert trajectory.calls[0].error == trajectory.error


def test_the_route_is_decided_by_expressions() -> None:
    state = {"private_when": "'order' in message", "silent_when": "reply == 'nothing'"}
    assert answer(says("Sent."), request=comment("my order?"), **state)[0].route == "private"
    assert answer(says("Hello."), **state)[0].route == "public"
    silent, _ = answer(says("nothing"), **state)
    assert (silent.stop, silent.route, silent.reply) == ("silent", "silent", "nothing")


def test_a_json_reply_must_be_json_and_fit() -> None:
    schema = {"type": "object", "properties": {"score": {"type": "integer"}}, "required": ["score"]}
    trajectory, model = answer(
        says("good"),
        says('{"score": "1"}'),
        says('```json\n{"score": 1}\n```'),
        reply_format="json",
        reply_schema=schema,
    )
    assert trajectory.reply == '{"score": 1}'
    assert model.seen[1][-1]["content"].startswith("Reply with JSON only, in the form that was asked for: ")
    assert '/score: "1" is not of type "integer"' in model.seen[2][-1]["content"]


def test_reasoning_is_kept_apart() -> None:
    trajectory, _ = answer(says("<think>Cheap.</think>\nIt is 89."))
    assert trajectory.reply == "It is 89."
    assert trajectory.calls[0].reasoning == "Cheap."
    assert trajectory.messages[-1] == {"role": "assistant", "content": "It is 89.", "reasoning_content": "Cheap."}


def test_the_record_names_what_it_was_made_with() -> None:
    bundle = shop_bundle()
    trajectory, _ = answer(says("Hi."), bundle=bundle, agent={"seed": 7})
    assert (trajectory.bundle, trajectory.harness, trajectory.loop) == (bundle.digest, "shop", "harness")
    assert (trajectory.model, trajectory.seeds) == ("told", {"agent": 7})
    assert trajectory.limits["reply_max_chars"] == 80
    assert trajectory.request == {"id": "r1", "text": "How much is link 3?"}
