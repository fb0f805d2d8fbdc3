"""The hook protocols of Claude Code and Gemini CLI, with real scripts."""

from __future__ import annotations

import json
import sys

import orjson
import pytest
from hook_scenes import call, hook_set, run, scene

from harnessctl.runtime.checks.peers import EVENTS

ECHO = '#!/bin/sh\ncat > "$HARNESSCTL_SEEN"\n'


def answer(protocol, event, stdout="", *, code=0, stderr="", at=None, action="block"):
    """Verdict and scene after a program that answers so."""
    files = {"h.sh": f"cat >/dev/null\ncat stdout\necho '{stderr}' >&2\nexit {code}\n", "stdout": stdout}
    spec = {"run": ["sh", "h.sh"], "files": ["h.sh", "stdout"], "protocol": protocol}
    hook = {"event": event, "check": {"command": spec}, "otherwise": {"action": action}, "timeout_s": 30}
    return run(hook_set(hook, files=files), event, at)


@pytest.fixture
def told(tmp_path, monkeypatch):
    """What a program of a protocol reads at an event."""
    monkeypatch.setenv("HARNESSCTL_SEEN", str(tmp_path / "seen"))

    def read(protocol, at, event):
        spec = {"run": ["./h.sh"], "protocol": protocol}
        hook = {"event": event, "check": {"command": spec}, "otherwise": {"action": "block"}}
        run(hook_set(hook, files={"h.sh": ECHO}), event, at)
        assert at.decisions[0].decision == "pass"
        return orjson.loads((tmp_path / "seen").read_bytes())

    return read


@pytest.mark.parametrize("protocol", EVENTS)
@pytest.mark.parametrize("event", EVENTS["claude"])
def test_every_event_has_its_name_and_the_common_fields(told, protocol, event):
    seen = told(protocol, scene(event, session="s1"), event)
    assert seen["hook_event_name"] == EVENTS[protocol][event]
    assert seen["session_id"] == "s1"
    assert seen["transcript_path"] == ""
    assert "tmp" in seen["cwd"]
    assert ("permission_mode" in seen) == (protocol == "claude")
    assert ("timestamp" in seen) == (protocol == "gemini")
    assert ("tool_name" in seen) == (event in ("pre_tool", "post_tool"))


def test_what_claude_programs_are_told(told):
    assert told("claude", scene("input"), "input")["prompt"] == "how much is it"
    seen = told("claude", scene("pre_tool"), "pre_tool")
    assert (seen["tool_name"], seen["tool_input"]) == ("add_to_cart", {"item": "i1", "quantity": 2})
    assert told("claude", scene("post_tool"), "post_tool")["tool_response"] == {"price": 89}
    seen = told("claude", scene("stop"), "stop")
    assert (seen["stop_hook_active"], seen["last_assistant_message"]) == (False, "It costs 89 yuan.")
    assert told("claude", scene(retries={"hook-0": 1}), "stop")["stop_hook_active"] is True
    assert told("claude", scene("end"), "end")["reason"] == "other"
    assert told("claude", scene("post_model"), "post_model")["last_assistant_message"] == "the output"
    assert told("claude", scene("input"), "input")["session_id"] == "r1"


def test_what_gemini_programs_are_told(told):
    assert told("gemini", scene("input"), "input")["prompt"] == "how much is it"
    seen = told("gemini", scene("post_tool"), "post_tool")
    assert seen["tool_response"] == {"llmContent": '{"price":89}', "returnDisplay": '{"price":89}'}
    seen = told("gemini", scene("post_tool", status="timeout", result=None), "post_tool")
    assert seen["tool_response"]["error"]["type"] == "timeout"
    messages = [
        {"role": "system", "content": "s"},
        {"role": "user", "content": "u"},
        {"role": "assistant", "content": None, "tool_calls": [{}]},
        {"role": "tool", "content": "t", "tool_call_id": "c"},
    ]
    seen = told("gemini", scene("pre_model", messages=messages), "pre_model")
    assert seen["llm_request"]["messages"] == [
        {"role": "system", "content": "s"},
        {"role": "user", "content": "u"},
        {"role": "model", "content": ""},
        {"role": "user", "content": "t"},
    ]
    seen = told("gemini", scene("post_model"), "post_model")
    assert seen["llm_response"]["candidates"][0]["content"] == {"role": "model", "parts": ["the output"]}
    seen = told("gemini", scene("stop"), "stop")
    assert (seen["prompt"], seen["prompt_response"]) == ("how much is it", "It costs 89 yuan.")


def specific(**fields) -> str:
    return json.dumps({"hookSpecificOutput": fields})


@pytest.mark.parametrize("protocol", EVENTS)
@pytest.mark.parametrize("event", ["input", "pre_model", "post_model", "pre_tool", "post_tool", "stop"])
@pytest.mark.parametrize(
    ("stdout", "action", "reason"),
    [
        ('{"decision": "block", "reason": "No."}', "block", "No."),
        ('{"decision": "deny", "reason": "No."}', "block", "No."),
        ('{"decision": "approve"}', "pass", None),
        ('{"decision": "allow", "reason": "fine"}', "pass", None),
        ('{"continue": true, "suppressOutput": true}', "pass", None),
        ('{"continue": false, "stopReason": "Enough."}', "stop_loop", "Enough."),
        ("", "pass", None),
        ("  \n", "pass", None),
        ("{}", "pass", None),
    ],
)
def test_decisions(protocol, event, stdout, action, reason):
    verdict, at = answer(protocol, event, stdout)
    assert verdict.action == action
    assert at.decisions[0].reason == reason
    assert reason != "No." or verdict.message == "No."


@pytest.mark.parametrize("protocol", EVENTS)
def test_exit_codes(protocol):
    verdict, at = answer(protocol, "stop", '{"decision": "allow"}', code=2, stderr="shorter")
    assert (verdict.action, verdict.message) == ("block", "shorter")
    verdict, at = answer(protocol, "stop", '{"decision": "block"}', code=1, stderr="hm")
    assert (verdict.action, at.decisions[0].decision, at.decisions[0].reason) == ("pass", "warn", "exit 1: hm")


@pytest.mark.parametrize(
    ("fields", "action", "reason"),
    [
        ({"permissionDecision": "deny", "permissionDecisionReason": "Look it up first."}, "block", "Look it up first."),
        ({"permissionDecision": "ask"}, "block", "there is nobody to ask for permission"),
        ({"permissionDecision": "ask", "permissionDecisionReason": "Sure?"}, "block", "Sure?"),
        ({"permissionDecision": "allow"}, "pass", None),
    ],
)
def test_permission_decisions(fields, action, reason):
    verdict, at = answer("claude", "pre_tool", specific(hookEventName="PreToolUse", **fields))
    assert (verdict.action, at.decisions[0].reason) == (action, reason)


@pytest.mark.parametrize(
    ("protocol", "event", "fields", "target", "value"),
    [
        ("claude", "pre_tool", {"updatedInput": {"item": "i2"}}, "args", {"item": "i2"}),
        ("gemini", "pre_tool", {"tool_input": {"quantity": 1}}, "args", {"item": "i1", "quantity": 1}),
        ("claude", "post_tool", {"updatedToolOutput": "hidden"}, "result", "hidden"),
        ("claude", "post_tool", {"updatedMCPToolOutput": [1]}, "result", [1]),
        ("gemini", "post_tool", {"tool_output": "hidden"}, "result", "hidden"),
        (
            "gemini",
            "post_model",
            {"llm_response": {"candidates": [{"content": {"parts": ["a", {"text": "b"}]}}]}},
            "output",
            "ab",
        ),
        ("claude", "input", {"additionalContext": "It is late."}, "message", "how much is it\n\nIt is late."),
        ("gemini", "input", {"additionalContext": "It is late."}, "message", "how much is it\n\nIt is late."),
        ("claude", "post_tool", {"additionalContext": "stale"}, "result", {"price": 89, "additional_context": "stale"}),
        ("gemini", "post_tool", {"tool_output": "new", "additionalContext": "stale"}, "result", "new\n\nstale"),
        (
            "claude",
            "post_tool",
            {"updatedToolOutput": [1], "additionalContext": "x"},
            "result",
            {"result": [1], "additional_context": "x"},
        ),
        ("claude", "stop", {"updatedInput": {"item": "i2"}}, "reply", "It costs 89 yuan."),
    ],
)
def test_changes(protocol, event, fields, target, value):
    verdict, at = answer(protocol, event, specific(**fields))
    assert verdict.action == "pass"
    assert getattr(at, target) == value
    assert at.decisions[0].decision == ("pass" if event == "stop" else "rewrite")


def test_plain_text_is_context_only_at_claudes_prompt():
    assert answer("claude", "input", "It is late.\n")[1].message == "how much is it\n\nIt is late."
    at = answer("claude", "stop", "bye")[1]
    assert (at.reply, at.decisions[0].decision) == ("It costs 89 yuan.", "pass")
    at = answer("gemini", "input", "loading...")[1]
    assert (at.message, at.decisions[0].decision) == ("how much is it", "warn")
    assert at.decisions[0].reason == "standard output is not JSON: 'loading...'"


@pytest.mark.parametrize(
    ("protocol", "event", "stdout", "reason"),
    [
        ("claude", "stop", '{"systemMessage": "slow today"}', "slow today"),
        ("claude", "stop", specific(additionalContext="x"), "additionalContext has no place at stop"),
        ("gemini", "pre_model", specific(llm_request={"model": "other"}), "llm_request is not carried out"),
        ("gemini", "stop", specific(clearContext=True), "clearContext is not carried out"),
    ],
)
def test_what_has_no_place_here_is_a_warning(protocol, event, stdout, reason):
    verdict, at = answer(protocol, event, stdout)
    assert verdict.action == "pass"
    assert (at.decisions[0].decision, at.decisions[0].reason) == ("warn", reason)


@pytest.mark.parametrize(
    ("protocol", "event", "stdout", "words"),
    [
        ("claude", "stop", '{"decision": ', "standard output is not JSON"),
        ("claude", "stop", '{"decision": "perhaps"}', "decision 'perhaps' is not a decision"),
        ("claude", "stop", '{"decision": ["block"]}', "is not a decision (allowed: block, deny, ask, allow, approve)"),
        ("claude", "pre_tool", specific(permissionDecision="maybe"), "permissionDecision 'maybe' is not a decision"),
        ("claude", "pre_tool", '{"hookSpecificOutput": "x"}', "hookSpecificOutput is not an object"),
        ("claude", "pre_tool", specific(updatedInput="x"), "updatedInput is not an object"),
        ("gemini", "pre_tool", specific(tool_input=[1]), "tool_input is not an object"),
        ("gemini", "post_model", specific(llm_response={"candidates": []}), "llm_response has no candidates"),
        ("claude", "stop", "{" + " " * 1_100_000 + "}", "it wrote more than 1048576 bytes"),
    ],
)
def test_an_answer_that_means_nothing_is_an_error(protocol, event, stdout, words):
    verdict, at = answer(protocol, event, stdout)
    assert verdict.action == "block"
    assert at.decisions[0].decision == "error"
    assert words in at.decisions[0].error


def test_a_refused_call_may_be_rewritten_instead():
    stdout = json.dumps({"decision": "block", "hookSpecificOutput": {"updatedInput": {"item": "i2"}}})
    verdict, at = answer("claude", "pre_tool", stdout, action="rewrite")
    assert (verdict.action, at.args) == ("pass", {"item": "i2"})


@pytest.mark.parametrize(
    ("protocol", "variable"),
    [("claude", "CLAUDE_PROJECT_DIR"), ("claude", "CLAUDE_PLUGIN_ROOT"), ("gemini", "GEMINI_PROJECT_DIR")],
)
def test_programs_find_their_files_by_the_variable_they_expect(protocol, variable):
    spec = {"shell": f'"${variable}"/hooks/run.sh stop', "files": ["hooks/run.sh"], "protocol": protocol}
    hook = {"event": "stop", "check": {"command": spec}, "otherwise": {"action": "block"}}
    files = {"hooks/run.sh": '#!/bin/sh\necho "at $1" >&2\nexit 2\n'}
    assert run(hook_set(hook, files=files))[0].message == "at stop"


def test_a_hook_of_claude_that_guards_a_tool_as_people_write_them():
    """The usual shape: read stdin as JSON, look at tool_input, exit 2 with the reason on stderr."""
    script = (
        "import json, sys\n"
        "event = json.load(sys.stdin)\n"
        "if event['tool_name'] == 'send_coupon' and event['tool_input'].get('percent', 0) > 20:\n"
        "    print('At most 20 percent; use `get_product` to see the price.', file=sys.stderr)\n"
        "    sys.exit(2)\n"
    )
    spec = {"run": [sys.executable, "guard.py"], "files": ["guard.py"], "protocol": "claude"}
    hooks = hook_set(
        {"event": "pre_tool", "check": {"command": spec}, "otherwise": {"action": "block"}}, files={"guard.py": script}
    )
    verdict, _ = run(hooks, "pre_tool", scene("pre_tool", tool="send_coupon", args={"percent": 30}))
    assert (verdict.action, verdict.role) == ("block", "tool")
    assert verdict.message == "At most 20 percent; use `get_product` to see the price."
    verdict, _ = run(
        hooks, "pre_tool", scene("pre_tool", tool="send_coupon", args={"percent": 10}, calls=[call("refuse")])
    )
    assert verdict.action == "pass"
