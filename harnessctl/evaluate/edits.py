"""Edits: errors of naturalness before and after an edit of the harness, and their relative change by kind [5.6].

What always holds: a pair is one scenario under both harnesses; what one of them has no score for is left out of both. The
paper's figure is the total: 18.1% fewer for one checkpoint, 51.7% fewer for another, after the same edits.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

import msgspec

from harnessctl.evaluate.files import path_of, read_records
from harnessctl.records.score import Score
from harnessctl.score.naturalness import KINDS
from harnessctl.simulate.situations import EDITED
from harnessctl.trajectory import read_trajectories


class Change(msgspec.Struct, kw_only=True):
    """Errors before and after. `relative` is (after - before) / before, null where there were none before."""

    before: int
    after: int
    relative: float | None


class Edited(msgspec.Struct, kw_only=True):
    """`pairs` scenarios were answered under both harnesses; `total` are all errors, `kinds` those of each kind that occurs,
    `items` the scenarios with an error."""

    pairs: int
    total: Change
    items: Change
    kinds: dict[str, Change]

    def table(self) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
        """Heading and rows."""
        rows = [*self.kinds.items(), ("total", self.total), ("items with an error", self.items)]
        head = (f"errors, {self.pairs} pairs", "before", "after", "change")
        return head, [(name, str(one.before), str(one.after), _percent(one.relative)) for name, one in rows]


class Case(msgspec.Struct, kw_only=True):
    """A scenario with an error under the first harness: what viewers asked, and both replies, errors in brackets."""

    scenario: str
    asked: str
    before: str
    after: str


def cases_of(folder: Path, most: int) -> list[Case]:
    """The first `most` scenarios of a run that have an error before the edit, in the shape of the paper's Figure 8."""
    scores = list(read_records(folder, "scores"))
    wanted = {_pair(score) for score in scores if score.arm == "before" and score.findings}
    found: dict[tuple[str, int], dict[str, str]] = {}
    done: list[Case] = []
    trajectories = read_trajectories(path_of(folder, "trajectories")) if wanted else iter(())
    for score, trajectory in zip(scores, trajectories, strict=False):
        key = _pair(score)
        if key not in wanted:
            continue
        found.setdefault(key, {})[score.arm] = marked(trajectory.reply, score) or f"({trajectory.stop})"
        if len(found[key]) == 2:
            said = [str(message.get("text", "")) for message in trajectory.request.get("messages") or ()]
            done.append(Case(scenario=key[0], asked=" / ".join(said), **found[key]))
            if len(done) == most:
                break
    return done


def edited_of(scores: Iterable[Score]) -> Edited | None:
    """The two arms of one run held against each other; null where it has but one."""
    found = list(scores)
    before = [score for score in found if score.arm == "before"]
    after = [score for score in found if score.arm == "after"]
    return changes(before, after) if before and after else None


def changes(before: Sequence[Score], after: Sequence[Score]) -> Edited:
    """Scores of the same scenarios under two harnesses, of one run or of two, held against each other."""
    firsts = {_pair(score): score for score in before if score.rubrics}
    seconds = {_pair(score): score for score in after if score.rubrics}
    both = [key for key in firsts if key in seconds]
    one, other = [firsts[key] for key in both], [seconds[key] for key in both]
    counts, later = findings_of(one), findings_of(other)
    return Edited(
        pairs=len(both),
        total=_change(sum(counts.values()), sum(later.values())),
        items=_change(sum(bool(score.findings) for score in one), sum(bool(score.findings) for score in other)),
        kinds={
            kind: _change(counts.get(kind, 0), later.get(kind, 0))
            for kind in KINDS
            if counts.get(kind, 0) or later.get(kind, 0)
        },
    )


def findings_of(scores: Iterable[Score]) -> dict[str, int]:
    """Errors of naturalness by kind, in the order of KINDS."""
    counts = Counter(finding.kind for score in scores for finding in score.findings)
    return {kind: counts[kind] for kind in KINDS if counts[kind]}


def marked(reply: str, score: Score, left: str = "[", right: str = "]") -> str:
    """A reply with its errors between marks; errors that overlap are marked as one."""
    spans = sorted((finding.start, finding.end) for finding in score.findings)
    merged: list[tuple[int, int]] = []
    for start, end in spans:
        if merged and start < merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    for start, end in reversed(merged):
        reply = f"{reply[:start]}{left}{reply[start:end]}{right}{reply[end:]}"
    return reply


def _pair(score: Score) -> tuple[str, int]:
    return score.scenario.removesuffix(EDITED), score.repeat


def _change(before: int, after: int) -> Change:
    return Change(before=before, after=after, relative=(after - before) / before if before else None)


def _percent(relative: float | None) -> str:
    return "-" if relative is None else f"{100 * relative:+.1f}%"
