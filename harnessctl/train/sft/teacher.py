"""Teacher: carries scenarios out for a policy to learn from, with the ids that the policy would have read and said.

What always holds: try `attempt` at an item is a function of the setting, the item and the number of the try (for an
endpoint as far as it keeps to its seed).
"""

from __future__ import annotations

import copy
from contextlib import AsyncExitStack
from dataclasses import dataclass

import msgspec
from tokenizers import Tokenizer

from harnessctl.decode.encoded import EncodedModel
from harnessctl.decode.prompt import PromptEncoder
from harnessctl.decode.template import ChatTemplate
from harnessctl.decode.tokens import TokenCodec
from harnessctl.evaluate.items import Item
from harnessctl.evaluate.rollouts import Rollouts
from harnessctl.evaluate.setting import Setting
from harnessctl.policies import open_policy
from harnessctl.records.score import Score
from harnessctl.records.trajectory import Trajectory
from harnessctl.runtime.judge import BundleSource
from harnessctl.runtime.protocols import Model

#: Between the seeds of two tries: scenarios of a run take neighbouring seeds.
_STRIDE = 1_000_003


@dataclass(slots=True, frozen=True)
class Tongue:
    """In what the policy reads and speaks: chat template and tokenizer, as text that goes between processes."""

    template: str
    end: str
    tokenizer: str

    @classmethod
    def of(cls, template: ChatTemplate, codec: TokenCodec) -> Tongue:
        """The tongue of a policy."""
        return cls(template.source, template.end, codec.source)

    def open(self) -> tuple[ChatTemplate, TokenCodec]:
        """Template and codec again."""
        return ChatTemplate(self.template, end=self.end), TokenCodec(Tokenizer.from_str(self.tokenizer), end=self.end)


class Teacher:
    """Plays items of `setting` with its policy. Belongs to one event loop; `aclose` closes what was opened."""

    def __init__(self, setting: Setting, tongue: Tongue, *, judges: BundleSource) -> None:
        self._setting = setting
        self._judges = judges
        self._template, self._codec = tongue.open()
        #: Writes messages as the policy would have read and said them.
        self.encoder = PromptEncoder(self._template, self._codec)
        self._rollouts: dict[int, Rollouts] = {}
        config = setting.config
        self._endpoint = None if config.policy == "oracle" else self._encoded(open_policy(config.policy, config.model))

    async def play(self, item: Item, attempt: int) -> tuple[Trajectory, Score]:
        """What try `attempt` (from 0) came to."""
        rollouts = self._rollouts.get(attempt)
        if rollouts is None:
            rollouts = self._rollouts[attempt] = self._open(attempt)
        return await rollouts.play(item)

    async def aclose(self) -> None:
        """Close agents and model."""
        async with AsyncExitStack() as stack:
            if self._endpoint is not None:
                stack.push_async_callback(self._endpoint.aclose)
            for rollouts in self._rollouts.values():
                stack.push_async_callback(rollouts.aclose)

    def _open(self, attempt: int) -> Rollouts:
        setting = copy.copy(self._setting)  # the same world and scenarios
        setting.config = msgspec.structs.replace(setting.config, seed=setting.config.seed + _STRIDE * attempt)
        if self._endpoint is not None:
            return Rollouts(setting, judges=self._judges, model=self._endpoint)
        return Rollouts(setting, judges=self._judges, wrap=self._encoded)

    def _encoded(self, model: Model) -> Model:
        return EncodedModel(model, self._template, self._codec)
