"""The objective of a step against plain code: which tokens count, what they are compared with, and what was sampled."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from accelerate import Accelerator

from harnessctl.decode.prompt import PromptEncoder
from harnessctl.train.opd.base import find_base, open_base
from harnessctl.train.opd.config import StudentConfig
from harnessctl.train.opd.objective import OpdObjective
from harnessctl.train.opd.prompts import Prompts, Question
from harnessctl.train.opd.student import Student
from harnessctl.train.policy import Policy
from harnessctl.train.rl.backends import LocalBackend
from harnessctl.train.sft.token_loss import TokenLoss
from tests.train_opd.test_opd_training import base as base
from tests.train_opd.test_opd_training import job_of
from tests.train_opd.test_opd_training import tuned as tuned

QUESTIONS = [Question([{"role": "user", "content": text}]) for text in ("Say hello.", "Name a colour, and no more.")]


def opened(folder: Path, start: Path, *, is_packed: bool, temperature: float) -> tuple[OpdObjective, Policy]:
    job = job_of(folder, start, None, lora=True, temperature=temperature, student=StudentConfig(max_tokens=7))
    policy = job.policy
    for name, parameter in policy.model.named_parameters():
        if "lora_B" in name:
            parameter.data.normal_(std=0.1, generator=torch.Generator().manual_seed(0))
    module, accelerator = TokenLoss(policy.model), Accelerator(cpu=True)
    assert module.why_not_packed() is None
    objective = OpdObjective(
        module,
        policy,
        open_base(find_base(policy, job.config, job.talk), module, policy, accelerator),
        Prompts(QUESTIONS, lambda number: QUESTIONS[0], made_share=0.0, seed=5),
        Student(LocalBackend(policy, job.config.rollout), job.config.student),
        job.config,
        accelerator=accelerator,
        is_packed=is_packed,
    )
    return objective, policy


@pytest.mark.parametrize("is_packed", [False, True])
def test_the_loss_is_the_mean_divergence_over_what_was_sampled(
    tuned: Path, base: Path, tmp_path: Path, is_packed: bool
) -> None:
    objective, policy = opened(tmp_path, tuned, is_packed=is_packed, temperature=0.7)
    data = objective.data(0)
    encoder = PromptEncoder(policy.template, policy.codec)
    prompts = [encoder.extend((), question.messages) for question in QUESTIONS]
    other = job_of(tmp_path, base, None).policy.model
    wanted, count, entropy = torch.zeros(()), 0, 0.0
    sequences = [one for micro in data.micro for one in micro]
    assert len(sequences) == 4
    for one in sequences:
        ids = one.ids.tolist()
        start = next(len(prompt) for prompt in prompts if ids[: len(prompt)] == prompt)
        assert one.mask.tolist() == [0] * start + [1] * (len(ids) - start) and len(ids) > start
        ours = policy.model(torch.tensor([ids]), use_cache=False).logits[0]
        with torch.no_grad():
            theirs = other(torch.tensor([ids]), use_cache=False).logits[0]
        for place in range(start, len(ids)):
            p, q = ((logits[place - 1] / 0.7).softmax(-1) for logits in (ours, theirs))
            wanted = wanted + (p * (p / q).log()).sum()
            plain = ours[place - 1].detach().softmax(-1)
            entropy -= float((plain * plain.log()).sum())
            count += 1
    (wanted / count).backward()
    moving = {name: p for name, p in policy.model.named_parameters() if p.requires_grad}
    gradients = {name: p.grad.clone() for name, p in moving.items() if p.grad is not None}
    assert gradients and data.weight == count
    policy.model.zero_grad()
    total, seen = 0.0, 0.0
    for micro in data.micro:
        loss, shown = objective.loss(micro)
        (loss / data.weight).backward()
        total, seen = total + float(loss.detach()) / data.weight, seen + shown["entropy"]
    assert total == pytest.approx(float(wanted.detach()) / count, rel=1e-4) and total > 0.01
    assert seen == pytest.approx(entropy, rel=1e-4)
    for name, value in gradients.items():
        torch.testing.assert_close(moving[name].grad, value, atol=1e-5, rtol=1e-3)


def test_what_is_asked_again_is_answered_anew_and_the_same_in_its_place(tuned: Path, tmp_path: Path) -> None:
    objective, _ = opened(tmp_path, tuned, is_packed=False, temperature=1.0)

    def said(step: int) -> list[list[int]]:
        return sorted(one.ids.tolist() for micro in objective.data(step).micro for one in micro)

    first, second = said(0), said(1)
    assert len({tuple(ids) for ids in first + second}) == 8, "no two answers have one seed"
    assert said(0) == first
