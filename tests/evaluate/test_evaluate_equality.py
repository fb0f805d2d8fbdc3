"""Law g on the shipped hosts: variants are no harder for who follows the harness, and fatal for a memory of names."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from evaluate_jobs import job_of

from harnessctl.augment.discovery import find_operators
from harnessctl.augment.envelopes import load_envelope
from harnessctl.augment.rewriters import open_rewriter
from harnessctl.augment.variants import Augmenter
from harnessctl.bundle.files import Bundle
from harnessctl.bundle.variation import Changes
from harnessctl.compile.revision import compiled
from harnessctl.evaluate.config import FaultsConfig
from harnessctl.evaluate.equality import Pair, allowed, keeping_difficulty, mean, pairs
from harnessctl.evaluate.setting import Setting
from harnessctl.records.comment import CommentInput
from harnessctl.records.scenario import Gold, GoldCall, Scenario

HOSTS = ("live-stream", "mini")
NO_FAULTS = FaultsConfig(timeout=0.0, malformed=0.0, denied=0.0, stale=0.0)
_kept: dict[str, Bundle] = {}


def host(root: Path, name: str) -> Bundle:
    if name not in _kept:
        _kept[name] = compiled(root, name)
    return _kept[name]


def augmenter(root: Path, bundle: Bundle, envelope: str, *, easy: bool) -> Augmenter:
    operators = find_operators(root)
    found = load_envelope(root, envelope, bundle, operators=operators)
    if easy:
        found = keeping_difficulty(found, operators)
        assert len(found.operators) > 10
    return Augmenter(bundle, found, rewriter=open_rewriter("rules"), operators=operators)


def paired(root: Path, name: str, count: int, *, envelope: str = "wide", easy: bool = True, **keys: Any) -> list[Pair]:
    bundle = host(root, name)
    job = job_of(root, bundle, suite="variant-qa", n=count, faults=NO_FAULTS, seed=11, **keys)
    with Setting(root, bundle, job.config, augmenter=augmenter(root, bundle, envelope, easy=easy)) as setting:

        async def carry_out() -> list[Pair]:
            rollouts = job.rollouts(setting)
            try:
                return await pairs(setting, rollouts, range(count))
            finally:
                await rollouts.aclose()

        return asyncio.run(carry_out())


def check_equal(found: list[Pair]) -> None:
    unequal = [
        (p.scenario.id, p.variation.operators, p.parent.reasons, p.variant.reasons) for p in found if not p.is_equal
    ]
    assert not unequal
    assert mean([pair.parent for pair in found]) == mean([pair.variant for pair in found]) > 0.98
    assert sum(bool(pair.variation.operators) for pair in found) > 0.9 * len(found)


def check_memory(root: Path, name: str, found: list[Pair]) -> None:
    state = host(root, name).state
    bounds = [allowed(pair.scenario, pair.variation.changes, state) for pair in found]
    assert mean([pair.variant for pair in found]) <= sum(bounds) / len(bounds) < 0.8
    assert mean([pair.parent for pair in found]) > 0.98


@pytest.mark.parametrize("name", HOSTS)
def test_variants_are_no_harder(repository: Path, name: str) -> None:
    check_equal(paired(repository, name, 60))


@pytest.mark.parametrize("name", HOSTS)
def test_a_memory_of_names_has_no_more_than_what_was_not_renamed(repository: Path, name: str) -> None:
    check_memory(repository, name, paired(repository, name, 60, envelope="paper", easy=False, flaw="canonical-names"))


@pytest.mark.slow
@pytest.mark.parametrize("name", HOSTS)
def test_five_hundred_pairs(repository: Path, name: str) -> None:
    check_equal(paired(repository, name, 500))
    check_memory(repository, name, paired(repository, name, 500, envelope="paper", easy=False, flaw="canonical-names"))


def scenario(**fields: Any) -> Scenario:
    given = Gold(skills=["item"], calls=[GoldCall(tool="get_product", arguments={"link_id": 3})])
    return Scenario(
        id="s", request=CommentInput(id="s", text="?"), harness="h", intent="i", family="f", language="en",
        gold=Gold(**{**{name: getattr(given, name) for name in given.__struct_fields__}, **fields}),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("changes", "most"),
    [
        (Changes(), 1.0),
        (Changes(tools={"add_to_cart": "x"}, skills={"chat": "y"}), 1.0),
        (Changes(tools={"get_product": "x"}), 0.5),
        (Changes(parameters={"get_product": {"link_id": "number"}}), 0.5),
        (Changes(parameters={"get_product": {"other": "number"}}), 1.0),
        (Changes(skills={"item": "x"}), 0.0),
        (Changes(tools={"load_skill": "x"}), 0.0),
    ],
)
def test_what_is_allowed(stall_bundle: Bundle, changes: Changes, most: float) -> None:
    assert allowed(scenario(), changes, stall_bundle.state) == most


def test_an_alternative_that_was_not_renamed_is_allowed(stall_bundle: Bundle) -> None:
    changes = Changes(tools={"get_product": "x"})
    assert allowed(scenario(alternatives=[[GoldCall(tool="check_stock")]]), changes, stall_bundle.state) == 1
    assert allowed(scenario(prelude=[GoldCall(tool="get_product")], calls=[]), changes, stall_bundle.state) == 0.5
    assert allowed(scenario(skills=[], calls=[]), changes, stall_bundle.state) == 1
