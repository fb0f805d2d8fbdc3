from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.conftest import harnessctl as harnessctl
from tests.cli_world.chat_server import Chat, chatting
from tests.cli_world.world_shop import FILES


@pytest.fixture
def shop(project) -> Path:
    """The shop of `world_shop`."""
    return project(FILES)


@pytest.fixture
def chat() -> Iterator[Chat]:
    """An endpoint that words texts."""
    with chatting() as opened:
        yield opened
