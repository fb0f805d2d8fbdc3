"""expr: a sandboxed expression over the names of the event is true. A name that is undefined, or a fault, is false."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jinja2

from harnessctl.bundle.sandbox import compile_expression
from harnessctl.errors import HookError
from harnessctl.runtime.checks.check import PASSED, Check, Moment, Outcome, Setting


def expression(source: Any) -> Callable[[dict[str, Any]], Any]:
    """The compiled expression; HookError when `source` is none."""
    if not isinstance(source, str):
        raise HookError(f"an expression is text; got {type(source).__name__}")
    try:
        return compile_expression(source)
    except jinja2.TemplateSyntaxError as error:
        raise HookError(f"{source!r} is not an expression: {error.message}") from error


def compile_expr(raw: Any, setting: Setting) -> Check:
    """Compiled once."""
    evaluate = expression(raw)
    failed = Outcome(ok=False, reason=f"not true: {raw}")

    def test(moment: Moment) -> Outcome:
        return PASSED if evaluate(moment.names) else failed

    return Check(test=test)


CHECKS = {"expr": compile_expr}
