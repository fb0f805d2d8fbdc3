"""Clusters: where a judge and the labels disagree, sorted by what they disagree about [B.4].

The classes are those of B.4. Which one a disagreement is of is told by rules of ours, in this order: Effectiveness of an
item with several comments is `missed-intent`; other Effectiveness with a 0.5 on one side is `partial-answer`; Accuracy
whose reasons (the label's or a voter's) speak of links or products is `product-link`, of claims, promises, deeds or
unsupported facts `capability-claim`; the rest is `other`. Words can mislead, so each cluster names its cases.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

import msgspec

from harnessctl.evaluate.judging.agreement import STEPS
from harnessctl.evaluate.judging.comparing import Grades
from harnessctl.evaluate.judging.labels import Labelled
from harnessctl.records.vote import Vote

_PRODUCT = re.compile(r"(?i)\blinks?\b|\b(?:another|other|wrong) (?:product|item|option)|链接|\d号|商品不对|别的商品")
_CLAIM = re.compile(
    r"(?i)\b(?:claim|promis|guarantee|refund|support|invent|unground|ground|source|stands in no|did not do|no call|wrote)"
    r"|承诺|保证|编造|没有依据|退款"
)
_WORD = re.compile(r"[\u4e00-\u9fff]{2,}|[a-z][a-z'-]{3,}")
#: Words that say nothing of what went wrong.
_COMMON = frozenset(
    [
        "that",
        "this",
        "with",
        "from",
        "were",
        "been",
        "have",
        "does",
        "what",
        "which",
        "only",
        "also",
        "their",
        "there",
        "reply",
        "viewer",
        "said",
        "says",
        "about",
    ]
)
LISTED = 5


class Disagreement(msgspec.Struct, kw_only=True):
    """One item and dimension on which the panel and the label differ."""

    id: str
    dimension: str
    kind: str
    label: float
    panel: float
    intent: str
    family: str
    language: str
    label_reason: str
    panel_reasons: list[str]


class Cluster(msgspec.Struct, kw_only=True):
    """Disagreements of one kind and direction: `strict` where the panel gives less than the label, `lenient` where more.

    `share` is of all disagreements of the dimension. `words` are the commonest of the reasons; `cases` the first ids.
    """

    kind: str
    dimension: str
    direction: str
    count: int
    share: float
    intents: dict[str, int]
    families: dict[str, int]
    words: list[str]
    cases: list[str]


def disagreements(
    items: Sequence[Labelled], votes: Sequence[Sequence[Vote]], verdicts: Sequence[Grades]
) -> list[Disagreement]:
    """Every disagreement, in the order of items and dimensions; items without a grade on either side are none."""
    found: list[Disagreement] = []
    for each, of_item, verdict in zip(items, votes, verdicts, strict=True):
        for name in STEPS:
            label, panel = each.reference[name], verdict[name]
            if label is None or panel is None or label == panel:
                continue
            reasons = [vote.reason for vote in of_item if getattr(vote, name) == panel]
            said = "; ".join(dict.fromkeys(one.reason for one in each.item.labels if one.reason))
            found.append(
                Disagreement(
                    id=each.item.id,
                    dimension=name,
                    kind=_kind(name, each, (label, panel), [said, *reasons]),
                    label=label,
                    panel=panel,
                    intent=each.item.intent,
                    family=each.item.family,
                    language=each.item.language,
                    label_reason=said,
                    panel_reasons=reasons,
                )
            )
    return found


def clusters(found: Sequence[Disagreement]) -> list[Cluster]:
    """The clusters, the largest first."""
    groups: dict[tuple[str, str, str], list[Disagreement]] = {}
    for one in found:
        groups.setdefault((one.dimension, one.kind, "strict" if one.panel < one.label else "lenient"), []).append(one)
    of_dimension = Counter(one.dimension for one in found)
    made = [
        Cluster(
            kind=kind,
            dimension=dimension,
            direction=direction,
            count=len(members),
            share=len(members) / of_dimension[dimension],
            intents=_counted([one.intent for one in members]),
            families=_counted([one.family for one in members]),
            words=_words(members),
            cases=[one.id for one in members[:LISTED]],
        )
        for (dimension, kind, direction), members in groups.items()
    ]
    return sorted(made, key=lambda each: (-each.count, each.dimension, each.kind, each.direction))


def _kind(dimension: str, each: Labelled, grades: tuple[float, float], reasons: Sequence[str]) -> str:
    if dimension == "effectiveness":
        if len(each.case.request.viewer_messages()) > 1:
            return "missed-intent"
        return "partial-answer" if 0.5 in grades else "other"
    text = " ".join(reasons)
    if _PRODUCT.search(text):
        return "product-link"
    return "capability-claim" if _CLAIM.search(text) else "other"


def _counted(names: Sequence[str]) -> dict[str, int]:
    return dict(sorted(Counter(name for name in names if name).items(), key=lambda entry: (-entry[1], entry[0])))


def _words(members: Sequence[Disagreement]) -> list[str]:
    """The commonest words of the reasons, each counted once a case."""
    counts: Counter[str] = Counter()
    for one in members:
        counts.update(set(_WORD.findall(" ".join([one.label_reason, *one.panel_reasons]).lower())) - _COMMON)
    return [word for word, _ in sorted(counts.items(), key=lambda entry: (-entry[1], entry[0]))[:LISTED]]
