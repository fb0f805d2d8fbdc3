"""Sides of a diff: a revision is read as git keeps it, and whatever is wrong names the side that it is of."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from harnessctl.compile.diff import diff_bundles
from harnessctl.compile.revision import load_side
from harnessctl.errors import FaultsError, UsageError
from harnessctl.manifests.templates import copy_template

SKILL = "skills/answer-question/SKILL.md"


def git(root: Path, *arguments: str) -> None:
    name = ("-c", "user.name=t", "-c", "user.email=t@example.com", "-c", "protocol.file.allow=always")
    subprocess.run(["git", "-C", str(root), *name, *arguments], check=True, capture_output=True)


def commit(root: Path, message: str) -> None:
    git(root, "add", "-A")
    git(root, "commit", "-qm", message)


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    """A project in a subfolder of a repository whose first commit has none."""
    root = tmp_path / "repository" / "apps" / "my shop"
    root.mkdir(parents=True)
    git(tmp_path / "repository", "init", "-q")
    (tmp_path / "repository/README").write_text("x")
    commit(root, "empty")
    copy_template("minimal", root)
    commit(root, "shop")
    return root


def edit(root: Path, old: str, new: str) -> None:
    text = (root / SKILL).read_text()
    assert old in text
    (root / SKILL).write_text(text.replace(old, new))


def kinds(root: Path, old: str, new: str = ".") -> set[str]:
    return {change.kind for change in diff_bundles(load_side(old, root), load_side(new, root))}


def test_a_project_in_a_subfolder(shop: Path) -> None:
    assert kinds(shop, "HEAD") == set()
    edit(shop, "fact first", "fact last")
    assert kinds(shop, "HEAD") == {"skill.body"}


def test_a_revision_without_the_project_is_named(shop: Path) -> None:
    with pytest.raises(UsageError, match="revision HEAD~1 has no folder apps/my shop"):
        load_side("HEAD~1", shop)


def test_a_revision_with_the_folder_and_without_a_harness_is_named(shop: Path) -> None:
    git(shop, "rm", "-q", "--cached", "manifests/harness.yaml")
    git(shop, "commit", "-qm", "no harness")
    with pytest.raises(UsageError, match="no project at revision HEAD: it has no harness"):
        load_side("HEAD", shop)
    with pytest.raises(UsageError, match="no harness `nope` at revision HEAD~1"):
        load_side("HEAD~1", shop, harness="nope")


def test_faults_of_a_revision_say_so(shop: Path) -> None:
    edit(shop, "`get_price`", "get_price")
    commit(shop, "broken")
    edit(shop, "get_price", "`get_price`")
    with pytest.raises(FaultsError) as error:
        load_side("HEAD", shop)
    assert error.value.faults[0].render().startswith(f"HEAD:{SKILL}:10:8: error[ref-bare]")
    load_side(".", shop)


def test_faults_of_another_folder_say_so(shop: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    edit(shop, "`get_price`", "get_price")
    monkeypatch.chdir(shop.parent)
    with pytest.raises(FaultsError) as error:
        load_side("my shop", None)
    assert error.value.faults[0].path == f"my shop/{SKILL}"


@pytest.mark.parametrize("attribute", ["skills/** export-ignore", "* text=auto eol=crlf", "*.md ident export-subst"])
def test_attributes_for_exports_and_checkouts_change_nothing(shop: Path, attribute: str) -> None:
    (shop / ".gitattributes").write_text(attribute + "\n")
    commit(shop, "attributes")
    assert kinds(shop, "HEAD") == set()


def test_a_worktree_and_a_submodule(shop: Path, tmp_path: Path) -> None:
    edit(shop, "fact first", "fact last")
    commit(shop, "edited")
    git(shop, "worktree", "add", "-q", str(tmp_path / "tree"), "HEAD~1")
    assert kinds(tmp_path / "tree/apps/my shop", "HEAD") == set()
    assert kinds(tmp_path / "tree/apps/my shop", "master" if _has_master(shop) else "main") == {"skill.body"}
    outer = tmp_path / "outer"
    outer.mkdir()
    git(outer, "init", "-q")
    git(outer, "submodule", "add", "-q", str(tmp_path / "repository"), "inner")
    assert kinds(outer / "inner/apps/my shop", "HEAD~1") == {"skill.body"}


def _has_master(root: Path) -> bool:
    done = subprocess.run(["git", "-C", str(root), "rev-parse", "--verify", "-q", "master"], capture_output=True)
    return done.returncode == 0


def test_links_and_odd_names_come_through(shop: Path) -> None:
    (shop / "manifests/tools/also.py").symlink_to("shop_tools.py")
    (shop / "notes\nof a (day) 价.txt").write_text("x")
    text = (shop / "manifests/tools/shop.yaml").read_text()
    (shop / "manifests/tools/shop.yaml").write_text(text.replace("shop_tools:", "also:"))
    commit(shop, "links")
    assert kinds(shop, "HEAD") == set()


def test_a_link_out_of_the_revision_is_a_fault_of_it(shop: Path) -> None:
    (shop / "manifests/tools/shop_tools.py").unlink()
    (shop / "manifests/tools/shop_tools.py").symlink_to("/etc/hostname")
    commit(shop, "out")
    with pytest.raises(FaultsError) as error:
        load_side("HEAD", shop)
    assert [(fault.path, fault.code) for fault in error.value.faults] == [
        ("HEAD:manifests/tools/shop_tools.py", "source-outside")
    ]


def test_the_command_finds_the_project_of_the_other_side(
    shop: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from harnessctl.cli.main import main

    edit(shop, "fact first", "fact last")
    monkeypatch.chdir(shop.parents[1])
    assert main(["diff", "HEAD", "apps/my shop"]) == 0
    assert "fact last" in capsys.readouterr().out
