"""SKILL.md: front matter between two `---` lines, and a body of text and rules (see `rules`)."""

from __future__ import annotations

from dataclasses import dataclass

from harnessctl.errors import Fault, Faults
from harnessctl.manifests.encoding import decode
from harnessctl.manifests.load import Document, load_text
from harnessctl.manifests.rules import Body, BodyPart, RuleSource


@dataclass(slots=True)
class SkillFile:
    """A SKILL.md that could be read. `front` is None when the front matter could not; the body is there all the same."""

    path: str
    front: Document | None
    parts: list[BodyPart]
    rules: list[RuleSource]
    lines: int


def read_skill(path: str, data: bytes, faults: Faults) -> SkillFile | None:
    """The skill in the bytes of a SKILL.md; None when the bytes are not text."""
    text = decode(path, data, faults)
    if text is None:
        return None
    lines = text.split("\n")
    front, body_from = _front_matter(path, lines, faults)
    body = Body(path, faults)
    body.read([(line, number, 1) for number, line in enumerate(lines[body_from:], body_from + 1)])
    return SkillFile(path, front, body.parts, body.rules, len(lines) - body_from)


def _front_matter(path: str, lines: list[str], faults: Faults) -> tuple[Document | None, int]:
    """The document between the first two `---` lines, and the index of the line after them."""
    first = next((n for n, line in enumerate(lines) if line.strip()), 0)
    if lines[first].rstrip() != "---":
        faults.add(
            Fault(
                path,
                first + 1,
                1,
                "skill-front-matter",
                "the file has no front matter",
                lines[first][:60],
                "--- on the first line",
                "begin the file with the lines: --- / name: ... / description: ... / ---",
            )
        )
        return None, 0
    if first:
        faults.add(
            Fault(
                path,
                1,
                1,
                "skill-front-matter",
                "something stands before the front matter",
                f"{first} empty lines",
                "--- on the first line",
                "remove the lines",
            )
        )
    for end in range(first + 1, len(lines)):
        if lines[end].rstrip() == "---":
            document = load_text(path, "\n".join(lines[first + 1 : end]), faults, first_line=first + 2)
            return document, end + 1
    faults.add(
        Fault(
            path,
            first + 1,
            1,
            "skill-front-matter",
            "the front matter is never closed",
            "---",
            "a second line ---",
            "write --- on a line of its own after the last field",
        )
    )
    return None, len(lines)
