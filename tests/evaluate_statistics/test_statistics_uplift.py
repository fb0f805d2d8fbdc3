"""The uplift of an online test: by hand, by simulation, and from files."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from harnessctl.errors import RecordError, UsageError
from harnessctl.evaluate.statistics.uplift import BUCKETS, Visitors, bucket, is_treated, uplift
from harnessctl.evaluate.visitor_rows import read_arms
from tests.cli.conftest import Result
from tests.cli.conftest import harnessctl as harnessctl
from tests.cli.conftest import shop as shop


def visitors(name: str, values: list[float]) -> Visitors:
    made = Visitors(name)
    for number, value in enumerate(values):
        made.add(f"{name}-{number}", value)
    return made


def test_by_hand() -> None:
    control, treatment = visitors("c", [1, 2, 3]), visitors("t", [2, 4])
    found = uplift(control, treatment)
    assert found.uplift == pytest.approx(0.5)
    error = math.sqrt(1 / 3 / 4 + 2 / 2 / 9)
    assert found.low == pytest.approx(1.5 * math.exp(-1.959964 * error) - 1)
    assert found.high == pytest.approx(1.5 * math.exp(1.959964 * error) - 1)
    assert found.split_p is None and not found.is_mismatched


def test_rows_of_one_visitor_are_one_observation() -> None:
    once, often = visitors("c", [6.0, 2.0]), Visitors("c")
    for value in (1.0, 2.0, 3.0):
        often.add("c-0", value)
    often.add("c-1", 2.0)
    assert often.values == once.values


def test_the_interval_holds_the_truth_as_often_as_it_says() -> None:
    generator = np.random.default_rng(0)
    held = 0
    for _ in range(300):
        control = visitors("c", generator.gamma(0.5, 2.0, size=400).tolist())
        treatment = visitors("t", (1.1 * generator.gamma(0.5, 2.0, size=150)).tolist())
        found = uplift(control, treatment)
        held += found.low <= 0.1 <= found.high
    assert 0.90 <= held / 300 <= 0.985


def test_buckets_are_sticky_even_and_independent_of_other_tests() -> None:
    names = [f"viewer-{number}" for number in range(20_000)]
    treated = [is_treated(name, "autumn", 0.2) for name in names]
    assert treated == [is_treated(name, "autumn", 0.2) for name in names]
    assert abs(sum(treated) / len(names) - 0.2) < 4 * math.sqrt(0.16 / len(names))
    both = Counter(zip(treated, [is_treated(name, "winter", 0.5) for name in names], strict=True))
    assert abs(both[True, True] / sum(treated) - 0.5) < 0.04
    assert min(bucket(name, "x") for name in names) >= 0 and max(bucket(name, "x") for name in names) < BUCKETS
    # What is pinned stays so: a changed hash would move visitors from arm to arm.
    assert (bucket("viewer-1", "autumn"), bucket("viewer-1", "winter")) == (6698, 9948)


def test_a_split_that_is_not_the_planned_one() -> None:
    control = visitors("c", [1.0, 2.0] * 400)
    assert uplift(control, visitors("t", [1.0, 2.0] * 100), share=0.2).split_p == 1.0
    assert uplift(control, visitors("t", [1.0, 2.0] * 70), share=0.2).is_mismatched


CSV = "visitor,ipv,arm\na,1,react\nb,3,react\nc,2,harness\nd,4,harness\na,1,react\n"


def read(path: Path, text: str, **given: str | float | None) -> tuple[Visitors, Visitors]:
    path.write_text(text)
    columns = {"visitor": "visitor", "metric": "ipv", "arm": "arm", "control": "react", "treatment": "harness"}
    return read_arms(path, **(columns | given))


def test_csv_and_json_lines_say_the_same(tmp_path: Path) -> None:
    control, treatment = read(tmp_path / "rows.csv", CSV)
    assert control.values == {"a": 2.0, "b": 3.0} and treatment.values == {"c": 2.0, "d": 4.0}
    lines = [dict(zip(["visitor", "ipv", "arm"], row.split(","), strict=True)) for row in CSV.splitlines()[1:]]
    text = "".join(json.dumps(line | {"ipv": int(line["ipv"])}) + "\n" for line in lines)
    assert read(tmp_path / "rows.jsonl", text)[0].values == control.values


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("b,3,react", "b,,react", r"rows.csv:3: no ipv"),
        ("b,3,react", "b,three,react", r"rows.csv:3: ipv 'three' is not a number"),
        ("b,3,react", "b,nan,react", r"rows.csv:3: ipv 'nan' is not a number"),
        ("b,3,react", "b,3,other", r"rows.csv:3: arm 'other' is neither arm"),
        ("d,4,harness", "a,4,harness", r"rows.csv:5: visitor 'a' is in both arms"),
        ("visitor,ipv", "viewer,ipv", r"rows.csv:2: no visitor"),
    ],
)
def test_what_is_wrong_with_a_row_has_its_line(tmp_path: Path, old: str, new: str, said: str) -> None:
    with pytest.raises(RecordError, match=said):
        read(tmp_path / "rows.csv", CSV.replace(old, new))


def test_arms_without_names(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="without a column for the arm"):
        read(tmp_path / "rows.csv", CSV, arm=None)
    with pytest.raises(UsageError, match="both called"):
        read(tmp_path / "rows.csv", CSV, control="x", treatment="x")
    text = "visitor,ipv\n" + "".join(f"v{number},{number % 5}\n" for number in range(500))
    control, treatment = read(tmp_path / "rows.csv", text, arm=None, share=0.3, salt="s")
    assert len(control.values) + len(treatment.values) == 500 and 100 < len(treatment.values) < 200


def test_the_command(harnessctl: Callable[..., Result], tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_text(CSV)
    keys = ("--metric", "ipv", "--arm", "arm", "--control", "react", "--treatment", "harness")
    shown = harnessctl("uplift", str(path), *keys)
    assert shown.code == 0 and "uplift +20.0000% [" in shown.out
    typed = harnessctl("uplift", str(path), *keys, "--json", "--share", "0.5")
    assert typed.json["uplift"] == pytest.approx(0.2) and typed.json["split_p"] == 1.0
    path.write_text("visitor,ipv,arm\na,1,react\n")
    failed = harnessctl("uplift", str(path), *keys)
    assert failed.code == 1 and "two visitors or more" in failed.err and "Traceback" not in failed.err
    gone = harnessctl("uplift", str(tmp_path / "gone.csv"), *keys)
    assert gone.code == 1 and "gone.csv" in gone.err
