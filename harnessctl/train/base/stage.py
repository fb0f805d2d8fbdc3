"""The stage base: a policy that can do the general tasks.

For a small policy: layers and tokens of a larger one, healed on the tasks. For a model that is served as it came: the
tasks alone, mostly through adapters. What comes out is the base of its line: what later stages are kept near to.
"""

from __future__ import annotations

from pathlib import Path

import msgspec
from accelerate import Accelerator

from harnessctl.checkpoint.lineage import read_lineage, write_lineage
from harnessctl.checkpoint.tokenizer import tokenizer_digest
from harnessctl.data.general import draw
from harnessctl.decode.prompt import PromptEncoder
from harnessctl.storage import digest
from harnessctl.train.base.config import BaseConfig, CutConfig
from harnessctl.train.base.corpus import wanted
from harnessctl.train.base.cutting import Cut, cut_model, kept_layers
from harnessctl.train.base.distillation import Distiller
from harnessctl.train.base.encoding import encoded
from harnessctl.train.base.estimate import estimated
from harnessctl.train.base.exactness import Exactness
from harnessctl.train.base.measures import measures
from harnessctl.train.base.neurons import important_neurons
from harnessctl.train.base.objective import BaseObjective
from harnessctl.train.budget import Budget
from harnessctl.train.config import TrainConfig
from harnessctl.train.job import Job
from harnessctl.train.loop import Loop
from harnessctl.train.policy import Policy, load_policy
from harnessctl.train.sft.token_loss import TokenLoss

#: Dialogues on which neurons are weighed.
_WEIGHED = 24


class Base:
    """General tasks, learnt by cross-entropy, with a larger model's help where the recipe says so."""

    name = "base"
    config: type[TrainConfig] = BaseConfig

    def budget(self, job: Job) -> Budget:
        """A step has a set number of tokens. A model that is yet to be cut is not timed whole: see `estimated`."""
        config: BaseConfig = job.config
        found = Budget(
            tokens_per_step=config.tokens_per_step,
            steps=config.loop.steps,
            note=f"general tasks, {config.micro_tokens} tokens at a time",
        )
        if config.cut is None:
            return found
        kept_layers(job.start, config.cut.layers)
        return estimated(job, found)

    def run(self, job: Job) -> None:
        """Cut where the recipe says so, train, measure, save."""
        config: BaseConfig = job.config
        accelerator = job.accelerator or Accelerator(cpu=job.policy.device.type == "cpu")
        with accelerator.main_process_first():
            policy = begun(job)
        job.talk(f"{policy.name}: {policy.inner.num_parameters() / 1e6:.1f} million parameters")
        module = TokenLoss(policy.model)
        module.check()
        loop = Loop(module, config.loop, points=job.points(), accelerator=accelerator, seed=config.seed)
        objective = BaseObjective(
            loop.model,
            policy,
            config,
            accelerator=accelerator,
            distiller=distiller_of(job, policy),
            exactness=Exactness(
                measures(config.tasks.shares or None),
                PromptEncoder(policy.template, policy.codec),
                seed=config.seed,
                items=config.measure.items,
            ),
        )
        if loop.resume() < config.loop.steps:
            loop.run(objective, job.metrics)
            job.metrics.log(config.loop.steps, objective.exact())
        save(job, policy, is_first=accelerator.is_main_process)
        accelerator.wait_for_everyone()


def begun(job: Job) -> Policy:
    """The policy to train: that of the job, or what the recipe keeps of it, in the folder `cut` of the run."""
    config: BaseConfig = job.config
    if config.cut is None:
        return job.policy
    folder = job.folder / "cut"
    if not folder.exists():
        cut_model(job.start, folder, cut_of(job, config.cut), lineage=job.lineage())
    return load_policy(config.model, folder)


def cut_of(job: Job, config: CutConfig) -> Cut:
    """What the recipe keeps: texts are gathered and neurons weighed here."""
    policy = job.policy
    vocabulary = None if config.vocabulary is None else wanted(job, config.vocabulary, policy.template)
    neurons = None
    if config.neurons is not None:
        encoder = PromptEncoder(policy.template, policy.codec)
        shown = [encoded(draw(job.config.seed, number), encoder).tokens for number in range(_WEIGHED)]
        layers = config.layers or range(int(policy.inner.config.get_text_config().num_hidden_layers))
        neurons = important_neurons(policy, shown, layers=layers, count=config.neurons)
    return Cut(layers=config.layers, vocabulary=vocabulary, neurons=neurons)


def distiller_of(job: Job, policy: Policy) -> Distiller | None:
    """The teacher that the recipe asks for: the model that was cut unless another is named."""
    config: BaseConfig = job.config
    if config.distil is None:
        return None
    whole = msgspec.structs.replace(config.model, lora=None)
    teacher = load_policy(whole, job.start if config.distil.path is None else config.distil.path)
    return Distiller.of(teacher, policy, weight=config.distil.weight)


def save(job: Job, policy: Policy, *, is_first: bool) -> None:
    """Write the checkpoint, as the first of its line: the base that its lineage speaks of is itself."""
    config: BaseConfig = job.config
    drawn = {"tasks": msgspec.to_builtins(config.tasks), "seed": config.seed, "tokens": config.tokens_per_step}
    policy.save(
        job.checkpoint, job.lineage(data=digest(drawn), tokenizer=tokenizer_digest(policy.source), envelope=None)
    )
    if is_first:
        begin_line(job.checkpoint)


def begin_line(folder: Path) -> None:
    """Make the checkpoint in `folder` the base of its own lineage."""
    lineage = read_lineage(folder)
    assert lineage is not None
    write_lineage(folder, msgspec.structs.replace(lineage, base=lineage.weights, base_path=str(folder)))


STAGE = Base()
