"""The stage opd: preflight, training, checkpoint [3.4, stage 2]."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

from accelerate import Accelerator

from harnessctl.decode.prompt import PromptEncoder
from harnessctl.storage import digest_bytes, read_bytes
from harnessctl.train.budget import Budget
from harnessctl.train.config import TrainConfig
from harnessctl.train.job import Job
from harnessctl.train.loop import Loop
from harnessctl.train.opd.base import Found, find_base, open_base
from harnessctl.train.opd.config import OpdConfig
from harnessctl.train.opd.objective import OpdObjective
from harnessctl.train.opd.prompts import Prompts, Question, general_question, read_questions
from harnessctl.train.opd.student import Student
from harnessctl.train.rl.backends import Backend, LocalBackend, SglangBackend
from harnessctl.train.sft.packable import packs
from harnessctl.train.sft.speech import check_speech
from harnessctl.train.sft.token_loss import TokenLoss

#: What an answer is taken to come to, as a share of the longest, before one has been seen.
_SHARE = 0.5


class Opd:
    """The policy's own answers to general prompts, drawn back to the base."""

    name = "opd"
    config: type[TrainConfig] = OpdConfig

    def __init__(self) -> None:
        # Budget and run are of one job, and every byte of a large base is read to prove that it is one.
        self._held: tuple[Job, Found] | None = None

    def _base(self, job: Job) -> Found:
        if self._held is None or self._held[0] is not job:
            self._held = (job, find_base(job.policy, job.config, job.talk))
        return self._held[1]

    def budget(self, job: Job) -> Budget:
        """Prompts are measured, answers are not there yet."""
        config: OpdConfig = job.config
        config.check()
        self._base(job)
        prompts, encode = prompts_of(job)
        seen = [len(encode(prompt.question)) for prompt in prompts.step(0, 32)]
        answer = _SHARE * config.student.max_tokens
        mean = sum(seen) / len(seen)
        return Budget(
            # Read twice: by the base forward only, which is a third of the way there and back.
            tokens_per_step=config.prompts_per_step * (mean + answer) * 4 / 3,
            steps=config.loop.steps,
            sampled_per_step=config.prompts_per_step * answer,
            rows=min(config.rollout.rows, config.prompts_per_step),
            note=f"prompts of {mean:.0f} tokens; answers are taken to be {_SHARE:.0%} of student.max_tokens, and the "
            "base's pass for a third of the policy's",
        )

    def run(self, job: Job) -> None:
        """Check what is to be compared, train, save."""
        config: OpdConfig = job.config
        config.check()
        policy = job.policy
        check_speech(policy)
        accelerator = job.accelerator or Accelerator(cpu=policy.device.type == "cpu")
        where = self._base(job)
        module = TokenLoss(policy.model, recompute=config.recompute)
        module.check()
        is_packed = packs(module, config.packing, job.talk)
        loop = Loop(module, config.loop, points=job.points(), accelerator=accelerator, seed=config.seed)
        prompts, _ = prompts_of(job)
        if prompts.passed_over:
            job.talk(f"{prompts.passed_over} prompts are longer than prompts.max_tokens, and are passed over")
        objective = OpdObjective(
            loop.model,
            policy,
            open_base(where, loop.model, policy, accelerator),
            prompts,
            Student(backend_of(job, accelerator), config.student),
            config,
            accelerator=accelerator,
            is_packed=is_packed,
        )
        loop.resume()
        loop.run(objective, job.metrics)
        path = config.prompts.path
        policy.save(job.checkpoint, job.lineage(data=None if path is None else digest_bytes(read_bytes(Path(path)))))


def prompts_of(job: Job) -> tuple[Prompts, Callable[[Question], list[int]]]:
    """The job's prompts, and what encodes a question."""
    config: OpdConfig = job.config
    asked, policy = config.prompts, job.policy
    encoder = PromptEncoder(policy.template, policy.codec)

    def encode(question: Question) -> list[int]:
        return encoder.extend((), question.messages, question.tools)

    prompts = Prompts(
        [] if asked.path is None else read_questions(Path(asked.path)),
        partial(general_question, config.seed),
        made_share=asked.general_share,
        seed=config.seed,
        fits=lambda question: len(encode(question)) <= asked.max_tokens,
    )
    return prompts, encode


def backend_of(job: Job, accelerator: Accelerator) -> Backend:
    """Who samples."""
    config: OpdConfig = job.config
    if config.rollout.backend == "local":
        return LocalBackend(job.policy, config.rollout)
    return SglangBackend(
        job.policy, config.rollout, folder=job.folder, lineage=lambda: job.lineage(), accelerator=accelerator
    )


STAGE = Opd()
