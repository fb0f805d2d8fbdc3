"""Encoding: a general item as the ids that a policy reads and says.

What always holds: the ids of an answer, its end included, are those that the policy itself would have to say after the
prompt's; nothing that stands before is rendered again.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch

from harnessctl.data.general import GeneralItem
from harnessctl.decode.prompt import PromptEncoder
from harnessctl.train.sft.rows import Tokens


@dataclass(slots=True, frozen=True)
class Dialogue:
    """`tokens` are of the whole dialogue, its answers to be learnt; `turns` is how many tokens each answer has."""

    task: str
    tokens: Tokens
    turns: list[int]


def encoded(item: GeneralItem, encoder: PromptEncoder) -> Dialogue:
    """The dialogue of `item`."""
    ids: list[int] = []
    mask: list[int] = []
    turns: list[int] = []
    done = 0
    for index in item.turns:
        ids = encoder.extend(ids, item.messages[done:index], item.tools)
        mask += [0] * (len(ids) - len(mask))
        answer = item.messages[index]
        said = encoder.reply(answer["content"], tool_calls=answer.get("tool_calls") or ())
        ids += said
        mask += [1] * len(said)
        turns.append(len(said))
        done = index + 1
    tokens = Tokens(torch.tensor(ids, dtype=torch.int32), torch.tensor(mask, dtype=torch.int32))
    return Dialogue(item.task, tokens, turns)
