"""Forest attention: one row of several trees, each a shared beginning and its continuations (train/rl/attention).

A tree without continuations is a sequence by itself. No token sees another tree: what is not seen costs nothing, where a
dense block mask over the row would cost as much as all of it, and what sequences have in common (the harness's prompt) is
read once.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import nn
from transformers import AttentionInterface
from transformers.integrations.sdpa_attention import sdpa_attention_forward
from transformers.masking_utils import AttentionMaskInterface, sdpa_mask

from harnessctl.train.rl.attention import Tree, can_share, tree_attention

#: The name in transformers' registry; without a forest it is its `sdpa`.
NAME = "harnessctl_forest"
Forest = tuple[Tree, ...]


def forest_attention(
    module: nn.Module,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attention_mask: torch.Tensor | None,
    dropout: float = 0.0,
    scaling: float | None = None,
    forest: Forest | None = None,
    **more: Any,
) -> tuple[torch.Tensor, torch.Tensor | None]:
    """An attention function of transformers: (1, heads, size, width) states to ((1, size, heads, width), None)."""
    if forest is None:
        return sdpa_attention_forward(
            module, query, key, value, attention_mask, dropout=dropout, scaling=scaling, **more
        )
    parts: list[torch.Tensor] = []
    end = 0
    for tree in forest:
        start, end = end, end + tree.size
        q, k, v = (states[:, :, start:end] for states in (query, key, value))
        parts.append(tree_attention(module, q, k, v, None, dropout=dropout, scaling=scaling, tree=tree)[0])
    return torch.cat(parts, dim=1), None


def ready_mask(size: int, device: torch.device) -> torch.Tensor:
    """What is given as the attention mask beside a forest: of four dimensions, so that transformers takes it for one that is
    ready and makes none; of one key too many, so that an attention that knows no forest fails."""
    return torch.ones(1, 1, 1, size + 1, dtype=torch.bool, device=device)


def use_forests(model: Any) -> str | None:
    """Let a model's attention know forests; without one it computes what transformers' `sdpa` does. Returns why it cannot,
    or None."""
    inner = model.get_base_model() if hasattr(model, "peft_config") else model
    why = can_share(inner)
    if why is None and not inner._can_set_attn_implementation():
        why = "its attention is of its own kind"
    if why is None:
        AttentionInterface.register(NAME, forest_attention)
        AttentionMaskInterface.register(NAME, sdpa_mask)
        inner.set_attn_implementation(NAME)
    return why
