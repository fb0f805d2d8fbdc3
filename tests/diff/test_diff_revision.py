"""Sides of a diff: a bundle file, a project folder, a git revision."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from diff_project import FILES, HARNESS, SKILL

from harnessctl.bundle.files import write_bundle
from harnessctl.compile.diff import diff_bundles, render_changes
from harnessctl.compile.revision import load_side
from harnessctl.errors import BundleError, FaultsError, UsageError


def git(folder: Path, *arguments: str) -> None:
    environment = {"PATH": os.environ["PATH"], "HOME": str(folder), "GIT_CONFIG_NOSYSTEM": "1"}
    identity = ["-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "commit.gpgsign=false"]
    subprocess.run(["git", "-C", str(folder), *identity, *arguments], check=True, capture_output=True, env=environment)


@pytest.fixture
def repository_of(project):
    def make(below: str = "") -> Path:
        root = project({f"{below}{name}": text for name, text in FILES.items()})
        git(root, "init", "-q", "-b", "main")
        git(root, "add", "-A")
        git(root, "commit", "-q", "-m", "first")
        return root / below

    return make


def test_a_revision_and_the_folder_as_it_is(repository_of) -> None:
    root = repository_of()
    (root / "skills/greet/SKILL.md").write_text(SKILL.replace("Say hello first.", "Say hello last."))
    text = render_changes(diff_bundles(load_side("HEAD", root), load_side(str(root), root)))
    assert "skills/greet\n  ~ rule #hello text: Say hello first. -> Say hello last." in text
    assert diff_bundles(load_side("main", root), load_side("HEAD", root)) == []


def test_nothing_is_written(repository_of) -> None:
    root = repository_of()
    before = sorted(str(path) for path in root.rglob("*") if ".git" not in path.parts)
    load_side("HEAD", root)
    load_side(str(root), root)
    assert sorted(str(path) for path in root.rglob("*") if ".git" not in path.parts) == before


def test_a_project_in_a_folder_of_its_repository(repository_of) -> None:
    root = repository_of("agents/shop/")
    assert load_side("HEAD", root).digest == load_side(".", root).digest


def test_a_bundle_file_and_a_name_that_is_both_a_file_and_a_revision(repository_of, monkeypatch) -> None:
    root = repository_of()
    path = write_bundle(load_side(str(root)), root / "build")
    assert load_side(str(path), root).name == "shop"
    (root / "main").write_text("not a bundle")
    monkeypatch.chdir(root)
    with pytest.raises(BundleError, match="main: not a bundle"):
        load_side("main", root)
    assert load_side("git:main", root).name == "shop"


@pytest.mark.parametrize("name", ["nowhere", "HEAD~9", "--output=/tmp/x", "-h", "git:"])
def test_what_is_nothing_is_a_usage_error(repository_of, name: str) -> None:
    with pytest.raises(UsageError, match="revision"):
        load_side(name, repository_of())


def test_a_folder_without_git_or_project(project) -> None:
    root = project({"readme.txt": "x"})
    with pytest.raises(UsageError, match="is not in a git repository"):
        load_side("HEAD", root)
    with pytest.raises(UsageError, match="no project at"):
        load_side(str(root), root)


def test_faults_of_a_revision_are_shown(repository_of) -> None:
    root = repository_of()
    (root / "skills/greet/SKILL.md").write_text(SKILL.replace("name: greet", "name: meet"))
    git(root, "commit", "-q", "-a", "-m", "broken")
    with pytest.raises(FaultsError) as caught:
        load_side("HEAD", root)
    assert "skills/greet/SKILL.md:2:7: error[skill-name]" in caught.value.render()


def test_another_harness_by_name(repository_of) -> None:
    root = repository_of()
    (root / "manifests/mini.yaml").write_text(
        HARNESS.replace("name: shop", "name: mini").replace("max_rounds: 4", "max_rounds: 2")
    )
    assert load_side(str(root), root, harness="mini").state.limits["max_rounds"].value == 2
    assert load_side(str(root), root).name == "shop"
    with pytest.raises(UsageError, match="no harness `other`") as caught:
        load_side(str(root), root, harness="other")
    assert "shop, mini" in caught.value.hint
