"""all, any, not: checks of checks, asked in order and no further than needed. An error inside is an error of the whole."""

from __future__ import annotations

from typing import Any

import msgspec

from harnessctl.runtime.checks import compile_check
from harnessctl.runtime.checks.check import PASSED, Check, Moment, Outcome, Setting, Test, ask


def compile_all(raw: list[dict[str, Any]], setting: Setting) -> Check:
    """Fails as its first part that fails. Warnings of its parts are joined; the last value given is kept."""
    parts = [compile_check(part, setting) for part in raw]
    tests = _tests(parts)

    if tests is not None:

        def test(moment: Moment) -> Outcome:
            for part in tests:
                outcome = part(moment)
                if not outcome.ok:
                    return outcome
            return PASSED

        return Check(test=test)

    async def wait(moment: Moment) -> Outcome:
        together = PASSED
        for part in parts:
            outcome = await ask(part, moment)
            if not outcome.ok or outcome.stop:
                return outcome
            together = _both(together, outcome)
        return together

    return Check(wait=wait)


def compile_any(raw: list[dict[str, Any]], setting: Setting) -> Check:
    """Passes as its first part that passes; fails with the reasons of all."""
    parts = [compile_check(part, setting) for part in raw]
    tests = _tests(parts)

    if tests is not None:

        def test(moment: Moment) -> Outcome:
            failed = []
            for part in tests:
                outcome = part(moment)
                if outcome.ok:
                    return outcome
                failed.append(outcome)
            return _neither(failed)

        return Check(test=test)

    async def wait(moment: Moment) -> Outcome:
        failed = []
        for part in parts:
            outcome = await ask(part, moment)
            if outcome.ok or outcome.stop:
                return outcome
            failed.append(outcome)
        return _neither(failed)

    return Check(wait=wait)


def compile_not(raw: dict[str, Any], setting: Setting) -> Check:
    """Passes where its part fails. A pass with a warning is a pass, and so fails here."""
    part = compile_check(raw, setting)
    failed = Outcome(ok=False, reason=f"{next(iter(raw))} holds and must not")

    if (ask_part := part.test) is not None:

        def test(moment: Moment) -> Outcome:
            return failed if ask_part(moment).ok else PASSED

        return Check(test=test)

    async def wait(moment: Moment) -> Outcome:
        outcome = await ask(part, moment)
        if outcome.stop:
            return outcome
        return failed if outcome.ok else PASSED

    return Check(wait=wait)


def _tests(parts: list[Check]) -> list[Test] | None:
    """The parts as plain functions, if all of them are."""
    tests = [part.test for part in parts if part.test is not None]
    return tests if len(tests) == len(parts) else None


def _both(first: Outcome, second: Outcome) -> Outcome:
    if first is PASSED or second is PASSED:
        return second if first is PASSED else first
    return Outcome(
        ok=True,
        value=first.value if second.value is msgspec.UNSET else second.value,
        warning="; ".join(filter(None, (first.warning, second.warning))),
    )


def _neither(failed: list[Outcome]) -> Outcome:
    told = [outcome.reason for outcome in failed if outcome.told and outcome.reason]
    reasons = told or [outcome.reason for outcome in failed if outcome.reason]
    return Outcome(ok=False, reason="; ".join(reasons), told=bool(told))


CHECKS = {"all": compile_all, "any": compile_any, "not": compile_not}
