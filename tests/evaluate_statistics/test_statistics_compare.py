"""Runs compared: what is paired, what is refused, what is said."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson
import pytest

from harnessctl.errors import RecordError, UsageError
from harnessctl.evaluate.comparison import Comparison, compare
from tests.cli.conftest import Result
from tests.cli.conftest import harnessctl as harnessctl
from tests.cli.conftest import shop as shop

Run = Callable[..., Path]


def write_lines(path: Path, lines: list[dict[str, Any]]) -> None:
    path.write_bytes(b"".join(orjson.dumps(line) + b"\n" for line in lines))


def made(folder: Path, averages: list[tuple[float, float] | None], **changes: Any) -> Path:
    """A run folder with the scores (Accuracy, Effectiveness) of items 0, 1, ...; null: no score."""
    repeats: int = changes.pop("repeats", 1)
    text: str = changes.pop("text", "how much")
    template: str | None = changes.pop("template", None)
    folder.mkdir(parents=True)
    (folder / "config.yaml").write_text("suite: live-qa\n")
    run = {"format": "harnessctl/run.v1", "job": "eval", "name": "live-qa-stall", "started": "2026-01-01T00:00:00Z"}
    run |= {"config": "", "status": "done", "policy": "local:a", "harness": "stall-1.0.0", "bundle": "b" * 64}
    run |= {"world": "w" * 64, "extra": {"suite": "live-qa"}} | changes
    (folder / "run.json").write_bytes(orjson.dumps(run))
    scores: list[dict[str, Any]] = []
    scenarios: list[dict[str, Any]] = []
    trajectories: list[dict[str, Any]] = []
    for repeat in range(repeats):
        for number, pair in enumerate(averages):
            name = f"s-{number}"
            own = name if repeat == 0 else f"{name}#{repeat + 1}"
            score: dict[str, Any] = {"format": "harnessctl/score.v1", "id": own, "scenario": name, "scorer": "rules"}
            score |= {"bundle": "b" * 64, "family": f"f{number % 2}", "repeat": repeat}
            if pair is not None:
                score |= {"accuracy": pair[0], "effectiveness": pair[1], "reasons": {"effectiveness": ["not said: 5"]}}
            scores.append(score)
            scenarios.append({"id": name, "request": {"id": own, "text": text}})
            trajectories.append({"id": own, "template": template})
    write_lines(folder / "scores.jsonl", scores)
    write_lines(folder / "scenarios.jsonl", scenarios)
    write_lines(folder / "trajectories.jsonl", trajectories)
    return folder


A = [(1.0, 1.0), (1.0, 0.5), (0.0, 0.0), (1.0, 0.0)]
B = [(1.0, 1.0), (1.0, 1.0), (1.0, 0.5), (0.0, 0.0)]


def by_metric(done: Comparison) -> dict[str, tuple[float, float, float]]:
    return {delta.metric: (delta.a, delta.b, delta.interval.mean) for delta in done.deltas}


def test_the_differences_by_hand(tmp_path: Path) -> None:
    done = compare(made(tmp_path / "a", A), made(tmp_path / "b", B))
    assert done.pairs == 4 and (done.only_a, done.only_b, done.unscored) == (0, 0, 0)
    assert by_metric(done) == {
        "accuracy": (0.75, 0.75, 0.0),
        "effectiveness": (0.375, 0.625, 0.25),
        "average": pytest.approx((0.5625, 0.6875, 0.125)),
    }
    assert [(one.scenario, one.a, one.b) for one in done.changed] == [
        ("s-2", 0.0, 0.75),
        ("s-3", 0.5, 0.0),
        ("s-1", 0.75, 1.0),
    ]
    assert [(one.name, one.interval.mean) for one in done.families] == [("f1", -0.125), ("f0", 0.375)]
    assert set(done.sizes) == {"1", "2", "5"} and done.sizes["1"] > done.sizes["5"]


def test_repeats_are_averaged_before_they_are_paired(tmp_path: Path) -> None:
    once, twice = made(tmp_path / "a", A), made(tmp_path / "b", B, repeats=2)
    done = compare(once, twice)
    assert done.pairs == 4 and by_metric(done)["average"][2] == pytest.approx(0.125)


def test_what_one_run_lacks_or_has_no_score_for_is_counted(tmp_path: Path) -> None:
    done = compare(made(tmp_path / "a", [*A, (1.0, 1.0), (1.0, 1.0)]), made(tmp_path / "b", [*B[:3], None, (1.0, 1.0)]))
    assert (done.pairs, done.only_a, done.only_b, done.unscored) == (4, 1, 0, 1)


@pytest.mark.parametrize(
    ("what", "changes"),
    [
        ("suite", {"extra": {"suite": "variant-qa"}}),
        ("set", {"text": "what is it"}),
        ("template", {"template": "t" * 64}),
        ("world", {"world": "v" * 64}),
    ],
)
def test_runs_that_were_not_asked_the_same_are_refused_unless_told(
    tmp_path: Path, what: str, changes: dict[str, Any]
) -> None:
    a, b = made(tmp_path / "a", A), made(tmp_path / "b", B, **changes)
    with pytest.raises(UsageError) as raised:
        compare(a, b)
    assert what in raised.value.message or what == "set"
    assert f"--across {what}" in raised.value.hint
    assert compare(a, b, across=[what]).across == [what]


def test_another_harness_or_policy_is_what_a_comparison_is_for(tmp_path: Path) -> None:
    a, b = made(tmp_path / "a", A), made(tmp_path / "b", B, bundle="c" * 64, policy="local:b", harness="stall-1.1.0")
    assert compare(a, b).systems == ("local:a under stall-1.0.0", "local:b under stall-1.1.0")


def test_what_lies_within_noise_is_said(tmp_path: Path) -> None:
    a, b = made(tmp_path / "a", A), made(tmp_path / "b", B)
    noisy = (made(tmp_path / "c", A), made(tmp_path / "d", B))
    quiet = (tmp_path / "c", made(tmp_path / "e", A))
    assert all(delta.is_noise for delta in compare(a, b, noise_of=noisy).deltas)
    beyond = {delta.metric: delta.is_noise for delta in compare(a, b, noise_of=quiet).deltas}
    assert beyond == {"accuracy": True, "effectiveness": False, "average": False}
    other = made(tmp_path / "f", B, policy="local:z")
    with pytest.raises(UsageError, match="two runs of one system"):
        compare(a, b, noise_of=(a, other))


def test_damaged_runs_are_named(tmp_path: Path) -> None:
    a = made(tmp_path / "a", A)
    twice = made(tmp_path / "twice", B)
    with (twice / "scores.jsonl").open("a") as file:
        file.write((twice / "scores.jsonl").read_text().splitlines()[0] + "\n")
    with pytest.raises(RecordError, match="s-0 stands there twice"):
        compare(a, twice)
    short = made(tmp_path / "short", B)
    (short / "scenarios.jsonl").write_text("")
    with pytest.raises(RecordError, match="s-0, which has a score, is not there"):
        compare(a, short)
    empty = made(tmp_path / "empty", [])
    with pytest.raises(UsageError, match="no scores yet"):
        compare(a, empty)
    with pytest.raises(UsageError, match="no scenario that both"):
        compare(a, made(tmp_path / "none", [None, None, None, None]))
    with pytest.raises(UsageError, match="is a run of `harnessctl run`"):
        compare(a, made(tmp_path / "run", A, job="run"))
    with pytest.raises(UsageError, match="nonsense: not known"):
        compare(a, a, across=["nonsense"])


def test_the_command(harnessctl: Callable[..., Result], tmp_path: Path) -> None:
    a, b = made(tmp_path / "a", A), made(tmp_path / "b", B)
    shown = harnessctl("compare", str(a), str(b), "--resamples", "500")
    assert shown.code == 0
    assert "+12.5 [" in shown.out and "live-qa, 4 pairs" in shown.out + shown.err
    assert "changed most" in shown.out + shown.err
    typed = harnessctl("compare", str(a), str(b), "--json", "--cluster", "family")
    assert typed.json["cluster"] == "family" and typed.json["deltas"][0]["interval"]["clusters"] == 2
    shutil.rmtree(b)
    gone = harnessctl("compare", str(a), str(b))
    assert gone.code != 0 and "Traceback" not in gone.err and str(b) in gone.err
    assert json.loads(harnessctl("compare", str(a), str(a), "--json").out)["changed"] == []
    refused = harnessctl("compare", str(a), str(a), "--cluster", "room")
    assert refused.code == 2 and "item, family" in refused.err
