from pathlib import Path

import pytest

from harnessctl.errors import RecordError, StorageError, UsageError
from harnessctl.records.run import Run
from harnessctl.runs import RunFolder, utc_now


def record(name: str = "host") -> Run:
    return Run(job="run", name=name, started=utc_now(), config="")


def test_a_run_holds_its_config_and_can_be_opened_again(tmp_path: Path):
    run = RunFolder.create(tmp_path, record(), "seed: 1\n")
    run.record.counts["done"] = 3
    run.finish("done")
    again = RunFolder.open(tmp_path / "runs" / "latest-run")
    assert again.path == run.path
    assert again.record.status == "done"
    assert again.record.counts == {"done": 3}
    assert (run.path / "config.yaml").read_text() == "seed: 1\n"


def test_latest_points_to_the_newest(tmp_path: Path):
    RunFolder.create(tmp_path, record("a"), "")
    second = RunFolder.create(tmp_path, record("b"), "")
    assert (tmp_path / "runs" / "latest-run").resolve() == second.path


def test_a_run_never_writes_over_another(tmp_path: Path):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "x").write_text("x")
    with pytest.raises(UsageError, match="not empty"):
        RunFolder.create(tmp_path, record(), "", folder=tmp_path / "mine")


@pytest.mark.parametrize(
    "content", ["", "{}", "[]", "7", '{"format":"harnessctl/run.v0"}', '{"format":"harnessctl/run.v1","job":1}']
)
def test_what_is_no_run_is_refused_by_name(tmp_path: Path, content: str):
    (tmp_path / "run.json").write_text(content)
    with pytest.raises(RecordError, match=r"run\.json"):
        RunFolder.open(tmp_path)


def test_no_run_there(tmp_path: Path):
    with pytest.raises(RecordError, match=r"no run\.json"):
        RunFolder.open(tmp_path)


def test_a_file_is_no_place_for_a_run(tmp_path: Path):
    (tmp_path / "mine").write_text("x")
    with pytest.raises(UsageError, match="is a file"):
        RunFolder.create(tmp_path, record(), "", folder=tmp_path / "mine")


def test_a_run_elsewhere_leaves_nothing_beside_it(tmp_path: Path):
    RunFolder.create(tmp_path, record(), "", folder=tmp_path / "mine")
    assert [path.name for path in tmp_path.iterdir()] == ["mine"]


def test_a_folder_that_cannot_be_written_is_not_left_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    def full(path: Path, data: bytes) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        raise StorageError(f"cannot write {path}: No space left on device")

    monkeypatch.setattr("harnessctl.runs.write_atomic", full)
    with pytest.raises(StorageError, match="No space left"):
        RunFolder.create(tmp_path, record(), "")
    assert list((tmp_path / "runs").iterdir()) == []


def test_a_run_is_held_by_one_at_a_time(tmp_path: Path):
    run = RunFolder.create(tmp_path, record(), "")
    with run.held("t.jsonl") as path:
        assert path == run.path / "t.jsonl"
        with pytest.raises(UsageError, match="another process"), RunFolder.open(run.path).held("t.jsonl"):
            pass
    with run.held("t.jsonl"):
        pass
