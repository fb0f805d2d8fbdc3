"""One complete agent request through many runtimes, side by side in one run: client CPU and peak memory.

    python benchmarks/requests.py [--peers-python PYTHON] [--only NAME,...] [--starts 6] [--rounds 12] [--seconds 0.1]
                                  [--concurrency 1,8,64] [--json FILE]

A request is three model calls against a zero-latency server (`mock_server.py`) and two tool calls; see `workload.py`.
Every runtime is a process of its own on one core, the server is on another. The runtimes are asked in turn, the order
turned by one each round, so that a busy machine disturbs all alike. All processes are started several times, because
one process can be a tenth slower than the next of the same program for as long as it lives (hash seed, addresses). The
tables hold medians over all rounds, of times and of the ratios within each round: many short rounds, because what
disturbs two neighbours is the same for a tenth of a second and not for two. Peers, whose ratios are large, take part in
one round of each start. Trust CPU per request and the ratios; wall times depend on who else uses the machine. The peers
live in an environment of their own (`--peers-python`, see README.md); without it their rows say so. Exit code 1 when a
bound does not hold.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from dataclasses import asdict, dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
QUIET = {
    "OPENAI_API_KEY": "x",
    "OPENAI_AGENTS_DISABLE_TRACING": "1",
    "LANGSMITH_TRACING": "false",
    "LANGCHAIN_TRACING_V2": "false",
    "OTEL_SDK_DISABLED": "true",
    "DO_NOT_TRACK": "1",
    "NO_PROXY": "127.0.0.1",
}


@dataclass(frozen=True)
class Runtime:
    """A row of the table: which module carries the request out, and in whose environment."""

    name: str
    module: str
    stream: bool = False
    is_peer: bool = False


RUNTIMES = [
    Runtime("harnessctl", "bundle_runtime"),
    Runtime("aiohttp_full", "aiohttp_full"),
    Runtime("aiohttp_full+timeouts", "aiohttp_timeouts"),
    Runtime("harnessctl+stream", "bundle_runtime", stream=True),
    Runtime("aiohttp_full+stream", "aiohttp_full", stream=True),
    Runtime("raw aiohttp", "aiohttp_raw"),
    Runtime("openai-agents", "openai_agents", is_peer=True),
    Runtime("pydantic-ai", "pydantic_ai", is_peer=True),
    Runtime("langgraph", "langgraph", is_peer=True),
]


@dataclass
class Measured:
    """What was measured of a runtime: CPU ms a request and requests a second by concurrency and round."""

    cpu_ms: dict[int, dict[int, float]] = field(default_factory=dict)
    rate: dict[int, dict[int, float]] = field(default_factory=dict)
    peak_rss_mb: float = 0.0


@dataclass
class Worker:
    """A runtime's process."""

    runtime: Runtime
    process: subprocess.Popen[str]

    def measure(self, concurrency: int, seconds: float, into: Measured | None, number: int) -> None:
        """Keep what round `number` costs in `into`, if it counts."""
        assert self.process.stdin is not None and self.process.stdout is not None
        self.process.stdin.write(json.dumps({"concurrency": concurrency, "seconds": seconds}) + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        if not line:
            raise SystemExit(f"{self.runtime.name} died while it was measured; its messages are above")
        found = json.loads(line)
        if into is not None:
            into.peak_rss_mb = max(into.peak_rss_mb, found["peak_rss_mb"])
            into.cpu_ms.setdefault(concurrency, {})[number] = 1000 * found["cpu_s"] / found["requests"]
            into.rate.setdefault(concurrency, {})[number] = found["requests"] / found["wall_s"]


def start_server(cpu: int) -> tuple[subprocess.Popen[str], str]:
    """The server's process and its base URL."""
    command = [sys.executable, "-m", "benchmarks.mock_server", "0", str(cpu)]
    process = subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    return process, f"http://127.0.0.1:{process.stdout.readline().split()[1]}/v1"


def start_worker(runtime: Runtime, python: str, base_url: str, folder: Path, cpu: int) -> Worker | str:
    """The runtime's process when it is ready, or why there is none."""
    record = folder / f"{runtime.name.replace(' ', '-')}.jsonl"
    command = [python, "-m", "benchmarks.peers.worker", runtime.module, base_url, "--record", str(record)]
    command += ["--cpu", str(cpu)] + ["--stream"] * runtime.stream
    log = folder / f"{runtime.name.replace(' ', '-')}.log"
    with log.open("w") as errors:
        process = subprocess.Popen(
            command,
            cwd=ROOT,
            env=os.environ | QUIET,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors if runtime.is_peer else None,
            text=True,
        )
    assert process.stdout is not None
    if not process.stdout.readline():
        process.wait()
        last = log.read_text().strip().splitlines()
        return last[-1] if last else f"exit code {process.returncode}"
    return Worker(runtime, process)


def start_workers(
    given: argparse.Namespace, base_url: str, folder: Path, cpu: int
) -> tuple[list[Worker], dict[str, str]]:
    """The runtimes that run, and why the others do not."""
    workers: list[Worker] = []
    skipped: dict[str, str] = {}
    for runtime in RUNTIMES:
        if given.only and runtime.name not in given.only:
            continue
        if runtime.is_peer and given.peers_python is None:
            skipped[runtime.name] = "no --peers-python was given"
            continue
        python = given.peers_python if runtime.is_peer else sys.executable
        started = start_worker(runtime, python, base_url, folder, cpu)
        if isinstance(started, Worker):
            workers.append(started)
        else:
            skipped[runtime.name] = started
    return workers, skipped


@dataclass(frozen=True)
class Bound:
    """What is claimed: CPU (or peak memory) of `name` over that of `other`, at most or at least `value`."""

    name: str
    other: str
    value: float
    at_least: bool = False
    memory: bool = False

    def ratios(self, measured: dict[str, Measured], concurrency: list[int]) -> list[float]:
        """The median ratio at each concurrency, over the rounds of both; one number for memory."""
        one, other = measured[self.name], measured[self.other]
        if self.memory:
            return [one.peak_rss_mb / other.peak_rss_mb]
        return [
            statistics.median(one.cpu_ms[n][i] / other.cpu_ms[n][i] for i in one.cpu_ms[n].keys() & other.cpu_ms[n])
            for n in concurrency
        ]

    def holds(self, ratios: list[float]) -> bool:
        return all(ratio >= self.value if self.at_least else ratio <= self.value for ratio in ratios)

    def __str__(self) -> str:
        return f"{'at least' if self.at_least else 'at most'} {self.value:g}"


BOUNDS = [
    Bound("harnessctl", "aiohttp_full", 1.3),
    Bound("harnessctl+stream", "aiohttp_full+stream", 1.3),
    Bound("openai-agents", "harnessctl", 15, at_least=True),
    Bound("pydantic-ai", "harnessctl", 15, at_least=True),
    Bound("langgraph", "harnessctl", 15, at_least=True),
    Bound("harnessctl", "raw aiohttp", 2, memory=True),
    Bound("harnessctl+stream", "raw aiohttp", 2, memory=True),
]


def times_table(measured: dict[str, Measured], skipped: dict[str, str], concurrency: list[int]) -> str:
    """Median CPU and requests per second at each concurrency, and peak memory."""
    lines = [f"| runtime | {' | '.join(f'CPU ms at {n} | requests/s' for n in concurrency)} | peak MB |"]
    lines.append("|---" * (2 * len(concurrency) + 2) + "|")
    for name, found in measured.items():
        cells = [name]
        for n in concurrency:
            cells += [
                f"{statistics.median(found.cpu_ms[n].values()):.2f}",
                f"{statistics.median(found.rate[n].values()):.0f}",
            ]
        lines.append(f"| {' | '.join([*cells, f'{found.peak_rss_mb:.0f}'])} |")
    lines += [f"| {name} | skipped: {reason} |" for name, reason in skipped.items()]
    return "\n".join(lines)


def bounds_table(measured: dict[str, Measured], concurrency: list[int]) -> tuple[str, bool]:
    """The ratios beside what is claimed of them, and whether every claim that could be tested holds."""
    lines = [f"| ratio | {' | '.join(f'at {n}' for n in concurrency)} | bound | |"]
    lines.append("|---" * (len(concurrency) + 3) + "|")
    held = True
    for bound in BOUNDS:
        if bound.name not in measured or bound.other not in measured:
            continue
        ratios = bound.ratios(measured, concurrency)
        cells = [f"{'peak memory' if bound.memory else 'CPU'}, {bound.name} / {bound.other}"]
        cells += [f"{ratio:.2f}" for ratio in ratios] + [""] * (len(concurrency) - len(ratios))
        lines.append(f"| {' | '.join([*cells, str(bound), 'holds' if bound.holds(ratios) else 'DOES NOT HOLD'])} |")
        held = held and bound.holds(ratios)
    return "\n".join(lines), held


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--peers-python", help="interpreter of the environment that holds the peers")
    parser.add_argument("--only", type=lambda text: text.split(","), help="names of rows, separated by commas")
    parser.add_argument("--starts", type=int, default=6, help="how often every process is started")
    parser.add_argument("--rounds", type=int, default=12, help="rounds per start")
    parser.add_argument("--seconds", type=float, default=0.1)
    parser.add_argument("--concurrency", type=lambda text: [int(n) for n in text.split(",")], default=[1, 8, 64])
    parser.add_argument("--json", type=Path, help="write everything that was measured to this file")
    return parser.parse_args()


def measure(workers: list[Worker], given: argparse.Namespace, into: dict[str, Measured], start: int) -> None:
    """The rounds of one start, after one that does not count; peers take part in the first that does.

    At one concurrency the runtimes follow upon one another, so that a ratio compares neighbours.
    """
    for turn in range(given.rounds + 1):
        number = start * given.rounds + turn
        begin = number % len(workers)
        for n in given.concurrency:
            for worker in workers[begin:] + workers[:begin]:
                if turn <= 1 or not worker.runtime.is_peer:
                    worker.measure(n, given.seconds, into[worker.runtime.name] if turn else None, number)


def main() -> int:
    given = arguments()
    cpus = sorted(os.sched_getaffinity(0))
    measured: dict[str, Measured] = {}
    skipped: dict[str, str] = {}
    for start in range(given.starts):
        with tempfile.TemporaryDirectory(prefix="harnessctl-requests-") as folder:
            server, base_url = start_server(cpus[0])
            workers, skipped = start_workers(given, base_url, Path(folder), cpus[-1])
            for worker in workers:
                measured.setdefault(worker.runtime.name, Measured())
            try:
                measure(workers, given, measured, start)
            finally:
                for process in [worker.process for worker in workers] + [server]:
                    process.kill()
                    process.wait()
        print(f"start {start + 1} of {given.starts} measured", file=sys.stderr, flush=True)
    bounds, held = bounds_table(measured, given.concurrency)
    print(times_table(measured, skipped, given.concurrency), bounds, sep="\n\n")
    if given.json:
        given.json.write_text(json.dumps({name: asdict(found) for name, found in measured.items()}, indent=1))
    return 0 if held else 1


if __name__ == "__main__":
    sys.exit(main())
