"""The shipped world with its harnesses, compiled in memory; and `catalog_shop`, a small project to spoil."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

from harnessctl.bundle.files import Bundle
from harnessctl.compile.revision import compiled
from harnessctl.simulate.scenarios import Scenarios
from harnessctl.simulate.world import LiveWorld, open_world

REPOSITORY = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(REPOSITORY / "tests" / "catalogs"))


@pytest.fixture(scope="session")
def live_world() -> LiveWorld:
    return open_world(REPOSITORY / "manifests/worlds/live-room.yaml")


@pytest.fixture(scope="session")
def live_bundle() -> Callable[[str], Bundle]:
    return cache(lambda harness: compiled(REPOSITORY, harness))


@pytest.fixture(scope="session")
def live_scenarios(live_world, live_bundle) -> Callable[[str], Scenarios]:
    return cache(lambda harness: Scenarios.open(live_world, live_bundle(harness)))
