"""Code: the Python that a bundle carries, loaded under module names made from the digest of that code.

What always holds: two versions of one module run side by side in one process, and equal sources are loaded once; an
embedded module's imports find the same bundle's modules first (absolute or relative, packages too) and everything else
as usual; nothing is read from disk, yet tracebacks, `inspect` and pickle work. An import made by name at run time
(`importlib.import_module("shop")`) is not redirected.
"""

from __future__ import annotations

import builtins
import difflib
import importlib
import importlib.abc
import importlib.machinery
import linecache
import re
import sys
import traceback
from collections.abc import Callable, Mapping, Sequence
from types import CodeType, ModuleType
from typing import Any

from harnessctl.errors import HarnessctlError, ToolError
from harnessctl.runtime.foreign import is_interrupt, said
from harnessctl.storage import digest

_TARGET = re.compile(r"([A-Za-z_][\w.]*):([A-Za-z_]\w*)")
_ROOT = "harnessctl_code_"


class Code:
    """The modules of one bundle: `sources` maps a module name (`shop`, `pkg.prices`) to its Python source.

    A package's own source stands under its name (`pkg`, or `pkg.__init__`); a parent without a source is an empty
    package. Modules are named by the digest of `sources`, so that bundles with equal code share them; `digest` is the
    bundle's own, for who wants to say which one it was.
    """

    def __init__(self, digest: str, sources: Mapping[str, str]) -> None:
        self.digest = digest
        self._library = _library(dict(sources))
        self._functions: dict[str, Callable[..., Any]] = {}

    def function(self, target: str, *, error: type[HarnessctlError] = ToolError) -> Callable[..., Any]:
        """The function that `module:function` names, from the bundle or else from an installed package.

        Raises `error` (ToolError or HookError) with module, function, cause and line.
        """
        found = self._functions.get(target) or self._library.functions.get(target)
        if found is None:
            try:
                found = self._load(target)
            except _LoadError as cause:
                raise error(f"`{target}` cannot be loaded: {cause}", hint=cause.hint) from cause.__cause__
            is_embedded = target.partition(":")[0] in self._library
            (self._library.functions if is_embedded else self._functions)[target] = found
        return found

    def _load(self, target: str) -> Callable[..., Any]:
        match = _TARGET.fullmatch(target)
        if match is None:
            raise _LoadError("it is not of the form module:function")
        name, attribute = match.groups()
        module = self._module(name)
        function = getattr(module, attribute, None)
        if function is None:
            names = [n for n, value in vars(module).items() if callable(value) and not n.startswith("_")]
            near = difflib.get_close_matches(attribute, names, n=3) or sorted(names)[:10]
            raise _LoadError(
                f"module `{name}` has no function `{attribute}`", f"it has {', '.join(near)}" if near else ""
            )
        if not callable(function):
            raise _LoadError(f"`{attribute}` in module `{name}` is {type(function).__name__}, not a function")
        return function

    def _module(self, name: str) -> ModuleType:
        full = self._library.full_name(name)
        try:
            return importlib.import_module(full or name)
        except SyntaxError as error:
            where = _module_of(error.filename or "") or name
            raise _LoadError(f"module `{where}` is not Python: line {error.lineno}: {error.msg}") from error
        except ModuleNotFoundError as error:
            if full is None and error.name is not None and (name == error.name or name.startswith(f"{error.name}.")):
                raise _LoadError(
                    f"there is no module `{name}`, neither in the bundle nor installed", "compile the harness again"
                ) from error
            raise _LoadError(self._broken(name, error)) from error
        except BaseException as error:
            # A module runs any code when it is imported; whatever that raises is the module's fault, not ours.
            if is_interrupt(error):
                raise
            raise _LoadError(self._broken(name, error)) from error

    def _broken(self, name: str, error: BaseException) -> str:
        text = f"{type(error).__name__}: {said(error)}".replace(f"{self._library.root}.", "")
        return f"module `{name}` fails when it is imported: {text}{place(error)}"


def place(error: BaseException) -> str:
    """` (module, line N)` of the last frame in a bundle's code that `error` came through, or nothing."""
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        module = _module_of(frame.filename)
        if module:
            return f" ({module}, line {frame.lineno})"
    return ""


def _module_of(file_name: str) -> str:
    """The embedded module that tracebacks call `file_name`; nothing for any other file."""
    if not file_name.startswith("<bundle "):
        return ""
    return file_name.partition("/")[2].removesuffix(".py").removesuffix("/__init__").replace("/", ".")


class _LoadError(Exception):
    """A target that cannot be loaded; `hint` goes to the error that a person sees."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint


class _Library:
    """Sources that share one root module, `harnessctl_code_<16 hex of their digest>`."""

    def __init__(self, root: str, sources: dict[str, str]) -> None:
        self.root = root
        self.sources = sources
        #: Those of the embedded modules that were asked for, by target: equal for all bundles with this code.
        self.functions: dict[str, Callable[..., Any]] = {}
        self._sources = {name.removesuffix(".__init__"): source for name, source in sources.items()}
        parents = {name.rpartition(".")[0] for name in self._sources}
        self._packages = {name.removesuffix(".__init__") for name in sources if name.endswith(".__init__")}
        while parents:
            self._packages |= parents
            parents = {name.rpartition(".")[0] for name in parents if name}
        self._packages.add("")
        self.builtins = {**vars(builtins), "__import__": self._import}

    def __contains__(self, name: str) -> bool:
        return name in self._sources or name in self._packages

    def full_name(self, name: str) -> str | None:
        """The name in sys.modules of an embedded module; None for any other."""
        return f"{self.root}.{name}" if name and name in self else None

    def is_package(self, name: str) -> bool:
        """Whether `name` ("" is the root) has modules below it."""
        return name in self._packages

    def source(self, name: str) -> str:
        """The source of `name`; nothing for a package that has none of its own."""
        return self._sources.get(name, "")

    def file_name(self, name: str) -> str:
        """What tracebacks call the file of `name`."""
        path = name.replace(".", "/")
        tail = f"{path}/__init__.py" if self.is_package(name) else f"{path}.py"
        return f"<bundle {self.root.removeprefix(_ROOT)[:8]}>/{tail.removeprefix('/')}"

    def _import(
        self,
        name: str,
        globals: Mapping[str, Any] | None = None,
        locals: Mapping[str, Any] | None = None,
        fromlist: Sequence[str] | None = (),
        level: int = 0,
    ) -> ModuleType:
        """`__import__` of the embedded modules; see the Python reference for its arguments."""
        full = self.full_name(name) if level == 0 else None
        if full is None:
            return builtins.__import__(name, globals, locals, fromlist or (), level)
        module = builtins.__import__(full, globals, locals, fromlist or (), 0)
        return module if fromlist else sys.modules[f"{self.root}.{name.partition('.')[0]}"]


class _Finder(importlib.abc.MetaPathFinder):
    """Finds the modules of every library that was registered."""

    def __init__(self) -> None:
        self.libraries: dict[str, _Library] = {}
        self.latest: _Library | None = None

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        root, _, name = fullname.partition(".")
        library = self.libraries.get(root)
        if library is None or name not in library:
            return None
        return importlib.machinery.ModuleSpec(
            fullname, _Loader(library, name), origin=library.file_name(name), is_package=library.is_package(name)
        )


class _Loader(importlib.abc.InspectLoader):
    """Runs one embedded source, with imports that look into its own library first."""

    def __init__(self, library: _Library, name: str) -> None:
        self._library = library
        self._name = name

    def is_package(self, fullname: str) -> bool:
        return self._library.is_package(self._name)

    def get_source(self, fullname: str) -> str:
        return self._library.source(self._name)

    def get_code(self, fullname: str) -> CodeType:
        return compile(self.get_source(fullname), self._library.file_name(self._name), "exec", dont_inherit=True)

    def exec_module(self, module: ModuleType) -> None:
        file_name = self._library.file_name(self._name)
        source = self.get_source(module.__name__)
        linecache.cache[file_name] = (len(source), None, source.splitlines(keepends=True), file_name)
        module.__file__ = file_name
        vars(module)["__builtins__"] = self._library.builtins
        super().exec_module(module)


_finder = _Finder()


def _library(sources: dict[str, str]) -> _Library:
    """The library of these sources, made once per process."""
    latest = _finder.latest
    if latest is not None and latest.sources == sources:  # one variant after the other, with texts that are one object
        return latest
    root = _ROOT + digest(sources)[:16]
    library = _finder.libraries.get(root)
    if library is None:
        library = _finder.libraries.setdefault(root, _Library(root, sources))
        if _finder not in sys.meta_path:
            sys.meta_path.append(_finder)
    _finder.latest = library
    return library
