"""Skills: SKILL.md to the state's Skill."""

from __future__ import annotations

import re
from typing import Any

import msgspec

from harnessctl.bundle import state
from harnessctl.compile.references import text_of
from harnessctl.compile.rules import RuleInput, bind_rules
from harnessctl.compile.scope import Scope, listed
from harnessctl.compile.unit import Bound
from harnessctl.errors import Fault, Faults
from harnessctl.manifests.locate import SourceFile
from harnessctl.manifests.markdown import SkillFile, read_skill
from harnessctl.manifests.schemas import convert
from harnessctl.manifests.specs.skill import SkillFrontMatter
from harnessctl.manifests.violations import did_you_mean
from harnessctl.storage import canonical_json

MAX_BODY_LINES = 500
DEFAULT_VERSION = "1.0.0"
KINDS = ("reply", "strategy")
_VERSION = re.compile(r"[0-9]+\.[0-9]+\.[0-9]+(-[0-9A-Za-z.-]+)?(\+[0-9A-Za-z.-]+)?")


class Parsed:
    """A SKILL.md with its front matter, which is None when it does not fit."""

    def __init__(self, file: SkillFile, front: SkillFrontMatter | None) -> None:
        self.file = file
        self.front = front


def read(file: SourceFile, data: bytes, faults: Faults) -> Parsed | None:
    """The skill in the bytes of a SKILL.md."""
    skill = read_skill(file.path, data, faults)
    if skill is None:
        return None
    front = None
    if skill.front is not None:
        front = convert(skill.front, "Skill", SkillFrontMatter, faults)
        _check_front(file, skill, faults)
    if not skill.parts and skill.front is not None:
        faults.add(Fault(file.path, 0, 0, "skill-empty", "the skill has no body: loading it tells the model nothing"))
    if skill.lines > MAX_BODY_LINES:
        faults.add(
            Fault(
                file.path,
                0,
                0,
                "skill-long",
                "the body is long for one skill",
                f"{skill.lines} lines",
                f"{MAX_BODY_LINES} lines",
                "split it, or move reference material into a tool",
                "warning",
            )
        )
    return Parsed(skill, front)


def _check_front(file: SourceFile, skill: SkillFile, faults: Faults) -> None:
    front = skill.front
    assert front is not None
    name = front.get("name")
    if isinstance(name, str) and name != file.name:
        faults.add(
            front.fault(
                "skill-name",
                "the skill's name is not its folder's",
                "name",
                got=name,
                allowed=file.name,
                hint=f"write name: {file.name}, or rename the folder",
            )
        )
    kind = front.get("metadata", "kind")
    if isinstance(kind, str) and kind not in KINDS:
        faults.add(
            front.fault(
                "skill-kind",
                "a skill's kind is not one that there is",
                "metadata",
                "kind",
                got=kind,
                allowed="reply | strategy",
                hint=did_you_mean(kind, KINDS),
            )
        )
    version = front.get("metadata", "version")
    if isinstance(version, str) and not _VERSION.fullmatch(version):
        faults.add(
            front.fault(
                "skill-version",
                "a version is not a semantic version",
                "metadata",
                "version",
                got=version,
                allowed="major.minor.patch",
                hint='for example "1.0.0"',
            )
        )


def outline(file: SourceFile, parsed: Parsed) -> dict[str, Any]:
    """name, kind, version, place, and the place of each rule."""
    front = parsed.file.front
    metadata = front.get("metadata") if front is not None else None
    metadata = metadata if isinstance(metadata, dict) else {}
    return {
        "name": file.name,
        "kind": metadata.get("kind") if metadata.get("kind") in KINDS else "reply",
        "version": str(metadata.get("version", DEFAULT_VERSION)),
        "place": [file.path, *(front.place("name") if front is not None else (1, 1))],
        "rules": {rule.id: list(rule.place) for rule in parsed.file.rules},
    }


def bind(file: SourceFile, parsed: Parsed, scope: Scope, faults: Faults) -> Bound:
    """The canonical JSON of the state's Skill under `skill`, without examples."""
    bound = Bound()
    source = parsed.file
    rules, numbers = bind_rules(
        [RuleInput(r.id, r.passage, r.place, r.protected, r.verbatim, r.values, r.places) for r in source.rules],
        scope,
        faults,
    )
    bound.links["limit-number"] = [[file.path, *number] for number in numbers]
    ids = {rule.id for rule in rules}
    body = [
        state.Part(text=text_of(part.passage, scope, faults, rules=ids))
        if part.passage is not None
        else state.Part(rules=part.rules, marker=part.marker)
        for part in source.parts
    ]
    if parsed.front is None or source.front is None:
        return bound
    described = outline(file, parsed)
    skill = state.Skill(
        name=file.name,
        kind=described["kind"],
        description=text_of(source.front.passage("description"), scope, faults, rules=ids),
        body=body,
        rules=rules,
        allowed_tools=_allowed_tools(parsed, scope, faults),
    )
    # Kept as text: most of a bundle is skills, and putting it together must not take them apart again.
    bound.state["skill"] = canonical_json(msgspec.to_builtins(skill)).decode()
    bound.places[f"skills/{file.name}"] = described["place"]
    for rule in source.rules:
        bound.places[f"skills/{file.name}/rules/{rule.id}"] = [file.path, *rule.place]
    return bound


def _allowed_tools(parsed: Parsed, scope: Scope, faults: Faults) -> list[str]:
    front, document = parsed.front, parsed.file.front
    if front is None or document is None or front.allowed_tools is None:
        return []
    passage = document.passage("allowed-tools")
    found: list[str] = []
    for match in re.finditer(r"\S+", passage.text):
        name = match[0]
        if name not in scope.tools:
            faults.add(
                passage.fault(
                    match.start(),
                    "tool-unknown",
                    "allowed-tools names a tool that there is not",
                    got=name,
                    allowed=listed(scope.tools),
                    hint=scope.near(name.rstrip(","), scope.tools) or "names are separated by spaces",
                )
            )
        elif name not in found:
            found.append(name)
    return found
