"""regex, max_chars, forbid_phrases: checks of a target's text.

Arguments and results that are no text are looked at as compact JSON.
"""

from __future__ import annotations

import re
import unicodedata
from typing import Any

from harnessctl.errors import HookError
from harnessctl.manifests.specs.hooks import ForbidPhrasesCheck, MaxCharsCheck, RegexCheck
from harnessctl.runtime.checks.check import PASSED, Check, Moment, Outcome, Setting, read_spec, text_of

#: A pattern sees no more than this; longer text fails, since what was not searched cannot be vouched for.
MAX_SEARCHED_CHARS = 200_000


def compile_regex(raw: Any, setting: Setting) -> Check:
    """`must` is found and `must_not` is not. A search cannot be interrupted: see that patterns do not backtrack far."""
    spec = read_spec(raw, RegexCheck)
    target = setting.target(spec.target)
    read = text_of(target)
    must, must_not = _pattern(spec.must), _pattern(spec.must_not)
    if must is None and must_not is None:
        raise HookError("regex: neither must nor must_not is given")
    too_long = Outcome(ok=False, reason=f"{target} is longer than {MAX_SEARCHED_CHARS} characters")
    missing = Outcome(ok=False, reason=f"{target} has nothing that fits {spec.must}")

    def test(moment: Moment) -> Outcome:
        text = read(moment)
        if len(text) > MAX_SEARCHED_CHARS:
            return too_long
        if must is not None and must.search(text) is None:
            return missing
        if must_not is not None and (found := must_not.search(text)) is not None:
            return Outcome(ok=False, reason=f"{target} has {found[0][:60]!r}, which fits {spec.must_not}")
        return PASSED

    return Check(test=test)


def _pattern(source: str | None) -> re.Pattern[str] | None:
    if source is None:
        return None
    try:
        return re.compile(source)
    except (re.error, RecursionError, OverflowError) as error:
        raise HookError(f"regex: {source!r} is not a pattern: {error}") from error


def compile_max_chars(raw: Any, setting: Setting) -> Check:
    """At most so many code points: a number, or a limit's value at the time."""
    spec = MaxCharsCheck(value=raw) if isinstance(raw, int) else read_spec(raw, MaxCharsCheck)
    target = setting.target(spec.target)
    read = text_of(target)
    if spec.limit is not None:
        limit = setting.limit(spec.limit)

        def test_limit(moment: Moment) -> Outcome:
            count, most = len(read(moment)), moment.scene.limits[limit]
            return PASSED if count <= most else _too_many(target, count, most)

        return Check(test=test_limit)
    if spec.value is None:
        raise HookError("max_chars: neither a number nor a limit is given")
    most = spec.value

    def test(moment: Moment) -> Outcome:
        count = len(read(moment))
        return PASSED if count <= most else _too_many(target, count, most)

    return Check(test=test)


def _too_many(target: str, count: int, most: float) -> Outcome:
    return Outcome(ok=False, reason=f"{target} has {count} characters; at most {most:g}")


def compile_forbid_phrases(raw: Any, setting: Setting) -> Check:
    """None of the phrases occurs, whatever the case and the width of the characters."""
    spec = read_spec(raw, ForbidPhrasesCheck)
    target = setting.target(spec.target)
    read = text_of(target)
    phrases = [(folded(phrase), phrase) for phrase in spec.phrases]
    if not all(fold for fold, _ in phrases):
        raise HookError("forbid_phrases: an empty phrase occurs in every text")

    def test(moment: Moment) -> Outcome:
        text = folded(read(moment))
        for fold, phrase in phrases:
            if fold in text:
                return Outcome(ok=False, reason=f"{target} has the phrase {phrase!r}")
        return PASSED

    return Check(test=test)


def folded(text: str) -> str:
    """`text` without differences of case, width and compatibility forms (NFKC, casefold, NFKC again)."""
    if text.isascii():
        return text.lower()
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())


CHECKS = {"regex": compile_regex, "max_chars": compile_max_chars, "forbid_phrases": compile_forbid_phrases}
