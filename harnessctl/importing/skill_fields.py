"""Skill fields: foreign front matter made into exactly the fields of the Agent Skills specification.

What always holds: what comes out fits `SkillFrontMatter` with a semantic version and a kind that the compiler knows;
every value that was cut, moved, guessed or dropped is a note with its line.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection
from typing import Any

from harnessctl.importing.front_matter import FrontMatter
from harnessctl.importing.names import SLUG, slug, slug_or_digest
from harnessctl.importing.report import Entry
from harnessctl.importing.sentences import cut, first_paragraph

MAX_DESCRIPTION = 1024
MAX_COMPATIBILITY = 500
#: The kind of an imported skill: a reply skill would count as the one that a reply needs (`require_skill: reply`).
KIND = "strategy"
KINDS = ("reply", "strategy")
DEFAULT_VERSION = "1.0.0"

_KNOWN = ("name", "description", "license", "compatibility", "metadata", "allowed-tools")
_VERSION = re.compile(r"\d+\.\d+\.\d+(-[0-9A-Za-z.-]+)?(\+[0-9A-Za-z.-]+)?")
_SHORT_VERSION = re.compile(r"v?(\d+)(?:\.(\d+))?(?:\.(\d+))?")


def skill_name(front: FrontMatter, folder: str, entry: Entry) -> tuple[str, str]:
    """(name in the project, name in the source) of a skill; `folder` is what its place calls it."""
    fields = front.fields or {}
    written = fields.get("name")
    line = front.lines.get("name", 0)
    if written is not None and not isinstance(written, (dict, list)) and str(written).strip():
        own = str(written).strip()
        if SLUG.match(own) and len(own) <= 64:
            if slug(folder) != own:
                entry.note("warning", line, f"the name is `{own}` and its folder `{folder}`; the name is kept")
            return own, own
        name = slug(own) or slug(folder) or slug_or_digest(own, "skill")
        entry.note(
            "changed", line, f"the name {own!r} was made `{name}`: lower-case letters, digits and single hyphens"
        )
        return name, own
    name = slug_or_digest(folder, "skill")
    entry.note("changed", line, f"it has no name; it is called `{name}` after its folder or file")
    return name, folder


def skill_description(front: FrontMatter, entry: Entry) -> str | None:
    """The description, at most 1,024 characters; from the body where there is none; None when there is nothing."""
    written = (front.fields or {}).get("description")
    line = front.lines.get("description", 0)
    if isinstance(written, (dict, list)):
        text = _plain(written)
        entry.note("changed", line, "the description was a structure and is written as text")
    else:
        text = "" if written is None else str(written).strip()
    if not text:
        text, at = first_paragraph(front.body)
        if not text:
            return None
        entry.note("changed", front.body_line + at - 1, "it has no description; this line of the body serves as one")
    if len(text) > MAX_DESCRIPTION:
        shorter = cut(text, MAX_DESCRIPTION)
        entry.note(
            "changed",
            line,
            f"the description was cut from {len(text)} to {len(shorter)} characters, at the end of a sentence or word",
        )
        text = shorter
    return text


def other_fields(front: FrontMatter, tools: Collection[str], entry: Entry) -> dict[str, Any]:
    """license, compatibility, metadata and allowed-tools; `tools` are those that the project has."""
    fields = front.fields or {}
    lines = front.lines
    out: dict[str, Any] = {}
    if fields.get("license") is not None:
        out["license"] = _plain(fields["license"])
    if fields.get("compatibility") is not None and _plain(fields["compatibility"]):
        text = _plain(fields["compatibility"])
        out["compatibility"] = cut(text, MAX_COMPATIBILITY)
        if len(text) > MAX_COMPATIBILITY:
            entry.note(
                "changed",
                lines.get("compatibility", 0),
                f"compatibility was cut from {len(text)} to {len(out['compatibility'])} characters",
            )
    metadata = _metadata(fields.get("metadata"), lines.get("metadata", 0), entry)
    for key, value in fields.items():
        if key in _KNOWN:
            continue
        if value is None:
            entry.note("not carried over", lines.get(key, 0), f"the field `{key}` is empty")
        elif key in metadata:
            entry.note("not carried over", lines.get(key, 0), f"the field `{key}`: metadata has one of this name")
        else:
            metadata[key] = _plain(value)
            entry.note(
                "changed",
                lines.get(key, 0),
                f"the field `{key}` is not in the specification; it was moved under metadata as text",
            )
    known = _allowed_tools(fields.get("allowed-tools"), lines.get("allowed-tools", 0), tools, metadata, entry)
    out["metadata"] = _ours(metadata, lines, entry)
    if known:
        out["allowed-tools"] = " ".join(known)
    return out


def _metadata(value: Any, line: int, entry: Entry) -> dict[str, str]:
    if value is None:
        return {}
    if not isinstance(value, dict):
        entry.note("changed", line, "metadata was no mapping; it is kept as text under `note`")
        return {"note": _plain(value)}
    other = [key for key, item in value.items() if not isinstance(item, str)]
    if other:
        entry.note("changed", line, f"metadata holds text only; made text: {', '.join(other)}")
    return {key: _plain(item) for key, item in value.items() if item is not None}


def _ours(metadata: dict[str, str], lines: dict[str, int], entry: Entry) -> dict[str, str]:
    """Metadata with a semantic `version` and a known `kind` first."""
    rest = dict(metadata)
    line = lines.get("version", lines.get("metadata", 0))
    written = rest.pop("version", None)
    version = DEFAULT_VERSION
    if written is not None and _VERSION.fullmatch(written):
        version = written
    elif written is not None and (short := _SHORT_VERSION.fullmatch(written.strip())):
        version = ".".join(part or "0" for part in short.groups())
        entry.note("changed", line, f"the version {written!r} was made {version!r}")
    elif written is not None:
        rest["source-version"] = written
        entry.note(
            "changed",
            line,
            f"the version {written!r} is not a semantic one; it was moved to `source-version`, and {version!r} is written",
        )
    kind = rest.pop("kind", None)
    if kind is not None and kind not in KINDS:
        rest["source-kind"] = kind
        entry.note("changed", line, f"the kind {kind!r} means nothing here; it was moved to `source-kind`")
    return {"version": version, "kind": kind if kind in KINDS else KIND, **rest}


def _allowed_tools(value: Any, line: int, tools: Collection[str], metadata: dict[str, str], entry: Entry) -> list[str]:
    """The allowed tools that the project has; the rest is kept as text in the metadata."""
    if value is None:
        return []
    words = (
        [str(item) for item in value] if isinstance(value, list) else re.findall(r"[^\s,(]+(?:\([^)]*\))?", str(value))
    )
    known = list(dict.fromkeys(word for word in words if word in tools))
    unknown = [word for word in words if word not in tools]
    if unknown:
        metadata["source-allowed-tools"] = " ".join(unknown)
        entry.note("not carried over", line, f"allowed-tools: the project has no tool called {', '.join(unknown)}")
    return known


def _plain(value: Any) -> str:
    """A YAML value as text: lists of plain values by commas, structures as JSON."""
    if isinstance(value, str):
        return value
    if isinstance(value, list) and all(not isinstance(item, (dict, list)) for item in value):
        return ", ".join(_plain(item) for item in value)
    if isinstance(value, (dict, list)):
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, bool):
        return "true" if value else "false"
    return "" if value is None else str(value)
