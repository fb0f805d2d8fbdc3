"""What each flaw of the oracle costs in each dimension: the matrix of docs/evaluation.md, measured.

Each flaw of `harnessctl.simulate.flaws` plays the same items as the oracle itself, without injected faults; a cell is the mean
over all items, and `*` marks the dimensions that the flaw says it lowers.

    python -m benchmarks.flaws [--harness live-stream] [--n 978] [--seed 0] [--workers 2] [--json]
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from harnessctl.bundle.files import Bundle
from harnessctl.compile.revision import compiled
from harnessctl.evaluate.config import EvalConfig, FaultsConfig
from harnessctl.evaluate.job import Job
from harnessctl.evaluate.metrics import COLUMNS
from harnessctl.evaluate.report import Row, percent, row_of
from harnessctl.evaluate.workers import outcomes
from harnessctl.policies import ModelConfig, SamplingConfig
from harnessctl.records.score import DIMENSIONS, Score
from harnessctl.simulate.flaws import flaws

ROOT = Path(__file__).resolve().parents[1]
NO_FAULTS = FaultsConfig(timeout=0.0, malformed=0.0, denied=0.0, stale=0.0)


def scores(root: Path, bundle: Bundle, **keys: Any) -> list[Score]:
    """The scores of an evaluation by the oracle, kept nowhere."""
    import msgspec

    config = EvalConfig(model=ModelConfig(name=""), sampling=SamplingConfig(), faults=NO_FAULTS, **keys)
    job = Job(root, bundle, config)
    decoder = msgspec.json.Decoder(Score)
    with job.setting() as setting:
        return [decoder.decode(outcome.lines["scores"]) for outcome in outcomes(job, range(config.n or 978), setting)]


def matrix(root: Path, bundle: Bundle, **keys: Any) -> dict[str, Row]:
    """A row for the oracle on each suite, and for each flaw."""
    found = {suite: row_of(scores(root, bundle, suite=suite, **keys)) for suite in ("live-qa", "variant-qa")}
    for name, flaw in flaws().items():
        suite = "variant-qa" if flaw.only_variants else "live-qa"
        found[name] = row_of(scores(root, bundle, suite=suite, flaw=name, **keys))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--harness", action="append", help="default: both shipped ones")
    parser.add_argument("--n", type=int, default=978)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    for harness in options.harness or ["live-stream", "mini"]:
        found = matrix(ROOT, compiled(ROOT, harness), n=options.n, seed=options.seed, workers=options.workers)
        if options.json:
            print(json.dumps({name: {c: getattr(row, c) for c in COLUMNS} for name, row in found.items()}))
            continue
        print(f"\n| {harness} | {' | '.join(COLUMNS.values())} |\n|---|{'---|' * len(COLUMNS)}")
        for name, row in found.items():
            lowers = flaws()[name].lowers if name in flaws() else frozenset()
            cells = [percent(getattr(row, c)) + (" *" if c in lowers and c in DIMENSIONS else "") for c in COLUMNS]
            print(f"| {name if name in flaws() else f'oracle, {name}'} | {' | '.join(cells)} |")


if __name__ == "__main__":
    main()
