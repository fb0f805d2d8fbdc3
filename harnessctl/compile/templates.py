"""Templates and expressions: everything that would fail when one is rendered, found without rendering it.

Checked: syntax, accesses that the sandbox refuses, undeclared names, `tool()`, `skill()` and `limits` with names that
are known, fields of declared inputs, filters and tests that exist, and known names written out where `tool()` or
`skill()` belongs.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import jinja2
from jinja2 import nodes

from harnessctl.bundle.sandbox import called_with_constant, strict_environment, undeclared_names, unsafe_accesses
from harnessctl.compile.scope import Scope, listed
from harnessctl.errors import Faults
from harnessctl.manifests.passage import Passage
from harnessctl.manifests.violations import did_you_mean

#: Names that jinja2 itself supplies.
_GLOBALS = frozenset({"range", "dict", "lipsum", "cycler", "joiner", "namespace"})
_WORD = re.compile(r"[A-Za-z0-9_]+(?:[-.]+[A-Za-z0-9_]+)*")
_SPAN = re.compile(r"`([^`\n]+)`")


def check_template(
    passage: Passage, scope: Scope, names: Iterable[str], faults: Faults, *, inputs: Mapping[str, Any] | None = None
) -> set[str]:
    """Check a template over `names`; returns the limits that it uses.

    `inputs` is the JSON Schema of the names that have one. Lines are those of the template in its file.
    """
    tree = _parse(passage, passage.text, faults, passage.line_place)
    if tree is None:
        return set()
    used = _check_tree(passage, passage.text, tree, scope, names, inputs or {}, faults, passage.line_place)
    _check_words(passage, tree, scope, faults)
    return used


def check_expression(
    passage: Passage, scope: Scope, names: Iterable[str], faults: Faults, *, inputs: Mapping[str, Any] | None = None
) -> set[str]:
    """Check an expression over `names`; returns the limits that it uses."""
    source = "{{ (" + passage.text.replace("\n", " ") + ") }}"

    def place(_line: int) -> tuple[int, int]:
        return passage.place()

    tree = _parse(passage, source, faults, place)
    if tree is None:
        return set()
    return _check_tree(passage, source, tree, scope, names, inputs or {}, faults, place)


Places = Callable[[int], tuple[int, int]]


def _parse(passage: Passage, source: str, faults: Faults, place: Places) -> nodes.Template | None:
    try:
        tree = strict_environment().parse(source)
        # Unknown filters and tests, and assignments out of place, show only when code is generated.
        strict_environment().compile(source)
    except jinja2.TemplateError as error:
        line = getattr(error, "lineno", 1) or 1
        what = "an expression" if place(1) == place(2) else "a template"
        faults.add(_at(passage, place(line), "template-syntax", f"{what} cannot be read", got=str(error.message)[:120]))
        return None
    except RecursionError:
        faults.add(_at(passage, place(1), "template-syntax", "a template is nested too deeply"))
        return None
    return tree


def _check_tree(
    passage: Passage,
    source: str,
    tree: nodes.Template,
    scope: Scope,
    names: Iterable[str],
    inputs: Mapping[str, Any],
    faults: Faults,
    place: Places,
) -> set[str]:
    known = set(names) | _GLOBALS
    for line, what in unsafe_accesses(source):
        faults.add(
            _at(passage, place(line), "template-unsafe", "the sandbox refuses this access", got=what,
                allowed="fields without leading underscores; no include, import, extends, attr",
                hint="a template reads the names that it is given and nothing else")
        )  # fmt: skip
    lines = {node.name: node.lineno for node in reversed(list(tree.find_all(nodes.Name)))}
    for name in sorted(undeclared_names(source) - known):
        faults.add(
            _at(passage, place(lines.get(name, 1)), "template-undeclared", f"`{name}` is not declared", got=name,
                allowed=listed(set(names)), hint=did_you_mean(name, known) or _undeclared_hint(names))
        )  # fmt: skip
    for function, declared in (("tool", scope.tools), ("skill", scope.skills)):
        if function in known:
            _check_calls(passage, source, function, declared, scope, faults, place)
    _check_fields(passage, tree, inputs, faults, place)
    return _check_limits(passage, tree, scope, faults, place) if "limits" in known else set()


def _undeclared_hint(names: Iterable[str]) -> str:
    return "declare it under inputs" if "messages" in set(names) else ""


def _check_calls(
    passage: Passage, source: str, function: str, declared: Mapping[str, Any], scope: Scope, faults: Faults, place: Places
) -> None:
    for line, argument in called_with_constant(source, function):
        if argument is None:
            faults.add(
                _at(passage, place(line), "template-reference", f"{function}() is called with something that is not a name",
                    allowed=f"{function}('name') with the name written out", hint="so that renaming finds every reference")
            )  # fmt: skip
        elif argument not in declared:
            faults.add(
                _at(passage, place(line), "ref-unknown", f"there is no {function} of this name", got=argument,
                    allowed=listed(declared), hint=scope.near(argument, declared))
            )  # fmt: skip


def _check_limits(passage: Passage, tree: nodes.Template, scope: Scope, faults: Faults, place: Places) -> set[str]:
    used: set[str] = set()
    read = 0
    for node in tree.find_all((nodes.Getattr, nodes.Getitem)):
        if not (isinstance(node.node, nodes.Name) and node.node.name == "limits"):
            continue
        read += 1
        name = node.attr if isinstance(node, nodes.Getattr) else getattr(node.arg, "value", None)
        if isinstance(name, str) and name in scope.limits:
            used.add(name)
            continue
        faults.add(
            _at(passage, place(node.lineno), "limit-unknown", "there is no limit of this name", got=str(name),
                allowed=listed(scope.limits), hint=scope.near(str(name), scope.limits))
        )  # fmt: skip
    return used


def _check_fields(
    passage: Passage, tree: nodes.Template, inputs: Mapping[str, Any], faults: Faults, place: Places
) -> None:
    """`room.titel`, where the schema of `room` lists its fields and `titel` is none of them."""
    set_here = {node.name for node in tree.find_all(nodes.Name) if node.ctx != "load"}
    for node in tree.find_all((nodes.Getattr, nodes.Getitem)):
        schema = _schema_of(node.node, inputs, set_here)
        name = node.attr if isinstance(node, nodes.Getattr) else getattr(node.arg, "value", None)
        fields = schema.get("properties") if schema else None
        if not isinstance(name, str) or not isinstance(fields, dict) or schema is None:
            continue
        if name in fields or schema.get("additionalProperties") or schema.get("patternProperties"):
            continue
        if isinstance(node, nodes.Getattr) and name in _METHODS:
            continue
        faults.add(
            _at(passage, place(node.lineno), "template-field", f"the input has no field `{name}`", got=name,
                allowed=listed(fields), hint=did_you_mean(name, fields))
        )  # fmt: skip


_METHODS = frozenset({"items", "keys", "values", "get"})


def _schema_of(node: nodes.Node, inputs: Mapping[str, Any], set_here: set[str]) -> dict[str, Any] | None:
    """The JSON Schema of an expression that leads from an input through fields, where that is known."""
    if isinstance(node, nodes.Name):
        found = inputs.get("properties", {}).get(node.name) if node.name not in set_here else None
    elif isinstance(node, (nodes.Getattr, nodes.Getitem)):
        parent = _schema_of(node.node, inputs, set_here) or {}
        name = node.attr if isinstance(node, nodes.Getattr) else getattr(node.arg, "value", None)
        found = parent.get("items") if isinstance(name, int) else parent.get("properties", {}).get(name)
    else:
        return None
    return found if isinstance(found, dict) else None


def _check_words(passage: Passage, tree: nodes.Template, scope: Scope, faults: Faults) -> None:
    """Known names in the template's own text: renaming would miss them."""
    for data in tree.find_all(nodes.TemplateData):
        found = {match[0] for match in _WORD.finditer(data.data) if match[0] in scope.marked_names}
        found |= {match[1] for match in _SPAN.finditer(data.data) if match[1] in scope.tools or match[1] in scope.skills}
        for name in sorted(found):
            if name in scope.elsewhere:
                message, hint = f"`{name}` is a {scope.elsewhere[name]}", "include it in the harness, or do not mention it"
                faults.add(passage.fault(_offset(passage, data, name), "ref-not-included", message, got=name, hint=hint))
                continue
            function = "tool" if name in scope.tools else "skill"
            faults.add(
                passage.fault(_offset(passage, data, name), "ref-bare",
                              f"a bare mention of the {function} {name} would be missed by a renaming", got=name,
                              allowed="{{ " + f"{function}('{name}')" + " }}",
                              hint="in a template names are written with tool() and skill()")
            )  # fmt: skip


def _offset(passage: Passage, data: nodes.TemplateData, name: str) -> int:
    """Where the name first stands on or after the line of the text that it is in."""
    start = 0
    for _ in range(data.lineno - 1):
        start = passage.text.find("\n", start) + 1
    return max(passage.text.find(name, start), start)


def _at(passage: Passage, place: tuple[int, int], code: str, message: str, **parts: str) -> Any:
    from harnessctl.errors import Fault

    return Fault(passage.path, *place, code, message, **parts)
