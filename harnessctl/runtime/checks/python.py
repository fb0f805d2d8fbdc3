"""python: a function of the project decides. It is called with the names of the event (see runtime.names).

The function gets one argument, a read-only mapping whose values are copies, and returns

- a bool;
- a string: the reason why the check failed, given to the model; an empty one passes;
- `{"ok": bool, "reason": str, "value": ...}`: `value` is what the event's target is to become. It is put in place when
  the check passes, and when it fails and the hook's action is `rewrite` without a template of its own.

How it is run follows from how it is written, as for python tools: `async def` runs on the event loop and must not
block; `def` runs in a thread, so that one that hangs is given up at the hook's time-out; `def` with the attribute
`inline = True` runs on the event loop, faster, and nothing can stop it. What it raises, and anything else that it
returns, is a HookError.
"""

from __future__ import annotations

import asyncio
import functools
import inspect
import weakref
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import msgspec

from harnessctl.errors import HookError
from harnessctl.runtime.checks.check import PASSED, Check, Moment, Outcome, Setting
from harnessctl.runtime.checks.waiting import within
from harnessctl.runtime.names import NamesView
from harnessctl.runtime.tools.threads import Threads

#: Threads of one hook; calls that hang hold them, and later ones wait for one until their own time-out.
MAX_THREADS = 16


def compile_python(raw: Any, setting: Setting) -> Check:
    """Loads the function now; a module that fails to load is reported at each run of the hook."""
    call = python_call(raw, setting)

    async def wait(moment: Moment) -> Outcome:
        return outcome_of(await call(moment))

    return Check(wait=wait)


def python_call(target: Any, setting: Setting) -> Callable[[Moment], Awaitable[Any]]:
    """What the function `module:function` returns at a moment; HookError for whatever goes wrong."""
    if not isinstance(target, str):
        raise HookError(f"python: a target is module:function; got {target!r}")
    function = setting.code.function(target, error=HookError)
    on_loop = inspect.iscoroutinefunction(function) or getattr(function, "inline", False) is True
    threads = Threads(MAX_THREADS)

    async def begin(names: NamesView) -> Any:
        if on_loop:
            value = function(names)
        else:
            value = await asyncio.wrap_future(threads.submit(functools.partial(function, names)))
        return await value if inspect.isawaitable(value) else value

    async def call(moment: Moment) -> Any:
        return await within(begin(NamesView(moment.names)), moment.deadline)

    weakref.finalize(call, threads.close).atexit = False
    return call


def outcome_of(value: Any) -> Outcome:
    """What a function's return value means; HookError for one that means nothing."""
    if isinstance(value, bool):
        return PASSED if value else Outcome(ok=False)
    if isinstance(value, str):
        return Outcome(ok=False, reason=value, told=True) if value else PASSED
    if isinstance(value, Mapping):
        unknown = value.keys() - {"ok", "reason", "value"}
        ok, reason = value.get("ok"), value.get("reason") or ""
        if not unknown and isinstance(ok, bool) and isinstance(reason, str):
            return Outcome(ok=ok, reason=reason, told=bool(reason), value=value.get("value", msgspec.UNSET))
    raise HookError(f"it returned {str(value)[:80]!r}; allowed: bool, str, {{ok: bool, reason: str, value: ...}}")


CHECKS = {"python": compile_python}
