from __future__ import annotations

import pytest
from hook_scenes import SKILLS, hook_set, run, scene


def matches(when, event="pre_tool", at=None) -> bool:
    hooks = hook_set({"event": event, "when": when, "then": {"action": "warn"}})
    _, seen = run(hooks, event, at)
    return bool(seen.decisions)


@pytest.mark.parametrize(
    ("when", "holds"),
    [
        ({}, True),
        ({"tools": ["add_to_cart"]}, True),
        ({"tools": ["get_product"]}, False),
        ({"tools": ["get_product", "add_to_cart"]}, True),
        ({"tags": ["cart"]}, True),
        ({"tags": ["auth"]}, False),
        ({"groups": ["commerce"]}, True),
        ({"groups": ["marketing"]}, False),
        ({"effects": ["write"]}, True),
        ({"effects": ["none"]}, False),
        ({"effects": ["write"], "groups": ["marketing"]}, False),
        ({"expr": "args.quantity > 1"}, True),
        ({"expr": "args.quantity > 2"}, False),
        ({"expr": "args.missing.part > 2"}, False),
        ({"expr": "args.item > 2"}, False),
        ({"expr": "tool == 'add_to_cart' and 'cart' in tool.tags and tool.effect == 'write'"}, True),
        ({"tools": ["add_to_cart"], "expr": "args.quantity > 2"}, False),
    ],
)
def test_conditions_on_the_call(when, holds):
    assert matches(when) is holds


@pytest.mark.parametrize("event", ["input", "pre_model", "post_model", "stop", "end"])
def test_tool_conditions_do_not_hold_without_a_call(event):
    assert not matches({"effects": ["write"]}, event)
    assert matches({}, event)


@pytest.mark.parametrize(
    ("statuses", "status", "holds"),
    [(["ok"], "ok", True), (["error", "timeout"], "ok", False), (["error", "timeout"], "timeout", True)],
)
def test_result(statuses, status, holds):
    assert matches({"result": statuses}, "post_tool", scene("post_tool", status=status)) is holds


def test_skill_kinds():
    assert not matches({"skill_kinds": ["reply"]}, "stop")
    assert matches({"skill_kinds": ["reply"]}, "stop", scene(skills=SKILLS[:1]))
    assert not matches({"skill_kinds": ["strategy"]}, "stop", scene(skills=SKILLS[:1]))


@pytest.mark.parametrize(
    ("when", "words"),
    [
        ({"tools": ["nobody"]}, "there is no tool `nobody`"),
        ({"expr": "1 +"}, "'1 +' is not an expression"),
        ({"colour": ["red"]}, "unknown field `colour`"),
    ],
)
def test_a_condition_that_cannot_be_made_is_an_error_of_that_hook(when, words):
    hooks = hook_set(
        {"event": "pre_tool", "when": when, "then": {"action": "stop_loop"}, "on_error": "pass"},
        {"event": "pre_tool", "then": {"action": "warn"}},
    )
    verdict, seen = run(hooks, "pre_tool")
    assert verdict.action == "pass"
    assert [d.decision for d in seen.decisions] == ["error", "warn"]
    assert words in seen.decisions[0].error
    assert seen.decisions[0].error.startswith("hook hook-0: ")
