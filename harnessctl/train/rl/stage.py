"""The stage rl: simulator, rollouts, training, checkpoint [3.4, stage 3]."""

from __future__ import annotations

import copy
from pathlib import Path

from accelerate import Accelerator
from transformers import PreTrainedModel

from harnessctl.decode.prompt import PromptEncoder
from harnessctl.errors import UsageError
from harnessctl.evaluate.setting import DEFAULT_ENVELOPE, Setting
from harnessctl.runtime.render import render_request
from harnessctl.train.budget import Budget
from harnessctl.train.config import TrainConfig
from harnessctl.train.job import Job
from harnessctl.train.loop import Loop
from harnessctl.train.rl.backends import Backend, LocalBackend, SglangBackend
from harnessctl.train.rl.config import RlConfig
from harnessctl.train.rl.environment import Simulator
from harnessctl.train.rl.log import RolloutLog
from harnessctl.train.rl.objective import RlObjective
from harnessctl.train.rl.prefix import Reader
from harnessctl.train.rl.reward import RuleReward

#: Scenarios whose prompts are measured for the budget.
_MEASURED = 16
#: What a rollout says before one has been seen: this share of the longest answer, so many times.
_SHARE, _CALLS = 0.5, 3
#: The longest answer where no recipe says so: as decode/ has it.
_ANSWER = 512


class Rl:
    """Groups of rollouts in the simulator, on the harness and its variants."""

    name = "rl"
    config: type[TrainConfig] = RlConfig
    needs_harness = True

    def budget(self, job: Job) -> Budget:
        """Prompts are measured, rollouts are not there yet."""
        config: RlConfig = job.config
        config.check()
        encoder = PromptEncoder(job.policy.template, job.policy.codec)
        lengths: list[int] = []
        with Setting(job.root, job.needs_bundle(), config.evaluation()) as setting:
            if config.variant_share:
                setting.check_envelope()
            for number in range(_MEASURED):
                request = setting.scenario(number).request
                messages, tools = render_request(setting.bundle, request, world=setting.world)
                lengths.append(len(encoder.extend((), messages, tools)))
        prompt = sum(lengths) / len(lengths)
        said = _SHARE * _CALLS * (config.sampling.max_tokens or _ANSWER)
        rollouts = config.groups * config.rollouts
        return Budget(
            # What tools and hooks answer is taken for as much again as half of what was said.
            tokens_per_step=config.groups * prompt + 1.5 * said * rollouts,
            steps=config.loop.steps,
            sampled_per_step=said * rollouts / config.updates,
            rows=config.rollout.rows,
            note=f"prompts of {prompt:.0f} tokens, computed once a group; a rollout is taken to say {said:.0f} "
            f"({_CALLS} answers of {_SHARE:.0%} of sampling.max_tokens)",
        )

    def run(self, job: Job) -> None:
        """Check what is to be trained on, train, save."""
        config: RlConfig = job.config
        config.check()
        policy = job.policy
        accelerator = job.accelerator or Accelerator(cpu=policy.device.type == "cpu")
        with Setting(job.root, job.needs_bundle(), config.evaluation()) as setting:
            reader = Reader.open(policy.inner, job.talk, share=config.prefix == "shared")
            reference = reference_of(job, config)
            loop = Loop(policy.model, config.loop, points=job.points(), accelerator=accelerator, seed=config.seed)
            backend = backend_of(job, config, accelerator)
            simulator = Simulator(
                setting,
                judges=job.judge,
                backend=backend,
                reward=RuleReward(),
                items=config.items,
                variant_share=config.variant_share,
                talk=job.talk,
            )
            log = RolloutLog(
                job.folder, every=config.keep_rollouts, updates=config.updates, rank=accelerator.process_index
            )
            objective = RlObjective(
                policy, config, simulator, reader, accelerator=accelerator, reference=reference, record=log.write
            )
            log.rewind(loop.resume())
            loop.run(objective, job.metrics, goes_on_at=lambda step: step % config.updates == 0)
            world, bundles = setting.world.digest, bundles_of(simulator, config)
        envelope = (config.envelope or DEFAULT_ENVELOPE) if config.variant_share else None
        policy.save(job.checkpoint, job.lineage(bundles=bundles, world=world, envelope=envelope), head="stale")


def bundles_of(simulator: Simulator, config: RlConfig) -> list[str]:
    """The digests of all harness states that the training saw, sorted: they follow from the numbers of its groups."""
    batches = -(-config.loop.steps // config.updates)
    return sorted({simulator.item(number).bundle.digest for number in range(batches * config.groups)})


def reference_of(job: Job, config: RlConfig) -> PreTrainedModel | None:
    """The policy as it is at its start, where a KL term wants it and there is no adapter to switch off. UsageError where weights
    are sharded, of which no second copy is kept."""
    if not config.kl or job.policy.has_adapter:
        return None
    if config.sharding != "none":
        raise UsageError(
            f"kl={config.kl:g} needs the weights of the start beside those that are trained, and these are sharded",
            hint="train adapters (model.lora), or kl=0",
        )
    reference: PreTrainedModel = copy.deepcopy(job.policy.model).requires_grad_(False)
    return reference


def backend_of(job: Job, config: RlConfig, accelerator: Accelerator) -> Backend:
    """Who samples. UsageError where this process cannot, since it has but a part of the weights."""
    if config.rollout.backend == "sglang":
        return SglangBackend(
            job.policy,
            config.rollout,
            folder=Path(job.folder) / "served",
            lineage=job.lineage,
            accelerator=accelerator,
        )
    if config.sharding != "none":
        raise UsageError(
            "rollout.backend=local samples with the weights of this process, and those are sharded",
            hint="rollout.backend=sglang with rollout.urls",
        )
    return LocalBackend(job.policy, config.rollout)


STAGE = Rl()
