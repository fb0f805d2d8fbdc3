"""General tasks: small questions with checkable answers, which no harness is needed for.

A policy that can do them can look a name up by its meaning, copy names that it never saw, obey a rule on format, read a
value and call a tool. They are what a base is trained on, what on-policy distillation keeps a policy to, and a measure of
what a stage did to general skill. The tasks are the modules of `tasks`, found without a list.
"""

from __future__ import annotations

import random
from collections.abc import Mapping

from harnessctl.data.general.concepts import concepts_of
from harnessctl.data.general.item import GeneralItem, is_right
from harnessctl.data.general.names import Names
from harnessctl.data.general.source import ENTRIES, Source
from harnessctl.data.general.space import Space
from harnessctl.data.general.tasks import tasks
from harnessctl.errors import UsageError

__all__ = ["ENTRIES", "GeneralItem", "Space", "default_shares", "draw", "is_right"]


def default_shares() -> dict[str, float]:
    """How often each task comes up, by name; not normalised."""
    return {name: task.share for name, task in sorted(tasks().items())}


def draw(
    seed: int,
    number: int,
    *,
    names: Space = "train",
    concepts: Space = "train",
    shares: Mapping[str, float] | None = None,
    entries: tuple[int, int] = ENTRIES,
    rounds: int = 1,
    ease: float = 0.0,
) -> GeneralItem:
    """Item `number` of the stream `seed`: a function of the arguments alone.

    `names` and `concepts` say which names the item is made of and which matters it is about; the held-out ones share
    nothing with those to train on. `shares` weighs the tasks (null: `default_shares()`), and those left out do not come
    up. `entries` bounds how many entries a list has to choose from. With more `rounds` a dialogue asks so many times as
    much about what it shows (those with tools, which are the longest, stay as they are). `ease` is how likely it is that
    all names of the item are single words, and how likely, apart from that, that wishes say what a list says, word for
    word. UsageError for an unknown task or an empty range.
    """
    weights = default_shares() if shares is None else dict(sorted(shares.items()))
    _check(weights, entries)
    # Seeding with a text hashes it (SHA-512), so that neighbouring numbers have nothing in common.
    chance = random.Random(f"{seed}:{number}:{names}:{concepts}")
    (task,) = chance.choices(list(weights), list(weights.values()))
    # Without ease nothing is drawn here, so that a stream stays what it was.
    is_plain, is_literal = (chance.random() < ease, chance.random() < ease) if ease else (False, False)
    source = Source(
        chance=chance,
        names=Names(chance, names, is_plain=is_plain),
        concepts=concepts_of(concepts),
        entries=entries,
        rounds=rounds,
        is_literal=is_literal,
    )
    return tasks()[task].item(source)


def _check(weights: Mapping[str, float], entries: tuple[int, int]) -> None:
    unknown = sorted(set(weights) - set(tasks()))
    if unknown:
        raise UsageError(f"no general task {unknown[0]!r}", hint=f"tasks: {', '.join(sorted(tasks()))}")
    if min(weights.values(), default=0.0) < 0 or sum(weights.values()) <= 0:
        raise UsageError(f"shares of general tasks must be 0 or more and not all 0; got {dict(weights)}")
    least, most = entries
    if not 2 <= least <= most:
        raise UsageError(f"entries of a list from {least} to {most}; allowed from 2 upwards, the lower number first")
