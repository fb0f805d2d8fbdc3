"""Naming: from the names of parameters in memory to those of the files that they were read from.

transformers renames on loading (a text model inside a larger one) and fuses what files hold apart (experts); this goes
the way back, and checks against the files' own headers that each name is really there.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from torch import Tensor
from transformers import PreTrainedModel
from transformers.core_model_loading import revert_weight_conversion

from harnessctl.checkpoint.layout import HEAD, read_layout
from harnessctl.errors import CheckpointError


class SourceNames:
    """The tensors that the files of `source` hold, by name."""

    def __init__(self, model: PreTrainedModel, source: Path) -> None:
        self._model = model
        self._source = source
        self._held = {name: stored for name, stored in read_layout(source).tensors.items() if not name.startswith(HEAD)}
        self._tied = _tied_names(model)

    def restore(self, moved: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """`moved` (by the names in memory) by the names in the files. CheckpointError for one that no file holds."""
        found = {alias: tensor for name, tensor in moved.items() for alias in self._tied.get(name, (name,))}
        restored = revert_weight_conversion(self._model, found)
        if not restored.keys() <= self._held.keys():
            # Files that hold already fused what transformers would fuse: it would take that apart on the way back.
            kept = {stored: name for name in found if (stored := self._as_it_is(name, found[name])) is not None}
            others = {name: found[name] for name in found.keys() - set(kept.values())}
            restored = revert_weight_conversion(self._model, others) if others else {}
            restored |= {stored: found[name] for stored, name in kept.items()}
        tied = {alias for names in self._tied.values() for alias in names}
        lost = sorted(restored.keys() - self._held.keys() - tied)
        known = {name: tensor for name, tensor in restored.items() if name in self._held}
        if lost or not known:
            raise CheckpointError(
                f"{self._source} holds no tensor {lost[0] if lost else 'that was trained'}; a checkpoint keeps the names of the one that it began from"
            )
        return known

    def _as_it_is(self, name: str, tensor: Tensor) -> str | None:
        """The stored name of a tensor that is stored just as it is in memory, but for what stands before its name."""
        if self._held.keys() >= revert_weight_conversion(self._model, {name: tensor}).keys():
            return None
        end = "." + name.removeprefix("model.")
        found = [
            stored
            for stored, held in self._held.items()
            if ("." + stored).endswith(end) and list(held.shape) == list(tensor.shape)
        ]
        return found[0] if len(found) == 1 else None


def _tied_names(model: PreTrainedModel) -> dict[str, tuple[str, ...]]:
    """For each parameter that has several names, all of them."""
    by_identity: dict[int, list[str]] = {}
    for name, parameter in model.named_parameters(remove_duplicate=False):
        by_identity.setdefault(id(parameter), []).append(name.replace(".base_layer.", "."))
    return {name: tuple(names) for names in by_identity.values() if len(names) > 1 for name in names}
