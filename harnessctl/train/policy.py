"""Policy: the model that is trained, with all that a stage needs to know of it.

What always holds: the weights are float32 and live (what is generated with `weights()` is what was just trained); the
model stays in evaluation mode, so that what is trained is exactly what samples; `tensors()` has the names that the
checkpoint it began from has, and changes nothing of the live model.
"""

from __future__ import annotations

import warnings
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import torch
from tokenizers import Tokenizer
from torch import Tensor
from transformers import PreTrainedModel

from harnessctl.decode.catalog import locate
from harnessctl.decode.template import ChatTemplate
from harnessctl.decode.tokens import TokenCodec
from harnessctl.decode.weights import Weights, from_parts, read_model
from harnessctl.errors import TrainingError
from harnessctl.train.config import LoraConfig, PolicyConfig
from harnessctl.train.naming import SourceNames
from harnessctl.train.numbers import compute_dtype, pick_device

if TYPE_CHECKING:
    from harnessctl.records.lineage import Lineage

_ADAPTER = "default"


class Policy:
    """A causal language model under training. `source` is the folder that it was read from, `lineage` what is known of
    that (null for a model that harnessctl did not make)."""

    def __init__(
        self,
        model: Any,
        tokenizer: Tokenizer,
        *,
        name: str,
        source: Path,
        lineage: Lineage | None = None,
        template: ChatTemplate | None = None,
        dtype: torch.dtype = torch.float32,
    ) -> None:
        self.model = model
        self.tokenizer = tokenizer
        self.name = name
        self.source = source
        self.lineage = lineage
        self.template = template or ChatTemplate()
        self.codec = TokenCodec(tokenizer, end=self.template.end)
        self.dtype = dtype

    @property
    def device(self) -> torch.device:
        """Where the model computes."""
        device: torch.device = next(self.model.parameters()).device
        return device

    @property
    def has_adapter(self) -> bool:
        """Whether low-rank adapters are trained in the place of the weights."""
        return hasattr(self.model, "peft_config")

    @property
    def inner(self) -> PreTrainedModel:
        """The model itself; adapters, where there are any, sit in its layers."""
        model: PreTrainedModel = self.model.get_base_model() if self.has_adapter else self.model
        return model

    def autocast(self) -> Any:
        """Matrix products in `dtype` while it is entered."""
        return torch.autocast(self.device.type, dtype=self.dtype, enabled=self.dtype is not torch.float32)

    @contextmanager
    def adapter_off(self) -> Generator[None]:
        """The model as it was before training, while it is entered. TrainingError without adapters."""
        if not self.has_adapter:
            raise TrainingError(
                "the weights themselves are trained, and there is no adapter to switch off",
                hint="give model.lora, or load a second copy of the base",
            )
        with self.model.disable_adapter():
            yield

    def weights(self) -> Weights:
        """The live parameters, ready to decode with."""
        return from_parts(self.inner, self.tokenizer)

    def tensors(self) -> dict[str, Tensor]:
        """What training moves, under the names of `source` and in float32 on the CPU: adapters are merged in. With
        sharded weights every process must call it. CheckpointError when `source` has no tensor of such a name."""
        names = SourceNames(self.inner, self.source)
        moved = dict(self._merged() if self.has_adapter else self._moving())
        return names.restore(moved)

    def save(self, target: Path, lineage: Lineage, head: Literal["carry", "stale"] = "carry") -> None:
        """Write a checkpoint: what training moved, and all else of `source` as it is there. Every process must call it;
        the first one writes."""
        from harnessctl.checkpoint.policy import save_checkpoint

        changed = self.tensors()
        if _rank() == 0:
            save_checkpoint(target, source=self.source, changed=changed, lineage=lineage, head=head)
        if torch.distributed.is_initialized():
            torch.distributed.barrier()

    def _moving(self) -> Iterator[tuple[str, Tensor]]:
        for name, parameter in self.model.named_parameters():
            if parameter.requires_grad:
                yield name, _whole(parameter)

    def _merged(self) -> Iterator[tuple[str, Tensor]]:
        """The weights of the layers that have an adapter, with it added: W + scale * B A [LoRA, eq. 3]."""
        for name, layer in self.inner.named_modules():
            if _ADAPTER in getattr(layer, "lora_A", {}) or _ADAPTER in getattr(layer, "lora_embedding_A", {}):
                held: Any = layer
                with torch.no_grad():
                    yield (
                        f"{name}.weight",
                        _whole(held.get_base_layer().weight) + _whole(held.get_delta_weight(_ADAPTER)),
                    )


def load_policy(config: PolicyConfig, start: Path | str, *, device: Literal["cpu", "cuda"] | None = None) -> Policy:
    """The model in `start` (a folder, or a name of the catalog), ready to train; on `device` rather than the config's
    where that is given.

    UsageError when there is none, TrainingError when the device is not there, CheckpointError when it cannot be read.
    """
    from harnessctl.checkpoint.policy import read_lineage

    computing = pick_device(config.device)
    folder = locate(str(start)).path
    if config.threads is not None:
        torch.set_num_threads(config.threads)
    model, tokenizer = read_model(folder, torch.float32)
    model = model.to(computing if device is None else torch.device(device)).eval()
    return Policy(
        model if config.lora is None else with_adapters(model, config.lora),
        tokenizer,
        name=config.name,
        source=folder,
        lineage=read_lineage(folder),
        dtype=compute_dtype(config.dtype, computing),
    )


def with_adapters(model: PreTrainedModel, config: LoraConfig) -> Any:
    """`model` with new low-rank adapters, of which alone the parameters move. They begin as nothing (B is zero), and A is
    drawn from a seed of its own, so that every process has the same. TrainingError for targets that are not there."""
    from peft import LoraConfig as PeftLora
    from peft import TaskType, get_peft_model

    alpha: Any = config.alpha  # PEFT says int, and takes any number
    wanted = PeftLora(
        r=config.rank,
        lora_alpha=alpha,
        target_modules=config.targets or "all-linear",
        task_type=TaskType.CAUSAL_LM,
        lora_dropout=0.0,
        bias="none",
    )
    with torch.random.fork_rng(), warnings.catch_warnings():
        # PEFT warns of tied embeddings among the targets; they are refused below.
        warnings.filterwarnings("ignore", message="Model (with|has) `tie_word_embeddings=True`")
        # It also asks a question by a name that transformers is about to drop.
        warnings.filterwarnings("ignore", message="`is_gradient_checkpointing` is deprecated", category=FutureWarning)
        torch.manual_seed(config.rank)
        try:
            adapted = get_peft_model(model, wanted).eval()
        except ValueError as error:
            raise TrainingError(
                f"model.lora: {error}", hint="targets are ends of module names, such as q_proj"
            ) from error
    if found := _adapted_ties(model):
        raise TrainingError(
            f"model.lora.targets: {found[0]} shares its weight with another layer, which an adapter on it would move with "
            "it as soon as it is merged",
            hint="leave the embeddings and the output layer out of the targets",
        )
    return adapted


def _adapted_ties(model: PreTrainedModel) -> list[str]:
    """The layers with an adapter whose weight another layer has, too."""
    names: dict[int, set[str]] = {}
    for name, parameter in model.named_parameters(remove_duplicate=False):
        names.setdefault(id(parameter), set()).add(name)
    shared = (name for group in names.values() if len(group) > 1 for name in group)
    return sorted(name.partition(".base_layer.")[0] for name in shared if ".base_layer." in name)


def _whole(tensor: Tensor) -> Tensor:
    """All of a tensor, of which processes may hold a part each, on the CPU; never the live one."""
    gather = getattr(tensor, "full_tensor", None)
    return (tensor.detach().clone() if gather is None else gather().detach()).to("cpu", torch.float32)


def _rank() -> int:
    return torch.distributed.get_rank() if torch.distributed.is_initialized() else 0
