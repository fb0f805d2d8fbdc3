"""Scripted: a model that answers from a script; for tests, demonstrations and replays.

A script file is JSON Lines, in one of two forms, never both.

**Replies in order**: each line is a reply; the n-th call that the model gets takes the n-th line.

    {"tool_calls": [{"name": "load_skill", "arguments": {"skill": "item-qa"}}]}
    {"error": {"message": "429 Too Many Requests", "retryable": true, "retry_after": 1}}
    {"content": "It costs 39.90 yuan."}

**Conversations**: each line has `replies`, and `match`, a text that a user message must contain.

    {"match": "price of link 3", "replies": [{"tool_calls": [...]}, {"content": "39.90 yuan."}]}

Which reply is due depends on the messages alone, so that any number of requests may run at once, in any order: the
latest user message that some line matches chooses the line (the first that does), and the assistant messages after it
are counted. So what a hook says to the model in the role of the user does not disturb the count unless it matches. A
line without `match` takes what no other line matches, and counts every assistant message. Only errors are remembered:
one is raised `times` times (default 1) when its turn comes, and then what follows it is due; requests whose matched
message is the same text share this count.

A reply has `content`, `reasoning`, `tool_calls` (`name`; `arguments`, an object, or a string that is passed on as it
is; `id`), `finish_reason`, `usage`, `ttft_s`, and `delay_s`, the seconds it takes (reaching past the deadline: the
model never answers); or `error` (`message`, `retryable`, `retry_after`, `times`) and perhaps `delay_s`. Names are
those that the model is shown.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any, cast

import msgspec
import orjson

from harnessctl.errors import ModelError, RecordError
from harnessctl.records.trajectory import Usage
from harnessctl.runtime.models.wire import made_up_id
from harnessctl.runtime.protocols import ModelReply, ModelRequest, ModelToolCall
from harnessctl.storage import read_json_lines


class ScriptedCall(msgspec.Struct, forbid_unknown_fields=True):
    """A tool call. `arguments` given as an object become text at once; without an `id` one is made up."""

    name: str
    arguments: dict[str, Any] | str = {}
    id: str | None = None

    def __post_init__(self) -> None:
        if isinstance(self.arguments, dict):
            self.arguments = orjson.dumps(self.arguments).decode()


class ScriptedError(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """A ModelError to raise, `times` times."""

    message: str
    retryable: bool = True
    retry_after: float | None = None
    times: int = 1


class ScriptedReply(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """One reply, or an error in its place."""

    content: str | None = None
    reasoning: str | None = None
    tool_calls: list[ScriptedCall] = []
    finish_reason: str | None = None
    usage: Usage = msgspec.field(default_factory=Usage)
    ttft_s: float | None = None
    delay_s: float = 0.0
    error: ScriptedError | None = None

    def __post_init__(self) -> None:
        if self.error is not None and (self.content is not None or self.reasoning is not None or self.tool_calls):
            raise ValueError("an error stands alone; put the reply after it")


class Conversation(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """The replies to the requests whose viewer says `match`."""

    match: str = ""
    replies: list[ScriptedReply]


Script = Sequence[ScriptedReply] | Sequence[Conversation] | Callable[[ModelRequest], ScriptedReply]


class ScriptedModel:
    """A model with a script: replies in order, conversations, or a function of the request.

    A script that has run out is a ModelError that names the call. `sleep` and `monotonic` (seconds) are given by tests.
    """

    template: str | None = None

    def __init__(
        self,
        script: Script,
        *,
        name: str = "scripted",
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self.name = name
        self._sleep = sleep
        self._monotonic = monotonic
        if callable(script):
            self._due: Callable[[ModelRequest], ScriptedReply] = script
        elif script and isinstance(script[0], Conversation):
            self._due = _Conversations(cast("Sequence[Conversation]", script)).due
        else:
            self._due = _InOrder(cast("Sequence[ScriptedReply]", script)).due

    @classmethod
    def from_file(cls, path: Path, **given: Any) -> ScriptedModel:
        """The model of a script file; RecordError names path, line and cause."""
        return cls(read_script(path), **given)

    async def complete(self, request: ModelRequest) -> ModelReply:
        """The reply that is due; its error as ModelError."""
        reply = self._due(request)
        if reply.delay_s > 0:
            left = max(0.0, request.deadline - self._monotonic())
            await self._sleep(min(reply.delay_s, left))
            if reply.delay_s >= left:
                raise ModelError(f"the script gave no answer within {left:.1f} s", retryable=False)
        if reply.error is not None:
            error = reply.error
            raise ModelError(error.message, retryable=error.retryable, retry_after=error.retry_after)
        return ModelReply(
            content=reply.content,
            tool_calls=[
                ModelToolCall(call.id or made_up_id(request, position), call.name, cast("str", call.arguments))
                for position, call in enumerate(reply.tool_calls)
            ],
            reasoning=reply.reasoning,
            finish_reason=reply.finish_reason or ("tool_calls" if reply.tool_calls else "stop"),
            usage=reply.usage,
            ttft_s=reply.ttft_s,
        )

    async def aclose(self) -> None:
        """Nothing is held."""


def read_script(path: Path) -> list[ScriptedReply] | list[Conversation]:
    """The script in `path`; RecordError names path, line and cause."""
    replies: list[ScriptedReply] = []
    conversations: list[Conversation] = []
    for number, document in read_json_lines(path):
        try:
            if isinstance(document, dict) and "replies" in document:
                conversations.append(msgspec.convert(document, Conversation))
            else:
                replies.append(msgspec.convert(document, ScriptedReply))
        except msgspec.ValidationError as error:
            raise RecordError(f"{path}:{number}: not a line of a script: {error}") from error
        if replies and conversations:
            raise RecordError(
                f"{path}:{number}: replies in order and conversations are mixed in one script",
                hint='give every line "replies", or none',
            )
    return conversations or replies


class _InOrder:
    """Gives each call the next reply."""

    def __init__(self, replies: Sequence[ScriptedReply]) -> None:
        self._replies = [reply for reply in replies for _ in range(reply.error.times if reply.error else 1)]
        self._next = 0

    def due(self, request: ModelRequest) -> ScriptedReply:
        if self._next >= len(self._replies):
            raise ModelError(
                f"the script has run out: it has {len(self._replies)} replies and this is call {self._next + 1}",
                retryable=False,
            )
        self._next += 1
        return self._replies[self._next - 1]


class _Conversations:
    """Finds the reply that is due from the messages; remembers only which errors have been raised."""

    def __init__(self, conversations: Sequence[Conversation]) -> None:
        self._lines = [(conversation.match, _steps(conversation.replies)) for conversation in conversations]
        self._matches = [(line, match) for line, (match, _) in enumerate(self._lines) if match]
        self._default = next((line for line, (match, _) in enumerate(self._lines) if not match), None)
        self._raised: dict[tuple[int, int, str], int] = {}

    def due(self, request: ModelRequest) -> ScriptedReply:
        line, step, text = self._place(request)
        steps = self._lines[line][1]
        if step >= len(steps):
            raise self._run_out(line, step, text)
        errors, reply = steps[step]
        if errors:
            key = (line, step, text)
            raised = self._raised.get(key, 0)
            if raised < len(errors):
                self._raised[key] = raised + 1
                return errors[raised]
            self._raised.pop(key)
        if reply is None:
            raise self._run_out(line, step, text)
        return reply

    def _place(self, request: ModelRequest) -> tuple[int, int, str]:
        """(line, assistant messages since the user message that it matches, that message)."""
        step = 0
        latest = ""
        for message in reversed(request.messages):
            if message["role"] == "assistant":
                step += 1
            elif message["role"] == "user":
                text = _text(message.get("content"))
                latest = latest or text
                for line, match in self._matches:
                    if match in text:
                        return line, step, text
        if self._default is None:
            raise ModelError(f"no line of the script matches the user message {_shown(latest)}", retryable=False)
        return self._default, step, latest

    def _run_out(self, line: int, step: int, text: str) -> ModelError:
        match, steps = self._lines[line]
        return ModelError(
            f"the script has run out: line {line + 1} (match {match!r}) has {len(steps)} replies and this is call "
            f"{step + 1} for the user message {_shown(text)}",
            retryable=False,
        )


def _steps(replies: Sequence[ScriptedReply]) -> list[tuple[list[ScriptedReply], ScriptedReply | None]]:
    """(errors to raise first, reply) for each turn; a last turn of errors alone has no reply."""
    steps: list[tuple[list[ScriptedReply], ScriptedReply | None]] = []
    errors: list[ScriptedReply] = []
    for reply in replies:
        if reply.error is not None:
            errors.extend([reply] * reply.error.times)
        else:
            steps.append((errors, reply))
            errors = []
    if errors:
        steps.append((errors, None))
    return steps


def _text(content: Any) -> str:
    """The text of a message's content, which may be a list of parts."""
    if isinstance(content, list):
        return "".join(part.get("text", "") for part in content)
    return content or ""


def _shown(text: str) -> str:
    """`text`, quoted and short."""
    return repr(text if len(text) <= 80 else text[:79] + "…")
