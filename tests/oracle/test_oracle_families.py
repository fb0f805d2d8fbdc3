"""The shipped families: the oracle completes each, recovers from each fault, and each flaw shows in the scores."""

from __future__ import annotations

import pytest

from harnessctl.manifests.specs.world import FaultRates
from harnessctl.records.score import DIMENSIONS
from harnessctl.simulate.checking import check_scenarios
from harnessctl.simulate.faults import KINDS
from harnessctl.simulate.flaws import flaw, flaws
from tests.host.host_agent import bundle, world
from tests.oracle.oracle_host import HOSTS, SEED, carry_out, complete, means, of_each_family, opened


@pytest.mark.parametrize("host", HOSTS)
def test_the_oracle_completes_every_family(host):
    found = check_scenarios(bundle(host), world(), of_each_family(host))
    assert [unreached.render() for unreached in found] == []


@pytest.mark.slow
@pytest.mark.parametrize("host", HOSTS)
def test_the_oracle_completes_thousands_of_scenarios(host):
    found = check_scenarios(bundle(host), world(), opened(host).sample(SEED + 1, 5000))
    assert [unreached.render() for unreached in found] == []


@pytest.mark.parametrize("host", HOSTS)
def test_the_oracle_has_every_score_without_faults(host):
    scenarios = of_each_family(host)
    complete(scenarios, host)
    for record, score in carry_out(scenarios, host):
        assert score.reasons == {}, (record.id, score.family)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("host", HOSTS)
def test_a_fault_that_passes_costs_nothing(host, kind):
    scenarios = [s for s in of_each_family(host) if s.gold.calls]
    rates = FaultRates(**{kind: 1.0})
    scored = carry_out(scenarios, host, rates=rates)
    assert {record.stop for record, _ in scored} <= {"replied", "silent", "refused"}
    hit = [(record, score) for record, score in scored if score.faults]
    assert len(hit) > len(scored) / 2
    assert all(score.accuracy == 1 for _, score in hit), [score.reasons for _, score in hit if score.accuracy != 1]
    if kind != "denied":
        wrong = [(score.family, score.reasons) for _, score in hit if score.effectiveness != 1]
        assert len(wrong) <= len(hit) * 0.05, wrong


@pytest.mark.parametrize("name", sorted(flaws()))
def test_each_flaw_shows_in_the_scores_as_its_file_says(name):
    scenarios = of_each_family("live-stream")
    found = means(carry_out(scenarios, "live-stream", flawed=name))
    for dimension in DIMENSIONS:
        expected = flaw(name).expected(dimension) if not flaw(name).only_variants else "stays"
        assert expected == "may fall" or (found[dimension] < 0.95) is (expected == "falls"), (dimension, found)
