"""Foreign: names in what augmentation leaves whole: templates, expressions, Python code, scripts, schemas.

What always holds: this is worked out once of a state, or of a module. What the runtime surfaces (code spans in texts
made at run time, `tool()` and `skill()` in templates) is told from what it leaves as it is (words).
"""

from __future__ import annotations

import ast
import functools
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import jinja2

from harnessctl.augment.laws.marks import Marks, shown_spans, spans_in, words_of
from harnessctl.augment.laws.places import action_of
from harnessctl.augment.laws.schemas import DATA, SAME_OBJECT
from harnessctl.bundle.sandbox import called_with_constant, strict_environment
from harnessctl.bundle.state import HarnessState, Hook


@dataclass(slots=True, frozen=True)
class TemplateNames:
    """`marks` are of the template's own words, `names` references as in Marks; `said` strings in its expressions."""

    marks: Marks
    names: frozenset[str]
    said: frozenset[str]


@functools.lru_cache(maxsize=1024)
def template_names(source: str) -> TemplateNames:
    """The names in a Jinja template."""
    tree = strict_environment().parse(source)
    spans: set[str] = set()
    words: set[str] = set()
    said: set[str] = set()
    for data in tree.find_all(jinja2.nodes.TemplateData):
        spans.update(span for span in spans_in(data.data) if span)
        words |= words_of(data.data)
    names: set[str] = set()
    for function in ("tool", "skill"):
        names.update(f"{function}:{name}" for _, name in called_with_constant(source, function) if name is not None)
    referred = {name.partition(":")[2] for name in names}
    for node in tree.find_all(jinja2.nodes.Const):
        if isinstance(node.value, str) and node.value not in referred:
            said.add(node.value)
            spans.update(span for span in spans_in(node.value) if span)
    for node in tree.find_all((jinja2.nodes.Getattr, jinja2.nodes.Getitem)):
        if isinstance(node.node, jinja2.nodes.Name) and node.node.name == "limits":
            field = node.attr if isinstance(node, jinja2.nodes.Getattr) else getattr(node.arg, "value", None)
            names.add(f"limit:{field}")
    return TemplateNames(Marks(spans=frozenset(spans), words=frozenset(words)), frozenset(names), frozenset(said))


@functools.lru_cache(maxsize=4096)
def expression_strings(source: str) -> frozenset[str]:
    """The strings in a sandboxed expression; all its words where it cannot be read."""
    try:
        tree = strict_environment().parse("{{ (" + source.replace("\n", " ") + ") }}")
    except jinja2.TemplateError:
        return words_of(source)
    return frozenset(node.value for node in tree.find_all(jinja2.nodes.Const) if isinstance(node.value, str))


@functools.lru_cache(maxsize=1024)
def code_spans(source: str) -> frozenset[tuple[str | None, str]]:
    """The code spans in the strings of a Python module that may reach a model: all but docstrings."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return frozenset(shown_spans(source))
    documented = {
        id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    }
    out: set[tuple[str | None, str]] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in documented:
            out.update(shown_spans(node.value))
    return frozenset(out)


@functools.lru_cache(maxsize=1024)
def is_python(source: str) -> bool:
    """Whether a module can be compiled."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            compile(source, "<added>", "exec", dont_inherit=True)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return True


@functools.lru_cache(maxsize=1024)
def script_spans(source: str) -> frozenset[tuple[str | None, str]]:
    """The code spans in a file that a command hook runs or reads."""
    return frozenset(shown_spans(source))


def strings_in(value: Any, key: str = "") -> Iterator[tuple[str, str]]:
    """(the key that it stands under, string) of every string in JSON."""
    if isinstance(value, str):
        yield key, value
    elif isinstance(value, dict):
        for name, item in value.items():
            yield from strings_in(item, name)
    elif isinstance(value, list):
        for item in value:
            yield from strings_in(item, key)


def told_values(schema: Any) -> frozenset[str]:
    """Words in what a model reads of a JSON Schema besides descriptions: values, titles, patterns. They stay as they are,
    since a value is an argument; so a name among them would be left behind by a renaming."""
    found: set[str] = set()
    for key, text in strings_in(schema):
        if key != "description":
            found |= words_of(text)
    return frozenset(found)


def hook_strings(hook: Hook) -> set[str]:
    """Every string that the hook compares names with: in `when`, `check` and `observe`, and in their expressions."""
    out: set[str] = set()
    for part in (hook.when, hook.check, hook.observe):
        for key, text in strings_in(part):
            if key in ("expr", "pass") or key not in ("must", "must_not", "phrases"):
                out.add(text)
            if key in ("expr", "pass", "input"):
                out |= expression_strings(text)
    action = action_of(hook)
    if action is not None and action.rewrite is not None:
        out |= template_names(action.rewrite["to"]).said
    return out


def told_words(hook: Hook) -> frozenset[str]:
    """Bare words that the runtime itself would tell a model of the hook's check, where the hook has no message."""
    action = action_of(hook)
    if action is None or action.message is not None or action.action not in ("block", "retry") or hook.check is None:
        return frozenset()
    out: set[str] = set()
    for key, text in strings_in(hook.check):
        if key in ("expr", "pass"):
            out |= words_of(text)
    return frozenset(out)


def properties_of(schema: Any) -> tuple[frozenset[str], frozenset[str]]:
    """The names of the properties of the object that a JSON Schema describes, and of those within its properties."""
    own: set[str] = set()
    deep: set[str] = set()
    _properties(schema, own, deep, is_own=True)
    return frozenset(own), frozenset(deep)


def _properties(schema: Any, own: set[str], deep: set[str], *, is_own: bool) -> None:
    if isinstance(schema, list):
        for item in schema:
            _properties(item, own, deep, is_own=is_own)
    if not isinstance(schema, dict):
        return
    for key, value in schema.items():
        if key in ("properties", "patternProperties") and isinstance(value, dict):
            (own if is_own and key == "properties" else deep).update(value)
            for member in value.values():
                _properties(member, own, deep, is_own=False)
        elif key not in DATA:
            _properties(value, own, deep, is_own=is_own and key in SAME_OBJECT)


def state_strings(state: HarnessState) -> set[str]:
    """Every string of hooks, blocks and routes that names are compared with."""
    out: set[str] = set()
    for hook in state.hooks:
        out |= hook_strings(hook)
    for block in state.prompt.blocks:
        if block.template is not None:
            out |= template_names(block.template).said
        if block.when is not None:
            out |= expression_strings(block.when)
    for expression in (state.private_when, state.silent_when):
        if expression is not None:
            out |= expression_strings(expression)
    return out
