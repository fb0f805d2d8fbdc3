"""The worked files of docs/examples fit the published schemas and are read by the project's own readers."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema_rs
import pytest

from harnessctl.manifests.schemas import schema_for
from harnessctl.records.requests import read_requests
from harnessctl.trajectory import read_trajectories


@pytest.mark.parametrize(("file", "kind"), [("comments.jsonl", "CommentInput"), ("trajectory.jsonl", "Trajectory")])
def test_each_line_fits_its_schema(repository: Path, file: str, kind: str):
    validator = jsonschema_rs.validator_for(schema_for(kind))
    lines = (repository / "docs" / "examples" / file).read_text().splitlines()
    assert len(lines) == 2
    for line in lines:
        assert [error.message for error in validator.iter_errors(json.loads(line))] == []


def test_the_readers_take_them(repository: Path):
    folder = repository / "docs" / "examples"
    with (folder / "comments.jsonl").open("rb") as file:
        asked = {request.id: request.text for request in read_requests(file, source="comments.jsonl")}
    for trajectory in read_trajectories(folder / "trajectory.jsonl"):
        assert trajectory.request["text"] == asked[trajectory.id]
        assert trajectory.stop == "replied"


def test_the_trajectory_is_of_the_minimal_template_as_it_is(repository: Path, tmp_path: Path):
    from harnessctl.compile import compile_project
    from harnessctl.manifests.templates import copy_template

    copy_template("minimal", tmp_path)
    digest = compile_project(tmp_path).bundles[0].digest
    assert {t.bundle for t in read_trajectories(repository / "docs" / "examples" / "trajectory.jsonl")} == {digest}
