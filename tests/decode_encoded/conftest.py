"""A tokenizer of bytes, and the shipped harnesses."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from harnessctl.bundle.files import Bundle
from harnessctl.compile.revision import compiled
from harnessctl.decode.prompt import PromptEncoder
from harnessctl.decode.template import ChatTemplate
from harnessctl.decode.tokens import TokenCodec
from tests.decode.conftest import make_tokenizer

TEMPLATE = ChatTemplate()


@pytest.fixture(scope="session", autouse=True)
def _few_threads() -> None:
    torch.set_num_threads(1)


@pytest.fixture(scope="session")
def codec() -> TokenCodec:
    return TokenCodec(make_tokenizer(), end=TEMPLATE.end)


@pytest.fixture(scope="session")
def tagged_codec() -> TokenCodec:
    """As those of the Qwen family: the tags are tokens of their own."""
    tags = ("<think>", "</think>", "<tool_call>", "</tool_call>")
    return TokenCodec(make_tokenizer(added=tags), end=TEMPLATE.end)


@pytest.fixture(scope="session")
def encoder(codec: TokenCodec) -> PromptEncoder:
    return PromptEncoder(TEMPLATE, codec)


@pytest.fixture(scope="session")
def shipped(repository: Path) -> Callable[[str | None], Bundle]:
    """The bundle of a harness of this repository; null: its default."""
    made: dict[str | None, Bundle] = {}

    def bundle(name: str | None) -> Bundle:
        if name not in made:
            made[name] = compiled(repository, name)
        return made[name]

    return bundle
