"""The body of a skill: text and rules, with the place of every line.

A rule is a list item under the heading `## Rules`, or under any heading marked `{.rules}`, down to the next heading of
that level or above. It is the item's whole text: continued lines, nested lists and fenced code belong to it. Its
attribute list ends one of the lines of its first paragraph and is taken out of the text. Nothing inside a fence is a
heading, a rule or an attribute list.

A rule without `#id` is named by its text (`attributes.rule_name`), so that adding or moving other rules keeps its name
and rewording it gives a new one; given ids come first, so that a made-up name never takes one.

A text part that rules follow ends with a newline; with a newline after each rule, the parts in order give the source
back, without its attribute lists and without blank lines between rules.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Literal

from harnessctl.errors import Fault, Faults
from harnessctl.manifests import attributes
from harnessctl.manifests.passage import Passage, Place, from_lines

_HEADING = re.compile(r"^ {0,3}(#{1,6})(?:[ \t]+(.*?))?(?:[ \t]+#+)?[ \t]*$")
_ITEM = re.compile(r"^( *)([-*+]|\d{1,9}[.)])(?:( +)(.*)|$)")
_FENCE = re.compile(r"^ *(`{3,}(?=[^`]*$)|~{3,})")

#: Text, line and column of the first character.
Line = tuple[str, int, int]


@dataclass(slots=True)
class RuleSource:
    """One rule as written. `passage` is its text, without marker, attributes and the item's own indentation."""

    id: str
    passage: Passage
    place: Place
    protected: bool = False
    verbatim: bool = False
    values: dict[str, str] = field(default_factory=dict)
    places: dict[str, Place] = field(default_factory=dict)


@dataclass(slots=True)
class BodyPart:
    """Text, or the ids of consecutive rules with their marker."""

    passage: Passage | None = None
    rules: list[str] = field(default_factory=list)
    marker: Literal["-", "1."] = "-"


class Body:
    """Reads the lines of a body into `parts` and `rules`."""

    def __init__(self, path: str, faults: Faults) -> None:
        self.path = path
        self.faults = faults
        self.parts: list[BodyPart] = []
        self.rules: list[RuleSource] = []
        self._text: list[Line] = []
        self._ids: dict[str, int] = {}
        self._unnamed: list[tuple[RuleSource, BodyPart]] = []

    def read(self, lines: list[Line]) -> None:
        """Take all lines of the body, once."""
        index, level, fence = 0, 0, ""
        while index < len(lines):
            text, number, col = lines[index]
            fence_match = _fence(text)
            if fence or fence_match:
                fence = _fence_after(fence, fence_match, text)
            elif heading := _HEADING.match(text):
                depth, title = len(heading[1]), heading[2] or ""
                plain, match = attributes.split(text)
                marked = match is not None and self._is_rules(match, number)
                if level and depth <= level:
                    level = 0
                if marked or (depth == 2 and attributes.split(title)[0].strip() == "Rules"):
                    level = level or depth
                text = plain
            elif (item := _ITEM.match(text)) and len(item[1]) <= 3:
                if level:
                    index = self._item(lines, index, item)
                    continue
                self._stray(text, number)
            self._text.append((text, number, col))
            index += 1
        while self._text and not self._text[-1][0].strip():
            self._text.pop()
        self._flush()
        self._name()

    def _is_rules(self, match: re.Match[str], number: int) -> bool:
        words = match[1].split()
        if words != [".rules"]:
            self.faults.add(
                Fault(
                    self.path,
                    number,
                    match.start(1),
                    "rule-attribute",
                    "an unknown attribute of a heading",
                    "{" + match[1] + "}",
                    "{.rules}",
                )
            )
        return ".rules" in words

    def _stray(self, text: str, number: int) -> None:
        _, match = attributes.split(text)
        if match:
            self.faults.add(
                Fault(
                    self.path,
                    number,
                    match.start(1),
                    "rule-attribute",
                    "attributes on a list item that is not a rule",
                    "{" + match[1] + "}",
                    "items under `## Rules` or under a heading marked {.rules}",
                    "move the item, or mark its heading with {.rules}",
                )
            )

    def _item(self, lines: list[Line], index: int, item: re.Match[str]) -> int:
        """Take the rule that begins at `index`; returns the index of the first line after it."""
        indent, marker = len(item[1]), item[2]
        offset = item.start(4) if item[3] else len(item[0]) + 1
        own: list[Line] = [(item[4] or "", lines[index][1], offset + 1)]
        opened = _fence(own[0][0])
        end, fence, paragraph = index + 1, opened[1] if opened else "", 1
        in_paragraph = not opened
        while end < len(lines):
            text, number, col = lines[end]
            stripped = text.lstrip(" ")
            depth = len(text) - len(stripped)
            if (
                not fence
                and stripped
                and depth < indent + 2
                and (_ITEM.match(text) or _HEADING.match(text) or _fence(text) or not lines[end - 1][0].strip())
            ):
                break
            fence_match = _fence(text)
            if fence or fence_match:
                fence, in_paragraph = _fence_after(fence, fence_match, text), False
            elif not stripped or _ITEM.match(text):
                in_paragraph = False
            cut = min(depth, offset)
            own.append((text[cut:], number, col + cut))
            end += 1
            paragraph += in_paragraph
        while not own[-1][0].strip() and len(own) > 1:
            own.pop()
            end -= 1
        self._rule(own, paragraph, (lines[index][1], indent + 1), "1." if marker[0].isdigit() else "-")
        return self._skip_blank(lines, end)

    def _skip_blank(self, lines: list[Line], index: int) -> int:
        """Past blank lines, when another item of the list follows them."""
        after = index
        while after < len(lines) and not lines[after][0].strip():
            after += 1
        item = _ITEM.match(lines[after][0]) if after < len(lines) else None
        return after if item and len(item[1]) <= 3 else index

    def _rule(self, own: list[Line], paragraph: int, place: Place, marker: Literal["-", "1."]) -> None:
        found = attributes.Attributes()
        places: dict[str, Place] = {}
        seen = False
        fence = ""
        for n, (text, number, col) in enumerate(own):
            fence_match = _fence(text)
            if fence or fence_match:
                fence = _fence_after(fence, fence_match, text)
                continue
            plain, match = attributes.split(text)
            if match is None:
                continue
            if n >= paragraph or seen:
                self.faults.add(
                    Fault(
                        self.path,
                        number,
                        col + match.start(1) - 1,
                        "rule-attribute",
                        "attributes stand at the wrong place of a rule",
                        "{" + match[1] + "}",
                        "one list, at the end of the rule's first paragraph",
                        "a nested item is part of its rule and has no attributes of its own",
                    )
                )
                continue
            seen = True
            found = attributes.parse(self.path, number, col, match, self.faults)
            places = {name: (number, at) for name, at in found.cols.items()}
            own[n] = (plain, number, col)
        if seen:
            own = [line for n, line in enumerate(own) if line[0].strip() or n >= paragraph or n == 0]
        passage = from_lines(self.path, own)
        if not passage.text.strip():
            self.faults.add(Fault(self.path, *place, "rule-empty", "a rule has no text"))
            return
        rule = RuleSource(
            found.id or "", passage, place, "protected" in found.flags, "verbatim" in found.flags, found.values, places
        )
        self._place_rule(rule, marker)

    def _place_rule(self, rule: RuleSource, marker: Literal["-", "1."]) -> None:
        if self._text:
            self._text.append(("", self._text[-1][1] + 1, 1))
            self._flush()
        part = self.parts[-1] if self.parts else None
        if part is None or part.passage is not None or part.marker != marker:
            part = BodyPart(marker=marker)
            self.parts.append(part)
        if rule.id and rule.id in self._ids:
            self.faults.add(
                Fault(
                    self.path,
                    *rule.places.get("id", rule.place),
                    "rule-duplicate",
                    f"two rules are called #{rule.id}",
                    f"first at line {self._ids[rule.id]}",
                    "one rule of each id",
                )
            )
            rule.id = ""
        if rule.id:
            self._ids[rule.id] = rule.place[0]
        self.rules.append(rule)
        self._unnamed.append((rule, part))

    def _name(self) -> None:
        """Give rules without an id their names, when all given ids are known."""
        for rule, part in self._unnamed:
            if not rule.id:
                rule.id = attributes.rule_name(rule.passage.text, self._ids)
                self._ids[rule.id] = rule.place[0]
            part.rules.append(rule.id)

    def _flush(self) -> None:
        """Close the text part under way. Blank lines at the ends of the body are no part of it."""
        lines = self._text
        self._text = []
        if not self.parts:
            while lines and not lines[0][0].strip():
                lines = lines[1:]
        if not any(text.strip() for text, _, _ in lines):
            # Blank lines between two lists, or at the end, say nothing to a reader.
            return
        self.parts.append(BodyPart(from_lines(self.path, lines)))


def _fence(line: str) -> re.Match[str] | None:
    """The fence marker that `line` begins with."""
    return _FENCE.match(line) if "```" in line or "~~~" in line else None


def _fence_after(fence: str, match: re.Match[str] | None, line: str) -> str:
    """The fence that is open after `line`: none, or the marker that closes it."""
    if not fence:
        return match[1] if match else ""
    if match is None or match[1][0] != fence[0] or len(match[1]) < len(fence) or line.strip() != match[1]:
        return fence
    return ""
