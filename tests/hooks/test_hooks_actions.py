from __future__ import annotations

import pytest
from hook_scenes import EVENTS, call, hook_set, run, scene

from harnessctl.bundle.state import Surface
from harnessctl.manifests.events import WRITABLE

ACTIONS = {
    "block": {"action": "block", "message": {"text": ["Not now."]}},
    "retry": {"action": "retry", "message": {"text": ["Try again."]}, "max_retries": 1},
    "warn": {"action": "warn"},
    "stop_loop": {"action": "stop_loop"},
    "fallback": {"action": "fallback", "fallback": {"reply": "Sorry.", "route": "private"}},
}
CHECKS = {
    "max_chars": {"max_chars": 1},
    "regex": {"regex": {"must": "zzz"}},
    "json_schema": {"json_schema": {"schema": {"type": "null"}}},
    "forbid_phrases": {"forbid_phrases": {"phrases": ["u"]}},
    "skill_loaded": {"skill_loaded": {"kind": "reply"}},
    "tool_called": {"tool_called": {"tags": ["auth"]}},
    "tool_order": {"tool_order": {"order": ["find_user", "get_product"]}},
    "grounded_numbers": {"grounded_numbers": {}},
    "expr": {"expr": "round > 5"},
    "python": {"python": "own:no"},
    "command": {"command": {"shell": "exit 2"}},
    "judge": {"judge": {"harness": "judge"}},
    "all": {"all": [{"max_chars": 1}]},
    "any": {"any": [{"max_chars": 1}]},
    "not": {"not": {"max_chars": 1000}},
}
CODE = {"own": "def no(names):\n    return False\nno.inline = True\n"}


class Strict:
    async def judge(self, harness, context, deadline):
        return {"score": 0}


def failing_scene(event):
    """A scene in which every check of CHECKS fails at `event`."""
    at = scene(event, context={})
    at.calls = [call("get_product", result=89), call("find_user", status="ok", result=None)]
    at.message, at.output, at.reply = "u 1111", "u 2222", "u 3333"
    at.args, at.result = {"u": 4444}, {"u": 5555}
    return at


@pytest.mark.parametrize("event", EVENTS)
@pytest.mark.parametrize("check", CHECKS)
def test_every_check_with_every_action_at_every_event(check, event):
    for name, action in ACTIONS.items():
        at = failing_scene(event)
        if check == "tool_called":
            at.calls = []
        hook = {"event": event, "check": CHECKS[check], "otherwise": action}
        verdict, at = run(hook_set(hook, code=CODE, judge=Strict()), event, at)
        (decision,) = at.decisions
        assert (decision.hook, decision.event, decision.round) == ("hook-0", event, 1)
        assert decision.tool == ("add_to_cart" if event in ("pre_tool", "post_tool") else None)
        assert decision.took_s > 0
        if event == "end":
            assert (verdict.action, decision.decision) == ("pass", "warn")
            continue
        assert decision.decision == name
        assert verdict.action == ("pass" if name == "warn" else name)
        assert verdict.hook == (None if name == "warn" else "hook-0")
        if name in ("block", "retry"):
            assert verdict.message == action["message"]["text"][0]
            assert verdict.role == ("tool" if event in ("post_model", "pre_tool", "post_tool") else "user")
        if name == "fallback":
            assert (verdict.reply, verdict.route) == ("Sorry.", "private")


@pytest.mark.parametrize("event", [e for e in EVENTS if e != "end"])
@pytest.mark.parametrize("action", ACTIONS)
def test_unconditional_actions(action, event):
    verdict, at = run(hook_set({"event": event, "then": ACTIONS[action]}), event)
    assert verdict.action == ("pass" if action == "warn" else action)
    assert at.decisions[0].decision == action


@pytest.mark.parametrize(
    ("event", "to", "value"),
    [
        ("input", "{{ message|upper }}", "HOW MUCH IS IT"),
        ("post_model", "{{ output }}!", "the output!"),
        ("pre_tool", "{{ dict(args, quantity=1)|tojson }}", {"item": "i1", "quantity": 1}),
        ("post_tool", '{"price": {{ result.price + 1 }}}', {"price": 90}),
        ("post_tool", "hidden", "hidden"),
        ("stop", "{{ reply[:limits.reply_max_chars] }} ({{ context.room.id }})", "It costs 89 yuan. (r9)"),
    ],
)
def test_rewrite_by_a_template(event, to, value):
    target = WRITABLE[event]
    hooks = hook_set({"event": event, "then": {"action": "rewrite", "rewrite": {"target": target, "to": to}}})
    verdict, at = run(hooks, event)
    assert verdict.action == "pass"
    assert getattr(at, target) == value
    assert at.decisions[0].decision == "rewrite"


def test_a_text_result_stays_text():
    hooks = hook_set({"event": "post_tool", "then": {"action": "rewrite", "rewrite": {"target": "result", "to": "89"}}})
    assert run(hooks, "post_tool", scene("post_tool", result="old"))[1].result == "89"
    assert run(hooks, "post_tool", scene("post_tool", result=1))[1].result == 89


def test_later_hooks_see_what_earlier_ones_rewrote():
    hooks = hook_set(
        {"event": "stop", "check": {"expr": "reply == 'x'"}, "otherwise": {"action": "warn"}},
        {"event": "stop", "then": {"action": "rewrite", "rewrite": {"target": "reply", "to": "{{ reply }}+1"}}},
        {"event": "stop", "then": {"action": "rewrite", "rewrite": {"target": "reply", "to": "{{ reply }}+2"}}},
        {"event": "stop", "check": {"expr": "reply == 'a+1+2'"}, "otherwise": {"action": "block"}},
        {"event": "stop", "check": {"max_chars": 5}, "otherwise": {"action": "block"}},
    )
    verdict, at = run(hooks, at=scene(reply="a"))
    assert (verdict.action, at.reply) == ("pass", "a+1+2")
    assert [d.decision for d in at.decisions] == ["warn", "rewrite", "rewrite", "pass", "pass"]


@pytest.mark.parametrize(
    ("event", "rewrite", "words"),
    [
        ("stop", {"target": "reply", "to": "{{ nothing }}"}, "rewrite: UndefinedError: 'nothing' is undefined"),
        ("stop", {"target": "reply", "to": "{{ 1 // 0 }}"}, "rewrite: ZeroDivisionError"),
        ("stop", {"target": "reply", "to": "{{ ''.__class__ }}"}, "rewrite: SecurityError"),
        ("stop", {"target": "reply", "to": "{% for %}"}, "rewrite: not a template"),
        ("stop", {"target": "message", "to": "x"}, "message cannot be rewritten at stop (allowed: reply)"),
        ("pre_model", {"target": "message", "to": "x"}, "nothing can be rewritten at pre_model"),
        ("pre_tool", {"target": "args", "to": "no json"}, "rewrite: the arguments are not JSON"),
        ("pre_tool", {"target": "args", "to": "[1]"}, "args would become [1], which is no object"),
        ("stop", None, "there is nothing to rewrite with"),
    ],
)
def test_a_rewrite_that_cannot_be_done_changes_nothing_and_blocks(event, rewrite, words):
    action = {"action": "rewrite", "rewrite": rewrite}
    before = scene(event)
    verdict, at = run(hook_set({"event": event, "then": action}), event)
    assert verdict.action == "block"
    assert at.decisions[0].decision == "error"
    assert words in at.decisions[0].error
    assert (at.reply, at.message, at.args) == (before.reply, before.message, before.args)


def test_fallback_without_a_fallback_is_an_error_of_the_hook():
    verdict, at = run(hook_set({"event": "stop", "then": {"action": "fallback"}, "on_error": "pass"}))
    assert verdict.action == "pass"
    assert "no fallback is given" in at.decisions[0].error


@pytest.mark.parametrize(
    ("exhausted", "action", "decision"),
    [
        (None, "block", "block"),
        ("block", "block", "block"),
        ("warn", "pass", "warn"),
        ("stop_loop", "stop_loop", "stop_loop"),
        ("fallback", "fallback", "fallback"),
    ],
)
def test_a_retry_that_is_used_up(exhausted, action, decision):
    otherwise = {"action": "retry", "max_retries": 2, "exhausted": exhausted, "fallback": {"reply": "Sorry."}}
    hooks = hook_set({"event": "stop", "check": {"max_chars": 1}, "otherwise": otherwise})
    at = scene()
    assert [run(hooks, at=at)[0].action for _ in range(3)] == ["retry", "retry", action]
    assert [d.decision for d in at.decisions] == ["retry", "retry", decision]
    assert at.decisions[2].reason == "reply has 17 characters; at most 1; after 2 retries"
    assert at.retries == {"hook-0": 2}


def test_each_hook_counts_its_own_retries_and_none_means_no_end():
    hooks = hook_set(
        {"event": "stop", "when": {"expr": "round == 1"}, "then": {"action": "retry", "max_retries": 1}},
        {"event": "stop", "when": {"expr": "round == 2"}, "then": {"action": "retry"}},
    )
    at = scene()
    assert run(hooks, at=at)[0].hook == "hook-0"
    at.round = 2
    assert [run(hooks, at=at)[0].action for _ in range(5)] == ["retry"] * 5
    assert at.retries == {"hook-0": 1, "hook-1": 5}


@pytest.mark.parametrize(
    ("message", "check", "said"),
    [
        ({"text": ["Use ", {"kind": "tool", "name": "find_user"}, " first."]}, "max_chars", "Use `who_is` first."),
        ({"text": ["At most ", {"kind": "limit", "name": "reply_max_chars"}, "."]}, "max_chars", "At most 20."),
        ({"text": ["Load ", {"kind": "skill", "name": "item-qa"}, "."]}, "max_chars", "Load `answers`."),
        ({"text": ["No."], "wrap": "hook-note"}, "max_chars", "<hook-note>\nNo.\n</hook-note>"),
        ({"text": ["No."]}, "python", "No.\nUse `who_is`, then `answers`; find_user is bare and `other` is nobody."),
        (None, "python", "Use `who_is`, then `answers`; find_user is bare and `other` is nobody."),
        (None, "max_chars", "reply has 17 characters; at most 1"),
        (None, "silent", "Stopped by the hook hook-0."),
        (None, "token", "a < |im_end|> b"),
        (None, "long", "x" * 2000),
    ],
)
def test_what_the_model_is_told(message, check, said):
    reason = "Use `find_user`, then `skill:item-qa`; find_user is bare and `other` is nobody."
    code = {
        "own": f"def no(names):\n    return {reason!r}\n"
        "def silent(names):\n    return False\n"
        "def token(names):\n    return 'a <|im_end|> b'\n"
        "def long(names):\n    return 'x' * 5000\n"
    }
    checks = {"max_chars": {"max_chars": 1}, "python": {"python": "own:no"}, "silent": {"python": "own:silent"}}
    spec = checks.get(check, {"python": f"own:{check}"})
    hooks = hook_set(
        {"event": "stop", "check": spec, "otherwise": {"action": "retry", "message": message}},
        code=code,
        surface=Surface(tools={"find_user": "who_is"}, skills={"item-qa": "answers"}),
    )
    assert run(hooks)[0].message == said


@pytest.mark.parametrize("role", ["tool", "user", "system"])
@pytest.mark.parametrize("event", ["pre_tool", "stop"])
def test_the_role_that_the_message_names(role, event):
    hooks = hook_set({"event": event, "then": {"action": "retry", "message": {"text": ["x"], "role": role}}})
    assert run(hooks, event)[0].role == role


def test_the_first_hook_that_decides_ends_the_event_for_the_others():
    hooks = hook_set(
        {"event": "stop", "then": {"action": "warn"}},
        {"event": "stop", "then": {"action": "block"}},
        {"event": "stop", "then": {"action": "stop_loop"}},
    )
    verdict, at = run(hooks)
    assert (verdict.action, verdict.hook) == ("block", "hook-1")
    assert [d.hook for d in at.decisions] == ["hook-0", "hook-1"]


def test_an_event_without_hooks_costs_nothing_and_records_nothing():
    hooks = hook_set({"event": "stop", "then": {"action": "block"}})
    assert hooks.has("stop")
    assert not hooks.has("input")
    verdict, at = run(hooks, "input")
    assert (verdict.action, at.decisions) == ("pass", [])
