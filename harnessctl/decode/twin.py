"""Twin: a second module over the weights of a model, to compute with in another dtype or with another attention.

What always holds: the model itself is left as it is (its mode, its config, its hooks). A twin in the model's own dtype
shares its parameters, so that what an optimizer changes in place is changed here too; one in another dtype holds
converted copies. What is not done in place (adapters added or switched off) is seen by the next twin only.
"""

from __future__ import annotations

import copy
from typing import Any

import torch
from torch import nn


def make_twin(model: Any, *, dtype: torch.dtype | None = None, attention: str | None = None) -> Any:
    """A twin of `model` in evaluation mode. `dtype` null: the parameters' own; `attention`: the name of the
    implementation that its layers attend with, null for the model's."""
    memo: dict[int, Any] = {}
    for parameter in model.parameters():
        memo[id(parameter)] = _converted(parameter, dtype)
    for buffer in model.buffers():
        memo[id(buffer)] = buffer
    twin = copy.deepcopy(model, memo).eval()
    if attention is not None:
        twin.config._attn_implementation = attention
    return twin


def _converted(parameter: nn.Parameter, dtype: torch.dtype | None) -> nn.Parameter:
    if dtype is None or parameter.dtype == dtype or not parameter.is_floating_point():
        return parameter
    return nn.Parameter(parameter.detach().to(dtype), requires_grad=False)
