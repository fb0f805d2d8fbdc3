"""ungrounded-number: says a number that no result holds; sent back by a hook, one that is held and means something else.

The first would never go out where a hook looks for the source of numbers, and then nothing would show but silence: so
it makes do with a number of the results or the room that is not the one that was asked for, and sticks to it.
"""

from __future__ import annotations

from harnessctl.numerals import known_numbers, numbers_in
from harnessctl.simulate.flaws import Flaw, Saying

#: Small numbers are mostly counts, which need no source.
_LEAST = 3


def _reply(saying: Saying) -> str:
    gold = saying.scenario.gold
    assert gold is not None
    due = [number for fact in gold.facts for text in fact.any for number in numbers_in(text)]
    said = [n for n in (due or list(numbers_in(saying.text))) if n.size >= _LEAST and n.written in saying.text]
    if not said:
        return saying.text
    written = said[0].written
    right = {
        value for reply in (*gold.replies, *(t for f in gold.facts for t in f.any)) for value in known_numbers(reply)
    }
    return saying.text.replace(written, _other(saying, written, right), 1)


def _other(saying: Saying, written: str, right: set[str]) -> str:
    """A number unlike every right one: of no source at first, then of one."""
    known = dict.fromkeys(value for text in reversed(saying.turn.texts) for value in known_numbers(text))
    digits = len(written)
    if saying.turn.sent_back == 0:
        number = saying.stream.integer(10 ** max(1, digits - 1), 10 ** max(2, digits))
        while str(number) in known or str(number) in right:
            number += 1
        return str(number)
    held = [value for value in known if value not in right and float(value) >= _LEAST and len(value) <= digits + 1]
    return saying.stream.choice(held) if held else written


FLAW = Flaw(
    name="ungrounded-number",
    lowers=frozenset({"accuracy", "effectiveness", "RC"}),
    spares=frozenset({"tool_rationality", "skill_selection", "TC", "TCO"}),
    reply=_reply,
)
