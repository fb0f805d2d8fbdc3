"""Envelopes for the tests, and an augmenter whose findings are seen instead of raised."""

from __future__ import annotations

from harnessctl.augment.discovery import shipped_operators
from harnessctl.augment.envelopes import load_envelope
from harnessctl.augment.rewriters.rules import RulesRewriter
from harnessctl.augment.variants import Augmenter, Variant
from harnessctl.bundle import Bundle
from harnessctl.manifests.specs.envelope import Envelope, Operator

#: One for all tests: its wordings of a text are worked out once.
REWRITER = RulesRewriter()


def every_operator(rate: float = 0.7) -> Envelope:
    """Each shipped operator at one rate: further than any preset goes."""
    return Envelope(
        api_version="harnessctl/v1",
        kind="Envelope",
        name="everything",
        version="1.0.0",
        operators={name: Operator(rate=rate) for name in shipped_operators()},
    )


def preset(name: str) -> Envelope:
    """A shipped envelope."""
    return load_envelope(None, name)


def augmenter(parent: Bundle, envelope: Envelope | None = None) -> Augmenter:
    """An augmenter of `parent`; without an envelope every operator takes part."""
    return Augmenter(parent, envelope or every_operator(), rewriter=REWRITER)


def variants(parent: Bundle, count: int, *, seed: int = 7, envelope: Envelope | None = None) -> list[Variant]:
    """The first variants of a stream; LawBroken where one breaks a law."""
    made = augmenter(parent, envelope)
    return [made.variant(seed=seed, number=number) for number in range(count)]
