"""Where no rollouts were kept, the policy is let answer first."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from harnessctl.bundle.files import Bundle
from harnessctl.compile.revision import compiled
from harnessctl.records.lineage import Lineage
from harnessctl.train.mtp.sampling import sample_rollouts
from harnessctl.train.mtp.stage import STAGE
from harnessctl.trajectory.reader import read_trajectories
from tests.decode.conftest import make_llama, make_tokenizer
from tests.train_mtp.conftest import saved
from tests.train_mtp.test_stage import job

SAMPLE = {"n": 3, "rows": 2, "sampling": {"max_tokens": 6}}


@pytest.fixture(scope="module")
def policy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return saved(tmp_path_factory.mktemp("policy") / "policy", make_llama(make_tokenizer(), context=4096))


@pytest.fixture(scope="module")
def mini(repository: Path) -> Bundle:
    return compiled(repository, "mini")


def test_a_run_without_rollouts_samples_its_own_once(
    tmp_path: Path, repository: Path, policy: Path, mini: Bundle
) -> None:
    said: list[str] = []
    short = {"steps": 1, "lr": 1e-3}
    given = job(
        tmp_path, policy, said.append, sample=SAMPLE, temperature=0.8, loop=short, row_tokens=1200, max_tokens=1200
    )
    object.__setattr__(given, "root", repository)
    object.__setattr__(given, "bundle", mini)
    path = sample_rollouts(given)
    found = list(read_trajectories(path))
    assert len({one.id for one in found}) == 3 and all(one.paths for one in found)
    assert found[0].sampling["temperature"] == 0.8
    assert {one.seeds["agent"] for one in found} == {1 << 33}, "scenarios that no evaluation and no other stage draws"
    path.write_bytes(b"".join(msgspec.json.encode(one) + b"\n" for one in found[:2]) + b'{"torn')
    STAGE.run(given)
    given.metrics.close()
    assert said.count("rollouts: 2 of 3") == 1 and said.count("rollouts: 3 of 3") == 2
    assert [one.paths for one in read_trajectories(path)] == [one.paths for one in found]
    lineage = msgspec.json.decode((tmp_path / "checkpoint" / "lineage.json").read_bytes(), type=Lineage)
    assert lineage.head.state == "trained" and lineage.bundles == [mini.digest]
