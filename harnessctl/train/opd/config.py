"""Config of the stage opd; recipes/opd/default.yaml says what each key means."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from harnessctl.errors import UsageError
from harnessctl.train.config import Positive, Share, TrainConfig
from harnessctl.train.rl.config import RolloutConfig


class PromptsConfig(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """What the policy is asked. `path` is a JSON Lines file of {"prompt"} or {"messages"}; `general_share` of the prompts
    are general tasks that are made (all of them without a file). Prompts of more than `max_tokens` are passed over."""

    path: str | None = None
    general_share: Share = 1.0
    max_tokens: Positive = 1024


class StudentConfig(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """How the policy samples its answers. Who samples is the key `rollout`."""

    temperature: Annotated[float, Meta(ge=0, le=10)] = 1.0
    top_p: Annotated[float, Meta(gt=0, le=1)] = 1.0
    max_tokens: Positive = 256


class OpdConfig(TrainConfig, kw_only=True, forbid_unknown_fields=True):
    """The recipe of the stage opd.

    A step answers `prompts_per_step` prompts and learns from micro-batches of `micro_tokens` tokens. `base` is what the
    policy is drawn to: `auto` (the lineage's base: adapters off where that is proven to be it, else a second copy) or
    `copy` (a second copy in any case); `base_path` says where it lies. `temperature` divides both models' logits.
    """

    prompts: PromptsConfig = msgspec.field(default_factory=PromptsConfig)
    student: StudentConfig = msgspec.field(default_factory=StudentConfig)
    rollout: RolloutConfig = msgspec.field(default_factory=RolloutConfig)
    base: Literal["auto", "copy"] = "auto"
    base_path: str | None = None
    temperature: Annotated[float, Meta(gt=0, le=10)] = 1.0
    prompts_per_step: Positive = 16
    packing: Literal["auto", "on", "off"] = "auto"
    micro_tokens: Positive = 1024
    recompute: bool = False

    def check(self) -> None:
        """UsageError when keys do not go together."""
        self.rollout.check()
        if self.prompts.path is not None and self.prompts.general_share == 1.0:
            raise UsageError(
                f"prompts.path={self.prompts.path}, and none of its prompts would be asked: prompts.general_share is 1",
                hint="prompts.general_share=0.5 asks as many of the file as general tasks, 0 of the file alone",
            )
