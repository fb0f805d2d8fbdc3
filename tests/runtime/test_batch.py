"""Many requests: order within a session, resume, stops, full disks."""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from shop_agent import ToldModel, comment, make_agent, says, shop_bundle

from harnessctl.errors import StorageError
from harnessctl.records.comment import CommentInput
from harnessctl.records.trajectory import Trajectory
from harnessctl.runtime.batch import run_many
from harnessctl.runtime.protocols import ModelReply, ModelRequest
from harnessctl.trajectory import TrajectoryWriter, ids_done, read_trajectories


class Echo(ToldModel):
    """Says what the viewer said, after some turns of the event loop."""

    def __init__(self, turns: int = 1) -> None:
        super().__init__()
        self.turns = turns
        self.running = self.most = 0

    async def complete(self, request: ModelRequest) -> ModelReply:
        self.running += 1
        self.most = max(self.most, self.running)
        for _ in range(self.turns):
            await asyncio.sleep(0)
        self.running -= 1
        return says(request.messages[-1]["content"])


def requests(*texts: str, session: str | None = None) -> list[CommentInput]:
    return [comment(text, id=text, session=session) for text in texts]


def test_requests_run_at_once_within_the_limit(tmp_path: Path) -> None:
    model, done = Echo(), []
    path = tmp_path / "trajectories.jsonl"
    agent = make_agent(shop_bundle(), model)
    with TrajectoryWriter(path) as writer:

        def on_done(trajectory: Trajectory) -> None:
            assert trajectory.id in ids_done(path)  # on disk before anybody hears of it
            done.append(trajectory.id)

        many = run_many(agent, requests(*"abcdefgh"), writer=writer, concurrency=3, on_done=on_done)
        result = asyncio.run(many)
    assert (result.done, result.reused, model.most) == (8, 0, 3)
    assert sorted(done) == list("abcdefgh")
    assert [t.reply for t in read_trajectories(path)] == done


def test_turns_of_a_session_are_in_order_and_hold_up_no_others() -> None:
    model, done = Echo(turns=3), []
    agent = make_agent(shop_bundle(session_keep=["history"]), model)
    given = requests("s1", "s2", "s3", "s4", session="s") + requests("a", "b") + requests("s5", session="s")
    asyncio.run(run_many(agent, given, concurrency=2, on_done=lambda t: done.append((t.id, t.turn))))
    assert [turn for turn in done if turn[0].startswith("s")] == [(f"s{n}", n - 1) for n in range(1, 6)]
    assert [i for i, _ in done].index("a") < 3 and model.most == 2


def test_a_resumed_run_repeats_none(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    for given, expected in (("abc", (3, 0)), ("abcde", (2, 3))):
        agent = make_agent(shop_bundle(), Echo())
        before = ids_done(path)
        with TrajectoryWriter(path) as writer:
            result = asyncio.run(run_many(agent, requests(*given), writer=writer, done_before=before))
        assert (result.done, result.reused) == expected
    assert sorted(t.id for t in read_trajectories(path)) == list("abcde")


def test_the_source_is_read_as_it_is_needed() -> None:
    taken: list[str] = []

    def source() -> Iterator[CommentInput]:
        for text in "abcdef":
            taken.append(text)
            yield comment(text, id=text)

    model = Echo()
    agent = make_agent(shop_bundle(), model)
    seen: list[int] = []
    asyncio.run(run_many(agent, source(), concurrency=2, on_done=lambda t: seen.append(len(taken))))
    assert seen[0] <= 3


def test_a_full_disk_stops_the_run_with_whole_lines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "t.jsonl"
    write, lines = os.write, 0

    def full(fd: int, data: bytes) -> int:
        nonlocal lines
        if b'"harnessctl/trajectory' in data:
            lines += 1
            if lines > 2:
                return write(fd, data[:100])  # no space for more
        return write(fd, data)

    model = Echo()
    agent = make_agent(shop_bundle(), model)
    with TrajectoryWriter(path) as writer:
        monkeypatch.setattr(os, "write", full)
        with pytest.raises(StorageError, match="no space left on device"):
            asyncio.run(run_many(agent, requests(*"abcdefgh"), writer=writer, concurrency=2))
        monkeypatch.undo()
    assert len(list(read_trajectories(path))) == 2
    assert path.read_bytes().endswith(b"\n")


def test_a_cancelled_run_stops_what_is_under_way(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    model = Echo(turns=1_000_000)
    agent = make_agent(shop_bundle(), model)

    async def main() -> None:
        with TrajectoryWriter(path) as writer:
            task = asyncio.create_task(run_many(agent, requests(*"abc"), writer=writer, concurrency=2))
            await asyncio.sleep(0.01)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
        assert len(asyncio.all_tasks()) == 1

    asyncio.run(main())
    assert ids_done(path) == {}


def test_a_failing_listener_ends_the_run() -> None:
    agent = make_agent(shop_bundle(), Echo())

    def fail(trajectory: Trajectory) -> None:
        raise BrokenPipeError("the reader went away")

    with pytest.raises(BrokenPipeError):
        asyncio.run(run_many(agent, requests(*"abc"), concurrency=2, on_done=fail))
    with pytest.raises(ValueError, match="at least 1"):
        asyncio.run(run_many(agent, [], concurrency=0))


PROGRAM = """
import asyncio, sys
from pathlib import Path
sys.path.insert(0, {tests!r})
from shop_agent import comment, make_agent, shop_bundle
from test_batch import Echo
from harnessctl.runtime.batch import run_many
from harnessctl.trajectory import TrajectoryWriter

def source():
    number = 0
    while True:
        yield comment("x" * 2000, id=str(number))
        number += 1

with TrajectoryWriter(Path({path!r})) as writer:
    agent = make_agent(shop_bundle(), Echo())
    def told(trajectory):
        if trajectory.id == "20":
            print("twenty", flush=True)
    asyncio.run(run_many(agent, source(), writer=writer, concurrency=4, on_done=told))
"""


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])
def test_killed_or_interrupted_a_run_leaves_whole_lines_and_can_go_on(tmp_path: Path, how: Any) -> None:
    path = tmp_path / "t.jsonl"
    program = textwrap.dedent(PROGRAM.format(tests=str(Path(__file__).parent), path=str(path)))
    process = subprocess.Popen(
        [sys.executable, "-c", program],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        cwd=Path(__file__).parents[2],
    )
    assert process.stdout is not None
    assert process.stdout.readline() == b"twenty\n"
    process.send_signal(how)
    process.wait()
    process.stdout.close()
    whole = ids_done(path)
    assert len(whole) >= 20
    agent = make_agent(shop_bundle(), Echo())
    with TrajectoryWriter(path) as writer:
        result = asyncio.run(run_many(agent, requests(*whole, "new"), writer=writer, done_before=whole))
    assert (result.done, result.reused) == (1, len(whole))
    ids = [t.id for t in read_trajectories(path)]
    assert len(ids) == len(set(ids)) == len(whole) + 1


def test_several_records_that_cannot_be_written_are_one_error(tmp_path: Path) -> None:
    class Full:
        def write(self, trajectory: Trajectory) -> None:
            raise StorageError("no space left on device")

    complaints: list[dict[str, Any]] = []

    async def main() -> None:
        asyncio.get_running_loop().set_exception_handler(lambda loop, context: complaints.append(context))
        writer: Any = Full()
        with pytest.raises(StorageError, match="no space"):
            await run_many(make_agent(shop_bundle(), Echo()), requests(*"abcdefgh"), writer=writer, concurrency=8)
        gc.collect()

    asyncio.run(main())
    assert complaints == []
