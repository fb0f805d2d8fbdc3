"""Metrics: what the columns of a table are of, by the names of the paper [4.2].

What always holds: a metric is a dimension of a score, its average, or one of rubrics (`records.task.METRICS`).
"""

from __future__ import annotations

from collections.abc import Mapping

#: The columns of sets that have none of their own.
COLUMNS: Mapping[str, str] = {
    "accuracy": "Acc",
    "effectiveness": "Eff",
    "average": "AVG",
    "tool_rationality": "Tool",
    "skill_selection": "Skill",
}
#: T3, tool robustness, and prompt robustness [4.2].
TOOL_COLUMNS: Mapping[str, str] = {"ACQ": "ACQ", "RC": "RC", "TC": "TC", "average": "AVG"}
PROMPT_COLUMNS: Mapping[str, str] = {"ACQ": "ACQ", "FI": "FI", "TCO": "TCO", "average": "AVG"}
#: Held-out harness edits [5.6].
EDIT_COLUMNS: Mapping[str, str] = {"NAT": "Natural", "accuracy": "Acc", "effectiveness": "Eff"}
#: Every metric with its heading.
HEADINGS: Mapping[str, str] = {**COLUMNS, **TOOL_COLUMNS, **PROMPT_COLUMNS, **EDIT_COLUMNS}
_MEANINGS: Mapping[str, str] = {
    "accuracy": "Accuracy",
    "effectiveness": "Effectiveness",
    "average": "the mean of both",
    "tool_rationality": "Tool Rationality",
    "skill_selection": "Skill Selection",
    "ACQ": "Addresses Core Query",
    "RC": "Response Contains",
    "TC": "Tool Called",
    "FI": "Follows Instructions",
    "TCO": "Tool Call Order",
    "NAT": "without an error of naturalness",
}


def legend(columns: Mapping[str, str]) -> str:
    """The line under a table that says what its headings mean."""
    meanings = dict(_MEANINGS)
    if "accuracy" not in columns:
        meanings["average"] = "the share of an item's rubrics that were passed"
    named = ", ".join(f"{heading} {meanings[name]}" for name, heading in columns.items())
    return f"n items; means in percent: {named}. `harnessctl docs evaluation` says how each is scored."
