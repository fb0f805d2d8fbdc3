"""Coverage: how much of a harness a set of variants varied; coverage.json of a run of `augment`."""

from __future__ import annotations

import msgspec

#: Beyond this many, surface forms of one place are no longer told apart; counts then say `at least`.
MAX_FORMS = 2000


class Target(msgspec.Struct, kw_only=True, omit_defaults=True):
    """One skill, tool, rule or item: how many surface forms it had, the original among them where it was shown.

    `masked` counts the variants without it. Forms that do not apply (the name of a rule) are 0; so are all of them where
    it was always masked.
    """

    names: int = 0
    descriptions: int = 0
    parameters: int = 0
    wordings: int = 0
    masked: int = 0


class Applied(msgspec.Struct, kw_only=True):
    """An operator (or the changes of a hook): in how many variants, how many targets altogether, how many different."""

    variants: int
    targets: int
    distinct: int


class Refused(msgspec.Struct, kw_only=True):
    """A variant that broke a law, and why."""

    number: int
    law: str
    place: str
    reason: str


class Values(msgspec.Struct, kw_only=True):
    """The values of a limit over the variants that moved it."""

    variants: int
    least: float
    most: float


class Coverage(msgspec.Struct, kw_only=True):
    """coverage.json. `skills`, `tools`, `rules` (`skill#rule`, `block#item`) and `limits` are in the order of the state.

    `fallbacks` counts, over all variants, the texts for which the rewriter had no other wording; `without_wording` names
    those of the parent. `most_forms` is how many forms of one place are told apart at most.
    """

    variants: int
    refused: int
    operators: dict[str, Applied]
    skills: dict[str, Target]
    tools: dict[str, Target]
    rules: dict[str, Target]
    limits: dict[str, Values]
    hooks: dict[str, Applied]
    fallbacks: int
    without_wording: list[str]
    refusals: list[Refused]
    most_forms: int = MAX_FORMS
