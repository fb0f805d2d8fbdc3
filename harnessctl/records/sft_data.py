"""Sft data: what an SFT learns from, on disk: `data.json` says what it is, `data.jsonl` holds a line for each scenario."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

import msgspec

FORMAT = "harnessctl/sft-data.v1"


class Origin(msgspec.Struct, kw_only=True):
    """What a data set belongs to: digests of the harness, the chat template, the tokenizer and the world's tables."""

    bundle: str
    template: str
    tokenizer: str
    world: str | None = None


class Card(msgspec.Struct, kw_only=True, tag_field="format", tag=FORMAT):
    """`settings` is the digest of all that decides what is in it. `digest` is null until it is finished."""

    origin: Origin
    settings: str
    harness: str
    envelope: str | None = None
    scenarios: int
    samples: int = 0
    tokens: int = 0
    learnt: int = 0
    counts: dict[str, int] = {}
    digest: str | None = None


class Sample(msgspec.Struct, omit_defaults=True, kw_only=True):
    """`learnt` are the half-open ranges of `ids` that the policy is to say by itself. `variant` is the number of the
    harness variant, null for the original; `bundle` the digest of the one that the trajectory was made under."""

    scenario: str
    bundle: str
    ids: list[int]
    learnt: list[tuple[int, int]]
    variant: int | None = None

    @property
    def mask(self) -> list[int]:
        """1 where a token is learnt."""
        mask = [0] * len(self.ids)
        for start, stop in self.learnt:
            mask[start:stop] = [1] * (stop - start)
        return mask


class Harvest(msgspec.Struct, kw_only=True):
    """All that one scenario gave: a line of data.jsonl. `counts` say what became of the teacher's tries."""

    number: int
    scenario: str
    samples: list[Sample] = []
    counts: dict[str, int] = {}


def ranges(mask: Sequence[int]) -> list[tuple[int, int]]:
    """The half-open ranges in which `mask` is 1."""
    found: list[tuple[int, int]] = []
    at = 0
    for value, run in groupby(mask):
        length = sum(1 for _ in run)
        if value:
            found.append((at, at + length))
        at += length
    return found
