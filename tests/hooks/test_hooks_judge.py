from __future__ import annotations

import asyncio
import time

import pytest
from hook_scenes import decide, scene


class Fixed:
    """A judge that gives the same answer to everybody and keeps what it was asked."""

    def __init__(self, scores, error: BaseException | None = None) -> None:
        self.scores, self.error, self.asked = scores, error, []

    async def judge(self, harness, context, deadline):
        self.asked.append((harness, context, deadline))
        if self.error is not None:
            raise self.error
        return self.scores


@pytest.mark.parametrize(
    ("scores", "spec", "decision", "reason"),
    [
        ({"score": 1}, {}, "pass", None),
        ({"score": 0.5}, {}, "block", "not true of the scores: score >= 1"),
        ({"score": 0, "reason": "rude"}, {}, "block", "rude"),
        ({"accuracy": 1, "effectiveness": 0.5}, {"pass": "accuracy == 1 and effectiveness >= 0.5"}, "pass", None),
        ({"accuracy": 0, "effectiveness": 1}, {"pass": "accuracy == 1 and effectiveness >= 0.5"}, "block", ...),
    ],
)
def test_scores_decide(scores, spec, decision, reason):
    seen = decide({"judge": {"harness": "live", **spec}}, judge=Fixed(scores))
    assert seen.decision == decision
    assert reason is ... or seen.reason == reason


def test_what_the_judge_is_given():
    judge = Fixed({"score": 1})
    spec = {"harness": "live", "input": {"said": "reply", "room": "context.room", "none": "nothing.there"}}
    at = scene()
    decide({"judge": spec}, at=at, judge=judge)
    ((harness, context, deadline),) = judge.asked
    assert harness == "live"
    assert context == {"said": "It costs 89 yuan.", "room": {"id": "r9", "price": 89.0}, "none": None}
    assert context["room"] is not at.context["room"]
    assert time.monotonic() < deadline < time.monotonic() + 5


@pytest.mark.parametrize(
    ("judge", "words"),
    [
        (Fixed({}), "gave no score for 'score >= 1'; got nothing"),
        (Fixed({"score": None}), "gave no score for 'score >= 1'; got score"),
        (Fixed({"score": "high"}), "gave no score"),
        (Fixed([1]), "gave list, not scores by name"),
        (Fixed({}, ValueError("no model")), "the judge `live` gave nothing: ValueError: no model"),
        (Fixed({}, TimeoutError()), "the judge `live` gave nothing: TimeoutError"),
    ],
)
def test_no_score_is_an_error_and_not_a_low_score(judge, words):
    seen = decide({"judge": {"harness": "live"}}, judge=judge)
    assert seen.decision == "error"
    assert words in seen.error


def test_bad_expressions_are_found_when_the_hook_is_made():
    for spec in ({"pass": "1 +"}, {"input": {"x": "1 +"}}):
        assert "'1 +' is not an expression" in decide({"judge": {"harness": "live", **spec}}, judge=Fixed({})).error


def test_a_judge_that_never_answers_is_given_up():
    class Slow:
        async def judge(self, harness, context, deadline):
            await asyncio.Event().wait()

    from hook_scenes import hook_set, run

    hook = {
        "event": "stop",
        "check": {"judge": {"harness": "live"}},
        "otherwise": {"action": "warn"},
        "timeout_s": 0.02,
    }
    _, at = run(hook_set(hook, judge=Slow()))
    assert at.decisions[0].error == "hook hook-0: the judge `live` gave nothing: it timed out"
