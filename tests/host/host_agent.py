"""The shipped host, compiled once from the repository, and scripted runs of it."""

from __future__ import annotations

import asyncio
import logging
import shutil
import tempfile
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any

from harnessctl.bundle import Bundle, read_bundle
from harnessctl.compile.project import CompileResult, compile_project
from harnessctl.records.comment import CommentInput, ViewerMessage
from harnessctl.records.trajectory import Trajectory
from harnessctl.runtime.agent import Agent
from harnessctl.runtime.models.scripted import ScriptedCall, ScriptedModel, ScriptedReply
from harnessctl.simulate.world import LiveWorld, open_world

REPOSITORY = Path(__file__).resolve().parents[2]

#: What the model does in one round: a reply, or calls as (name, arguments).
Step = str | list[tuple[str, dict[str, Any]]]


@cache
def compiled() -> CompileResult:
    """The repository's manifests and skills, compiled in a folder of their own, so that nothing is written here."""
    folder = tempfile.TemporaryDirectory(prefix="host-")
    root = Path(folder.name)
    for name in ("manifests", "skills"):
        shutil.copytree(REPOSITORY / name, root / name, ignore=shutil.ignore_patterns("__pycache__"))
    result = compile_project(root)
    _FOLDERS.append(folder)
    return result


_FOLDERS: list[tempfile.TemporaryDirectory[str]] = []


@cache
def bundle(harness: str = "live-stream") -> Bundle:
    """The compiled harness."""
    return read_bundle(compiled().path(harness))


@cache
def world() -> LiveWorld:
    """The shipped world; tests take sandboxes of it."""
    return open_world(REPOSITORY / "manifests/worlds/live-room.yaml")


def comment(text: str, *, viewer: str = "viewer", room: str | None = "spring-table", **fields: Any) -> CommentInput:
    """One comment of one viewer."""
    return CommentInput(id="t", messages=[ViewerMessage(text, viewer=viewer)], room=room, **fields)


def steps(script: Iterable[Step]) -> list[ScriptedReply]:
    """The script as the scripted model takes it."""
    return [
        ScriptedReply(content=step)
        if isinstance(step, str)
        else ScriptedReply(tool_calls=[ScriptedCall(name, args) for name, args in step])
        for step in script
    ]


def play(
    request: CommentInput | list[CommentInput],
    *script: Step,
    harness: str = "live-stream",
    sandbox: LiveWorld | None = None,
    limits: dict[str, Any] | None = None,
) -> Trajectory:
    """The trajectory of a request (of the last one, of several turns) with a model that plays the script."""
    requests = request if isinstance(request, list) else [request]

    async def run() -> Trajectory:
        own = sandbox or world().sandbox()
        model = ScriptedModel(steps(script))
        async with await Agent.open(bundle(harness), model, world=own, env={}, limits=limits) as agent:
            trajectories = [await agent.run(each) for each in requests]
        if sandbox is None:
            own.close()
        return trajectories[-1]

    logging.getLogger("harnessctl.hooks").setLevel(logging.ERROR)
    return asyncio.run(run())


def decided(trajectory: Trajectory, hook: str) -> list[str]:
    """What a hook decided, in order."""
    return [decision.decision for decision in trajectory.hooks if decision.hook == hook]


def skill(name: str) -> list[tuple[str, dict[str, Any]]]:
    """The round in which a skill is loaded."""
    return [("load_skill", {"skill": name})]
