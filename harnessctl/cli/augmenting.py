"""The work behind `harnessctl augment`: config, folder, progress, coverage."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from harnessctl import recipes
from harnessctl.assembly import open_world_of
from harnessctl.augment.counting import Counting
from harnessctl.augment.coverage import Coverage
from harnessctl.augment.envelopes import load_envelope
from harnessctl.augment.job import PARENT, RECORDS, REFUSALS, Job
from harnessctl.augment.opening import AugmenterOpener, RewriterSettings
from harnessctl.augment.report import brief, markdown, summary
from harnessctl.augment.texts import texts_of
from harnessctl.augment.variants import envelope_digest
from harnessctl.bundle.files import Bundle, encode_bundle
from harnessctl.cli import output
from harnessctl.cli.process import ended_by_signals, stdout_kept_for_data, undisturbed
from harnessctl.cli.progress import Progress
from harnessctl.cli.project import open_bundle, project_root
from harnessctl.errors import StorageError, UsageError
from harnessctl.policies import ModelConfig
from harnessctl.records.run import Run
from harnessctl.runs import RunFolder, git_commit, package_versions, utc_now
from harnessctl.simulate.scenarios import Scenarios
from harnessctl.storage import write_atomic

COVERAGE = "coverage.json"
REPORT = "report.md"
#: Keys that change nothing of what is made, and so may differ when a run is resumed.
FREE_KEYS = frozenset({"workers"})


class AugmentConfig(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """The recipe of the job `augment`; recipes/augment/default.yaml says what each key means."""

    model: ModelConfig
    harness: str | None = None
    envelope: str = "paper"
    rewriter: Literal["rules", "llm"] | None = None
    n: Annotated[int, Meta(ge=1, le=10_000_000)] = 1000
    seed: Annotated[int, Meta(ge=0)] = 0
    workers: Annotated[int, Meta(ge=1, le=256)] = 1
    bundles: bool = False
    world: str | None = None
    cache: str | None = None


class Augmented(msgspec.Struct, kw_only=True):
    """What a run came to: its folder, its records, and what was covered."""

    run: str
    records: str
    status: str
    coverage: Coverage

    @property
    def code(self) -> int:
        """0 when no variant was refused, 1 otherwise, 130 when the run was interrupted."""
        return 130 if self.status == "interrupted" else 1 if self.coverage.refused else 0


@dataclass(frozen=True)
class AugmentCommand:
    """What the command line asked for."""

    target: str | None
    overrides: list[str]
    run_dir: Path | None
    resume: Path | None
    project: Path | None
    json: bool

    @classmethod
    def of(cls, arguments: Sequence[str], **options: Any) -> AugmentCommand:
        """Tell the harness or bundle (an argument without `=`) from the keys."""
        targets = [a for a in arguments if "=" not in a]
        if len(targets) > 1:
            raise UsageError(f"one harness or bundle at a time; got {', '.join(targets)}", hint="keys are KEY=VALUE")
        return cls(targets[0] if targets else None, [a for a in arguments if "=" in a], **options)

    def config(self) -> tuple[dict[str, Any], AugmentConfig]:
        """The resolved recipe, plain and typed; that of the run to resume where no keys are given."""
        plain: dict[str, Any]
        if self.resume is not None and not self.overrides:
            plain = recipes.from_yaml(
                RunFolder.open(self.resume).config_yaml(), source=str(self.resume / "config.yaml")
            )
        else:
            plain = recipes.compose(self._root(), "augment", self.overrides)
        return plain, recipes.typed(plain, AugmentConfig, job="augment")

    def config_yaml(self) -> str:
        """The resolved recipe as YAML."""
        return recipes.to_yaml(self.config()[0])

    def run(self) -> Augmented:
        """Make the variants that are not there yet. HarnessctlError when that cannot be begun or goes wrong."""
        if self.resume is not None and self.run_dir is not None:
            raise UsageError("a run that is resumed has its folder; leave --run-dir out")
        plain, config = self.config()
        before: dict[str, Any] = {} if self.resume is None else RunFolder.open(self.resume).record.extra
        project = Path(before["project"]) if self.project is None and "project" in before else self.project
        bundle, root = open_bundle(self.target or before.get("target"), project, harness=config.harness)
        gold = gold_skills(bundle, root, config.world)
        envelope = load_envelope(root, config.envelope, bundle, gold_skills=gold)
        settings = RewriterSettings(
            name=config.rewriter or envelope.rewriter,
            cache=_cache(config.cache, root),
            model=config.model.name,
            base_url=config.model.base_url,
            key_env=config.model.key_env,
        )
        # Before there is a folder: what is wrong with the rewriter leaves no run behind.
        rewriter, notes = settings.prepared(bundle.state, _asking())
        for note in notes:
            output.talk(note)
        folder = self._folder(root, bundle, config, plain, envelope_digest(envelope))
        counting = Counting(
            bundle.state, [place for place, text, kind in texts_of(bundle.state) if not rewriter.wordings(text, kind)]
        )
        job = Job(
            open_maker=AugmenterOpener(folder.path / PARENT, root, msgspec.json.encode(envelope), settings),
            folder=folder.path,
            seed=config.seed,
            n=config.n,
            workers=config.workers,
            bundles=config.bundles,
        )
        with ended_by_signals(), folder.held(RECORDS):
            return self._carry_out(job, folder, counting, f"{bundle.name}, envelope {envelope.name}")

    def _carry_out(self, job: Job, folder: RunFolder, counting: Counting, title: str) -> Augmented:
        done = Counting(counting.state)
        progress = Progress("augmenting", total=job.n, done=job.replay(done), quiet_s=2.0)

        def on_done(what: str) -> None:
            with suppress(OSError):  # nobody may be reading our talk any more; the work goes on
                progress.advance(what)

        status = "done"
        try:
            with progress, stdout_kept_for_data():
                job.run(counting, on_done)
        except KeyboardInterrupt:
            status = "interrupted"
            with suppress(OSError):
                output.talk(f"interrupted; go on with `harnessctl augment --resume {folder.path}`")
            with undisturbed():  # it may have come between a record and its being counted
                counting = Counting(counting.state, counting.without_wording)
                job.replay(counting)
        except BaseException:
            with undisturbed(), suppress(StorageError):
                self._finish(folder, counting, "failed", title)
            raise
        with undisturbed():
            coverage = self._finish(folder, counting, status, title)
        ran = Augmented(run=str(folder.path), records=str(folder.path / RECORDS), status=status, coverage=coverage)
        if not self.json:
            show(ran)
        return ran

    def _finish(self, folder: RunFolder, counting: Counting, status: str, title: str) -> Coverage:
        coverage = counting.coverage()
        encoded = msgspec.json.format(msgspec.json.encode(coverage), indent=2)
        write_atomic(folder.path / COVERAGE, encoded + b"\n")
        write_atomic(folder.path / REPORT, markdown(coverage, f"Variants of {title}").encode())
        folder.record.counts.update(variants=coverage.variants, refused=coverage.refused)
        folder.finish(status)
        return coverage

    def _root(self) -> Path | None:
        try:
            return project_root(self.project)
        except UsageError:
            return None

    def _folder(
        self, root: Path | None, bundle: Bundle, config: AugmentConfig, plain: dict[str, Any], envelope: str
    ) -> RunFolder:
        """A new run's folder, or the one to resume, which must be of the same bundle, envelope and config."""
        if self.resume is not None:
            return resumed(self.resume, bundle, plain, envelope)
        target = str(Path(self.target).resolve()) if self.target and Path(self.target).is_file() else self.target
        extra = {"target": target, "project": None if root is None else str(root), "envelope": envelope}
        record = Run(
            job="augment",
            name=bundle.name,
            started=utc_now(),
            config="",
            bundle=bundle.digest,
            harness=f"{bundle.name}-{bundle.version}",
            seeds={"augment": config.seed},
            versions=package_versions(),
            commit=git_commit(root or Path.cwd()),
            argv=sys.argv[1:],
            outputs={
                "records": RECORDS,
                "refusals": REFUSALS,
                "coverage": COVERAGE,
                "report": REPORT,
                "parent": PARENT,
            },
            extra={key: value for key, value in extra.items() if value is not None},
        )
        folder = RunFolder.create(root or Path.cwd(), record, recipes.to_yaml(plain), folder=self.run_dir)
        write_atomic(folder.path / PARENT, encode_bundle(bundle))
        return folder


def resumed(path: Path, bundle: Bundle, plain: dict[str, Any], envelope: str) -> RunFolder:
    """The run to go on with. UsageError when it was made of another bundle, with another envelope or config."""
    folder = RunFolder.open(path)
    was = folder.record
    if was.job != "augment":
        raise UsageError(f"{folder.path} is a run of `{was.job}`, not of `augment`")
    for what, then, now in (("bundle", was.bundle, bundle.digest), ("envelope", was.extra.get("envelope"), envelope)):
        if then != now:
            raise UsageError(
                f"{folder.path} was made with another {what}: {str(then)[:12]}, now {now[:12]}",
                hint="resume with the same, or start a new run",
            )
    before = recipes.from_yaml(folder.config_yaml(), source=str(folder.path / "config.yaml"))
    differing = [key for key in recipes.differing_keys(before, plain) if key not in FREE_KEYS]
    if differing:
        raise UsageError(
            f"{folder.path} was made with another config: {', '.join(differing)}",
            hint="leave the keys out to go on with the run's own",
        )
    if not (folder.path / PARENT).is_file():  # the run was killed before it was written
        write_atomic(folder.path / PARENT, encode_bundle(bundle))
    folder.record = msgspec.structs.replace(folder.record, status="running", finished=None)
    folder.save()
    return folder


def gold_skills(bundle: Bundle, root: Path | None, world: str | None) -> dict[str, list[str]]:
    """The skills that the families of the harness's world load, by family; none, and a note, where no family is known.

    FaultsError when the families are not in order.
    """
    if root is None and world is None:
        return {}
    opened = open_world_of(root, bundle, world)
    if opened is None:
        return {}
    with opened:
        if opened.spec.simulation is None:
            return {}
        try:
            return Scenarios.open(opened, bundle).gold_skills()
        except UsageError as error:
            output.talk(f"note: {error.message}; no skill is known to be gold")
            return {}


def show(ran: Augmented) -> None:
    """The coverage tables, what was refused, and the place of the records."""
    for section in brief(ran.coverage):
        output.table(section.columns, section.rows, title=section.title)
    for refused in ran.coverage.refusals[:10]:
        output.talk(f"variant {refused.number} refused: law {refused.law}: {refused.place}: {refused.reason}")
    for line in summary(ran.coverage):
        output.talk(line)
    output.data(ran.records)


def _asking() -> Callable[[int, int], None]:
    """Tells how far the asking of an endpoint is."""
    progress: list[Progress] = []

    def advance(done: int, total: int) -> None:
        if not progress:
            progress.append(Progress("asking for wordings", total=total, done=done - 1, quiet_s=2.0))
        progress[0].advance("")

    return advance


def _cache(given: str | None, root: Path | None) -> Path | None:
    if given is not None:
        return Path(given)
    return None if root is None else root / "build" / "rewrites"
