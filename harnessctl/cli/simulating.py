"""The work behind `harnessctl world`: config, world and bundle, what is drawn, and how it is shown."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from harnessctl import recipes
from harnessctl.assembly import VIEWER_KEY, open_world_of
from harnessctl.bundle.files import Bundle
from harnessctl.cli import output
from harnessctl.cli.progress import Progress
from harnessctl.cli.project import open_bundle, project_root
from harnessctl.cli.world_results import Built, Checked, Imported, Sampled, describe
from harnessctl.errors import UsageError
from harnessctl.policies import ModelConfig, endpoint_of
from harnessctl.records.comment import CommentInput, ViewerMessage
from harnessctl.records.scenario import Scenario
from harnessctl.runtime.models.openai import OpenAIModel
from harnessctl.simulate.checking import check_scenarios
from harnessctl.simulate.imports import import_log
from harnessctl.simulate.scenario_files import read_scenarios
from harnessctl.simulate.scenarios import Scenarios
from harnessctl.simulate.user import EndpointVoice, viewer_wordings
from harnessctl.simulate.world import LiveWorld, open_world
from harnessctl.storage import write_atomic
from harnessctl.trajectory import ViewerNames

#: Not `world`: a folder of recipes cannot have the name of a key.
RECIPE = "world-sample"
#: How many scenarios are drawn for each family, at most, to find enough of every one.
MOST_DRAWS = 2000


class WorldConfig(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """The recipe of `world`; recipes/world-sample/default.yaml says what each key means."""

    model: ModelConfig
    harness: str | None = None
    n: Annotated[int, Meta(ge=1, le=10_000_000)] = 8
    each: Annotated[int, Meta(ge=1, le=10_000)] = 2
    seed: Annotated[int, Meta(ge=0)] = 0
    user: Literal["script", "llm"] | None = None
    cache: str | None = None
    viewers: Literal["keep", "hash", "drop"] = "keep"


@dataclass(frozen=True)
class WorldCommand:
    """What the command line asked for: a world by name (or the harness's own), and keys."""

    name: str | None
    overrides: list[str]
    project: Path | None

    @classmethod
    def of(cls, arguments: Sequence[str], project: Path | None) -> WorldCommand:
        """Tell the world (an argument without `=`) from the keys."""
        names = [a for a in arguments if "=" not in a]
        if len(names) > 1:
            raise UsageError(f"one world at a time; got {', '.join(names)}", hint="keys are KEY=VALUE")
        return cls(names[0] if names else None, [a for a in arguments if "=" in a], project)

    def config(self) -> tuple[dict[str, Any], WorldConfig]:
        """The resolved recipe, plain and typed."""
        plain = recipes.compose(self._root(), RECIPE, self.overrides)
        return plain, recipes.typed(plain, WorldConfig, job="world sample")

    def config_yaml(self) -> str:
        """The resolved recipe as YAML."""
        return recipes.to_yaml(self.config()[0])

    def build(self) -> Built:
        """Open the world, which builds its database where it is not there yet; FaultsError for what is wrong with it."""
        _, config = self.config()
        with self._world(config) as world:
            return describe(world)

    def sample(self, out: Path | None) -> Sampled:
        """Draw `n` scenarios, written to `out` or to stdout as they come."""
        _, config = self.config()
        bundle, world = self._open(config)
        if world is None:
            raise _no_world(bundle)
        with world:
            scenarios = Scenarios.open(world, bundle)
            voice = self._speaking(scenarios, config)
            lines = (msgspec.json.encode(scenario) + b"\n" for scenario in scenarios.sample(config.seed, config.n))
            if out is not None:
                write_atomic(out, b"".join(lines))
            else:
                for line in lines:
                    sys.stdout.write(line.decode())
            sampled = Sampled(scenarios=config.n, seed=config.seed, out=str(out) if out else None)
            if voice is not None:
                sampled.reworded, sampled.script, sampled.refused = voice.said, voice.script, dict(voice.refused)
                _tell_voice(voice)
            return sampled

    def check(self, path: Path | None) -> Checked:
        """Let the oracle carry out scenarios: those of `path`, or `each` of every family."""
        _, config = self.config()
        bundle, world = self._open(config)
        if world is None:
            raise _no_world(bundle)
        with world:
            scenarios = (
                list(read_scenarios(path)) if path is not None
                else of_each_family(Scenarios.open(world, bundle), config.seed, config.each)
            )  # fmt: skip
            if not scenarios:
                raise UsageError(f"{path} holds no scenario")
            _check_theirs(scenarios, bundle, world)
            with Progress("checking", total=len(scenarios), quiet_s=2.0) as progress:
                unreached = check_scenarios(
                    bundle, world, scenarios, seed=config.seed, on_done=lambda s, _: progress.advance(s.id)
                )
        families = {family for scenario in scenarios for family in scenario.family.split("+")}
        return Checked(scenarios=len(scenarios), families=len(families), unreached=unreached)

    def import_(self, path: Path, mapping: Path | None, out: Path | None, *, json: bool) -> Imported:
        """Read a log; write its scenarios to `out`, or to stdout where JSON is not wanted."""
        _, config = self.config()
        bundle = self._bundle_for_gold(config) if mapping is not None else None
        scenarios, report = import_log(
            path,
            mapping=mapping,
            harness=config.harness,
            viewers=viewer_names(config.viewers),
            bundle=bundle,
        )
        if out is not None:
            write_atomic(out, b"".join(msgspec.json.encode(scenario) + b"\n" for scenario in scenarios))
            return Imported(report=report, out=str(out))
        if json:
            return Imported(report=report, scenarios=scenarios)
        for scenario in scenarios:
            output.data(msgspec.json.encode(scenario).decode())
        return Imported(report=report)

    def serve_mcp(
        self, context: dict[str, Any], *, room: str | None, viewer: str | None, http: int | None, token_env: str
    ) -> None:
        """Serve the harness's tools until the client ends, or SIGTERM."""
        from harnessctl.simulate.serving.http import serve_http
        from harnessctl.simulate.serving.protocol import need_mcp
        from harnessctl.simulate.serving.stdio import serve_stdio
        from harnessctl.simulate.serving.tools import ServedTools

        need_mcp()
        token = os.environ.get(token_env, "").strip()
        if http is not None and not token:
            raise UsageError(f"--http needs a bearer token in {token_env}", hint=f"export {token_env}=...")
        _, config = self.config()
        bundle, world = self._open(config)
        request = CommentInput(
            id="serve-mcp", messages=[ViewerMessage("", viewer or "viewer")], room=room, context=context
        )

        async def serve() -> None:
            tools = ServedTools(bundle, world, request)
            for warning in tools.warnings:
                output.talk(f"warning: {warning}")
            if http is None:
                await serve_stdio(tools, bundle.name)
            else:
                await serve_http(tools, bundle.name, port=http, token=token, ready=_tell)

        try:
            asyncio.run(serve())
        finally:
            if world is not None:
                world.close()

    def _speaking(self, scenarios: Scenarios, config: WorldConfig) -> EndpointVoice | None:
        """Let a model speak for viewers where the world or a key says so: its cache is filled for this sample first."""
        if (config.user or scenarios.simulation.user) != "llm":
            return None
        root = self._root()
        if config.cache is None and root is None:
            raise UsageError("user=llm needs a folder for what the model said", hint="cache=DIR")
        cache = Path(config.cache) if config.cache is not None else viewer_wordings(root or Path())

        async def fill() -> EndpointVoice:
            model = OpenAIModel(endpoint_of(config.model))
            progress: list[Progress] = []

            def on_progress(done: int, total: int) -> None:
                if not progress:
                    progress.append(Progress("asking", total=total, quiet_s=2.0))
                progress[0].advance("")

            try:
                voice = EndpointVoice(model, cache, on_progress=on_progress)
                await voice.prepare(scenarios.sample(config.seed, config.n))
                return voice
            finally:
                await model.aclose()

        voice = asyncio.run(fill())
        scenarios.user = voice
        return voice

    def _root(self) -> Path | None:
        try:
            return project_root(self.project)
        except UsageError:
            return None

    def _open(self, config: WorldConfig) -> tuple[Bundle, LiveWorld | None]:
        """The bundle, compiled now, and the world that was named or that it reads."""
        bundle, root = open_bundle(None, self.project, harness=config.harness)
        return bundle, open_world_of(root, bundle, self.name)

    def _world(self, config: WorldConfig) -> LiveWorld:
        """The world that was named, without a compile, or that the harness reads."""
        if self.name is None:
            bundle, world = self._open(config)
            if world is None:
                raise _no_world(bundle)
            return world
        root = project_root(self.project)
        path = root / "manifests" / "worlds" / f"{self.name}.yaml"
        if not path.is_file():
            known = sorted(p.stem for p in path.parent.glob("*.yaml"))
            raise UsageError(f"no world {self.name!r}; there are {', '.join(known) or 'none'}")
        return open_world(path, cache=root / "build" / "worlds")

    def _bundle_for_gold(self, config: WorldConfig) -> Bundle | None:
        """The harness that gold is checked against, where there is a project with one."""
        if self._root() is None:
            return None
        return open_bundle(None, self.project, harness=config.harness)[0]


def of_each_family(scenarios: Scenarios, seed: int, each: int) -> list[Scenario]:
    """The first scenarios of a seed in which every family occurs `each` times at least, none more than it takes.

    A family of mixed requests counts for both of its halves. What is drawn too rarely is drawn for at most MOST_DRAWS.
    """
    wanted = {family.spec.id: each for family in scenarios.families if scenarios.simulation.mix[family.spec.intent] > 0}
    out: list[Scenario] = []
    for scenario in scenarios.sample(seed, MOST_DRAWS * max(1, len(wanted))):
        parts = scenario.family.split("+")
        if any(wanted.get(part, 0) > 0 for part in parts):
            out.append(scenario)
            for part in parts:
                wanted[part] = wanted.get(part, 0) - 1
            if all(left <= 0 for left in wanted.values()):
                return out
    rare = ", ".join(name for name, left in wanted.items() if left > 0)
    raise UsageError(f"drawn too rarely to be checked: {rare}", hint="give them more `weight`, or another seed")


def _check_theirs(scenarios: list[Scenario], bundle: Bundle, world: LiveWorld) -> None:
    """UsageError when a scenario is for another harness; a warning where gold was drawn from other tables."""
    if strangers := [scenario for scenario in scenarios if scenario.harness != bundle.name]:
        first = strangers[0]
        raise UsageError(
            f"the scenario {first.id} is for the harness {first.harness}, not for {bundle.name}",
            hint=f"give harness=NAME; {output.plural(len(strangers), 'scenario')} of {len(scenarios)} are not for this one",
        )
    old = sum(scenario.world not in (None, world.digest) for scenario in scenarios)
    if old:
        output.talk(f"warning: {output.plural(old, 'scenario')} were made with other tables than these")


def _no_world(bundle: Bundle) -> UsageError:
    return UsageError(f"the harness {bundle.name} reads no world", hint="name one, as in `harnessctl world build NAME`")


def viewer_names(mode: Literal["keep", "hash", "drop"]) -> ViewerNames:
    """How viewers are named in what is imported; the key of a hash is in the environment."""
    key = os.environ.get(VIEWER_KEY, "").encode()
    if mode == "hash" and not key:
        raise UsageError(
            "viewers=hash needs a secret key, or a short list of names is soon guessed", hint=f"set {VIEWER_KEY}"
        )
    return ViewerNames(mode, key)


def _tell_voice(voice: EndpointVoice) -> None:
    for failure in voice.failures[:5]:
        output.talk(f"warning: not reworded: {failure}")
    refused = ", ".join(f"{name} {count}" for name, count in sorted(voice.refused.items())) or "none"
    output.talk(
        f"{voice.said} messages in other words, {voice.script} as the script has them; wordings refused: {refused}"
    )


def _tell(url: str) -> None:
    output.talk(f"serving {url}; stop with Ctrl-C")
    sys.stderr.flush()
