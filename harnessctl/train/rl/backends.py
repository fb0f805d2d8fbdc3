"""Backends: who samples the rollouts, with the weights of now.

What always holds: no answer comes of a context that other weights worked out: each batch of rollouts has a model that was made
for it, or a server that has just read the weights anew.
"""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import torch
from accelerate import Accelerator

from harnessctl.decode.batched import BatchedModel
from harnessctl.errors import ModelError, TrainingError
from harnessctl.records.lineage import Lineage
from harnessctl.runtime.protocols import Model
from harnessctl.train.policy import Policy
from harnessctl.train.rl.config import RolloutConfig

if TYPE_CHECKING:
    from harnessctl.decode.sglang import SGLangModel


class Backend(Protocol):
    """Gives the model of one batch of rollouts. All is called on the event loop of the rollouts."""

    async def open(self) -> Model:
        """The policy with the weights that it has now. TrainingError when it cannot be had."""
        ...

    def place(self) -> AbstractAsyncContextManager[object]:
        """A place among those who ask; entered while a rollout is carried out. All are taken before the first is entered."""
        ...

    async def close(self) -> None:
        """Let go of the model."""
        ...


class LocalBackend:
    """The live parameters in this process, many requests a pass [design 8: rollouts]."""

    def __init__(self, policy: Policy, config: RolloutConfig) -> None:
        self._policy = policy
        self._config = config
        self._model: BatchedModel | None = None

    async def open(self) -> Model:
        """A model of its own for each batch."""
        policy, config = self._policy, self._config
        self._model = BatchedModel(
            policy.weights(),
            name=policy.name,
            template=policy.template,
            rows=config.rows,
            grammar=config.grammar,
            reasoning=config.reasoning,
            dtype="bfloat16" if policy.dtype is torch.bfloat16 else "own",
        )
        return self._model

    def place(self) -> AbstractAsyncContextManager[object]:
        """A place in the rounds."""
        assert self._model is not None
        return self._model.member()

    async def close(self) -> None:
        """Let go of the thread, and of keys and values."""
        if self._model is not None:
            await self._model.aclose()
            self._model = None


class SglangBackend:
    """SGLang servers, each process asking one of them. They read the weights from disk before each batch of rollouts, so the
    folder must be one that they see. `lineage` makes that of what is written."""

    def __init__(
        self,
        policy: Policy,
        config: RolloutConfig,
        *,
        folder: Path,
        lineage: Callable[[], Lineage],
        accelerator: Accelerator,
    ) -> None:
        self._policy = policy
        self._config = config
        self._folder = folder
        self._make_lineage = lineage
        self._lineage: Lineage | None = None
        self._accelerator = accelerator
        self._models: list[SGLangModel] = []
        self._batches = 0

    async def open(self) -> Model:
        """Write the weights, and have the servers read them: ModelError of a server that does not comes as TrainingError."""
        accelerator = self._accelerator
        target = self._folder / f"weights-{self._batches}"
        self._batches += 1
        if self._lineage is None:  # once: it reads every byte of the start
            self._lineage = self._make_lineage()
        self._policy.save(target, self._lineage, head="stale")
        self._models = [self._model(url) for url in self._config.urls]
        self._places = asyncio.Semaphore(self._config.rows)
        try:
            if accelerator.is_main_process:
                await asyncio.gather(*(model.update_weights(target) for model in self._models))
        except ModelError as error:
            raise TrainingError(f"a server did not take the new weights: {error.message}", hint=error.hint) from error
        accelerator.wait_for_everyone()
        if accelerator.is_main_process:
            shutil.rmtree(target)
        return self._models[accelerator.process_index % len(self._models)]

    def place(self) -> AbstractAsyncContextManager[object]:
        """One of the `rows` places at the server."""
        return self._places

    def _model(self, url: str) -> SGLangModel:
        from harnessctl.decode.sglang import SGLangModel

        policy = self._policy
        return SGLangModel(
            url,
            name=policy.name,
            tokenizer=policy.tokenizer,
            template=policy.template,
            ends=policy.weights().ends,
            key_env=self._config.key_env,
        )

    async def close(self) -> None:
        """Close the connections."""
        for model in self._models:
            await model.aclose()
        self._models = []
