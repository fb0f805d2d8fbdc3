"""Request under way: the state that one request's loop moves forward, and the record it becomes."""

from __future__ import annotations

import random
from typing import Any

from harnessctl.records.comment import CommentInput
from harnessctl.records.trajectory import ModelCall
from harnessctl.runtime.pending import PendingCall
from harnessctl.runtime.protocols import Sampling, SandboxedWorld, ToolContext
from harnessctl.runtime.repeat import RepeatDetector
from harnessctl.runtime.scene import Scene
from harnessctl.runtime.session import Session
from harnessctl.runtime.tokens import TokenPaths


class RequestRun:
    """One request. `messages` is the scene's own list and only grows; `head` is how many of them came before this turn.
    `viewer_messages` are the viewers' words, cleaned, as prompt blocks read them.

    `world` is the request's own copy, where requests are isolated and have no session. `deadline` is one that the caller set, beside the harness's own. `pending` are the tool calls that are being run: a request that is cut off records what became of them.
    """

    __slots__ = (
        "calls",
        "deadline",
        "drawn",
        "head",
        "messages",
        "paths",
        "pending",
        "prompt_digest",
        "random",
        "repeats",
        "request",
        "sampling",
        "scene",
        "seed",
        "session",
        "started_at",
        "system",
        "tool_context",
        "turn",
        "viewer_messages",
        "world",
    )

    def __init__(
        self,
        request: CommentInput,
        scene: Scene,
        session: Session | None,
        *,
        viewer_messages: list[dict[str, Any]],
        sampling: Sampling,
        seed: int,
        deadline: float | None,
        started_at: str,
    ) -> None:
        self.request = request
        self.scene = scene
        self.session = session
        self.viewer_messages = viewer_messages
        self.sampling = sampling
        self.seed = seed
        self.deadline = deadline
        self.started_at = started_at
        self.messages: list[dict[str, Any]] = scene.messages
        self.head = 0
        self.system = ""
        self.turn = 0
        self.calls: list[ModelCall] = []
        self.paths = TokenPaths()
        self.repeats = RepeatDetector(int(scene.limits["max_repeats"]))
        self.pending: list[PendingCall] = []
        self.prompt_digest: str | None = None
        self.random: random.Random | None = None
        #: How often each call (tool and arguments) was made, for the source of faults.
        self.drawn: dict[tuple[str, bytes], int] = {}
        self.tool_context: ToolContext | None = None
        self.world: SandboxedWorld | None = None

    def jitter(self) -> float:
        """The next number in [0, 1) of this request's own stream."""
        if self.random is None:
            self.random = random.Random(f"{self.seed}:{self.request.id}")
        return self.random.random()
