"""What a paired bootstrap costs beside scipy's: 978 items, two systems, 10,000 resamples, percentile intervals.

    ours     harnessctl.evaluate.statistics.bootstrap.interval
    scipy    scipy.stats.bootstrap(method="percentile", paired=True, vectorized=True)

    python benchmarks/bootstrap.py [--items 978] [--rounds 7] [--json]

CPU time of the process, the two in turn, round after round; medians. Both are called once before, so that neither
pays for its imports; `import` is what loading each costs a new process.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import time
from collections.abc import Callable

import numpy as np
from scipy import stats

from harnessctl.evaluate.statistics.bootstrap import RESAMPLES, interval

IMPORTS = {"ours": "harnessctl.evaluate.statistics.bootstrap, numpy", "scipy": "scipy.stats"}


def cpu_of(call: Callable[[], object]) -> float:
    """Seconds of CPU that a call takes."""
    began = time.process_time()
    call()
    return time.process_time() - began


def import_time(names: str) -> float:
    """Seconds of CPU that a new process takes to import, over those of one that imports nothing."""
    code = "import time; began = time.process_time(); import {}; print(time.process_time() - began)"
    done = subprocess.run([sys.executable, "-c", code.format(names)], capture_output=True, text=True, check=True)
    return float(done.stdout)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--items", type=int, default=978)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    generator = np.random.default_rng(0)
    a, b = (generator.choice([0.0, 0.25, 0.5, 0.75, 1.0], size=given.items) for _ in range(2))
    pairs = list(zip(a.tolist(), b.tolist(), strict=True))

    def ours() -> object:
        return interval([y - x for x, y in pairs], seed=0)

    def scipy() -> object:
        return stats.bootstrap(
            (a, b),
            lambda x, y, axis: y.mean(axis=axis) - x.mean(axis=axis),
            paired=True,
            vectorized=True,
            method="percentile",
            n_resamples=RESAMPLES,
            rng=np.random.default_rng(0),
        )

    calls = {"ours": ours, "scipy": scipy}
    times: dict[str, list[float]] = {name: [] for name in calls}
    for call in calls.values():
        call()
    for _ in range(given.rounds):
        for name, call in calls.items():
            times[name].append(cpu_of(call))
    found = {name: statistics.median(values) for name, values in times.items()}
    loads = {name: statistics.median(import_time(names) for _ in range(3)) for name, names in IMPORTS.items()}
    ratio = found["ours"] / found["scipy"]
    if given.json:
        print(json.dumps({"seconds": found, "ratio": ratio, "import": loads}))
        return
    for name, seconds in found.items():
        print(f"{name:6} {1000 * seconds:8.1f} ms   import {1000 * loads[name]:6.0f} ms")
    print(f"ours / scipy {ratio:.2f}")


if __name__ == "__main__":
    main()
