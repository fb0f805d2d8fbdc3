"""Prompts: a PromptPipeline to the state's Prompt."""

from __future__ import annotations

from typing import Any

import msgspec

from harnessctl.bundle import state
from harnessctl.compile import json_schemas
from harnessctl.compile.order import cycle_in, shown
from harnessctl.compile.references import text_of
from harnessctl.compile.rules import RuleInput, bind_rules
from harnessctl.compile.scope import Scope, listed
from harnessctl.compile.sources import header
from harnessctl.compile.templates import check_expression, check_template
from harnessctl.compile.unit import Bound
from harnessctl.errors import Faults
from harnessctl.manifests.attributes import rule_name
from harnessctl.manifests.load import Document, PathPart
from harnessctl.manifests.locate import SourceFile
from harnessctl.manifests.schemas import convert
from harnessctl.manifests.specs import prompt as specs
from harnessctl.manifests.specs.base import Rule

#: Names in templates besides the inputs.
NAMES = ("skills", "messages", "limits", "tool", "skill")


def read(file: SourceFile, data: bytes, faults: Faults) -> Document | None:
    """The manifest in the bytes, when it is a pipeline."""
    document = header(file, data, "PromptPipeline", specs.PromptPipeline, ("blocks",), faults)
    name = document.get("name") if document is not None else None
    if document is not None and isinstance(name, str) and name != file.name:
        faults.add(
            document.fault(
                "prompt-name",
                "the pipeline's name is not its file's",
                "name",
                got=name,
                allowed=file.name,
                hint=f"write name: {file.name}, or rename the file",
            )
        )
    return document


def outline(file: SourceFile, parsed: Document) -> dict[str, Any]:
    """Its place; nothing of a pipeline is referred to by name but itself."""
    return {"place": [file.path, *parsed.place("name")], "inputs": parsed.get("inputs", default={})}


def bind(file: SourceFile, parsed: Document, scope: Scope, faults: Faults) -> Bound:
    """The state's Prompt under `prompt`."""
    bound = Bound()
    inputs = _inputs(parsed, faults)
    names = (*inputs.get("properties", {}), *NAMES)
    blocks: list[state.Block] = []
    seen: dict[str, int] = {}
    raw_blocks = parsed.get("blocks", default=[])
    for n, _ in enumerate(raw_blocks):
        spec = convert(parsed, "PromptPipeline", specs.Block, faults, "blocks", n, name="Block")
        if spec is None:
            continue
        if spec.id in seen:
            faults.add(
                parsed.fault(
                    "block-duplicate",
                    f"two blocks are called `{spec.id}`",
                    "blocks",
                    n,
                    "id",
                    got=spec.id,
                    allowed=f"first at line {seen[spec.id]}",
                )
            )
        seen.setdefault(spec.id, parsed.place("blocks", n, "id")[0])
        blocks.append(_block(file, parsed, spec, scope, names, inputs, bound, faults, "blocks", n))
    _check_order(parsed, faults)
    bound.state["prompt"] = msgspec.to_builtins(state.Prompt(inputs=inputs, blocks=blocks))
    return bound


def _inputs(document: Document, faults: Faults) -> dict[str, Any]:
    if not document.get("inputs"):
        return {}
    rewritten = json_schemas.rewrite(document, faults, "inputs")
    if rewritten is None:
        # That was said; templates are checked by the names that were meant.
        names = document.get("inputs", "properties")
        return {"properties": {str(name): {} for name in names}} if isinstance(names, dict) else {}
    schema = rewritten.schema
    if schema.get("type", "object") != "object" or "properties" not in schema:
        faults.add(
            document.fault(
                "prompt-inputs",
                "the inputs are not the schema of an object",
                "inputs",
                key=True,
                got=", ".join(schema),
                allowed="type: object with properties",
            )
        )
        return {}
    for name in schema["properties"]:
        if name in NAMES or not name.isidentifier():
            why = "has a meaning of its own in templates" if name in NAMES else "is not a name that a template can read"
            faults.add(
                document.fault(
                    "prompt-inputs",
                    f"the input `{name}` {why}",
                    "inputs",
                    "properties",
                    name,
                    key=True,
                    got=name,
                    hint="choose another name",
                )
            )
    for n, name in enumerate(schema.get("required", [])):
        if name not in schema["properties"]:
            faults.add(
                document.fault(
                    "prompt-inputs",
                    "`required` names an input that is not declared",
                    "inputs",
                    "required",
                    n,
                    got=str(name),
                    allowed=listed(schema["properties"]),
                )
            )
    return {"type": "object", **schema}


def _block(
    file: SourceFile,
    document: Document,
    spec: specs.Block,
    scope: Scope,
    names: tuple[str, ...],
    inputs: dict[str, Any],
    bound: Bound,
    faults: Faults,
    *at: PathPart,
) -> state.Block:
    if (spec.template is None) == (spec.items is None):
        faults.add(
            document.fault(
                "block-form",
                f"the block `{spec.id}` is made in exactly one way",
                *at,
                got="neither" if spec.template is None else "template and items",
                allowed="template or items",
            )
        )
    if spec.heading is not None and spec.items is None:
        faults.add(
            document.fault(
                "block-form",
                "a heading goes with items only",
                *at,
                "heading",
                key=True,
                hint="write it into the template",
            )
        )
    used: set[str] = set()
    if spec.template is not None:
        used |= check_template(document.passage(*at, "template"), scope, names, faults, inputs=inputs)
    if spec.when is not None:
        used |= check_expression(document.passage(*at, "when"), scope, names, faults, inputs=inputs)
    for limit in sorted(used):
        bound.need("limit-used", limit)
    items = _items(document, spec.items or [], faults, *at, "items")
    rules, numbers = bind_rules(items, scope, faults)
    bound.links.setdefault("limit-number", []).extend([file.path, *number] for number in numbers)
    bound.places[f"prompt/blocks/{spec.id}"] = [file.path, *document.place(*at, "id")]
    for item in items:
        bound.places[f"prompt/blocks/{spec.id}/items/{item.id}"] = [file.path, *item.place]
    return state.Block(
        id=spec.id,
        role=spec.role,
        template=spec.template,
        heading=text_of(document.passage(*at, "heading"), scope, faults) if spec.heading is not None else [],
        items=rules,
        when=spec.when,
        after=spec.after,
        pin=spec.pin,
    )


def _items(document: Document, rules: list[Rule], faults: Faults, *at: PathPart) -> list[RuleInput]:
    """The items as rules; those without an id are named as rules of skills are."""
    taken: dict[str, int] = {}
    for n, rule in enumerate(rules):
        if rule.id is not None and rule.id in taken:
            faults.add(
                document.fault(
                    "rule-duplicate",
                    f"two items of the block are called `{rule.id}`",
                    *at,
                    n,
                    "id",
                    got=rule.id,
                    allowed=f"first at line {taken[rule.id]}",
                )
            )
        elif rule.id is not None:
            taken[rule.id] = document.place(*at, n, "id")[0]
    items = []
    for n, rule in enumerate(rules):
        values = {name: value for name in ("after", "requires", "limit") if (value := getattr(rule, name)) is not None}
        places = {name: document.place(*at, n, name) for name in values}
        name = rule.id or rule_name(rule.text, taken)
        place = document.place(*at, n, "text")
        taken.setdefault(name, place[0])
        passage = document.passage(*at, n, "text")
        items.append(RuleInput(name, passage, place, rule.protected, rule.verbatim, values, places))
    return items


def _check_order(document: Document, faults: Faults) -> None:
    raw = [block for block in document.get("blocks", default=[]) if isinstance(block, dict)]
    ids = [block.get("id") for block in raw]
    edges: dict[str, list[str]] = {}
    for n, block in enumerate(document.get("blocks", default=[])):
        after = block.get("after") if isinstance(block, dict) else None
        if not isinstance(after, str):
            continue
        edges[str(block.get("id"))] = [after]
        if after not in ids:
            faults.add(
                document.fault(
                    "block-unknown",
                    "`after` names a block that is not here",
                    "blocks",
                    n,
                    "after",
                    got=after,
                    allowed=listed(str(i) for i in ids),
                )
            )
        elif ids.index(after) > ids.index(block.get("id")) and edges.get(after) != [block.get("id")]:
            faults.add(
                document.fault(
                    "block-order",
                    "the block stands before the one that it is said to stand after",
                    "blocks",
                    n,
                    "after",
                    got=after,
                    allowed=f"`{after}` above it",
                    hint="move one of the two",
                )
            )
    cycle = cycle_in(edges)
    if cycle:
        n = ids.index(cycle[0])
        faults.add(
            document.fault(
                "block-cycle",
                "blocks that are joined by `after` go round in a circle",
                "blocks",
                n,
                "after",
                got=shown(cycle),
                allowed="no circle",
            )
        )
