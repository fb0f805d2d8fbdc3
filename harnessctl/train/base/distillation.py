"""Distillation: a larger model says how likely each token of an answer is, over the tokens that the smaller one knows.

    L = -log p(y) + w KL(t || p)        t = softmax of the teacher's logits at the kept tokens

p is the student's distribution. The teacher's mass on tokens that the student does not have is shared out in proportion.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import torch
from tokenizers import Tokenizer
from torch.nn import functional

from harnessctl.errors import CheckpointError
from harnessctl.train.policy import Policy
from harnessctl.train.sft.rows import Rows
from harnessctl.train.sft.token_loss import PositionLoss, TokenLoss


@dataclass(frozen=True)
class Distiller:
    """`ids` (student's vocabulary,) has the teacher's id of each of the student's."""

    teacher: Policy
    module: TokenLoss
    ids: torch.Tensor
    weight: float

    @classmethod
    def of(cls, teacher: Policy, student: Policy, *, weight: float) -> Distiller:
        """CheckpointError where the teacher lacks a token of the student's."""
        teacher.model.requires_grad_(False)
        size = int(student.inner.config.get_text_config().vocab_size)
        ids = shared_ids(student.tokenizer, teacher.tokenizer, size=size)
        return cls(teacher, TokenLoss(teacher.model), torch.tensor(ids, device=teacher.device), weight)

    @torch.no_grad()
    def values(self, rows: Rows) -> torch.Tensor:
        """(n, vocabulary + 1): the teacher's log-probabilities at the positions of `rows`, and the labels behind them."""
        with self.teacher.autocast():
            states = self.module.states(replace(rows, ids=self.ids[rows.ids]))
            output: Any = self.teacher.inner.get_output_embeddings()
            bias = getattr(output, "bias", None)
            logits = functional.linear(states, output.weight[self.ids], None if bias is None else bias[self.ids])
        return torch.cat([functional.log_softmax(logits.float(), dim=-1), rows.labels[:, None].float()], dim=1)

    @property
    def loss(self) -> PositionLoss:
        """The loss of logits (n, vocabulary), given `values`."""

        def of(logits: torch.Tensor, values: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
            labels, wanted = values[:, -1].long(), values[:, :-1]
            found = functional.log_softmax(logits, dim=-1)
            divergence = functional.kl_div(found, wanted, reduction="sum", log_target=True)
            exact = functional.nll_loss(found, labels, reduction="sum")
            return exact + self.weight * divergence, (logits.detach().argmax(-1) == labels).sum()

        return of


def shared_ids(student: Tokenizer, teacher: Tokenizer, *, size: int) -> list[int]:
    """The teacher's id of each of the student's `size` ids, by their token strings. Ids that the student's tokenizer never
    gives (rows that only fill the table up) have the teacher's 0."""
    theirs = teacher.get_vocab(with_added_tokens=True)
    ids = [0] * size
    for token, number in student.get_vocab(with_added_tokens=True).items():
        if token not in theirs:
            raise CheckpointError(
                f"the teacher's tokenizer has no token {token!r}, which the student's has",
                hint="distil from the model that was cut, or from one with its tokenizer",
            )
        if number < size:
            ids[number] = theirs[token]
    return ids
