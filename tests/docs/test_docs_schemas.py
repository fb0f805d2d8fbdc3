"""docs/schemas holds what the code says: `harnessctl schema --all docs/schemas` writes the files anew."""

from __future__ import annotations

import tomllib
from pathlib import Path

import orjson

from harnessctl.cli.diagnosis import CORE
from harnessctl.cli.main import main
from harnessctl.manifests.schemas import kinds


def test_the_published_schemas_are_the_ones_that_files_are_checked_against(repository: Path, tmp_path: Path) -> None:
    assert main(["schema", "--all", str(tmp_path)]) == 0
    published = {path.name: path.read_bytes() for path in (repository / "docs/schemas").iterdir()}
    assert published == {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    assert set(published) == {f"{kind}.json" for kind in kinds()}


def test_each_names_its_kind_and_draft(repository: Path) -> None:
    for path in (repository / "docs/schemas").iterdir():
        document = orjson.loads(path.read_bytes())
        assert document["title"] == path.stem and document["$id"].endswith(f"/{path.name}")
        assert document["$schema"] == "https://json-schema.org/draft/2020-12/schema"


def test_doctor_looks_for_every_package_that_is_always_needed(repository: Path) -> None:
    project = tomllib.loads((repository / "pyproject.toml").read_text())["project"]
    assert {need.partition(">")[0] for need in project["dependencies"]} == set(CORE)
