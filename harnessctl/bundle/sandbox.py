"""Sandboxed expressions and templates: one environment for prompts, hooks, routes and rewrites.

What always holds: no attribute that begins with an underscore, no unbounded range, no mutation of what is passed in,
nothing drawn at random.
Templates are strict: an undefined name is an error. Expressions are lenient: an undefined name makes them false.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Mapping
from typing import Any

import jinja2
import jinja2.meta
import jinja2.nodes
from jinja2.sandbox import ImmutableSandboxedEnvironment

MAX_RENDERED_CHARS = 1_000_000
_DICT_ATTRIBUTES = frozenset(dir(dict))


class _Environment(ImmutableSandboxedEnvironment):
    """Refuses to build huge strings by multiplication and power, which the stock sandbox lets through."""

    intercepted_binops = frozenset({"*", "**"})

    def call_binop(self, context: Any, operator: str, left: Any, right: Any) -> Any:
        if operator == "**" and not (abs(left) < 1e6 and abs(right) < 100):
            raise jinja2.sandbox.SecurityError("power out of bounds")
        if operator == "*":
            size = next((len(x) for x in (left, right) if isinstance(x, (str, list, tuple))), 0)
            count = next((x for x in (left, right) if isinstance(x, int)), 0)
            if size * count > MAX_RENDERED_CHARS:
                raise jinja2.sandbox.SecurityError("repetition out of bounds")
        return super().call_binop(context, operator, left, right)

    def getattr(self, obj: Any, attribute: str) -> Any:
        # Nearly all that templates read are members of dicts, which Jinja finds only after an AttributeError.
        if type(obj) is dict and attribute not in _DICT_ATTRIBUTES:
            return obj[attribute] if attribute in obj else self.undefined(obj=obj, name=attribute)
        return super().getattr(obj, attribute)

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        # What is drawn at random cannot be replayed.
        del self.globals["lipsum"], self.filters["random"]
        self.filters["tojson"] = _to_json


def _to_json(value: Any, indent: int | None = None) -> str:
    """The filter `tojson`: JSON as a model reads it. Jinja's own writes it for HTML: `<` and Chinese as escapes."""
    return json.dumps(value, ensure_ascii=False, sort_keys=True, indent=indent)


@functools.cache
def strict_environment() -> ImmutableSandboxedEnvironment:
    """The environment of templates: strict, without autoescape, blocks trimmed as prompts want them."""
    return _Environment(
        undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=False
    )


@functools.cache
def lenient_environment() -> ImmutableSandboxedEnvironment:
    """The environment of expressions: an undefined name, or a part of one, is undefined, and false."""
    return _Environment(undefined=jinja2.ChainableUndefined)


@functools.lru_cache(maxsize=4096)
def compile_template(source: str) -> jinja2.Template:
    """A strict template; raises jinja2.TemplateSyntaxError."""
    template = strict_environment().from_string(source)
    # Jinja keeps the globals in a ChainMap, which every rendering copies; that of a dict is several times as fast.
    template.globals = dict(template.globals)
    return template


@functools.lru_cache(maxsize=4096)
def compile_expression(source: str) -> Callable[[Mapping[str, Any]], Any]:
    """A function from names to the expression's value; undefined and failing operations give None, never an error.

    Raises jinja2.TemplateSyntaxError when `source` is not an expression.
    """
    environment = lenient_environment()
    expression = environment.compile_expression(source, undefined_to_none=True)
    name = source.strip()
    if name.isidentifier() and name not in environment.globals and name.lower() not in ("true", "false", "none"):
        return lambda names: names.get(name)  # a name alone needs none of what an evaluation sets up
    # What calling `expression` does, less two copies of the names and a traceback made for nobody.
    template = expression._template
    render, shared = template.root_render_func, dict(template.globals)

    def evaluate(names: Mapping[str, Any]) -> Any:
        try:
            context = environment.context_class(environment, {**shared, **names}, template.name, template.blocks)
            for _ in render(context):
                pass
            value = context.vars["result"]
            return None if isinstance(value, jinja2.Undefined) else value
        except (TypeError, ValueError, ArithmeticError, LookupError, AttributeError, jinja2.TemplateError):
            return None

    return evaluate


@functools.lru_cache(maxsize=4096)
def undeclared_names(source: str) -> frozenset[str]:
    """The names that a template or `{{ expression }}` reads and does not set itself."""
    return frozenset(jinja2.meta.find_undeclared_variables(strict_environment().parse(source)))


def unsafe_accesses(source: str) -> list[tuple[int, str]]:
    """(line, what) for each access that the sandbox would refuse at run time, found without running the template."""
    tree = strict_environment().parse(source)
    found: list[tuple[int, str]] = []
    for node in tree.find_all((jinja2.nodes.Getattr, jinja2.nodes.Getitem)):
        name = node.attr if isinstance(node, jinja2.nodes.Getattr) else _constant(node.arg)
        if isinstance(name, str) and _is_unsafe(name):
            found.append((node.lineno, name))
    for call in tree.find_all(
        (jinja2.nodes.Include, jinja2.nodes.Import, jinja2.nodes.FromImport, jinja2.nodes.Extends)
    ):
        found.append((call.lineno, type(call).__name__.lower()))
    for filter_node in tree.find_all(jinja2.nodes.Filter):
        first = _constant(filter_node.args[0]) if filter_node.args else None
        if filter_node.name == "attr" or (filter_node.name == "map" and first == "attr"):
            found.append((filter_node.lineno, "attr"))
        elif isinstance(name := _attribute(filter_node), str):
            found += [(filter_node.lineno, part) for part in name.split(".") if _is_unsafe(part)]
    return sorted(found)


#: Filters that read an attribute of each item (`a.b` reads b of a), and which of their arguments names it.
_ATTRIBUTE_AT = {
    "selectattr": 0,
    "rejectattr": 0,
    "groupby": 0,
    "sum": 0,
    "unique": 1,
    "min": 1,
    "max": 1,
    "join": 1,
    "sort": 2,
}


def _attribute(node: jinja2.nodes.Filter) -> Any:
    """The attribute that a filter reads of each item, where it is known; None otherwise."""
    named = next((pair.value for pair in node.kwargs if pair.key == "attribute"), None)
    at = _ATTRIBUTE_AT.get(node.name)
    if named is None and at is not None and at < len(node.args):
        named = node.args[at]
    return _constant(named) if named is not None else None


def _is_unsafe(name: str) -> bool:
    return name.startswith("_") or name in {"mro", "format_map", "gi_frame", "cr_frame", "func_globals"}


def _constant(node: jinja2.nodes.Node) -> Any:
    """The value of an expression that is known without its names (`'a' ~ 'b'`); None for any other."""
    if isinstance(node, jinja2.nodes.Const):
        return node.value
    if isinstance(node, (jinja2.nodes.Concat, jinja2.nodes.Add)):
        parts = node.nodes if isinstance(node, jinja2.nodes.Concat) else [node.left, node.right]
        values = [_constant(part) for part in parts]
        return "".join(values) if all(isinstance(value, str) for value in values) else None
    return None


def called_with_constant(source: str, function: str) -> list[tuple[int, str | None]]:
    """(line, argument) for each call of `function` (`tool`, `skill`); None where the argument is not a constant string."""
    out: list[tuple[int, str | None]] = []
    for call in strict_environment().parse(source).find_all(jinja2.nodes.Call):
        if isinstance(call.node, jinja2.nodes.Name) and call.node.name == function:
            value = call.args[0] if len(call.args) == 1 else None
            out.append(
                (
                    call.lineno,
                    value.value if isinstance(value, jinja2.nodes.Const) and isinstance(value.value, str) else None,
                )
            )
    return out
