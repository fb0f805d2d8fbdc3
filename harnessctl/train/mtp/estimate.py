"""Estimate: how long the training of a head takes on this machine."""

from __future__ import annotations

import time

import torch

from harnessctl.train.mtp.config import MtpConfig
from harnessctl.train.mtp.frozen import Frozen
from harnessctl.train.mtp.sequences import Sequences
from harnessctl.train.mtp.source import fresh_head


def seconds(policy: Frozen, config: MtpConfig, sequences: Sequences, tokens: int) -> float:
    """Seconds in all: what one sequence takes the policy to read, and its row the head forward and backward."""
    longest = max(sequences.items, key=lambda item: len(item.ids))
    ids = torch.tensor([longest.ids], device=policy.model.device)
    head = fresh_head(policy.model, init="random", seed=0)
    with policy.autocast():
        began = time.perf_counter()
        with torch.no_grad():
            hidden = policy.model.get_decoder()(input_ids=ids, use_cache=False).last_hidden_state
        float(hidden.sum())
        read = time.perf_counter() - began
        began = time.perf_counter()
        positions = torch.arange(ids.shape[1], device=ids.device)[None]
        outputs = head(hidden, ids, torch.ones_like(ids), positions, config.depths)
        said = sum(longest.mask)
        loss = sum(head.logits(output[:, -said:]).logsumexp(-1).sum() for output in outputs)
    assert isinstance(loss, torch.Tensor)
    loss.backward()
    float(loss.detach())
    step = time.perf_counter() - began
    return (sequences.tokens * read + config.loop.steps * tokens * step) / ids.shape[1]
