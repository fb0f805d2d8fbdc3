"""mtp-adapt: a draft head learns what its frozen policy says [5.5].

What always holds: no weight of the policy moves; the checkpoint is the policy byte for byte, with the head beside it, and
its lineage says how many drafts were accepted before and after.

The steps, read top to bottom in `run`: sequences of rollouts; the policy's hidden states along them, once; the head,
native, grafted or fresh; the loop; the export. The loss is `loss.py`'s, whose docstring holds the equation and how we
depart from the paper. One more departure: the paper's rollouts come from the run of rl as it went; so do ours, or from
any run whose trajectories are given.
"""

from __future__ import annotations

import shutil
import time
from pathlib import Path
from typing import Any

import msgspec

from harnessctl.checkpoint.export import export_head
from harnessctl.checkpoint.policy import next_lineage, read_lineage, weights_digest
from harnessctl.decode.template import ChatTemplate
from harnessctl.errors import TrainingError
from harnessctl.records.lineage import Head, Lineage
from harnessctl.runs import package_versions, utc_now
from harnessctl.storage import write_atomic
from harnessctl.train.budget import Budget
from harnessctl.train.config import TrainConfig
from harnessctl.train.job import Job
from harnessctl.train.loop import Loop
from harnessctl.train.mtp import estimate
from harnessctl.train.mtp.acceptance import Acceptance
from harnessctl.train.mtp.collect import HiddenStates, collect, open_states
from harnessctl.train.mtp.config import MtpConfig
from harnessctl.train.mtp.frozen import Frozen, open_frozen
from harnessctl.train.mtp.head import full_names
from harnessctl.train.mtp.objective import MtpObjective, split
from harnessctl.train.mtp.report import FILE, DraftRun, draft_report, read_run
from harnessctl.train.mtp.rollouts import ROLLOUTS, find_rollouts
from harnessctl.train.mtp.sampling import check_scenarios, sample_rollouts
from harnessctl.train.mtp.sequences import Sequences, read_sequences
from harnessctl.train.mtp.source import head_source, open_head

#: What an answer is taken to come to before one has been seen, in tokens.
_ANSWER = 128
#: Of a policy's lineage what its head leaves as it is.
_KEPT = ("bundles", "harness", "world", "template", "envelope", "adapter")


class MtpStage:
    """The stage mtp-adapt."""

    name = "mtp-adapt"
    config: type[TrainConfig] = MtpConfig

    def __init__(self) -> None:
        # Budget and run are of one job, and a large policy is not to be read twice.
        self._held: tuple[Job, Frozen] | None = None

    def budget(self, job: Job) -> Budget:
        """Every row goes through the head once for each depth; the policy reads each sequence once, before."""
        config: MtpConfig = job.config
        policy = self._policy(job)
        head_source(policy.folder, config)  # before hours are spent on sequences and states
        if config.beside is not None:
            read_run(Path(config.beside).expanduser())
        if not (paths := _rollouts(job)):
            check_scenarios(job)
            said = _ANSWER if config.sample.sampling.max_tokens is None else config.sample.sampling.max_tokens
            return Budget(
                config.row_tokens * config.rows,
                config.loop.steps,
                f"no rollouts were kept: the policy answers {config.sample.n} scenarios first, in {said} tokens each",
                sampled_per_step=config.sample.n * said / config.loop.steps,
                rows=config.sample.rows,
            )
        sequences = _sequences(paths, config, policy)
        tokens = min(config.row_tokens * config.rows, sequences.tokens)
        seconds = estimate.seconds(policy, config, sequences, tokens) / _processes(job)
        note = f"{len(sequences.items)} sequences of {sequences.tokens} tokens; each step's tokens pass the head {config.depths} times"
        return Budget(tokens, config.loop.steps, note, before=sequences.tokens, seconds=seconds)

    def run(self, job: Job) -> None:
        """Train the head and write the checkpoint."""
        config: MtpConfig = job.config
        policy = self._policy(job)
        paths = _rollouts(job)
        if not paths:
            paths = [sample_rollouts(job)] if _process(job) == 0 else [job.folder / ROLLOUTS]
            _wait(job)
        sequences = _sequences(paths, config, policy)
        job.talk(_summary(sequences))
        states = _collected(job, policy, sequences)
        head, source = open_head(policy.model, policy.folder, config, job.talk)
        policy.drop_layers()
        train, heldout = split([item.scenario for item in sequences.items], config.heldout, config.seed)
        objective = MtpObjective(
            states,
            train,
            heldout,
            head,
            config,
            autocast=policy.autocast,
            process=_process(job),
            processes=_processes(job),
        )
        before = objective.acceptance()
        job.talk(f"before: {_said(before)}")
        loop = Loop(head, config.loop, points=job.points(), accelerator=job.accelerator, seed=config.seed)
        loop.resume()
        loop.run(objective, job.metrics)
        after = objective.acceptance()
        job.talk(f"after: {_said(after)}")
        _wait(job)  # until nobody reads the states any more
        if _process(job) == 0:
            told = DraftRun(title=f"{source} head, {config.model.name}", before=before, after=after)
            weights = {name: tensor.detach().cpu() for name, tensor in head.state_dict().items()}
            known = Head(source=source, depths=config.depths, acceptance=_known(told))
            lineage = _lineage(job, policy, states)
            export_head(
                policy.folder, job.checkpoint, full_names(weights), lineage=lineage, known=known, form=config.form
            )
            _tell(job, told)
            if config.hidden is None:
                shutil.rmtree(states.folder, ignore_errors=True)
        _wait(job)
        self._held = None

    def _policy(self, job: Job) -> Frozen:
        if self._held is None or self._held[0] is not job:
            self._held = job, open_frozen(job)
        return self._held[1]


STAGE = MtpStage()


def _rollouts(job: Job) -> list[Path]:
    config: MtpConfig = job.config
    return find_rollouts(job.root, config.rollouts, job.start)


def _sequences(paths: list[Path], config: MtpConfig, policy: Frozen) -> Sequences:
    most = min(config.max_tokens, config.row_tokens)
    found = read_sequences(paths, max_tokens=most, vocabulary=policy.vocabulary, limit=config.limit)
    if len(found.items) < 2:
        raise TrainingError(
            f"{paths[0]} holds one sequence, and one at least is held out to measure acceptance",
            hint="give more rollouts",
        )
    return found


def _collected(job: Job, policy: Frozen, sequences: Sequences) -> HiddenStates:
    """The hidden states, computed where they are not there yet."""
    config: MtpConfig = job.config
    folder = job.folder / "hidden" if config.hidden is None else Path(config.hidden).expanduser()
    # One process writes the manifest, and all read the same weights.
    digest = weights_digest(policy.folder)
    given: dict[str, Any] = {
        "policy": digest,
        "width": policy.width,
        "dtype": config.hidden_dtype,
        "shard_tokens": config.shard_tokens,
    }
    if _process(job) == 0:
        open_states(folder, sequences, **given)
    _wait(job)
    states = open_states(folder, sequences, **given)
    began = time.perf_counter()
    missing = len(states.missing())
    _wait(job)
    collect(
        states,
        sequences.items,
        policy.model,
        autocast=policy.autocast,
        batch_tokens=config.row_tokens,
        process=_process(job),
        processes=_processes(job),
        on_shard=lambda done, total: job.talk(f"hidden states: shard {done} of {total}"),
    )
    _wait(job)
    if missing:
        job.talk(f"hidden states: {sequences.tokens} tokens in {time.perf_counter() - began:.1f} s, in {folder}")
    else:
        job.talk(f"hidden states: those in {folder}")
    return states


def _lineage(job: Job, policy: Frozen, states: HiddenStates) -> Lineage:
    """What the checkpoint is made of: the policy and all that it was trained with, and the sequences."""
    config: MtpConfig = job.config
    before, bundle = read_lineage(policy.folder), job.bundle
    kept: dict[str, Any] = {"template": ChatTemplate().digest}
    if before is not None:
        kept = {name: getattr(before, name) for name in _KEPT}
    elif bundle is not None:
        kept |= {"bundles": [bundle.digest], "harness": f"{bundle.name}-{bundle.version}"}
    return next_lineage(
        policy.folder,
        stage=MtpStage.name,
        recipe=job.recipe,
        data=states.manifest.data,
        steps=config.loop.steps,
        seeds={"train": config.seed},
        versions=package_versions(),
        made=utc_now(),
        **kept,
    )


def _known(told: DraftRun) -> dict[str, Any]:
    return {"before": msgspec.to_builtins(told.before), "after": msgspec.to_builtins(told.after)}


def _tell(job: Job, told: DraftRun) -> None:
    """Write the run's own report, beside that of another run where one is given."""
    config: MtpConfig = job.config
    write_atomic(job.folder / FILE, msgspec.json.format(msgspec.json.encode(told), indent=2) + b"\n")
    runs = [read_run(job.folder)]
    if config.beside is not None:
        runs.append(read_run(Path(config.beside).expanduser()))
    write_atomic(job.folder / "draft-head.md", draft_report(runs).encode())


def _summary(sequences: Sequences) -> str:
    sampled = sum(sum(item.mask) for item in sequences.items)
    text = f"sequences: {len(sequences.items)}, {sequences.tokens} tokens, of which the policy said {sampled}"
    left = [f"{sequences.cut} cut to max_tokens"] * bool(sequences.cut)
    left += [f"{sequences.dropped} without a token of the policy left out"] * bool(sequences.dropped)
    return text + (f" ({', '.join(left)})" if left else "")


def _said(found: Acceptance) -> str:
    rates = " ".join("-" if rate is None else f"{rate:.3f}" for rate in found.greedy)
    return (
        f"accept length {found.greedy_length:.2f} greedy ({rates} by depth), {found.sampled_length:.2f} sampled at "
        f"temperature {found.temperature:g}, thresholds 1.0/1.0"
    )


def _wait(job: Job) -> None:
    if job.accelerator is not None:
        job.accelerator.wait_for_everyone()


def _process(job: Job) -> int:
    return 0 if job.accelerator is None else job.accelerator.process_index


def _processes(job: Job) -> int:
    return 1 if job.accelerator is None else job.accelerator.num_processes
