"""Twins: near-duplicates of a harness's tools, for a model to tell apart from the right one [C.3].

A twin has the parameters of its tool, a name and a description close to its, and a result of its shape with other values;
its description says for what it is: last season, the supplier's side, training. What always holds: a twin writes nothing
and reaches nothing; its result depends on its arguments and its scope alone; the code is one module for a harness, the
same in each variant.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import orjson

from harnessctl.augment.languages import Language, languages
from harnessctl.augment.once import once
from harnessctl.augment.operators.tool_distract import GROUP, style_of
from harnessctl.augment.words import parts_of
from harnessctl.bundle.state import HarnessState, Tool
from harnessctl.bundle.text import Text
from harnessctl.manifests.packaged import packaged_yaml
from harnessctl.runtime.code import Code

MODULE = "harnessctl_twins"
_CODE = '''"""Tools that are nearly those of the harness, made by augmentation: what they tell is made up of their arguments."""

import hashlib

SHAPES = {shapes}
NOTES = {notes}
_NUMBERS = ("price", "stock", "count", "total", "freight", "days", "hours", "value", "amount", "cost", "surcharge", "months")
_SPANS = (
    ("_id", (1, 20)), ("link", (1, 20)), ("now", (1, 20)), ("waiting", (1, 20)), ("min", (2, 4)), ("max", (5, 9)),
    ("days", (2, 9)), ("hours", (6, 72)), ("within", (6, 72)), ("freight", (4, 20)), ("surcharge", (4, 20)),
    ("months", (2, 30)),
)


def _value(schema, key, arguments, seed):
    drawn = int.from_bytes(hashlib.blake2b(f"{{seed}}/{{key}}".encode(), digest_size=6).digest(), "big")
    if key in arguments:
        return arguments[key]
    if schema.get("enum"):
        return schema["enum"][drawn % len(schema["enum"])]
    kind = schema.get("type")
    kind = kind[0] if isinstance(kind, list) else kind
    if kind is None and (key.endswith("link") or key.endswith("_id")):
        return next((value for value in arguments.values() if isinstance(value, int)), 1 + drawn % 20)
    if kind is None:
        kind = "number" if any(word in key for word in _NUMBERS) else "string"
    if kind == "object":
        return {{name: _value(part, name, arguments, f"{{seed}}/{{key}}") for name, part in schema.get("properties", {{}}).items()}}
    if kind == "array":
        part = schema.get("items", {{}})
        return [_value(part, key, {{}}, f"{{seed}}/{{key}}/{{place}}") for place in range(2)]
    if kind == "boolean":
        return drawn % 2 == 0
    if kind in ("integer", "number"):
        low, high = next((span for word, span in _SPANS if word in key), (7, 590) if kind == "number" else (1, 97))
        return low + drawn % (high - low + 1)
    return f"{{seed.partition('/')[2].partition('/')[0]}} {{key}}".strip() if key.endswith("_id") else NOTES[seed.partition("/")[0]]


def _twin(tool, scope, language):
    def answer(**arguments):
        """The shape of the tool's own result, with other values."""
        said = ",".join(f"{{name}}={{arguments[name]}}" for name in sorted(arguments))
        seed = f"{{scope}}-{{language}}/{{tool}}/{{said}}"
        found = _value(SHAPES[tool], "", arguments, seed)
        return {{"record": NOTES[f"{{scope}}-{{language}}"], **found}} if isinstance(found, dict) else found

    answer.inline = True
    return answer


for _tool in SHAPES:
    for _note in NOTES:
        _scope, _, _language = _note.partition("-")
        globals()[f"{{_tool}}__{{_scope}}__{{_language}}"] = _twin(_tool, _scope, _language)
'''
_SENTENCE_END = re.compile(r"(?<=[a-z0-9)\]])\.(?=\s|$)|。")
_NOT_IDENTIFIER = re.compile(r"\W")


@dataclass(slots=True, frozen=True)
class Scope:
    """What a twin is for: a part of its name (`name` behind it, `adjective` within it) and its words in one language."""

    name: str
    adjective: str
    reads: str
    writes: str
    short: str


@functools.cache
def scopes(language: Language) -> tuple[Scope, ...]:
    """All scopes."""
    found: list[Scope] = []
    for entry in _file():
        reads, writes, short, _ = entry[language]
        found.append(Scope(entry["name"], entry["as"], reads, writes, short))
    return tuple(found)


def _file() -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = packaged_yaml(__file__, "twins.yaml")["scopes"]
    return found


@once
def twin_source(state: HarnessState) -> str:
    """The module of all twins of `state`."""
    shapes = {_identifier(tool.name): _shape(tool.result) for tool in twinned(state)}
    notes = {f"{entry['name']}-{language}": entry[language][3] for entry in _file() for language in ("en", "zh")}
    return _CODE.format(shapes=_written(shapes), notes=_written(notes))


def _written(value: Any) -> str:
    """JSON as Python, keys in order."""
    return repr(orjson.loads(orjson.dumps(value, option=orjson.OPT_SORT_KEYS)))


def twinned(state: HarnessState) -> Sequence[Tool]:
    """The tools that may have twins: those that do something, but for the one that loads skills."""
    return [tool for tool in state.tools if tool.final is None and (tool.run or {}).get("builtin") != "load_skill"]


def twin(state: HarnessState, tool: Tool, scope: Scope, name: str, language: Language, module: str) -> Tool:
    """The twin of `tool` for one scope, called `name`; its texts and results are in `language`."""
    return Tool(
        name=name,
        description=_description(state, tool, scope),
        group=GROUP,
        tags=_tags(state, tool),
        parameters=tool.parameters,
        docs=tool.docs,
        run={"python": f"{module}:{_identifier(tool.name)}__{scope.name}__{language}"},
    )


def twin_names(tool: str, scope: Scope) -> tuple[str, ...]:
    """How the twin of a tool may be called: `get_product_archive`, `get_archived_product`."""
    joint = "-" if tool.count("-") > tool.count("_") else "_"
    parts = parts_of(tool)
    inner = joint.join((parts[0], scope.adjective, *parts[1:])) if len(parts) > 1 else f"{scope.adjective}{joint}{tool}"
    return f"{tool}{joint}{scope.name}", inner


def twin_result(state: HarnessState, run: str, arguments: Mapping[str, Any]) -> Any:
    """What a twin answers, by the function that its `run` names."""
    return Code("", {MODULE: twin_source(state)}).function(f"{MODULE}:{run.partition(':')[2]}")(**arguments)


def _shape(result: Mapping[str, Any] | None) -> dict[str, Any]:
    """The result's schema as far as values are made of it; names alone where a schema gives no more."""
    if result is None:
        return {"type": "object", "properties": {"status": {"type": "string"}}}
    if result.get("type") == "object":
        named: list[str] = result.get("required", [])
        properties: dict[str, dict[str, Any]] = {name: dict[str, Any]() for name in named} | dict(
            result.get("properties", {})
        )
        return {"type": "object", "properties": properties or {"status": {"type": "string"}}}
    return dict(result)


def _identifier(name: str) -> str:
    return _NOT_IDENTIFIER.sub("_", name)


def _description(state: HarnessState, tool: Tool, scope: Scope) -> Text:
    """The first sentence of the tool's own description, and for what the twin is."""
    is_chinese = languages(state)[0] == "zh"
    is_short = style_of(state).is_short
    head: Text = []
    for part in tool.description:
        if isinstance(part, str) and (end := _SENTENCE_END.search(part)):
            head.append(part[: end.start()])
            break
        head.append(part)
    if head and isinstance(head[-1], str):
        head[-1] = head[-1].rstrip(" .。;；,，\n")
    if is_short:
        return [*head, f"（{scope.short}）" if is_chinese else f" ({scope.short})"]
    tail = scope.writes if tool.effect == "write" else scope.reads
    return [*head, f"，{tail}。" if is_chinese else f", {tail}."]


def _tags(state: HarnessState, tool: Tool) -> list[str]:
    """The tool's tags, so that hooks treat its twin alike: but for those by which a reply is routed, and those of calls that
    a hook demands before another one."""
    routes = f"{state.private_when or ''} {state.silent_when or ''}"
    demanded = {tag for hook in state.hooks if hook.event == "pre_tool" for tag in _demanded(hook.check)}
    return [tag for tag in tool.tags if f"'{tag}'" not in routes and f'"{tag}"' not in routes and tag not in demanded]


def _demanded(check: Any) -> Iterator[str]:
    if isinstance(check, dict):
        called = check.get("tool_called")
        if isinstance(called, dict):
            yield from called.get("tags", ())
        for value in check.values():
            yield from _demanded(value)
    elif isinstance(check, list):
        for value in check:
            yield from _demanded(value)
