"""Job: all that a process needs to carry out items, and the form in which it goes to worker processes."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from harnessctl.bundle.files import Bundle, encode_bundle
from harnessctl.errors import HarnessctlError
from harnessctl.evaluate.config import EvalConfig
from harnessctl.evaluate.rollouts import Rollouts
from harnessctl.evaluate.sets import set_named
from harnessctl.evaluate.setting import Setting
from harnessctl.runtime.judge import BundleSource, judges_of

_decoder = msgspec.json.Decoder(Bundle)


@dataclass(slots=True, frozen=True)
class Job:
    """`judges` are the bundles that hooks ask, by name."""

    root: Path
    bundle: Bundle
    config: EvalConfig
    judges: dict[str, Bundle] = field(default_factory=dict)

    @property
    def size(self) -> int:
        """How many items the config asks for; each is answered `repeats` times."""
        size = self.config.n or set_named(self.config.items).size
        return min(size, self.config.limit or size)

    def setting(self) -> Setting:
        """Open what items are made of."""
        return Setting(self.root, self.bundle, self.config)

    def rollouts(self, setting: Setting) -> Rollouts:
        """Make ready to carry items out."""
        return Rollouts(setting, judges=self.judge)

    def judge(self, name: str) -> Bundle:
        """A judge's bundle; HarnessctlError when there is none."""
        if name not in self.judges:
            raise HarnessctlError(f"there is no bundle of the judge {name!r}")
        return self.judges[name]


@dataclass(slots=True, frozen=True)
class PackedJob:
    """A job with its bundles as the bytes of their files: pickled, a bundle would get another digest, since a default is
    left out of its JSON only where it is the very object."""

    root: Path
    bundle: bytes
    config: EvalConfig
    judges: dict[str, bytes]

    @classmethod
    def of(cls, job: Job) -> PackedJob:
        """Pack a job."""
        judges = {name: encode_bundle(bundle) for name, bundle in job.judges.items()}
        return cls(job.root, encode_bundle(job.bundle), job.config, judges)

    def job(self) -> Job:
        """The job again."""
        judges = {name: _decoder.decode(data) for name, data in self.judges.items()}
        return Job(self.root, _decoder.decode(self.bundle), self.config, judges)


def judges_for(bundle: Bundle, source: BundleSource) -> dict[str, Bundle]:
    """The bundles of all judges that `bundle` asks, and that those ask. One that cannot be had is left out: each hook that
    asks it then says so."""
    found: dict[str, Bundle] = {}
    queue = judges_of(bundle)
    while queue:
        name = queue.pop(0)
        if name in found:
            continue
        try:
            found[name] = source(name)
        except HarnessctlError:
            continue
        queue += judges_of(found[name])
    return found
