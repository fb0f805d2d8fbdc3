"""A project's root with a bundle of it and the folder of a policy: what the tests of stages make jobs of."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import msgspec

from harnessctl.bundle.files import Bundle
from harnessctl.train.job import Job
from harnessctl.train.metrics import Metrics


@dataclass
class TrainProject:
    """What a job tells a person goes to `said`."""

    stage: ClassVar[str]

    root: Path
    bundle: Bundle
    model: Path
    said: list[str] = field(default_factory=list)

    def job(self, folder: Path, config: Any, **changes: Any) -> Job:
        given: dict[str, Any] = {
            "root": self.root,
            "folder": folder,
            "config": config,
            "bundle": self.bundle,
            "judges": {},
            "start": self.model,
            "metrics": Metrics(folder, board=False),
            "talk": self.said.append,
            "stage": self.stage,
            "recipe": msgspec.to_builtins(config),
        }
        return Job(**(given | changes))
