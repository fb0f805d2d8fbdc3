"""The stage sft: data, training, checkpoint [3.4, stage 1]."""

from __future__ import annotations

from accelerate import Accelerator

from harnessctl.train.budget import Budget
from harnessctl.train.config import TrainConfig
from harnessctl.train.job import Job
from harnessctl.train.loop import Loop
from harnessctl.train.sft.config import SftConfig
from harnessctl.train.sft.data import check_source, data_of
from harnessctl.train.sft.objective import SftObjective
from harnessctl.train.sft.packable import packs
from harnessctl.train.sft.speech import check_speech
from harnessctl.train.sft.token_loss import TokenLoss


class Sft:
    """A teacher's accepted trajectories, learnt by cross-entropy."""

    name = "sft"
    config: type[TrainConfig] = SftConfig

    def budget(self, job: Job) -> Budget:
        """Micro-batches are filled almost to the brim where they are packed."""
        config: SftConfig = job.config
        check_source(job)
        return Budget(
            tokens_per_step=config.micro_tokens * config.micro_batches,
            steps=config.loop.steps,
            note=f"{config.micro_batches} micro-batches of at most {config.micro_tokens} tokens a step; before that "
            f"a teacher ({config.teacher.policy}) is asked",
        )

    def run(self, job: Job) -> None:
        """Gather the data or take what was made, train, save."""
        config: SftConfig = job.config
        policy = job.policy
        check_speech(policy)
        accelerator = job.accelerator or Accelerator(cpu=policy.device.type == "cpu")
        with accelerator.main_process_first():
            data = data_of(job, is_first=accelerator.is_main_process)
        module = TokenLoss(policy.model, recompute=config.recompute)
        module.check()
        is_packed = packs(module, config.packing, job.talk)
        loop = Loop(module, config.loop, points=job.points(), accelerator=accelerator, seed=config.seed)
        objective = SftObjective(
            loop.model,
            policy,
            [one.tokens for one in data.learnt],
            [one.tokens for one in data.held_out],
            config,
            accelerator=accelerator,
            is_packed=is_packed,
            harnesses=[one.bundle for one in data.learnt],
        )
        job.talk(
            f"{len(data.learnt)} samples to learn, {len(data.held_out)} held out; {objective.per_epoch} micro-batches an "
            f"epoch, {'packed' if is_packed else 'padded'}"
        )
        if loop.resume() < config.loop.steps:
            loop.run(objective, job.metrics)
            job.metrics.log(config.loop.steps, objective.held_out_loss())
        card = data.card
        lineage = job.lineage(
            data=card.digest, bundles=sorted(data.bundles), world=card.origin.world, envelope=card.envelope
        )
        policy.save(job.checkpoint, lineage)


STAGE = Sft()
