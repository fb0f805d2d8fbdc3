"""Sequences: what the policy read and said, as a draft head learns from it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from harnessctl.errors import RecordError, TrainingError
from harnessctl.records.trajectory import TokenPath, Trajectory
from harnessctl.storage import digest, read_json_lines


@dataclass(slots=True, frozen=True)
class LabelledSequence:
    """Token ids of one unbroken context up to the last that the policy sampled; `mask` is 1 where it sampled them.
    `scenario` is the id of what was answered; rollouts of one have it in common."""

    ids: list[int]
    mask: list[int]
    source: str
    scenario: str


@dataclass(slots=True, frozen=True)
class Sequences:
    """`items` in the order of the file; `cut` were longer than allowed, `dropped` had no label."""

    items: list[LabelledSequence]
    cut: int
    dropped: int

    @property
    def digest(self) -> str:
        """SHA-256 of ids and masks."""
        return digest([[item.ids, item.mask] for item in self.items])

    @property
    def tokens(self) -> int:
        """All tokens, prompts too."""
        return sum(len(item.ids) for item in self.items)


def read_sequences(paths: Sequence[Path], *, max_tokens: int, vocabulary: int, limit: int | None = None) -> Sequences:
    """The token paths of the trajectories in `paths` that have a label; of more than `limit` the latest, which in a run
    of rl are those of the policy nearest to the one that came out.

    What follows the last sampled token is left away, and what is beyond `max_tokens`. TrainingError when nothing is
    left, or when a token is none of the `vocabulary`'s: the file is then of another model.
    """
    items: list[tuple[int, LabelledSequence]] = []
    cut = dropped = 0
    for step, source, scenario, found in _token_paths(paths):
        if found.ids and max(found.ids) >= vocabulary:
            raise TrainingError(
                f"{source} holds the token {max(found.ids)}, and the policy knows {vocabulary}",
                hint="give rollouts of this very policy: rollouts=RUN",
            )
        length = _labelled(found.mask)
        if length > max_tokens:
            cut, length = cut + 1, _labelled(found.mask[:max_tokens])
        # The first label of all is the third token: it is predicted from the first's state and the second's embedding.
        if length < 3:
            dropped += 1
        else:
            items.append((step, LabelledSequence(found.ids[:length], found.mask[:length], source, scenario)))
    if not items:
        raise TrainingError(
            f"{', '.join(map(str, paths))}: no sequence with tokens that a policy sampled ({dropped} without)",
            hint="only local policies and SGLang record token ids: harnessctl eval live-qa policy=local",
        )
    items.sort(key=lambda item: item[0])
    return Sequences([item for _, item in items[-limit if limit else 0 :]], cut, dropped)


def _token_paths(paths: Iterable[Path]) -> Iterator[tuple[int, str, str, TokenPath]]:
    """Each token path with the step of rl that it was sampled in (0 elsewhere), what names it, and its scenario.
    RecordError for a line that holds no trajectory."""
    for path in paths:
        for number, line in read_json_lines(path):
            step, document = 0, line
            if isinstance(line, dict) and "trajectory" in line:
                step, document = line.get("step", 0), line["trajectory"]
            try:
                trajectory = msgspec.convert(document, Trajectory)
            except msgspec.ValidationError as error:
                raise RecordError(f"{path}:{number}: not a trajectory: {error}") from error
            for place, found in enumerate(trajectory.paths):
                # Rollouts of a group (train/rl/environment) have numbers of their own behind the scenario's id.
                scenario = trajectory.id.partition("#")[0]
                yield step, f"{path}:{number}: {trajectory.id}#{place}", scenario, found


def _labelled(mask: Iterable[int]) -> int:
    """The length up to the last sampled token."""
    return max((place + 1 for place, sampled in enumerate(mask) if sampled), default=0)
