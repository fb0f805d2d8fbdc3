"""The work behind `harnessctl eval`: suites and keys, config, folder, progress, table."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from typing import Any

import msgspec

from harnessctl import recipes
from harnessctl.cli import output
from harnessctl.cli.asked_set import QUIET_S, building, set_digest_of, tell_set
from harnessctl.cli.judging import (
    RescoreConfig,
    judge_folder,
    known_of,
    open_jury,
    rescore_config,
    root_for,
    show_judging,
)
from harnessctl.cli.process import ended_by_signals, stdout_kept_for_data, undisturbed
from harnessctl.cli.progress import Progress
from harnessctl.cli.project import judge_source, open_bundle, project_root
from harnessctl.errors import HarnessctlError, StorageError, UsageError
from harnessctl.evaluate.config import EvalConfig
from harnessctl.evaluate.evaluation import REPORT, Evaluated, check, counts_of, evaluate, size_of, write_report
from harnessctl.evaluate.files import drop_unanswered, path_of, read_records
from harnessctl.evaluate.gate import gated
from harnessctl.evaluate.job import Job, judges_for
from harnessctl.evaluate.judging.run_scores import RULES, JudgedRun, drop_judging
from harnessctl.evaluate.outcome import Outcome
from harnessctl.evaluate.report import Report, cells, percent
from harnessctl.evaluate.rescoring import rescore
from harnessctl.evaluate.sets import set_named
from harnessctl.evaluate.setting import Setting
from harnessctl.evaluate.suite_manifests import settled, suite_manifest
from harnessctl.records.run import Run
from harnessctl.records.score import Score
from harnessctl.runs import RunFolder, git_commit, package_versions, utc_now

RECORDS = "scores.jsonl"
#: Keys that change nothing of what an item comes to, and so may differ when a run is resumed.
FREE_KEYS = frozenset({"workers", "retries", "fail_on_error", "cache", "judge", "judge_workers", "judge_tries"})


class Rescored(msgspec.Struct, kw_only=True):
    """What scoring a run again came to."""

    run: str
    items: int
    changed: int
    report: Report
    judging: JudgedRun | None = None

    @property
    def code(self) -> int:
        """The exit code: 1 when a panel came to no verdict at all."""
        return 1 if self.judging is not None and not any(self.judging.panel.verdicts.values()) else 0


@dataclass(frozen=True)
class EvalCommand:
    """One suite and its keys."""

    overrides: list[str]
    target: str | None
    run_dir: Path | None
    resume: Path | None
    project: Path | None
    json: bool

    @classmethod
    def of(cls, arguments: Sequence[str], *, is_sweep: bool = False, **options: Any) -> list[EvalCommand]:
        """A command for each suite, and each combination of a sweep. An argument without `=` is a suite, or a bundle file."""
        named = [a for a in arguments if "=" not in a]
        keys = [a for a in arguments if "=" in a]
        files = [name for name in named if Path(name).is_file()]
        chosen = list(dict.fromkeys(name for name in named if name not in files))
        for name in chosen:
            suite_manifest(_root(options["project"]), name)
        if len(files) > 1:
            raise UsageError(
                f"one bundle at a time; got {', '.join(files)}", hint="the other arguments are suites or KEY=VALUE"
            )
        resume, run_dir = options["resume"], options["run_dir"]
        if resume is not None and run_dir is not None:
            raise UsageError("a run that is resumed has its folder; leave --run-dir out")
        if chosen and any(key.startswith("suite=") for key in keys):
            raise UsageError("the suite is given twice", hint=f"leave the key out: `harnessctl eval {chosen[0]}`")
        if not chosen and resume is None and not any(key.startswith(("suite=", "recipe=")) for key in keys):
            raise UsageError("which suite?", hint="for example `harnessctl eval live-qa`")
        sweeps = recipes.expand(keys) if is_sweep else [keys]
        target = files[0] if files else None
        suites: list[str | None] = [*chosen] or [None]
        found: list[EvalCommand] = [
            cls(overrides=_with_suite(suite, overrides, options["project"]), target=target, **options)
            for suite in suites
            for overrides in sweeps
        ]
        if len(found) > 1 and (resume is not None or run_dir is not None):
            raise UsageError("several runs make a folder each; leave --resume and --run-dir out")
        return found

    def config(self) -> tuple[dict[str, Any], EvalConfig]:
        """The resolved recipe, plain and typed; that of the run to resume, with the keys of FREE_KEYS that are given, where
        no others are."""
        free = {key.partition("=")[0] for key in self.overrides}
        if self.resume is None:
            plain = self._composed()
        elif free <= FREE_KEYS:
            given = self._composed()
            plain = _config_of(_run_of(self.resume)) | {key: given[key] for key in free}
        else:
            _run_of(self.resume)
            plain = self._composed()
        return plain, recipes.typed(plain, EvalConfig, job="eval")

    def _composed(self) -> dict[str, Any]:
        root = _root(self.project)
        plain = recipes.compose(root, "eval", self.overrides)
        for key in ("set", "edit"):  # files: a run that goes on may be begun elsewhere
            if plain[key] is not None and Path(str(plain[key])).is_file():
                plain[key] = str(Path(plain[key]).resolve())
        return settled(plain, suite_manifest(root, str(plain["suite"])))

    def config_yaml(self) -> str:
        """The resolved recipe as YAML."""
        return recipes.to_yaml(self.config()[0])

    def run(self) -> Evaluated:
        """Carry out every item. HarnessctlError when that cannot be begun, or a record cannot be written."""
        plain, config = self.config()
        before: dict[str, Any] = {} if self.resume is None else RunFolder.open(self.resume).record.extra
        project = Path(before["project"]) if self.project is None and "project" in before else self.project
        bundle, root = open_bundle(self.target or before.get("target"), project, harness=config.harness)
        if root is None:
            raise UsageError(
                "scenarios are drawn from a world of a project, and there is no project here", hint="give --project DIR"
            )
        edited = None if config.edit is None else open_bundle(config.edit, root)[0]
        judges = judges_for(bundle, judge_source(bundle, root))
        judges |= {} if edited is None else judges_for(edited, judge_source(edited, root))
        job = Job(root, bundle, config, judges, edited)
        check(job)
        if config.judge is not None:
            # What is wrong with the roles leaves no run behind.
            open_jury(root, config.judge, policy=f"{config.policy}:{config.model.name}")
        with job.setting() as setting, ended_by_signals():
            if self.resume is not None:
                _check_same(RunFolder.open(self.resume), job, setting.world.digest, plain)
            # What is wrong with a setting leaves no run behind.
            with building(setting, set_named(config.items)):
                set_named(config.items).items(setting)
            tell_set(config, setting)
            _tell_user(setting, size_of(job))
            folder = self._folder(job, setting, plain)
            with folder.held(RECORDS):
                done = self._carry_out(job, folder, setting)
        if not self.json and done.report is not None:
            show(done.report)
            if done.gate is not None:
                output.talk(done.gate.told())
            if done.judging is not None:
                show_judging(done.judging)
            output.data(str(folder.path / REPORT))
        return done

    def _carry_out(self, job: Job, folder: RunFolder, setting: Setting) -> Evaluated:
        if self.resume is not None and (folder.path / RULES).is_file():
            # New items get the rules' scores first, and no file of scores has two scorers.
            rescore(folder.path, writes=setting.writes, loader=setting.loader)
            drop_judging(folder.path)
        unanswered = drop_unanswered(folder.path) if self.resume is not None else 0
        before = sum(1 for _ in read_records(folder.path, "scores"))
        if self.resume is not None:
            output.talk(f"resuming {folder.path}: {before} of {size_of(job)} items are done")
            if unanswered:
                output.talk(f"{output.plural(unanswered, 'item')} at the end had no answer and will be asked again")
            folder.record = msgspec.structs.replace(folder.record, status="running", finished=None)
            folder.save()
        progress = Progress(job.config.suite, total=size_of(job), done=before, quiet_s=QUIET_S)

        waiting: set[str] = set()
        cached = 0

        def on_done(outcome: Outcome) -> None:
            nonlocal cached
            cached += outcome.is_cached
            waiting.discard(outcome.id)
            to_ask = f", {len(waiting)} to be asked again" if waiting else ""
            with suppress(OSError):  # nobody may be reading our talk any more; the work goes on
                progress.advance(f"{outcome.id}: {outcome.stop}, AVG {percent(outcome.average)}{to_ask}")

        def on_retry(outcome: Outcome) -> None:
            waiting.add(outcome.id)
            with suppress(OSError):
                output.talk(
                    f"{outcome.id} had no answer and will be asked again: {outcome.error or 'no cause is known'}"
                )

        report: Report | None = None
        judging: JudgedRun | None = None
        try:
            with progress, stdout_kept_for_data():
                report = evaluate(job, folder, setting, on_done=on_done, on_retry=on_retry)
            if job.config.judge is not None:
                judging = judge_folder(folder, job.root, judge_keys(job.config))
                report = write_report(folder, job.config)
            status = "done"
        except KeyboardInterrupt:
            status, report = "interrupted", None
            with suppress(OSError):
                output.talk(f"interrupted; go on with `harnessctl eval --resume {folder.path}`")
        except BaseException as error:
            if isinstance(error, HarnessctlError):
                with suppress(OSError):
                    output.talk(f"what was done is kept; go on with `harnessctl eval --resume {folder.path}`")
            # What went wrong is for the person to read, also where a full disk does not take it into the record.
            with undisturbed(), suppress(StorageError):
                folder.finish("failed")
            raise
        with undisturbed():
            if report is not None:
                folder.record.counts.clear()
                folder.record.counts.update(counts_of(report) | ({"cached": cached} if job.config.cache else {}))
            folder.finish(status)
        gate = suite_manifest(job.root, job.config.suite).gate
        came = None if report is None or gate is None else gated(report, gate)
        return Evaluated(
            run=str(folder.path),
            status=status,
            counts=folder.record.counts,
            report=report,
            gate=came,
            judging=judging,
        )

    def _folder(self, job: Job, setting: Setting, plain: dict[str, Any]) -> RunFolder:
        """A new run's folder, or the one to resume."""
        if self.resume is not None:
            return RunFolder.open(self.resume)
        config = job.config
        model = {"oracle": "" if config.flaw is None else f":{config.flaw}", "scripted": ""}
        extra = {
            "suite": config.suite,
            "asked": set_named(config.items).name,
            "project": str(job.root),
            "target": None if self.target is None else str(Path(self.target).resolve()),
            "writes": setting.writes,
            "loader": setting.loader,
            "set": set_digest_of(config),
            "edited": None if job.edited is None else job.edited.digest,
        }
        record = Run(
            job="eval",
            name=f"{config.suite}-{job.bundle.name}",
            started=utc_now(),
            config="",
            bundle=job.bundle.digest,
            harness=f"{job.bundle.name}-{job.bundle.version}",
            world=setting.world.digest,
            policy=config.policy + model.get(config.policy, f":{config.model.name}"),
            seeds={"eval": config.seed},
            versions=package_versions(),
            commit=git_commit(job.root),
            argv=sys.argv[1:],
            outputs={
                "trajectories": "trajectories.jsonl",
                "scores": RECORDS,
                "scenarios": "scenarios.jsonl",
                "report": REPORT,
            },
            extra={key: value for key, value in extra.items() if value is not None},
        )
        return RunFolder.create(job.root, record, recipes.to_yaml(plain), folder=self.run_dir)


def judge_keys(config: EvalConfig) -> RescoreConfig:
    """The keys of the pass of judges at the end of an evaluation."""
    return RescoreConfig(judge=config.judge, workers=config.judge_workers, tries=config.judge_tries)


def _run_of(path: Path) -> RunFolder:
    """The run folder at `path`. UsageError when another job made it."""
    folder = RunFolder.open(path)
    if folder.record.job != "eval":
        raise UsageError(
            f"{path} is a run of `harnessctl {folder.record.job}`", hint="give a run of eval, such as runs/latest-eval"
        )
    return folder


def _config_of(folder: RunFolder) -> dict[str, Any]:
    return recipes.from_yaml(folder.config_yaml(), source=str(folder.path / "config.yaml"))


def _tell_user(setting: Setting, n: int) -> None:
    """Say whose words viewers use where those may be a model's."""
    if setting.voice is None:
        return
    for number in range(n):
        setting.scenario(number)
    said, script = setting.voice.said, setting.voice.script
    output.talk(f"viewers: {said} messages in a model's words, {script} as the script has them")
    if script:
        output.talk(f"    hint: `harnessctl world sample user=llm n={n} seed={setting.config.seed}` asks for them")


def rescore_run(run: Path, overrides: Sequence[str] = (), *, project: Path | None = None) -> Rescored:
    """Score a run's records again, by the rules or by a judge role, and write its report anew."""
    folder = _run_of(run)
    config = recipes.typed(_config_of(folder), EvalConfig, job="eval")
    known = known_of(folder)
    keys = rescore_config(_root(project), overrides)
    judging: JudgedRun | None = None
    with folder.held(RECORDS):
        if keys.judge is None:
            changed = rescore(folder.path, writes=known.writes, loader=known.loader)
            drop_judging(folder.path)
        else:
            before: list[Score] = list(read_records(folder.path, "scores"))
            try:
                judging = judge_folder(folder, root_for(project, known), keys)
            except KeyboardInterrupt:
                with suppress(OSError):
                    output.talk("no score was changed; votes that were given are not asked again")
                raise
            after: list[Score] = list(read_records(folder.path, "scores"))
            changed = sum(one != other for one, other in zip_longest(before, after))
    report = write_report(folder, config)
    output.talk(f"{output.plural(changed, 'score')} changed: {path_of(folder.path, 'scores')}")
    return Rescored(run=str(folder.path), items=report.total.items, changed=changed, report=report, judging=judging)


def show(report: Report) -> None:
    """The table of a report."""
    rows = [cells(name, row, report.columns) for name, row in (*report.intents.items(), ("total", report.total))]
    output.table(
        ("intent", "n", *report.columns.values()), rows, title=f"{report.title}: {report.policy} under {report.harness}"
    )
    if report.edited is not None:
        output.table(*report.edited.table())
    if report.scorer != "rules":
        output.talk(f"Acc and Eff by {report.scorer}")
    output.talk(f"scored {percent(report.coverage)} %  " + "  ".join(f"{name} {n}" for name, n in report.stops.items()))
    if report.usage.prompt_tokens:
        output.talk(report.usage.told())
    for why, count in report.unscored:
        output.talk(f"no score for {output.plural(count, 'item')}: {why}")
    if report.faulted:
        output.talk(
            f"faults in {output.plural(report.faulted, 'item')}, {report.recovered} answered in full all the same"
        )


def _with_suite(suite: str | None, overrides: list[str], project: Path | None) -> list[str]:
    """The keys, with the suite, and its own recipe where it has one and none is asked for."""
    if suite is None:
        return overrides
    given = any(key.startswith("recipe=") for key in overrides)
    recipe = [] if given or suite not in recipes.recipe_names(_root(project), "eval") else [f"recipe={suite}"]
    return [*recipe, *overrides, f"suite={suite}"]


def _root(project: Path | None) -> Path | None:
    try:
        return project_root(project)
    except UsageError:
        return None


def _check_same(folder: RunFolder, job: Job, world: str, plain: dict[str, Any]) -> None:
    """UsageError when a run was made with something else than it would go on with."""
    record, edited = folder.record, None if job.edited is None else job.edited.digest
    for what, was, now in (
        ("bundle", record.bundle, job.bundle.digest),
        ("world", record.world, world),
        ("set", record.extra.get("set"), set_digest_of(job.config)),
        ("edited harness", record.extra.get("edited"), edited),
    ):
        if was != now:
            raise UsageError(
                f"{folder.path} was made with another {what}: {(was or 'none')[:12]}, now {(now or 'none')[:12]}",
                hint="resume with the same, or start a new run",
            )
    differing = [key for key in recipes.differing_keys(_config_of(folder), plain) if key not in FREE_KEYS]
    if differing:
        raise UsageError(
            f"{folder.path} was made with another config: {', '.join(differing)}",
            hint="leave the keys out to go on with the run's own",
        )
