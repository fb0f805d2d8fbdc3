"""Wording: which sentence is said: one of gold's, a fallback where a tool failed for good, or a neutral one."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from harnessctl.augment.stream import Stream
from harnessctl.numerals import known_numbers, numbers_in
from harnessctl.records.scenario import Scenario
from harnessctl.simulate.plan import Plan
from harnessctl.simulate.reading import Turn

#: What may be said of anything: no fact, no number, a way on. Languages without their own take English.
NEUTRAL = {
    "en": (
        "Please tap the link, it has all the details.",
        "Please open the link for the details, or ask customer service in the app.",
    ),
    "zh": ("详情请点开链接查看哦。", "具体请看链接里的说明,也可以在应用里联系客服。"),
}


def neutral(language: str) -> tuple[str, ...]:
    """Neutral sentences in a language (`zh-Hans` is `zh`)."""
    return NEUTRAL.get(language.partition("-")[0], NEUTRAL["en"])


def wordings(
    plan: Plan,
    scenario: Scenario,
    turn: Turn,
    given_up: Sequence[str],
    stream: Stream,
    *,
    writes: Collection[str],
    is_json: bool,
) -> list[str]:
    """What may be said, in the order in which it is tried. `given_up` are the tools that failed for good, `writes` those
    that change something. Where a reply `is_json`, gold alone knows its form, and nothing neutral is said.

    Gold's replies stand where nothing failed that they rest on: nothing was to be changed, no fact comes from a tool that
    was given up, and every number in them was told. The order among them is drawn.
    """
    gold = scenario.gold
    sources = {fact.source for fact in gold.facts} if gold is not None else set()
    replies = plan.replies
    if given_up:
        replies = () if (sources | set(writes)) & set(given_up) else tuple(_told(replies, turn.texts))
    spare = stream.shuffled(plan.fallbacks) if given_up or not replies else []
    if is_json:
        return [*stream.shuffled(replies), *spare] or list(plan.replies) or ["{}"]
    return [*stream.shuffled(replies), *spare, *stream.shuffled(neutral(scenario.language))]


def _told(replies: Iterable[str], texts: Iterable[str]) -> Iterable[str]:
    """The replies whose numbers all stand in `texts`."""
    known = {number for text in texts for number in known_numbers(text)}
    for reply in replies:
        if all(any(known.issuperset(way) for way in number.ways) for number in numbers_in(reply)):
            yield reply
