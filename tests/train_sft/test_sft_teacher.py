"""A teacher behind an endpoint that fails half the time: counted, asked again, and the run goes on."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from sft_project import Project, sft_config

from harnessctl.augment.stream import Stream
from harnessctl.errors import ModelError, TrainingError
from harnessctl.evaluate.config import FaultsConfig
from harnessctl.evaluate.setting import Setting
from harnessctl.policies import ModelConfig
from harnessctl.records.scenario import Scenario
from harnessctl.runtime.protocols import ModelReply, ModelRequest
from harnessctl.simulate.oracle import Oracle
from harnessctl.train.sft.config import TeacherConfig
from harnessctl.train.sft.data import data_of
from harnessctl.train.sft.gathering import evaluation_config

CALM = FaultsConfig(timeout=0.0, malformed=0.0, denied=0.0, stale=0.0)


class Flaky:
    """The oracle behind an endpoint that gives no answer in a share of its calls."""

    name = "flaky"
    template = None

    def __init__(self, inner: Oracle, share: float) -> None:
        self._inner = inner
        self._share = share
        self.is_closed = False

    async def complete(self, request: ModelRequest) -> ModelReply:
        if Stream("flaky", request.request_id, request.sampling.seed or 0).chance(self._share):
            raise ModelError("503: no healthy upstream", retryable=False)
        return await self._inner.complete(request)

    async def aclose(self) -> None:
        self.is_closed = True


@pytest.fixture
def flaky(project: Project, monkeypatch: pytest.MonkeyPatch) -> Callable[[float], Flaky]:
    """Puts one in the place of an endpoint."""

    def make(share: float) -> Flaky:
        with Setting(project.root, project.bundle, evaluation_config(sft_config())) as setting:
            scenarios: dict[str, Scenario] = {s.request.id: s for s in map(setting.scenario, range(12))}
        made = Flaky(Oracle(project.bundle, scenarios.__getitem__), share)
        monkeypatch.setattr("harnessctl.train.sft.teacher.open_policy", lambda *_: made)
        return made

    return make


def gathered(project: Project, folder: Path, **keys: Any) -> dict[str, int]:
    data = {"n": 12, "workers": 3, "faults": CALM} | keys.pop("data", {})
    teacher = TeacherConfig(policy="openai", model=ModelConfig(name="flaky"), **keys)
    return data_of(project.job(folder, sft_config(harness="fixed", teacher=teacher, data=data))).card.counts


def test_half_the_calls_fail_and_the_run_goes_on(
    project: Project, tmp_path: Path, flaky: Callable[[float], Flaky]
) -> None:
    model = flaky(0.3)
    counts = gathered(project, tmp_path, retries=5)
    failed = counts["failed: teacher: model_error"]
    assert failed > 3
    assert counts["tries"] == failed + counts["accepted"]
    assert (
        counts["pairs with a sample"] + counts.get("rejected: the teacher gave no answer", 0) == counts["pairs"] == 12
    )
    assert counts["pairs with a sample"] > 8
    assert model.is_closed


def test_tries_are_bounded(project: Project, tmp_path: Path, flaky: Callable[[float], Flaky]) -> None:
    flaky(1.0)
    with pytest.raises(
        TrainingError,
        match=r"^0 of 12 pairs .*failed: teacher: model_error 36, tries 36.*rejected: the teacher gave no answer 12.*"
        r"the teacher most often said: 503: no healthy upstream$",
    ):
        gathered(project, tmp_path, retries=2)


def test_the_ids_are_those_that_the_policy_would_have_read(
    project: Project, tmp_path: Path, flaky: Callable[[float], Flaky]
) -> None:
    """An endpoint's words in the policy's template are what the oracle's are."""
    flaky(0.0)
    keys: dict[str, Any] = {"n": 6, "faults": CALM}
    gathered(project, tmp_path / "endpoint", data=keys | {"workers": 1})
    data_of(project.job(tmp_path / "oracle", sft_config(harness="fixed", data=keys)))
    lines = [(tmp_path / name / "data/data.jsonl").read_bytes().count(b'"learnt"') for name in ("endpoint", "oracle")]
    assert lines == [6, 6]
