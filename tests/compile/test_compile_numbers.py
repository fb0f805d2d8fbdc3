"""Numbers: what a manifest may hold, a bundle gives back; what JSON cannot keep is a fault."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from harnessctl.bundle import read_bundle
from harnessctl.bundle.files import encode_bundle
from harnessctl.compile import compile_project, validate_project

Shop = Callable[..., Path]


@pytest.mark.parametrize(
    "number", ["1e17", "9007199254740992", "9007199254740992.0", "-1e20", "1e21", "-0.0", "1e-7", "0x10"]
)
def test_a_bundle_of_any_number_reads_back_to_its_own_bytes(shop: Shop, number: str) -> None:
    path = compile_project(
        shop({"manifests/tools/catalog.yaml": ("minimum: 1", f"minimum: 1, default: {number}")})
    ).path()
    assert encode_bundle(read_bundle(path)) == path.read_bytes()


def test_a_number_too_long_to_compare_is_no_fault_now_and_no_crash_later(shop: Shop) -> None:
    root = shop({"skills/item-qa/SKILL.md": ("at most 80", f"at most {'1' * 400}")})
    compile_project(root)
    (root / "skills/upsell/SKILL.md").write_text("---\nname: upsell\ndescription: Offers.\n---\nOffer.\n")
    assert [fault.code for fault in validate_project(root).errors] == []
