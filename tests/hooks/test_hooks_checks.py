from __future__ import annotations

import time

import pytest
from hook_scenes import SKILLS, call, decide, hook_set, run, scene

from harnessctl.bundle.state import Surface
from harnessctl.runtime.checks import families
from harnessctl.runtime.scene import SessionState

SCHEMA = {"type": "object", "required": ["item"], "properties": {"quantity": {"type": "integer", "maximum": 5}}}


def test_every_check_of_the_manifest_is_found_in_the_package():
    from harnessctl.manifests.specs.hooks import Check

    assert families().keys() == set(Check.__struct_encode_fields__)


@pytest.mark.parametrize(
    ("check", "event", "fields", "decision"),
    [
        ({"json_schema": {"schema": SCHEMA}}, "pre_tool", {}, "pass"),
        ({"json_schema": {"schema": SCHEMA}}, "pre_tool", {"args": {"item": "i", "quantity": 6}}, "block"),
        ({"json_schema": {"schema": SCHEMA}}, "pre_tool", {"args": {}}, "block"),
        ({"json_schema": {"schema": SCHEMA}}, "stop", {"reply": '{"item": "i1"}'}, "pass"),
        ({"json_schema": {"schema": SCHEMA}}, "stop", {"reply": "not json"}, "block"),
        ({"json_schema": {"schema": SCHEMA}}, "stop", {"reply": ""}, "block"),
        ({"json_schema": {"schema": SCHEMA}}, "post_tool", {"result": {1: 2}}, "block"),
        ({"json_schema": {"schema": SCHEMA, "target": "args"}}, "post_tool", {}, "pass"),
        ({"json_schema": {"schema": True}}, "post_tool", {"result": None}, "error"),
        ({"regex": {"must": "89"}}, "stop", {}, "pass"),
        ({"regex": {"must": "^89"}}, "stop", {}, "block"),
        ({"regex": {"must_not": "(?i)COSTS"}}, "stop", {}, "block"),
        ({"regex": {"must_not": "secret"}}, "post_tool", {}, "pass"),
        ({"regex": {"must_not": '"price":89'}}, "post_tool", {}, "block"),
        ({"regex": {"must_not": "价格"}}, "post_tool", {"result": {"价格": 1}}, "block"),
        ({"regex": {"must_not": "."}}, "post_tool", {"result": None}, "pass"),
        ({"regex": {"must": "12345678901234567890123"}}, "post_tool", {"result": 12345678901234567890123}, "pass"),
        ({"regex": {"must": "much", "target": "message"}}, "stop", {}, "pass"),
        ({"regex": {"must": "much"}}, "input", {}, "pass"),
        ({"max_chars": 17}, "stop", {}, "pass"),
        ({"max_chars": 16}, "stop", {}, "block"),
        ({"max_chars": {"value": 16}}, "stop", {}, "block"),
        ({"max_chars": {"limit": "reply_max_chars"}}, "stop", {"reply": "字" * 20}, "pass"),
        ({"max_chars": {"limit": "reply_max_chars"}}, "stop", {"reply": "字" * 21}, "block"),
        ({"max_chars": {"limit": "reply_max_chars"}}, "stop", {"reply": "😀" * 20}, "pass"),
        ({"max_chars": {"value": 3, "target": "message"}}, "stop", {}, "block"),
        ({"max_chars": 5}, "post_model", {}, "block"),
        ({"forbid_phrases": {"phrases": ["cheapest", "第一"]}}, "stop", {}, "pass"),
        ({"forbid_phrases": {"phrases": ["COSTS 89"]}}, "stop", {}, "block"),
        ({"forbid_phrases": {"phrases": ["costs 89"]}}, "stop", {"reply": "It Ｃｏｓｔｓ\u300089"}, "block"),
        ({"forbid_phrases": {"phrases": ["strasse"]}}, "stop", {"reply": "Die STRAßE"}, "block"),
        ({"forbid_phrases": {"phrases": ["全网第一"]}}, "stop", {"reply": "我们全网第一"}, "block"),
        ({"skill_loaded": {"kind": "reply"}}, "stop", {}, "block"),
        ({"skill_loaded": {"kind": "reply"}}, "stop", {"skills": SKILLS}, "pass"),
        ({"skill_loaded": {"skill": "item-qa"}}, "stop", {"skills": SKILLS[1:]}, "block"),
        ({"skill_loaded": {"skill": "item-qa", "kind": "strategy"}}, "stop", {"skills": SKILLS}, "block"),
        ({"expr": "reply|length < 30 and limits.max_rounds == 4"}, "stop", {}, "pass"),
        ({"expr": "reply == 'x'"}, "stop", {}, "block"),
        ({"expr": "no_such_name"}, "stop", {}, "block"),
        ({"expr": "context.no.such.name > 3"}, "stop", {}, "block"),
        ({"expr": "1 / 0"}, "stop", {}, "block"),
        ({"expr": "context.__class__"}, "stop", {}, "block"),
        ({"expr": "args.quantity <= 2 and result.price == 89 and status == 'ok'"}, "post_tool", {}, "pass"),
        ({"expr": "message == 'how much is it'"}, "input", {}, "pass"),
        ({"expr": "output == 'the output' and round == 1"}, "post_model", {}, "pass"),
    ],
)
def test_checks(check, event, fields, decision):
    assert decide(check, event, scene(event, **fields)).decision == decision


CALLED = [
    call("find_user", email="a@b"),
    call("get_product", status="error", item="i1"),
    call("get_product", item="i1"),
]


@pytest.mark.parametrize(
    ("spec", "calls", "decision"),
    [
        ({"tools": ["get_product"]}, [], "block"),
        ({"tools": ["get_product"]}, CALLED, "pass"),
        ({"tools": ["get_product"], "max": 1}, CALLED, "block"),
        ({"tools": ["get_product"], "ok": True, "max": 1}, CALLED, "pass"),
        ({"tools": ["get_product"], "ok": False, "max": 1}, CALLED, "pass"),
        ({"tools": ["get_product"], "min": 3}, CALLED, "block"),
        ({"tags": ["auth"], "ok": True}, CALLED, "pass"),
        ({"tags": ["cart"]}, CALLED, "block"),
        ({"tools": ["get_product"], "tags": ["auth"]}, CALLED, "block"),
        ({"tools": ["send_coupon"], "min": 0, "max": 0}, CALLED, "pass"),
        ({"min": 4}, CALLED, "block"),
        ({"tools": ["get_product"], "same_args": ["item"]}, CALLED, "pass"),
        ({"tools": ["get_product"], "same_args": ["item"]}, [call("get_product", item="i2")], "block"),
        ({"tools": ["get_product"], "same_args": ["item"]}, [call("get_product")], "block"),
        ({"tools": ["get_product"], "same_args": ["colour"]}, [call("get_product")], "block"),
        ({"tools": ["get_product"], "same_args": True}, CALLED, "block"),
        ({"tools": ["get_product"], "same_args": True}, [call("get_product", item="i1", quantity=2)], "pass"),
    ],
)
def test_tool_called(spec, calls, decision):
    at = scene("pre_tool", calls=list(calls))
    assert decide({"tool_called": spec}, "pre_tool", at).decision == decision


def test_scope_session_counts_what_earlier_turns_left():
    at = scene("pre_tool", session=None, calls=[])
    at.session = SessionState(calls=[call("find_user")])
    assert decide({"tool_called": {"tags": ["auth"]}}, "pre_tool", at).decision == "block"
    assert decide({"tool_called": {"tags": ["auth"], "scope": "session"}}, "pre_tool", at).decision == "pass"


ORDER = {"tool_order": {"order": ["find_user", "get_product", "add_to_cart"]}}


@pytest.mark.parametrize(
    ("event", "calls", "decision"),
    [
        ("stop", [], "pass"),
        ("stop", ["find_user", "get_product"], "pass"),
        ("stop", ["find_user", "send_coupon", "add_to_cart"], "pass"),
        ("stop", ["get_product", "find_user"], "block"),
        ("stop", ["find_user", "get_product", "find_user"], "pass"),
        ("stop", ["get_product!", "find_user", "get_product"], "pass"),
        ("pre_tool", ["find_user"], "pass"),
        ("pre_tool", [], "pass"),
    ],
)
def test_tool_order(event, calls, decision):
    done = [call(name.rstrip("!"), status="error" if name.endswith("!") else "ok") for name in calls]
    assert decide(ORDER, event, scene(event, calls=done)).decision == decision


def test_tool_order_counts_the_call_under_way():
    done = [call("add_to_cart")]
    assert decide(ORDER, "pre_tool", scene("pre_tool", tool="get_product", calls=done)).decision == "block"
    at = scene("post_tool", tool="get_product", calls=done)
    assert decide(ORDER, "post_tool", at).decision == "block"
    failed = scene("post_tool", tool="get_product", calls=done, status="error")
    assert decide(ORDER, "post_tool", failed).decision == "pass"


PASS, FAIL = {"max_chars": 1000}, {"max_chars": 1}


@pytest.mark.parametrize("slow", [False, True])
@pytest.mark.parametrize(
    ("check", "ok"),
    [
        ({"all": [PASS, PASS]}, True),
        ({"all": [PASS, FAIL]}, False),
        ({"any": [FAIL, PASS]}, True),
        ({"any": [FAIL, FAIL]}, False),
        ({"not": PASS}, False),
        ({"not": FAIL}, True),
        ({"all": [{"any": [FAIL, PASS]}, {"not": {"all": [PASS, FAIL]}}]}, True),
    ],
)
def test_composition(check, ok, slow):
    """The same with parts that are plain functions and with one that is awaited."""
    code = {"slow": "async def yes(names):\n    return True\n"}
    if slow:
        check = {"all": [{"python": "slow:yes"}, check]}
    assert decide(check, code=code).decision == ("pass" if ok else "block")


def test_composition_goes_no_further_than_needed():
    code = {"bad": "def boom(names):\n    raise ValueError('boom')\n"}
    boom = {"python": "bad:boom"}
    assert decide({"any": [PASS, boom]}, code=code).decision == "pass"
    assert decide({"all": [FAIL, boom]}, code=code).decision == "block"
    for check in ({"any": [FAIL, boom]}, {"all": [PASS, boom]}, {"not": boom}, {"not": {"not": boom}}):
        assert decide(check, code=code).decision == "error"


def test_any_gives_the_reasons_of_all():
    assert decide({"any": [FAIL, {"expr": "round > 5"}]}).reason == (
        "reply has 17 characters; at most 1; not true: round > 5"
    )


@pytest.mark.parametrize(
    ("check", "event", "reason"),
    [
        ({"json_schema": {"schema": SCHEMA}}, "post_tool", 'result: "item" is a required property'),
        ({"regex": {"must_not": "8."}}, "stop", "reply has '89', which fits 8."),
        ({"regex": {"must": "zz"}}, "stop", "reply has nothing that fits zz"),
        ({"max_chars": {"limit": "reply_max_chars"}}, "input", None),
        ({"forbid_phrases": {"phrases": ["Yuan"]}}, "stop", "reply has the phrase 'Yuan'"),
        ({"skill_loaded": {"kind": "reply"}}, "stop", "no reply skill has been loaded"),
        ({"skill_loaded": {"skill": "item-qa"}}, "stop", "skill `item-qa` has not been loaded"),
        ({"tool_called": {"tags": ["auth"]}}, "stop", "a tool tagged auth was called 0 times; at least once is needed"),
        (
            {"tool_called": {"tools": ["refuse"], "min": 2}},
            "stop",
            "`refuse` was called 0 times; at least twice is needed",
        ),
        ({"expr": "round > 5"}, "stop", "not true: round > 5"),
        ({"not": {"max_chars": 99}}, "stop", "max_chars holds and must not"),
    ],
)
def test_reasons_are_recorded(check, event, reason):
    assert decide(check, event).reason == reason


@pytest.mark.parametrize(
    ("check", "event", "words"),
    [
        ({}, "stop", "exactly one key; got none"),
        ({"max_chars": 1, "expr": "1"}, "stop", "exactly one key; got max_chars, expr"),
        ({"magic": 1}, "stop", "there is no check `magic`"),
        ({"json_schema": {"schema": {"type": "objekt"}}}, "stop", "json_schema: not a schema"),
        ({"json_schema": {"schema": {"$ref": "http://127.0.0.1:9/x"}}}, "stop", "json_schema: not a schema"),
        ({"regex": {"must": "(unclosed"}}, "stop", "'(unclosed' is not a pattern"),
        ({"regex": {}}, "stop", "neither must nor must_not"),
        ({"regex": {"must": "x", "flags": "i"}}, "stop", "unknown field `flags`"),
        (
            {"max_chars": {"limit": "nothing"}},
            "stop",
            "there is no limit `nothing` (limits: max_rounds, reply_max_chars)",
        ),
        ({"max_chars": {}}, "stop", "neither a number nor a limit"),
        ({"max_chars": {"value": 3, "target": "reply"}}, "input", "there is no reply at input (targets: message)"),
        ({"regex": {"must": "x", "target": "result"}}, "pre_tool", "there is no result at pre_tool"),
        ({"forbid_phrases": {"phrases": [""]}}, "stop", "an empty phrase"),
        ({"skill_loaded": {}}, "stop", "neither a skill nor a kind"),
        ({"tool_called": {"tools": ["nobody"]}}, "stop", "there is no tool `nobody`"),
        ({"tool_called": {"tools": ["refuse"], "same_args": True}}, "stop", "no call is under way at stop"),
        ({"tool_order": {"order": ["refuse", "nobody"]}}, "stop", "there is no tool `nobody`"),
        ({"expr": "a b"}, "stop", "'a b' is not an expression"),
        ({"expr": 5}, "stop", "an expression is text; got int"),
        ({"grounded_numbers": {"sources": ["dreams"]}}, "stop", "not a GroundedNumbersCheck"),
        ({"judge": {"harness": "judge"}}, "stop", "no judge is at hand to run the harness `judge`"),
        ({"all": [{"regex": {}}]}, "stop", "neither must nor must_not"),
        ({"command": {"run": ["true"], "shell": "true"}}, "stop", "exactly one of run and shell"),
        ({"command": {}}, "stop", "exactly one of run and shell"),
        ({"command": {"run": ["true"], "files": ["x.sh"]}}, "stop", "the bundle does not carry x.sh"),
    ],
)
def test_a_check_that_cannot_be_made_is_an_error_that_says_why(check, event, words):
    decision = decide(check, event)
    assert decision.decision == "error"
    assert words in decision.error


def test_a_text_too_long_to_be_searched_fails_both_ways():
    long = scene(reply="a" * 200_001)
    assert decide({"regex": {"must": "a"}}, at=long).decision == "block"
    assert decide({"regex": {"must_not": "z"}}, at=long).reason == "reply is longer than 200000 characters"


def test_deeply_nested_and_odd_values_do_not_get_out():
    deep: list = []
    inner = deep
    for _ in range(5000):
        inner.append([])
        inner = inner[0]
    for value in (deep, float("nan"), {"a": object()}, "\ud800"):
        at = scene("post_tool", result=value)
        for check in ({"json_schema": {"schema": {"type": "string"}}}, {"regex": {"must": "zz"}}, {"max_chars": 1}):
            assert decide(check, "post_tool", at).decision in ("block", "error", "pass")


def test_limits_are_those_of_the_scene():
    at = scene(limits={"reply_max_chars": 5})
    assert decide({"max_chars": {"limit": "reply_max_chars"}}, at=at).reason == "reply has 17 characters; at most 5"


def test_names_in_a_reason_are_shown_as_the_model_knows_them():
    hooks = hook_set(
        {"event": "stop", "check": {"tool_called": {"tools": ["get_product"]}}, "otherwise": {"action": "retry"}},
        surface=Surface(tools={"get_product": "lookup_item"}),
    )
    verdict, at = run(hooks)
    assert verdict.message == "`lookup_item` was called 0 times; at least once is needed"
    assert at.decisions[0].reason == "`get_product` was called 0 times; at least once is needed"


def test_four_simple_hooks_are_cheap():
    """A loose bound for a slow machine: a request with four plain checks stays far below a millisecond."""
    hooks = hook_set(
        {"event": "input", "check": {"expr": "message|length < 100"}, "otherwise": {"action": "block"}},
        {"event": "pre_tool", "when": {"effects": ["write"]}, "check": {"tool_called": {"tags": ["auth"]}},
         "otherwise": {"action": "block"}},
        {"event": "post_tool", "check": {"regex": {"must_not": "secret"}}, "otherwise": {"action": "block"}},
        {"event": "stop", "check": {"max_chars": {"limit": "reply_max_chars"}}, "otherwise": {"action": "block"}},
    )  # fmt: skip

    async def many() -> float:
        scenes = {
            event: scene(event, calls=[call("find_user")]) for event in ("input", "pre_tool", "post_tool", "stop")
        }
        begun = time.process_time()
        for _ in range(200):
            for event, at in scenes.items():
                assert (await hooks.run(event, at)).action == "pass"
        return (time.process_time() - begun) / 200

    import asyncio

    assert asyncio.run(many()) < 0.001
