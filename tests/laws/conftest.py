"""Parents of every kind, compiled once, and a correct variant of the hostile one to be corrupted."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from laws_bazaar import Bazaar, compiled, written

from harnessctl.bundle import Bundle, read_bundle
from harnessctl.compile import compile_project
from harnessctl.importing import import_mcp, import_skills

REPOSITORY = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="session")
def shipped(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Bundle]:
    """The bundles of the repository's own harnesses by name."""
    root = tmp_path_factory.mktemp("shipped")
    for folder in ("manifests", "skills"):
        shutil.copytree(REPOSITORY / folder, root / folder)
    bundles = [read_bundle(found.path) for found in compile_project(root).bundles]
    return {bundle.name: bundle for bundle in bundles}


@pytest.fixture(scope="session")
def retail_host(tmp_path_factory: pytest.TempPathFactory, shared_data: Path) -> Bundle:
    """The tau2 retail project."""
    root = tmp_path_factory.mktemp("retail") / "project"
    shutil.copytree(REPOSITORY / "tests" / "retail" / "project", root, ignore=shutil.ignore_patterns("build"))
    shutil.copy(shared_data / "tau2_retail" / "db.json", root / "manifests" / "worlds" / "db.json")
    return compiled(root)


@pytest.fixture(scope="session")
def bazaar(tmp_path_factory: pytest.TempPathFactory) -> Bundle:
    """The hostile project as it stands."""
    return compiled(written(Bazaar().files(), tmp_path_factory.mktemp("bazaar")))


@pytest.fixture(scope="session")
def imported(tmp_path_factory: pytest.TempPathFactory, shared_data: Path) -> Bundle:
    """A project of real skills and real MCP captures, brought in by the importers."""
    root = written(IMPORTING, tmp_path_factory.mktemp("imported"))
    import_mcp(shared_data / "mcp", root)
    stems = ", ".join(sorted(path.stem for path in (root / "manifests" / "tools").glob("*.yaml")))
    import_skills(shared_data / "skills", root)
    harness = root / "manifests" / "harness.yaml"
    harness.write_text(harness.read_text().replace("tools: []", f"tools: [{stems}]"))
    return compiled(root)


IMPORTING = {
    "manifests/harness.yaml": """apiVersion: harnessctl/v1
kind: Harness
name: real
version: 1.0.0
include: {skills: ["*"], tools: []}
prompt: main
limits: {max_rounds: {value: 6, range: [4, 8]}}
""",
    "manifests/prompts/main.yaml": """apiVersion: harnessctl/v1
kind: PromptPipeline
name: main
blocks:
  - id: base
    pin: true
    heading: Work with care.
    items:
      - {id: rounds, text: "You have 6 rounds.", limit: max_rounds}
      - {id: plain, text: "Say what you did."}
  - id: skills
    when: skills
    template: |
      {% for skill in skills %}
      {{ skill.name }}: {{ skill.description }}
      {% endfor %}
""",
}
