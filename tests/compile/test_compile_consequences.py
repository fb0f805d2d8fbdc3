"""One thing wrong, one fault: what only follows from a source or value that could not be read is not said."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from harnessctl.compile import validate_project

Faults = Callable[..., list[str]]
Shop = Callable[..., Path]
SKILL = "skills/item-qa/SKILL.md"
TOOLS = "manifests/tools/catalog.yaml"
HARNESS = "manifests/harness.yaml"


def codes(root: Path) -> list[str]:
    return [fault.code for fault in validate_project(root).errors]


def folder_for_file(root: Path, path: str) -> None:
    (root / path).unlink()
    (root / path).mkdir()


def link_out(root: Path, path: str) -> None:
    (root / path).unlink()
    (root / path).symlink_to("/etc/hostname")


@pytest.mark.parametrize("path", [SKILL, TOOLS, HARNESS, "manifests/hooks/guards.yaml", "manifests/prompts/main.yaml"])
@pytest.mark.parametrize("damage", [folder_for_file, link_out])
def test_a_source_that_is_not_there_to_be_read(shop: Shop, path: str, damage: Callable[[Path, str], None]) -> None:
    root = shop()
    damage(root, path)
    (code,) = codes(root)
    assert code in ("source-unreadable", "source-place", "source-outside")


def test_front_matter_that_is_never_closed(faults: Faults) -> None:
    (text,) = faults(
        {SKILL: ("allowed-tools: get_product search_faq\n---\n", "allowed-tools: get_product search_faq\n")}
    )
    assert "error[skill-front-matter]" in text


@pytest.mark.parametrize(
    ("path", "old", "new"),
    [
        (HARNESS, "value: 80", "value: .nan"),
        (TOOLS, "minimum: 1", "minimum: 1e999"),
        ("manifests/hooks/guards.yaml", "    order: -1\n", "    timeout_s: .inf\n"),
    ],
)
def test_a_number_that_json_cannot_keep(faults: Faults, path: str, old: str, new: str) -> None:
    (text,) = faults({path: (old, new)})
    assert "error[yaml-number]: the number cannot be kept exactly in JSON" in text


def test_limits_of_which_one_does_not_fit_are_known_all_the_same(faults: Faults) -> None:
    (text,) = faults({HARNESS: ("range: [50, 120]", "range: [50]")})
    assert "error[schema-length]: `range` has too few entries" in text


def test_a_name_that_is_a_tool_and_a_skill_is_said_once(faults: Faults) -> None:
    tool = "  - name: item-qa\n    description: Shows.\n    final: {}\n  - name: refuse\n"
    found = faults({TOOLS: ("  - name: refuse\n", tool)})
    assert found and all("error[ref-ambiguous]" in text for text in found)
