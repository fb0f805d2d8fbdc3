"""The real small model, where it has been pulled: `harnessctl models pull smol`."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Iterator

import pytest

from harnessctl.decode.catalog import list_models
from harnessctl.decode.local import LocalModel
from harnessctl.decode.opening import open_local
from harnessctl.runtime.protocols import ModelReply, ModelRequest, Sampling
from tests.decode.conftest import TOOLS

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module", params=["float32", "int8"])
def smol(request: pytest.FixtureRequest) -> Iterator[LocalModel]:
    if next(model for model in list_models() if model.name == "smol").state != "pulled":
        pytest.skip("smol has not been pulled; harnessctl models pull smol")
    model = open_local("smol", dtype=request.param, device="cpu")
    yield model
    asyncio.run(model.aclose())


def ask(model: LocalModel, text: str, **more: object) -> ModelReply:
    messages = [{"role": "system", "content": "Answer in a few words."}, {"role": "user", "content": text}]
    options = {"tools": [], "sampling": Sampling(max_tokens=60)} | more
    return asyncio.run(model.complete(ModelRequest(messages=messages, deadline=time.monotonic() + 300, **options)))


def test_it_knows_a_capital(smol: LocalModel) -> None:
    reply = ask(smol, "What is the capital of France?")
    assert "Paris" in (reply.content or "")
    assert reply.finish_reason == "stop"


def test_a_required_call_takes_the_number_from_the_question(smol: LocalModel) -> None:
    reply = ask(smol, "How much is link 3?", tools=TOOLS[:1], tool_choice="required")
    assert [(call.name, json.loads(call.arguments)) for call in reply.tool_calls] == [("get_product", {"link": 3})]
    assert reply.finish_reason == "tool_calls"


def test_a_reply_fits_its_schema(smol: LocalModel) -> None:
    schema = {"type": "object", "properties": {"city": {"enum": ["Paris", "Rome"]}}, "required": ["city"]}
    reply = ask(smol, "Which city is the capital of Italy?", reply_schema=schema)
    assert json.loads(reply.content or "") in ({"city": "Paris"}, {"city": "Rome"})
