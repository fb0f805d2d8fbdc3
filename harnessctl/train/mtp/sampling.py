"""Sampling: the frozen policy answers scenarios, where no run has kept what it said.

What always holds: line i is the answer to scenario i of the seed, and was computed beside the same others whether the work
was broken off or not; no scenario is one that an evaluation or another stage draws.
"""

from __future__ import annotations

from pathlib import Path

import msgspec

from harnessctl.evaluate.config import EvalConfig
from harnessctl.evaluate.setting import Setting
from harnessctl.policies import ModelConfig
from harnessctl.storage import JsonLinesWriter, write_atomic
from harnessctl.train.job import Job
from harnessctl.train.mtp.config import MtpConfig, SampleConfig
from harnessctl.train.mtp.rollouts import ROLLOUTS
from harnessctl.train.rl.backends import LocalBackend
from harnessctl.train.rl.config import DEADLINE_S, RolloutConfig
from harnessctl.train.rl.environment import Simulator
from harnessctl.train.rl.reward import RuleReward
from harnessctl.trajectory.reader import read_trajectories

_SEEDS_APART = 1 << 33


def check_scenarios(job: Job) -> None:
    """Before there is a run: TrainingError without a harness; UsageError when its world or envelope is not there."""
    config: MtpConfig = job.config
    with Setting(job.root, job.needs_bundle(), _evaluation(config, config.sample)) as setting:
        if config.sample.variant_share:
            setting.check_envelope()


def sample_rollouts(job: Job) -> Path:
    """The file of the policy's answers to `sample.n` scenarios, in the job's folder; those that are there stay."""
    config: MtpConfig = job.config
    asked, path = config.sample, job.folder / ROLLOUTS
    with Setting(job.root, job.needs_bundle(), _evaluation(config, asked)) as setting:
        simulator = Simulator(
            setting,
            judges=job.judge,
            backend=LocalBackend(job.policy, RolloutConfig(rows=asked.rows)),
            reward=RuleReward(),
            variant_share=asked.variant_share,
            talk=job.talk,
        )
        done = _whole_batches(path, asked.rows, asked.n)
        with JsonLinesWriter(path) as lines:
            while done < asked.n:
                numbers = range(done, min(done + asked.rows, asked.n))
                for group in simulator.groups(numbers, 1):
                    lines.write(msgspec.json.encode(group.rollouts[0].trajectory))
                done = numbers.stop
                job.talk(f"rollouts: {done} of {asked.n}")
    return path


def _whole_batches(path: Path, rows: int, n: int) -> int:
    """Cut what is there of a batch that was broken off; returns how many answers are left."""
    if not path.is_file():
        return 0
    kept = list(read_trajectories(path))
    if len(kept) >= n:
        return len(kept)
    kept = kept[: len(kept) - len(kept) % rows]
    write_atomic(path, b"".join(msgspec.json.encode(one) + b"\n" for one in kept))
    return len(kept)


def _evaluation(config: MtpConfig, asked: SampleConfig) -> EvalConfig:
    return EvalConfig(
        suite="live-qa",
        model=ModelConfig(name=config.model.name),
        sampling=msgspec.structs.replace(asked.sampling, temperature=config.temperature, top_p=config.top_p),
        policy="local",
        world=asked.world,
        seed=_SEEDS_APART + config.seed,
        envelope=asked.envelope,
        rewriter="rules",
        limits=msgspec.structs.replace(asked.limits, deadline_s=asked.limits.deadline_s or DEADLINE_S),
    )
