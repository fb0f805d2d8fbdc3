"""Discovery: augmentation operators, found without a list of them.

What always holds: an operator is the `OPERATOR` of a module of `harnessctl.augment.operators`, or of a file
`manifests/operators/<name>.py` of the project; its name is its file's, with `-` for `_`; no two have one name.
"""

from __future__ import annotations

import functools
import importlib
import inspect
import pkgutil
import sys
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType
from typing import Any, cast, get_args

from harnessctl.augment import operators as shipped
from harnessctl.augment.operator import STAGES, Dimension, Operator
from harnessctl.errors import Fault, Faults
from harnessctl.manifests.locate import look
from harnessctl.runtime.foreign import is_interrupt, said
from harnessctl.storage import digest_bytes

FOLDER = "manifests/operators"
#: What an operator must have, and how a fault says what is allowed.
_FIELDS: dict[str, tuple[Any, str]] = {
    "name": (str, "a text"),
    "dimension": (get_args(Dimension), ", ".join(get_args(Dimension))),
    "stage": (STAGES, ", ".join(STAGES)),
    "keeps_difficulty": (bool, "true or false"),
    "options": (Mapping, "a mapping"),
    "reads": (frozenset, "a frozenset of count, ranges"),
}
_METHODS = {"targets": ("draft",), "apply": ("target", "draft", "settings", "stream")}


@functools.cache
def shipped_operators() -> Mapping[str, Operator]:
    """The operators of the package, by name in order of their files."""
    found: dict[str, Operator] = {}
    for module in sorted(pkgutil.iter_modules(shipped.__path__), key=lambda member: member.name):
        operator = importlib.import_module(f"{shipped.__name__}.{module.name}").OPERATOR
        found[operator.name] = operator
    return found


def find_operators(root: Path | None) -> dict[str, Operator]:
    """The shipped operators and those of the project at `root`.

    FaultsError names each file that holds none, cannot be loaded, or has the name of another.
    """
    faults = Faults()
    found = operators_of(root, faults)
    faults.raise_if_errors()
    return found


def operators_of(root: Path | None, faults: Faults) -> dict[str, Operator]:
    """As `find_operators`, with what is wrong added to `faults`."""
    found = dict(shipped_operators())
    if root is None or not (root / FOLDER).is_dir():
        return found
    places = dict.fromkeys(found, "harnessctl itself")
    for path in sorted((root / FOLDER).glob("*.py")):
        name = f"{FOLDER}/{path.name}"
        if look(root.resolve(), name) != "file":
            faults.add(Fault(name, 0, 0, "source-outside", "an operator lies outside the project, or is no file"))
            continue
        operator = _read(path, name, faults)
        if operator is None:
            continue
        if operator.name in found:
            got = f"`{operator.name}` of {places[operator.name]}"
            message, hint = "two operators have one name", "rename the file and the operator's `name`"
            faults.add(Fault(name, 0, 0, "operator-duplicate", message, got, "names of their own", hint))
            continue
        found[operator.name] = operator
        places[operator.name] = name
    return found


def _read(path: Path, name: str, faults: Faults) -> Operator | None:
    module = _load(path, name, faults)
    if module is None:
        return None
    operator = getattr(module, "OPERATOR", None)
    if operator is None:
        hint = "`harnessctl new operator NAME` writes one to start from"
        faults.add(Fault(name, 0, 0, "operator-form", "the file has no OPERATOR", "", "OPERATOR = MyOperator()", hint))
        return None
    before = len(faults.items)
    for message, got, allowed in _misfits(operator, path.stem.replace("_", "-")):
        faults.add(Fault(name, 0, 0, "operator-form", message, got, allowed))
    return cast(Operator, operator) if len(faults.items) == before else None


def _load(path: Path, name: str, faults: Faults) -> ModuleType | None:
    """The module in a file, loaded once for each content; None with a fault when it cannot be."""
    try:
        source = path.read_bytes()
    except OSError as error:
        faults.add(Fault(name, 0, 0, "source-unreadable", f"the file cannot be read: {error.strerror}"))
        return None
    known_as = f"harnessctl_operator_{path.stem}_{digest_bytes(source)[:16]}"
    module = sys.modules.get(known_as)
    if module is not None:
        return module
    module = ModuleType(known_as)
    module.__file__ = str(path)
    try:
        code = compile(source, str(path), "exec", dont_inherit=True)
    except (SyntaxError, ValueError) as error:
        line = error.lineno or 0 if isinstance(error, SyntaxError) else 0
        what = error.msg if isinstance(error, SyntaxError) else str(error)
        faults.add(Fault(name, line, 0, "code-syntax", f"the operator is not Python: {what}"))
        return None
    sys.modules[known_as] = module  # dataclasses and pickle look a class's module up here
    try:
        exec(code, module.__dict__)
    except BaseException as error:
        # A module runs any code when it is loaded; whatever that raises is the module's fault, not ours.
        if is_interrupt(error):
            raise
        del sys.modules[known_as]
        message = f"the operator fails when it is loaded: {type(error).__name__}: {said(error)}"
        faults.add(Fault(name, line_in(error, path), 0, "operator-load", message))
        return None
    return module


def line_in(error: BaseException, path: Path) -> int:
    """The last line of a file that `error` came through, 0 for none."""
    line = 0
    trace = error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == str(path):
            line = trace.tb_lineno
        trace = trace.tb_next
    return line


def _misfits(operator: Any, expected: str) -> list[tuple[str, str, str]]:
    """What of `operator` does not fit the Protocol: (what, got, allowed)."""
    out: list[tuple[str, str, str]] = []
    for field, (wanted, allowed) in _FIELDS.items():
        value = getattr(operator, field, None)
        fits = value in wanted if isinstance(wanted, tuple) else isinstance(value, wanted)
        if not fits:
            out.append((f"the operator's `{field}` does not fit", repr(value)[:60] if value is not None else "nothing", allowed))  # fmt: skip
    if isinstance(operator.name if hasattr(operator, "name") else None, str) and operator.name != expected:
        out.append(("the operator's name is not its file's", operator.name, expected))
    if isinstance(reads := getattr(operator, "reads", None), frozenset) and reads - {"count", "ranges"}:
        out.append(("the operator reads a setting that there is not", ", ".join(sorted(reads)), "count, ranges"))
    for method, parameters in _METHODS.items():
        function = getattr(operator, method, None)
        if not callable(function):
            out.append((f"the operator has no `{method}`", "", f"{method}({', '.join(parameters)})"))
            continue
        try:
            inspect.signature(function).bind(*parameters)
        except (TypeError, ValueError):
            got = f"{method}{inspect.signature(function)}"
            out.append((f"`{method}` does not take what it is called with", got, f"{method}({', '.join(parameters)})"))
    return out
