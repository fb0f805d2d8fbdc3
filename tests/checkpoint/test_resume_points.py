"""Resume points: what is saved comes back, what is damaged is passed over, and kill -9 and a full disk leave the last."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from harnessctl.checkpoint.resume import ResumePoints
from harnessctl.errors import CheckpointError, StorageError
from tests.checkpoint.conftest import Dying, Killed

Tensors = dict[str, torch.Tensor]


def some_tensors(seed: int = 0) -> Tensors:
    made = torch.Generator().manual_seed(seed)
    return {
        "model.w": torch.randn(7, 3, generator=made),
        "model.half": torch.randn(5, generator=made).to(torch.bfloat16),
        "optim.step": torch.tensor(3.0),
        "count": torch.arange(4),
        "flags": torch.tensor([True, False]),
        "none": torch.empty(0, 3),
    }


def assert_equal(found: Tensors, wanted: Tensors) -> None:
    assert found.keys() == wanted.keys()
    for name, tensor in wanted.items():
        assert (found[name].dtype, found[name].shape) == (tensor.dtype, tensor.shape)
        assert torch.equal(found[name], tensor)


def test_what_is_saved_comes_back(tmp_path: Path):
    points = ResumePoints(tmp_path / "deep" / "points")
    assert points.newest() is None
    state = {"groups": {"param_groups.w.betas": [0.9, 0.95], "lr": 0.1 + 0.2}, "rng": 2**127 + 1, "text": "买 \ud83d"}
    points.save(3, some_tensors(), state)
    point = points.newest()
    assert point is not None
    assert (point.step, point.state, points.newest_step()) == (3, state, 3)
    assert_equal(point.tensors(), some_tensors())


def test_the_newest_stay_and_nothing_else(tmp_path: Path):
    points = ResumePoints(tmp_path, keep=2)
    for step in (1, 2, 10):
        points.save(step, some_tensors(step), {})
    assert sorted(path.name[:13] for path in tmp_path.iterdir()) == [*["step-00000002"] * 2, *["step-00000010"] * 2]
    assert points.newest_step() == 10
    points.save(5, some_tensors(5), {})
    assert points.newest_step() == 5, "a point of a later step is of a training that was given up"
    points.save(5, some_tensors(6), {"again": True})
    point = points.newest()
    assert point is not None
    assert point.state == {"again": True}
    assert_equal(point.tensors(), some_tensors(6))
    assert len(list(tmp_path.iterdir())) == 4


def test_tied_weights_are_stored_once_and_come_back_tied(tmp_path: Path):
    shared = torch.randn(1000)
    points = ResumePoints(tmp_path)
    points.save(1, {"embed": shared, "head": shared, "turned": shared.reshape(10, 100).T}, {})
    assert sum(path.stat().st_size for path in tmp_path.iterdir()) < 9500
    point = points.newest()
    assert point is not None
    found = point.tensors()
    assert found["embed"].data_ptr() == found["head"].data_ptr()
    assert torch.equal(found["turned"], shared.reshape(10, 100).T)


def _cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-1])


def _flip(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)


@pytest.mark.parametrize("suffix", [".safetensors", ".json"])
@pytest.mark.parametrize("damage", [_cut, _flip, Path.unlink, lambda path: path.write_bytes(b"")])
def test_damaged_points_are_passed_over_with_the_reason(tmp_path: Path, suffix: str, damage: Any):
    points = ResumePoints(tmp_path)
    points.save(1, some_tensors(1), {"n": 1})
    points.save(2, some_tensors(2), {"n": 2})
    damage(next(path for path in tmp_path.glob(f"step-00000002*{suffix}")))
    point = points.newest()
    assert point is not None
    assert (point.step, point.state) == (1, {"n": 1})
    assert_equal(point.tensors(), some_tensors(1))
    if damage is not Path.unlink or suffix == ".safetensors":
        assert len(points.skipped) == 1
        assert points.skipped[0].startswith("step 2: ")
    points.save(2, some_tensors(2), {"n": 3})
    assert points.newest_step() == 2
    assert points.skipped == []
    assert len(list(tmp_path.iterdir())) == 4


def test_a_point_of_another_version_is_named(tmp_path: Path):
    (tmp_path / "step-00000009.json").write_text('{"format": "harnessctl/resume.v7"}')
    points = ResumePoints(tmp_path)
    assert points.newest() is None
    assert "harnessctl/resume.v7" in points.skipped[0]


@pytest.mark.parametrize(
    ("state", "says"),
    [({"x": float("nan")}, "not JSON"), ({"x": {1: 2}}, "key 1"), ({"x": object()}, "not JSON")],
)
def test_a_state_that_would_not_come_back_is_refused(tmp_path: Path, state: dict[str, Any], says: str):
    with pytest.raises(CheckpointError, match=says):
        ResumePoints(tmp_path).save(1, {}, state)


def test_a_dtype_that_cannot_be_stored_is_named(tmp_path: Path):
    with pytest.raises(CheckpointError, match="complex64"):
        ResumePoints(tmp_path).save(1, {"x": torch.zeros(2, dtype=torch.complex64)}, {})
    assert list(tmp_path.iterdir()) == []


@pytest.fixture
def full_disk() -> Iterator[None]:
    """Files cannot grow beyond 2,000 bytes; the system refuses the write as a full disk does."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (2000, hard))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_a_full_disk_leaves_the_older_point(tmp_path: Path, full_disk: None):
    points = ResumePoints(tmp_path)
    points.save(4, {"w": torch.ones(10)}, {"n": 1})
    names = {path.name for path in tmp_path.iterdir()}
    for tensors, state in (({"w": torch.ones(1000)}, {}), ({"w": torch.ones(10)}, {"long": "x" * 2000})):
        with pytest.raises(StorageError, match="cannot write"):
            points.save(3, tensors, state)
        assert {path.name for path in tmp_path.iterdir()} == names
    assert points.newest_step() == 4


def test_a_folder_that_is_a_file(tmp_path: Path):
    (tmp_path / "points").write_text("")
    with pytest.raises(StorageError, match="not a folder"):
        ResumePoints(tmp_path / "points").save(1, {}, {})


SAVER = r"""
import os, random, signal, sys, time
from pathlib import Path
import torch
from harnessctl.checkpoint.resume import ResumePoints

torch.set_num_threads(1)
folder, chance = Path(sys.argv[1]), random.Random(0)

def save_without_end(out):
    points = ResumePoints(folder)
    step = points.newest_step() or 0
    while True:
        step += 1
        for again in range(2):
            w = torch.full((40_000,), float(step))
            points.save(step, {"w": w, "s": torch.tensor(step)}, {"step": step, "again": again})
        os.write(out, b"%d\n" % step)

for _ in range(15):
    back, out = os.pipe()
    process = os.fork()
    if process == 0:
        save_without_end(out)
    os.close(out)
    said = os.read(back, 100)
    time.sleep(chance.random() * 0.1)
    os.kill(process, signal.SIGKILL)
    os.waitpid(process, 0)
    while rest := os.read(back, 100_000):
        said += rest
    said = int(said.split()[-1])
    points = ResumePoints(folder)
    point = points.newest()
    assert point is not None and points.skipped == [], points.skipped
    assert point.step in (said, said + 1) and point.state["step"] == point.step, (point, said)
    assert torch.equal(point.tensors()["w"], torch.full((40_000,), float(point.step)))
    print(point.step, flush=True)
"""


@pytest.mark.slow
def test_kill_9_leaves_a_readable_newest_point(tmp_path: Path):
    """A process that saves without end is killed at moments of chance, time after time in one folder."""
    done = subprocess.run([sys.executable, "-c", SAVER, str(tmp_path)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert len(done.stdout.split()) == 15


def _killed_at(call: int, points: ResumePoints, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Save step 2 as a process does that is killed before the given call that changes the disk: that one fails and all
    after it. False when there are not so many calls."""
    dying = Dying(call)
    with monkeypatch.context() as patched:
        for name in ("replace", "fsync", "unlink", "chmod"):
            patched.setattr(os, name, dying(getattr(os, name)))
        patched.setattr(Path, "unlink", dying(Path.unlink))
        try:
            points.save(2, some_tensors(2), {"n": 2})
        except Killed:
            return True
    return False


def test_an_end_before_any_call_leaves_a_readable_newest_point(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    steps: list[int] = []
    for call in range(1, 100):
        points = ResumePoints(tmp_path / str(call), keep=1)
        points.save(1, some_tensors(1), {"n": 1})
        if not _killed_at(call, points, monkeypatch):
            break
        fresh = ResumePoints(tmp_path / str(call), keep=1)
        point = fresh.newest()
        assert point is not None
        assert fresh.skipped == []
        assert point.state == {"n": point.step}
        assert_equal(point.tensors(), some_tensors(point.step))
        steps.append(point.step)
        fresh.save(3, some_tensors(3), {"n": 3})
        assert len(list(fresh.folder.iterdir())) == 2
    assert len(steps) > 8
    assert steps == sorted(steps)
    assert set(steps) == {1, 2}
