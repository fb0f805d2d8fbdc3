from __future__ import annotations

import multiprocessing
import os
import socket
import warnings
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import LlamaConfig, LlamaForCausalLM

from tests.conftest import REPOSITORY
from tests.decode.conftest import make_llama, make_tokenizer


@pytest.fixture(scope="session", autouse=True)
def _few_threads() -> None:
    torch.set_num_threads(1)


def write_model(folder: Path, model: Any = None, **save: Any) -> Path:
    """A folder in the Hugging Face layout: `model`, or a tiny Llama, with the tokenizer of the decoder's tests."""
    tokenizer = make_tokenizer()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        (make_llama(tokenizer) if model is None else model).save_pretrained(folder, **save)
    tokenizer.save(str(folder / "tokenizer.json"))
    return folder


@pytest.fixture(scope="session")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_model(tmp_path_factory.mktemp("models") / "tiny")


@pytest.fixture
def tied(tmp_path: Path) -> Path:
    """A model whose output embedding is the input's."""
    torch.manual_seed(5)
    config = LlamaConfig(
        vocab_size=270,
        hidden_size=16,
        intermediate_size=24,
        num_hidden_layers=1,
        num_attention_heads=2,
        num_key_value_heads=1,
        tie_word_embeddings=True,
        bos_token_id=1,
        eos_token_id=0,
    )
    return write_model(tmp_path / "tied", LlamaForCausalLM(config))


class Processes:
    """Starts functions in processes of their own, which begin with everything imported."""

    def __init__(self, environment: pytest.MonkeyPatch) -> None:
        environment.setenv("PYTHONPATH", os.pathsep.join([str(REPOSITORY), os.environ.get("PYTHONPATH", "")]))
        self._context = multiprocessing.get_context("forkserver")
        self._context.set_forkserver_preload(["tests.train_core.small"])

    def run(self, function: Callable[..., None], *arguments: Any, **keywords: Any) -> int:
        """Run it to its end; returns the exit code, that of a signal negative."""
        return self.all([(function, arguments, keywords)])[0]

    def all(self, jobs: Sequence[tuple[Callable[..., None], tuple[Any, ...], dict[str, Any]]]) -> list[int]:
        """Run them beside each other to their ends."""
        started = [self._context.Process(target=function, args=args, kwargs=kw) for function, args, kw in jobs]
        for process in started:
            process.start()
        for process in started:
            process.join(60)
        assert all(process.exitcode is not None for process in started)
        return [process.exitcode or 0 for process in started]

    def together(self, function: Callable[..., None], *arguments: Any, **environment: str) -> list[int]:
        """Run it as two processes of one training."""
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = str(free.getsockname()[1])
        common = {"WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port, **environment}
        ranks = [{"environment": {**common, "RANK": rank, "LOCAL_RANK": rank}} for rank in "01"]
        return self.all([(function, arguments, rank) for rank in ranks])


@pytest.fixture(scope="session")
def processes() -> Iterator[Processes]:
    with pytest.MonkeyPatch.context() as environment:
        yield Processes(environment)
