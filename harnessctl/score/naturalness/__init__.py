"""Naturalness: errors of a reply that is not how a live host speaks, each with its place [5.6, B.3].

The paper counts 'bad cases where the model output is not sufficiently natural or colloquial for a live-streaming host' by
an automatic check that it does not print; its Figure 8 shows one kind, disclosure of internal uncertainty. The kinds and
their rules here are ours. What always holds: a place is counted once for a kind; equal texts have equal errors.

| kind           | what                                                                        |
|----------------|-----------------------------------------------------------------------------|
| uncertainty    | says that it does not know, cannot confirm, has no information              |
| system-talk    | speaks of tools, data, systems, search results                              |
| tool-name      | an identifier such as `get_product`                                         |
| process-talk   | says what it does to find out: looking it up, one moment please             |
| role-talk      | speaks of itself as a model, of its instructions                            |
| stiffness      | writes as an office does                                                    |
| template-leak  | placeholders, markers, `null`                                               |
| markup         | lists, bold, tables: what a voice cannot say                                |
| apology-loop   | each apology after the first                                                |
| repetition     | a sentence again, words twice in a row                                      |
| mixed-language | Chinese in an English reply, an English phrase in a Chinese one             |
"""

from __future__ import annotations

from collections.abc import Iterator

from harnessctl.records.score import Finding
from harnessctl.score.naturalness.mixture import mixed
from harnessctl.score.naturalness.patterns import Span, patterns, spans
from harnessctl.score.naturalness.repeats import apologies, repeated

#: Every kind, in the order of reports.
KINDS = (
    "uncertainty",
    "system-talk",
    "tool-name",
    "process-talk",
    "role-talk",
    "stiffness",
    "template-leak",
    "markup",
    "apology-loop",
    "repetition",
    "mixed-language",
)


def findings(text: str, language: str) -> list[Finding]:
    """The errors of a reply to a viewer who speaks `language`, kind by kind in the order of KINDS."""
    return [
        Finding(kind=kind, start=start, end=end, text=text[start:end])
        for kind in KINDS
        for start, end in _spans(kind, text, language)
    ]


def _spans(kind: str, text: str, language: str) -> Iterator[Span]:
    if kind in patterns():
        return spans(kind, text)
    if kind == "apology-loop":
        return apologies(text)
    if kind == "repetition":
        return repeated(text)
    return mixed(text, language)
