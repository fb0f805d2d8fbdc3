"""Broken: a law of augmentation that a variant does not keep, with the place and the reason."""

from __future__ import annotations

from typing import Literal

import msgspec

Law = Literal["a", "b", "c", "d", "e", "h"]
#: What each letter stands for; f (equal bytes for equal seeds) and g (equal difficulty) are of many variants, not of one.
LAWS: dict[Law, str] = {
    "a": "structure",
    "b": "references",
    "c": "round trip of names",
    "d": "pairing and masks",
    "e": "numbers",
    "h": "wording",
}


class Broken(msgspec.Struct, frozen=True):
    """`place` is a path in the state, such as `skills/item-qa/rules/lookup` or `surface/tools/get_order`."""

    law: Law
    place: str
    reason: str

    def __str__(self) -> str:
        return f"law {self.law} ({LAWS[self.law]}): {self.place}: {self.reason}"
