"""Making: a set built candidate by candidate: scenarios of a seed's stream in their order, until there are items enough.

What always holds: an item depends on the setting and on the items before it alone (none is like an earlier one), so that
the first ten of a thousand are the ten of ten; what was not taken is counted by its reason and replaced by the next.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar

from harnessctl.bundle.set_item import SetItem
from harnessctl.errors import UsageError
from harnessctl.records.scenario import Scenario
from harnessctl.storage import digest

T = TypeVar("T")

#: How many scenarios may follow each other without giving an item before a set is given up.
MOST_IN_VAIN = 2000


@dataclass(slots=True, frozen=True)
class Refused:
    """Why a scenario makes no item: it asks nothing of the set's kind (`is_apart`), or a check found it wanting."""

    reason: str
    is_apart: bool = False


class Maker(Protocol):
    """Makes items of one set."""

    name: str

    def scenario(self, number: int) -> Scenario:
        """Candidate `number` (from 0)."""
        ...

    def bars(self, key: str) -> bool:
        """Whether a scenario with this key (see `content_key`) is another set's."""
        ...

    async def make(self, scenario: Scenario, number: int) -> SetItem | Refused:
        """The item of a candidate; equal arguments give equal items."""
        ...

    async def aclose(self) -> None:
        """Close what was opened."""
        ...


@dataclass(slots=True)
class Built:
    """The items of a set, and what was not taken."""

    items: list[SetItem] = field(default_factory=list)
    drawn: int = 0
    passed_over: Counter[str] = field(default_factory=Counter)
    rejected: Counter[str] = field(default_factory=Counter)


def build(open_maker: Callable[[], Maker], n: int, on_built: Callable[[int, int], None] | None = None) -> Built:
    """The first `n` items. UsageError when the scenarios do not give so many; `on_built(done, n)` after each."""
    return _run(_build(open_maker, n, on_built))


async def _build(open_maker: Callable[[], Maker], n: int, on_built: Callable[[int, int], None] | None) -> Built:
    maker = open_maker()
    built, seen, latest = Built(), set[str](), 0
    try:
        while len(built.items) < n:
            if built.drawn - latest == MOST_IN_VAIN:
                raise _too_few(maker.name, n, built)
            scenario = maker.scenario(built.drawn)
            built.drawn += 1
            key = content_key(scenario)
            if maker.bars(key):
                built.passed_over["of the other split"] += 1
                continue
            if key in seen:
                built.rejected["duplicate"] += 1
                continue
            made = await maker.make(scenario, built.drawn - 1)
            if isinstance(made, Refused):
                (built.passed_over if made.is_apart else built.rejected)[made.reason] += 1
                continue
            seen.add(key)
            built.items.append(made)
            latest = built.drawn
            if on_built is not None:
                on_built(len(built.items), n)
    finally:
        await maker.aclose()
    return built


def content_key(scenario: Scenario) -> str:
    """Equal for scenarios that ask the same, whatever their ids and the viewers' names: texts, room, context and calls."""
    request, gold = scenario.request, scenario.gold
    context = {name: value for name, value in request.context.items() if name not in ("history", "actions")}
    said = sorted(" ".join(message.text.casefold().split()) for message in request.viewer_messages())
    calls: list[Any] = [] if gold is None else [[call.tool, call.arguments] for call in gold.calls]
    return digest([said, request.room, context, calls])


def _too_few(name: str, n: int, built: Built) -> UsageError:
    reasons = (built.rejected + built.passed_over).most_common(3)
    return UsageError(
        f"{name}: {built.drawn} scenarios of the world give {len(built.items)} items that pass, not {n}",
        hint=f"lower n; most were not taken for: {', '.join(f'{reason} ({count})' for reason, count in reasons)}",
    )


def _run(work: Coroutine[Any, Any, T]) -> T:
    """Run on a loop of this thread, which has none that runs."""
    try:
        return asyncio.run(work)
    finally:
        work.close()
