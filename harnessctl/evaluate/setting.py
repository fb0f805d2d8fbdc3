"""Setting: what items are made of, opened once in each process: harness, world, scenarios, variants.

What always holds: scenario and variant of one number are the same in every process.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING

from harnessctl.assembly import open_world_of
from harnessctl.bundle.files import Bundle
from harnessctl.errors import UsageError
from harnessctl.evaluate.config import EvalConfig
from harnessctl.records.scenario import Needs, Scenario
from harnessctl.simulate.plan import Planner
from harnessctl.simulate.scenarios import Scenarios
from harnessctl.simulate.user import cached_voice

if TYPE_CHECKING:
    from harnessctl.augment.variants import Augmenter, Variant
    from harnessctl.evaluate.building.making import Built
    from harnessctl.evaluate.items import ItemSet

#: The envelope of variants where the config names none.
DEFAULT_ENVELOPE = "paper"


class Setting:
    """Close it with `close` or `with`."""

    def __init__(
        self,
        root: Path,
        bundle: Bundle,
        config: EvalConfig,
        *,
        augmenter: Augmenter | None = None,
        edited: Bundle | None = None,
    ) -> None:
        """`augmenter` makes variants in the place of the config's envelope's; `edited` is the harness that `bundle` is held
        against, where the config names one. FaultsError and UsageError say what is wrong with the world, its families or their gold."""
        world = open_world_of(root, bundle, config.world)
        if world is None:
            raise UsageError(
                f"the harness {bundle.name} reads no world", hint="give world=NAME, of which to draw scenarios"
            )
        self.root = root
        self.bundle = bundle
        self.config = config
        self.world = world
        self.edited = edited
        #: Sets of items that were built for this setting, by name; and who is told of each item that was.
        self.built: dict[str, Built] = {}
        self.on_built: Callable[[int, int], None] | None = None
        self._given = augmenter
        try:
            self._scenarios = Scenarios.open(world, bundle)
            config.faults.over(
                self._scenarios.simulation.faults
            )  # rates that cannot be are refused before there is a run
            #: Who puts viewers' messages in other words; null where they are as the script has them.
            self.voice = cached_voice(config.user or self._scenarios.simulation.user, root)
            self._scenarios.user = self.voice
        except BaseException:
            world.close()
            raise

    def scenario(self, number: int) -> Scenario:
        """Scenario `number` (from 0) of the seed."""
        return self._scenarios.draw(self.config.seed, number)

    def drawn(self, seed: int, number: int) -> Scenario:
        """Scenario `number` of another seed."""
        return self._scenarios.draw(seed, number)

    def size(self, item_set: ItemSet) -> int:
        """How many items of a set the config asks for."""
        size = self.config.n or item_set.size
        return min(size, self.config.limit or size)

    def scenario_id(self, number: int) -> str:
        """The id of scenario `number`, and of its request."""
        return self._scenarios.draw(self.config.seed, number).request.id

    @property
    def planner(self) -> Planner:
        """The planner of the harness itself."""
        return self._scenarios.planner

    def variant(self, number: int, needs: Needs | None) -> Variant:
        """Variant `number` of the seed, made for what a sample needs. LawBroken when it breaks a law."""
        return self._augmenter.variant(seed=self.config.seed, number=number, needs=needs)

    def check_envelope(self) -> None:
        """Open what makes variants. UsageError and FaultsError say why it makes none."""
        _ = self._augmenter

    @property
    def writes(self) -> list[str]:
        """The tools that write."""
        return sorted(tool.name for tool in self.bundle.state.tools if tool.effect == "write")

    @property
    def loader(self) -> str:
        """The tool that loads skills; `load_skill` where the harness has none."""
        tools = self.bundle.state.tools
        return next((t.name for t in tools if (t.run or {}).get("builtin") == "load_skill"), "load_skill")

    @cached_property
    def _augmenter(self) -> Augmenter:
        return self._given or open_augmenter(self.root, self.bundle, self.config, self._scenarios.gold_skills())

    def close(self) -> None:
        """Close the world."""
        self.world.close()

    def __enter__(self) -> Setting:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def open_augmenter(
    root: Path, bundle: Bundle, config: EvalConfig, gold_skills: Mapping[str, Sequence[str]]
) -> Augmenter:
    """What makes the variants of a config's envelope, which is checked against the harness and its gold.

    UsageError when there is no such envelope, FaultsError when it does not fit.
    """
    from harnessctl.augment.discovery import find_operators
    from harnessctl.augment.envelopes import load_envelope
    from harnessctl.augment.rewriters import open_rewriter
    from harnessctl.augment.variants import Augmenter

    operators = find_operators(root)
    envelope = load_envelope(
        root, config.envelope or DEFAULT_ENVELOPE, bundle, gold_skills=gold_skills, operators=operators
    )
    if (config.rewriter or envelope.rewriter) != "rules":
        raise UsageError(
            f"the envelope {envelope.name} takes its wordings from a model, and an evaluation makes variants without one",
            hint="rewriter=rules",
        )
    return Augmenter(bundle, envelope, rewriter=open_rewriter("rules"), operators=operators)
