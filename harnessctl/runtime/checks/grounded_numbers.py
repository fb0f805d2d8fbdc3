"""grounded_numbers: every number that the target says stands in a tool result, the context or the viewer's message.

What counts as a number, and when two are equal, is in `harnessctl.numerals`. Numbers are compared exactly: a sum, a difference or a
rounded value has no source; a python check can do the arithmetic. `results` are those of calls that succeeded, of the
session's kept turns too, and the result under way at post_tool. `skills` are the texts of the skills loaded. What is
looked at is never its own source.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from harnessctl.bundle.state import Skill
from harnessctl.bundle.text import Text, render_text
from harnessctl.manifests.specs.hooks import GroundedNumbersCheck
from harnessctl.numerals import Number, known_numbers, numbers_in
from harnessctl.runtime.checks.check import PASSED, Check, Moment, Outcome, Setting, read_spec, text_of
from harnessctl.runtime.names import finished_calls

MAX_NAMED = 5


def compile_grounded_numbers(raw: Any, setting: Setting) -> Check:
    """Sources are read only when the target says a number, and no further than needed."""
    spec = read_spec(raw, GroundedNumbersCheck)
    target = setting.target(spec.target)
    read = text_of(target)
    sources = [_SOURCES[name] for name in spec.sources or ("message", "results", "context") if name != target]
    if setting.event == "post_tool" and target != "result" and _results in sources:
        sources.append(_result_under_way)

    def test(moment: Moment) -> Outcome:
        wanted = [n for n in numbers_in(read(moment)) if not spec.ignore_below or n.size >= spec.ignore_below]
        if not wanted:
            return PASSED
        known: set[str] = set()
        for source in sources:
            known.update(source(moment))
            wanted = [number for number in wanted if not _grounded(number, known)]
            if not wanted:
                return PASSED
        named = list(dict.fromkeys(number.written for number in wanted))[:MAX_NAMED]
        return Outcome(ok=False, reason=f"no source has the number{'s' if len(named) > 1 else ''} {', '.join(named)}")

    return Check(test=test)


def _grounded(number: Number, known: set[str]) -> bool:
    return any(known.issuperset(way) for way in number.ways)


def _results(moment: Moment) -> Iterator[str]:
    for call in finished_calls(moment.scene, "session"):
        if call.status == "ok":
            yield from known_numbers(call.result)


def _result_under_way(moment: Moment) -> Iterable[str]:
    return known_numbers(moment.scene.result)


def _context(moment: Moment) -> Iterable[str]:
    return known_numbers(moment.scene.context)


def _message(moment: Moment) -> Iterable[str]:
    return known_numbers(moment.scene.message)


def _skills(moment: Moment) -> Iterator[str]:
    for skill in moment.scene.skills:
        for text in _texts(skill):
            yield from known_numbers(render_text(text, tools={}, skills={}, limits=moment.scene.limits))


def _texts(skill: Skill) -> Iterator[Text]:
    yield from (part.text for part in skill.body)
    yield from (rule.text for rule in skill.rules)
    yield from (message.content for example in skill.examples for message in example)


_SOURCES = {"results": _results, "context": _context, "message": _message, "skills": _skills}

CHECKS = {"grounded_numbers": compile_grounded_numbers}
