"""What all YAML manifests share: the two lines that say what a file is, and a top level without unknown fields."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from harnessctl.errors import Fault, Faults
from harnessctl.manifests.load import Document, load_yaml
from harnessctl.manifests.locate import SourceFile
from harnessctl.manifests.schemas import check, schema_for

_FOLDER = {
    "Tools": "manifests/tools/",
    "Hooks": "manifests/hooks/",
    "PromptPipeline": "manifests/prompts/",
    "World": "manifests/worlds/",
    "Harness": "manifests/",
    "Examples": "skills/<name>/examples.yaml",
}


def header(
    file: SourceFile, data: bytes, kind: str, spec: type[Any], lists: Sequence[str], faults: Faults
) -> Document | None:
    """The document of a manifest of `kind`, whose whole is a `spec`; None when it is not one.

    The fields in `lists` are checked entry by entry by the caller; everything else at the top level is checked here.
    """
    document = load_yaml(file.path, data, faults)
    if document is None:
        return None
    if not isinstance(document.value, dict):
        faults.add(
            Fault(
                file.path,
                1,
                1,
                "manifest-empty",
                "the file is not a manifest",
                "nothing" if document.value is None else type(document.value).__name__,
                "a mapping",
                f"begin with the lines: apiVersion: harnessctl/v1 / kind: {kind}",
            )
        )
        return None
    found = document.value.get("kind")
    if isinstance(found, str) and found in _FOLDER and found != kind:
        faults.add(
            document.fault(
                "manifest-kind",
                f"a manifest of kind {found} in the place of one of kind {kind}",
                "kind",
                got=str(found),
                allowed=kind,
                hint=f"move it to {_FOLDER[str(found)]}",
            )
        )
        return None
    try:
        msgspec.convert(document.value, spec)
        return document
    except msgspec.ValidationError:
        _check_top(document, kind, lists, faults)
    return document


def _check_top(document: Document, kind: str, lists: Sequence[str], faults: Faults) -> None:
    schema = schema_for(kind)
    own = schema["$defs"][schema["$ref"].rpartition("/")[2]]
    anything: dict[str, Any] = {}
    top = {
        **own,
        "properties": {name: anything if name in lists else part for name, part in own["properties"].items()},
    }
    check(document, {"$schema": schema["$schema"], "title": kind, **top, "$defs": schema["$defs"]}, faults)
    for name in lists:
        value = document.value.get(name)
        expected = dict if name == "mcpServers" else list
        if value is not None and not isinstance(value, expected):
            check(document, {**own["properties"][name], "$defs": schema["$defs"]}, faults, name)
            del document.value[name]
