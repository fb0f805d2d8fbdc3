"""SARIF 2.1.0: faults in the form that code-scanning services read."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any
from urllib.parse import quote

from harnessctl import __version__
from harnessctl.errors import Fault
from harnessctl.manifests.codes import CODES

SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
_HELP = "https://github.com/harnessctl/harnessctl/blob/main/docs/faults.md"


def to_sarif(faults: Iterable[Fault]) -> dict[str, Any]:
    """One run with a result for each fault; paths are relative to the project's root (`%SRCROOT%`)."""
    faults = sorted(faults)
    codes = sorted({fault.code for fault in faults})
    rules = [
        {
            "id": code,
            "shortDescription": {"text": CODES.get(code, code)},
            "helpUri": f"{_HELP}#{code}",
        }
        for code in codes
    ]
    driver = {
        "name": "harnessctl",
        "version": __version__,
        "informationUri": "https://github.com/harnessctl/harnessctl",
        "rules": rules,
    }
    run = {
        "tool": {"driver": driver},
        "columnKind": "unicodeCodePoints",
        "originalUriBaseIds": {"%SRCROOT%": {"description": {"text": "the project's root"}}},
        "results": [_result(fault, codes.index(fault.code)) for fault in faults],
    }
    return {"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}


def _result(fault: Fault, rule: int) -> dict[str, Any]:
    location: dict[str, Any] = {
        "artifactLocation": {"uri": quote(fault.path.encode("utf-8", "surrogateescape")), "uriBaseId": "%SRCROOT%"}
    }
    if fault.line:
        location["region"] = {"startLine": fault.line} | ({"startColumn": fault.col} if fault.col else {})
    text = fault.message
    text += f"; got {fault.got}" if fault.got else ""
    text += f"; allowed {fault.allowed}" if fault.allowed else ""
    text += f". Hint: {fault.hint}" if fault.hint else ""
    return {
        "ruleId": fault.code,
        "ruleIndex": rule,
        "level": fault.severity,
        "message": {"text": text},
        "locations": [{"physicalLocation": location}],
    }
