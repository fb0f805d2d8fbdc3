"""Commands of hooks: programs and the project files that they need, checked and embedded."""

from __future__ import annotations

import posixpath
import re
import shlex
import shutil
from pathlib import PurePosixPath

from harnessctl.compile.scope import Scope
from harnessctl.compile.unit import Bound
from harnessctl.errors import Faults
from harnessctl.manifests.load import Document, PathPart
from harnessctl.manifests.locate import look
from harnessctl.manifests.specs.hooks import CommandCheck
from harnessctl.storage import digest_bytes

MAX_FILE_BYTES = 1_000_000
_ENVIRONMENT_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def check_command(
    document: Document, command: CommandCheck, scope: Scope, bound: Bound, faults: Faults, *at: PathPart
) -> None:
    """The program can be started from a bundle, and its files are embedded in it."""
    if (command.run is None) == (command.shell is None):
        faults.add(
            document.fault(
                "command-form", "a command is given in exactly one way", *at, allowed="run: [program, ...] or shell"
            )
        )
    for n, name in enumerate(command.env):
        if not _ENVIRONMENT_NAME.fullmatch(name):
            faults.add(
                document.fault(
                    "command-form",
                    "not the name of an environment variable",
                    *at,
                    "env",
                    n,
                    got=name[:40],
                    allowed="NAME",
                    hint="values are taken from the environment and never written here",
                )
            )
    for n, path in enumerate(command.files):
        _embed(document, path, scope, bound, faults, *at, "files", n)
    words = list(command.run or [])
    field: tuple[PathPart, ...] = (*at, "run")
    if command.shell is not None:
        field = (*at, "shell")
        try:
            words = shlex.split(command.shell)
        except ValueError as error:
            faults.add(
                document.fault(
                    "command-form", f"the shell line cannot be read: {error}", *field, got=command.shell[:60]
                )
            )
    _check_words(document, words, command, scope, bound, faults, *field)


def _check_words(
    document: Document,
    words: list[str],
    command: CommandCheck,
    scope: Scope,
    bound: Bound,
    faults: Faults,
    *at: PathPart,
) -> None:
    for n, word in enumerate(words):
        _depend_on_absence(posixpath.normpath(word), scope, bound)
        place: tuple[PathPart, ...] = (*at, n) if command.run is not None else at
        path = posixpath.normpath(word)
        if path in command.files:
            if n == 0 and path in bound.files and not bound.files[path].startswith("#!"):
                faults.add(
                    document.fault(
                        "command-not-executable",
                        "the program does not say what runs it",
                        *place,
                        got=word,
                        allowed="a first line #!/usr/bin/env ...",
                        hint=f"add that line to {path}, or run it with an interpreter: [python3, {path}]",
                    )
                )
        elif _is_project_file(scope, path):
            faults.add(
                document.fault(
                    "command-not-embedded",
                    f"{path} is a file of the project that the bundle would not carry",
                    *place,
                    got=word,
                    allowed=", ".join(command.files) or "paths listed under files",
                    hint=f"add it: files: [{path}]",
                )
            )
        elif (
            "/" in word and not word.startswith(("/", "-", "http:", "https:")) and (n == 0 or _looks_like_script(word))
        ):
            faults.add(
                document.fault(
                    "command-missing",
                    "the command's file is not there",
                    *place,
                    got=word,
                    allowed="a path from the project's root",
                    hint=_beside(document, scope, path),
                )
            )
        elif n == 0 and "/" not in word and command.run is not None and shutil.which(word) is None:
            faults.add(
                document.fault(
                    "command-not-found",
                    "the program is not on this machine's PATH",
                    *place,
                    got=word,
                    hint="the hook will be an error wherever it is missing",
                    severity="warning",
                )
            )


def _depend_on_absence(path: str, scope: Scope, bound: Bound) -> None:
    """A word that names no file of the project would have to be embedded if it did."""
    if ("/" in path or "." in path) and not path.startswith(("/", "..", "-")) and look(scope.root, path) == "nothing":
        bound.depends[path] = None


def _looks_like_script(word: str) -> bool:
    return PurePosixPath(word).suffix in (".py", ".sh", ".js", ".mjs", ".ts", ".rb", ".pl", ".bash")


def _beside(document: Document, scope: Scope, path: str) -> str:
    beside = posixpath.join(posixpath.dirname(document.path), path)
    return f"write it from the root: {beside}" if _is_project_file(scope, beside) else ""


def _is_project_file(scope: Scope, path: str) -> bool:
    if path.startswith(("/", "..")):
        return False
    return ("/" in path or "." in path) and look(scope.root, path) == "file"


def _embed(document: Document, path: str, scope: Scope, bound: Bound, faults: Faults, *at: PathPart) -> None:
    pure = PurePosixPath(path)
    kind = look(scope.root, path)
    if pure.is_absolute() or ".." in pure.parts or kind == "outside":
        faults.add(
            document.fault(
                "command-outside",
                "a hook's file lies outside the project",
                *at,
                got=path,
                allowed="a path from the project's root",
                hint="copy it into the project",
            )
        )
        return
    if kind != "file":
        faults.add(
            document.fault(
                "command-missing",
                "the command's file is not there",
                *at,
                got=path,
                allowed="a path from the project's root",
                hint=_beside(document, scope, path),
            )
        )
        bound.depends[path] = None
        return
    try:
        data = (scope.root / path).read_bytes()
    except OSError as error:
        faults.add(document.fault("source-unreadable", f"the file cannot be read: {error.strerror}", *at, got=path))
        return
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        faults.add(
            document.fault("command-binary", "a hook's file is not UTF-8 text", *at, got=path, allowed="scripts")
        )
        return
    if len(data) > MAX_FILE_BYTES:
        faults.add(
            document.fault(
                "command-binary",
                "a hook's file is too large for a bundle",
                *at,
                got=f"{len(data)} bytes",
                allowed=f"{MAX_FILE_BYTES} bytes",
            )
        )
        return
    bound.depends[path] = digest_bytes(data)
    bound.files[str(pure)] = text
    bound.places.setdefault(f"files/{pure}", [str(pure), 1, 1])
