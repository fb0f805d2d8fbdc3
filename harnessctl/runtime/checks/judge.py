"""judge: another harness of the project looks at the event, and an expression over its scores decides.

`input` makes the judge's context, name by name, from expressions over the names of the event. Without a judge given
from above, and where the judge gives no usable score, the check is a HookError: no score is not a low score.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

from harnessctl.errors import HookError
from harnessctl.manifests.specs.hooks import JudgeCheck
from harnessctl.runtime.checks.check import PASSED, Check, Judge, Moment, Outcome, Setting, read_spec
from harnessctl.runtime.checks.expression import expression
from harnessctl.runtime.checks.waiting import within
from harnessctl.runtime.names import copied

__all__ = ["CHECKS", "Judge", "compile_judge"]


def compile_judge(raw: Any, setting: Setting) -> Check:
    """A `reason` among the scores is given to the model where the check fails."""
    spec = read_spec(raw, JudgeCheck)
    judge = setting.judge
    if judge is None:
        raise HookError(f"no judge is at hand to run the harness `{spec.harness}`")
    context = {name: expression(source) for name, source in spec.input.items()}
    passes = expression(spec.pass_)

    async def wait(moment: Moment) -> Outcome:
        given = {name: _plain(evaluate(moment.names)) for name, evaluate in context.items()}
        deadline = min(moment.deadline, moment.scene.deadline)
        try:
            scores = await within(judge.judge(spec.harness, given, deadline), moment.deadline)
        except HookError as error:
            raise HookError(f"the judge `{spec.harness}` gave nothing: {error.message}") from error
        if not isinstance(scores, dict):
            raise HookError(f"the judge `{spec.harness}` gave {type(scores).__name__}, not scores by name")
        passed = passes(scores)
        if passed is None:
            raise HookError(
                f"the judge `{spec.harness}` gave no score for {spec.pass_!r}; got {', '.join(scores) or 'nothing'}"
            )
        if passed:
            return PASSED
        reason = scores.get("reason")
        told = isinstance(reason, str) and bool(reason)
        return Outcome(ok=False, reason=reason if told else f"not true of the scores: {spec.pass_}", told=told)

    return Check(wait=wait)


def _plain(value: Any) -> Any:
    """What an expression gave, as the judge's context holds it: a filter such as `map` gives a generator."""
    return copied(list(value) if isinstance(value, Generator) else value)


CHECKS = {"judge": compile_judge}
