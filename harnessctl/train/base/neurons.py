"""Neurons: which of a layer's feed-forward neurons matter most to the general tasks, so that a cut can leave the others out.

A neuron's weight is the mean size of what it says (its activation, before the down projection) times the norm of what is
made of it (its column of the down projection): how much, on average, it can move the layer's output.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from harnessctl.errors import CheckpointError
from harnessctl.train.policy import Policy
from harnessctl.train.sft.rows import Tokens


@torch.no_grad()
def important_neurons(
    policy: Policy, sequences: Sequence[Tokens], *, layers: Sequence[int], count: int
) -> dict[int, torch.Tensor]:
    """The `count` weightiest neurons of each layer on `sequences`, rising. CheckpointError for a model whose layers have
    no `mlp.down_proj`, or fewer neurons."""
    found = {layer: _down_projection(policy, layer, count) for layer in layers}
    sizes = {layer: torch.zeros(down.in_features, device=policy.device) for layer, down in found.items()}
    hooks = [down.register_forward_pre_hook(_adder(sizes[layer])) for layer, down in found.items()]
    try:
        for sequence in sequences:
            with policy.autocast():
                policy.inner(input_ids=sequence.ids.long()[None].to(policy.device), use_cache=False, logits_to_keep=1)
    finally:
        for hook in hooks:
            hook.remove()
    weights = {layer: sizes[layer] * down.weight.float().norm(dim=0) for layer, down in found.items()}
    return {layer: weight.topk(count).indices.sort().values.cpu() for layer, weight in weights.items()}


def _down_projection(policy: Policy, layer: int, count: int) -> Any:
    decoder: Any = policy.inner.get_decoder()
    down = getattr(getattr(decoder.layers[layer], "mlp", None), "down_proj", None)
    if down is None or not hasattr(down, "in_features"):
        raise CheckpointError(
            f"layer {layer} has no feed-forward down projection to choose neurons by", hint="leave cut.neurons out"
        )
    if not 0 < count <= down.in_features:
        raise CheckpointError(f"layer {layer} has {down.in_features} neurons; got {count} to keep")
    return down


def _adder(total: torch.Tensor) -> Any:
    def add(_: Any, inputs: tuple[torch.Tensor]) -> None:
        total.add_(inputs[0].abs().float().flatten(0, -2).sum(0))

    return add
