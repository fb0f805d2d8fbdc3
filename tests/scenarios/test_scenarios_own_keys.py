"""Keys of somebody's own tables: rooms and viewers that are numbers are texts in a request, and numbers in gold."""

from __future__ import annotations

import msgspec
import pytest
from catalog_shop import FAMILIES, WORLD, changed, own_shop

from harnessctl.compile.revision import compiled
from harnessctl.records.scenario import Scenario
from harnessctl.simulate.scenario_files import read_scenarios
from harnessctl.simulate.scenarios import Scenarios
from harnessctl.simulate.world import open_world

MANIFEST = "manifests/worlds/shop.yaml"


@pytest.fixture
def drawn(project):
    families = changed(
        FAMILIES,
        ("SELECT item_id, name, price FROM items", "SELECT item_id, name, price, item_id AS room FROM items"),
        ("draw: SELECT 1 AS one", "draw: SELECT 7 AS viewer"),
    )
    world = changed(WORLD, ("chatter:\n", "chatter:\n    viewers: SELECT item_id AS viewer FROM items\n"))
    root = own_shop(project, families=families, world=world)
    with open_world(root / MANIFEST) as open_:
        return root, list(Scenarios.open(open_, compiled(root)).sample(3, 40))


def test_they_are_texts_in_a_request(drawn):
    _, scenarios = drawn
    asked = [s for s in scenarios if s.intent == "question"]
    assert {s.request.room for s in asked} == {"1", "2", "3"}
    assert {s.request.viewer_messages()[0].viewer for s in asked} <= {"1", "2", "3"}
    assert {s.request.viewer_messages()[0].viewer for s in scenarios if s.intent == "chat"} == {"7"}
    assert {type(s.gold.known["room"]) for s in asked} == {int}


def test_a_file_of_them_can_be_read(drawn):
    root, scenarios = drawn
    path = root / "scenarios.jsonl"
    path.write_bytes(b"".join(msgspec.json.encode(scenario) + b"\n" for scenario in scenarios))
    assert list(read_scenarios(path)) == scenarios
    assert all(isinstance(scenario, Scenario) for scenario in scenarios)
