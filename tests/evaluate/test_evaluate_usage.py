"""What a run took: calls, tokens, cost."""

from __future__ import annotations

from pathlib import Path

import pytest

from harnessctl.evaluate.usage import usage_of
from harnessctl.policies import PriceConfig
from harnessctl.records.trajectory import ModelCall, Trajectory, Usage
from harnessctl.trajectory import encode_trajectory, requests_ended


def trajectory(name: str, *usages: Usage, attempts: int = 1) -> Trajectory:
    calls = [ModelCall(round=0, seen=0, started_s=0, ended_s=1, usage=usage, attempts=attempts) for usage in usages]
    return Trajectory(
        id=name,
        bundle="b",
        harness="h",
        loop="harness",
        model="m",
        request={},
        context={},
        limits={},
        started="2026-01-01T00:00:00Z",
        took_s=1.0,
        stop="replied",
        reply="hello",
        route="public",
        calls=calls,
    )


def written(folder: Path, *made: Trajectory) -> Path:
    path = folder / "trajectories.jsonl"
    path.write_bytes(b"".join(encode_trajectory(one) + b"\n" for one in made))
    return path


def test_totals_by_hand(tmp_path: Path) -> None:
    path = written(
        tmp_path, trajectory("a", Usage(1000, 20), Usage(1100, 30)), trajectory("b", Usage(900, 10), attempts=3)
    )
    usage = usage_of(requests_ended(path)).priced(PriceConfig(prompt=0.5, completion=2.0))
    assert (usage.calls, usage.attempts, usage.prompt_tokens, usage.completion_tokens) == (3, 5, 3000, 60)
    assert usage.cost == pytest.approx(0.0015 + 0.00012)
    assert usage.told() == "3 calls (2 made again), 3,000 + 60 tokens read and written, cost 0.0016"


def test_calls_that_nobody_counted_make_a_lower_bound(tmp_path: Path) -> None:
    path = written(tmp_path, trajectory("a", Usage(1000, 20), Usage()))
    usage = usage_of(requests_ended(path)).priced(PriceConfig(prompt=1, completion=1))
    assert usage.unknown == 1
    assert "1 of the calls uncounted, cost at least 0.0010" in usage.told()
    assert usage_of(requests_ended(path)).cost is None
