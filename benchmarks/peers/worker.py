"""One runtime in a process of its own, measured when it is told to.

    python -m benchmarks.peers.worker MODULE BASE_URL --record FILE [--stream] [--cpu N] [--count N]

With `--count` it carries that many requests out and ends. Otherwise it prints a line of JSON when it is ready; then each line `{"concurrency": n, "seconds": s}` on standard input is answered
with one line: requests done, client CPU and wall seconds spent, and the peak of resident memory so far.
"""

from __future__ import annotations

import argparse
import asyncio
import importlib
import json
import os
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from benchmarks import workload


def peak_rss_mb() -> float:
    """The process's own peak, which `ru_maxrss` would mix with its parent's."""
    status = Path("/proc/self/status").read_text()
    return int(status.split("VmHWM:")[1].split()[0]) / 1024


async def measure(request: Callable[[], Awaitable[str]], concurrency: int, seconds: float) -> dict[str, Any]:
    done = 0
    end = time.perf_counter() + seconds

    async def repeat() -> None:
        nonlocal done
        while time.perf_counter() < end:
            reply = await request()
            if workload.EXPECTED not in reply:
                raise RuntimeError(f"unexpected reply: {reply!r}")
            done += 1

    wall, cpu = time.perf_counter(), time.process_time()
    await asyncio.gather(*(repeat() for _ in range(concurrency)))
    return {
        "requests": done,
        "cpu_s": time.process_time() - cpu,
        "wall_s": time.perf_counter() - wall,
        "peak_rss_mb": peak_rss_mb(),
    }


async def serve(module: str, base_url: str, record: Path, *, stream: bool, count: int | None) -> None:
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)  # whatever a library prints is not an answer
    request = await importlib.import_module(f"benchmarks.peers.{module}").setup(base_url, stream=stream, record=record)
    if count is not None:
        for _ in range(count):
            await request()
        return
    await request()
    answers.write(json.dumps({"ready": module, "peak_rss_mb": peak_rss_mb()}) + "\n")
    loop = asyncio.get_running_loop()
    while line := await loop.run_in_executor(None, sys.stdin.readline):
        order = json.loads(line)
        answers.write(json.dumps(await measure(request, order["concurrency"], order["seconds"])) + "\n")
        if record.exists():
            os.truncate(record, 0)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("module")
    parser.add_argument("base_url")
    parser.add_argument("--record", type=Path, required=True)
    parser.add_argument("--stream", action="store_true")
    parser.add_argument("--cpu", type=int)
    parser.add_argument("--count", type=int)
    given = parser.parse_args()
    if given.cpu is not None:
        os.sched_setaffinity(0, {given.cpu})
    asyncio.run(serve(given.module, given.base_url, given.record, stream=given.stream, count=given.count))


if __name__ == "__main__":
    main()
