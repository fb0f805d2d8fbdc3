"""The worked files of docs/examples fit the published schemas and are read by the project's own readers."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema_rs
import msgspec
import pytest

from harnessctl.augment.job import read_variations
from harnessctl.bundle import Bundle, read_bundle
from harnessctl.bundle.variation import rebuild
from harnessctl.compile import compile_project
from harnessctl.manifests.schemas import schema_for
from harnessctl.manifests.templates import copy_template
from harnessctl.records.lineage import Lineage
from harnessctl.records.requests import read_requests
from harnessctl.records.scenario import Needs
from harnessctl.records.score import Score
from harnessctl.score.rules import RuleScorer
from harnessctl.simulate.imports import import_log
from harnessctl.simulate.needs import Completion
from harnessctl.simulate.scenario_files import read_scenarios
from harnessctl.storage import digest
from harnessctl.trajectory import read_trajectories

KINDS = {
    "comments.jsonl": "CommentInput",
    "trajectory.jsonl": "Trajectory",
    "variation.jsonl": "Variation",
    "scenario.jsonl": "Scenario",
    "score.jsonl": "Score",
    "vote.jsonl": "Vote",
    "calibration.jsonl": "CalibrationItem",
    "lineage.jsonl": "Lineage",
    "sft-data.jsonl": "SftData",
    "sft-harvest.jsonl": "SftHarvest",
}


def test_every_file_has_a_kind(repository: Path):
    assert {path.name for path in (repository / "docs" / "examples").iterdir()} == set(KINDS)


@pytest.mark.parametrize(("file", "kind"), KINDS.items())
def test_each_line_fits_its_schema(repository: Path, file: str, kind: str):
    validator = jsonschema_rs.validator_for(schema_for(kind))
    lines = (repository / "docs" / "examples" / file).read_text().splitlines()
    assert lines
    for line in lines:
        assert [error.message for error in validator.iter_errors(json.loads(line))] == []


def test_the_readers_take_them(repository: Path):
    folder = repository / "docs" / "examples"
    with (folder / "comments.jsonl").open("rb") as file:
        asked = {request.id: request.text for request in read_requests(file, source="comments.jsonl")}
    for trajectory in read_trajectories(folder / "trajectory.jsonl"):
        assert trajectory.request["text"] == asked[trajectory.id]
        assert trajectory.stop == "replied"


@pytest.fixture
def minimal(tmp_path: Path) -> Bundle:
    """The bundle of the minimal template."""
    copy_template("minimal", tmp_path)
    return read_bundle(compile_project(tmp_path).bundles[0].path)


def test_the_variation_makes_its_variant(repository: Path, minimal: Bundle):
    for variation in read_variations(repository / "docs" / "examples" / "variation.jsonl"):
        assert rebuild(minimal, variation).digest == variation.variant != minimal.digest


def test_the_scenarios_are_the_trajectories_as_imported_and_the_scores_are_theirs(repository: Path, minimal: Bundle):
    folder = repository / "docs" / "examples"
    imported, _ = import_log(folder / "trajectory.jsonl")
    confirmed, awaiting = read_scenarios(folder / "scenario.jsonl")
    assert [s.request for s in imported] == [confirmed.request, awaiting.request]
    assert (awaiting.gold, awaiting.logged) == (None, imported[1].logged)
    assert confirmed.gold is not None
    completed = msgspec.structs.replace(confirmed.gold, needs=Needs())
    Completion(minimal.state)(confirmed, completed)
    assert completed == confirmed.gold
    lines = (folder / "score.jsonl").read_text().splitlines()
    for trajectory, scenario, line in zip(
        read_trajectories(folder / "trajectory.jsonl"), (confirmed, awaiting), lines, strict=True
    ):
        assert msgspec.json.decode(line, type=Score) == RuleScorer().score(trajectory, scenario)


def test_the_trajectory_is_of_the_minimal_template_as_it_is(repository: Path, minimal: Bundle):
    digest = minimal.digest
    assert {t.bundle for t in read_trajectories(repository / "docs" / "examples" / "trajectory.jsonl")} == {digest}


def test_the_lineages_are_of_one_line(repository: Path, minimal: Bundle):
    lines = (repository / "docs" / "examples" / "lineage.jsonl").read_text().splitlines()
    first, second = (msgspec.json.decode(line, type=Lineage) for line in lines)
    assert (first.base, first.parent, second.base, second.parent) == (first.base, first.base, first.base, first.weights)
    assert second.weights == first.weights, "a stage that trains the head leaves the policy"
    assert [lineage.head.state for lineage in (first, second)] == ["stale", "trained"]
    assert second.head.weights != first.head.weights
    for lineage in (first, second):
        assert lineage.recipe_digest == digest(lineage.recipe)
        assert lineage.bundles == [minimal.digest]
