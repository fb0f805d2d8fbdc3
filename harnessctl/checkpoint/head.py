"""Draft head: the tensors `mtp.*` that a checkpoint must hold, computed from its config.

What always holds: a head that passes is complete: each name is there, none beside, each of the right shape. That matters
because engines do not say: SGLang loads a head with tensors missing and runs on at an accept length of 1.

Names and shapes are those of the NextN module of Qwen3-Next, Qwen3.5 and Qwen3.6: one projection, three norms and for
each depth layer one decoder layer with full attention, whose queries are twice as wide for the output gate, with a dense
or a mixture-of-experts MLP. For any other model the head borrows that model's own decoder layer, and its names and
shapes are read off the layers that the folder holds.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harnessctl.checkpoint.experts import Form, folded, form_of
from harnessctl.checkpoint.layout import HEAD, Layout, read_config, read_layout, text_config
from harnessctl.errors import CheckpointError

Shapes = dict[str, tuple[int, ...]]

_FAMILY = re.compile(r"qwen3_next|qwen3_5(_moe)?(_text)?")
_LAYER = re.compile(r"(?:.*\.)?layers\.(\d+)\.(.+)")
_VISION = re.compile(r"(^|\.)vis(ion|ual)")
#: Scales beside a quantised tensor.
_SCALES = re.compile(r"(.+\.weight|.+_proj)_scale(_inv)?")


@dataclass(slots=True, frozen=True)
class HeadLayout:
    """The head of a folder: number of its layers, names and shapes, and how its experts are stored."""

    layers: int
    form: Form
    shapes: Shapes


def claimed_layers(config: Mapping[str, Any]) -> int:
    """How many layers of a draft head `config.json` claims; 0 where it speaks of none."""
    text = text_config(config)
    keys = ("mtp_num_hidden_layers", "num_nextn_predict_layers")
    return max(int(part.get(key) or 0) for part in (config, text) for key in keys)


def has_native_head(config: Mapping[str, Any]) -> bool:
    """Whether the model is of the family whose engines know the head: Qwen3-Next, Qwen3.5, Qwen3.6."""
    return _FAMILY.fullmatch(str(text_config(config).get("model_type"))) is not None


def head_shapes(config: Mapping[str, Any], *, form: Form = "fused", layers: int = 1) -> Shapes:
    """The complete names and shapes of the head of a Qwen3-Next, Qwen3.5 or Qwen3.6 model, nested config or not.

    CheckpointError for another model, for a config that lacks a size, and for a head with embeddings of its own.
    """
    text = text_config(config)
    if not has_native_head(config):
        raise CheckpointError(f"no draft head is defined for models of type {text.get('model_type')!r}")
    if text.get("mtp_use_dedicated_embeddings"):
        raise CheckpointError("a draft head with embeddings of its own (mtp_use_dedicated_embeddings) is not supported")
    hidden = _size(text, "hidden_size")
    shapes: Shapes = {
        "mtp.fc.weight": (hidden, 2 * hidden),
        "mtp.pre_fc_norm_embedding.weight": (hidden,),
        "mtp.pre_fc_norm_hidden.weight": (hidden,),
        "mtp.norm.weight": (hidden,),
    }
    for number in range(layers):
        layer = {
            "input_layernorm.weight": (hidden,),
            "post_attention_layernorm.weight": (hidden,),
            **_attention(text, hidden),
            **_mlp(text, hidden, form),
        }
        shapes |= {f"mtp.layers.{number}.{name}": shape for name, shape in layer.items()}
    return shapes


def _attention(text: Mapping[str, Any], hidden: int) -> Shapes:
    width = _size(text, "head_dim")
    heads, groups = _size(text, "num_attention_heads"), _size(text, "num_key_value_heads")
    gate = 2 if text.get("attn_output_gate", True) else 1
    outs = {"q_proj": heads * width * gate, "k_proj": groups * width, "v_proj": groups * width, "o_proj": hidden}
    shapes: Shapes = {f"self_attn.{name}.weight": (out, hidden) for name, out in outs.items()}
    shapes["self_attn.o_proj.weight"] = (hidden, heads * width)
    if text.get("attention_bias"):
        shapes |= {f"self_attn.{name}.bias": (out,) for name, out in outs.items()}
    return shapes | {"self_attn.q_norm.weight": (width,), "self_attn.k_norm.weight": (width,)}


def _mlp(text: Mapping[str, Any], hidden: int, form: Form) -> Shapes:
    # Dense ones are told by their type: a config may keep sizes of experts that its model has not.
    if str(text["model_type"]) in ("qwen3_5", "qwen3_5_text") or not text.get("num_experts"):
        return _gated("mlp.", _size(text, "intermediate_size"), hidden)
    experts, inner = _size(text, "num_experts"), _size(text, "moe_intermediate_size")
    shapes: Shapes = {"mlp.gate.weight": (experts, hidden), "mlp.shared_expert_gate.weight": (1, hidden)}
    shapes |= _gated("mlp.shared_expert.", _size(text, "shared_expert_intermediate_size"), hidden)
    if form == "fused":
        shapes["mlp.experts.gate_up_proj"] = (experts, 2 * inner, hidden)
        shapes["mlp.experts.down_proj"] = (experts, hidden, inner)
    else:
        for expert in range(experts):
            shapes |= _gated(f"mlp.experts.{expert}.", inner, hidden)
    return shapes


def _gated(prefix: str, inner: int, hidden: int) -> Shapes:
    return {
        f"{prefix}gate_proj.weight": (inner, hidden),
        f"{prefix}up_proj.weight": (inner, hidden),
        f"{prefix}down_proj.weight": (hidden, inner),
    }


def _size(text: Mapping[str, Any], key: str) -> int:
    value = text.get(key)
    if not isinstance(value, int) or value < 1:
        raise CheckpointError(f"config.json: `{key}` is {value!r}; the draft head's shapes need it: a whole number")
    return value


def borrowed_shapes(layout: Layout) -> Shapes:
    """The names and shapes of a head for a model of no family above: those of its last decoder layer with
    full attention, beside the projection and the norms of the head. CheckpointError when the folder has no layers named `layers.<n>.`."""
    by_layer: dict[int, Shapes] = {}
    for name, stored in layout.tensors.items():
        found = _LAYER.fullmatch(name)
        if found and not name.startswith(HEAD) and not _VISION.search(name):
            by_layer.setdefault(int(found[1]), {})[found[2]] = stored.shape
    full = [number for number, layer in by_layer.items() if any(name.startswith("self_attn.") for name in layer)]
    layer = by_layer[max(full)] if full else {}
    norm = layer.get("input_layernorm.weight")
    if norm is None:
        raise CheckpointError(f"{layout.folder}: no decoder layer was found that a draft head could be like")
    hidden = norm[0]
    names = ("pre_fc_norm_embedding", "pre_fc_norm_hidden", "norm")
    shapes: Shapes = {"mtp.fc.weight": (hidden, 2 * hidden), **{f"mtp.{name}.weight": norm for name in names}}
    return shapes | {f"mtp.layers.0.{name}": shape for name, shape in layer.items()}


def check_head(folder: Path) -> HeadLayout | None:
    """The draft head of a checkpoint; None where its config claims none and none is there.

    CheckpointError lists every tensor that is missing, beside the set, or of the wrong shape.
    """
    config = read_config(folder)
    layout = read_layout(folder)
    names = layout.head_names
    # Other families that claim one (DeepSeek, GLM) keep it among the policy's layers, under other names.
    claimed = claimed_layers(config) if has_native_head(config) else 0
    if not names and not claimed:
        return None
    form = form_of(names)
    layers = claimed or _layer_count(names)
    wanted = head_shapes(config, form=form, layers=layers) if has_native_head(config) else borrowed_shapes(layout)
    stored = {name: tensor.shape for name, tensor in layout.tensors.items() if name in names}
    if "quantization_config" in config:
        stored = {name: shape for name, shape in stored.items() if not _is_scale(name, stored)}
    if faults := compare_head(stored, wanted):
        claim = f"config.json claims {claimed} layer{'s' if claimed != 1 else ''} of a draft head" if claimed else ""
        raise CheckpointError(
            f"{folder}: {claim or 'the draft head is not whole'}{', and' if claim else ':'} {'; '.join(faults)}",
            hint="SGLang would not say: it would run at an accept length of 1. transformers drops mtp.* on save: carry "
            "them over from the model that training began from, or train a head (train mtp-adapt)",
        )
    return HeadLayout(layers, form, wanted)


def compare_head(found: Mapping[str, tuple[int, ...]], wanted: Mapping[str, tuple[int, ...]]) -> list[str]:
    """What is wrong with a set of names and shapes, in sentences that list every name; empty when nothing is."""
    faults: list[str] = []
    if missing := [name for name in wanted if name not in found]:
        faults.append(f"{len(missing)} of {len(wanted)} tensors are missing: {', '.join(folded(missing))}")
    if extra := sorted(name for name in found if name not in wanted):
        faults.append(f"{len(extra)} tensors belong to no such head: {', '.join(folded(extra))}")
    faults += [
        f"{name} has the shape {list(shape)}; by the config it is {list(wanted[name])}"
        for name, shape in found.items()
        if name in wanted and tuple(shape) != wanted[name]
    ]
    return faults


def _layer_count(names: Iterable[str]) -> int:
    numbers = [int(found[1]) for name in names if (found := _LAYER.fullmatch(name))]
    return max(numbers, default=0) + 1


def _is_scale(name: str, stored: Mapping[str, Any]) -> bool:
    found = _SCALES.fullmatch(name)
    return found is not None and found[1] in stored
