"""Commands that write do it whole, inside the project, or not at all."""

from __future__ import annotations

from pathlib import Path

import pytest

from harnessctl import storage
from harnessctl.errors import StorageError


def files(root: Path) -> set[str]:
    return {path.relative_to(root).as_posix() for path in root.rglob("*") if path.is_file()}


@pytest.fixture
def fails_at(monkeypatch):
    """Lets the n-th file that a command writes fail as on a full disk."""

    def at(n: int, *modules: str) -> None:
        count = 0

        def write(path: Path, data: bytes) -> None:
            nonlocal count
            count += 1
            if count == n:
                raise StorageError(f"cannot write {path}: No space left on device")
            original(path, data)

        original = storage.write_atomic
        for module in modules:
            monkeypatch.setattr(f"{module}.write_atomic", write)

    return at


def test_init_on_a_full_disk_leaves_no_file(harnessctl, tmp_path, fails_at):
    fails_at(5, "harnessctl.manifests.templates")
    result = harnessctl("init", str(tmp_path / "shop"))
    assert result.code == 1 and "No space left" in result.err
    assert files(tmp_path) == set()


def test_new_tool_on_a_full_disk_leaves_no_file(harnessctl, shop, fails_at):
    before = files(shop)
    fails_at(2, "harnessctl.storage")
    assert harnessctl("new", "tool", "get_stock", cwd=shop).code == 1
    assert files(shop) == before


@pytest.mark.parametrize(
    "arguments",
    [
        ["recipe", "x", "--job", "../../x"],
        ["recipe", "x", "--job", "nope"],
        ["skill", "../x"],
        ["skill", "a" * 65],
        ["tool", "class"],
        ["tool", "get-price"],
        ["hook", "a/b"],
    ],
)
def test_new_writes_nothing_that_would_not_be_read(harnessctl, shop, tmp_path, arguments):
    before = files(tmp_path)
    assert harnessctl("new", *arguments, cwd=shop).code == 2
    assert files(tmp_path) == before


def test_a_project_that_cannot_be_written_is_read_all_the_same(harnessctl, shop, monkeypatch):
    def refused(path: Path, data: bytes) -> None:
        raise StorageError(f"cannot write {path}: Permission denied")

    monkeypatch.setattr("harnessctl.storage.write_atomic", refused)
    for command in ("show", "render"):
        result = harnessctl(command, "--json", cwd=shop)
        assert result.code == 0 and result.json
        assert "Permission denied; the bundle is not kept" in result.err
    assert harnessctl("compile", "--json", cwd=shop).code == 1
    assert not list(shop.glob("build/*.bundle.json"))


def test_a_template_is_one_of_those_there_are(harnessctl, tmp_path):
    for name in ("nope", "../..", "."):
        assert harnessctl("init", str(tmp_path / "x"), "--template", name).code == 2
    assert files(tmp_path) == set()


def test_validate_with_a_folder_that_cannot_be_read(harnessctl, shop, monkeypatch):
    import os

    scandir = os.scandir

    def refused(path):
        if Path(path) == shop / "manifests":
            raise PermissionError(13, "Permission denied", str(path))
        return scandir(path)

    monkeypatch.setattr(os, "scandir", refused)
    result = harnessctl("validate", "--json", "--project", str(shop))
    assert result.code == 1
    assert [fault["code"] for fault in result.json["faults"]] == ["source-unreadable"]
