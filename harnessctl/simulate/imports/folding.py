"""Folding: items that ask the same are one scenario, which counts how often it was asked.

What always holds: single requests are the same when their texts and their room are; turns of one conversation are never
folded, because each depends on those before it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import msgspec

from harnessctl.records.scenario import Scenario
from harnessctl.storage import digest_bytes


class Folding:
    """Keeps the scenarios of a log in its order; `folded` counts those that asked what another one had asked.

    The log is held in memory, a few hundred bytes a scenario, since what was asked at its end may be folded into its
    beginning.
    """

    def __init__(self) -> None:
        self.folded = 0
        self._items: list[Scenario] = []
        self._turns: Counter[str] = Counter()

    def add(self, scenario: Scenario) -> None:
        """Keep one scenario."""
        self._items.append(scenario)
        if scenario.request.session is not None:
            self._turns[scenario.request.session] += 1

    def scenarios(self) -> list[Scenario]:
        """What is left, ids made unique (`7`, `7~2`). A session of one turn is no conversation, and is left out."""
        kept: dict[str, Scenario] = {}
        times: Counter[str] = Counter()
        for number, scenario in enumerate(self._items):
            session = scenario.request.session
            if session is not None and self._turns[session] > 1:
                key = f"turn {number}"
            else:
                scenario = msgspec.structs.replace(
                    scenario, request=msgspec.structs.replace(scenario.request, session=None)
                )
                key = _asked(scenario)
            times[key] += 1
            kept.setdefault(key, scenario)
        self.folded = len(self._items) - len(kept)
        return list(_unique(_counted(s, times[key]) for key, s in kept.items()))


def _asked(scenario: Scenario) -> str:
    texts = [message.text.strip() for message in scenario.request.viewer_messages()]
    return digest_bytes(msgspec.json.encode([scenario.request.room, texts]))


def _counted(scenario: Scenario, times: int) -> Scenario:
    if scenario.logged is None:
        return scenario
    return msgspec.structs.replace(scenario, logged=msgspec.structs.replace(scenario.logged, times=times))


def _unique(scenarios: Iterable[Scenario]) -> Iterable[Scenario]:
    seen: Counter[str] = Counter()
    taken: set[str] = set()
    for scenario in scenarios:
        name = scenario.id
        while name in taken:
            seen[scenario.id] += 1
            name = f"{scenario.id}~{seen[scenario.id] + 1}"
        taken.add(name)
        if name != scenario.id:
            request = msgspec.structs.replace(scenario.request, id=name)
            scenario = msgspec.structs.replace(scenario, id=name, request=request)
        yield scenario
