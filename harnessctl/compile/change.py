"""Change: one difference between two harness states, and how a list of them reads as plain text.

What always holds: `at` is a path in the newer state's names (in the older one's for what was removed), such as
`skills/item-qa/rules/lookup` or `tools/get_product/parameters/properties/id`; a rendered line has at most 80
characters.
"""

from __future__ import annotations

import difflib
import re
import textwrap
from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import Any, Literal

import msgspec

Kind = Literal[
    "skill.added",
    "skill.removed",
    "skill.renamed",
    "skill.moved",
    "skill.description",
    "skill.body",
    "skill.changed",
    "rule.added",
    "rule.removed",
    "rule.renamed",
    "rule.moved",
    "rule.reworded",
    "rule.changed",
    "tool.added",
    "tool.removed",
    "tool.renamed",
    "tool.moved",
    "tool.description",
    "tool.parameters",
    "tool.changed",
    "hook.added",
    "hook.removed",
    "hook.renamed",
    "hook.moved",
    "hook.changed",
    "block.added",
    "block.removed",
    "block.renamed",
    "block.moved",
    "block.changed",
    "prompt.inputs",
    "prompt.framing",
    "limit.added",
    "limit.removed",
    "limit.changed",
    "harness.changed",
    "server.added",
    "server.removed",
    "server.changed",
    "code.added",
    "code.removed",
    "code.changed",
    "file.added",
    "file.removed",
    "file.changed",
    "surface.changed",
    "tokens.estimated",
    "tokens.counted",
    "version.only",
    "version.changed",
    "bundle.changed",
]

#: Kinds that say something of the bundle file and nothing of what the agent does.
OUTSIDE_STATE: frozenset[str] = frozenset({"version.only", "version.changed", "bundle.changed"})

WIDTH = 80
_MAX_LINES = 12
_WORDS = re.compile(r"\s+|[^\W_\u2e80-\uffff]+|.", re.DOTALL)


class Change(msgspec.Struct, frozen=True):
    """One difference. `before` and `after` are JSON; null where the thing did not or does not exist.

    Texts are given as a model reads them, limits as `{limit:name}`. For `*.moved` they are 1-based places in the
    list; for `*.renamed` the names; for `tokens.*` counts.
    """

    kind: Kind
    at: str
    before: Any = None
    after: Any = None

    @property
    def outside(self) -> bool:
        """True when the digest does not cover it: a version, or the bundle's name."""
        return self.kind in OUTSIDE_STATE

    def render(self) -> str:
        """The change as indented text, without its owner's name."""
        noun, _, verb = self.kind.partition(".")
        what = _label(self.at, noun)
        if noun == "tokens":
            about = "about " if verb == "estimated" else ""
            return _wrap(f"  ~ tokens: {about}{self.before} -> {self.after} ({self.after - self.before:+d})")
        if verb == "added":
            return _wrap(f"  + {what}{_after_colon(self.after)}")
        if verb == "removed":
            return _wrap(f"  - {what}{_after_colon(self.before)}")
        if verb == "renamed":
            return _wrap(f"  ~ {what}: renamed from {self.before}")
        if verb == "moved":
            return _wrap(f"  > {what}: moved from {_place(self.before)} to {_place(self.after)}")
        if self.kind == "version.only":
            return _wrap(f"  = {self.at.removeprefix('inventory/')}: {_short(self.before)} -> {_short(self.after)}")
        if self.outside:
            return _wrap(f"  ~ {self.at.removeprefix('inventory/')}: {_short(self.before)} -> {_short(self.after)}")
        if isinstance(self.before, str) and isinstance(self.after, str):
            if "\n" in self.before or "\n" in self.after:
                return _wrap(f"  ~ {what}:") + "\n" + _line_diff(self.before, self.after)
            if len(self.before) + len(self.after) > 40:
                return _wrap(f"  ~ {what}: {word_diff(self.before, self.after)}")
        return _wrap(f"  ~ {what}: {_short(self.before)} -> {_short(self.after)}")


def render_changes(changes: Sequence[Change]) -> str:
    """All changes as text, grouped by the thing they belong to; empty for no change.

    `+` added, `-` removed, `~` changed, `>` moved; inside a text `[-was-]` and `{+is+}`. Changes that the digest does
    not cover come last, under their own heading.
    """
    inside = [c for c in changes if not c.outside]
    groups = [(thing, list(found)) for thing, found in groupby(inside, key=lambda c: owner(c.at))]
    out = [f"{thing}\n" + "\n".join(c.render() for c in found) for thing, found in groups]
    only = [c for c in changes if c.kind == "version.only"]
    other = [c for c in changes if c.outside and c.kind != "version.only"]
    if other:
        out.append("outside the digest\n" + "\n".join(c.render() for c in other))
    if only:
        out.append("version only, the content is the same\n" + "\n".join(c.render() for c in only))
    return "\n".join(out)


def word_diff(before: str, after: str) -> str:
    """The newer text with `[-removed-]` and `{+added+}` words; long equal stretches are cut to `...`."""
    a, b = _WORDS.findall(before), _WORDS.findall(after)
    out: list[str] = []
    codes = difflib.SequenceMatcher(None, a, b, autojunk=False).get_opcodes()
    for index, (tag, i1, i2, j1, j2) in enumerate(codes):
        if tag == "equal":
            out.append(_elide(a[i1:i2], first=index == 0, last=index == len(codes) - 1))
            continue
        if i2 > i1:
            out.append(f"[-{''.join(a[i1:i2])}-]")
        if j2 > j1:
            out.append(f"{{+{''.join(b[j1:j2])}+}}")
    return "".join(out)


def _elide(words: list[str], *, first: bool, last: bool, keep: int = 12) -> str:
    if len(words) <= 2 * keep + 2:
        return "".join(words)
    head = "" if first else "".join(words[:keep])
    tail = "" if last else "".join(words[-keep:])
    return f"{head}...{tail}"


def _line_diff(before: str, after: str) -> str:
    """Changed lines with one line around them; `...` stands between stretches."""
    found = list(difflib.unified_diff(before.split("\n"), after.split("\n"), lineterm="", n=1))[3:]
    lines = ["..." if line.startswith("@@ ") else line for line in found if line.strip()]
    shown = ["      " + _cut(line, WIDTH - 6) for line in lines[:_MAX_LINES]]
    if len(lines) > _MAX_LINES:
        shown.append(f"      ... {len(lines) - _MAX_LINES} more lines")
    return "\n".join(shown)


def _place(value: Any) -> str:
    return f"place {value}" if isinstance(value, int) else str(value)


def owner(at: str) -> str:
    """The thing that a path belongs to, which its changes stand under: `skills/x`, `prompt/blocks/y`, `limits`, ..."""
    parts = at.split("/")
    if parts[0] in ("skills", "tools", "hooks", "code", "files"):
        return "/".join(parts[:2]) if parts[0] not in ("code", "files") else at
    if parts[:2] == ["prompt", "blocks"]:
        return "/".join(parts[:3])
    return parts[0]


def _label(at: str, noun: str) -> str:
    """What a change is called under its heading."""
    rest = at[len(owner(at)) :].lstrip("/")
    for part in ("rules/", "items/"):
        if rest.startswith(part):
            name, _, field = rest[len(part) :].partition("/")
            return f"{part[:-2]} #{name}" + (f" {field}" if field else "")
    return rest or noun


def _after_colon(value: Any) -> str:
    return "" if value is None else f": {_short(value)}"


def _short(value: Any) -> str:
    """A value on one line, cut where it is long."""
    if value is None:
        return "(none)"
    text = " ".join(value.split()) if isinstance(value, str) else msgspec.json.encode(value).decode()
    return _cut(text, 200)


def _cut(text: str, size: int) -> str:
    return text if len(text) <= size else text[: size - 3] + "..."


def _wrap(text: str) -> str:
    return textwrap.fill(
        text, WIDTH, subsequent_indent="      ", break_long_words=True, break_on_hyphens=False, drop_whitespace=True
    )


def same(a: Any, b: Any) -> bool:
    """True when two JSON values are equal as JSON: 1 and 1.0 are, 1 and true are not."""
    if isinstance(a, bool) is not isinstance(b, bool):
        return False
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(same(a[key], b[key]) for key in a)
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(map(same, a, b))
    return bool(a == b)


def json_changes(before: Any, after: Any, at: str) -> Iterable[tuple[str, Any, Any]]:
    """(path, before, after) of the smallest parts that differ; path parts are escaped as in JSON Pointer.

    Lists of one length are compared member by member where members are objects, else as a whole.
    """
    if same(before, after):
        return
    if isinstance(before, dict) and isinstance(after, dict):
        keys = sorted(before.keys() | after.keys())
        # A key whose value is null looks like a missing one, so such a pair is shown whole.
        if any((key not in before or key not in after) and before.get(key) is after.get(key) for key in keys):
            yield at, before, after
            return
        for key in keys:
            yield from json_changes(before.get(key), after.get(key), f"{at}/{escape(key)}")
    elif (
        isinstance(before, list)
        and isinstance(after, list)
        and len(before) == len(after)
        and all(isinstance(x, dict) for x in [*before, *after])
    ):
        for index, (a, b) in enumerate(zip(before, after, strict=True)):
            yield from json_changes(a, b, f"{at}/{index}")
    else:
        yield at, before, after


def escape(key: str) -> str:
    """A key as one part of a JSON Pointer."""
    return key.replace("~", "~0").replace("/", "~1")
