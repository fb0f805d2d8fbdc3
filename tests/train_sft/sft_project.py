"""The stall project of the evaluation's tests as a training's, with a tiny policy on disk."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from sft_models import tiny_llama, tiny_tokenizer

from harnessctl.compile.revision import compiled
from harnessctl.train.config import LoopConfig, PolicyConfig
from harnessctl.train.sft.config import DataConfig, SftConfig
from tests.evaluate.evaluate_stall import STALL, write_stall
from tests.train_core.project import TrainProject


class Project(TrainProject):
    """A project for jobs of sft."""

    stage = "sft"

    @classmethod
    def make(cls, root: Path) -> Project:
        write_stall(root)
        return cls(root, compiled(root, None), make_model(root / "model"))


def make_model(folder: Path) -> Path:
    tokenizer = tiny_tokenizer(list(STALL.values()))
    tiny_llama(vocabulary=tokenizer.get_vocab_size()).save_pretrained(folder)
    tokenizer.save(str(folder / "tokenizer.json"))
    return folder


def sft_config(**keys: Any) -> SftConfig:
    data = {"n": 5, "max_tokens": 6000, "min_yield": 0.1} | keys.pop("data", {})
    loop = {"steps": 4, "lr": 1e-3, "save_every": 2} | keys.pop("loop", {})
    given: dict[str, Any] = {
        "model": PolicyConfig(name="tiny", dtype="float32", device="cpu"),
        "loop": LoopConfig(**loop),
        "data": DataConfig(**data),
        "micro_tokens": 750,
        "micro_batches": 1,
        "eval_every": 2,
    }
    return SftConfig(**(given | keys))
