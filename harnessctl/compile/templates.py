"""Templates and expressions: everything that would fail when one is rendered, found without rendering it.

Checked: syntax, filters and tests that exist, accesses that the sandbox refuses, undeclared names, `tool()`, `skill()`
and `limits` with names that are known, fields of declared inputs, and known names written out where `tool()` or
`skill()` belongs.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

import jinja2
from jinja2 import nodes

from harnessctl.bundle.sandbox import (
    called_with_constant,
    lenient_environment,
    strict_environment,
    undeclared_names,
    unsafe_accesses,
)
from harnessctl.compile.scope import Scope, listed
from harnessctl.errors import Fault, Faults
from harnessctl.manifests.passage import Passage
from harnessctl.manifests.violations import did_you_mean

#: Names that jinja2 itself supplies.
_GLOBALS = frozenset({"range", "dict", "cycler", "joiner", "namespace"})
_METHODS = frozenset({"items", "keys", "values", "get"})
_WORD = re.compile(r"[A-Za-z0-9_]+(?:[-.]+[A-Za-z0-9_]+)*")
_SPAN = re.compile(r"`([^`\n]+)`")

Schema = Mapping[str, Any]


def check_template(
    passage: Passage, scope: Scope, names: Iterable[str], faults: Faults, *, inputs: Schema | None = None
) -> set[str]:
    """Check a template over `names`; returns the limits that it uses. `inputs` is the JSON Schema of the inputs."""
    return _Checked(passage, passage.text, scope, names, inputs or {}, faults).check()


def check_expression(
    passage: Passage, scope: Scope, names: Iterable[str], faults: Faults, *, inputs: Schema | None = None
) -> set[str]:
    """Check an expression over `names`; returns the limits that it uses. `inputs` is the JSON Schema of the inputs."""
    source = "{{ (" + passage.text.replace("\n", " ") + ") }}"
    return _Checked(passage, source, scope, names, inputs or {}, faults, is_expression=True).check()


class _Checked:
    """One template under check. `source` is what jinja2 reads: the passage's text, or the expression in braces."""

    def __init__(
        self,
        passage: Passage,
        source: str,
        scope: Scope,
        names: Iterable[str],
        inputs: Schema,
        faults: Faults,
        *,
        is_expression: bool = False,
    ) -> None:
        self.passage = passage
        self.source = source
        self.scope = scope
        self.names = frozenset(names)
        self.inputs = inputs
        self.faults = faults
        self.is_expression = is_expression

    def check(self) -> set[str]:
        """Add every fault; the limits used."""
        tree = self._parse()
        if tree is None:
            return set()
        self._unsafe()
        self._undeclared(tree)
        for function, declared in (("tool", self.scope.tools), ("skill", self.scope.skills)):
            if function in self.names:
                self._calls(function, declared)
        self._fields(tree)
        if not self.is_expression:
            self._words(tree)
        return self._limits(tree) if "limits" in self.names else set()

    def _fault(
        self, line: int, word: str, code: str, message: str, *, got: str = "", allowed: str = "", hint: str = ""
    ) -> None:
        """A fault at a word on a line of the source, or at the line's start where the word is not on it."""
        text, start = self.passage.text, 0
        if not self.is_expression:
            for _ in range(line - 1):
                start = text.find("\n", start) + 1
        end = text.find("\n", start) if not self.is_expression else -1
        found = re.compile(rf"(?<![A-Za-z0-9_]){re.escape(word)}(?![A-Za-z0-9_])").search(
            text, start, end if end >= 0 else len(text)
        )
        place = self.passage.place(found.start() if found and word else start)
        self.faults.add(Fault(self.passage.path, *place, code, message, got, allowed, hint))

    def _parse(self) -> nodes.Template | None:
        what = "an expression" if self.is_expression else "a template"
        try:
            tree = strict_environment().parse(self.source)
            # Unknown filters and tests, and assignments out of place, show only when code is generated.
            if self.is_expression:
                lenient_environment().compile_expression(self.passage.text)  # alone: `1 }} {{ 2` is no expression
            else:
                strict_environment().compile(self.source)
        except jinja2.TemplateError as error:
            line = getattr(error, "lineno", 1) or 1
            self._fault(line, "", "template-syntax", f"{what} cannot be read", got=str(error.message)[:120])
            return None
        except RecursionError:
            self._fault(1, "", "template-syntax", f"{what} is nested too deeply")
            return None
        return tree

    def _unsafe(self) -> None:
        for line, what in unsafe_accesses(self.source):
            self._fault(
                line,
                what,
                "template-unsafe",
                "the sandbox refuses this access",
                got=what,
                allowed="fields without leading underscores; no include, import, extends, attr",
                hint="a template reads the names that it is given and nothing else",
            )

    def _undeclared(self, tree: nodes.Template) -> None:
        known = self.names | _GLOBALS
        lines = {node.name: node.lineno for node in reversed(list(tree.find_all(nodes.Name)))}
        for name in sorted(undeclared_names(self.source) - known):
            self._fault(
                lines.get(name, 1),
                name,
                "template-undeclared",
                f"`{name}` is not declared",
                got=name,
                allowed=listed(self.names),
                hint=did_you_mean(name, known) or ("declare it under inputs" if "messages" in self.names else ""),
            )

    def _calls(self, function: str, declared: Mapping[str, Any]) -> None:
        for line, argument in called_with_constant(self.source, function):
            if argument is None:
                self._fault(
                    line,
                    function,
                    "template-reference",
                    f"{function}() is called with something that is not a name",
                    allowed=f"{function}('name') with the name written out",
                    hint="so that renaming finds every reference",
                )
            elif argument not in declared:
                self._fault(
                    line,
                    argument,
                    "ref-unknown",
                    f"there is no {function} of this name",
                    got=argument,
                    allowed=listed(declared),
                    hint=self.scope.near(argument, declared),
                )

    def _limits(self, tree: nodes.Template) -> set[str]:
        used: set[str] = set()
        for node in tree.find_all((nodes.Getattr, nodes.Getitem)):
            if not (isinstance(node.node, nodes.Name) and node.node.name == "limits"):
                continue
            name = _field(node)
            if isinstance(name, str) and name in self.scope.limits:
                used.add(name)
                continue
            self._fault(
                node.lineno,
                str(name),
                "limit-unknown",
                "there is no limit of this name",
                got=str(name) if name is not None else "a name that is computed",
                allowed=listed(self.scope.limits),
                hint=self.scope.near(str(name), self.scope.limits),
            )
        return used

    def _fields(self, tree: nodes.Template) -> None:
        """`room.titel`, where the schema of `room` lists its fields and `titel` is none of them."""
        set_here = {node.name for node in tree.find_all(nodes.Name) if node.ctx != "load"}
        for node in tree.find_all((nodes.Getattr, nodes.Getitem)):
            schema = self._schema_of(node.node, set_here)
            name = _field(node)
            fields = schema.get("properties") if schema is not None else None
            if schema is None or not isinstance(name, str) or not isinstance(fields, dict):
                continue
            is_open = schema.get("additionalProperties") or schema.get("patternProperties")
            is_method = isinstance(node, nodes.Getattr) and name in _METHODS
            if name not in fields and not is_open and not is_method and not name.startswith("_"):
                self._fault(
                    node.lineno,
                    name,
                    "template-field",
                    f"the input has no field `{name}`",
                    got=name,
                    allowed=listed(fields),
                    hint=did_you_mean(name, fields),
                )

    def _schema_of(self, node: nodes.Node, set_here: set[str]) -> Schema | None:
        """The JSON Schema of an expression that leads from an input through fields, where that is known."""
        found: Any = None
        if isinstance(node, nodes.Name) and node.name not in set_here:
            found = self.inputs.get("properties", {}).get(node.name)
        elif isinstance(node, (nodes.Getattr, nodes.Getitem)):
            parent = self._schema_of(node.node, set_here) or {}
            name = _field(node)
            found = parent.get("items") if isinstance(name, int) else parent.get("properties", {}).get(name)
        return found if isinstance(found, dict) else None

    def _words(self, tree: nodes.Template) -> None:
        """Known names in the template's own text: renaming would miss them."""
        scope = self.scope
        for data in tree.find_all(nodes.TemplateData):
            spans = {match[1] for match in _SPAN.finditer(data.data)}
            words = {match[0] for match in _WORD.finditer(data.data)} & scope.marked_names
            for name in sorted(words | (spans & (scope.tools.keys() | scope.skills.keys()))):
                line = data.lineno + data.data.count("\n", 0, data.data.index(name))
                if name in scope.elsewhere:
                    hint = "include it in the harness, or do not mention it"
                    self._fault(
                        line, name, "ref-not-included", f"`{name}` is a {scope.elsewhere[name]}", got=name, hint=hint
                    )
                    continue
                function = "tool" if name in scope.tools else "skill"
                self._fault(
                    line,
                    name,
                    "ref-bare",
                    f"a bare mention of the {function} {name} would be missed by a renaming",
                    got=name,
                    allowed="{{ " + f"{function}('{name}')" + " }}",
                    hint="in a template names are written with tool() and skill()",
                )


def _field(node: nodes.Getattr | nodes.Getitem) -> Any:
    """The field that is read, where it is written out."""
    return node.attr if isinstance(node, nodes.Getattr) else getattr(node.arg, "value", None)
