from __future__ import annotations

import asyncio
import logging

import pytest
from hook_scenes import call, hook_set, run, scene

RECORDER = (
    "import asyncio\nseen = []\n"
    "async def note(names):\n    await asyncio.sleep(0)\n    seen.append((names['reply'], len(names['calls']())))\n"
    "def boom(names):\n    raise ValueError('full')\n"
    "async def hang(names):\n    await asyncio.Event().wait()\n"
    "def saw(names):\n    return repr(seen)\n"
)


def recorded(code: dict[str, str]) -> str:
    check = {"event": "stop", "check": {"python": "own:saw"}, "otherwise": {"action": "block"}}
    return run(hook_set(check, code=code))[0].message


def test_an_observer_sees_the_event_as_it_was_and_holds_nobody_up():
    code = {"own": "# as it was\n" + RECORDER}
    hooks = hook_set({"event": "stop", "observe": {"python": "own:note"}}, code=code)
    at = scene(calls=[call("refuse")])

    async def go_on_at_once():
        verdict = await hooks.run("stop", at)
        at.reply = "changed"
        at.calls.append(call("refuse"))
        assert at.decisions[0].decision == "observed"
        await hooks.drain()
        return verdict

    assert asyncio.run(go_on_at_once()).action == "pass"
    assert recorded(code) == "[('It costs 89 yuan.', 1)]"
    assert at.decisions[0].decision == "observed"


@pytest.mark.parametrize(
    ("observe", "words"),
    [
        ({"python": "own:boom"}, "ValueError: full (own, line 7)"),
        ({"python": "own:hang"}, "it timed out"),
        ({"command": {"shell": "kill -9 $$"}}, "signal SIGKILL ended it"),
        ({"command": {"shell": "sleep 60"}}, "it timed out and was killed"),
        ({"command": {"run": ["./gone"]}}, "there is no such file"),
    ],
)
def test_what_goes_wrong_in_an_observer_is_recorded_and_decides_nothing(observe, words, caplog):
    hooks = hook_set(
        {"event": "stop", "observe": observe, "timeout_s": 0.2},
        {"event": "stop", "check": {"max_chars": 99}, "otherwise": {"action": "block"}},
        code={"own": RECORDER},
    )
    with caplog.at_level(logging.WARNING, "harnessctl.hooks"):
        verdict, at = run(hooks)
    assert verdict.action == "pass"
    assert [d.decision for d in at.decisions] == ["error", "pass"]
    assert words in at.decisions[0].error
    assert at.decisions[0].error in caplog.text


@pytest.mark.parametrize("observe", [{"python": "own:nothing"}, {"python": "gone:f"}, {}, {"command": {}}])
def test_an_observer_that_cannot_be_made_decides_nothing_either(observe):
    verdict, at = run(hook_set({"event": "stop", "observe": observe}, code={"own": RECORDER}))
    assert verdict.action == "pass"
    assert [d.decision for d in at.decisions] == ["error"]


@pytest.mark.parametrize("shell", ["exit 0", "exit 2", "echo '{' ; exit 0", "exit 1"])
def test_what_an_observing_program_answers_is_nobodys_business(shell):
    verdict, at = run(hook_set({"event": "end", "observe": {"command": {"shell": shell}}}), "end")
    assert (verdict.action, at.decisions[0].decision) == ("pass", "observed")


def test_observers_are_told_after_a_block_too():
    hooks = hook_set(
        {"event": "stop", "then": {"action": "block"}},
        {"event": "stop", "then": {"action": "stop_loop"}},
        {"event": "stop", "observe": {"python": "own:note"}},
        code={"own": RECORDER},
    )
    verdict, at = run(hooks)
    assert verdict.hook == "hook-0"
    assert [d.decision for d in at.decisions] == ["block", "observed"]


def test_an_observer_looks_only_at_what_its_condition_names():
    hooks = hook_set(
        {"event": "stop", "when": {"expr": "round > 5"}, "observe": {"python": "own:boom"}}, code={"own": RECORDER}
    )
    assert run(hooks)[1].decisions == []


def test_draining_without_observers_is_over_at_once():
    async def is_over():
        try:
            hook_set().drain().send(None)
        except StopIteration:
            return True
        return False

    assert asyncio.run(is_over())


def test_observers_of_a_run_that_is_cancelled_are_ended():
    hooks = hook_set({"event": "stop", "observe": {"python": "own:hang"}, "timeout_s": 60}, code={"own": RECORDER})

    async def cancelled():
        await hooks.run("stop", scene())
        await asyncio.sleep(0)
        hooks.cancel_observers()
        await asyncio.wait_for(hooks.drain(), 5)
        return asyncio.all_tasks() - {asyncio.current_task()}

    assert asyncio.run(cancelled()) == set()
