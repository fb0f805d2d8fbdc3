"""The stall project of the evaluation's tests as a training's, with a tiny policy on disk."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
from sft_models import tiny_llama, tiny_tokenizer

from harnessctl.bundle.files import Bundle
from harnessctl.compile.revision import compiled
from harnessctl.train.config import LoopConfig, PolicyConfig
from harnessctl.train.job import Job
from harnessctl.train.metrics import Metrics
from harnessctl.train.sft.config import DataConfig, SftConfig
from tests.evaluate.evaluate_stall import STALL


@dataclass
class Project:
    """A project's root with its bundle, and a model folder."""

    root: Path
    bundle: Bundle
    model: Path
    said: list[str] = field(default_factory=list)

    @classmethod
    def make(cls, root: Path) -> Project:
        for name, text in STALL.items():
            path = root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        return cls(root, compiled(root, None), make_model(root / "model"))

    def job(self, folder: Path, config: Any, **changes: Any) -> Job:
        given: dict[str, Any] = {
            "root": self.root,
            "folder": folder,
            "config": config,
            "bundle": self.bundle,
            "judges": {},
            "start": self.model,
            "metrics": Metrics(folder, board=False),
            "talk": self.said.append,
            "stage": "sft",
            "recipe": msgspec.to_builtins(config),
        }
        return Job(**(given | changes))


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
