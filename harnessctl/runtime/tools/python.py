"""Python tools: a function gets the arguments as keywords, and `ctx` (ToolContext) if it declares one.

How a function is run follows from how it is written:

- `async def` runs on the event loop and is given its seconds from the moment it first waits. It must not block: use it
  for work that waits properly, or that is over in well under a millisecond (a SQLite look-up).
- `def` runs in a thread, so that one that hangs is given up at its time-out (see `harnessctl.runtime.tools.threads`).
- `def` with the attribute `inline = True` runs on the event loop like `async def`, without a thread; nothing can stop
  it, and while it runs nothing else does.
"""

from __future__ import annotations

import asyncio
import functools
import inspect
import traceback
from collections.abc import Awaitable, Callable
from typing import Any

from harnessctl.runtime.code import place
from harnessctl.runtime.foreign import said, tamed
from harnessctl.runtime.names import copied
from harnessctl.runtime.protocols import ToolContext
from harnessctl.runtime.tools import threads
from harnessctl.runtime.tools.threads import Threads

#: A TypeError raised from these files came before the function's first line.
_OWN_FILES = (__file__, threads.__file__)


class PythonCall:
    """One python tool, ready to be called."""

    def __init__(self, function: Callable[..., Any], threads: Threads) -> None:
        self._function = function
        self._threads = threads
        call = function if inspect.isroutine(function) else getattr(function, "__call__", function)  # noqa: B004
        self._inline = inspect.iscoroutinefunction(call) or getattr(function, "inline", False) is True
        self._takes_context = _takes_context(function)

    def begin(self, args: dict[str, Any], ctx: ToolContext) -> Any:
        """The result, or a coroutine that gives it. Raises what the function raises."""
        # Lists and objects are copied: what a function does to them is not what the record says the model wrote.
        args = {name: copied(value) if type(value) in (dict, list) else value for name, value in args.items()}
        if self._takes_context:
            args["ctx"] = ctx
        if self._inline:
            try:
                return self._function(**args)
            except GeneratorExit as error:
                raise tamed(error) from error
        return self._in_thread(functools.partial(self._function, **args))

    async def _in_thread(self, call: Callable[[], Any]) -> Any:
        result = await asyncio.wrap_future(self._threads.submit(call))
        return await result if isinstance(result, Awaitable) else result

    def missing_arguments(self, parameters: dict[str, Any]) -> str:
        """Why the function cannot take what the tool's `parameters` let a model send, or nothing."""
        sent, required = tuple(parameters.get("properties", ())), tuple(parameters.get("required", ()))
        try:
            return _missing(self._function, sent, required)
        except TypeError:  # a callable that cannot be hashed
            return ""


def not_begun(error: BaseException) -> bool:
    """Whether `error` says that the function cannot be called like that: it was raised before its first line."""
    frames = traceback.extract_tb(error.__traceback__)
    return isinstance(error, TypeError) and bool(frames) and frames[-1].filename in _OWN_FILES


def describe(error: BaseException) -> str:
    """What a function raised, as a sentence with the line where it is the bundle's own code."""
    text = said(error)
    return f"the tool failed: {type(error).__name__}{f': {text}' if text else ''}{place(error)}"


@functools.lru_cache(maxsize=1024)
def _signature(function: Callable[..., Any]) -> inspect.Signature:
    """Reading a signature costs more than a call; bundles with equal code share their functions."""
    return inspect.signature(function)


@functools.lru_cache(maxsize=1024)
def _missing(function: Callable[..., Any], properties: tuple[str, ...], required: tuple[str, ...]) -> str:
    try:
        taken = _signature(function).parameters.values()
    except (TypeError, ValueError):
        return ""
    names = {p.name for p in taken if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)}
    open_ended = any(p.kind is p.VAR_KEYWORD for p in taken)
    unknown = set() if open_ended else {*properties} - names
    wanted = {p.name for p in taken if p.name in names and p.default is p.empty} - {*required} - {"ctx"}
    return "; ".join(
        [f"the function takes no argument `{name}`" for name in sorted(unknown)]
        + [f"the function needs `{name}`, which the parameters do not require" for name in sorted(wanted)]
    )


def _takes_context(function: Callable[..., Any]) -> bool:
    try:
        return "ctx" in _signature(function).parameters
    except (TypeError, ValueError):  # a function written in C may have no signature
        return False
