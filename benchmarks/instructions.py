"""Instructions per agent request, beside the hand-written loop: the ratio of `requests.py` where the machine is busy.

    python benchmarks/instructions.py [--only NAME,...] [--requests 160]

CPU time depends on who else uses the caches and the core; the number of instructions does not. Each runtime carries the
request out in a process under valgrind's cachegrind (which must be installed), once 40 times and once `--requests`
times more; the difference is what the requests cost, start-up aside. System calls are not counted, nor is what waiting
for memory costs: where the two disagree, the CPU time of a quiet machine is the truth.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path[0] = str(Path(__file__).resolve().parents[1])

from benchmarks.requests import QUIET, ROOT, RUNTIMES, Runtime, start_server  # noqa: E402 - the path comes first

WARM_UP = 40
#: Raw aiohttp and the peers are left out: their instructions are of another kind (json's C loops run three times as fast).
MODULES = ("bundle_runtime", "aiohttp_full", "aiohttp_timeouts")


def instructions(runtime: Runtime, base_url: str, count: int) -> int:
    """Instructions of a process that starts and carries `count` requests out."""
    with tempfile.TemporaryDirectory(prefix="harnessctl-instructions-") as folder:
        command = ["valgrind", "--tool=cachegrind", "--cache-sim=no", "--cachegrind-out-file=/dev/null", sys.executable]
        command += ["-m", "benchmarks.peers.worker", runtime.module, base_url, "--record", f"{folder}/record.jsonl"]
        command += ["--count", str(count)] + ["--stream"] * runtime.stream
        done = subprocess.run(
            command,
            cwd=ROOT,
            env=os.environ | QUIET | {"PYTHONHASHSEED": "0"},
            capture_output=True,
            text=True,
            check=False,
        )
    found = re.search(r"I\s+refs:\s+([\d,]+)", done.stderr)
    if done.returncode or found is None:
        raise SystemExit(f"{runtime.name} failed under valgrind:\n{done.stderr}")
    return int(found[1].replace(",", ""))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", type=lambda text: text.split(","), help="names of rows, separated by commas")
    parser.add_argument("--requests", type=int, default=160)
    given = parser.parse_args()
    if shutil.which("valgrind") is None:
        print("skipped: valgrind is not installed")
        return 0
    server, base_url = start_server(min(os.sched_getaffinity(0)))
    counted: dict[str, float] = {}
    try:
        for runtime in RUNTIMES:
            if runtime.module not in MODULES or (given.only and runtime.name not in given.only):
                continue
            few, many = (instructions(runtime, base_url, WARM_UP + more) for more in (0, given.requests))
            counted[runtime.name] = (many - few) / given.requests
            print(f"{runtime.name} counted", file=sys.stderr, flush=True)
    finally:
        server.kill()
        server.wait()
    print("| runtime | thousand instructions a request | x aiohttp_full |\n|---|---|---|")
    for name, each in counted.items():
        full = counted.get("aiohttp_full+stream" if name.endswith("+stream") else "aiohttp_full")
        print(f"| {name} | {each / 1000:.0f} | {f'{each / full:.2f}' if full else '-'} |")
    return 0


if __name__ == "__main__":
    sys.exit(main())
