"""One bad hook never disables the others, and is named."""

from __future__ import annotations

import pytest
from hook_scenes import EVENTS, hook_set, run, scene

BROKEN = {
    "regex": {"check": {"regex": {"must": "("}}, "otherwise": {"action": "block"}},
    "module": {"check": {"python": "gone:f"}, "otherwise": {"action": "block"}},
    "raises": {"check": {"python": "own:boom"}, "otherwise": {"action": "block"}},
    "script": {"check": {"command": {"run": ["./gone.sh"]}}, "otherwise": {"action": "block"}},
    "when": {"when": {"expr": "("}, "then": {"action": "block"}},
    "judge": {"check": {"judge": {"harness": "j"}}, "otherwise": {"action": "block"}},
    "check": {"check": {"no_such_check": 1}, "otherwise": {"action": "block"}},
    "fallback": {"then": {"action": "fallback"}},
    "observer": {"observe": {"python": "own:boom"}},
}
CODE = {"own": "def boom(names):\n    raise RuntimeError('x')\nboom.inline = True\n"}


@pytest.mark.parametrize("event", [e for e in EVENTS if e != "end"])
@pytest.mark.parametrize("broken", BROKEN)
def test_the_hooks_around_a_broken_one_do_their_work(broken, event):
    good = {"event": event, "then": {"action": "warn"}}
    last = {"event": event, "then": {"action": "retry", "message": {"text": ["Again."]}}}
    hooks = hook_set(good, {"event": event, "on_error": "pass", **BROKEN[broken]}, good, last, code=CODE)
    verdict, at = run(hooks, event)
    assert (verdict.action, verdict.hook) == ("retry", "hook-3")
    assert [d.decision for d in at.decisions] == ["warn", "error", "warn", "retry"]
    assert at.decisions[1].error.startswith("hook hook-1: ")


@pytest.mark.parametrize("broken", [name for name in BROKEN if name != "observer"])
def test_a_hook_that_cannot_run_blocks_unless_it_says_otherwise(broken):
    verdict, at = run(hook_set({"event": "pre_tool", **BROKEN[broken]}, code=CODE), "pre_tool")
    assert (verdict.action, verdict.hook, verdict.role) == ("block", "hook-0", "tool")
    assert verdict.message == "Stopped by the hook hook-0."
    assert at.decisions[0].decision == "error"


@pytest.mark.parametrize("broken", BROKEN)
def test_at_the_end_nothing_is_left_to_block(broken):
    verdict, at = run(hook_set({"event": "end", **BROKEN[broken]}, code=CODE), "end")
    assert verdict.action == "pass"
    assert at.decisions[0].decision in ("error", "warn")


def test_a_recursion_in_a_hook_stays_in_it():
    deep: list = []
    inner = deep
    for _ in range(100_000):
        inner.append([])
        inner = inner[0]
    hooks = hook_set(
        {"event": "post_tool", "check": {"python": "own:f"}, "otherwise": {"action": "block"}, "on_error": "pass"},
        {
            "event": "post_tool",
            "check": {"command": {"shell": "exit 0"}},
            "otherwise": {"action": "block"},
            "on_error": "pass",
        },
        code={"own": "def f(names):\n    return bool(names['result'])\n"},
    )
    verdict, at = run(hooks, "post_tool", scene("post_tool", result=deep))
    assert verdict.action == "pass"
    assert "RecursionError" in at.decisions[0].error
    assert at.decisions[1].decision in ("error", "pass")
    while deep:  # taken apart step by step: freeing it at one go would recurse too
        deep = deep.pop()
