"""Which token gets which advantage, on a trajectory made by hand."""

from __future__ import annotations

from typing import Any

import pytest

from harnessctl.decode.prompt import PromptEncoder
from harnessctl.decode.template import ChatTemplate
from harnessctl.decode.tokens import TokenCodec
from harnessctl.records.score import Score
from harnessctl.records.trajectory import ModelCall, TokenPath, Trajectory
from harnessctl.train.rl.advantages import Advantage
from harnessctl.train.rl.credit import graded, paths_of
from tests.decode.conftest import make_tokenizer
from tests.train_rl.rl_project import score_of, trajectory_of

TOOL, REPLY = Advantage(reply=-2.0, tool=5.0), Advantage(reply=-2.0, tool=None)


@pytest.fixture(scope="module")
def encoder() -> PromptEncoder:
    template = ChatTemplate()
    return PromptEncoder(template, TokenCodec(make_tokenizer(), end=template.end))


def call(number: int, seen: int, tokens: tuple[int, int], **more: Any) -> ModelCall:
    return ModelCall(round=number, seen=seen, started_s=0.0, ended_s=0.0, path=0, tokens=tokens, **more)


def asked(*names: str) -> dict[str, Any]:
    calls = [{"id": n, "type": "function", "function": {"name": n, "arguments": "{}"}} for n in names]
    return {"role": "assistant", "content": None, "tool_calls": calls}


def whole(encoder: PromptEncoder) -> tuple[Trajectory, list[tuple[int, int]]]:
    """load_skill, two parallel calls after reasoning, a reply that a hook rejects, the reply; and where they stand."""
    said = [
        encoder.control("<think>hm</think>") + encoder.data('{"a"}') + [encoder.end_id],
        encoder.control("<think>four</think>") + encoder.data('{"b"}{"c"}') + [encoder.end_id],
        encoder.control("<think>so</think>") + encoder.data("too long") + [encoder.end_id],
        [*encoder.data("short"), encoder.end_id],
    ]
    messages = [{"role": "user", "content": "?"}]
    ids, mask, spans, calls = [7, 7, 7], [0, 0, 0], [], []
    answers = (
        asked("load_skill"),
        asked("get_product", "get_hours"),
        {"role": "assistant", "content": "too long"},
        {"role": "assistant", "content": "short"},
    )
    for number, (tokens, message) in enumerate(zip(said, answers, strict=True), 1):
        spans.append((len(ids), len(ids) + len(tokens)))
        calls.append(call(number, len(messages), spans[-1]))
        ids, mask = ids + tokens, mask + [1] * len(tokens)
        messages.append(message)
        for one in message.get("tool_calls") or ():  # type: ignore[attr-defined]
            messages.append({"role": "tool", "tool_call_id": one["id"], "content": "r"})
        ids, mask = [*ids, 9, 9], [*mask, 0, 0]
    made = trajectory_of([1, 2], 1, [-1.0])
    made.messages, made.calls = messages, calls
    made.paths = [TokenPath(ids=ids, mask=mask, logprobs=[-0.5 * m for m in mask])]
    return made, spans


def test_calls_get_that_of_the_tools_and_replies_their_own(encoder: PromptEncoder) -> None:
    trajectory, spans = whole(encoder)
    (path,) = paths_of(trajectory, TOOL)
    worth = dict(zip(path.places, path.advantages, strict=True))
    wanted = {place: 5.0 for span in spans[:2] for place in range(*span)}
    wanted |= {place: -2.0 for span in spans[2:] for place in range(*span)}
    assert worth == wanted
    assert path.ids == trajectory.paths[0].ids
    assert set(path.sampled) == {-0.5}


def test_what_is_graded(encoder: PromptEncoder) -> None:
    trajectory, _ = whole(encoder)
    found = graded(trajectory, score_of(1.0), encoder)
    assert found is not None
    assert found.has_call
    assert found.cot == {"tool": len("hm") + len("four"), "reply": len("so")}
    assert found.scores == {"accuracy": 1.0, "effectiveness": 1.0, "tool_rationality": None, "skill_selection": None}


def test_without_a_call(encoder: PromptEncoder) -> None:
    trajectory = trajectory_of([1, 2, 3, 4], 2, [-1.0, -2.0])
    found = graded(trajectory, score_of(0.0), encoder)
    assert found is not None
    assert not found.has_call
    (path,) = paths_of(trajectory, REPLY)
    assert (list(path.places), list(path.advantages), list(path.sampled)) == ([2, 3], [-2.0, -2.0], [-1.0, -2.0])


@pytest.mark.parametrize("stop", ["model_error", "cancelled"])
def test_a_rollout_that_failed_by_itself_says_nothing(stop: Any, encoder: PromptEncoder) -> None:
    trajectory = trajectory_of([1, 2, 3], 1, [-1.0])
    trajectory.stop = stop
    assert graded(trajectory, score_of(0.0), encoder) is None


def test_neither_does_one_without_a_score_or_a_word(encoder: PromptEncoder) -> None:
    nothing = Score(id="x", scenario="x", scorer="fake", bundle="b")
    assert graded(trajectory_of([1, 2, 3], 1, [-1.0]), nothing, encoder) is None
    silent = trajectory_of([1, 2, 3], 1, [-1.0])
    silent.calls, silent.messages = [], silent.messages[:1]
    silent.paths[0].mask = [0, 0, 0]
    assert graded(silent, score_of(0.0), encoder) is None
