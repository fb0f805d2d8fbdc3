"""Assembly: an agent made of a project's bundle, a policy and a world, as a config says; and the job `run`.

The one place that puts runtime, decode and simulate together, so that `run`, evaluation, training and serving carry
requests through the same agent.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import msgspec
from msgspec import Meta

from harnessctl.bundle.files import Bundle
from harnessctl.errors import UsageError
from harnessctl.policies import ModelConfig, PolicyName, SamplingConfig, open_policy, sampling_of
from harnessctl.records.comment import CommentInput
from harnessctl.records.trajectory import Trajectory
from harnessctl.runtime.agent import Agent
from harnessctl.runtime.batch import BatchResult, run_many
from harnessctl.runtime.clock import Clock
from harnessctl.runtime.judge import BundleSource, HarnessJudge
from harnessctl.runtime.protocols import FaultSource, Model, World
from harnessctl.runtime.surface import SurfaceView
from harnessctl.trajectory import TrajectoryWriter, ViewerNames, read_trajectories

if TYPE_CHECKING:
    from harnessctl.simulate.world import LiveWorld


#: The environment variable with the key that viewers' names are hashed under.
VIEWER_KEY = "HARNESSCTL_VIEWER_KEY"


class LimitsConfig(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """Limits that a run may replace: none of them is cited in a text, so the prompt stays what it was."""

    deadline_s: Annotated[float, Meta(gt=0, le=1e7)] | None = None
    tool_timeout_s: Annotated[float, Meta(gt=0, le=1e7)] | None = None
    model_retries: Annotated[int, Meta(ge=0, le=1000)] | None = None
    max_parallel_tools: Annotated[int, Meta(ge=1, le=1000)] | None = None

    def given(self) -> dict[str, int | float]:
        """The limits that have a value."""
        return {name: value for name, value in msgspec.structs.asdict(self).items() if value is not None}


class RunConfig(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """The recipe of the job `run`; recipes/run/default.yaml says what each key means."""

    model: ModelConfig
    sampling: SamplingConfig
    harness: str | None = None
    policy: PolicyName = "local"
    loop: Literal["harness", "react"] = "harness"
    world: str | None = None
    script: str | None = None
    seed: Annotated[int, Meta(ge=0)] = 0
    limit: Annotated[int, Meta(ge=1)] | None = None
    repeats: Annotated[int, Meta(ge=1, le=10_000)] = 1
    workers: Annotated[int, Meta(ge=1, le=256)] = 1
    simulate: bool = False
    isolate: bool = False
    insist: bool = False
    viewers: Literal["keep", "hash", "drop"] = "keep"
    limits: LimitsConfig = msgspec.field(default_factory=LimitsConfig)


def open_world_of(root: Path | None, bundle: Bundle, name: str | None) -> LiveWorld | None:
    """The world that `name`, or else the bundle, asks for; None when neither does."""
    wanted = name or bundle.world
    if wanted is None:
        return None
    if root is None:
        raise UsageError(
            f"the bundle reads the world {wanted!r}, and there is no project here", hint="give --project DIR"
        )
    from harnessctl.simulate.world import open_world

    path = root / "manifests" / "worlds" / f"{wanted}.yaml"
    if not path.is_file():
        raise UsageError(f"no world {wanted!r}: {path} does not exist")
    return open_world(path, cache=root / "build" / "worlds")


@asynccontextmanager
async def open_agent(
    bundle: Bundle,
    config: RunConfig,
    *,
    world: World | None,
    bundles: BundleSource,
    model: Model | None = None,
    clock: Clock | None = None,
    faults: FaultSource | None = None,
    surface: SurfaceView | None = None,
) -> AsyncGenerator[Agent]:
    """The agent of a config, with judge and world; everything that was opened is closed behind it.

    `clock` and `faults` are for simulations; `surface` is what the agent would make of bundle and config.
    """
    policy = model or open_policy(config.policy, config.model, script=config.script)
    sampling = sampling_of(config.sampling, seed=config.seed)
    judge: HarnessJudge | None = None
    try:
        if config.loop == "harness":
            judge = await HarnessJudge.open(
                bundle, bundles, policy, world=world, sampling=sampling, simulate=config.simulate
            )
        agent = await Agent.open(
            bundle,
            policy,
            world=world,
            loop=config.loop,
            limits=config.limits.given(),
            simulate=config.simulate,
            judge=judge,
            sampling=sampling,
            seed=config.seed,
            insist=config.insist,
            isolate=config.isolate,
            clock=clock,
            faults=faults,
            surface=surface,
        )
        if judge is not None:
            agent.warnings.extend(judge.warnings)
        try:
            yield agent
        finally:
            await agent.aclose()
    finally:
        if judge is not None:
            await judge.aclose()
        if model is None:
            await policy.aclose()


def planned(requests: Sequence[CommentInput], config: RunConfig) -> list[CommentInput]:
    """The requests of a run: the first `limit`, viewers named as asked, each `repeats` times with ids #2, #3, ..."""
    key = os.environ.get(VIEWER_KEY, "").encode()
    if config.viewers == "hash" and not key:
        raise UsageError(
            "viewers=hash needs a secret key, or a short list of names is soon guessed", hint=f"set {VIEWER_KEY}"
        )
    names = ViewerNames(config.viewers, key)
    chosen = [names.apply(request) for request in requests[: config.limit]]
    out = list(chosen)
    for number in range(2, config.repeats + 1):
        for request in chosen:
            session = None if request.session is None else f"{request.session}#{number}"
            out.append(msgspec.structs.replace(request, id=f"{request.id}#{number}", session=session))
    if config.repeats > 1 and len({request.id for request in out}) < len(out):
        raise UsageError(
            "ids of the input end in #2, #3, ..., as those of repeats do", hint="rename them, or repeats=1"
        )
    return out


async def answer(
    bundle: Bundle,
    config: RunConfig,
    requests: Sequence[CommentInput],
    records: Path,
    *,
    model: Model,
    world: World | None,
    bundles: BundleSource,
    done_before: set[str] | None = None,
    on_done: Callable[[Trajectory], None] | None = None,
    on_open: Callable[[Agent], None] | None = None,
) -> BatchResult:
    """Answer `requests` (as `planned` gives them), each trajectory appended to `records` at once. Closes `model`."""
    async with (
        contextlib.aclosing(model),
        open_agent(bundle, config, world=world, bundles=bundles, model=model) as agent,
    ):
        if on_open is not None:
            on_open(agent)
        _restore_sessions(agent, requests, done_before or set(), records)
        with TrajectoryWriter(records) as writer:
            return await run_many(
                agent,
                requests,
                writer=writer,
                concurrency=config.workers,
                done_before=done_before or (),
                on_done=on_done,
            )


def _restore_sessions(agent: Agent, requests: Sequence[CommentInput], done: set[str], records: Path) -> None:
    """Sessions that a run broke off in go on from their recorded turns."""
    broken_off = {request.session for request in requests if request.session is not None and request.id not in done}
    begun = {request.session for request in requests if request.session is not None and request.id in done}
    if wanted := broken_off & begun:
        for trajectory in read_trajectories(records):
            if trajectory.session in wanted and trajectory.stop != "cancelled":
                agent.restore(trajectory)
