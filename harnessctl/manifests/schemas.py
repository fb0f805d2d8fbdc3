"""The JSON Schemas of all kinds and records: what editors use is what a file is checked against.

The schemas are made from the specs. A value that msgspec accepts is one that the schema accepts; only for a value that
does not fit is the schema asked, for every fault at once.
"""

from __future__ import annotations

import functools
from typing import Any, TypeVar

import msgspec

from harnessctl.errors import Fault, Faults, UsageError
from harnessctl.manifests.load import Document, PathPart
from harnessctl.manifests.violations import explain

DRAFT = "https://json-schema.org/draft/2020-12/schema"
BASE = "https://github.com/harnessctl/harnessctl/schemas/v1"

#: What a struct cannot say of itself: exactly one of its fields is given.
_ONE_OF_FIELDS = ("Check", "Run", "Observe")

T = TypeVar("T")


def _types() -> dict[str, Any]:
    from harnessctl.bundle.files import Bundle
    from harnessctl.bundle.set_item import SetItem
    from harnessctl.bundle.variation import Variation
    from harnessctl.manifests.specs import (
        envelope,
        families,
        harness,
        hooks,
        mapping,
        prompt,
        roles,
        skill,
        suite,
        tools,
        world,
    )
    from harnessctl.records.calibration import CalibrationItem
    from harnessctl.records.comment import CommentInput
    from harnessctl.records.lineage import Lineage
    from harnessctl.records.scenario import Scenario
    from harnessctl.records.score import Score
    from harnessctl.records.set_card import SetCard
    from harnessctl.records.sft_data import Card, Harvest
    from harnessctl.records.trajectory import Trajectory
    from harnessctl.records.vote import Vote

    return {
        "Harness": harness.Harness,
        "Skill": skill.SkillFrontMatter,
        "Examples": skill.Examples,
        "Tools": tools.Tools,
        "Hooks": hooks.Hooks,
        "PromptPipeline": prompt.PromptPipeline,
        "World": world.World,
        "Families": families.Families,
        "Envelope": envelope.Envelope,
        "Suite": suite.Suite,
        "LogMapping": mapping.LogMapping,
        "Roles": roles.Roles,
        "CommentInput": CommentInput,
        "Trajectory": Trajectory,
        "Bundle": Bundle,
        "Variation": Variation,
        "Scenario": Scenario,
        "Score": Score,
        "SetItem": SetItem,
        "SetCard": SetCard,
        "Vote": Vote,
        "CalibrationItem": CalibrationItem,
        "Lineage": Lineage,
        "SftData": Card,
        "SftHarvest": Harvest,
    }


def kinds() -> list[str]:
    """The names that `schema_for` knows: manifest kinds first, then on-disk records."""
    return list(_types())


@functools.cache
def schema_for(kind: str) -> dict[str, Any]:
    """The JSON Schema (draft 2020-12) of a manifest kind or an on-disk record; UsageError for another name."""
    types = _types()
    if kind not in types:
        import difflib

        close = difflib.get_close_matches(kind, types, n=1, cutoff=0.5)
        raise UsageError(
            f"no kind `{kind}`; kinds are {', '.join(types)}", hint=f"did you mean {close[0]}?" if close else ""
        )
    schema = msgspec.json.schema(types[kind])
    definitions: dict[str, Any] = schema.get("$defs", {})
    for name in _ONE_OF_FIELDS:
        if name in definitions:
            definitions[name] |= {"minProperties": 1, "maxProperties": 1}
    return {"$schema": DRAFT, "$id": f"{BASE}/{kind}.json", "title": kind, **schema}


def definition(kind: str, name: str) -> dict[str, Any]:
    """The schema of one definition of a kind (`definition("Tools", "Tool")`), complete in itself."""
    whole = schema_for(kind)
    return {"$schema": DRAFT, "$ref": f"#/$defs/{name}", "$defs": whole["$defs"]}


def check(document: Document, schema: dict[str, Any], faults: Faults, *at: PathPart) -> bool:
    """Whether the value at a path of the document fits the schema; adds a fault for each thing that does not."""
    import jsonschema_rs

    validator = jsonschema_rs.validator_for(schema)
    found: list[Fault] = []
    for error in validator.iter_errors(document.get(*at)):
        found.extend(explain(document, at, error, schema))
    faults.extend(dict.fromkeys(found))
    return not found


def convert(document: Document, kind: str, spec: type[T], faults: Faults, *at: PathPart, name: str = "") -> T | None:
    """The value at a path as `spec`, or None with a fault for everything that does not fit.

    `name` is the definition in the kind's schema when the value is a part of a file; the whole file otherwise.
    """
    value = document.get(*at)
    try:
        return msgspec.convert(value, spec)
    except msgspec.ValidationError as error:
        schema = definition(kind, name) if name else schema_for(kind)
        if check(document, schema, faults, *at):
            faults.add(document.fault("schema-type", str(error), *at))
        return None
