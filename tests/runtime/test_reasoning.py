"""Reasoning is set apart, however an endpoint hands it over."""

from __future__ import annotations

import pytest

from harnessctl.runtime.reasoning import split_reasoning


@pytest.mark.parametrize(
    ("content", "said", "thought"),
    [
        ("It is 89.", "It is 89.", None),
        ("<think>\nCheap.\n</think>\n\nIt is 89.", "It is 89.", "Cheap."),
        ("Cheap.</think>It is 89.", "It is 89.", "Cheap."),
        ("<think>Cheap. And", "", "Cheap. And"),
        ("<think></think>It is 89.", "It is 89.", None),
        ("<think>a</think>one <think>b</think>two", "one two", "a\nb"),
        ("I rethink>it", "I rethink>it", None),
    ],
)
def test_split(content: str, said: str, thought: str | None) -> None:
    assert split_reasoning(content) == (said, thought)
