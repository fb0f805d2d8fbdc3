"""Files that cannot be sources: pipes, folders in the place of files, links out, names that some machines cannot hold."""

from __future__ import annotations

import os
import unicodedata
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from harnessctl.errors import Faults, UsageError
from harnessctl.manifests.locate import find_root, find_sources, look

Write = Callable[[Mapping[str, str | bytes]], Path]


def found(root: Path) -> list[str]:
    faults = Faults()
    find_sources(root, faults)
    return [fault.render() for fault in sorted(faults.items)]


def test_a_pipe_is_never_opened(project: Write) -> None:
    root = project({"manifests/harness.yaml": "", "skills/a/x": "", "skills/b/SKILL.md": ""})
    for path in ("manifests/tools.yaml", "skills/a/SKILL.md", "skills/b/examples.yaml"):
        os.mkfifo(root / path)
    assert [text.partition(";")[0] for text in found(root)] == [
        f"{path}: error[source-unreadable]: the file cannot be read: it is no regular file"
        for path in ("manifests/tools.yaml", "skills/a/SKILL.md", "skills/b/examples.yaml")
    ]


def test_a_folder_where_a_file_belongs_and_a_file_where_a_folder_belongs(project: Write) -> None:
    root = project({"manifests/tools/a.yaml/x": "", "manifests/hooks": "", "skills/a/SKILL.md/x": "", "m/x": ""})
    assert [text.partition(";")[0] for text in found(root)] == [
        "manifests/hooks: error[source-place]: a file stands in the place of a folder",
        "manifests/tools/a.yaml: error[source-place]: a folder has the name of a manifest",
        "skills/a/SKILL.md: error[source-unreadable]: the file cannot be read: it is no regular file",
    ]


@pytest.mark.parametrize("folder", ["manifests", "skills"])
def test_a_whole_folder_may_not_be_a_link_out_of_the_project(project: Write, folder: str) -> None:
    root = project({"p/manifests/harness.yaml": "", "p/skills/a/SKILL.md": "", "out/x.yaml": ""})
    (root / "p" / folder).rename(root / "out" / folder)
    (root / "p" / folder).symlink_to(root / "out" / folder)
    (text,) = found((root / "p").resolve())
    assert text.startswith(f"{folder}: error[source-outside]: the symbolic link leads out of the project")


def test_a_folder_that_cannot_be_read_is_a_fault_and_no_crash(project: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    root = project({"manifests/harness.yaml": "", "skills/a/SKILL.md": "", "skills/b/SKILL.md": ""})
    scandir = os.scandir

    def refused(path: Path) -> object:
        if Path(path).name == "a":
            raise PermissionError(13, "Permission denied", str(path))
        return scandir(path)

    monkeypatch.setattr(os, "scandir", refused)
    assert found(root) == ["skills/a: error[source-unreadable]: the folder cannot be read: Permission denied"]


@pytest.mark.parametrize(
    "twins",
    [
        ("manifests/tools/shop.yaml", "manifests/tools/Shop.yaml"),
        ("skills/a/SKILL.md", "skills/A/SKILL.md"),
        (f"manifests/{unicodedata.normalize('NFC', 'é')}.yaml", f"manifests/{unicodedata.normalize('NFD', 'é')}.yaml"),
    ],
)
def test_names_that_some_machines_cannot_tell_apart(project: Write, twins: tuple[str, str]) -> None:
    (text,) = found(project(dict.fromkeys(twins, "")))
    assert "error[source-twin]: two files have names that some machines cannot tell apart" in text


@pytest.mark.parametrize("name", ["a.YAML", "a.Yml", "a.yml"])
def test_an_ending_that_is_not_read(project: Write, name: str) -> None:
    (text,) = found(project({f"manifests/tools/{name}": ""}))
    assert f"error[source-place]: a manifest is not read because of its ending; got {name[1:]}" in text
    assert "hint: rename it to manifests/tools/a.yaml" in text


def test_a_name_that_is_not_text(project: Write) -> None:
    root = project({"manifests/harness.yaml": ""})
    (root / "manifests" / os.fsdecode(b"caf\xe9.yaml")).write_text("")
    (text,) = found(root)
    assert text.startswith(r"manifests/caf\udce9.yaml: error[source-place]: the name is not UTF-8 text")
    text.encode()


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("manifests/harness.yaml", "file"),
        ("manifests", "folder"),
        ("missing", "nothing"),
        ("a\0b", "nothing"),
        ("x" * 300, "nothing"),
        ("manifests/harness.yaml/x", "nothing"),
        ("../x", "outside"),
        ("/etc", "outside"),
    ],
)
def test_what_a_path_leads_to(project: Write, path: str, kind: str) -> None:
    root = project({"manifests/harness.yaml": ""}).resolve()
    assert look(root, path) == kind


def test_a_working_directory_that_is_gone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def gone() -> str:
        raise FileNotFoundError(2, "No such file or directory")

    monkeypatch.setattr(os, "getcwd", gone)
    with pytest.raises(UsageError, match="the working directory is not there any more"):
        find_root()
