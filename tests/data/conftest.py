"""Encoders over small tokenizers of bytes."""

from __future__ import annotations

import pytest
import torch

from harnessctl.decode.prompt import PromptEncoder
from harnessctl.decode.template import ChatTemplate
from harnessctl.decode.tokens import TokenCodec
from tests.decode.conftest import make_tokenizer

TAGS = ("<think>", "</think>", "<tool_call>", "</tool_call>")


@pytest.fixture(scope="session", autouse=True)
def _few_threads() -> None:
    torch.set_num_threads(1)


@pytest.fixture(scope="session")
def codec() -> TokenCodec:
    return TokenCodec(make_tokenizer(), end="<|im_end|>")


@pytest.fixture(scope="session")
def encoder(codec: TokenCodec) -> PromptEncoder:
    return PromptEncoder(ChatTemplate(), codec)


@pytest.fixture(scope="session", params=["plain", "tags are tokens"])
def either(request: pytest.FixtureRequest) -> PromptEncoder:
    """With the template's tags as text, and as tokens of their own."""
    added = TAGS if request.param != "plain" else ()
    return PromptEncoder(ChatTemplate(), TokenCodec(make_tokenizer(added=added), end="<|im_end|>"))
