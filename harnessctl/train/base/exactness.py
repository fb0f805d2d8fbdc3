"""Exactness: the share of answers of which every token is the likeliest one, after the right ones before it.

This is what greedy decoding says, found in one pass: the first token that decoding would have otherwise makes both wrong.
It lacks the grammar that a served policy's calls are held to, so it is a lower bound for calls.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import torch

from harnessctl.decode.prompt import PromptEncoder
from harnessctl.train.base.encoding import Dialogue, encoded
from harnessctl.train.base.measures import Measure
from harnessctl.train.policy import Policy
from harnessctl.train.sft.batches import micro_batches
from harnessctl.train.sft.rows import padded
from harnessctl.train.sft.token_loss import TokenLoss


class Exactness:
    """The measured dialogues, encoded once."""

    def __init__(self, measures: Mapping[str, Measure], encoder: PromptEncoder, *, seed: int, items: int) -> None:
        self._dialogues = {
            name: [encoded(item, encoder) for item in measure.items(seed, items)] for name, measure in measures.items()
        }

    def of(self, module: TokenLoss, policy: Policy, *, micro_tokens: int) -> dict[str, float]:
        """`exact/<measure>`: the share of right answers, turn by turn."""
        return {
            f"exact/{name}": share(right(dialogues, module, policy, micro_tokens=micro_tokens))
            for name, dialogues in self._dialogues.items()
        }


class _Noted:
    """In the place of a loss: keeps of each position whether its label is the likeliest token."""

    def __init__(self) -> None:
        self.hits: list[bool] = []

    def __call__(self, logits: torch.Tensor, labels: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        self.hits += (logits.argmax(-1) == labels).tolist()
        return logits.new_zeros(()), logits.new_zeros(())


def share(answers: Iterable[bool]) -> float:
    """The share that is true; 0 of none."""
    found = list(answers)
    return sum(found) / len(found) if found else 0.0


@torch.no_grad()
def right(dialogues: Sequence[Dialogue], module: TokenLoss, policy: Policy, *, micro_tokens: int) -> list[bool]:
    """Whether each answer of the dialogues is exact; the order is by dialogue length, not as given."""
    lengths = [len(dialogue.tokens) for dialogue in dialogues]
    found: list[bool] = []
    for places in micro_batches(lengths, size=micro_tokens, is_packed=False):
        rows = padded([dialogues[place].tokens for place in places]).to(policy.device)
        noted = _Noted()
        with policy.autocast():
            module(rows, noted)
        hits = noted.hits
        for count in (count for place in places for count in dialogues[place].turns):
            found.append(all(hits[:count]))
            hits = hits[count:]
    return found
