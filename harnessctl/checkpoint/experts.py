"""Experts: the two forms in which checkpoints store those of a mixture-of-experts layer."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Literal

import torch

from harnessctl.errors import CheckpointError

#: `fused`: one tensor for all experts, as Qwen3.5 and 3.6 ship; `per-expert`: three for each, as Qwen3-Next does. What
#: has no experts is the same in both.
Form = Literal["fused", "per-expert"]

_FUSED = re.compile(r"(.*\.mlp\.experts)\.(gate_up_proj|down_proj)")
_EXPERT = re.compile(r"(.*\.mlp\.experts)\.(\d+)\.(gate_proj|up_proj|down_proj)\.weight")


def form_of(names: Iterable[str]) -> Form:
    """How the experts among `names` are stored; `fused` where there are none."""
    return "per-expert" if any(_EXPERT.fullmatch(name) for name in names) else "fused"


def in_form(head: Mapping[str, torch.Tensor], form: Form) -> dict[str, torch.Tensor]:
    """`head` with its experts stored as `form` has them. CheckpointError when experts are missing between others."""
    found: dict[str, torch.Tensor] = {}
    apart: dict[tuple[str, str], dict[int, torch.Tensor]] = {}
    for name, tensor in head.items():
        if form == "per-expert" and (fused := _FUSED.fullmatch(name)) and tensor.ndim == 3 and tensor.shape[1] > 1:
            for number, expert in enumerate(tensor):
                parts = zip(("gate_proj", "up_proj"), expert.chunk(2), strict=True)
                named = parts if fused[2] == "gate_up_proj" else [("down_proj", expert)]
                found |= {f"{fused[1]}.{number}.{part}.weight": value for part, value in named}
        elif form == "fused" and (single := _EXPERT.fullmatch(name)):
            apart.setdefault((single[1], single[3]), {})[int(single[2])] = tensor
        else:
            found[name] = tensor
    for prefix in dict.fromkeys(prefix for prefix, _ in apart):
        gate, up, down = (_stacked(prefix, part, apart) for part in ("gate_proj", "up_proj", "down_proj"))
        if gate.shape != up.shape:
            raise CheckpointError(f"{prefix}: gate_proj has the shape {list(gate.shape)}, up_proj {list(up.shape)}")
        found[f"{prefix}.gate_up_proj"] = torch.cat([gate, up], dim=1)
        found[f"{prefix}.down_proj"] = down
    return found


def _stacked(prefix: str, part: str, apart: Mapping[tuple[str, str], Mapping[int, torch.Tensor]]) -> torch.Tensor:
    tensors = apart.get((prefix, part), {})
    count = max((max(experts) + 1 for key, experts in apart.items() if key[0] == prefix), default=0)
    if missing := [number for number in range(count) if number not in tensors]:
        raise CheckpointError(f"{prefix}: no {part} of the experts {missing}")
    shapes = {tuple(tensor.shape) for tensor in tensors.values()}
    if len(shapes) > 1:
        raise CheckpointError(f"{prefix}: the experts' {part} have several shapes: {sorted(shapes)}")
    return torch.stack([tensors[number] for number in range(count)])


def folded(names: Iterable[str]) -> list[str]:
    """Names, those that differ only in the number of the expert as one: `experts.{0..255}.up_proj.weight`."""
    found: dict[str, list[int]] = {}
    for name in names:
        expert = _EXPERT.fullmatch(name)
        key = f"{expert[1]}.{{}}.{expert[3]}.weight" if expert else name
        found.setdefault(key, []).append(int(expert[2]) if expert else 0)
    return [key.replace("{}", _ranges(numbers)) for key, numbers in found.items()]


def _ranges(numbers: list[int]) -> str:
    """`[0, 1, 2, 5]` as `{0..2,5}`; one number as itself."""
    runs: list[list[int]] = []
    for number in sorted(numbers):
        if runs and number == runs[-1][-1] + 1:
            runs[-1][1:] = [number]
        else:
            runs.append([number])
    text = ",".join(f"{run[0]}..{run[-1]}" if len(run) > 1 else str(run[0]) for run in runs)
    return text if len(numbers) == 1 else f"{{{text}}}"
