from __future__ import annotations

from tests.cli_world.conftest import chat as chat
from tests.cli_world.conftest import harnessctl as harnessctl
from tests.cli_world.conftest import shop as shop
