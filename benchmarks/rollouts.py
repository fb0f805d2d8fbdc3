"""What a whole oracle rollout costs: sandbox, agent, tools on SQLite, hooks, scores, and the lines on disk.

One item of the suite live-qa, played by the oracle: three model calls (load_skill, get_product, the reply), two tool runs,
the hooks of the shipped host, a private copy of the world, the four scores, five JSON Lines files appended to. Timed side
by side in one process, in turn, CPU per item, against the bare loop with two JSON Schema checks of `inprocess.py`:

    checked       the bare loop with two `jsonschema` checks
    rollout       an item of each shipped host, from the request to the lines on disk; drawn beforehand, as the peers' are
    variant       the same, with a new variant of the harness made, checked and opened for each item
    verifiers     verifiers' ToolEnv on the request of `inprocess.py`, saving nothing (with --peers-python)

    python -m benchmarks.rollouts [--seconds 2] [--rounds 5] [--json] [--peers-python PYTHON] [--profile NAME]

With --workers N (default 2) the throughput of `harnessctl eval live-qa` is taken with one process and with N, over --items
items each; the start of the processes is not counted. Beside it, what N plain loops get of the machine, of which a guest
may have less than N cores.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import AsyncExitStack, ExitStack
from itertools import islice
from pathlib import Path
from typing import Any

# In place of this folder, in which `requests.py` would hide the library of that name.
sys.path[0] = str(Path(__file__).resolve().parents[1])

from benchmarks import inprocess  # noqa: E402 - found by the line above

ROOT = Path(__file__).resolve().parents[1]
HARNESSES = ("mini", "live-stream")
#: Different items, over and over.
ITEMS = 400
SUITES = {"rollout": "live-qa", "variant": "variant-qa"}
#: Against the bare loop with checks, against verifiers without saving, and two processes against one where the machine
#: lets two loops run at twice the speed of one; where it lets them run at less, the same share of that.
MOST_CHECKED, MOST_VERIFIERS, LEAST_SPEEDUP = 20.0, 0.5, 1.7

One = Callable[[], Awaitable[str]]


def job_of(harness: str, **keys: Any) -> Any:
    """An evaluation of one shipped host by the oracle, without faults."""
    from harnessctl.compile.revision import compiled
    from harnessctl.evaluate.config import EvalConfig
    from harnessctl.evaluate.job import Job
    from harnessctl.policies import ModelConfig, SamplingConfig

    config = EvalConfig(
        suite=keys.pop("suite", "live-qa"), model=ModelConfig(name=""), sampling=SamplingConfig(), **keys
    )
    for kind in ("timeout", "malformed", "denied", "stale"):
        setattr(config.faults, kind, 0.0)
    return Job(ROOT, compiled(ROOT, harness), config)


def three_calls(setting: Any) -> Iterator[Any]:
    """Items that take three model calls and two tool runs, over and over."""
    found = []
    for number in range(5000):
        scenario = setting.scenario(number)
        gold = scenario.gold
        if len(gold.skills) == len(gold.calls) == 1 and not gold.prelude and gold.stop == "replied":
            found.append(number)
        if len(found) == ITEMS:
            break
    if not found:
        raise SystemExit("no scenario takes three calls")
    while True:
        yield from found


def rollout(stack: ExitStack, closing: AsyncExitStack, harness: str, suite: str) -> One:
    """Carry out one item after the other, their lines written."""
    from harnessctl.evaluate.files import EvalFiles

    job = job_of(harness, suite=suite)
    setting = stack.enter_context(job.setting())
    rollouts = job.rollouts(setting)
    closing.push_async_callback(rollouts.aclose)
    files = stack.enter_context(EvalFiles(Path(stack.enter_context(tempfile.TemporaryDirectory()))))
    numbers = three_calls(setting)
    drawn = {n: rollouts.item(n) for n in islice(numbers, ITEMS)} if suite == "live-qa" else {}

    async def one() -> str:
        number = next(numbers)
        outcome = await rollouts.carry_out(drawn.get(number) or rollouts.item(number))
        files.write(outcome)
        assert outcome.stop == "replied" and outcome.average == 1, outcome.lines["scores"]
        return inprocess.FINAL

    return one


def speedup(harness: str, workers: int, items: int, rounds: int) -> dict[str, list[float]]:
    """Items a second with one process and with several, in turn."""
    from harnessctl.evaluate.workers import outcomes

    found: dict[str, list[float]] = {"1": [], str(workers): []}
    for _ in range(rounds):
        for count in (1, workers):
            job = job_of(harness, workers=count)
            with job.setting() as setting:
                times = [time.perf_counter() for _ in outcomes(job, range(items), setting)]
            skipped = items // 5
            found[str(count)].append((len(times) - 1 - skipped) / (times[-1] - times[skipped]))
    return found


def machine(workers: int) -> float:
    """How many times the work of one process several do here in the same time: a loop that needs no memory."""
    loop = "import time; t = time.perf_counter(); sum(i * i for i in range(8_000_000)); print(time.perf_counter() - t)"

    def seconds(count: int) -> float:
        command = [sys.executable, "-c", loop]
        running = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(count)]
        return statistics.mean(float(process.communicate()[0]) for process in running)

    return statistics.median(workers * seconds(1) / seconds(workers) for _ in range(5))


async def timed(row: str, seconds: float, rounds: int) -> dict[str, list[float]]:
    """CPU milliseconds of one row and of `checked`, in turn, of everything in this process."""
    from harnessctl.evaluate.settled import settled

    kind, _, harness = row.partition(" ")
    with ExitStack() as stack:
        async with AsyncExitStack() as closing:
            found: dict[str, One] = {"checked": inprocess.checked()}
            found[row] = rollout(stack, closing, harness, SUITES[kind])
            for _ in range(ITEMS):  # every item once: what is kept by content is kept from here on
                await found[row]()
            stack.enter_context(settled())  # as every worker of an evaluation is
            return await inprocess.measure(found, seconds, rounds)


def apart(row: str, options: argparse.Namespace) -> dict[str, list[float]]:
    """`timed` in a process of its own, as an evaluation is of one harness."""
    command = [sys.executable, "-m", "benchmarks.rollouts", "--row", row]
    command += ["--seconds", str(options.seconds), "--rounds", str(options.rounds)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
    if done.returncode:
        raise SystemExit(f"{row} cannot be timed: {done.stderr.strip()}")
    return json.loads(done.stdout.splitlines()[-1])


async def profile(name: str, key: str = "tottime", lines: int = 45) -> None:
    """Print where the time of `rollout mini`, `variant live-stream`, ... goes."""
    import cProfile
    import pstats

    kind, _, harness = name.partition(" ")
    profiler = cProfile.Profile()
    with ExitStack() as stack:
        async with AsyncExitStack() as closing:
            one = rollout(stack, closing, harness, SUITES[kind])
            for _ in range(50):
                await one()
            profiler.enable()
            for _ in range(300):
                await one()
            profiler.disable()
    pstats.Stats(profiler).sort_stats(key).print_stats(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=2.0, help="per runtime")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--items", type=int, default=12000)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--peers-python", help="an interpreter that has verifiers")
    parser.add_argument("--row", help=argparse.SUPPRESS)
    parser.add_argument("--profile", metavar="NAME", help="profile `rollout mini`, `variant live-stream`, ... instead")
    options = parser.parse_args()
    if options.profile:
        asyncio.run(profile(options.profile))
        return
    if options.row:
        print(json.dumps(asyncio.run(timed(options.row, options.seconds, options.rounds))))
        return
    rows = [f"{kind} {harness}" for harness in HARNESSES for kind in SUITES]
    found: dict[str, list[float]] = {"checked": []}
    beside: dict[str, float] = {}
    for row in rows:
        times = apart(row, options)
        found["checked"] += times["checked"]
        found[row] = times[row]
        beside[row] = statistics.median(times["checked"])
    if options.peers_python and (peer := inprocess.peer(options.peers_python, options.seconds, options.rounds)):
        found["verifiers"] = peer
    gc.collect()
    rates = {h: speedup(h, options.workers, options.items, 3) for h in HARNESSES} if options.workers > 1 else {}
    given = machine(options.workers) if rates else 1.0
    raise SystemExit(0 if report(found, beside, rates, given / options.workers, as_json=options.json) else 1)


def report(
    found: dict[str, list[float]],
    beside: dict[str, float],
    rates: dict[str, dict[str, list[float]]],
    given: float,
    *,
    as_json: bool,
) -> bool:
    """Print what was measured; `beside` is what `checked` took in the process of a row, `given` the share of its cores
    that the machine gives. Whether the bounds hold, which are those of the small host: three calls and nothing that only
    a large host has."""
    least = LEAST_SPEEDUP * given
    median = {name: statistics.median(times) for name, times in found.items()}
    speedups = {harness: _speedup(by_workers) for harness, by_workers in rates.items()}
    small = "rollout mini"
    held = median[small] / beside[small] <= MOST_CHECKED and all(value >= least for value in speedups.values())
    if "verifiers" in median:
        held = held and median[small] / median["verifiers"] < MOST_VERIFIERS
    if as_json:
        print(json.dumps({"cpu_ms": found, "items_per_s": rates}))
        return held
    print(f"{'':20} {'CPU ms':>8} {'min':>8} {'max':>8} {'x checked':>10} {'x verifiers':>12}")
    for name, times in found.items():
        peer = f"{median[name] / median['verifiers']:12.2f}" if "verifiers" in median else ""
        ratio = median[name] / beside.get(name, median["checked"])
        print(f"{name:20} {median[name]:8.3f} {min(times):8.3f} {max(times):8.3f} {ratio:10.1f} {peer}")
    print(f"{small}: at most {MOST_CHECKED:g} x checked, under {MOST_VERIFIERS:g} x verifiers")
    for harness, by_workers in rates.items():
        one, many = (statistics.median(times) for times in by_workers.values())
        print(
            f"{harness}: {one:.0f} items/s by one process, {many:.0f} by {list(by_workers)[1]}: "
            f"{speedups[harness]:.2f} x (at least {least:.2f})"
        )
    if rates:
        print(
            f"the machine gives {100 * given:.0f}% of its cores to loops side by side: {LEAST_SPEEDUP} x becomes {least:.2f}"
        )
    print("every bound holds" if held else "A BOUND DOES NOT HOLD")
    return held


def _speedup(by_workers: dict[str, list[float]]) -> float:
    """The median of the ratios within each round, so that a machine that grows slower slows both."""
    one, many = by_workers.values()
    return statistics.median(b / a for a, b in zip(one, many, strict=True))


if __name__ == "__main__":
    main()
