"""Base's objective: cross-entropy over the right answers of general tasks, drawn anew for each step.

    L = -1/N  sum over dialogues, over tokens y_t, of  w_t log p(y_t | y_<t)        N = all answers' tokens of the step

w is 1 on answers' tokens, `context.weight` on a random `context.share` of the others, and 0 on the rest.
Several questions stand in one dialogue, so that what is asked about is read once for all of them.
"""

from __future__ import annotations

import itertools
from typing import Any

import torch
from accelerate import Accelerator

from harnessctl.data.general import draw
from harnessctl.decode.prompt import PromptEncoder
from harnessctl.train.base.config import BaseConfig, TasksConfig
from harnessctl.train.base.context import Foretold, weighted_cross_entropy, with_context
from harnessctl.train.base.encoding import encoded
from harnessctl.train.base.exactness import Exactness
from harnessctl.train.base.relabelling import Relabelling
from harnessctl.train.objective import StepData
from harnessctl.train.policy import Policy
from harnessctl.train.sft.batches import micro_batches, share
from harnessctl.train.sft.rows import Tokens, padded
from harnessctl.train.sft.token_loss import TokenLoss

#: Items a step may have: number `step * _MOST + i` is the i-th of a step.
_MOST = 1 << 20


class BaseObjective:
    """`module` is the TokenLoss around the policy's model, as the loop has prepared it. With `exactness`, what is measured
    before a step's update stands among the metrics of that step."""

    def __init__(
        self,
        module: TokenLoss,
        policy: Policy,
        config: BaseConfig,
        *,
        accelerator: Accelerator,
        exactness: Exactness | None = None,
    ) -> None:
        self._module = module
        self._policy = policy
        self._config = config
        self._accelerator = accelerator
        self._exactness = exactness
        self._encoder = PromptEncoder(policy.template, policy.codec)
        self._relabelling = Relabelling(policy.tokenizer.get_vocab(with_added_tokens=False), share=config.tasks.relabel)

    def data(self, step: int) -> StepData:
        """Dialogues until there are enough tokens, in micro-batches of neighbours by length."""
        config = self._config
        generator = torch.Generator().manual_seed(config.seed * _MOST + step)
        dialogues = self._dialogues(step, generator)
        weight = sum(dialogue.weight for dialogue in dialogues)
        read = [with_context(dialogue, config.context, generator) for dialogue in dialogues]
        lengths = [len(dialogue) for dialogue in dialogues]
        bins = micro_batches(lengths, size=config.micro_tokens, is_packed=False)
        mine = share(bins, process=self._accelerator.process_index, processes=self._accelerator.num_processes)
        return StepData(
            micro=[[read[place] for place in micro] for micro in mine],
            weight=weight,
            metrics={
                "tokens": sum(lengths),
                "dialogues": len(dialogues),
                "entries": entries_at(step, config.tasks)[1],
                **(self.exact() if step % config.measure.every == 0 else {}),
            },
        )

    def loss(self, micro: list[Foretold]) -> tuple[torch.Tensor, dict[str, float]]:
        """The loss of one micro-batch, and the share of tokens that were the likeliest."""
        device = self._policy.device
        rows = padded(micro).to(device)
        weights = torch.cat([torch.zeros(0), *(one.weights for one in micro)]).to(device)
        with self._policy.autocast():
            found: Any = self._module(rows, weighted_cross_entropy, torch.stack([rows.labels.float(), weights], dim=1))
        total, right = found
        return total, {"token_accuracy": float(right)}

    def exact(self) -> dict[str, float]:
        """`exact/<measure>` of the weights as they are: shares of exact answers about names never trained on."""
        if self._exactness is None:
            return {}
        return self._exactness.of(self._module, self._policy, micro_tokens=self._config.micro_tokens)

    def _dialogues(self, step: int, generator: torch.Generator) -> list[Tokens]:
        config = self._config
        found: list[Tokens] = []
        left = config.tokens_per_step
        for place in itertools.count():
            item = draw(
                config.seed,
                step * _MOST + place,
                shares=config.tasks.shares or None,
                entries=entries_at(step, config.tasks),
                rounds=config.tasks.rounds,
                ease=ease_at(step, config.tasks),
            )
            tokens = self._relabelling.of(item.task, encoded(item, self._encoder).tokens, generator)
            if found and len(tokens) > left:
                return found
            found.append(tokens)
            left -= len(tokens)
        raise AssertionError("items never end")


def entries_at(step: int, tasks: TasksConfig) -> tuple[int, int]:
    """Fewest and most entries of a list at a step."""
    least, most = tasks.entries
    if not tasks.grow_over:
        return least, most
    return least, min(most, least + (most - least) * (step + 1) // tasks.grow_over)


def ease_at(step: int, tasks: TasksConfig) -> float:
    """The share of easy items at a step."""
    return tasks.ease * max(0.0, 1 - step / tasks.grow_over) if tasks.grow_over else 0.0
