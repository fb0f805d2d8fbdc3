"""Samples: the token sequences of a trajectory that a policy learns from."""

from __future__ import annotations

import msgspec
import orjson

from harnessctl.data.groups import token_groups
from harnessctl.errors import TrainingError
from harnessctl.records.trajectory import Trajectory
from harnessctl.storage import digest_bytes


class TokenSample(msgspec.Struct, kw_only=True):
    """One unbroken context.

    `ids`, `mask` (1: the policy is to say this id by itself), `groups` (`data.groups.CODES`; 0 where the mask is) and
    `logprobs` (at which the policy sampled the id; 0.0 elsewhere and where nobody sampled) have one length. `source` is
    the trajectory's id and `path` the number of its path; `bundle`, `world` and `template` are the digests of what it
    was made under.
    """

    source: str
    path: int
    bundle: str
    world: str | None = None
    template: str | None = None
    ids: list[int]
    mask: list[int]
    groups: list[int]
    logprobs: list[float]

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def learnt(self) -> int:
        """How many ids are predicted and learnt; the first id has nothing to be predicted from."""
        return sum(self.mask[1:])

    @property
    def context(self) -> str:
        """SHA-256 of the ids before the first that the policy is to say: equal for samples that share their prompt."""
        first = next((place for place, own in enumerate(self.mask) if own), len(self.ids))
        return digest_bytes(orjson.dumps(self.ids[:first]))


def samples_of(trajectory: Trajectory) -> list[TokenSample]:
    """A sample for each path that has something to learn.

    RecordError where the trajectory contradicts itself; TrainingError where its calls have no ids at all.
    """
    if not trajectory.paths and any(call.error is None for call in trajectory.calls):
        raise TrainingError(
            f"trajectory {trajectory.id}: the model {trajectory.model} gave no token ids",
            hint="a teacher behind an endpoint gives them through decode.encoded.EncodedModel",
        )
    samples = [
        TokenSample(
            source=trajectory.id,
            path=number,
            bundle=trajectory.bundle,
            world=trajectory.world,
            template=trajectory.template,
            ids=path.ids,
            mask=path.mask,
            groups=found.groups,
            logprobs=path.logprobs,
        )
        for number, (path, found) in enumerate(zip(trajectory.paths, token_groups(trajectory), strict=True))
    ]
    return [sample for sample in samples if sample.learnt]
