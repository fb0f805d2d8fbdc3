"""SetItem: an item of a built set, one line of JSON Lines [C.3].

What always holds: it holds all that is asked (scenario with gold and task, and what is other of the harness), so that a set
can be frozen, read by a person and given to `eval`.
"""

from __future__ import annotations

import msgspec

from harnessctl.bundle.variation import Variation
from harnessctl.records.scenario import Scenario

FORMAT = "harnessctl/set-item.v1"


class SetItem(msgspec.Struct, omit_defaults=True, kw_only=True, tag_field="format", tag=FORMAT):
    """One item of the set `set`. `variation` is null where it is answered under the harness as it is."""

    set: str
    scenario: Scenario
    variation: Variation | None = None
