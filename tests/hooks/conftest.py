from __future__ import annotations

import os
import select
import tempfile

import pytest


@pytest.fixture(autouse=True, scope="session")
def temporary_folder(tmp_path_factory):
    """Hook files are laid out under a folder of the test run."""
    folder = tmp_path_factory.mktemp("tmp")
    before, tempfile.tempdir = tempfile.tempdir, str(folder)
    yield folder
    tempfile.tempdir = before


@pytest.fixture
def own_temporary_folder(tmp_path, monkeypatch):
    """Hook files are laid out under the test's own folder."""
    folder = tmp_path / "tmp"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


class Witness:
    """A pipe that a hook's process opens as descriptor 9 and all its children inherit: its end is theirs.

    A script begins with `exec 9>"$HARNESSCTL_ALIVE"; echo x >&9`.
    """

    def __init__(self, path) -> None:
        os.mkfifo(path)
        self.reader = os.open(path, os.O_RDONLY | os.O_NONBLOCK)

    def was_there_and_is_gone(self) -> bool:
        seen = b""
        while select.select([self.reader], [], [], 10)[0]:
            data = os.read(self.reader, 100)
            if not data:
                return seen == b"x\n"
            seen += data
        return False


@pytest.fixture
def witness(tmp_path, monkeypatch):
    monkeypatch.setenv("HARNESSCTL_ALIVE", str(tmp_path / "alive"))
    made = Witness(tmp_path / "alive")
    yield made
    os.close(made.reader)
