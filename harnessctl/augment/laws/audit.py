"""Audit: laws a to e checked on one variant after another of one parent.

What always holds: the audit sees the parent, the record and the variant, and knows nothing of how operators work or how
the variant was made. What is the very same object in both needs no second look; `thorough` takes no such short cut and
reads every text as it is rendered, too. Both find the same.
"""

from __future__ import annotations

import threading
from typing import Any

import msgspec

from harnessctl.augment.laws import numbers, pairing, references, round_trip, structure
from harnessctl.augment.laws.broken import Broken
from harnessctl.augment.laws.known import Case, Known
from harnessctl.bundle.files import Bundle
from harnessctl.bundle.state import HarnessState
from harnessctl.bundle.variation import Variation
from harnessctl.errors import BundleError
from harnessctl.manifests.specs.envelope import Envelope
from harnessctl.runtime.surface import SurfaceView

LAWS_CHECKED = (structure.check, references.check, round_trip.check, pairing.check, numbers.check)
#: How many parents are remembered.
_MOST = 8


class Audit:
    """Checks variants of one parent. The parent must not be altered afterwards."""

    def __init__(self, parent: HarnessState, envelope: Envelope | None = None) -> None:
        self._known = Known(parent, envelope)
        self.parent = parent
        self.envelope = envelope

    def check(self, variation: Variation, variant: HarnessState, *, thorough: bool = False) -> list[Broken]:
        """Every law that the variant breaks, with the place; empty when it keeps them."""
        known = self._known
        if thorough:
            known = Known(_anew(self.parent), self.envelope, kept=False)
            variant = _anew(variant)
        try:
            view = SurfaceView(variant)
        except (BundleError, LookupError, AttributeError) as error:
            broken = Broken("c", "surface", f"a model cannot be shown the variant: {error}")
            return [broken, *structure.check_state(Case(known, variation.changes, variant, known.view, thorough))]
        case = Case(known, variation.changes, variant, view, thorough)
        found = [broken for check in LAWS_CHECKED for broken in check(case)]
        return list(dict.fromkeys(found))


def _anew(state: HarnessState) -> HarnessState:
    """An equal state that shares nothing with `state`."""
    return msgspec.convert(msgspec.json.decode(msgspec.json.encode(state)), HarnessState)


_lock = threading.Lock()
_audits: dict[tuple[int, int], Audit] = {}


def check_laws(
    facts: Any, parent: Bundle, variation: Variation, variant: HarnessState, *, envelope: Envelope | None = None
) -> list[Broken]:
    """Every law of a to e that the variant breaks. What is worked out of a parent is kept for its next variant.

    `facts` (of augment.parent) are not looked at: who checks shares nothing with whom is checked.
    """
    key = (id(parent.state), id(envelope))
    audit = _audits.get(key)
    if audit is None or audit.parent is not parent.state or audit.envelope is not envelope:
        audit = Audit(parent.state, envelope)
        with _lock:
            if len(_audits) >= _MOST:
                _audits.clear()
            _audits[key] = audit
    return audit.check(variation, variant)
