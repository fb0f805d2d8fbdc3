"""Forest attention: one row of tokens that is several trees, each a shared beginning and its continuations.

A continuation's tokens see the shared beginning and what stands before them in their own continuation, never a sibling; no token
sees another tree. A tree without continuations is a sequence by itself. It is computed block by block, so that what is
not seen costs nothing: a dense mask over the row would compute the pairs of siblings, of trees, and the upper triangles
(2.7 times more attention at 2,000 + 8 x 200 tokens).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch
from torch.nn.functional import scaled_dot_product_attention
from transformers import AttentionInterface, PreTrainedModel
from transformers.integrations.sdpa_attention import repeat_kv, sdpa_attention_forward
from transformers.masking_utils import AttentionMaskInterface, sdpa_mask

#: The name in transformers' registry; without a forest it is its `sdpa`.
NAME = "harnessctl_forest"


@dataclass(frozen=True)
class Tree:
    """A row of `prefix` tokens and then one stretch for each of `branches` (lengths above 0)."""

    prefix: int
    branches: tuple[int, ...]
    device: torch.device

    @property
    def size(self) -> int:
        """Tokens of the row."""
        return self.prefix + sum(self.branches)

    @cached_property
    def mask(self) -> torch.Tensor:
        """What the longest branch sees of the beginning and itself, (B, prefix + B); the mask of a shorter one is its
        upper left part."""
        longest = max(self.branches)
        own = torch.ones(longest, longest, dtype=torch.bool, device=self.device).tril()
        return torch.cat([own.new_ones(longest, self.prefix), own], dim=1)

    def dense(self) -> torch.Tensor:
        """The whole mask (size, size): true where a token (row) sees another (column); for tests and reading."""
        seen = torch.zeros(self.size, self.size, dtype=torch.bool, device=self.device)
        seen[: self.prefix, : self.prefix] = torch.ones_like(seen[: self.prefix, : self.prefix]).tril()
        start = self.prefix
        for length in self.branches:
            end = start + length
            seen[start:end, : self.prefix] = True
            seen[start:end, start:end] = torch.ones(length, length, dtype=torch.bool, device=self.device).tril()
            start = end
        return seen


Forest = tuple[Tree, ...]


def forest_attention(
    module: torch.nn.Module,
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
    groups = query.shape[1] // key.shape[1]
    key, value = repeat_kv(key, groups), repeat_kv(value, groups)
    parts: list[torch.Tensor] = []
    end = 0
    for tree in forest:
        start, end = end, end + tree.size
        q, k, v = (states[:, :, start:end] for states in (query, key, value))
        parts += _tree(q, k, v, tree, dropout, scaling)
    return torch.cat(parts, dim=2).transpose(1, 2).contiguous(), None


def _tree(
    query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, tree: Tree, dropout: float, scaling: float | None
) -> list[torch.Tensor]:
    """The states of one tree, (1, heads, tokens, width) for its beginning and for each continuation."""
    end = tree.prefix
    shared_key, shared_value = key[:, :, :end], value[:, :, :end]
    parts: list[torch.Tensor] = []
    if end:
        parts.append(
            scaled_dot_product_attention(
                query[:, :, :end], shared_key, shared_value, dropout_p=dropout, is_causal=True, scale=scaling
            )
        )
    for length in tree.branches:
        start, end = end, end + length
        parts.append(
            scaled_dot_product_attention(
                query[:, :, start:end],
                torch.cat([shared_key, key[:, :, start:end]], dim=2),
                torch.cat([shared_value, value[:, :, start:end]], dim=2),
                attn_mask=tree.mask[:length, : tree.prefix + length],
                dropout_p=dropout,
                scale=scaling,
            )
        )
    return parts


def ready_mask(size: int, device: torch.device) -> torch.Tensor:
    """What is given as the attention mask beside a forest: of four dimensions, so that transformers takes it for one that is
    ready and makes none; of one key too many, so that an attention that knows no forest fails."""
    return torch.ones(1, 1, 1, size + 1, dtype=torch.bool, device=device)


def cannot_share(model: PreTrainedModel) -> str | None:
    """Why a model cannot read forests, or None; by its config."""
    config = model.config.get_text_config()
    kinds = set(getattr(config, "layer_types", None) or ["full_attention"])
    if kinds != {"full_attention"}:
        others = ", ".join(sorted(kinds - {"full_attention"}))
        return f"its layers of {others} read tokens in order, not by a mask"
    if getattr(config, "sliding_window", None):
        return "it has a sliding window"
    return None if model._can_set_attn_implementation() else "its attention is of its own kind"


def use_forests(model: Any) -> str | None:
    """Let a model's attention (adapters or not) know forests; without one it computes what transformers' `sdpa` does.
    Returns why it cannot, or None: whether its layers hand the forest on is to be tried out."""
    inner: PreTrainedModel = model.get_base_model() if hasattr(model, "get_base_model") else model
    why = cannot_share(inner)
    if why is None:
        AttentionInterface.register(NAME, forest_attention)
        AttentionMaskInterface.register(NAME, sdpa_mask)
        inner.set_attn_implementation(NAME)
    return why
