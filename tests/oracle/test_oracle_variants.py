"""Variants: on every variant the oracle makes the same calls as on the parent and its reply has the same scores (law g)."""

from __future__ import annotations

import pytest

from harnessctl.augment.envelopes import load_envelope
from harnessctl.augment.rewriters import open_rewriter
from harnessctl.augment.variants import Augmenter, Variant
from harnessctl.records.scenario import Scenario
from harnessctl.records.trajectory import Trajectory
from tests.host.host_agent import REPOSITORY, bundle
from tests.oracle.oracle_host import carry_out, complete, of_each_family

#: Operators after which more calls may be right, though not other ones.
SENT_BACK = "hook-deny"
VARIANTS = 40


def variants(host: str, envelope: str) -> list[tuple[Scenario, Variant]]:
    spec = load_envelope(REPOSITORY, envelope)
    augmenter = Augmenter(bundle(host), spec, rewriter=open_rewriter("rules"))
    scenarios = of_each_family(host)
    complete(scenarios, host)
    step = max(1, len(scenarios) // VARIANTS)
    return [
        (scenario, augmenter.variant(seed=5, number=number, needs=scenario.gold.needs))
        for number, scenario in enumerate(scenarios[::step])
    ]


def made(record: Trajectory) -> list[tuple[str, dict]]:
    """The calls that went through, in an order of their own: variants may have a round more or less."""
    return sorted(((c.name, c.arguments) for c in record.tools if c.status == "ok"), key=str)


@pytest.mark.parametrize("host", ["live-stream", "mini"])
@pytest.mark.parametrize("envelope", ["paper", "wide"])
def test_a_variant_is_played_as_its_parent(host, envelope):
    renamed = 0
    for scenario, variant in variants(host, envelope):
        ((parent, _),) = carry_out([scenario], host)
        ((record, score),) = carry_out([scenario], host, harness=variant.bundle)
        assert made(record) == made(parent), scenario.id
        assert record.stop == parent.stop
        assert record.skills == parent.skills
        if SENT_BACK not in variant.variation.operators:
            assert score.reasons == {}, scenario.id
        renamed += bool(variant.variation.changes.tools)
    assert renamed > VARIANTS / 3


def test_memorised_names_fail_on_renamed_variants():
    pairs = [(s, v) for s, v in variants("live-stream", "wide") if s.gold.calls][:12]
    scored = [carry_out([s], "live-stream", harness=v.bundle, flawed="canonical-names")[0][1] for s, v in pairs]
    whole = [score for score in scored if score.accuracy == score.effectiveness == 1]
    assert len(whole) <= len(scored) / 4
