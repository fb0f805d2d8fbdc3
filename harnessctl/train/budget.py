"""Budget: the tokens that a stage is going to spend, and the time that they take on this machine."""

from __future__ import annotations

import time
from dataclasses import dataclass

import torch

from harnessctl.train.policy import Policy


@dataclass(slots=True, frozen=True)
class Budget:
    """What a stage spends, all processes together.

    `tokens_per_step` go forward and backward; `sampled_per_step` are decoded, `rows` at a time; `before` are tokens that
    are read once before the first step. `note` says how the stage knows. `seconds` is the stage's own estimate of the
    time, where a micro-batch of the policy says nothing of it.
    """

    tokens_per_step: float
    steps: int
    note: str = ""
    sampled_per_step: float = 0.0
    rows: int = 1
    before: float = 0.0
    seconds: float | None = None

    @property
    def tokens(self) -> float:
        """All tokens that go forward and backward."""
        return self.tokens_per_step * self.steps

    @property
    def sampled(self) -> float:
        """All tokens that are decoded."""
        return self.sampled_per_step * self.steps


@dataclass(slots=True, frozen=True)
class Speed:
    """Seconds a token, measured: forward and backward; forward alone; decoded in `rows` rows at once."""

    trained_s: float
    read_s: float
    sampled_s: float = 0.0

    def seconds(self, budget: Budget, processes: int = 1) -> float:
        """How long a budget takes, with its work shared by `processes`."""
        spent = budget.tokens * self.trained_s + budget.sampled * self.sampled_s + budget.before * self.read_s
        return spent / processes


def probe(policy: Policy, budget: Budget, *, length: int = 256) -> Speed:
    """Time one micro-batch of `length` tokens forward and backward (the better of two), and, where the stage samples, one
    round of decoding. Gradients are dropped; the weights are not touched."""
    length = min(length, policy.weights().context_length)
    vocabulary = int(policy.inner.config.get_text_config().vocab_size)
    ids = torch.arange(length, device=policy.device).remainder(vocabulary)[None]
    trained = min(_timed(policy, ids, backward=True) for _ in range(2)) / length
    with torch.no_grad():
        read = _timed(policy, ids, backward=False) / length
        rows = ids[:, :1].repeat(max(1, budget.rows), 1)
        sampled = min(_timed(policy, rows, backward=False) for _ in range(2)) / rows.shape[0] if budget.sampled else 0.0
    policy.model.zero_grad(set_to_none=True)
    return Speed(trained, read, sampled)


def _timed(policy: Policy, ids: torch.Tensor, *, backward: bool) -> float:
    began = time.perf_counter()
    with policy.autocast():
        logits = policy.model(input_ids=ids, use_cache=False).logits
    loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1).float(), ids.flatten())
    if backward:
        loss.backward()
    float(loss.detach())  # waits for the device
    return time.perf_counter() - began
