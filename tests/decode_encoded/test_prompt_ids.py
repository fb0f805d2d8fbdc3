"""What was read and said is, id by id, the beginning of what is read next."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harnessctl.decode.prompt import PromptEncoder
from harnessctl.decode.template import ChatTemplate
from harnessctl.decode.tokens import TokenCodec
from harnessctl.errors import ModelError, UsageError
from harnessctl.runtime.protocols import ModelRequest, Sampling
from tests.decode.conftest import TOOLS, make_tokenizer

TAGS = ("<think>", "</think>", "<tool_call>", "</tool_call>")
ENCODERS = [
    PromptEncoder(ChatTemplate(), TokenCodec(make_tokenizer(added=added), end="<|im_end|>")) for added in ((), TAGS)
]
TEXT = st.one_of(
    st.text(max_size=12),
    st.sampled_from(["<|im_end|>", "\n\n", " <think>", "</think>", "<tool_call>\n{}", "价格 89", "tool call", "\n"]),
)
CALLS = st.lists(
    st.fixed_dictionaries(
        {
            "name": TEXT,
            "arguments": st.one_of(st.dictionaries(TEXT, TEXT | st.integers(), max_size=2).map(json.dumps), TEXT),
        }
    ).map(lambda function: {"id": "c", "type": "function", "function": function}),
    max_size=2,
)
SAID = st.tuples(st.none() | TEXT, st.none() | TEXT, CALLS)
TOLD = st.lists(
    st.fixed_dictionaries({"role": st.sampled_from(["user", "tool", "system"]), "content": TEXT}), max_size=2
)


def request(messages: list[dict[str, Any]], **more: Any) -> ModelRequest:
    return ModelRequest(messages=list(messages), tools=TOOLS, sampling=Sampling(), deadline=0.0, **more)


@pytest.mark.parametrize("encoder", ENCODERS, ids=["plain", "tags are tokens"])
@given(first=st.lists(TOLD, min_size=1, max_size=1), turns=st.lists(st.tuples(SAID, TOLD), max_size=3))
@settings(max_examples=60, deadline=None)
def test_a_conversation_grows_only_at_its_end(
    encoder: PromptEncoder, first: list[Any], turns: list[tuple[Any, list[dict[str, Any]]]]
) -> None:
    messages: list[dict[str, Any]] = [{"role": "system", "content": "Host."}, *first[0]]
    read = encoder.prompt(request(messages))
    for (content, reasoning, calls), told in turns:
        whole = read + encoder.reply(content, reasoning, calls)
        messages.append({"role": "assistant", "content": content, "reasoning_content": reasoning, "tool_calls": calls})
        known = len(messages)
        messages += told
        read = encoder.prompt(request(messages))
        assert read[: len(whole)] == whole
        assert encoder.prompt(request(messages, prefix_ids=whole, prefix_messages=known)) == read
        assert encoder.extend(whole, told) == read


def test_a_reply_ends_with_one_end_token(encoder: PromptEncoder) -> None:
    ids = encoder.reply("Eighty-nine.", "look at the result", [])
    assert encoder.decode(ids) == "<think>\nlook at the result\n</think>\n\nEighty-nine.<|im_end|>"
    assert ids.count(encoder.end_id) == 1
    assert encoder.end_id not in encoder.reply("<|im_end|>", "<|im_end|>", [])[:-1]


def test_ids_that_do_not_end_a_message_are_ended(encoder: PromptEncoder) -> None:
    cut = encoder.extend([], [{"role": "user", "content": "hi"}]) + encoder.data("Eigh")
    assert encoder.extend(cut, []) == [*cut, encoder.end_id, *encoder.control("\n<|im_start|>assistant\n")]


def test_a_message_that_is_none_is_a_model_error(encoder: PromptEncoder) -> None:
    with pytest.raises(ModelError, match="role 'viewer'"):
        encoder.extend([], [{"role": "viewer", "content": "hi"}])


BREAK_AFTER = "{% if message is none %}<|im_start|>assistant\n\n{% else %}<|im_start|>{{ message.role }}\n\n{{ message.content }}<|im_end|>\n{% endif %}"
OTHER_OPENING = "{% if message is none %}<|im_start|>assistant\n\n<think>\n\n{% else %}<|im_start|>{{ message.role }}\n\n{{ message.content }}<|im_end|>{% endif %}"


def test_templates_whose_replies_begin_no_prompt_are_refused(codec: TokenCodec) -> None:
    with pytest.raises(UsageError, match="does not begin an assistant's message with the opening"):
        PromptEncoder(ChatTemplate(OTHER_OPENING), codec).reply("hi")
    with pytest.raises(UsageError, match=r"does not end an assistant's message with '<\|im_end\|>'"):
        PromptEncoder(ChatTemplate(BREAK_AFTER), codec).reply("hi")
