"""Panel: the voters of one judge role, ready to be asked, each its own agent of the judge's harness.

What always holds: each judgement has a sandbox of the world of its own; a judge has no tool that writes.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import msgspec

from harnessctl.bundle.files import Bundle
from harnessctl.errors import UsageError
from harnessctl.evaluate.judging.ballots import FOLDER, Ballots
from harnessctl.evaluate.judging.case import Case
from harnessctl.evaluate.judging.roles import judge_role, unfit_judge
from harnessctl.evaluate.judging.voter import Voter
from harnessctl.manifests.specs.roles import RoleModel, Roles
from harnessctl.policies import ModelConfig, endpoint_of, open_policy
from harnessctl.records.vote import Vote
from harnessctl.runtime.agent import Agent
from harnessctl.runtime.models.endpoint import resolve_endpoint
from harnessctl.runtime.protocols import Model, Sampling
from harnessctl.simulate.world import LiveWorld
from harnessctl.storage import digest_bytes


@dataclass(slots=True, frozen=True)
class Jury:
    """A judge role with its harness: who will vote. `role` is its name in roles.yaml."""

    role: str
    roles: Roles
    bundle: Bundle

    @property
    def voters(self) -> dict[str, RoleModel]:
        """The voters' models by name, in order."""
        return {name: self.roles.models[name] for name in judge_role(self.roles, self.role).models}

    @property
    def sees_gold(self) -> bool:
        """Whether the judge is told what a right answer does."""
        return judge_role(self.roles, self.role).sees == "gold"

    @property
    def digest(self) -> str:
        """SHA-256 of what its verdicts depend on: the judge, the models with their sampling, what they see."""
        models = [msgspec.to_builtins(model) | {"key_env": None} for model in self.voters.values()]
        return digest_bytes(msgspec.json.encode((self.bundle.digest, models, self.sees_gold), order="sorted"))

    @property
    def scorer(self) -> str:
        """How scores name it: `panel@<12 hex of digest>`."""
        return f"{self.role}@{self.digest[:12]}"


class Panel:
    """The voters of a jury. `open_panel` makes it; it belongs to one event loop."""

    def __init__(self, jury: Jury, voters: list[Voter]) -> None:
        self.jury = jury
        self.voters = voters

    async def votes(self, case: Case) -> list[Vote]:
        """The vote of each voter on one case, in order; asked one after the other."""
        return [await voter.vote(case) for voter in self.voters]


@asynccontextmanager
async def open_panel(
    root: Path, jury: Jury, *, world: LiveWorld | None, tries: int = 3, models: dict[str, Model] | None = None
) -> AsyncGenerator[Panel]:
    """The panel of a jury; all that was opened is closed behind it. `models` by name take the place of the endpoints',
    and stay open. UsageError when a harness cannot judge, or a model's key is missing.
    """
    if fault := unfit_judge(jury.bundle):
        raise UsageError(f"the harness {jury.bundle.name} cannot judge: {fault}")
    async with AsyncExitStack() as stack:
        voters: list[Voter] = []
        for name, spec in jury.voters.items():
            model = (models or {}).get(name)
            if model is None:
                model = _open_model(root, spec)
                stack.push_async_callback(model.aclose)
            agent = await stack.enter_async_context(
                await Agent.open(
                    jury.bundle,
                    model,
                    world=world,
                    simulate=True,
                    sampling=Sampling(
                        temperature=spec.sampling.temperature,
                        top_p=spec.sampling.top_p,
                        max_tokens=spec.sampling.max_tokens,
                        seed=spec.sampling.seed,
                    ),
                    isolate=world is not None,
                )
            )
            ballots = Ballots(_ballots_path(root, jury.bundle, name))
            stack.callback(ballots.close)
            voters.append(Voter(name, spec, agent, jury.bundle, ballots, tries=tries))
        yield Panel(jury, voters)


def check_models(root: Path, jury: Jury) -> None:
    """What is wrong with voters' settings, asking no model: UsageError for a key that is not set or a URL that is none,
    RecordError or StorageError for a script."""
    for spec in jury.voters.values():
        if spec.policy == "openai":
            resolve_endpoint(endpoint_of(_config(spec)))
        elif spec.policy == "scripted":
            _open_model(root, spec)


def _open_model(root: Path, spec: RoleModel) -> Model:
    script = None if spec.script is None else str(root / spec.script)
    return open_policy(spec.policy, _config(spec), script=script)


def _config(spec: RoleModel) -> ModelConfig:
    return ModelConfig(name=spec.name, base_url=spec.base_url, key_env=spec.key_env, stream=spec.stream, body=spec.body)


def _ballots_path(root: Path, bundle: Bundle, voter: str) -> Path:
    return root / FOLDER / f"{bundle.name}-{bundle.digest[:12]}" / f"{voter}.jsonl"
