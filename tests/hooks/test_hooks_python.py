from __future__ import annotations

import asyncio
import threading
import time

import pytest
from hook_scenes import SKILLS, call, decide, hook_set, run, scene

from harnessctl.runtime.scene import SessionState

FORMS = {"thread": "def f(names):", "inline": "def f(names):", "async": "async def f(names):"}


def module(form: str, body: str) -> dict[str, str]:
    """A module with one function `f`, written in one of the three ways."""
    lines = "\n".join(f"    {line}" for line in body.splitlines())
    return {"own": f"{FORMS[form]}\n{lines}\n" + ("f.inline = True\n" if form == "inline" else "")}


def outcome(body: str, form: str = "inline", event: str = "stop", at=None):
    return decide({"python": "own:f"}, event, at, code=module(form, body))


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    ("body", "decision", "reason"),
    [
        ("return True", "pass", None),
        ("return False", "block", None),
        ("return ''", "pass", None),
        ("return 'too dear'", "block", "too dear"),
        ("return {'ok': True}", "pass", None),
        ("return {'ok': False, 'reason': 'no'}", "block", "no"),
        ("return {'ok': True, 'value': 'new'}", "rewrite", None),
        ("return names['reply'] == 'It costs 89 yuan.' and names['limits']['max_rounds'] == 4", "pass", None),
    ],
)
def test_what_a_function_returns(form, body, decision, reason):
    seen = outcome(body, form)
    assert (seen.decision, seen.reason) == (decision, reason)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("return None", "it returned 'None'; allowed: bool, str, {ok: bool"),
        ("return 1", "it returned '1'"),
        ("return {'ok': 1}", "it returned \"{'ok': 1}\""),
        ("return {'ok': True, 'result': 3}", "it returned"),
        ("return {'ok': False, 'reason': 5}", "it returned"),
        ("x = 1\nraise ValueError('bad price')", "ValueError: bad price (own, line 3)"),
        ("return names['nothing']", "KeyError: 'nothing' (own, line 2)"),
        ("names['reply'] = 'x'", "TypeError: 'NamesView' object does not support item assignment (own, line 2)"),
        ("raise SystemExit(3)", "SystemExit: 3 (own, line 2)"),
        ("import asyncio\nraise asyncio.CancelledError", "it raised CancelledError"),
        ("raise StopIteration", "StopIteration"),
        ("raise KeyboardInterrupt", "KeyboardInterrupt (own, line 2)"),
        ("raise GeneratorExit", "GeneratorExit (own, line 2)"),
        ("raise type('Odd', (BaseException,), {})('x')", "Odd: x (own, line 2)"),
        ("raise type('Mute', (Exception,), {'__str__': lambda self: 1 / 0})()", "Mute (own, line 2)"),
        ("return {'ok': True, 'value': None}", "reply would become None, which is no text"),
        ("return f(names)", "it returned" if False else "Error"),
    ],
)
def test_what_goes_wrong_is_an_error_of_the_hook_with_its_line(form, body, words):
    if body == "return f(names)" and form == "async":
        body = "return await f(names)"
    seen = outcome(body, form)
    assert seen.decision == "error"
    assert words in seen.error
    assert seen.error.startswith("hook hook-0: ")


@pytest.mark.parametrize(
    ("target", "code", "words"),
    [
        ("own:g", {"own": "def f(names):\n    return True\n"}, "module `own` has no function `g` (it has f)"),
        ("gone:f", {}, "there is no module `gone`"),
        ("own:f", {"own": "def f(:\n"}, "module `own` is not Python: line 1"),
        ("own:f", {"own": "import sys\nsys.exit(2)\n"}, "module `own` fails when it is imported: SystemExit: 2"),
        (5, {}, "a target is module:function; got 5"),
    ],
)
def test_a_function_that_cannot_be_loaded_is_reported_at_each_run(target, code, words):
    hooks = hook_set({"event": "stop", "check": {"python": target}, "otherwise": {"action": "warn"}}, code=code)
    for _ in range(2):
        verdict, at = run(hooks)
        assert verdict.action == "block"
        assert words in at.decisions[0].error


@pytest.mark.parametrize("form", FORMS)
def test_a_function_works_on_copies(form):
    body = (
        "names['args']['item'] = 'changed'\nnames['context'].clear()\nnames['session']['history'].append(1)\n"
        "names['calls']('get_product')[0]['arguments'].clear()\nreturn True"
    )
    at = scene("pre_tool", calls=[call("get_product", item="i1")])
    assert outcome(body, form, "pre_tool", at).decision == "pass"
    assert at.args == {"item": "i1", "quantity": 2}
    assert at.context == {"room": {"id": "r9", "price": 89.0}}
    assert at.session.history == []
    assert at.calls[0].arguments == {"item": "i1"}


def test_the_names_that_a_function_sees():
    at = scene("post_tool", calls=[call("find_user", email="a"), call("get_product", status="error")], skills=SKILLS)
    at.session = SessionState(turns=2, calls=[call("get_product", item="old")])
    body = """
assert set(names) == {'context', 'limits', 'skills_loaded', 'round', 'session', 'calls', 'message', 'output',
                      'tool', 'args', 'result', 'status'}, set(names)
assert len(names) == 12 and 'reply' not in names
assert names['skills_loaded'] == ['item-qa', 'push-deal']
assert names['session']['turns'] == 2
assert names['tool'] == 'add_to_cart' and names['tool'].group == 'commerce' and names['tool'].tags == ('cart',)
assert names['status'] == 'ok' and names['result'] == {'price': 89}
calls = names['calls']
assert [c['name'] for c in calls()] == ['find_user', 'get_product']
assert calls(tag='auth')[0] == {'round': 1, 'name': 'find_user', 'arguments': {'email': 'a'}, 'status': 'ok',
                                'result': None}
assert calls('get_product', ok=True) == []
assert len(calls('get_product', 'find_user', scope='session')) == 3
assert len(calls(group='retrieval', ok=False)) == 1
assert names['args'] is names['args']
return True"""
    assert outcome(body, event="post_tool", at=at).error is None


@pytest.mark.parametrize(
    ("event", "body", "target", "value"),
    [
        ("input", "return {'ok': True, 'value': names['message'].upper()}", "message", "HOW MUCH IS IT"),
        ("post_model", "return {'ok': True, 'value': 'x'}", "output", "x"),
        (
            "pre_tool",
            "return {'ok': True, 'value': {**names['args'], 'quantity': 1}}",
            "args",
            {"item": "i1", "quantity": 1},
        ),
        ("post_tool", "return {'ok': True, 'value': None}", "result", None),
        ("stop", "return {'ok': True, 'value': 'Short.'}", "reply", "Short."),
    ],
)
def test_a_value_becomes_the_target(event, body, target, value):
    at = scene(event)
    assert outcome(body, event=event, at=at).decision == "rewrite"
    assert getattr(at, target) == value


def test_a_value_that_changes_nothing_is_a_pass_and_keeps_the_object():
    at = scene("post_tool")
    before = at.result
    assert outcome("return {'ok': True, 'value': names['result']}", event="post_tool", at=at).decision == "pass"
    assert at.result is before


def test_a_value_of_a_failed_check_is_used_only_by_a_rewrite():
    code = module("inline", "return {'ok': False, 'value': 'Short.', 'reason': 'long'}")
    check = {"event": "stop", "check": {"python": "own:f"}}
    verdict, at = run(hook_set({**check, "otherwise": {"action": "rewrite"}}, code=code))
    assert (verdict.action, at.reply, at.decisions[0].decision) == ("pass", "Short.", "rewrite")
    assert at.decisions[0].reason == "long"
    verdict, at = run(hook_set({**check, "otherwise": {"action": "block"}}, code=code))
    assert (verdict.action, at.reply) == ("block", "It costs 89 yuan.")


@pytest.mark.parametrize(("event", "value"), [("stop", "5"), ("pre_tool", "'x'"), ("input", "None")])
def test_a_value_of_the_wrong_type_is_an_error(event, value):
    at = scene(event)
    seen = outcome(f"return {{'ok': True, 'value': {value}}}", event=event, at=at)
    assert seen.decision == "error"
    assert "would become" in seen.error
    assert at.reply == scene(event).reply


@pytest.mark.parametrize("value", ["object()", "{1, 2}", "'\\ud800'", "10**40"])
def test_a_value_that_fits_in_no_record_is_an_error(value):
    at = scene("post_tool")
    seen = outcome(f"return {{'ok': True, 'value': {value}}}", event="post_tool", at=at)
    assert "which is not JSON" in seen.error
    assert at.result == {"price": 89}


def test_texts_of_a_hook_fit_in_every_record():
    for body in ("return 'a\\ud800\\x00b'", "raise ValueError('a\\ud800\\x00b')"):
        seen = outcome(body)
        text = seen.reason or seen.error
        assert "a\ufffdb" in text
        assert len(outcome("return 'x' * 10**6").reason) == 2000


def test_an_async_function_that_hangs_is_cancelled():
    code = {
        "own": "import asyncio\nended = []\n"
        "async def f(names):\n    try:\n        await asyncio.Event().wait()\n    finally:\n        ended.append(1)\n"
        "def ends(names):\n    return bool(ended)\n"
    }
    check = {"event": "stop", "check": {"python": "own:f"}, "otherwise": {"action": "warn"}, "timeout_s": 0.02}
    verdict, at = run(hook_set(check, code=code))
    assert verdict.action == "block"
    assert at.decisions[0].error == "hook hook-0: it timed out"
    assert decide({"python": "own:ends"}, code=code).decision == "pass"


def test_an_async_function_that_refuses_to_be_cancelled_does_not_hold_the_request(monkeypatch):
    monkeypatch.setattr("harnessctl.runtime.tools.timing.GRACE_S", 0.02)
    code = module(
        "async",
        "import asyncio\nwhile True:\n    try:\n        await asyncio.sleep(60)\n    except asyncio.CancelledError:\n        pass",
    )
    check = {"event": "stop", "check": {"python": "own:f"}, "otherwise": {"action": "warn"}, "timeout_s": 0.02}
    begun = time.monotonic()
    _, at = run(hook_set(check, code=code))
    assert at.decisions[0].error == "hook hook-0: it timed out"
    assert time.monotonic() - begun < 5


def test_a_function_that_hangs_in_its_thread_does_not_hold_the_request():
    """The function waits for an event that the test sets at its end, so that no thread is left."""
    code = {"own": "import threading\ngo = threading.Event()\ndef f(names):\n    go.wait(30)\n    return True\n"
            "def release(names):\n    go.set()\n    return True\n"}  # fmt: skip
    check = {"event": "stop", "check": {"python": "own:f"}, "otherwise": {"action": "warn"}, "timeout_s": 0.02}
    good = {"event": "stop", "check": {"max_chars": 99}, "otherwise": {"action": "block"}}
    hooks = hook_set({**check, "on_error": "pass"}, good, code=code)
    verdict, at = run(hooks)
    assert verdict.action == "pass"
    assert [(d.decision, d.error) for d in at.decisions] == [("error", "hook hook-0: it timed out"), ("pass", None)]
    assert decide({"python": "own:release"}, code=code).decision == "pass"


def test_a_blocking_function_leaves_the_event_loop_free():
    code = {
        "own": "import threading\ngo = threading.Event()\n"
        "def f(names):\n    return go.wait(30)\n"
        "async def release(names):\n    go.set()\n    return True\n"
    }
    slow = hook_set({"event": "stop", "check": {"python": "own:f"}, "otherwise": {"action": "block"}}, code=code)
    quick = hook_set({"event": "stop", "check": {"python": "own:release"}, "otherwise": {"action": "block"}}, code=code)

    async def both():
        waiting = asyncio.ensure_future(slow.run("stop", scene()))
        await asyncio.sleep(0)
        assert (await quick.run("stop", scene())).action == "pass"
        return await waiting

    assert asyncio.run(both()).action == "pass"


def test_a_cancelled_request_goes_on_being_cancelled_and_says_which_hook_was_asked():
    hooks = hook_set(
        {"event": "stop", "check": {"python": "own:f"}, "otherwise": {"action": "block"}},
        code=module("async", "import asyncio\nawait asyncio.Event().wait()\nreturn True"),
    )
    at = scene()

    async def cancelled():
        task = asyncio.ensure_future(hooks.run("stop", at))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(cancelled())
    assert at.decisions[0].decision == "error"
    assert at.decisions[0].error == "hook hook-0: the request ended before it had answered"


def test_a_plain_function_may_return_an_awaitable():
    code = {"own": "async def g():\n    return 'no'\ndef f(names):\n    return g()\n"}
    assert decide({"python": "own:f"}, code=code).reason == "no"


def test_two_versions_of_one_module_run_side_by_side():
    hook = {"event": "stop", "check": {"python": "own:f"}, "otherwise": {"action": "block"}}
    old, new = (hook_set(hook, code=module("inline", f"return 'version {n}'")) for n in (1, 2))
    assert [run(hooks)[0].message for hooks in (old, new, old)] == ["version 1", "version 2", "version 1"]


def test_threads_end_with_their_hook_set():
    def workers() -> list[threading.Thread]:
        return [t for t in threading.enumerate() if t.name.startswith("harnessctl-tool")]

    before = set(workers())
    hooks = hook_set(
        {"event": "stop", "check": {"python": "own:f"}, "otherwise": {"action": "block"}},
        code=module("thread", "return True"),
    )
    run(hooks)
    (worker,) = set(workers()) - before
    del hooks
    import gc

    gc.collect()
    worker.join(10)
    assert not worker.is_alive()
