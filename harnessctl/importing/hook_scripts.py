"""Hook scripts: the files that a foreign command runs, found, copied into the project and named from its root.

What always holds: a script is taken only from the source's own folders, never through a link; a command that needs a
file which is not there is not carried over; the command's text changes only where it names such a file.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from harnessctl.storage import read_bytes

MAX_SCRIPT_BYTES = 500_000
MAX_NEIGHBOURS = 200

#: Variables that name the folder which a coding agent runs its hooks from.
_VARIABLES = "CLAUDE_PLUGIN_ROOT|CLAUDE_PROJECT_DIR|GEMINI_PROJECT_DIR|CURSOR_PROJECT_DIR|extensionPath|workspacePath"
_PATH = r"/((?:[^\s\"';|&<>()`$\\]|\\ )+)"
_ROOTED = re.compile(rf"\"\$\{{?(?:{_VARIABLES})\}}?\"{_PATH}|\$\{{?(?:{_VARIABLES})\}}?{_PATH}")
_IN_CODE = re.compile(r"(?<![\w./$~-])((?:[\w.-]+/)+[\w.-]+\.(?:sh|bash|py|js|mjs|cjs|ts|rb|pl))\b")
_USES_ROOT = re.compile(rf"\b(?:{_VARIABLES})\b")
_INTERPRETER = re.compile(r"(?:python[\d.]*|node|bun|deno|bash|sh|zsh|ruby|perl|php|tsx|ts-node|uv|npx)")
_RELATIVE = re.compile(
    r"(?:\.{1,2}/)?(?:[\w.-]+/)*[\w.-]+\.(?:sh|bash|py|js|mjs|cjs|ts|rb|pl|cmd)|(?:\./)?(?:[\w.-]+/)+[\w.-]+"
)
_HOME = re.compile(r"(?:~|\$\{?HOME\}?)(/[\w./-]+\.(?:sh|bash|py|js|mjs|cjs|ts|rb|pl))")
#: What /bin/sh does not know.
_BASH_ONLY = re.compile(
    r"\[\[|<<<|<\(|>\(|&>|\$'|=\(|\(\(|\$\{[^}]*(?://|\^\^|,,|:\d)|\bfunction \w|\bsource |\bset -o pipefail|BASH_"
)
_SCRIPT_ENDINGS = (".py", ".sh", ".js", ".mjs", ".ts", ".rb", ".pl", ".bash")
_ENVIRONMENT = re.compile(
    r"\$\{?([A-Z][A-Z0-9_]{2,})|process\.env\.([A-Z][A-Z0-9_]{2,})|os\.environ(?:\.get\(|\[)[\"']([A-Z][A-Z0-9_]{2,})"
    r"|getenv\([\"']([A-Z][A-Z0-9_]{2,})"
)
_ASSIGNED = re.compile(
    r"(?:^|[\s;(&|])(?:export |local |read (?:-\w+ )*)?([A-Z][A-Z0-9_]{2,})=|for ([A-Z][A-Z0-9_]+) in|read (?:-\w+ )*([A-Z][A-Z0-9_]+)"
)
_PASSED = frozenset(
    {
        "PATH",
        "HOME",
        "LANG",
        "TMPDIR",
        "PWD",
        "OLDPWD",
        "UID",
        "RANDOM",
        "SECONDS",
        "LINENO",
        "IFS",
        "REPLY",
        "BASH_SOURCE",
        "OSTYPE",
        "HOSTNAME",
    }
)


@dataclass(slots=True)
class Prepared:
    """A command ready to be written: `command` is the manifest's field, `files` the project files that it needs."""

    command: dict[str, object]
    files: dict[str, bytes] = field(default_factory=dict)
    reads: list[str] = field(default_factory=list)
    changed: list[str] = field(default_factory=list)


class Missing(Exception):
    """A file that the command needs is not in the source; the message says which."""


def prepare(command: str | Sequence[str], base: Path, bound: Path, folder: str) -> Prepared:
    """The command with its scripts under the project folder `folder`; Missing when one is not there.

    Scripts are looked for from `base`, the folder of the hook file, upwards to `bound`.
    """
    text = command if isinstance(command, str) else shlex.join(command)
    scripts: dict[str, Path] = {}
    if home := _HOME.search(text):
        raise Missing(f"it runs {home[0]}, a file in somebody's home folder")

    def found(name: str) -> str:
        clean = PurePosixPath(name.replace("\\ ", " ")).as_posix()
        path = _find(clean, base, bound)
        if path is None:
            raise Missing(f"it needs {clean}, which is not among the files given")
        inside = "/".join(part for part in PurePosixPath(clean).parts if part not in ("..", "."))
        scripts[f"{folder}/{inside}"] = path
        return f"{folder}/{inside}"

    def rooted(match: re.Match[str]) -> str:
        return found(match[1] or match[2])

    written = _ROOTED.sub(rooted, text)
    if written == text:
        written = _relative(text, found)
    for name in _IN_CODE.findall(written) if _USES_ROOT.search(written) else ():
        if not name.startswith(folder):
            found(name)
    files = _with_neighbours(scripts, folder)
    words = written.split()
    program = words[0].strip("\"'") if words else ""
    if program in files and not files[program].startswith(b"#!"):
        written = f"bash {written}"  # a shell runs such a file itself; nothing else does
    sources = [text, *(data.decode() for data in files.values())]
    reads = sorted({name for source in sources for name in _environment(source)})
    prelude = ""
    if any(_USES_ROOT.search(data.decode()) for data in files.values()):
        prelude = f'export CLAUDE_PLUGIN_ROOT="$PWD/{folder}" CLAUDE_PROJECT_DIR="$PWD/{folder}"\n'
    changed = [f"its scripts are named from the project's root: {written.strip()[:120]}"] if written != text else []
    if prelude:
        changed.append(f"a line was put before it that points CLAUDE_PLUGIN_ROOT and CLAUDE_PROJECT_DIR to {folder}")
    argv = None if isinstance(command, str) or prelude or written != text else list(command)
    return Prepared(_form(prelude + written, argv, files), files, reads, changed)


def _relative(text: str, found: Callable[[str], str]) -> str:
    """`text` with the script that it runs, given by a relative path, named from the project's root."""
    try:
        words = shlex.split(text)
    except ValueError:
        return text
    first = words[0] if words else ""
    candidates = words[:1]
    if _INTERPRETER.fullmatch(PurePosixPath(first).name):
        in_code = any(word in ("-c", "-e", "-m", "-p", "--eval") for word in words[1:])
        candidates = [word for word in words[1:] if not word.startswith("-") and not in_code][:1]
    for word in candidates:
        if ("/" in word or word != first) and _RELATIVE.fullmatch(word) and not word.startswith("/"):
            return text.replace(word, found(word), 1)
    return text


def _find(name: str, base: Path, bound: Path) -> Path | None:
    """The file `name` below `base` or a folder above it, up to `bound`; links and ways out are not taken."""
    for folder in (base, *base.parents):
        path = folder / name
        if path.is_file() and not path.is_symlink() and path.resolve().is_relative_to(bound.resolve()):
            return path
        if folder == bound:
            break
    return None


def _with_neighbours(scripts: dict[str, Path], folder: str) -> dict[str, bytes]:
    """The scripts' bytes, and those of files beside them that they mention by name."""
    out: dict[str, bytes] = {}
    waiting = list(scripts.items())
    while waiting:
        target, path = waiting.pop(0)
        if target in out:
            continue
        data = read_bytes(path)
        if len(data) > MAX_SCRIPT_BYTES:
            raise Missing(f"its file {path.name} is too large: {len(data)} bytes; allowed {MAX_SCRIPT_BYTES}")
        try:
            text = data.decode("utf-8")
        except UnicodeDecodeError:
            raise Missing(f"its file {path.name} is not UTF-8 text") from None
        out[target] = text.replace("\r\n", "\n").encode()
        beside = sorted(p for p in path.parent.rglob("*") if p.is_file() and not p.is_symlink())[:MAX_NEIGHBOURS]
        for other in beside:
            if other != path and re.search(rf"(?<![\w-]){re.escape(other.name)}(?![\w-])", text):
                waiting.append((f"{PurePosixPath(target).parent}/{other.relative_to(path.parent).as_posix()}", other))
    return out


def _form(text: str, argv: list[str] | None, files: dict[str, bytes]) -> dict[str, object]:
    """`run` or `shell`: a shell line where /bin/sh and the compiler can read it, else bash with the text as one word."""
    if argv is not None:
        return {"run": argv, **({"files": sorted(files)} if files else {})}
    listed = {"files": sorted(files)} if files else {}
    if _BASH_ONLY.search(text) or not _plain(text, files):
        # The newline keeps the compiler from taking a text that ends in a script's name for a file.
        return {"run": ["bash", "-c", text if text.endswith("\n") else text + "\n"], **listed}
    return {"shell": text, **listed}


def _plain(text: str, files: dict[str, bytes]) -> bool:
    try:
        words = shlex.split(text)
    except ValueError:
        return False
    return not any(
        word not in files
        and "/" in word
        and not word.startswith(("/", "-", "http:", "https:"))
        and (n == 0 or PurePosixPath(word).suffix in _SCRIPT_ENDINGS)
        for n, word in enumerate(words)
    )


def _environment(text: str) -> set[str]:
    """Environment variables that a command or script reads and nobody gives it unless `env` names them."""
    read = {name for match in _ENVIRONMENT.finditer(text) for name in match.groups() if name}
    own = {name for match in _ASSIGNED.finditer(text) for name in match.groups() if name}
    return {
        name
        for name in read - own - _PASSED
        if not _USES_ROOT.fullmatch(name) and not name.startswith(("HARNESSCTL_", "BASH_"))
    }
