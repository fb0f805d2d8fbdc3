"""Validating: everything that is wrong with a world and its families, without drawing a scenario."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from harnessctl.bundle.files import Bundle
from harnessctl.errors import Fault, Faults, FaultsError, UsageError
from harnessctl.simulate.families import load_families
from harnessctl.simulate.scenarios import check_families
from harnessctl.simulate.world import open_world


def check_world(manifest: Path, bundle_of: Callable[[str], Bundle] | None = None) -> list[Fault]:
    """The faults of a world's tables, queries and families; opens it and closes it again.

    `bundle_of` compiles a harness by its name (UsageError when there is none); with it the families' gold is checked too.
    """
    faults = Faults()
    try:
        with open_world(manifest) as world:
            simulation = world.spec.simulation
            if simulation is None:
                return []
            families = load_families(world, faults)
            for harness in dict.fromkeys(family.harness for family in families) if bundle_of is not None else ():
                own = [family for family in families if family.harness == harness]
                try:
                    assert bundle_of is not None
                    check_families(world, simulation, bundle_of(harness), own, faults)
                except UsageError as error:
                    faults.add(own[0].document.fault("family-harness", "the project has no such harness", "harness",
                                                     got=harness, hint=error.hint))  # fmt: skip
    except FaultsError as error:
        return error.faults
    return faults.errors
