"""Job: all that a stage is given to train with."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harnessctl.bundle.files import Bundle
from harnessctl.checkpoint.policy import next_lineage
from harnessctl.checkpoint.resume import ResumePoints
from harnessctl.errors import HarnessctlError, TrainingError
from harnessctl.runs import package_versions, utc_now
from harnessctl.train.config import TrainConfig
from harnessctl.train.metrics import Metrics
from harnessctl.train.policy import Policy, load_policy

if TYPE_CHECKING:
    from accelerate import Accelerator

    from harnessctl.records.lineage import Lineage


@dataclass(frozen=True)
class Job:
    """One training. `root` is the project's, `folder` the run's. `bundle` is the harness that it trains under, null where
    the stage asks for none, and `judges` are the bundles that its hooks ask, by name. `start` is the folder that the
    weights come from. `talk` is for the person who watches. `recipe` is the resolved config as plain data."""

    root: Path
    folder: Path
    config: Any
    bundle: Bundle | None
    judges: dict[str, Bundle]
    start: Path
    metrics: Metrics
    talk: Callable[[str], None]
    accelerator: Accelerator | None = None
    stage: str = ""
    recipe: dict[str, Any] = field(default_factory=dict)

    @property
    def checkpoint(self) -> Path:
        """Where the checkpoint goes."""
        return self.folder / "checkpoint"

    @cached_property
    def policy(self) -> Policy:
        """The policy as it begins, loaded once."""
        config: TrainConfig = self.config
        # Sharded weights are moved to the device shard by shard, since a whole copy may not fit there.
        return load_policy(config.model, self.start, device="cpu" if config.sharding == "fsdp2" else None)

    def points(self) -> ResumePoints:
        """The states from which the job can go on."""
        config: TrainConfig = self.config
        return ResumePoints(self.folder / "points", keep=config.loop.keep)

    def lineage(self, **known: Any) -> Lineage:
        """The lineage of this job's checkpoint. `known` are fields that the stage knows better, or alone: data, envelope,
        world, bundles. Reads every byte of `start`."""
        bundle = self.bundle
        found: dict[str, Any] = {
            "bundles": [] if bundle is None else [bundle.digest],
            "harness": None if bundle is None else f"{bundle.name}-{bundle.version}",
            "template": self.policy.template.digest,
            "steps": self.config.loop.steps,
            "seeds": {"train": self.config.seed},
            "adapter": self.policy.has_adapter,
            "versions": package_versions(),
            "made": utc_now(),
        }
        return next_lineage(self.start, stage=self.stage, recipe=self.recipe, **(found | known))

    def judge(self, name: str) -> Bundle:
        """A judge's bundle; HarnessctlError when there is none."""
        if name not in self.judges:
            raise HarnessctlError(f"there is no bundle of the judge {name!r}")
        return self.judges[name]

    def needs_bundle(self) -> Bundle:
        """The bundle; TrainingError without one."""
        if self.bundle is None:
            raise TrainingError("this stage trains under a harness, and none was given", hint="give bundle=NAME")
        return self.bundle

    def check_data(self, bundle: str, source: str) -> None:
        """TrainingError when data was made under another harness than this job's. `bundle` is the digest that the data's
        trajectories carry, `source` names the data."""
        wanted = self.needs_bundle().digest
        if bundle != wanted:
            raise TrainingError(
                f"{source} was made under the bundle {bundle[:12]}, and this training is for {wanted[:12]}",
                hint="make the data anew under this harness, or train with the one that it was made under",
            )
