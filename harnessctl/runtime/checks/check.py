"""Check: a compiled check, what it looks at, and what it answers.

What always holds: a check decides nothing and changes nothing; it answers with an Outcome, or raises HookError when it
could not be run. One that never waits is a plain function (`test`); only the others are awaited (`wait`).
"""

from __future__ import annotations

import functools
import json
import operator
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, TypeVar

import msgspec
import orjson

from harnessctl.bundle.state import HarnessState, Tool
from harnessctl.errors import HookError
from harnessctl.manifests.events import READABLE
from harnessctl.runtime.code import Code
from harnessctl.runtime.layout import Layout
from harnessctl.runtime.names import names_of
from harnessctl.runtime.scene import Scene

S = TypeVar("S")


class Judge(Protocol):
    """Runs another harness of the project over a context. Given from above; the runtime knows no judge."""

    async def judge(self, harness: str, context: dict[str, Any], deadline: float) -> dict[str, Any]:
        """The scores by name (and, if it likes, a `reason`); may raise anything. `deadline` is on time.monotonic()."""
        ...


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """What a check answers.

    `reason` says why it failed, with names in code spans, canonical; `told` says that it was written for the model
    (by a python, command or judge check). `value` is what the event's writable target should become; unset leaves it.
    `warning` is kept in the record of a check that passed. `stop` ends the loop, whatever the hook's action is.
    """

    ok: bool
    reason: str = ""
    told: bool = False
    value: Any = msgspec.UNSET
    warning: str = ""
    stop: bool = False


PASSED = Outcome(ok=True)


@dataclass(slots=True)
class Moment:
    """One event of a scene. `deadline` (time.monotonic()) is when the hook under way must have answered."""

    event: str
    scene: Scene
    tools: Mapping[str, Tool]
    deadline: float = 0.0
    known: dict[str, Any] | None = None

    @property
    def names(self) -> dict[str, Any]:
        """The names that expressions see, made when first asked for; `known = None` forgets them after a rewrite."""
        if self.known is None:
            self.known = names_of(self.event, self.scene, self.tools)
        return self.known


Test = Callable[[Moment], Outcome]
Wait = Callable[[Moment], Awaitable[Outcome]]


class Check(NamedTuple):
    """A compiled check: exactly one of `test` and `wait`."""

    test: Test | None = None
    wait: Wait | None = None


@dataclass(slots=True, frozen=True)
class Setting:
    """What a check is compiled in: the hook that it belongs to and everything that it may lean on."""

    hook: str
    event: str
    state: HarnessState
    tools: Mapping[str, Tool]
    code: Code
    layout: Layout
    judge: Judge | None = None

    def limit(self, name: str) -> str:
        """`name`, which must be one of the harness's limits; HookError otherwise."""
        if name not in self.state.limits:
            raise HookError(f"there is no limit `{name}`", hint=f"limits: {', '.join(sorted(self.state.limits))}")
        return name

    def target(self, name: str | None) -> str:
        """The target that a check named, or the event's own; HookError when the event has no such thing."""
        readable = READABLE[self.event]
        if name is not None and name not in readable:
            raise HookError(f"there is no {name} at {self.event}", hint=f"targets: {', '.join(readable)}")
        return name or readable[0]


Compiler = Callable[[Any, Setting], Check]


def read_spec(raw: Any, kind: type[S]) -> S:
    """A part of a hook as its manifest spec; HookError when it does not fit."""
    try:
        return msgspec.convert(raw, kind)
    except msgspec.ValidationError as error:
        raise HookError(f"not a {kind.__name__}: {error}") from error


@functools.cache
def value_of(target: str) -> Callable[[Moment], Any]:
    """A function that takes the target out of a moment as it is."""
    return operator.attrgetter(f"scene.{target}")


@functools.cache
def text_of(target: str) -> Callable[[Moment], str]:
    """A function that takes the target out of a moment as text: arguments and results that are no text as compact JSON."""
    read = value_of(target)
    return (lambda moment: as_text(read(moment))) if target in ("args", "result") else read


def as_text(value: Any) -> str:
    """`value` as text: a string as it is, nothing for null, anything else as compact JSON."""
    if isinstance(value, str):
        return value
    if value is None:
        return ""
    try:
        return orjson.dumps(value, default=str, option=orjson.OPT_NON_STR_KEYS).decode()
    except TypeError:  # integers beyond 64 bits and lone surrogates, which orjson refuses
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=str)


async def ask(check: Check, moment: Moment) -> Outcome:
    """The check's outcome, waiting only for a check that has to wait."""
    if check.test is not None:
        return check.test(moment)
    assert check.wait is not None
    return await check.wait(moment)
