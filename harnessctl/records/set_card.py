"""SetCard: what a built set is made of; one JSON document beside its items [C.3].

What always holds: the digest is of the bytes of the items' file.
"""

from __future__ import annotations

import msgspec

FORMAT = "harnessctl/set-card.v1"


class SetCard(msgspec.Struct, omit_defaults=True, kw_only=True, tag_field="format", tag=FORMAT):
    """What a set is made of. `bundle` and `world` are the digests of the harness and the tables that it was built for.

    `drawn` counts scenarios that were looked at: `items` were taken, `passed_over` ask nothing of the set's kind, `rejected`
    failed a consistency check; both by reason. The rest are counts of items, `rubrics` of rubrics by metric.
    """

    set: str
    digest: str
    harness: str
    bundle: str
    world: str
    seed: int
    items: int
    drawn: int
    passed_over: dict[str, int] = {}
    rejected: dict[str, int] = {}
    intents: dict[str, int] = {}
    languages: dict[str, int] = {}
    families: dict[str, int] = {}
    levels: dict[str, int] = {}
    rubrics: dict[str, int] = {}
    checks: dict[str, int] = {}
    situations: dict[str, int] = {}
    distractors: dict[str, int] = {}
