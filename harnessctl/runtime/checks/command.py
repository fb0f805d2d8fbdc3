"""command: a program decides, in one of three protocols. Each gets one JSON document on standard input.

`harnessctl`: the document holds `protocol hook event` and the names of the event (see runtime.names), `calls` as a list.
Exit 0 passes, 2 fails with standard error as the reason (given to the model), another code passes with a warning.
Standard output is not looked at. `claude` and `gemini`: see `peers`.
"""

from __future__ import annotations

import asyncio
import threading
import weakref
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any

import msgspec
import orjson

from harnessctl.errors import HookError
from harnessctl.manifests.specs.hooks import CommandCheck
from harnessctl.runtime.checks import peers
from harnessctl.runtime.checks.check import PASSED, Check, Moment, Outcome, Setting, as_text, read_spec
from harnessctl.runtime.checks.waiting import within
from harnessctl.runtime.command import MAX_STDOUT_BYTES, Command, Finished
from harnessctl.runtime.names import finished_calls, plain_call
from harnessctl.runtime.tools.threads import Threads

PROTOCOL = "harnessctl/hook.v1"

#: Programs that one hook runs at a time; further calls wait, within their time-out.
MAX_PROCESSES = 32
#: Seconds that a program's end may take after its deadline.
_GRACE_S = 1.0


def command_call(raw: Any, setting: Setting) -> Callable[[Moment], Awaitable[Outcome]]:
    """Runs the program at a moment and reads its answer; HookError for whatever goes wrong."""
    spec = read_spec(raw, CommandCheck)
    command = Command(run=spec.run, shell=spec.shell, env=spec.env)
    threads = Threads(MAX_PROCESSES)
    missing = [name for name in spec.files if name not in setting.state.files]
    if missing:
        raise HookError(f"command: the bundle does not carry {', '.join(missing)}")

    def document(moment: Moment, folder: Path) -> bytes:
        if spec.protocol == "harnessctl":
            return encoded(_document(moment, setting.hook))
        return encoded(peers.DOCUMENTS[spec.protocol](moment, setting.hook, str(folder)))

    async def call(moment: Moment) -> Outcome:
        cancelled = threading.Event()

        def run() -> Finished:
            folder = setting.layout.folder()
            return command.run(
                document(moment, folder),
                folder=folder,
                extra={name: str(folder) for name in peers.FOLDER_VARIABLES.get(spec.protocol, ())},
                deadline=moment.deadline,
                cancelled=cancelled,
            )

        async def finished_run() -> Finished:
            return await asyncio.wrap_future(threads.submit(run))

        try:
            finished = await within(finished_run(), moment.deadline + _GRACE_S)
        finally:
            cancelled.set()
        return _outcome(finished, spec.protocol, moment)

    weakref.finalize(call, threads.close).atexit = False
    return call


def compile_command(raw: Any, setting: Setting) -> Check:
    """Nothing is launched before the hook runs."""
    return Check(wait=command_call(raw, setting))


def _outcome(finished: Finished, protocol: str, moment: Moment) -> Outcome:
    if finished.code == 2:
        return Outcome(ok=False, reason=finished.stderr, told=bool(finished.stderr))
    if finished.code:
        tail = f": {finished.stderr[-300:]}" if finished.stderr else ""
        return Outcome(ok=True, warning=f"exit {finished.code}{tail}")
    if protocol == "harnessctl":
        return PASSED
    if finished.cut:
        raise HookError(f"it wrote more than {MAX_STDOUT_BYTES} bytes to standard output")
    return peers.read_answer(finished.stdout, protocol, moment)


def _document(moment: Moment, hook: str) -> dict[str, Any]:
    names = dict(moment.names)
    names["calls"] = [plain_call(call) for call in finished_calls(moment.scene, "session")]
    return {"protocol": PROTOCOL, "hook": hook, "event": moment.event, **names}


def encoded(document: Mapping[str, Any]) -> bytes:
    """The document as one line of JSON; what JSON cannot hold is written as text."""
    try:
        return orjson.dumps(document, default=_plain, option=orjson.OPT_NON_STR_KEYS) + b"\n"
    except TypeError:
        return as_text(document).encode(errors="replace") + b"\n"


def _plain(value: Any) -> Any:
    return msgspec.to_builtins(value) if isinstance(value, msgspec.Struct) else str(value)


CHECKS = {"command": compile_command}
