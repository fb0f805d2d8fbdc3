"""Report: what an import made of a log. Every item of the log is counted once: taken, folded, passed over or refused."""

from __future__ import annotations

import msgspec

#: Refusals beyond this many are counted, not listed.
MAX_LISTED = 50


class Refusal(msgspec.Struct, frozen=True):
    """An item that became no scenario, and why. `place` is `path:line`, or `path: item n` of a JSON document."""

    place: str
    reason: str

    def render(self) -> str:
        """`path:line: reason`."""
        return f"{self.place}: {self.reason}"


class LogImport(msgspec.Struct, kw_only=True):
    """The counts of one import, and the first refusals.

    `folded` items asked the same as one that was taken; `passed_over` ones were cancelled before they were answered;
    `with_gold` of those taken have gold. `named` counts scenarios in which a viewer's name that was hashed or dropped
    still stands in a text.
    """

    source: str
    items: int = 0
    taken: int = 0
    folded: int = 0
    passed_over: int = 0
    refused: int = 0
    with_gold: int = 0
    named: int = 0
    refusals: list[Refusal] = []

    def refuse(self, place: str, reason: str) -> None:
        """Count an item that became no scenario."""
        self.refused += 1
        if self.refused <= MAX_LISTED:
            self.refusals.append(Refusal(place, reason))

    def render(self) -> str:
        """The report as plain text."""
        out = [refusal.render() for refusal in self.refusals]
        if self.refused > len(self.refusals):
            out.append(f"and {self.refused - len(self.refusals)} more refused")
        if self.named:
            out.append(
                f"{self.named} of the scenarios still name a viewer in a text or in their context, which are not searched and replaced"
            )
        gold = f", {self.with_gold} with gold" if self.with_gold else ""
        out.append(
            f"{self.items} items: {self.taken} scenarios{gold}, {self.folded} folded, {self.passed_over} passed over,"
            f" {self.refused} refused"
        )
        return "\n".join(out)
