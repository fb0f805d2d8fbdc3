"""Command: a hook's program, run once with JSON on standard input, with bounded time, memory and environment.

What always holds: what comes back is what the program itself did. A program that could not be started (missing, not
executable, a script that its interpreter cannot open or parse) is a HookError, whatever exit code says so, and so is
one that a signal ended. When a run is over, in whatever way, nothing of its process group is left. Output beyond the
bound is read and thrown away, so that no program blocks on us and none fills our memory.
"""

from __future__ import annotations

import atexit
import os
import re
import selectors
import shlex
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from harnessctl.errors import HookError

MAX_STDOUT_BYTES = 1_048_576
MAX_STDERR_BYTES = 65_536

_PASSED_ON = ("PATH", "HOME", "LANG", "TMPDIR")
#: A secret of ours, which a program gets only where its hook names it.
_SECRET = "HARNESSCTL_VIEWER_KEY"
_CHUNK = 65_536
#: Seconds between looks at a program that left its pipes to others, and at a request that was cancelled.
_LOOK_S = 0.05

_INTERPRETER = re.compile(r"(?:python[\d.]*|pypy[\d.]*|node|bash|sh|dash|zsh|ruby|perl|php)")
_CODE_OPTIONS = re.compile(r"-[A-Za-z]*[cme]|-p|-pe|--eval|--print|--version|-V|-v")
_VALUE_OPTIONS = {"-W", "-X", "-Q", "-r", "--require", "--import", "--loader", "-I", "-o"}
_SHELL_SYNTAX = re.compile(r"[|&;<>()$`\\*?\[#~=%\n]")
#: What interpreters say, at exit codes that would otherwise be a decision, of a script that they could not run.
_NOT_LAUNCHED = re.compile(
    r"can't open file '.*': \[Errno \d+\]"
    r"|^\S*python[\d.]*: No module named "
    r"|^Can't open perl script "
    r"|^\S*sh: (?:\d+: )?[Cc](?:annot|an't) open "
    r"|code: 'MODULE_NOT_FOUND'",
    re.MULTILINE,
)
#: The same of shells that could not parse; it counts only when it is about the hook's own script, not one that it looks at.
_NOT_PARSED = re.compile(r"^(\S+): (?:-c: )?(?:line )?\d+: (?:.*[Ss]yntax error|unexpected EOF)", re.MULTILINE)


#: The programs under way.
_running: set[subprocess.Popen[bytes]] = set()


class Finished(NamedTuple):
    """What a program did: exit code (never negative), output decoded with U+FFFD for what is not UTF-8; `cut` says
    that standard output was longer than MAX_STDOUT_BYTES."""

    code: int
    stdout: str
    stderr: str
    cut: bool


class Command:
    """A program by argument vector, or a shell line; started in `folder`, with a few variables of our environment.

    `env` names further variables that are passed on where they are set; `extra` are set to values of ours.
    """

    def __init__(self, *, run: Sequence[str] | None, shell: str | None, env: Sequence[str] = ()) -> None:
        if (run is None) == (shell is None) or run == []:
            raise HookError("command: exactly one of run and shell is given")
        self._argv = list(run) if run is not None else ["/bin/sh", "-c", shell or ""]
        self._looked_at = _plain_words(shell) if shell is not None else self._argv
        self._env = env

    def run(
        self, stdin: bytes, *, folder: Path, extra: Mapping[str, str], deadline: float, cancelled: threading.Event
    ) -> Finished:
        """Run to its end; blocking. HookError when it was not launched, was cut short or ended by a signal.

        `deadline` is on time.monotonic(). Setting `cancelled` ends the run soon, as the deadline does.
        """
        env = {name: value for name, value in os.environ.items() if self._passes(name)} | dict(extra)
        env.setdefault("PATH", os.defpath)
        find_program(self._looked_at, folder, env["PATH"])
        try:
            process = subprocess.Popen(
                self._argv,
                cwd=folder,
                env=env,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                start_new_session=True,
                bufsize=0,
            )
        except (OSError, ValueError) as error:
            raise HookError(f"`{self._argv[0]}` was not launched: {error}", hint=_launch_hint(error)) from error
        _running.add(process)
        try:
            output, errors, cut, in_time = _talk(process, stdin, deadline, cancelled)
        finally:
            _end(process)
            _running.discard(process)
        if not in_time:
            raise HookError("it was cancelled" if cancelled.is_set() else "it timed out and was killed")
        return self._finished(process.returncode, output, errors, cut)

    def _finished(self, code: int, output: bytes, errors: bytes, cut: bool) -> Finished:
        stderr = errors.decode(errors="replace").strip()
        if code < 0:
            raise HookError(f"signal {signal.Signals(-code).name} ended it{_tail(stderr)}")
        unparsed = _NOT_PARSED.search(stderr) if code else None
        if (
            code in (126, 127)
            or (code and _NOT_LAUNCHED.search(stderr))
            or (unparsed is not None and unparsed[1] in (*self._argv, *self._looked_at, "sh", "bash"))
        ):
            raise HookError(f"it was not launched (exit {code}){_tail(stderr)}")
        return Finished(code, output.decode(errors="replace"), stderr, cut)

    def _passes(self, name: str) -> bool:
        return name in _PASSED_ON or name in self._env or (name.startswith("HARNESSCTL_") and name != _SECRET)


def _tail(stderr: str) -> str:
    return f": {stderr[-300:]}" if stderr else ""


def _launch_hint(error: Exception) -> str:
    if isinstance(error, PermissionError):
        return "a script is made executable by a first line such as #!/usr/bin/env python3"
    if isinstance(error, FileNotFoundError):
        return "see that the program on its #! line is installed, and that the line does not end in CR LF"
    return ""


def _talk(
    process: subprocess.Popen[bytes], stdin: bytes, deadline: float, cancelled: threading.Event
) -> tuple[bytes, bytes, bool, bool]:
    """Feed and listen until the program has ended: (stdout, stderr, whether stdout was cut, whether it ended in time)."""
    assert process.stdin is not None and process.stdout is not None and process.stderr is not None
    kept = {process.stdout: bytearray(), process.stderr: bytearray()}
    bounds = {process.stdout: MAX_STDOUT_BYTES, process.stderr: MAX_STDERR_BYTES}
    cut = False
    rest = memoryview(stdin)
    with selectors.DefaultSelector() as selector:
        for stream, events in (
            (process.stdin, selectors.EVENT_WRITE),
            (process.stdout, selectors.EVENT_READ),
            (process.stderr, selectors.EVENT_READ),
        ):
            os.set_blocking(stream.fileno(), False)
            selector.register(stream, events)
        while selector.get_map():
            left = deadline - time.monotonic()
            if left <= 0 or cancelled.is_set():
                return b"", b"", cut, False
            ready = selector.select(min(left, _LOOK_S))
            if not any(key.fileobj is not process.stdin for key, _ in ready) and process.poll() is not None:
                break  # it has ended, and what it left behind holds its pipes
            for key, _ in ready:
                stream: Any = key.fileobj
                if stream is process.stdin:
                    rest = _feed(stream, rest)
                    if not rest:
                        selector.unregister(stream)
                        stream.close()
                    continue
                data = os.read(stream.fileno(), _CHUNK)
                if not data:
                    selector.unregister(stream)
                    continue
                room = bounds[stream] - len(kept[stream])
                kept[stream] += data[:room]
                cut = cut or (stream is process.stdout and len(data) > room)
    in_time = _ends_by(process, deadline, cancelled)
    return bytes(kept[process.stdout]), bytes(kept[process.stderr]), cut, in_time


def _feed(stream: Any, rest: memoryview) -> memoryview:
    """Write what fits; what is left. Nothing is left when the program does not listen."""
    try:
        return rest[os.write(stream.fileno(), rest[:_CHUNK]) :]
    except BlockingIOError:
        return rest
    except OSError:  # it closed its standard input, as a program may
        return rest[:0]


def _ends_by(process: subprocess.Popen[bytes], deadline: float, cancelled: threading.Event) -> bool:
    delay = 0.0005
    while process.poll() is None:
        if time.monotonic() >= deadline or cancelled.wait(delay):
            return False
        delay = min(delay * 2, _LOOK_S)
    return True


def _kill(process: subprocess.Popen[bytes]) -> None:
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):  # nothing is left; macOS says the latter of zombies
        pass


@atexit.register
def _kill_running() -> None:
    """The threads that look after programs are daemons: when we end, they no longer get to it."""
    for process in list(_running):
        _kill(process)


def _end(process: subprocess.Popen[bytes]) -> None:
    """Kill what is left of the process group and give everything back."""
    _kill(process)
    process.wait()
    for stream in (process.stdin, process.stdout, process.stderr):
        if stream is not None:
            stream.close()


def _plain_words(shell: str) -> list[str]:
    """The words of a shell line that starts one file or interpreter; nothing where the shell has to work it out."""
    if _SHELL_SYNTAX.search(shell):
        return []
    try:
        words = shlex.split(shell)
    except ValueError:
        return []
    return words if words and (os.sep in words[0] or _INTERPRETER.fullmatch(words[0])) else []


def find_program(argv: Sequence[str], folder: Path, path: str) -> None:
    """HookError when the program, or the script that it is given to run, is not there."""
    if not argv:
        return
    program = argv[0]
    if os.sep in program:
        if not (folder / program).is_file():
            raise HookError(f"`{program}` was not launched: there is no such file")
    elif shutil.which(program, path=path) is None:
        raise HookError(f"`{program}` was not launched: there is no such program on PATH")
    name = Path(program).name
    if name == "env" and len(argv) > 1 and not argv[1].startswith("-") and "=" not in argv[1]:
        find_program(argv[1:], folder, path)
    elif _INTERPRETER.fullmatch(name):
        script = _script(argv[1:])
        if script is not None and not (folder / script).exists():
            raise HookError(f"`{script}` was not launched: `{name}` would not find it", hint="list it under `files`")


def _script(arguments: Sequence[str]) -> str | None:
    """The script among an interpreter's arguments, or None where its options say otherwise."""
    words = iter(arguments)
    for word in words:
        if word == "-" or _CODE_OPTIONS.fullmatch(word):
            return None
        if word in _VALUE_OPTIONS:
            next(words, None)
        elif not word.startswith("-"):
            return word
    return None
