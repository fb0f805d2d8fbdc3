"""The work behind `harnessctl sets build`: config, items, file and card."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from harnessctl import recipes
from harnessctl.cli import output
from harnessctl.cli.evaluating import building
from harnessctl.cli.process import ended_by_signals
from harnessctl.cli.project import open_bundle, project_root
from harnessctl.errors import UsageError
from harnessctl.evaluate.building.built import BuiltSet
from harnessctl.evaluate.building.frozen import SUFFIX
from harnessctl.evaluate.building.set_files import write_set
from harnessctl.evaluate.config import EvalConfig
from harnessctl.evaluate.items import ItemSet
from harnessctl.evaluate.job import Job
from harnessctl.evaluate.sets import item_sets
from harnessctl.policies import ModelConfig, SamplingConfig
from harnessctl.records.set_card import SetCard

RECIPE = "sets-build"
FOLDER = "build/sets"
#: Families that the summary names.
_LISTED = 6


class BuildConfig(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """The recipe of `sets build`; recipes/sets-build/default.yaml says what each key means."""

    harness: str | None = None
    world: str | None = None
    seed: Annotated[int, Meta(ge=0)] = 0
    n: Annotated[int, Meta(ge=1, le=10_000_000)] | None = None
    user: Literal["script", "llm"] | None = None
    out: str | None = None


class BuildDone(msgspec.Struct, kw_only=True):
    """What a build came to."""

    out: str
    card: SetCard


@dataclass(frozen=True)
class BuildCommand:
    """A set by name, and keys."""

    asked: ItemSet
    overrides: list[str]
    project: Path | None

    @classmethod
    def of(cls, arguments: Sequence[str], project: Path | None) -> BuildCommand:
        """Tell the set (an argument without `=`) from the keys. UsageError when it is none that is built."""
        names = [argument for argument in arguments if "=" not in argument]
        known = _built_sets()
        hint = f"sets: {', '.join(sorted(known))}"
        if not names:
            raise UsageError("which set?", hint=hint)
        if len(names) > 1:
            raise UsageError(f"one set at a time; got {', '.join(names)}", hint="keys are KEY=VALUE")
        if names[0] not in known:
            drawn = " is drawn from the world as it is asked, not built" if names[0] in item_sets() else " is no set"
            raise UsageError(f"{names[0]}{drawn}", hint=hint)
        return cls(known[names[0]], [argument for argument in arguments if "=" in argument], project)

    def config(self) -> tuple[dict[str, Any], BuildConfig]:
        """The resolved recipe, plain and typed."""
        plain = recipes.compose(_root(self.project), RECIPE, self.overrides)
        return plain, recipes.typed(plain, BuildConfig, job="sets build")

    def config_yaml(self) -> str:
        """The resolved recipe as YAML."""
        return recipes.to_yaml(self.config()[0])

    def run(self, *, json: bool = False) -> BuildDone:
        """Build and write the set. HarnessctlError when that is not possible; no file is left half written."""
        _, config = self.config()
        bundle, root = open_bundle(None, self.project, harness=config.harness)
        assert root is not None
        out = Path(config.out) if config.out is not None else _place(root, self.asked.name, bundle.name, config.seed)
        if out.suffix != SUFFIX or out.is_dir():
            raise UsageError(f"out={out}: a set is a file of JSON Lines", hint=f"end its name in {SUFFIX}")
        keys = {name: getattr(config, name) for name in ("harness", "world", "seed", "n", "user")}
        evaluation = EvalConfig(suite=self.asked.name, model=ModelConfig(name=""), sampling=SamplingConfig(), **keys)
        with Job(root, bundle, evaluation).setting() as setting, ended_by_signals():
            with building(setting, self.asked):
                self.asked.items(setting)
            card = write_set(out, self.asked.name, setting.built[self.asked.name], setting)
        if not json:
            show(card)
            output.data(str(out))
        return BuildDone(out=str(out), card=card)


def show(card: SetCard) -> None:
    """The card as a person reads it, on stderr."""
    output.talk(f"{card.set}: {card.items} items for {card.harness}, seed {card.seed}, digest {card.digest[:12]}")
    output.talk(f"looked at {card.drawn} scenarios; not of this kind: {_told(card.passed_over)}")
    output.talk(f"rejected: {_told(card.rejected)}")
    families = dict(list(card.families.items())[:_LISTED])
    for name, counts in (
        ("intents", card.intents),
        ("languages", card.languages),
        ("families", families),
        ("levels", card.levels),
        ("rubrics", card.rubrics),
        ("checks", card.checks),
        ("distractors", card.distractors),
        ("situations", card.situations),
    ):
        if counts:
            more = (
                f", and {len(card.families) - _LISTED} more"
                if name == "families" and len(card.families) > _LISTED
                else ""
            )
            output.talk(f"{name}: {_told(counts)}{more}")


def _told(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{name} {count}" for name, count in counts.items()) or "none"


def _place(root: Path, name: str, harness: str, seed: int) -> Path:
    return root / FOLDER / f"{name}-{harness}-{seed}{SUFFIX}"


def _built_sets() -> dict[str, ItemSet]:
    """The sets that are built, not drawn as they are asked."""
    return {name: found for name, found in item_sets().items() if isinstance(found, BuiltSet)}


def _root(project: Path | None) -> Path | None:
    try:
        return project_root(project)
    except UsageError:
        return None
