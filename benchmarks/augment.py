"""What one augmented variant costs, and that memory does not grow with their number.

    variant     one variant, its record and digest, with laws a to e and h checked (f and g are of many variants)
    raw         `copy.deepcopy` of the bundle file as orjson reads it
    struct      `copy.deepcopy` of the bundle as harnessctl reads it

    python benchmarks/augment.py [--rounds 9] [--variants 60] [--memory 10000] [--retail DB] [--json]

Each harness is varied within the shipped envelopes `paper` and `wide`. The three are run in turn, round after round, so
that a busy machine slows all of them; CPU time, of which the medians are compared. Exit code 1 when a variant of the
shipped host costs more than 3 times the deep copy of its parsed bundle (either), or when peak memory goes on growing from
1,000 variants to 10,000. The tau2 retail project takes part with `--retail`, the path of tau2's db.json.
"""

from __future__ import annotations

import argparse
import copy
import json
import multiprocessing
import resource
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson

from harnessctl.augment.envelopes import load_envelope
from harnessctl.augment.rewriters import open_rewriter
from harnessctl.augment.variants import Augmenter
from harnessctl.bundle import read_bundle
from harnessctl.compile import compile_project

REPOSITORY = Path(__file__).resolve().parents[1]
ENVELOPES = ("paper", "wide")
#: The harness that the bound is for, and the bound.
HOST, BOUND = "live-stream", 3.0
#: MB by which peak memory may grow from a tenth of the variants to all: bounded caches fill in the first few thousand.
#: A record alone takes some 10 KB, so that keeping one of ten would show.
GROWTH_MB = 6.0


def bundle_files(folder: Path, retail_db: Path | None) -> dict[str, Path]:
    """The bundle files of the shipped harnesses, and of tau2 retail where its database is given."""
    shipped = folder / "shipped"
    for name in ("manifests", "skills"):
        shutil.copytree(REPOSITORY / name, shipped / name)
    roots = [shipped]
    if retail_db is not None:
        roots.append(folder / "retail")
        ignore = shutil.ignore_patterns("build")
        shutil.copytree(REPOSITORY / "tests" / "retail" / "project", roots[-1], ignore=ignore)
        shutil.copy(retail_db, roots[-1] / "manifests" / "worlds" / "db.json")
    found = [bundle.path for root in roots for bundle in compile_project(root).bundles]
    return {read_bundle(path).name: path for path in found}


def cpu_ms(work: Callable[[int], Any], times: int, first: int) -> float:
    """CPU milliseconds of one piece of work, over `times` of them numbered from `first`."""
    begun = time.process_time()
    for number in range(first, first + times):
        work(number)
    return (time.process_time() - begun) * 1000 / times


def measure(path: Path, envelope: str, rounds: int, variants: int) -> dict[str, float]:
    """Medians in milliseconds, and their ratios."""
    bundle, raw = read_bundle(path), orjson.loads(path.read_bytes())
    augmenter = Augmenter(bundle, load_envelope(REPOSITORY, envelope), rewriter=open_rewriter("rules"))
    cases: dict[str, tuple[Callable[[int], Any], int]] = {
        "variant": (lambda number: augmenter.variant(seed=1, number=number), variants),
        "raw": (lambda _: copy.deepcopy(raw), max(variants // 3, 1)),
        "struct": (lambda _: copy.deepcopy(bundle), max(variants // 3, 1)),
    }
    for number in range(3 * variants):  # wordings are worked out once
        augmenter.variant(seed=2, number=number)
    times: dict[str, list[float]] = {name: [] for name in cases}
    for number in range(rounds):
        for name, (work, count) in cases.items():
            times[name].append(cpu_ms(work, count, number * variants))
    out = {name: statistics.median(all_) for name, all_ in times.items()}
    for other in ("raw", "struct"):
        out[f"variant / {other}"] = statistics.median(
            ours / theirs for ours, theirs in zip(times["variant"], times[other], strict=True)
        )
    return out


def peak_mb(path: Path, envelope: str, variants: int) -> float:
    """Peak memory, in MB, of a process that makes so many variants and keeps none."""
    augmenter = Augmenter(read_bundle(path), load_envelope(REPOSITORY, envelope), rewriter=open_rewriter("rules"))
    for number in range(variants):
        augmenter.variant(seed=1, number=number)
    return _peak_mb()


def _peak_mb() -> float:
    """Peak resident memory of this process. On Linux `ru_maxrss` is no less than what the parent process had at the fork,
    so that the kernel is asked for this program's own."""
    status = Path("/proc/self/status")
    if status.exists():
        line = next(line for line in status.read_text().splitlines() if line.startswith("VmHWM:"))
        return int(line.split()[1]) / 1024
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (1024 * 1024 if sys.platform == "darwin" else 1024)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--variants", type=int, default=60, help="in each round")
    parser.add_argument("--memory", type=int, default=10_000, help="variants for peak memory; 0 leaves it out")
    parser.add_argument("--retail", type=Path, help="tau2's retail db.json")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    times: dict[str, dict[str, float]] = {}
    memory: dict[str, list[float]] = {}
    with tempfile.TemporaryDirectory() as folder:
        files = bundle_files(Path(folder), options.retail)
        for name, path in files.items():
            for envelope in ENVELOPES:
                times[f"{name} {envelope}"] = measure(path, envelope, options.rounds, options.variants)
        if options.memory:
            with multiprocessing.get_context("spawn").Pool(1, maxtasksperchild=1) as pool:
                for name, path in files.items():
                    numbers = (max(options.memory // 10, 1), options.memory)
                    memory[name] = [pool.apply(peak_mb, (path, "wide", number)) for number in numbers]
    ratios = ("variant / raw", "variant / struct")
    missed = [
        f"{case}: {ratio} is {took[ratio]:.2f}, at most {BOUND:g}"
        for case, took in times.items()
        for ratio in ratios
        if case.startswith(HOST) and took[ratio] > BOUND
    ]
    missed += [
        f"{name}: {last:.0f} MB after {options.memory} variants, {first:.0f} MB after a tenth of them"
        for name, (first, last) in memory.items()
        if last - first > GROWTH_MB
    ]
    if options.json:
        print(json.dumps({"cpu_ms": times, "peak_mb": memory, "missed": missed}))
    else:
        _print(times, memory, options.memory)
        print(*(missed or ["every bound holds"]), sep="\n")
    raise SystemExit(1 if missed else 0)


def _print(times: dict[str, dict[str, float]], memory: dict[str, list[float]], variants: int) -> None:
    print(f"{'CPU ms, medians':24}{'variant':>9}{'raw':>9}{'struct':>9}{'/ raw':>9}{'/ struct':>9}")
    for case, took in times.items():
        print(f"{case:24}" + "".join(f"{value:9.2f}" for value in took.values()))
    if memory:
        print(f"{'peak MB after variants':24}{variants // 10:9}{variants:9}")
    for name, peaks in memory.items():
        print(f"{name:24}" + "".join(f"{peak:9.1f}" for peak in peaks))


if __name__ == "__main__":
    main()
