"""NextNHead: the draft head of Qwen3-Next, 3.5 and 3.6, beside any decoder whose layer it borrows.

One depth, at position t of a sequence y, with the policy's hidden state h_t AFTER its final norm:

    x_t = fc(cat[norm_e(embed(y_{t+1})), norm_h(h_t)])        (the embedding comes first)
    g_t = norm(layer(x)_t),    logits = lm_head(g_t)          (embed and lm_head are the policy's own)

The index that everything in this package uses: **depth k at position t predicts y_{t+2+k}, from h_t and the embeddings
of y_{t+1} .. y_{t+1+k}**. Depth 0 is the above. Depth k > 0 runs the same layer again at position t+k, on its own
output of depth k-1 in the place of h_t and on the token y_{t+1+k}: the sequence's (`teacher`) or the one that depth
k-1 found likeliest (`argmax`), which is what an engine feeds while it drafts. As there, it attends to depth 0 at all
positions up to t, and to depths 1 .. k-1 of its own draft only.

The paper [5.5] writes p^(k)(y_{t'+1+k} | y_{<=t'}): its t' is our t+1, hidden state at t'-1 and embedding at t'. Two
departures follow. Its sum begins at t'=1, where there is no hidden state yet, so that of T tokens ours has T-2-k terms
of depth k where the paper's has T-1-k. And with `teacher` a depth k > 0 is also told y_{t'+1} .. y_{t'+k}; `argmax`
conditions on y_{<=t'} alone. The two agree wherever the draft is right so far, which is where a draft is looked at.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any, Literal

import torch
from torch import nn
from transformers import PreTrainedModel

from harnessctl.errors import TrainingError

PREFIX = "mtp."
Embeddings = Literal["teacher", "argmax"]

# Logits that are held at once: 256 MiB of float32.
_LOGITS = 1 << 26


class NextNHead(nn.Module):
    """The head beside `target`. Its state dict with `PREFIX` before each name is what a checkpoint holds.

    Norms are of the target's own class: (1 + w) in the Qwen3-Next family, w in llama. Embeddings, output layer and
    rotary angles are the target's, shared: neither copied nor among the head's parameters. New weights come from
    the target's own initialisation and torch's generator.
    """

    def __init__(self, target: PreTrainedModel) -> None:
        super().__init__()
        base = _decoder(target)
        config = head_config(target)
        width, norm = config.hidden_size, type(base.norm)
        self.fc = nn.Linear(2 * width, width, bias=False)
        self.pre_fc_norm_embedding = norm(width, eps=config.rms_norm_eps)
        self.pre_fc_norm_hidden = norm(width, eps=config.rms_norm_eps)
        self.layers = nn.ModuleList([type(base.layers[-1])(config, 0)])
        self.norm = norm(width, eps=config.rms_norm_eps)
        # In a tuple, so that they are no modules of the head.
        self._shared: tuple[Any, Any, Any] = (
            target.get_input_embeddings(),
            target.get_output_embeddings(),
            base.rotary_emb,
        )
        for module in self.modules():
            target._init_weights(module)
        self.to(device=target.device, dtype=torch.float32)

    def forward(
        self,
        hidden: torch.Tensor,
        ids: torch.Tensor,
        segments: torch.Tensor,
        positions: torch.Tensor,
        depths: int,
        embeddings: Embeddings = "teacher",
        drafted: torch.Tensor | None = None,
    ) -> list[torch.Tensor]:
        """The outputs g of depths 0 .. depths-1, each (rows, tokens, width), for `logits`.

        `hidden` (rows, tokens, width) are the policy's states after its final norm, `ids` (rows, tokens) the tokens at
        the same positions, `segments` the number of the sequence that a token of a packed row belongs to, `positions`
        its place in that sequence. What stands where no y_{t+1+k} is has no meaning, and nothing else depends on it.
        `drafted` (1, tokens), of one row: where depths beyond 0 are asked for, which are computed there alone and are
        zero elsewhere; most of a prompt is never drafted.
        """
        state = hidden.to(self.fc.weight.dtype)
        at = torch.arange(ids.shape[1], device=ids.device)
        sees, own = _causal(segments), _own(segments)
        keys = _DraftKeys()
        outputs: list[torch.Tensor] = []
        for depth in range(depths):
            if depth == 1 and drafted is not None:
                # One place at least, so that no matrix product is of nothing.
                at = drafted[0].nonzero()[:, 0] if bool(drafted.any()) else at[:1]
                state, positions, sees, own = state[:, at], positions[:, at], sees[:, :, at], own[:, :, at][..., at]
            tokens = following(ids, segments, 1 + depth)[:, at]
            if depth and embeddings == "argmax":
                tokens = self.argmax(state)
            mask = torch.cat([sees, *[own] * depth], dim=-1)
            state = self._step(tokens, state, mask, positions + depth, keys)
            is_whole = len(at) == ids.shape[1]
            outputs.append(state if is_whole else torch.zeros_like(outputs[0]).index_copy(1, at, state))
        return outputs

    def logits(self, outputs: torch.Tensor) -> torch.Tensor:
        """Float32 logits (..., vocabulary) of outputs (..., width), through the policy's own output layer."""
        project = self._shared[1]
        # Autocast, where it is on, has the say over what the product is computed in.
        return project(outputs.to(project.weight.dtype)).float()

    @torch.no_grad()
    def argmax(self, outputs: torch.Tensor) -> torch.Tensor:
        """The likeliest token for each output: (..., width) to (...)."""
        flat = outputs.reshape(-1, outputs.shape[-1])
        found = [self.logits(part).argmax(-1) for part in flat.split(self.rows_at_once)]
        return torch.cat(found).view(outputs.shape[:-1])

    @property
    def rows_at_once(self) -> int:
        """Outputs whose logits may be held at once."""
        return max(1, _LOGITS // self._shared[1].weight.shape[0])

    def _step(
        self, tokens: torch.Tensor, state: torch.Tensor, mask: torch.Tensor, positions: torch.Tensor, keys: _DraftKeys
    ) -> torch.Tensor:
        embed, _, rotary = self._shared
        embedded = embed(tokens).to(state.dtype)
        x = self.fc(torch.cat([self.pre_fc_norm_embedding(embedded), self.pre_fc_norm_hidden(state)], dim=-1))
        x = self.layers[0](
            x, attention_mask=mask, position_embeddings=rotary(x, positions), position_ids=positions, cache=keys
        )
        return self.norm(x)


class _DraftKeys:
    """Keys and values of the depths so far, in the place of a layer's cache; gradients pass through."""

    def __init__(self) -> None:
        self._keys: list[torch.Tensor] = []
        self._values: list[torch.Tensor] = []

    def update(
        self, keys: torch.Tensor, values: torch.Tensor, *args: Any, **kwargs: Any
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Append one depth's (rows, heads, tokens, width); returns all, depth after depth along tokens."""
        self._keys.append(keys)
        self._values.append(values)
        return torch.cat(self._keys, dim=-2), torch.cat(self._values, dim=-2)


def following(values: torch.Tensor, segments: torch.Tensor, by: int) -> torch.Tensor:
    """At each position of (rows, tokens) the value `by` positions on in the same sequence; 0 where there is none."""
    shifted = torch.zeros_like(values)
    if by < values.shape[-1]:
        is_same = segments[..., by:] == segments[..., :-by]
        shifted[..., :-by] = values[..., by:] * is_same
    return shifted


def head_config(target: PreTrainedModel) -> Any:
    """The target's text config for a decoder of one full-attention layer."""
    config = copy.deepcopy(target.config.get_text_config(decoder=True))
    config.num_hidden_layers = 1
    if getattr(config, "layer_types", None) is not None:
        config.layer_types = ["full_attention"]
    # Models of the Qwen family that have both say here which layers are dense; the head's never is.
    if hasattr(config, "mlp_only_layers"):
        config.mlp_only_layers = []
    if hasattr(config, "decoder_sparse_step"):
        config.decoder_sparse_step = 1
    # Of the kernels only this one and the eager one take the mask of drafts.
    config._attn_implementation = "sdpa"
    return config


def last_full_layer(target: PreTrainedModel) -> nn.Module:
    """The target's last layer with full attention."""
    base = _decoder(target)
    kinds = getattr(target.config.get_text_config(decoder=True), "layer_types", None)
    kinds = kinds or ["full_attention"] * len(base.layers)
    index = next((i for i in reversed(range(len(kinds))) if kinds[i] == "full_attention"), None)
    if index is None:
        raise TrainingError("the policy has no layer with full attention to begin the head from", hint="init=random")
    return base.layers[index]


def final_norm(target: PreTrainedModel) -> nn.Module:
    """The target's norm behind its last layer."""
    return _decoder(target).norm


def _decoder(target: PreTrainedModel) -> Any:
    base = target.get_decoder()
    lacking = [name for name in ("embed_tokens", "layers", "norm", "rotary_emb") if not hasattr(base, name)]
    if lacking or target.get_output_embeddings() is None:
        raise TrainingError(
            f"a draft head cannot be built beside {type(target).__name__}: it has no {', '.join(lacking) or 'lm_head'}",
            hint="decoders laid out as llama, qwen3, qwen3_next and qwen3_5 are will do",
        )
    return base


def _causal(segments: torch.Tensor) -> torch.Tensor:
    """(rows, 1, tokens, tokens): whether a query sees a key of depth 0: of its own sequence, not after it."""
    tokens = segments.shape[-1]
    same = segments[:, :, None] == segments[:, None, :]
    return (same & torch.ones(tokens, tokens, dtype=torch.bool, device=segments.device).tril())[:, None]


def _own(segments: torch.Tensor) -> torch.Tensor:
    """(rows, 1, tokens, tokens): whether a query sees a key of a deeper depth: that of its own draft."""
    rows, tokens = segments.shape
    return torch.eye(tokens, dtype=torch.bool, device=segments.device).expand(rows, 1, tokens, tokens)


def full_names(state: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """A head's state dict under the names that a checkpoint has."""
    return {PREFIX + name: tensor for name, tensor in state.items()}
