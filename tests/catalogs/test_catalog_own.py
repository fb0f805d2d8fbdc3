"""Somebody's own catalog, as CSV and as JSON Lines, with families of its own: from file to scored answer."""

from __future__ import annotations

from collections import Counter

import pytest
from catalog_shop import ITEMS, WORLD, changed, own_shop
from test_catalog_cells import JSONL, as_json_lines

from harnessctl.cli.project import validate_all
from harnessctl.compile.revision import compiled
from harnessctl.score.rules import RuleScorer
from harnessctl.simulate.checking import check_scenarios
from harnessctl.simulate.scenarios import Scenarios
from harnessctl.simulate.world import open_world


@pytest.fixture(params=["csv", "jsonl"])
def own(project, request):
    if request.param == "csv":
        return own_shop(project)
    world = changed(WORLD, ("shop/items.csv", "shop/items.jsonl"))
    return own_shop(project, world=world, more={JSONL: as_json_lines(ITEMS).replace(".0,", ",")})


def test_from_a_file_to_a_scored_answer(own):
    assert validate_all(own).errors == []
    bundle, scores = compiled(own), []
    with open_world(own / "manifests/worlds/shop.yaml") as world:
        scenarios = Scenarios.open(world, bundle)
        drawn = list(scenarios.sample(7, 200))
        scorer = RuleScorer()
        unreached = check_scenarios(bundle, world, drawn[:40], on_done=lambda s, t: scores.append(scorer.score(t, s)))
    assert unreached == []
    assert [score.average for score in scores] == [1.0] * 40
    assert {s.gold.calls[0].arguments["item"] for s in drawn if s.intent == "question"} == {1, 2, 3}
    assert {fact.any[0] for s in drawn for fact in s.gold.facts} == {"39.5 yuan", "120 yuan", "12 yuan"}
    assert 0.65 < Counter(s.intent for s in drawn)["question"] / 200 < 0.85
    assert {"history"} == {mode for s in drawn for mode in s.mode}


def test_another_price_is_another_gold_and_another_world(project):
    root = own_shop(project)
    with open_world(root / "manifests/worlds/shop.yaml") as world:
        first = Scenarios.open(world, compiled(root)).draw(1, 0)
    (root / "manifests/worlds/shop/items.csv").write_text(
        ITEMS.replace("39.5", "42").replace("120", "42").replace(",12\n", ",42\n")
    )
    with open_world(root / "manifests/worlds/shop.yaml") as world:
        scenarios = Scenarios.open(world, compiled(root))
        second = scenarios.draw(1, 0)
        assert {f.any[0] for s in scenarios.sample(1, 30) for f in s.gold.facts} == {"42 yuan"}
    assert first.world != second.world
    assert first.request == second.request or first.intent == second.intent


def test_an_empty_catalog_is_refused_by_validate(project):
    faults = validate_all(own_shop(project, items="item_id,name,price\n")).errors
    assert [(fault.code, fault.path, fault.line) for fault in faults] == [
        ("family-empty", "manifests/worlds/shop/families/shop.yaml", 7)
    ]


def test_a_price_is_missing(project):
    faults = validate_all(own_shop(project, items=changed(ITEMS, (",120", ",")))).errors
    assert [(fault.code, fault.line, fault.col) for fault in faults] == [("table-missing", 3, 10)]
