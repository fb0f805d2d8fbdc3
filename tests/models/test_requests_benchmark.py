"""The benchmark of whole requests still carries them out, against an endpoint in a process of its own."""

from __future__ import annotations

import subprocess
import sys


def test_a_request_runs_through_our_runtime_and_the_hand_written_loop(repository):
    given = (
        "--starts 1 --rounds 1 --seconds 0.01 --concurrency 2 --only harnessctl+stream,aiohttp_full+stream,langgraph"
    )
    done = subprocess.run(
        [sys.executable, "benchmarks/requests.py", *given.split()],
        cwd=repository,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    lines = done.stdout.splitlines()
    assert [line.split(" | ")[0] for line in lines[2:4]] == ["| harnessctl+stream", "| aiohttp_full+stream"], (
        done.stderr
    )
    assert "| langgraph | skipped: no --peers-python was given |" in lines
    assert any(line.startswith("| CPU, harnessctl+stream / aiohttp_full+stream | ") for line in lines)
