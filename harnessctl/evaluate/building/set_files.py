"""Set files: built items as JSON Lines, with their card beside them.

What always holds: the items' file is whole or not there; what is read has one set, one harness, and no id twice.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

import msgspec

from harnessctl.bundle.set_item import FORMAT, SetItem
from harnessctl.errors import RecordError, StorageError, UsageError
from harnessctl.evaluate.building.frozen import SUFFIX
from harnessctl.evaluate.building.making import Built
from harnessctl.evaluate.setting import Setting
from harnessctl.records.set_card import SetCard
from harnessctl.records.task import metric_of
from harnessctl.storage import digest_bytes, read_bytes, read_json_lines, write_atomic

_encoder = msgspec.json.Encoder()
_decoder = msgspec.json.Decoder(SetItem)


def encode_items(items: Iterable[SetItem]) -> bytes:
    """The items as lines."""
    return b"".join(_encoder.encode(item) + b"\n" for item in items)


def decode_items(lines: bytes) -> list[SetItem]:
    """The items of lines that `encode_items` made."""
    return [_decoder.decode(line) for line in lines.splitlines()]


def card_path(path: Path) -> Path:
    """Where the card of a set's file is."""
    return path.with_name(path.name.removesuffix(SUFFIX) + ".card.json")


def write_set(path: Path, name: str, built: Built, setting: Setting) -> SetCard:
    """Write items and card; the card. StorageError when the disk refuses."""
    lines = encode_items(built.items)
    card = card_of(name, built, setting, digest_bytes(lines))
    write_atomic(path, lines)
    write_atomic(card_path(path), msgspec.json.format(_encoder.encode(card), indent=2) + b"\n")
    return card


def read_set(path: Path) -> list[SetItem]:
    """The items of a file. UsageError when it is not there or empty, RecordError names path, line and cause."""
    if not path.is_file():
        raise UsageError(f"no set at {path}", hint="`harnessctl sets build SUITE out=FILE` writes one")
    items: list[SetItem] = []
    seen: dict[str, int] = {}
    if not read_bytes(path).endswith(b"\n") and path.stat().st_size:
        raise RecordError(f"{path}: ends in the middle of a line", hint="it was cut off; build the set again")
    for number, document in read_json_lines(path):
        found = document.get("format") if isinstance(document, dict) else None
        if found != FORMAT:
            raise RecordError(f"{path}:{number}: not an item of format {FORMAT}; got {found!r}")
        try:
            item = msgspec.convert(document, SetItem)
        except msgspec.ValidationError as error:
            raise RecordError(f"{path}:{number}: not an item of a set: {error}") from error
        first = items[0] if items else item
        for what, one, other in (
            ("set", first.set, item.set),
            ("harness", first.scenario.harness, item.scenario.harness),
        ):
            if one != other:
                raise RecordError(f"{path}:{number}: is of the {what} {other!r}; the lines before are of {one!r}")
        if item.scenario.task is None:
            raise RecordError(f"{path}:{number}: the scenario has no task", hint="what is to be checked stands in it")
        if (name := item.scenario.id) in seen:
            raise RecordError(f"{path}:{number}: the id {name!r} is taken by line {seen[name]}")
        seen[name] = number
        items.append(item)
    if not items:
        raise UsageError(f"{path} holds no items")
    return items


def set_digest(path: Path) -> str:
    """The digest of a set's file. StorageError when it cannot be read."""
    return digest_bytes(read_bytes(path))


def read_card(path: Path) -> SetCard | None:
    """The card beside a set's file; null where there is none that can be read."""
    try:
        return msgspec.json.decode(read_bytes(card_path(path)), type=SetCard)
    except (StorageError, msgspec.DecodeError):
        return None


def card_of(name: str, built: Built, setting: Setting, digest: str) -> SetCard:
    """What a set is made of."""
    scenarios = [item.scenario for item in built.items]
    tasks = [scenario.task for scenario in scenarios if scenario.task is not None]
    rubrics = [rubric for task in tasks for rubric in task.rubrics]
    return SetCard(
        set=name,
        digest=digest,
        harness=setting.bundle.name,
        bundle=setting.bundle.digest,
        world=setting.world.digest,
        seed=setting.config.seed,
        items=len(built.items),
        drawn=built.drawn,
        passed_over=_counted(built.passed_over.elements()),
        rejected=_counted(built.rejected.elements()),
        intents=_counted(scenario.intent for scenario in scenarios),
        languages=_counted(scenario.language for scenario in scenarios),
        families=_counted(scenario.family for scenario in scenarios),
        levels=_counted(task.level for task in tasks if task.level),
        rubrics=_counted(metric_of(rubric.id) for rubric in rubrics),
        checks=_counted(str(type(rubric).__struct_config__.tag) for rubric in rubrics),
        situations=_counted(task.situation or "none" for task in tasks) if any(t.situation for t in tasks) else {},
        distractors=_counted(distractor.near for task in tasks for distractor in task.distractors),
    )


def _counted(values: Iterable[str]) -> dict[str, int]:
    counts = Counter(values)
    return {name: counts[name] for name in sorted(counts, key=lambda name: (-counts[name], name))}


def told(path: Path, items: Sequence[SetItem], setting: Setting) -> list[str]:
    """What a person should know before the items of a file are answered: they were made for something else, or altered."""
    notes: list[str] = []
    card = read_card(path)
    if card is not None and card.digest != set_digest(path):
        notes.append(f"{path.name} is not as its card says: it was altered after it was built")
    parents = {item.variation.parent for item in items if item.variation is not None}
    if parents - {setting.bundle.digest}:
        old = sorted(parents - {setting.bundle.digest})[0]
        notes.append(
            f"the set was built for {items[0].scenario.harness} {old[:12]}; its changes are made to "
            f"{setting.bundle.digest[:12]}, for which nobody checked them"
        )
    if any(item.scenario.world not in (None, setting.world.digest) for item in items):
        notes.append("gold of the set was drawn from other tables than these")
    return notes
