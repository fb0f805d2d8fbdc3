"""Limits: the numbers that govern a harness, with the runtime's own where it names none."""

from __future__ import annotations

from harnessctl.bundle import state
from harnessctl.compile.harnesses import Plan
from harnessctl.errors import Faults
from harnessctl.manifests.load import Document
from harnessctl.manifests.specs.base import Limit
from harnessctl.manifests.specs.harness import DEFAULT_LIMITS
from harnessctl.manifests.violations import did_you_mean

#: Limits of the runtime that count things, with the least that makes sense.
_WHOLE = {
    "max_rounds": 1,
    "max_turns": 1,
    "max_parallel_tools": 1,
    "max_repeats": 1,
    "model_retries": 0,
    "max_message_chars": 1,
    "tool_result_max_chars": 1,
}
_UNITS = {
    "max_rounds": "rounds",
    "tool_timeout_s": "seconds",
    "deadline_s": "seconds",
    "max_turns": "turns",
    "max_parallel_tools": "calls",
    "max_message_chars": "codepoints",
    "tool_result_max_chars": "codepoints",
}


def effective_limits(plan: Plan, faults: Faults) -> dict[str, state.Limit]:
    """Every effective limit, the runtime's own included; faults for values and ranges that make no sense."""
    out = {name: state.Limit(value=value, unit=_UNITS.get(name)) for name, value in DEFAULT_LIMITS.items()}
    for name, given in plan.spec.limits.items():
        limit = given if isinstance(given, Limit) else Limit(value=given)
        _check_limit(plan.document, name, limit, faults)
        if name not in DEFAULT_LIMITS:
            close = did_you_mean(name, DEFAULT_LIMITS, cutoff=0.85)
            if close:
                faults.add(
                    plan.document.fault(
                        "limit-name",
                        f"`{name}` is no limit of the runtime, and close to one",
                        "limits",
                        name,
                        key=True,
                        got=name,
                        hint=close,
                        severity="warning",
                    )
                )
        out[name] = state.Limit(value=limit.value, range=limit.range, unit=limit.unit or _UNITS.get(name))
    return dict(sorted(out.items()))


def _check_limit(document: Document, name: str, limit: Limit, faults: Faults) -> None:
    at = ("limits", name)
    if limit.range is not None and limit.range[0] > limit.range[1]:
        faults.add(
            document.fault(
                "limit-range",
                "the range is the wrong way round",
                *at,
                "range",
                got=str(limit.range),
                allowed="[least, most]",
            )
        )
    elif limit.range is not None and not limit.range[0] <= limit.value <= limit.range[1]:
        faults.add(
            document.fault(
                "limit-range",
                f"the value of `{name}` is outside its range",
                *at,
                "value",
                got=f"{limit.value:g}",
                allowed=f"{limit.range[0]:g} to {limit.range[1]:g}",
            )
        )
    least = _WHOLE.get(name)
    for value in (limit.value, *(limit.range or [])):
        if least is not None and (value != int(value) or value < least):
            faults.add(
                document.fault(
                    "limit-range",
                    f"`{name}` counts something",
                    *at,
                    got=f"{value:g}",
                    allowed=f"whole numbers from {least}",
                )
            )
        elif name in DEFAULT_LIMITS and least is None and value <= 0:
            faults.add(
                document.fault("limit-range", f"`{name}` is a time", *at, got=f"{value:g}", allowed="more than 0")
            )
