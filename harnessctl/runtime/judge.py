"""Judge: other harnesses of the project, run for the hooks that ask one, with the model of the run.

What always holds: a judge gets only what the hook's `input` names (and the run's world, if it reads the same one); each
request to it has an id of its own, made of what is asked and how often, so that a seeded run asks the same way in
whatever order its requests come; no score is an error of the hook, never a low score.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from typing import Any

import orjson

from harnessctl.bundle import Bundle
from harnessctl.errors import HarnessctlError, HookError
from harnessctl.records.comment import CommentInput
from harnessctl.runtime.agent import Agent
from harnessctl.runtime.model_json import read_json
from harnessctl.runtime.protocols import Model, Sampling, World
from harnessctl.runtime.tools.http import MISSING, at_pointer
from harnessctl.storage import digest_bytes

#: Finds the bundle of another harness by name; may raise any HarnessctlError.
BundleSource = Callable[[str], Bundle]


class HarnessJudge:
    """runtime.checks.check.Judge over the harnesses that `open` found. A judge replies with a JSON object; its harness's
    `scores` says where in it each score is."""

    def __init__(self) -> None:
        self._agents: dict[str, Agent] = {}
        self._broken: dict[str, str] = {}
        self._asked: Counter[str] = Counter()

    @classmethod
    async def open(
        cls,
        bundle: Bundle,
        bundles: BundleSource,
        model: Model,
        *,
        world: World | None,
        sampling: Sampling,
        simulate: bool = False,
    ) -> HarnessJudge:
        """The judges that the hooks of `bundle`, and of those judges, ask for; close it with `aclose`.

        One that cannot be had is an error of each hook that asks it, and stands in `warnings`.
        """
        judge = cls()
        wanted = judges_of(bundle)
        try:
            while wanted:
                name = wanted.pop(0)
                if name in judge._agents or name in judge._broken:
                    continue
                try:
                    # In a thread: the project may have to be compiled for it, which asks servers on a loop of its own.
                    found = await asyncio.to_thread(bundles, name)
                    seen = _world_of(found, bundle, world)
                    judge._agents[name] = await Agent.open(
                        found, model, world=seen, judge=judge, sampling=sampling, simulate=simulate
                    )
                except HarnessctlError as error:
                    judge._broken[name] = error.render().removeprefix("error: ")
                else:
                    wanted += judges_of(found)
        except BaseException:  # a cancelled start must leave no server behind
            await judge.aclose()
            raise
        return judge

    @property
    def warnings(self) -> list[str]:
        """The judges that cannot be had, and why."""
        return [f"judge `{name}`: {cause}" for name, cause in self._broken.items()]

    async def judge(self, harness: str, context: dict[str, Any], deadline: float) -> dict[str, Any]:
        """The scores by name, and the whole answer's own fields beside them. HookError when there are none in time."""
        agent = self._agents.get(harness)
        if agent is None:
            raise HookError(self._broken.get(harness, "there is no such harness"))
        text = context.get("text") or context.get("reply") or ""
        request = CommentInput(id=self._id(harness, context), text=str(text), context=context)
        trajectory = await agent.run(request, deadline=deadline)
        if trajectory.stop != "replied":
            raise HookError(f"it ended {trajectory.stop}: {trajectory.error or 'no reply'}")
        answer, cause = read_json(trajectory.reply)
        if cause or not isinstance(answer, dict):
            raise HookError(f"its reply is no JSON object{f': {cause}' if cause else ''}")
        scores = {name: at_pointer(answer, pointer) for name, pointer in agent.state.scores.items()}
        missing = sorted(name for name, value in scores.items() if value is MISSING or value is None)
        if missing:
            raise HookError(f"its reply has no {', '.join(missing)}")
        return {**answer, **scores}

    def _id(self, harness: str, context: dict[str, Any]) -> str:
        asked = orjson.dumps(context, default=str, option=orjson.OPT_SORT_KEYS | orjson.OPT_NON_STR_KEYS)
        name = f"judge-{harness}-{digest_bytes(asked)[:12]}"
        self._asked[name] += 1
        return f"{name}-{self._asked[name]}"

    async def aclose(self) -> None:
        """Close the judges that were opened."""
        for agent in self._agents.values():
            await agent.aclose()


def judges_of(bundle: Bundle) -> list[str]:
    """The harnesses that the hooks of `bundle` ask to judge, each once, in order."""
    found: dict[str, None] = {}

    def look(check: dict[str, Any] | None) -> None:
        for key, value in (check or {}).items():
            if key == "judge":
                found[value["harness"]] = None
            elif key == "not":
                look(value)
            elif key in ("all", "any"):
                for part in value:
                    look(part)

    for hook in bundle.state.hooks:
        look(hook.check)
    return list(found)


def _world_of(judge: Bundle, asking: Bundle, world: World | None) -> World | None:
    """The world that a judge reads: none, or that of the run."""
    if judge.world is None:
        return None
    if judge.world != asking.world or world is None:
        raise HookError(f"it reads the world {judge.world}, which is not that of {asking.name}")
    return world
