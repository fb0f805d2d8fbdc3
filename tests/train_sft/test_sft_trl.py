"""The objective against TRL's SFTTrainer: the same rows give the same loss and the same gradient."""

from __future__ import annotations

import warnings
from pathlib import Path

import pytest
import torch
from accelerate import Accelerator
from sft_models import sequences
from sft_project import Project, sft_config
from transformers import LlamaForCausalLM, PreTrainedTokenizerFast

from harnessctl.train.policy import load_policy
from harnessctl.train.sft.objective import SftObjective
from harnessctl.train.sft.token_loss import TokenLoss


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_loss_and_gradient_are_those_of_trl(project: Project, tmp_path: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from datasets import Dataset
        from trl import SFTConfig, SFTTrainer

    samples = sequences(60, 31, 44, 9, 52, 27, vocabulary=600)
    config = sft_config(micro_tokens=120)
    policy = load_policy(config.model, project.model)
    module = TokenLoss(policy.model)
    assert module.why_not_packed() is None
    config.micro_batches = SftObjective(
        module, policy, samples, [], config, accelerator=Accelerator(cpu=True), is_packed=True
    ).per_epoch
    objective = SftObjective(module, policy, samples, [], config, accelerator=Accelerator(cpu=True), is_packed=True)
    data, ours = objective.data(0), 0.0
    assert len(data.micro) < len(samples)
    for micro in data.micro:
        loss, _ = objective.loss(micro)
        (loss / data.weight).backward()
        ours += loss.item() / data.weight
    norm = torch.nn.utils.clip_grad_norm_(module.parameters(), 1e9).item()

    tokenizer = PreTrainedTokenizerFast(
        tokenizer_file=str(project.model / "tokenizer.json"), pad_token="<|endoftext|>", eos_token="<|im_end|>"
    )
    rows = {
        "input_ids": [one.ids.tolist() for one in samples],
        "labels": [[-100, *torch.where(one.mask.bool(), one.ids, -100).tolist()[1:]] for one in samples],
    }
    trainer = SFTTrainer(
        model=LlamaForCausalLM.from_pretrained(project.model, dtype=torch.float32),
        args=SFTConfig(
            output_dir=str(tmp_path),
            bf16=False,
            use_cpu=True,
            activation_checkpointing=False,
            report_to=[],
            save_strategy="no",
            logging_steps=1,
            max_steps=1,
            max_grad_norm=1e9,
            per_device_train_batch_size=2,
            gradient_accumulation_steps=3,
            dataset_kwargs={"skip_prepare_dataset": True},
        ),
        train_dataset=Dataset.from_dict(rows),
        processing_class=tokenizer,
    )
    trainer.train()
    theirs = trainer.state.log_history[0]
    assert ours == pytest.approx(theirs["loss"], rel=1e-4)
    assert norm == pytest.approx(theirs["grad_norm"], rel=1e-3)
