"""Trajectories on disk: written whole, read with places, versions refused."""

from __future__ import annotations

import resource
import signal
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harnessctl.errors import RecordError, StorageError
from harnessctl.records.trajectory import HookDecision, ModelCall, TokenPath, ToolCall, Trajectory
from harnessctl.trajectory import (
    TrajectoryWriter,
    drop_before,
    encode_trajectory,
    ids_done,
    read_trajectories,
    request_digest,
    requests_done,
)


def trajectory(**fields: Any) -> Trajectory:
    defaults: dict[str, Any] = {
        "id": "r1",
        "bundle": "b" * 64,
        "harness": "shop",
        "loop": "harness",
        "model": "m",
        "request": {"id": "r1", "text": "价格?"},
        "context": {},
        "limits": {"max_rounds": 4},
        "started": "2026-01-01T00:00:00+00:00",
        "took_s": 0.5,
        "stop": "replied",
        "reply": "89",
        "route": "public",
        "messages": [{"role": "user", "content": "价格?"}],
        "calls": [ModelCall(round=1, seen=1, started_s=0, ended_s=0.1, path=0, tokens=(1, 2))],
        "tools": [ToolCall(round=1, id="c", name="get", arguments={}, status="ok", started_s=0, ended_s=0, result=[1])],
        "hooks": [HookDecision(hook="h", event="stop", round=1, decision="pass", took_s=0.0)],
        "paths": [TokenPath(ids=[1, 2], mask=[0, 1], logprobs=[0.0, -0.5])],
    }
    return Trajectory(**(defaults | fields))


def test_what_is_written_is_read(tmp_path: Path) -> None:
    path = tmp_path / "runs" / "t.jsonl"
    given = [trajectory(), trajectory(id="r2", stop="silent", route="silent", reply="")]
    with TrajectoryWriter(path, durable=True) as writer:
        for one in given:
            writer.write(one)
    assert list(read_trajectories(path)) == given
    assert [orjson.loads(line)["format"] for line in path.read_bytes().splitlines()] == ["harnessctl/trajectory.v1"] * 2
    assert ids_done(path) == {"r1": "replied", "r2": "silent"}
    assert requests_done(path)["r2"] == ("silent", request_digest({"text": "价格?", "id": "r1"}))


def test_the_encoding_is_msgspecs_own() -> None:
    assert orjson.loads(encode_trajectory(trajectory())) == orjson.loads(msgspec.json.encode(trajectory()))


def test_what_was_cancelled_is_not_done(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    with TrajectoryWriter(path) as writer:
        writer.write(trajectory(stop="cancelled"))
    assert ids_done(path) == {}
    assert ids_done(tmp_path / "none.jsonl") == {}


def test_a_torn_last_line_is_passed_over_and_cut_off(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    whole = encode_trajectory(trajectory()) + b"\n"
    path.write_bytes(whole + encode_trajectory(trajectory(id="r2"))[:200])
    assert [t.id for t in read_trajectories(path)] == ["r1"]
    assert list(ids_done(path)) == ["r1"]
    with TrajectoryWriter(path) as writer:
        writer.write(trajectory(id="r3"))
    assert [t.id for t in read_trajectories(path)] == ["r1", "r3"]


@pytest.mark.parametrize(
    ("line", "fault"),
    [
        (b"{broken}", ":2: not JSON: "),
        (b"[1]", ":2: not a trajectory; got no JSON object"),
        (b'{"format": "other/v1"}', ":2: not a trajectory; got format 'other/v1'"),
        (
            b'{"format": "harnessctl/trajectory.v9"}',
            ":2: a trajectory of format harnessctl/trajectory.v9; this version reads harnessctl/trajectory.v1",
        ),
        (b'{"id": "r2"}', ":2: not a trajectory: Object missing required field `bundle`"),
        (b'{"id": "r2", "stop": "bored"}', ":2: not a trajectory: "),
    ],
)
def test_faults_name_path_line_and_cause(tmp_path: Path, line: bytes, fault: str) -> None:
    path = tmp_path / "t.jsonl"
    path.write_bytes(encode_trajectory(trajectory()) + b"\n" + line + b"\n")
    with pytest.raises(RecordError) as caught:
        list(read_trajectories(path))
    assert caught.value.message.startswith(f"{path}{fault}")


@given(st.text(st.characters(codec=None), max_size=20))
def test_any_text_can_be_written(text: str) -> None:
    line = encode_trajectory(
        trajectory(reply=text, messages=[{"role": "assistant", "content": text}], context={text: text})
    )
    document = orjson.loads(line)
    assert document["reply"] == document["messages"][0]["content"]
    if not any("\ud800" <= char <= "\udfff" for char in text):
        assert document["reply"] == text and document["context"] == {text: text}
    assert b"\n" not in line


def test_old_trajectories_are_dropped_and_the_others_keep_their_bytes(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    with TrajectoryWriter(path) as writer:
        for month in (1, 2, 3):
            writer.write(trajectory(id=str(month), started=f"2026-0{month}-01T00:00:00+00:00"))
    last = path.read_bytes().splitlines(keepends=True)[1:]
    assert drop_before(path, datetime(2026, 1, 15, tzinfo=UTC)) == 1
    assert path.read_bytes().splitlines(keepends=True) == last
    assert drop_before(path, datetime(2026, 1, 15, tzinfo=UTC)) == 0
    path.write_bytes(b"".join(last) + b"{}\n")
    with pytest.raises(RecordError):
        drop_before(path, datetime(2027, 1, 1, tzinfo=UTC))
    assert path.read_bytes() == b"".join(last) + b"{}\n"


@pytest.fixture
def small_files() -> Iterator[None]:
    """No file of this process may grow past 4,000 bytes, as on a full disk."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4000, hard))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    signal.signal(signal.SIGXFSZ, handler)


@pytest.mark.usefixtures("small_files")
def test_a_full_disk_is_a_clear_error_and_leaves_whole_lines(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    with TrajectoryWriter(path) as writer:
        written = 0
        with pytest.raises(StorageError, match=r"cannot write .*t\.jsonl: "):
            for number in range(100):
                writer.write(trajectory(id=str(number)))
                written += 1
    assert [t.id for t in read_trajectories(path)] == [str(n) for n in range(written)]
    assert path.read_bytes().endswith(b"\n") and written > 1
