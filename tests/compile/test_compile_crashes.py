"""What is on disk when a compile is killed, refused by the disk, or meets another one: the old files or the new ones."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import orjson
import pytest

from harnessctl.bundle import read_bundle
from harnessctl.compile import compile_project, fresh, passes
from harnessctl.errors import FaultsError, StorageError, UsageError

Shop = Callable[..., Path]
REPOSITORY = Path(__file__).resolve().parents[2]


def edit(root: Path, old: str = "one more", new: str = "two more") -> None:
    path = root / "skills/upsell/SKILL.md"
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


def whole(root: Path) -> list[str]:
    """The digests of the bundles in build/, all of them read; the lock is JSON."""
    if (root / "harness.lock").exists():
        orjson.loads((root / "harness.lock").read_bytes())
    return [read_bundle(path).digest for path in sorted((root / "build").glob("*.bundle.json"))]


KILLED = """
import os, pathlib, signal, sys
from harnessctl.compile import compile_project
count = int(sys.argv[2])
def killed(original):
    def call(*arguments):
        global count
        count -= 1
        if not count:
            os.kill(os.getpid(), signal.SIGKILL)
        return original(*arguments)
    return call
os.fsync, os.replace = killed(os.fsync), killed(os.replace)
compile_project(pathlib.Path(sys.argv[1]))
"""


def test_a_kill_at_any_write_leaves_whole_files(shop: Shop) -> None:
    root = shop()
    compile_project(root)
    edit(root)
    for n in range(1, 6):
        done = subprocess.run([sys.executable, "-c", KILLED, str(root), str(n)], cwd=REPOSITORY, check=False)
        whole(root)
        if done.returncode == 0:
            break
        assert done.returncode == -signal.SIGKILL
    assert n > 3
    assert compile_project(root).bundle().digest in whole(root)


def test_what_a_killed_compile_left_is_cleared_an_hour_later(shop: Shop) -> None:
    root = shop()
    compile_project(root)
    strays = [root / ".harness.lock.abc123", root / "build/.shop-1.0.0+0123456789ab.bundle.json.abc123"]
    for stray in strays:
        stray.write_text("half")
    edit(root)
    compile_project(root)
    assert all(stray.exists() for stray in strays)
    for stray in strays:
        os.utime(stray, (0, time.time() - 3700))
    edit(root, "two more", "three more")
    compile_project(root)
    assert not any(stray.exists() for stray in strays)


@pytest.mark.parametrize("size", [0, 1000, 6000])
def test_a_full_disk_leaves_the_old_lock_and_no_half_bundle(shop: Shop, size: int) -> None:
    root = shop()
    compile_project(root)
    lock, before = (root / "harness.lock").read_bytes(), whole(root)
    edit(root)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, limits[1]))
        with pytest.raises(StorageError, match=r"cannot write .*\.bundle\.json: File too large"):
            compile_project(root)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, handler)
    assert (root / "harness.lock").read_bytes() == lock and whole(root) == before
    assert sorted(path.name for path in (root / "build").iterdir() if path.name.startswith(".")) == [".cache"]


def test_a_file_in_the_place_of_build_is_named(shop: Shop) -> None:
    root = shop({"build": "x"})
    with pytest.raises(StorageError, match=f"{root.resolve() / 'build'} is not a folder"):
        compile_project(root)
    assert not (root / "harness.lock").exists()


def test_compiles_side_by_side_leave_one_whole_result(shop: Shop) -> None:
    root = shop()
    code = "import pathlib, sys; from harnessctl.compile import compile_project; compile_project(pathlib.Path(sys.argv[1]))"
    running = [subprocess.Popen([sys.executable, "-c", code, str(root)], cwd=REPOSITORY) for _ in range(3)]
    assert [process.wait() for process in running] == [0, 0, 0]
    assert whole(root) == [compile_project(root, locked=True).bundle().digest]


def test_an_edit_while_the_sources_are_read_is_seen_by_the_next_compile(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A long compile: the file changes after it was read, and is old by the time that the index is written."""
    root = shop()
    link, now = passes.link, time.time_ns()
    monkeypatch.setattr(time, "time_ns", lambda: now)

    def late(build: passes.Build) -> None:
        nonlocal now
        link(build)
        edit(root)
        now += 60_000_000_000

    monkeypatch.setattr(passes, "link", late)
    first = compile_project(root)
    monkeypatch.setattr(passes, "link", link)
    second = compile_project(root)
    assert not second.fresh and second.bundle().digest != first.bundle().digest


def test_an_unknown_harness_is_said_before_anything_is_written(shop: Shop) -> None:
    root = shop()
    with pytest.raises(UsageError, match="no harness `nope`"):
        compile_project(root, harness="nope")
    assert not (root / "harness.lock").exists() and not list((root / "build").glob("*.bundle.json"))


def test_locked_never_writes_the_lock_even_where_only_its_line_ends_differ(shop: Shop) -> None:
    root = shop()
    compile_project(root)
    other = (root / "harness.lock").read_bytes().replace(b"\n", b"\r\n")
    (root / "harness.lock").write_bytes(other)
    result = compile_project(root, locked=True)
    assert not result.fresh and (root / "harness.lock").read_bytes() == other
    assert compile_project(root, locked=True).fresh


@pytest.mark.parametrize(
    "damage",
    [
        {"sources": ["x"]},
        {"sources": {"a": 1}},
        {"bundles": {"shop": 3}},
        {"bundles": {"shop": {"version": 1, "digest": "x"}}},
        {"discovered": {"x": {"spec": "a", "tools": 5}}},
        {"discovered": {"x": {"spec": "a", "tools": [1]}}},
    ],
)
def test_a_lock_of_another_shape_is_a_fault_and_no_crash(shop: Shop, damage: dict[str, object]) -> None:
    root = shop()
    compile_project(root)
    lock = orjson.loads((root / "harness.lock").read_bytes())
    (root / "harness.lock").write_bytes(orjson.dumps({**lock, **damage}))
    with pytest.raises(FaultsError) as error:
        compile_project(root)
    assert [fault.code for fault in error.value.faults] == ["lock-unreadable"]


def test_the_key_of_the_cache_knows_the_compilers_own_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for folder in ("bundle", "compile", "manifests/specs"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "compile/links.py").write_text("x = 1\n")
    monkeypatch.setattr(fresh, "_PACKAGE", tmp_path)
    before = fresh.compiler_key()
    assert fresh.compiler_key() == before
    (tmp_path / "compile/links.py").write_text("x = 12\n")
    assert fresh.compiler_key() != before
