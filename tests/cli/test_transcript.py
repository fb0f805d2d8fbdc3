from __future__ import annotations

import msgspec
import pytest

from harnessctl.cli.transcript import summary_rows, transcript
from harnessctl.records.trajectory import HookDecision, ToolCall, Trajectory


def trajectory(**changes) -> Trajectory:
    made = Trajectory(
        id="a",
        bundle="0" * 64,
        harness="h",
        loop="harness",
        model="m",
        request={"id": "a", "text": "How much\nis it?"},
        context={},
        limits={},
        started="2026-01-01T00:00:00Z",
        took_s=1.0,
        stop="replied",
        reply="89 yuan.",
        route="public",
        messages=[{"role": "user", "content": "How much is it?"}, {"role": "assistant", "content": "89 yuan."}],
        skills=["item-qa"],
    )
    return msgspec.structs.replace(made, **changes)


def test_a_row_says_what_was_asked_used_said_and_how_it_ended():
    call = ToolCall(round=1, id="1", name="get", arguments={}, status="timeout", started_s=0, ended_s=1)
    (row,) = summary_rows([trajectory(tools=[call])])
    assert row == ("a", "How much is it?", "item-qa", "get (timeout)", "89 yuan.", "replied")


@pytest.mark.parametrize(
    ("changes", "said", "ended"),
    [
        ({"stop": "hook_blocked", "reply": "", "route": "silent"}, "(not said: 89 yuan.)", "hook_blocked (silent)"),
        ({"stop": "silent", "reply": "", "route": "silent"}, "-", "silent"),
        ({"stop": "model_error", "reply": "", "messages": [], "route": "silent"}, "-", "model_error (silent)"),
        ({"route": "private"}, "89 yuan.", "replied (private)"),
    ],
)
def test_what_was_not_said_is_marked(changes, said, ended):
    (row,) = summary_rows([trajectory(**changes)])
    assert row[4:] == (said, ended)


def test_a_transcript_names_hooks_that_did_something_and_errors():
    hooks = [
        HookDecision(hook="h1", event="stop", round=1, decision="pass", took_s=0),
        HookDecision(hook="h2", event="stop", round=1, decision="retry", took_s=0, reason="too long"),
    ]
    text = transcript(trajectory(hooks=hooks, error="broken", warnings=["cut"]))
    assert "stop h2: retry too long" in text
    assert "h1" not in text
    assert "error: broken" in text
    assert "warning: cut" in text
