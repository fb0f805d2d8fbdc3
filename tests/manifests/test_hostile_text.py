"""Text that is made to cost time, to slip past a pattern, or to deceive whoever reads the fault."""

from __future__ import annotations

import time
from collections.abc import Callable

import msgspec
import pytest

from harnessctl.errors import Fault, Faults
from harnessctl.manifests import attributes
from harnessctl.manifests.load import load_text
from harnessctl.manifests.markdown import read_skill
from harnessctl.manifests.specs.base import Version
from harnessctl.manifests.specs.hooks import Hook
from harnessctl.manifests.specs.tools import Run, Tool

FRONT = "---\nname: a\ndescription: A.\n---\n"


@pytest.mark.parametrize(
    ("spec", "value"),
    [
        (Tool, {"name": "get_price\n", "description": "x"}),
        (Tool, {"name": "get_price", "description": "x", "version": "1.0.0\n"}),
        (Hook, {"id": "a\n", "event": "stop"}),
        (Run, {"python": "a:b\n"}),
        (Run, {"python": "a..b:c"}),
        (Run, {"http": {"url": "https://x.example/a b"}}),
        (Version, "1.0.0\n"),
        (Version, "１.0.0"),
        (Version, "1.0.0-" + "a" * 100),
    ],
)
def test_a_final_line_break_passes_no_pattern(spec: type, value: object) -> None:
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert(value, spec)


def test_a_document_of_too_many_values_is_not_composed_to_its_end() -> None:
    faults = Faults()
    started = time.perf_counter()
    assert load_text("m.yaml", f"a: [{'1,' * 1_900_000}]", faults) is None
    assert time.perf_counter() - started < 5
    (fault,) = faults.items
    assert fault.render().startswith("m.yaml: error[yaml-alias-bomb]: too many values")


HOSTILE: dict[str, Callable[[], object]] = {
    "spaces before a brace": lambda: attributes.split("- x" + " " * 200_000 + "}"),
    "many braces": lambda: attributes.split("- x" + "{#a " * 50_000 + "}"),
    "many fences": lambda: read_skill("s", (FRONT + "## Rules\n- a\n" + "```x\n~~~y\n" * 20_000).encode(), Faults()),
}


@pytest.mark.parametrize("read", HOSTILE.values(), ids=HOSTILE.keys())
def test_no_text_takes_more_time_than_its_length(read: Callable[[], object]) -> None:
    started = time.perf_counter()
    read()
    assert time.perf_counter() - started < 3


def test_code_on_a_line_of_its_own_opens_no_fence() -> None:
    faults = Faults()
    skill = read_skill("s", (FRONT + "```get_price```\n\n## Rules\n\n- Be kind. {#kind}\n").encode(), faults)
    assert skill is not None and [rule.id for rule in skill.rules] == ["kind"]


def test_a_fault_is_one_line_and_has_no_power_over_a_terminal() -> None:
    fault = Fault("m\x1b[2J.yaml", 1, 2, "x", "what", "a\nb\x1b[31m\u202egnp", "c", "d\u2028e")
    assert fault.render() == (
        r"m\x1b[2J.yaml:1:2: error[x]: what; got a\nb\x1b[31m\u202egnp; allowed c" + "\n" + r"    hint: d\u2028e"
    )


def test_a_place_without_a_column_shows_none() -> None:
    assert Fault("m.yaml", 3, 0, "x", "what").render() == "m.yaml:3: error[x]: what"
    assert Fault("m.yaml", 0, 0, "x", "what").render() == "m.yaml: error[x]: what"


def test_the_place_of_each_of_many_faults_is_found_in_time() -> None:
    faults = Faults()
    document = load_text("m.yaml", "a: >-\n  " + "word " * 30_000, faults)
    assert document is not None
    passage = document.passage("a")
    started = time.perf_counter()
    places = [passage.place(n * 50) for n in range(3000)]
    assert time.perf_counter() - started < 3
    assert places[1] == (2, 3 + 50)
