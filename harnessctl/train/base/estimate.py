"""Estimate: how long a training of a model takes that has yet to be made."""

from __future__ import annotations

from dataclasses import replace

import torch
from transformers import LlamaConfig, LlamaForCausalLM

from harnessctl.train.base.config import MakeConfig
from harnessctl.train.base.making import llama_config
from harnessctl.train.budget import Budget, probe
from harnessctl.train.job import Job
from harnessctl.train.policy import Policy

#: Tokens that the trial model knows: it works out the logits of all positions, training those of a quarter or so.
_TRIED = 2048


def estimated(job: Job, shape: MakeConfig, budget: Budget) -> Budget:
    """`budget` with the time that a model of `shape` takes, told by one that has random weights and a quarter of
    nano's vocabulary (that of the model is known once it is made)."""
    policy = job.policy
    with torch.random.fork_rng():
        trial = LlamaForCausalLM(LlamaConfig(**llama_config(shape, _TRIED, {})))
    speed = probe(Policy(trial, policy.tokenizer, name=policy.name, source=policy.source, dtype=policy.dtype), budget)
    return replace(budget, seconds=speed.seconds(budget))
