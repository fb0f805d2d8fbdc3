"""Data set: the samples of an SFT on disk: data.jsonl, a line for each scenario, and data.json, what they are.

What always holds: a scenario's line is whole or not there; a folder is of one set of settings, and says under which
harness, template and tokenizer it was made, so that no other policy learns from it; what is finished has a digest over
its lines in the order of the scenarios.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import msgspec
import torch

from harnessctl.errors import RecordError, TrainingError, UsageError
from harnessctl.records.sft_data import FORMAT, Card, Harvest, Origin
from harnessctl.storage import JsonLinesWriter, cut_torn_line, digest_bytes, read_bytes, read_json_lines, write_atomic
from harnessctl.train.sft.rows import Tokens

LINES, CARD = "data.jsonl", "data.json"

_encoder = msgspec.json.Encoder()


@dataclass(slots=True, frozen=True)
class Example:
    """A sample to learn from. `variant` is null for the original harness."""

    scenario: str
    variant: int | None
    bundle: str
    tokens: Tokens


class DataFolder:
    """One data set's folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def card(self) -> Card | None:
        """What the folder says of itself; null where nothing was begun there. RecordError when it cannot be read."""
        path = self.folder / CARD
        if not path.is_file():
            return None
        try:
            return msgspec.json.decode(read_bytes(path), type=Card)
        except msgspec.DecodeError as error:
            raise RecordError(f"{path}: not a card of {FORMAT}: {error}") from error

    def begin(self, card: Card) -> set[int]:
        """Go on with the data of `card`, or begin it; the numbers of the scenarios that are there. UsageError when the
        folder holds data of other settings."""
        held = self.card()
        if held is not None and held.settings != card.settings:
            raise UsageError(
                f"{self.folder} holds data that was made with other settings", hint="give an empty --run-dir"
            )
        if held is None:
            self._write(card)
        cut_torn_line(self.folder / LINES)
        return {harvest.number for harvest in self.harvests()}

    def writer(self) -> JsonLinesWriter:
        """Appends harvests, encoded with `encoded`."""
        return JsonLinesWriter(self.folder / LINES)

    def harvests(self) -> Iterator[Harvest]:
        """The lines as they stand; none without a file. RecordError names path, line and cause."""
        path = self.folder / LINES
        if not path.is_file():
            return
        for number, document in read_json_lines(path):
            try:
                yield msgspec.convert(document, Harvest)
            except msgspec.ValidationError as error:
                raise RecordError(f"{path}:{number}: not a harvest: {error}") from error

    def finish(self, card: Card) -> Card:
        """Record that all is there, with counts and digest."""
        examples = self.examples()
        done = msgspec.structs.replace(
            card,
            samples=len(examples),
            tokens=sum(len(example.tokens) for example in examples),
            learnt=sum(example.tokens.weight for example in examples),
            digest=self._digest(),
        )
        self._write(done)
        return done

    def examples(self) -> list[Example]:
        """All samples, in the order of the scenarios."""
        found = sorted(self.harvests(), key=lambda harvest: harvest.number)
        return [
            Example(
                sample.scenario,
                sample.variant,
                sample.bundle,
                Tokens(torch.tensor(sample.ids, dtype=torch.int32), torch.tensor(sample.mask, dtype=torch.int32)),
            )
            for harvest in found
            for sample in harvest.samples
        ]

    def check(self, origin: Origin) -> Card:
        """The card of finished data that fits `origin`. TrainingError says what is unfinished, altered or of another
        harness, template or tokenizer."""
        card = self.card()
        if card is None or card.digest is None:
            what = "is no data of an SFT" if card is None else "holds data whose making was broken off"
            raise TrainingError(f"{self.folder} {what}", hint=f"a folder with {CARD} and {LINES}, as a run's data/")
        for name in ("bundle", "template", "tokenizer"):
            made, wanted = getattr(card.origin, name), getattr(origin, name)
            if made != wanted:
                raise TrainingError(
                    f"{self.folder} was made with the {name} {made[:12]}, and this training is with {wanted[:12]}",
                    hint="make the data anew (leave data.path out), or train with what it was made with",
                )
        if self._digest() != card.digest:
            raise TrainingError(f"{self.folder / LINES} is not what {CARD} says", hint="it was altered; make it anew")
        return card

    def _digest(self) -> str:
        ordered = sorted(self.harvests(), key=lambda harvest: harvest.number)
        return digest_bytes(b"\n".join(map(encoded, ordered)))

    def _write(self, card: Card) -> None:
        write_atomic(self.folder / CARD, msgspec.json.format(msgspec.json.encode(card), indent=2) + b"\n")


def encoded(harvest: Harvest) -> bytes:
    """A line of data.jsonl, without its newline."""
    return _encoder.encode(harvest)
