"""References in text: a code span that equals a known name becomes a `Ref`; every other word stays as it is.

`` `get_product` `` is a tool, `` `item-qa` `` a skill, `` `#lookup` `` a rule of the same owner; `` `tool:x` `` and
`` `skill:x` `` say which where one name is both. A known name that contains `_` or `-` and stands bare, in a longer code
span or in a fence is a fault: renaming would miss it. A rule's `limit=` turns its only number into a reference too.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterator

from harnessctl.bundle.text import Ref, Text
from harnessctl.compile.scope import Scope, listed
from harnessctl.errors import Faults
from harnessctl.manifests.code_spans import code_spans, fences
from harnessctl.manifests.passage import Passage

_WORD = re.compile(r"[A-Za-z0-9_]+(?:[-.]+[A-Za-z0-9_]+)*")
_EXPLICIT = re.compile(r"^(tool|skill):(.+)$")
_RULE = re.compile(r"^#([a-z][a-z0-9]*(?:[-_][a-z0-9]+)*)$")
_NUMBER = re.compile(r"(?<![A-Za-z0-9_.])(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?(?![A-Za-z0-9_])")


def text_of(
    passage: Passage, scope: Scope, faults: Faults, *, rules: Collection[str] | None = None, limit: str | None = None
) -> Text:
    """The text of a passage with its references. `rules` are the ids that `` `#id` `` may name, None where none can.

    `limit` is the known limit that governs the passage's only number.
    """
    out = _Out()
    text = passage.text
    for start, end, is_ref in _spans(text):
        before = len(faults.items)
        if is_ref:
            ref = _reference(passage, start, end, scope, faults, rules)
            if ref is not None:
                inner = text[start:end].strip("`")
                out.add(inner[: len(inner) - len(inner.lstrip())])
                out.add(ref)
                out.add(inner[len(inner.rstrip()) :])
                continue
        if not any(fault.code == "ref-ambiguous" for fault in faults.items[before:]):  # that one says it all
            _bare(passage, start, end, scope, faults)
        out.add(text[start:end])
    return _with_limit(passage, out.parts(), limit, faults) if limit is not None else out.parts()


class _Out:
    """Parts of a text, neighbouring strings joined."""

    def __init__(self) -> None:
        self._parts: Text = []
        self._strings: list[str] = []

    def add(self, part: str | Ref) -> None:
        if isinstance(part, str):
            self._strings.append(part)
            return
        self.parts().append(part)

    def parts(self) -> Text:
        """What was added so far."""
        if text := "".join(self._strings):
            self._parts.append(text)
        self._strings.clear()
        return self._parts


def _spans(text: str) -> Iterator[tuple[int, int, bool]]:
    """(start, end, whether it is a code span) over the whole text, in order; a fence is no code span."""
    if "`" not in text:
        if text:
            yield 0, len(text), False
        return
    at = 0
    for start, end in [*fences(text), (len(text), len(text))]:
        for opened, closed in code_spans(text, at, start):
            if opened > at:
                yield at, opened, False
            yield opened, closed, True
            at = closed
        if at < end:
            yield at, end, False
        at = end


def _reference(
    passage: Passage, start: int, end: int, scope: Scope, faults: Faults, rules: Collection[str] | None
) -> Ref | None:
    """The reference that a code span is, or None when it is only code."""
    name = passage.text[start:end].strip("`").strip()
    if explicit := _EXPLICIT.match(name):
        kind, name = explicit.groups()
        known = scope.tools if kind == "tool" else scope.skills
        if name not in known:
            faults.add(
                passage.fault(
                    start,
                    "ref-unknown",
                    f"there is no {kind} of this name",
                    got=name,
                    allowed=listed(known),
                    hint=scope.near(name, known),
                )
            )
            return None
        return Ref("tool" if kind == "tool" else "skill", name)
    if name in scope.tools and name in scope.skills:
        faults.add(
            passage.fault(
                start,
                "ref-ambiguous",
                f"`{name}` is a tool and a skill",
                allowed=f"`tool:{name}` or `skill:{name}`",
                hint="say which one is meant",
            )
        )
        return None
    if name in scope.tools:
        return Ref("tool", name)
    if name in scope.skills:
        return Ref("skill", name)
    if rules is not None and (rule := _RULE.match(name)):
        if rule[1] in rules:
            return Ref("rule", rule[1])
        faults.add(
            passage.fault(
                start,
                "ref-unknown",
                "there is no rule of this id here",
                got=name,
                allowed=listed(rules),
                hint=scope.near(rule[1], rules),
            )
        )
    return None


def _bare(passage: Passage, start: int, end: int, scope: Scope, faults: Faults) -> None:
    """Report every known name that stands in `text[start:end]` outside a code span of its own."""
    text = passage.text
    if text.find("_", start, end) < 0 and text.find("-", start, end) < 0:
        return
    for match in _WORD.finditer(text, start, end):
        word = match[0]
        if "_" not in word and "-" not in word:
            continue
        for name in (word, *(word.split(".") if "." in word else ())):
            if name in scope.marked_names:
                _report_bare(passage, match.start() + word.index(name), name, scope, faults)
                break


def _report_bare(passage: Passage, offset: int, name: str, scope: Scope, faults: Faults) -> None:
    if name in scope.elsewhere:
        faults.add(
            passage.fault(
                offset,
                "ref-not-included",
                f"`{name}` is a {scope.elsewhere[name]}",
                got=name,
                allowed=f"names that harness {scope.harness} includes",
                hint="include it in the harness, or do not mention it",
            )
        )
        return
    what = "tool" if name in scope.tools else "skill"
    faults.add(
        passage.fault(
            offset,
            "ref-bare",
            f"a bare mention of the {what} {name} would be missed by a renaming",
            got=name,
            allowed=f"a code span that is exactly the name: `{name}`",
            hint=f"write `{name}`; what goes with it stands outside the code span",
        )
    )


def _with_limit(passage: Passage, parts: Text, limit: str, faults: Faults) -> Text:
    """`parts` with the only number replaced by a reference to the limit; a fault when there is not exactly one."""
    found = [(n, m) for n, part in enumerate(parts) if isinstance(part, str) for m in _NUMBER.finditer(part)]
    if len(found) != 1:
        faults.add(
            passage.fault(
                0,
                "limit-digits",
                f"a text with limit={limit} has exactly one number, which the limit governs",
                got=", ".join(m[0] for _, m in found) or "no number",
                allowed="one number",
                hint="split the rule" if found else "write the number in digits",
            )
        )
        return parts
    index, match = found[0]
    text = parts[index]
    assert isinstance(text, str)
    around: list[str | Ref] = [text[: match.start()], Ref("limit", limit), text[match.end() :]]
    return [*parts[:index], *(part for part in around if part), *parts[index + 1 :]]


def written_number(passage: Passage) -> float | None:
    """The only number in a passage, as written; None when there is not exactly one."""
    found = _NUMBER.findall(passage.text)
    number = float(found[0].replace(",", "")) if len(found) == 1 else math.inf
    return number if math.isfinite(number) else None
