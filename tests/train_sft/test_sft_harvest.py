"""What one scenario gives: retries trimmed or kept, variants made for what gold needs; and what says where data is from."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from harnessctl.data.samples import samples_of
from harnessctl.data.trimming import trim_retries
from harnessctl.decode.prompt import PromptEncoder
from harnessctl.decode.template import ChatTemplate
from harnessctl.decode.tokens import TokenCodec
from harnessctl.errors import TrainingError
from harnessctl.records.scenario import Needs
from harnessctl.records.sft_data import Card, Harvest, Origin
from harnessctl.records.trajectory import Trajectory
from harnessctl.train.sft.dataset import DataFolder, encoded
from harnessctl.train.sft.harvest import Harvester
from harnessctl.train.sft.stage import STAGE
from tests.decode.conftest import make_tokenizer
from tests.decode_encoded.stall import LOAD, calls, look, says, talk
from tests.train_sft.sft_project import Project, sft_config

NEEDS = Needs(skills=["pricing"])


@pytest.fixture(scope="module")
def stumbling() -> tuple[Trajectory, PromptEncoder]:
    """A trajectory whose first reply a hook rejects."""
    codec = TokenCodec(make_tokenizer(), end="<|im_end|>")
    long = says("This reply is much longer than the hook allows.", "say all of it")
    (found,) = talk(codec, [calls(LOAD), calls(look()), long, says("83.", "shorter")])
    assert found.stop == "replied"
    return found, PromptEncoder(ChatTemplate(), codec)


class Setting:
    """Makes variants, and keeps for what."""

    bundle = SimpleNamespace(digest="original")

    def __init__(self) -> None:
        self.needs: list[Needs | None] = []

    def variant(self, number: int, needs: Needs | None) -> Any:
        self.needs.append(needs)
        return SimpleNamespace(
            bundle=SimpleNamespace(digest=f"variant {number}"), variation=SimpleNamespace(number=number)
        )


def harvested(trajectory: Trajectory, encoder: PromptEncoder, setting: Setting, *, kept: float) -> Harvest:
    class Teacher:
        def __init__(self) -> None:
            self.encoder = encoder

        async def play(self, item: Any, attempt: int) -> tuple[Trajectory, None]:
            return trajectory, None

    scenario = SimpleNamespace(id="s", gold=SimpleNamespace(needs=NEEDS))
    made: Any = Harvester
    config = sft_config(harness="hsa", data={"keep_retry_fraction": kept, "variants": 2})
    judge = SimpleNamespace(rejection=lambda *_: None)
    harvest: Harvest = asyncio.run(made(setting, Teacher(), judge, config, lambda _: scenario).of(3))
    return harvest


@pytest.mark.parametrize("kept", [0.0, 1.0])
def test_retries_are_trimmed_but_for_the_share_that_is_kept(
    stumbling: tuple[Trajectory, PromptEncoder], kept: float
) -> None:
    trajectory, encoder = stumbling
    harvest = harvested(trajectory, encoder, Setting(), kept=kept)
    (wanted,) = samples_of(trim_retries(trajectory, keep=kept == 1.0, encoder=encoder))
    assert [(one.ids, one.mask) for one in harvest.samples] == [(wanted.ids, wanted.mask)] * 3
    assert harvest.counts["retries kept" if kept else "retries trimmed"] == 3
    assert (harvest.samples[0].ids == trajectory.paths[0].ids) == bool(kept)
    assert sum(harvest.samples[0].mask) < sum(trajectory.paths[0].mask), "what was rejected is never learnt"


def test_variants_are_made_for_what_gold_needs(stumbling: tuple[Trajectory, PromptEncoder]) -> None:
    setting = Setting()
    harvest = harvested(*stumbling, setting, kept=0.0)
    assert setting.needs == [NEEDS, NEEDS]
    assert [(one.bundle, one.variant) for one in harvest.samples] == [
        ("original", None),
        ("variant 6", 6),
        ("variant 7", 7),
    ]


@pytest.mark.parametrize("name", ["bundle", "template", "tokenizer"])
def test_data_that_was_made_with_another_is_refused(tmp_path: Path, name: str) -> None:
    origin = Origin(bundle="b" * 64, template="t" * 64, tokenizer="k" * 64)
    folder, card = DataFolder(tmp_path), Card(origin=origin, settings="s", harness="fixed", scenarios=1)
    folder.begin(card)
    with folder.writer() as lines:
        lines.write(encoded(Harvest(number=0, scenario="s")))
    folder.finish(card)
    assert folder.check(origin).digest is not None
    with pytest.raises(TrainingError, match=f"was made with the {name} .*, and this training is with x{{12}}"):
        folder.check(msgspec.structs.replace(origin, **{name: "x" * 64}))


def test_the_lineage_names_each_harness_that_was_learnt_from(tmp_path: Path) -> None:
    project = Project.make(tmp_path / "project")
    job = project.job(tmp_path / "run", sft_config(harness="hsa", loop={"steps": 1}))
    STAGE.run(job)
    job.metrics.close()
    lineage = json.loads((job.checkpoint / "lineage.json").read_text())
    lines = [json.loads(line) for line in (tmp_path / "run/data/data.jsonl").read_text().splitlines()]
    made = {sample["bundle"] for line in lines for sample in line["samples"]}
    assert len(lineage["bundles"]) > 1 and set(lineage["bundles"]) <= made
    assert project.bundle.digest in lineage["bundles"] and lineage["bundles"] == sorted(lineage["bundles"])
