"""Job: all that a process needs to carry out items, and the form in which it goes to worker processes."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from harnessctl.bundle.files import Bundle, encode_bundle
from harnessctl.errors import HarnessctlError
from harnessctl.evaluate.building.making import Built
from harnessctl.evaluate.building.set_files import decode_items, encode_items
from harnessctl.evaluate.config import EvalConfig
from harnessctl.evaluate.rollouts import Rollouts
from harnessctl.evaluate.sets import set_named
from harnessctl.evaluate.setting import Setting
from harnessctl.runtime.judge import BundleSource, judges_of

_decoder = msgspec.json.Decoder(Bundle)


@dataclass(slots=True, frozen=True)
class Job:
    """`judges` are the bundles that hooks ask, by name; `edited` is the harness that `bundle` is held against."""

    root: Path
    bundle: Bundle
    config: EvalConfig
    judges: dict[str, Bundle] = field(default_factory=dict)
    edited: Bundle | None = None

    @property
    def size(self) -> int:
        """How many items the config asks for; each is answered `repeats` times. With an edited harness a scenario is two."""
        size = self.config.n or set_named(self.config.items).size
        return min(size, self.config.limit or size) * (1 if self.edited is None else 2)

    def setting(self) -> Setting:
        """Open what items are made of."""
        return Setting(self.root, self.bundle, self.config, edited=self.edited)

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
    left out of its JSON only where it is the very object. `built` are sets that were built already, as their lines."""

    root: Path
    bundle: bytes
    config: EvalConfig
    judges: dict[str, bytes]
    edited: bytes | None = None
    built: dict[str, bytes] = field(default_factory=dict)

    @classmethod
    def of(cls, job: Job, setting: Setting | None = None) -> PackedJob:
        """Pack a job, and what its setting has built, where one is given."""
        judges = {name: encode_bundle(bundle) for name, bundle in job.judges.items()}
        edited = None if job.edited is None else encode_bundle(job.edited)
        sets: dict[str, Built] = {} if setting is None else setting.built
        built = {name: encode_items(found.items) for name, found in sets.items()}
        return cls(job.root, encode_bundle(job.bundle), job.config, judges, edited, built)

    def job(self) -> Job:
        """The job again."""
        judges = {name: _decoder.decode(data) for name, data in self.judges.items()}
        edited = None if self.edited is None else _decoder.decode(self.edited)
        return Job(self.root, _decoder.decode(self.bundle), self.config, judges, edited)

    def setting(self, job: Job) -> Setting:
        """The job's setting, with the sets that were built."""
        setting = job.setting()
        setting.built = {name: Built(items=decode_items(lines)) for name, lines in self.built.items()}
        return setting


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
