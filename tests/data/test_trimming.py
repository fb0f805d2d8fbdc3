"""A trimmed trajectory is, id by id, that of a policy that was right at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import msgspec
import pytest

from harnessctl.data.failures import failures_of
from harnessctl.data.outputs import outputs_of
from harnessctl.data.samples import samples_of
from harnessctl.data.trimming import trim_retries
from harnessctl.decode.prompt import PromptEncoder
from harnessctl.decode.tokens import TokenCodec
from harnessctl.errors import TrainingError
from harnessctl.records.trajectory import Trajectory
from harnessctl.runtime.models.scripted import ScriptedReply
from tests.decode_encoded.stall import LOAD, calls, look, says, stock, talk

LONG = says("This reply is much longer than the hook allows.", "say all of it")
BLOCKED = calls(look(99), thought="a link that is not there")
UNKNOWN = calls(("buy", {"link": 3}))
BROKEN = calls(("look", "{not json"))
WRONG = calls(("look", {"link": "three"}))
CURSED = calls(look(), text="curse it")
SHOUTED = says("SHOUT", "loud")
EMPTY = says("")
#: What the policy does that is right at once.
LOADS, LOOKS = calls(LOAD, thought="which skill?"), calls(look(), thought="the price")
REPLY = says("83.", "read the result")


@pytest.fixture(scope="session")
def play(codec: TokenCodec) -> Callable[..., Trajectory]:
    def play(*replies: ScriptedReply, **fields: Any) -> Trajectory:
        (found,) = talk(codec, list(replies), **fields)
        return found

    return play


def spoken(trajectory: Trajectory) -> list[dict[str, Any]]:
    """The messages, whatever calls are named by."""
    names: dict[str, str] = {}

    def renamed(message: dict[str, Any]) -> dict[str, Any]:
        message = dict(message)
        if message.get("tool_calls"):
            message["tool_calls"] = [
                {**call, "id": names.setdefault(call["id"], f"call {len(names)}")} for call in message["tool_calls"]
            ]
        if "tool_call_id" in message:
            message["tool_call_id"] = names[message["tool_call_id"]]
        return message

    return [renamed(message) for message in trajectory.messages]


def check_same(trimmed: Trajectory, clean: Trajectory) -> None:
    (ids,), (wanted,) = trimmed.paths, clean.paths
    assert (ids.ids, ids.mask) == (wanted.ids, wanted.mask)
    assert spoken(trimmed) == spoken(clean)
    assert [call.tokens for call in trimmed.calls] == [call.tokens for call in clean.calls]
    assert [call.seen for call in trimmed.calls] == [call.seen for call in clean.calls]
    assert [(t.name, t.arguments, t.status) for t in trimmed.tools] == [
        (t.name, t.arguments, t.status) for t in clean.tools
    ]
    assert not any(hook.decision in ("block", "retry") for hook in trimmed.hooks)
    assert samples_of(trimmed)[0].groups == samples_of(clean)[0].groups


STUMBLES: dict[str, tuple[Sequence[ScriptedReply], Sequence[ScriptedReply]]] = {
    "a reply that a hook rejected": ((LOADS, LOOKS, LONG, REPLY), (LOADS, LOOKS, REPLY)),
    "rejected twice": ((LOADS, LONG, LONG, REPLY), (LOADS, REPLY)),
    "at the very beginning": ((LONG, LOADS, LOOKS, REPLY), (LOADS, LOOKS, REPLY)),
    "an empty reply": ((LOADS, EMPTY, REPLY), (LOADS, REPLY)),
    "a call that a hook blocked": ((LOADS, BLOCKED, LOOKS, REPLY), (LOADS, LOOKS, REPLY)),
    "a tool that is not there": ((UNKNOWN, LOOKS, REPLY), (LOOKS, REPLY)),
    "arguments that are no JSON": ((BROKEN, LOOKS, REPLY), (LOOKS, REPLY)),
    "arguments that do not fit": ((WRONG, LOOKS, REPLY), (LOOKS, REPLY)),
    "words that post_model forbids, with a call": ((LOADS, CURSED, LOOKS, REPLY), (LOADS, LOOKS, REPLY)),
    "words that post_model forbids, as a reply": ((LOOKS, SHOUTED, REPLY), (LOOKS, REPLY)),
    "blocked with a message apart": ((calls(stock(99)), calls(stock()), REPLY), (calls(stock()), REPLY)),
    "a result that was sent back and made again": ((calls(stock(-1)), calls(stock()), REPLY), (calls(stock()), REPLY)),
    "all at once": (
        (LONG, UNKNOWN, LOADS, CURSED, BLOCKED, LOOKS, EMPTY, LONG, REPLY), (LOADS, LOOKS, REPLY)
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", STUMBLES)
def test_what_is_left_is_what_a_policy_without_errors_says(play: Callable[..., Trajectory], name: str) -> None:
    stumbling, clean = STUMBLES[name]
    whole = play(*stumbling)
    assert whole.stop == "replied", whole.error
    trimmed = trim_retries(whole, keep=False)
    check_same(trimmed, play(*clean))
    assert trim_retries(trimmed, keep=False) is trimmed


PARTS: dict[str, tuple[Sequence[ScriptedReply], Sequence[ScriptedReply]]] = {
    "one of two calls blocked": (
        (calls(look(), look(99), text="Both.", thought="two"), REPLY), (calls(look(), text="Both.", thought="two"), REPLY)
    ),
    "the first of two, and made later": (
        (calls(("look", "no"), stock()), LOOKS, LONG, REPLY), (calls(stock()), LOOKS, REPLY)
    ),
    "with a message apart": ((calls(LOAD, stock(99), look()), LOOKS, REPLY), (calls(LOAD, look()), LOOKS, REPLY)),
}  # fmt: skip


@pytest.mark.parametrize("name", PARTS)
def test_a_message_is_written_again_without_the_calls_that_failed(
    play: Callable[..., Trajectory], encoder: PromptEncoder, name: str
) -> None:
    stumbling, clean = PARTS[name]
    trimmed = trim_retries(play(*stumbling), keep=False, encoder=encoder)
    check_same(trimmed, play(*clean))


def test_without_an_encoder_it_stays_as_context(play: Callable[..., Trajectory]) -> None:
    whole = play(calls(look(), look(99)), LONG, REPLY)
    trimmed = trim_retries(whole, keep=False)
    (path,) = trimmed.paths
    first, last = outputs_of(trimmed)
    assert not any(path.mask[first.start : first.end])
    assert all(path.mask[last.start : last.end])
    assert path.ids[: last.start] == whole.paths[0].ids[: outputs_of(whole)[1].start]
    assert len(trimmed.messages) == len(whole.messages) - 2


def test_reminders_that_cannot_be_told_apart_stay(play: Callable[..., Trajectory], encoder: PromptEncoder) -> None:
    """A hook at pre_tool and one at post_tool both spoke beside the results."""
    whole = play(calls(stock(-1), stock(99)), LOOKS, REPLY)
    trimmed = trim_retries(whole, keep=False, encoder=encoder)
    assert trimmed.messages == whole.messages
    assert [sum(trimmed.paths[0].mask[o.start : o.end]) > 0 for o in outputs_of(trimmed)] == [False, True, True]


@pytest.mark.parametrize("name", STUMBLES)
def test_kept_whole_only_what_was_right_is_learnt(play: Callable[..., Trajectory], name: str) -> None:
    stumbling, _ = STUMBLES[name]
    whole = play(*stumbling)
    before = msgspec.json.encode(whole)
    kept = trim_retries(whole, keep=True)
    assert msgspec.json.encode(whole) == before
    assert (kept.paths[0].ids, kept.messages) == (whole.paths[0].ids, whole.messages)
    outputs = outputs_of(kept)
    failed = failures_of(kept, outputs)
    assert len(failed) == len(stumbling) - len(STUMBLES[name][1])
    for place, output in enumerate(outputs):
        assert set(kept.paths[0].mask[output.start : output.end]) == {int(place not in failed)}
    (sample,) = samples_of(kept)
    assert [group > 0 for group in sample.groups] == [own > 0 for own in sample.mask]


def test_where_nothing_failed_nothing_changes(play: Callable[..., Trajectory]) -> None:
    for whole in (play(LOADS, LOOKS, REPLY), play(REPLY), play(calls(LOAD, look()), REPLY)):
        assert trim_retries(whole, keep=False) is whole
        assert trim_retries(whole, keep=True) is whole


def test_a_tool_that_failed_by_itself_is_gone_on_from(play: Callable[..., Trajectory]) -> None:
    code = "def look(link):\n    raise RuntimeError('closed')\ndef stock(link):\n    return {'left': -1}\n"
    whole = play(LOOKS, calls(stock()), REPLY, code={"code": code})
    assert [t.status for t in whole.tools] == ["error", "ok"]
    # The result that a hook sent back was not made again: the policy went on otherwise.
    assert any(hook.decision == "retry" for hook in whole.hooks)
    assert trim_retries(whole, keep=False) is whole


def test_what_ends_in_failure_has_no_end(play: Callable[..., Trajectory]) -> None:
    whole = play(LOADS, LONG, LONG, LONG, LONG)
    assert whole.stop == "hook_blocked"
    trimmed = trim_retries(whole, keep=False)
    assert [call.seen for call in trimmed.calls] == [2]
    assert [message["role"] for message in trimmed.messages] == ["system", "user", "assistant", "tool"]
    assert trimmed.paths[0].ids == whole.paths[0].ids[: outputs_of(whole)[0].end]
    nothing = trim_retries(play(LONG, LONG, LONG, LONG), keep=False)
    assert (nothing.calls, nothing.paths, samples_of(nothing)) == ([], [], [])


def test_later_turns_of_a_session(codec: TokenCodec) -> None:
    _, whole = talk(codec, [LOADS, REPLY], [LOOKS, LONG, REPLY], session="s")
    _, clean = talk(codec, [LOADS, REPLY], [LOOKS, REPLY], session="s")
    check_same(trim_retries(whole, keep=False), clean)
    again, _ = talk(codec, [LOADS, LONG, REPLY], [LOOKS, REPLY], session="s")
    check_same(trim_retries(again, keep=False), talk(codec, [LOADS, REPLY], session="s")[0])


def test_logprobs_hold_until_the_first_change(play: Callable[..., Trajectory]) -> None:
    whole = play(LOADS, LONG, LOOKS, REPLY)
    path = whole.paths[0]
    path.logprobs = [-1.0 * own for own in path.mask]
    trimmed = trim_retries(whole, keep=False)
    first, *rest = outputs_of(trimmed)
    logprobs = trimmed.paths[0].logprobs
    assert logprobs[first.start : first.end] == [-1.0] * (first.end - first.start)
    assert not any(any(logprobs[output.start : output.end]) for output in rest)


def test_paths_that_cannot_be_joined_are_refused(play: Callable[..., Trajectory]) -> None:
    whole = play(LONG, REPLY)
    whole.calls[1].path = 1
    whole.paths.append(msgspec.structs.replace(whole.paths[0]))
    for number, call in enumerate(whole.calls):
        start, end = call.tokens or (0, 0)
        whole.paths[number].mask = [int(start <= place < end) for place in range(len(whole.paths[0].ids))]
    with pytest.raises(TrainingError, match=r"cannot be trimmed: outputs stand in 2 token paths"):
        trim_retries(whole, keep=False)
    for call in whole.calls:
        call.path = call.tokens = None
    whole.paths = []
    with pytest.raises(TrainingError, match="outputs have no token ids"):
        trim_retries(whole, keep=False)
