"""Assembly: an agent made of a project's bundle, a policy and a world, as a config says; and the job `run`.

The one place that puts runtime, decode and simulate together, so that `run`, evaluation, training and serving carry
requests through the same agent.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import msgspec
import orjson
from msgspec import Meta

from harnessctl.bundle.files import Bundle
from harnessctl.errors import HookError, UsageError
from harnessctl.policies import ModelConfig, PolicyName, SamplingConfig, open_policy, sampling_of
from harnessctl.records.comment import CommentInput
from harnessctl.records.trajectory import Trajectory
from harnessctl.runtime.agent import Agent
from harnessctl.runtime.batch import BatchResult, run_many
from harnessctl.runtime.protocols import Model, Sampling, World
from harnessctl.trajectory import TrajectoryWriter, ViewerNames

if TYPE_CHECKING:
    from harnessctl.simulate.world import LiveWorld

#: Finds the bundle of another harness by name; the judge of a hook is one.
BundleSource = Callable[[str], Bundle]


class LimitsConfig(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """Limits that a run may replace: none of them is cited in a text, so the prompt stays what it was."""

    deadline_s: Annotated[float, Meta(gt=0)] | None = None
    tool_timeout_s: Annotated[float, Meta(gt=0)] | None = None
    model_retries: Annotated[int, Meta(ge=0)] | None = None
    max_parallel_tools: Annotated[int, Meta(ge=1)] | None = None

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
    repeats: Annotated[int, Meta(ge=1)] = 1
    workers: Annotated[int, Meta(ge=1, le=256)] = 1
    simulate: bool = False
    insist: bool = False
    viewers: Literal["keep", "hash", "drop"] = "keep"
    limits: LimitsConfig = msgspec.field(default_factory=LimitsConfig)


class HarnessJudge:
    """Lets another harness of the project judge, for hooks with a `judge` check.

    The judge answers as JSON; its harness's `scores` says where each score is. A score that is missing is no score:
    HookError, never a low one.
    """

    def __init__(self, bundles: BundleSource, model: Model, world: World | None, sampling: Sampling) -> None:
        self._bundles = bundles
        self._model = model
        self._world = world
        self._sampling = sampling
        self._agents: dict[str, Agent] = {}

    async def judge(self, harness: str, context: dict[str, Any], deadline: float) -> dict[str, Any]:
        """The scores by name, and the whole answer's own fields beside them."""
        agent = self._agents.get(harness)
        if agent is None:
            agent = await Agent.open(self._bundles(harness), self._model, world=self._world, sampling=self._sampling)
            self._agents[harness] = agent
        text = context.get("text") or context.get("reply") or ""
        trajectory = await agent.run(CommentInput(id=f"judge-{harness}", text=str(text), context=context))
        if trajectory.stop != "replied":
            raise HookError(f"the judge ended {trajectory.stop}: {trajectory.error or 'no reply'}")
        try:
            answer = orjson.loads(trajectory.reply)
        except orjson.JSONDecodeError as error:
            raise HookError(f"the judge's reply is not JSON: {error}") from error
        if not isinstance(answer, dict):
            raise HookError("the judge's reply is no JSON object")
        scores = {name: _pick(answer, pointer) for name, pointer in agent.state.scores.items()}
        missing = sorted(name for name, value in scores.items() if value is None)
        if missing:
            raise HookError(f"the judge's reply has no {', '.join(missing)}")
        return {**answer, **scores}

    async def aclose(self) -> None:
        """Close the judges that were opened."""
        for agent in self._agents.values():
            await agent.aclose()


def _pick(document: Any, pointer: str) -> Any:
    """The part of `document` at a JSON Pointer, None when there is none."""
    for part in pointer.split("/")[1:]:
        key = part.replace("~1", "/").replace("~0", "~")
        if isinstance(document, dict):
            document = document.get(key)
        elif isinstance(document, list) and key.isdigit() and int(key) < len(document):
            document = document[int(key)]
        else:
            return None
    return document


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
) -> AsyncIterator[Agent]:
    """The agent of a config, with judge and world; everything that was opened is closed behind it."""
    policy = model or open_policy(config.policy, config.model, script=config.script)
    sampling = sampling_of(config.sampling, seed=config.seed)
    judge = HarnessJudge(bundles, policy, world, sampling)
    try:
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
        )
        try:
            yield agent
        finally:
            await agent.aclose()
    finally:
        await judge.aclose()
        if model is None:
            await policy.aclose()


def planned(requests: Sequence[CommentInput], config: RunConfig) -> list[CommentInput]:
    """The requests of a run: the first `limit`, viewers named as asked, each `repeats` times with ids #2, #3, ..."""
    names = ViewerNames(config.viewers, os.environ.get("HARNESSCTL_VIEWER_KEY", "").encode())
    chosen = [names.apply(request) for request in requests[: config.limit]]
    out = list(chosen)
    for number in range(2, config.repeats + 1):
        for request in chosen:
            session = None if request.session is None else f"{request.session}#{number}"
            out.append(msgspec.structs.replace(request, id=f"{request.id}#{number}", session=session))
    return out


async def answer(
    bundle: Bundle,
    config: RunConfig,
    requests: Sequence[CommentInput],
    records: Path,
    *,
    world: World | None,
    bundles: BundleSource,
    done_before: set[str] | None = None,
    on_done: Callable[[Trajectory], None] | None = None,
    on_open: Callable[[Agent], None] | None = None,
) -> BatchResult:
    """Answer `requests` (as `planned` gives them), each trajectory appended to `records` at once."""
    async with open_agent(bundle, config, world=world, bundles=bundles) as agent:
        if on_open is not None:
            on_open(agent)
        with TrajectoryWriter(records) as writer:
            return await run_many(
                agent,
                requests,
                writer=writer,
                concurrency=config.workers,
                done_before=done_before or (),
                on_done=on_done,
            )
