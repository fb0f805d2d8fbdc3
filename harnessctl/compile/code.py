"""Embedded code: where a `module:function` is, and the project's own modules that it needs.

A module is looked for beside the manifest, then from the project's root, then among installed packages; names of the
standard library and of harnessctl itself are never the project's. What is found in the project is embedded with
everything of the project that it imports; modules are read, never run.
"""

from __future__ import annotations

import ast
import difflib
import importlib.machinery
import posixpath
import sys
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from harnessctl.compile.unit import Bound
from harnessctl.errors import Fault, Faults
from harnessctl.manifests.encoding import MAX_SOURCE_BYTES
from harnessctl.manifests.load import Document, PathPart
from harnessctl.manifests.locate import look
from harnessctl.storage import digest_bytes

Function = ast.FunctionDef | ast.AsyncFunctionDef

#: What cannot be called, wherever it stands on the right of `name =`.
_NO_FUNCTION = (ast.Constant, ast.JoinedStr, ast.List, ast.Tuple, ast.Dict, ast.Set, ast.ListComp, ast.DictComp)
#: Names that are no project's own: the standard library, and harnessctl, which may lie in the root of its own checkout.
NEVER_LOCAL = sys.stdlib_module_names | {"harnessctl"}


@dataclass(slots=True)
class Module:
    """A module of the project: its path from the root, source and syntax tree, and the folder that its name is from."""

    name: str
    path: str
    base: str
    source: str
    tree: ast.Module


class CodeFinder:
    """Finds and embeds the code that one manifest's targets name."""

    def __init__(self, root: Path, manifest: str, bound: Bound, faults: Faults) -> None:
        self.root = root
        self.base = posixpath.dirname(manifest)
        self.bound = bound
        self.faults = faults
        self._modules: dict[tuple[str, str], Module | None] = {}

    def target(self, document: Document, target: str, *at: PathPart) -> Function | None:
        """Embed the module of `target`; the function's definition where it is plain, else None.

        Adds a fault at `at` when the module or the function is not there.
        """
        name, _, function = target.partition(":")
        module = self._local(name, (self.base, ""))
        if module is not None:
            self._embed(module)
            return self._function(document, module.tree, module.path, function, at)
        if self._broken(name):
            return None
        origin = _installed(name)
        if origin is None:
            tried = " and ".join(
                dict.fromkeys(posixpath.join(base, name.replace(".", "/")) + ".py" for base in (self.base, ""))
            )
            self.faults.add(
                document.fault(
                    "code-missing",
                    f"there is no module `{name}`",
                    *at,
                    got=target,
                    allowed=f"{tried}, or an installed package",
                    hint=self._near(name),
                )
            )
            return None
        if origin.endswith(".py"):
            try:
                data = Path(origin).read_bytes()
                tree = _parsed(data)
            except (OSError, SyntaxError, ValueError, RecursionError, MemoryError):
                return None  # installed for another Python perhaps: the runtime will say
            self.bound.depends[origin] = digest_bytes(data)
            self._function(document, tree, origin, function, at)
        return None

    def _near(self, name: str) -> str:
        """The project module of the closest name, beside the manifest or at the root."""
        found = {path.stem for base in (self.base, "") for path in (self.root / base).glob("*.py") if path.is_file()}
        close = difflib.get_close_matches(name, sorted(found), n=1, cutoff=0.6)
        return f"did you mean `{close[0]}`?" if close else ""

    def _function(
        self, document: Document, tree: ast.Module, path: str, name: str, at: tuple[PathPart, ...]
    ) -> Function | None:
        defined, is_open = _top_level(tree)
        if name not in defined and not is_open:
            close = difflib.get_close_matches(name, list(defined), n=1, cutoff=0.6)
            public = ", ".join(n for n, node in defined.items() if isinstance(node, Function) and not n.startswith("_"))
            self.faults.add(
                document.fault(
                    "code-function",
                    f"the module has no function `{name}`",
                    *at,
                    got=document.get(*at),
                    allowed=f"{public or 'nothing'} ({path})",
                    hint=f"did you mean `{close[0]}`?" if close else "",
                )
            )
        node = defined.get(name)
        if isinstance(node, ast.ClassDef) or (isinstance(node, ast.Assign) and isinstance(node.value, _NO_FUNCTION)):
            what = "a class" if isinstance(node, ast.ClassDef) else "a value"
            self.faults.add(
                document.fault(
                    "code-function",
                    f"`{name}` is {what}, and a function is wanted",
                    *at,
                    got=f"{path}:{node.lineno}",
                    allowed="a function of the module",
                )
            )
        return node if isinstance(node, Function) and not node.decorator_list else None

    def _embed(self, module: Module) -> None:
        """Put a module and the project modules that it imports into the bundle."""
        waiting = [module]
        while waiting:
            module = waiting.pop()
            if module.name in self.bound.code:
                continue
            self.bound.code[module.name] = module.source
            self.bound.places.setdefault(f"code/{module.name}", [module.path, 1, 1])
            for name in sorted(_imports(module)):
                found = self._local(name, tuple(dict.fromkeys((module.base, self.base, ""))))
                if found is not None:
                    waiting.append(found)

    def _local(self, name: str, bases: tuple[str, ...]) -> Module | None:
        """The project's module of this name, from the first base that has it."""
        if not name or name.split(".")[0] in NEVER_LOCAL:
            return None
        top, dot, _ = name.partition(".")
        for base in bases:
            folder = posixpath.join(base, top)
            if dot and (kind := look(self.root, folder)) != "folder":
                if kind == "nothing":
                    self.bound.depends[folder] = None
                continue
            if (name, base) not in self._modules:
                self._modules[name, base] = self._read(name, base)
            module = self._modules[name, base]
            if module is not None:
                return module
        return None

    def _broken(self, name: str) -> bool:
        """Whether a file of this name was found and could not be read; that fault is enough."""
        stem = name.replace(".", "/")
        return any(f.path in (posixpath.join(b, f"{stem}.py") for b in (self.base, "")) for f in self.faults.items)

    def _read(self, name: str, base: str) -> Module | None:
        stem = posixpath.join(base, name.replace(".", "/"))
        for path in (f"{stem}.py", f"{stem}/__init__.py"):
            kind = look(self.root, path)
            if kind == "outside":
                message = "the symbolic link leads out of the project"
                self.faults.add(Fault(path, 0, 0, "source-outside", message, str((self.root / path).resolve())))
                return None
            if kind != "file":
                self.bound.depends[path] = None
                continue
            try:
                data = (self.root / path).read_bytes()
            except OSError as error:
                self.faults.add(Fault(path, 0, 0, "source-unreadable", f"the file cannot be read: {error.strerror}"))
                return None
            if len(data) > MAX_SOURCE_BYTES:
                got, allowed = f"{len(data)} bytes", str(MAX_SOURCE_BYTES)
                self.faults.add(Fault(path, 0, 0, "text-too-large", "the module is too large", got, allowed))
                return None
            self.bound.depends[path] = digest_bytes(data)
            return self._parse(name, base, path, data)
        return None

    def _parse(self, name: str, base: str, path: str, data: bytes) -> Module | None:
        try:
            source = data.decode("utf-8-sig").replace("\r\n", "\n")
            return Module(name, path, base, source, _parsed(source))
        except UnicodeDecodeError as error:
            line = data.count(b"\n", 0, error.start) + 1
            got = f"byte 0x{data[error.start]:02x}"
            self.faults.add(Fault(path, line, 0, "text-encoding", "the module is not UTF-8 text", got, "UTF-8"))
        except SyntaxError as error:
            self.faults.add(
                Fault(
                    path, error.lineno or 0, error.offset or 1, "code-syntax", f"the module is not Python: {error.msg}"
                )
            )
        except (ValueError, RecursionError, MemoryError) as error:  # the last two: nested too deeply for the parser
            cause = str(error) or "nested too deeply"
            self.faults.add(Fault(path, 0, 0, "code-syntax", f"the module is not Python: {cause}"))
        return None


def _parsed(source: str | bytes) -> ast.Module:
    """The syntax tree of a module; what Python would warn of is for those who run it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return ast.parse(source)


def _imports(module: Module) -> Iterator[str]:
    """Every name that the module may import: of modules, and of what is taken from them."""
    is_package = module.path.endswith("/__init__.py")
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield from _with_parents(alias.name)
        elif isinstance(node, ast.ImportFrom):
            start = node.module or ""
            if node.level:
                package = module.name.split(".") if is_package else module.name.split(".")[:-1]
                package = package[: len(package) - (node.level - 1)]
                start = ".".join([*package, *([start] if start else [])])
            yield from _with_parents(start)
            for alias in node.names:
                if start and alias.name != "*":
                    yield f"{start}.{alias.name}"
    if "." in module.name:
        yield from _with_parents(module.name.rpartition(".")[0])


def _with_parents(name: str) -> Iterator[str]:
    parts = name.split(".")
    for length in range(1, len(parts) + 1):
        yield ".".join(parts[:length])


def _top_level(tree: ast.Module) -> tuple[dict[str, ast.AST], bool]:
    """The names that a module defines when it is run, and whether `from x import *` may define more."""
    defined: dict[str, ast.AST] = {}
    is_open = False
    waiting: list[ast.stmt] = list(tree.body)
    while waiting:
        node = waiting.pop(0)
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            defined[node.name] = node
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            for alias in node.names:
                is_open |= alias.name == "*"
                defined[alias.asname or alias.name.split(".")[0]] = node
        elif isinstance(node, (ast.Assign, ast.AnnAssign)):
            for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
                for part in ast.walk(target):
                    if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store):  # `f.inline = True` defines no f
                        defined[part.id] = node
        elif isinstance(node, (ast.If, ast.Try, ast.With, ast.For, ast.While)):
            waiting.extend(child for child in ast.iter_child_nodes(node) if isinstance(child, ast.stmt))
            if isinstance(node, ast.Try):
                for handler in node.handlers:
                    waiting.extend(handler.body)
    if "__getattr__" in defined:
        is_open = True
    return defined, is_open


def _installed(name: str) -> str | None:
    """Where an installed module is, without importing anything; None when it is not installed."""
    if name.split(".")[0] in sys.stdlib_module_names:
        spec = importlib.machinery.PathFinder.find_spec(name.split(".")[0])
        if spec is None:
            return "built-in"
    path: list[str] | None = None
    spec = None
    parts = name.split(".")
    for length in range(1, len(parts) + 1):
        spec = importlib.machinery.PathFinder.find_spec(".".join(parts[:length]), path)
        if spec is None:
            return None
        path = list(spec.submodule_search_locations or [])
    return spec.origin or "namespace" if spec is not None else None
