"""Which reward each token answers to, on trajectories made by hand and on played ones."""

from __future__ import annotations

import math
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harnessctl.data.groups import CODES, cot_lengths, token_groups
from harnessctl.data.outputs import outputs_of
from harnessctl.data.reasoning import reasoning_tokens
from harnessctl.data.samples import samples_of
from harnessctl.decode.prompt import PromptEncoder
from harnessctl.decode.template import ChatTemplate
from harnessctl.decode.tokens import TokenCodec
from harnessctl.errors import RecordError, TrainingError
from harnessctl.records.trajectory import ModelCall, TokenPath, Trajectory
from harnessctl.runtime.reasoning import split_reasoning
from tests.decode.conftest import make_tokenizer
from tests.decode_encoded.stall import LOAD, calls, look, says, stock, talk


def said(content: str | None, *names: str) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": content}
    if names:
        message["tool_calls"] = [
            {"id": f"c{place}", "function": {"name": name, "arguments": "{}"}} for place, name in enumerate(names)
        ]
    return message


def told(role: str = "tool") -> dict[str, Any]:
    return {"role": role, "content": "x", "tool_call_id": "c0"}


def call(number: int, seen: int, tokens: tuple[int, int] | None, path: int | None = 0, **more: Any) -> ModelCall:
    return ModelCall(round=number, seen=seen, started_s=0.0, ended_s=0.0, path=path, tokens=tokens, **more)


def path(*runs: tuple[int, int]) -> TokenPath:
    """(mask, length) after each other."""
    mask = [own for own, length in runs for _ in range(length)]
    return TokenPath(ids=list(range(len(mask))), mask=mask, logprobs=[-0.5 * own for own in mask])


def trajectory(
    messages: list[dict[str, Any]], made: list[ModelCall], paths: list[TokenPath], **more: Any
) -> Trajectory:
    given: dict[str, Any] = {
        "id": "t", "bundle": "b" * 64, "harness": "h", "loop": "harness", "model": "m", "request": {}, "context": {},
        "limits": {}, "started": "", "took_s": 0.0, "stop": "replied", "reply": "r", "route": "public",
    }  # fmt: skip
    return Trajectory(**(given | more), messages=messages, calls=made, paths=paths)


HEAD = [{"role": "system", "content": "s"}, {"role": "user", "content": "u"}]


def test_calls_are_of_the_tools_and_replies_of_the_reply() -> None:
    """A load_skill, two parallel calls with text before them, a rejected reply, and the reply."""
    messages = [
        *HEAD, said(None, "load_skill"), told(), said("One moment.", "look", "stock"), told(), told(),
        said("Much too long."), told("user"), said("Short."),
    ]  # fmt: skip
    made = [call(1, 2, (3, 5)), call(2, 4, (6, 9)), call(3, 7, (11, 12)), call(4, 9, (14, 16))]
    ids = path((0, 3), (1, 2), (0, 1), (1, 3), (0, 2), (1, 1), (0, 2), (1, 2))
    (found,) = token_groups(trajectory(messages, made, [ids]))
    assert found.groups == [0, 0, 0, 1, 1, 0, 1, 1, 1, 0, 0, 2, 0, 0, 2, 2]
    assert found.reasoning is None


def test_without_a_tool_call_all_is_reply() -> None:
    (found,) = token_groups(trajectory([*HEAD, said("Hi.")], [call(1, 2, (2, 4))], [path((0, 2), (1, 2))]))
    assert found.groups == [0, 0, 2, 2]


def test_a_call_that_failed_has_no_tokens_and_paths_are_apart() -> None:
    messages = [*HEAD, said(None, "look"), told(), said("Hi.")]
    made = [
        call(1, 2, None, None, error="503"), call(2, 2, (2, 3)), call(3, 4, (3, 5), path=1)
    ]  # fmt: skip
    paths = [path((0, 2), (1, 1)), path((0, 3), (1, 2))]
    found = token_groups(trajectory(messages, made, paths))
    assert [one.groups for one in found] == [[0, 0, 1], [0, 0, 0, 2, 2]]
    samples = samples_of(trajectory(messages, made, paths))
    assert [(sample.path, sample.learnt, sample.ids) for sample in samples] == [
        (0, 1, [0, 1, 2]), (1, 2, [0, 1, 2, 3, 4])
    ]  # fmt: skip
    assert samples[0].logprobs == [0.0, 0.0, -0.5]


def test_calls_without_ids_have_no_path() -> None:
    without = trajectory([*HEAD, said("Hi.")], [call(1, 2, None, None)], [])
    assert token_groups(without) == []
    with pytest.raises(TrainingError, match="the model m gave no token ids"):
        samples_of(without)
    assert samples_of(trajectory(HEAD, [], [])) == []


@pytest.mark.parametrize(
    ("change", "what"),
    [
        ({"paths": [TokenPath([1, 2, 3], [0, 1], [0.0] * 3)]}, "path 0 has 3 ids, 2 of mask and 3 logprobs"),
        ({"paths": [TokenPath([1, 2, 3], [0, 0, 1], [0.0] * 2)]}, "3 of mask and 2 logprobs"),
        ({"made": [call(1, 2, (2, 9))]}, "call 1 sampled ids 2 to 9 of path 0, which has 5"),
        ({"made": [call(1, 2, (4, 3))]}, "call 1 sampled ids 4 to 3"),
        ({"made": [call(1, 2, (2, 4), path=3)]}, "call 1 is of path 3, and there are 1"),
        ({"made": [call(1, 2, (2, 4), path=None)]}, "call 1 is of path None"),
        ({"made": [call(1, 1, (2, 4))]}, r"call 1 has no message of the assistant at messages\[1\]"),
        ({"made": [call(1, 8, (2, 4))]}, r"no message of the assistant at messages\[8\]"),
        ({"made": [call(1, 2, (2, 4))]}, "path 0: 3 ids are masked in, and calls sampled 2 of them"),
        ({"made": [call(1, 2, (1, 5))]}, "call 1 is masked in by halves"),
        ({"made": [call(1, 2, (2, 5)), call(2, 2, (4, 5))]}, "calls 1 and 2 share sampled ids"),
    ],
)
def test_a_record_that_contradicts_itself_is_refused(change: dict[str, Any], what: str) -> None:
    given: dict[str, Any] = {"made": [call(1, 2, (2, 5))], "paths": [path((0, 2), (1, 3))]} | change
    with pytest.raises(RecordError, match=f"trajectory t: .*{what}"):
        samples_of(trajectory([*HEAD, said("Hi.")], given["made"], given["paths"]))


ROUNDS = [
    calls(LOAD, thought="which skill?"),
    calls(look(), stock(), text="One moment.", thought="two calls"),
    calls(look(99), thought="blocked by a hook"),
    says("This reply is much longer than the hook allows.", "too long"),
    says("83.", "short"),
]


def test_a_played_trajectory(either: PromptEncoder) -> None:
    """A retry, a load_skill, two parallel calls, reasoning and a reply that a hook rejected."""
    codec: TokenCodec = either._codec  # type: ignore[attr-defined]
    (played,) = talk(codec, ROUNDS)
    assert (played.stop, [record.status for record in played.tools]) == ("replied", ["ok", "ok", "ok", "blocked"])
    (found,) = token_groups(played, codec)
    (ids,) = played.paths
    assert [int(group > 0) for group in found.groups] == ids.mask
    told = [CODES["tool"]] * 3 + [CODES["reply"]] * 2
    assert [set(found.groups[o.start : o.end]) for o in outputs_of(played)] == [{code} for code in told]
    # What is thought stands between the tags with a line break on either side, in bytes.
    thoughts = [f"\n{reply.reasoning}\n" for reply in ROUNDS]
    counts = [len(codec.encode_data(thought)) for thought in thoughts]
    assert counts == [len(thought) for thought in thoughts] or counts[1] == len(thoughts[1]) - 3
    assert cot_lengths(played, codec) == {"tool": sum(counts[:3]), "reply": sum(counts[3:])} == found.reasoning


def test_several_turns_of_a_session(codec: TokenCodec) -> None:
    turn = [calls(look(), thought="look"), says("83.", "read")]
    first, second = talk(codec, turn, turn, session="s")
    (before,), (after,) = token_groups(first, codec), token_groups(second, codec)
    assert not any(after.groups[: len(before.groups)])
    assert after.reasoning == before.reasoning == {"tool": len("\nlook\n"), "reply": len("\nread\n")}
    (one,), (two,) = samples_of(first), samples_of(second)
    assert one.context != two.context
    assert two.ids[: len(one.ids)] == one.ids


def test_samples_that_share_their_prompt_have_one_context(codec: TokenCodec) -> None:
    (one,) = samples_of(talk(codec, [says("83.")])[0])
    (two,) = samples_of(talk(codec, [calls(look()), says("83.")])[0])
    assert one.context == two.context
    assert one.template == ChatTemplate().digest
    assert len(one) == len(one.ids)


PIECES = st.sampled_from(["a", "价格", "\n", "<think>", "</think>", "tool", "🙂", "<", "think>"])


@given(st.lists(PIECES, max_size=10).map("".join), st.booleans())
@settings(max_examples=150, deadline=None)
def test_reasoning_is_counted_as_the_runtime_reads_it(text: str, ends: bool) -> None:
    """With a token for each byte, the ids of what is thought are its bytes."""
    codec = CODECS[0]
    ids = [token for byte in text.encode() for token in [SINGLE[byte]]]
    thought = split_reasoning(text)[1] or ""
    count = reasoning_tokens([*ids, codec.end_id] if ends else ids, codec)
    strip = str.maketrans("", "", " \n")
    assert count - len(thought.translate(strip).encode()) <= text.count("\n")
    assert count >= len(thought.translate(strip).encode())


class Pieces:
    """Ids that are places in a list of texts."""

    end_id = -1

    def __init__(self, *pieces: str) -> None:
        self.pieces = pieces
        self.ids = list(range(len(pieces)))

    def decode(self, ids: list[int]) -> str:
        return "".join(self.pieces[place] for place in ids)


@pytest.mark.parametrize(
    ("pieces", "count"),
    [
        (("<think>", "a", "b", "</think>", "c"), 2),
        (("<th", "ink>a", "b", "c</", "think>", "d"), 1),
        (("<think>", "a", "b</think>c"), 1),
        (("a", "b", "</think>", "c"), 2),
        (("a", "b<", "/think>", "c"), 1),
        (("<think>", "a", "b"), 2),
        (("x<think>a", "b"), 1),
        (("<think>a</think>",), 0),
    ],
)
def test_an_id_that_holds_a_part_of_a_tag_is_the_tags(pieces: tuple[str, ...], count: int) -> None:
    decoder = Pieces(*pieces)
    assert reasoning_tokens([*decoder.ids, decoder.end_id], decoder) == count


CODECS = [TokenCodec(make_tokenizer(), end="<|im_end|>")]
SINGLE: dict[int, int] = {}
for _byte in range(256):
    if _byte < 128:
        (SINGLE[_byte],) = CODECS[0].encode_data(chr(_byte))
for _text in ("价格", "🙂", "价", "格"):
    _ids = CODECS[0].encode_data(_text)
    if len(_ids) == len(_text.encode()):
        SINGLE.update(zip(_text.encode(), _ids, strict=True))


def test_no_reasoning_costs_one_reading(codec: TokenCodec) -> None:
    assert reasoning_tokens(codec.encode_data("no thought"), codec) == 0
    assert reasoning_tokens([], codec) == 0
    assert reasoning_tokens([codec.end_id], codec) == 0
    assert math.isclose(reasoning_tokens(codec.encode_data("<think>never closed"), codec), len("never closed"))


def test_samples_are_plain_records(codec: TokenCodec) -> None:
    (sample,) = samples_of(talk(codec, [says("83.")])[0])
    assert msgspec.json.decode(msgspec.json.encode(sample), type=type(sample)) == sample
