from __future__ import annotations

import pytest

from harnessctl.errors import HookError
from harnessctl.runtime.layout import Layout

pytestmark = pytest.mark.usefixtures("own_temporary_folder")

FILES = {"hooks/a.sh": "#!/bin/sh\nexit 0\n", "hooks/data/words.txt": "价格\n", "top.py": "print(1)\n"}


def test_files_are_laid_out_once_and_kept_as_they_are():
    first, second = Layout(FILES).folder(), Layout(FILES).folder()
    assert first == second
    assert (first / "hooks/data/words.txt").read_text("utf-8") == "价格\n"
    assert (first / "hooks/a.sh").stat().st_mode & 0o777 == 0o700
    assert (first / "top.py").stat().st_mode & 0o777 == 0o600
    inode = (first / "top.py").stat().st_ino
    Layout(FILES).folder()
    assert (first / "top.py").stat().st_ino == inode


def test_other_files_have_another_folder():
    assert Layout(FILES).folder() != Layout({**FILES, "top.py": "print(2)\n"}).folder()


@pytest.mark.parametrize("new_layout", [False, True])
@pytest.mark.parametrize("change", ["edited", "gone", "link", "folder", "mode"])
def test_a_file_that_was_changed_is_put_right(change, new_layout, tmp_path):
    layout = Layout(FILES)
    path = layout.folder() / "top.py"
    if change == "edited":
        path.write_text("print(2)\n")
    elif change == "mode":
        path.chmod(0o644)
    else:
        path.unlink()
        if change == "link":
            (tmp_path / "elsewhere.py").write_text("print(1)\n")
            path.symlink_to(tmp_path / "elsewhere.py")
        elif change == "folder":
            (path / "x").mkdir(parents=True)
    (Layout(FILES) if new_layout else layout).folder()
    assert not path.is_symlink()
    assert path.read_text() == "print(1)\n"
    assert change != "mode" or path.stat().st_mode & 0o777 == 0o600 or not new_layout


@pytest.mark.parametrize("name", ["/etc/x", "../x", "a/../../x", ""])
def test_no_file_lies_outside_the_folder(name):
    with pytest.raises(HookError, match="would lie outside its folder"):
        Layout({name: "x"}).folder()


def test_a_folder_that_others_can_enter_is_not_trusted(own_temporary_folder):
    folder = Layout(FILES).folder()
    folder.parent.chmod(0o755)
    with pytest.raises(HookError, match="is not a private folder of this user"):
        Layout(FILES).folder()
    folder.parent.chmod(0o700)
    for path in sorted(folder.parent.rglob("*"), reverse=True):
        path.rmdir() if path.is_dir() else path.unlink()
    folder.parent.rmdir()
    folder.parent.symlink_to(own_temporary_folder)
    with pytest.raises(HookError, match="is not a private folder"):
        Layout(FILES).folder()


def test_a_disk_that_refuses_is_an_error_of_the_hook(own_temporary_folder, monkeypatch):
    import tempfile

    monkeypatch.setattr(tempfile, "tempdir", str(own_temporary_folder / "not" / "there"))
    with pytest.raises(HookError, match="cannot lay out the hook's files"):
        Layout(FILES).folder()
