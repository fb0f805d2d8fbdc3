from __future__ import annotations

import orjson
import pytest
from canned_server import request
from hypothesis import given
from hypothesis import strategies as st

from harnessctl.runtime.models.encode import BodyEncoder, body_document
from harnessctl.runtime.protocols import Sampling

TEXT = st.text(max_size=20)
MESSAGES = st.lists(
    st.fixed_dictionaries(
        {"role": st.sampled_from(["system", "user", "assistant", "tool"]), "content": TEXT},
        optional={"reasoning_content": TEXT},
    ),
    max_size=6,
)
TOOLS = st.lists(
    st.fixed_dictionaries({"type": st.just("function"), "function": st.dictionaries(TEXT, TEXT)}), max_size=2
)
SAMPLING = st.builds(
    Sampling,
    temperature=st.none() | st.floats(0, 2),
    top_p=st.none() | st.floats(0, 1),
    max_tokens=st.none() | st.integers(1, 9999),
    seed=st.none() | st.integers(0, 2**31),
    stop=st.lists(TEXT, max_size=2),
)
FIXED = st.dictionaries(
    st.sampled_from(["stream", "stream_options", "temperature", "seed", "logprobs", "chat_template_kwargs"]),
    st.none() | st.booleans() | st.dictionaries(TEXT, TEXT, max_size=1),
)


@given(MESSAGES, TOOLS, SAMPLING, FIXED, TEXT, st.booleans(), st.data())
def test_the_bytes_are_those_of_the_whole_document(messages, tools, sampling, fixed, model, send_reasoning, data):
    encoder = BodyEncoder(model=model, fixed=fixed, send_reasoning=send_reasoning)
    stable = data.draw(st.integers(0, len(messages)))
    for end in range(stable, len(messages) + 1):
        asked = request(messages=messages[:end], tools=tools, sampling=sampling, cache_key="k", stable=stable)
        document = body_document(asked, model=model, fixed=fixed, send_reasoning=send_reasoning)
        assert encoder.encode(asked) == orjson.dumps(document)


def test_keys_keep_prefixes_apart():
    encoder = BodyEncoder(model="m", fixed={})
    for system in ("a", "b", "a"):
        asked = request(messages=[{"role": "system", "content": system}], cache_key=system, stable=1)
        assert orjson.loads(encoder.encode(asked))["messages"][0]["content"] == system


def test_a_null_takes_a_key_out():
    asked = request(sampling=Sampling(max_tokens=9))
    document = body_document(asked, model="m", fixed={"max_tokens": None, "max_completion_tokens": 9})
    assert list(document) == ["model", "messages", "max_completion_tokens"]


def test_past_reasoning_is_left_out_where_the_endpoint_refuses_it():
    messages = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "a", "reasoning_content": "b"}]
    encoder = BodyEncoder(model="m", fixed={}, send_reasoning=False)
    sent = orjson.loads(encoder.encode(request(messages=messages)))["messages"]
    assert sent == [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "a"}]
    assert messages[1]["reasoning_content"] == "b"


def test_the_latest_used_prefixes_are_kept_within_the_budget():
    encoder = BodyEncoder(model="m", fixed={}, budget=300)
    for key in ("a", "b", "a", "c"):
        encoder.encode(request(messages=[{"role": "system", "content": key * 100}], cache_key=key, stable=1))
    kept = [key for key, _ in encoder._shared]
    assert kept == ["a", "c"]
    encoder.encode(request(messages=[{"role": "system", "content": "x" * 1000}], cache_key="long", stable=1))
    assert not encoder._shared


def test_half_a_surrogate_pair_is_an_error_of_json():
    with pytest.raises(orjson.JSONEncodeError):
        BodyEncoder(model="m", fixed={}).encode(request("\ud800"))
