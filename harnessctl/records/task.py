"""Task: what an item of a built set asks beyond the gold of its scenario: rubrics, distractors, a situation [C.3, 5.6].

What always holds: a rubric can be checked on a trajectory alone (`score.rubrics`); its id is its metric, with a number
where an item has several of one metric (`RC-1`, `RC-2`); tools are named canonically.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from harnessctl.records.gold_call import GoldCall

#: What rubrics are of, by the paper's names [4.2]; NAT is ours [5.6].
METRICS = ("ACQ", "RC", "TC", "FI", "TCO", "NAT")


def metric_of(rubric: str) -> str:
    """The metric that a rubric's id is of."""
    return rubric.partition("-")[0]


class Checked(msgspec.Struct, omit_defaults=True, kw_only=True, tag_field="check"):
    """Base of rubrics: `check` says which one."""

    id: str


class Addresses(Checked, tag="addresses"):
    """The reply takes up what was asked, right or wrong: it says one of `about`, or a number of one of the `units`, and
    asks back where `asks`."""

    about: list[str] = []
    units: list[str] = []
    asks: bool = False


class Says(Checked, tag="says"):
    """The reply says one of `any`, which the tool `source` returns."""

    any: list[str]
    source: str | None = None


class Called(Checked, tag="called"):
    """All calls of one of the `plans` were made and came through."""

    plans: list[list[GoldCall]]


class Ordered(Checked, tag="ordered"):
    """Each of `tools` came through, the first calls of them in this order; `first`: nothing was called before the first of
    them, `last`: nothing after the last."""

    tools: list[str]
    first: bool = False
    last: bool = False


class Begins(Checked, tag="begins"):
    """The reply begins with `text`."""

    text: str


class Ends(Checked, tag="ends"):
    """The reply ends with `text`."""

    text: str


class Mentions(Checked, tag="mentions"):
    """The reply has `text` in it, word for word."""

    text: str


class Avoids(Checked, tag="avoids"):
    """The reply has none of `texts` in it."""

    texts: list[str]


class Length(Checked, tag="length"):
    """The reply has between `least` and `most` characters."""

    least: int = 0
    most: int | None = None


class Sentences(Checked, tag="sentences"):
    """The reply has exactly `count` sentences."""

    count: int


class Lines(Checked, tag="lines"):
    """The reply has exactly `count` lines, none of them empty."""

    count: int


class Marks(Checked, tag="marks"):
    """The sign `mark` stands exactly `count` times in the reply, in half or full width."""

    mark: str
    count: int


class Wrapped(Checked, tag="wrapped"):
    """The whole reply stands between `left` and `right`, which it has nowhere else."""

    left: str
    right: str


class Lowercase(Checked, tag="lowercase"):
    """The reply has no capital letter."""


class Natural(Checked, tag="natural"):
    """The reply has none of the errors that `score.naturalness` finds."""


Instruction = Begins | Ends | Mentions | Avoids | Length | Sentences | Lines | Marks | Wrapped | Lowercase
Rubric = Addresses | Says | Called | Ordered | Instruction | Natural


class DistractorTool(msgspec.Struct, omit_defaults=True, kw_only=True):
    """A tool that was put beside the harness's own. `near`: `twin` of a tool that is due, `like` it in name, description and
    parameters; `sibling` of one that is not; `far`: of another trade."""

    tool: str
    near: Literal["twin", "sibling", "far"]
    like: str = ""


class Task(msgspec.Struct, omit_defaults=True, kw_only=True):
    """`set` is the set that the item belongs to, `level` how hard it was made. `instructions` are those put into the prompt,
    as it shows them. `situation` is a fault that every call of the tools which are due meets; `arm` says under which of
    two harnesses the item was answered."""

    set: str
    level: Literal["", "easy", "medium", "hard"] = ""
    rubrics: list[Rubric] = []
    distractors: list[DistractorTool] = []
    instructions: list[str] = []
    situation: Literal["", "timeout", "malformed", "denied", "missing"] = ""
    arm: Literal["", "before", "after"] = ""
