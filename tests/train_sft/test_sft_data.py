"""What is learnt from: scenarios times harnesses, tries and their rejection, the set on disk."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import msgspec
import pytest
from sft_project import Project, sft_config

from harnessctl.errors import TrainingError, UsageError
from harnessctl.evaluate.setting import Setting
from harnessctl.policies import ModelConfig
from harnessctl.records.score import Score
from harnessctl.records.sft_data import ranges
from harnessctl.train.sft.config import JudgeConfig, TeacherConfig
from harnessctl.train.sft.data import Data, check_source, data_of
from harnessctl.train.sft.dataset import DataFolder
from harnessctl.train.sft.gathering import evaluation_config
from harnessctl.train.sft.judge import RuleJudge


def made(project: Project, folder: Path, **keys: Any) -> Data:
    return data_of(project.job(folder, sft_config(**keys)))


def test_fixed_is_the_original_and_hsa_has_variants_too(project: Project, tmp_path: Path) -> None:
    fixed = made(project, tmp_path / "fixed", harness="fixed")
    hsa = made(project, tmp_path / "hsa", harness="hsa", data={"variants": 2})
    assert fixed.bundles == {project.bundle.digest}
    assert fixed.card.counts["pairs"] == 5 and fixed.card.envelope is None
    assert hsa.card.counts["pairs"] == 15 - sum(n for name, n in hsa.card.counts.items() if "no variant" in name)
    assert len(hsa.bundles) > len(fixed.bundles) and project.bundle.digest in hsa.bundles
    assert hsa.card.envelope == "paper"
    variants = Counter(one.variant is None for one in hsa.learnt + hsa.held_out)
    assert variants[True] == len(fixed.learnt + fixed.held_out) and variants[False] > variants[True]


def test_what_is_learnt_are_the_policys_own_turns(project: Project, tmp_path: Path) -> None:
    data = made(project, tmp_path, harness="fixed")
    job = project.job(tmp_path, sft_config())
    codec, end = job.policy.codec, job.policy.codec.end_id
    for example in data.learnt:
        ids, mask = example.tokens.ids.tolist(), example.tokens.mask.tolist()
        turns = [ids[start:stop] for start, stop in ranges(mask)]
        assert all(turn[-1] == end for turn in turns)
        assert "load_skill" in codec.decode(turns[0])
        assert not any("<tool_response>" in codec.decode(turn) for turn in turns)
        assert all(codec.decode(ids[:start]).endswith("assistant\n") for start, _ in ranges(mask))


def test_no_scenario_is_one_of_an_evaluation(project: Project) -> None:
    config = evaluation_config(sft_config())
    other = msgspec.structs.replace(config, seed=0)
    with Setting(project.root, project.bundle, config) as ours, Setting(project.root, project.bundle, other) as theirs:
        assert {ours.scenario_id(n) for n in range(50)}.isdisjoint(theirs.scenario_id(n) for n in range(50))


@pytest.mark.slow
def test_workers_change_nothing(project: Project, tmp_path: Path) -> None:
    made(project, tmp_path / "one", data={"n": 40})
    made(project, tmp_path / "two", data={"n": 40, "workers": 2})
    assert (tmp_path / "one/data/data.jsonl").read_bytes() == (tmp_path / "two/data/data.jsonl").read_bytes()


def test_what_was_broken_off_goes_on(project: Project, tmp_path: Path) -> None:
    whole = made(project, tmp_path / "whole")
    lines = (tmp_path / "whole/data/data.jsonl").read_bytes().splitlines(keepends=True)
    folder = tmp_path / "broken"
    folder.mkdir()
    (folder / "data").mkdir()
    card = msgspec.json.decode((tmp_path / "whole/data/data.json").read_bytes())
    card |= {"digest": None, "counts": {}, "samples": 0}
    (folder / "data/data.json").write_bytes(msgspec.json.encode(card))
    (folder / "data/data.jsonl").write_bytes(b"".join(lines[:3]) + lines[3][:40])
    assert made(project, folder).card == whole.card
    assert (folder / "data/data.jsonl").read_bytes() == b"".join(lines)
    with pytest.raises(UsageError, match="other settings"):
        made(project, folder, data={"n": 7})


def test_a_poor_teacher_is_counted_and_tried_again(project: Project, tmp_path: Path) -> None:
    poor = TeacherConfig(flaw="ungrounded-number", flaw_rate=0.5, candidates=4, keep=2)
    data = made(project, tmp_path, teacher=poor, data={"n": 12}, harness="fixed")
    counts = data.card.counts
    rejected = sum(n for name, n in counts.items() if name.startswith("rejected"))
    assert counts["rejected: low accuracy"] > 0
    assert counts["tries"] == counts["accepted"] + rejected
    assert counts["pairs with a sample"] > counts["pairs"] / 2
    assert max(Counter(one.scenario for one in data.learnt).values()) <= 2


def test_too_small_a_yield_stops_with_the_counts(project: Project, tmp_path: Path) -> None:
    poor = TeacherConfig(flaw="ungrounded-number")
    with pytest.raises(TrainingError, match=r"of 12 pairs .* gave a sample.*tries 12.*low accuracy"):
        made(project, tmp_path, teacher=poor, data={"n": 12, "min_yield": 0.95}, harness="fixed")


def test_an_empty_set_is_said_with_its_counts(project: Project, tmp_path: Path) -> None:
    with pytest.raises(TrainingError, match=r"longer than data\.max_tokens="):
        made(project, tmp_path, harness="fixed", data={"max_tokens": 10, "min_yield": 0.0})


def test_data_of_another_harness_or_that_was_altered_is_refused(project: Project, tmp_path: Path) -> None:
    data = made(project, tmp_path / "made", harness="fixed")
    given = {"path": str(tmp_path / "made/data")}
    again = made(project, tmp_path / "again", data=given)
    assert again.card == data.card and not (tmp_path / "again/data").exists()
    other = project.job(
        tmp_path / "other", sft_config(data=given), bundle=msgspec.structs.replace(project.bundle, digest="f" * 64)
    )
    with pytest.raises(TrainingError, match="with the bundle"):
        data_of(other)
    path = tmp_path / "made/data/data.jsonl"
    path.write_bytes(path.read_bytes().replace(b'"number":0', b'"number":99', 1))
    with pytest.raises(TrainingError, match="is not what data"):
        made(project, tmp_path / "altered", data=given)
    with pytest.raises(TrainingError, match="no data of an SFT"):
        made(project, tmp_path / "none", data={"path": str(tmp_path / "nowhere")})


def test_held_out_scenarios_are_learnt_in_no_variant(project: Project, tmp_path: Path) -> None:
    data = made(project, tmp_path, data={"n": 10, "eval_share": 0.3, "variants": 2})
    assert len({one.scenario for one in data.held_out}) == 3
    assert {one.scenario for one in data.held_out}.isdisjoint(one.scenario for one in data.learnt)
    assert len(DataFolder(tmp_path / "data").examples()) == len(data.learnt) + len(data.held_out)


def test_scenarios_of_a_file(project: Project, tmp_path: Path) -> None:
    config = sft_config()
    with Setting(project.root, project.bundle, evaluation_config(config)) as setting:
        scenarios = [setting.scenario(number) for number in range(4)]
    scenarios[1].gold = None
    path = tmp_path / "scenarios.jsonl"
    path.write_bytes(b"".join(msgspec.json.encode(one) + b"\n" for one in scenarios))
    data = made(project, tmp_path / "run", harness="fixed", data={"scenarios": str(path), "n": None})
    assert data.card.scenarios == 4 and data.card.counts["pairs with a sample"] == 3
    assert {one.scenario for one in data.learnt + data.held_out} == {scenarios[at].id for at in (0, 2, 3)}
    scenarios[0].harness = "another"
    path.write_bytes(msgspec.json.encode(scenarios[0]) + b"\n")
    with pytest.raises(UsageError, match="is for the harness 'another'"):
        made(project, tmp_path / "other", data={"scenarios": str(path), "n": None})


def test_the_judge_tells_bad_from_unscored() -> None:
    judge = RuleJudge(JudgeConfig(tool_rationality=0.5))

    def said(**scores: float) -> str | None:
        return judge.rejection(None, Score(id="a", scenario="a", scorer="rules", bundle="b", **scores))  # type: ignore

    assert said(accuracy=1, effectiveness=1, tool_rationality=0.5) is None
    assert said(accuracy=1, effectiveness=0.5, tool_rationality=1) == "low effectiveness"
    assert said(accuracy=0, effectiveness=0) == "low accuracy"
    assert said(accuracy=1, effectiveness=1) == "no score: tool_rationality"
    assert said() == "no score: accuracy"


def test_a_teacher_whose_key_is_not_set_is_told_before_there_is_a_run(
    project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("NO_SUCH_KEY", raising=False)
    teacher = TeacherConfig(policy="openai", model=ModelConfig(name="m", key_env="NO_SUCH_KEY"))
    job = project.job(tmp_path / "run", sft_config(teacher=teacher))
    with pytest.raises(UsageError, match="NO_SUCH_KEY"):
        check_source(job)
    monkeypatch.setenv("NO_SUCH_KEY", "secret")
    check_source(job)
