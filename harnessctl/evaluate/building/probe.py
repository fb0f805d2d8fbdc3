"""Probe: the oracle on an item that is being made, through the real agent, so that what the item asks is known to be reachable."""

from __future__ import annotations

import msgspec

from harnessctl.bundle.files import FORMAT, Bundle
from harnessctl.bundle.shared import SharedDigest
from harnessctl.bundle.variation import Changes, Variation, vary
from harnessctl.errors import HarnessctlError
from harnessctl.evaluate.config import FaultsConfig
from harnessctl.evaluate.items import Item
from harnessctl.evaluate.rollouts import Rollouts
from harnessctl.evaluate.setting import Setting
from harnessctl.records.scenario import Scenario
from harnessctl.records.score import DIMENSIONS, Score
from harnessctl.records.trajectory import Trajectory

_NO_FAULTS = FaultsConfig(timeout=0.0, malformed=0.0, denied=0.0, stale=0.0)


class Probe:
    """Plays scenarios under the setting's harness and variants of it, whatever policy the config names, without faults but
    those of an item's situation."""

    def __init__(self, setting: Setting) -> None:
        config = msgspec.structs.replace(
            setting.config, policy="oracle", flaw=None, loop="harness", faults=_NO_FAULTS, repeats=1, cache=False
        )
        self._parent = setting.bundle
        self._digest = SharedDigest(setting.bundle.state)
        self._rollouts = Rollouts(setting, judges=_no_judge, items=_Apart(), config=config)

    def varied(
        self, changes: Changes, *, set_name: str, version: str, seed: int, number: int
    ) -> tuple[Bundle, Variation]:
        """The variant of the setting's harness that `changes` make, with its record."""
        bundle = changed_bundle(self._parent, changes, self._digest)
        names = [*(tool.name for tool in changes.added_tools), *(block.id for block in changes.added_blocks)]
        variation = Variation(
            parent=self._parent.digest,
            variant=bundle.digest,
            harness=self._parent.name,
            envelope=f"{set_name}-{version}",
            envelope_digest="",
            seed=seed,
            number=number,
            operators={set_name: names},
            changes=changes,
        )
        return bundle, variation

    async def play(
        self, scenario: Scenario, bundle: Bundle, variation: Variation | None = None
    ) -> tuple[Trajectory, Score]:
        """What the oracle does for a scenario, and its score."""
        return await self._rollouts.play(Item(0, scenario, bundle, variation))

    async def aclose(self) -> None:
        """Close agents and sandboxes."""
        await self._rollouts.aclose()


def changed_bundle(parent: Bundle, changes: Changes, shared: SharedDigest) -> Bundle:
    """The variant of `parent`; `shared` is its own. BundleError when the changes do not fit it."""
    state = vary(parent.state, changes)
    return Bundle(
        format=FORMAT,
        name=parent.name,
        version=parent.version,
        digest=shared.digest(state),
        state=state,
        inventory=parent.inventory,
        world=parent.world,
    )


def shortfall(score: Score, dimensions: tuple[str, ...] = DIMENSIONS) -> str:
    """Which dimensions or rubrics the oracle misses, or nothing."""
    missed = [name for name in dimensions if getattr(score, name) != 1]
    missed += [name for name, passed in score.rubrics.items() if not passed]
    return ", ".join(missed)


class _Apart:
    """No items: those that are played are given one by one. The agent of the harness itself is kept."""

    keep = 1

    def item(self, number: int) -> Item:
        raise HarnessctlError("a probe has no items of its own")

    def id(self, number: int) -> str:
        raise HarnessctlError("a probe has no items of its own")


def _no_judge(name: str) -> Bundle:
    raise HarnessctlError(f"the judge {name!r} is not asked while a set is built")
