"""The loop against what it promises: sums, not means; resumption bit for bit; a stop before the weights are spoilt."""

from __future__ import annotations

import copy
import errno
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from harnessctl.checkpoint.resume import ResumePoints
from harnessctl.errors import CheckpointError, StorageError, TrainingError
from harnessctl.train.config import LoopConfig
from harnessctl.train.held import put_back
from harnessctl.train.loop import Loop
from harnessctl.train.metrics import Metrics, read_metrics
from harnessctl.train.optimizer import parameter_groups, scale_at
from tests.train_core.conftest import Processes
from tests.train_core.small import Rows, config, make_small, train_small, weights_of


def trained(
    folder: Path, *, micro: int = 1, given: LoopConfig | None = None, **rows: object
) -> dict[str, torch.Tensor]:
    model = make_small()
    loop = Loop(model, given or config(), points=ResumePoints(folder / "points"), seed=3)
    objective = Rows(model, micro=micro)
    for name, value in rows.items():
        setattr(objective, name, value)
    with Metrics(folder, board=False) as metrics:
        loop.run(objective, metrics)
    return weights_of(model)


def assert_close(one: dict[str, torch.Tensor], other: dict[str, torch.Tensor], within: float) -> None:
    assert one.keys() == other.keys()
    for name, value in one.items():
        torch.testing.assert_close(value, other[name], rtol=0, atol=within)


def test_four_micro_batches_equal_one(tmp_path: Path):
    assert_close(trained(tmp_path / "one"), trained(tmp_path / "four", micro=4), 1e-6)
    one, four = (read_metrics(tmp_path / name)[-1] for name in ("one", "four"))
    assert one["loss"] == pytest.approx(four["loss"], rel=1e-5) and one["grad_norm"] == pytest.approx(four["grad_norm"])


def test_a_step_is_adamw_on_the_mean_over_the_weight_clipped(tmp_path: Path):
    model = make_small()
    by_hand = copy.deepcopy(model)
    settings = config(steps=1, warmup=0, schedule="constant", clip=0.5, save_every=1)
    loop = Loop(model, settings, points=ResumePoints(tmp_path), seed=3)
    loop.run(Rows(model), Metrics(None))
    torch.manual_seed(3 << 24)
    rows = Rows(by_hand)
    loss, _ = rows.loss(rows.data(0).micro[0])
    (loss / 8).backward()
    torch.nn.utils.clip_grad_norm_(by_hand.parameters(), 0.5)
    optimizer = torch.optim.AdamW(parameter_groups(by_hand, 0.1), lr=0.02, betas=(0.9, 0.95))
    optimizer.step()
    assert_close(weights_of(model), weights_of(by_hand), 1e-7)


def test_only_matrices_decay_and_frozen_ones_stay(tmp_path: Path):
    model = make_small()
    decayed, plain = parameter_groups(model, 0.1)
    assert {p.ndim for p in decayed["params"]} == {2} and {p.ndim for p in plain["params"]} == {1}
    assert len(decayed["params"]) + len(plain["params"]) == sum(p.requires_grad for p in model.parameters())
    before = model.frozen.weight.clone()
    assert torch.equal(trained(tmp_path)["frozen.weight"], before)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory, processes: Processes) -> Path:
    """The folder of a training in one process that nobody disturbed."""
    folder = tmp_path_factory.mktemp("whole")
    assert processes.run(train_small, folder) == 0
    return folder


def weights_in(folder: Path) -> dict[str, torch.Tensor]:
    return load_file(folder / "weights.safetensors")


def test_two_processes_equal_one(tmp_path: Path, whole: Path, processes: Processes):
    assert processes.together(train_small, tmp_path) == [0, 0]
    assert_close(weights_in(whole), weights_in(tmp_path), 1e-6)
    first, second = read_metrics(whole)[-1], read_metrics(tmp_path)[-1]
    assert first["loss"] == pytest.approx(second["loss"], rel=1e-5)
    assert second["second"] == 0.25  # a sum that the first process does not have


def test_kill_9_and_resume_equals_an_unbroken_run(tmp_path: Path, whole: Path, processes: Processes):
    # The point is that of step 2, where the layer `rare` has had no gradient, and so has no moments.
    assert processes.run(train_small, tmp_path, kill_step=3) == -9
    assert processes.run(train_small, tmp_path) == 0
    assert_close(weights_in(whole), weights_in(tmp_path), 0.0)
    kept = [
        [{k: v for k, v in line.items() if "second" not in k} for line in read_metrics(f)] for f in (whole, tmp_path)
    ]
    assert kept[0] == kept[1]


@pytest.mark.slow
def test_weights_sharded_over_two_processes_equal_one_and_resume(tmp_path: Path, processes: Processes):
    # Sharded layers are gathered by all processes or by none: here none is called in one process alone.
    whole, shared = tmp_path / "whole", tmp_path / "shared"
    for folder in (whole, shared):
        folder.mkdir()
    assert processes.run(train_small, whole, environment={"RARE_EVERYWHERE": "1"}) == 0
    assert processes.together(train_small, shared, SHARDED="1", RARE_EVERYWHERE="1") == [0, 0]
    assert_close(weights_in(whole), weights_in(shared), 1e-6)
    for path in (shared / "points").glob("step-00000006*"):
        path.unlink()
    (shared / "weights.safetensors").unlink()
    assert processes.together(train_small, shared, SHARDED="1", RARE_EVERYWHERE="1") == [0, 0]
    assert_close(weights_in(whole), weights_in(shared), 1e-6)


@pytest.mark.parametrize("save_every", [1, 2])
def test_a_loss_that_is_no_number_stops_before_the_weights_are_touched(tmp_path: Path, save_every: int):
    with pytest.raises(TrainingError) as caught:
        trained(tmp_path, given=config(save_every=save_every), bad_step=3)
    good = 3 if save_every == 1 else 2
    assert f"step 4: the loss is not a number; the last good state is that of step {good}" in caught.value.message
    model = make_small(seed=9)
    loop = Loop(model, config(), points=ResumePoints(tmp_path / "points"))
    assert loop.resume() == good
    assert all(bool(value.isfinite().all()) for value in weights_of(model).values())


def test_a_loss_that_is_no_number_at_the_first_step(tmp_path: Path):
    with pytest.raises(TrainingError, match="step 1: the loss is not a number; there is no earlier state"):
        trained(tmp_path, bad_step=0)


def test_a_gradient_that_is_no_number_stops_though_the_loss_is_one(tmp_path: Path):
    class Edge(Rows):
        def loss(self, micro):
            total, shown = super().loss(micro)
            if micro[0] == 1:  # 0 has a root, and the root has no slope there
                total = total + (0.0 * self.model.last.bias.sum()).sqrt()
            return total, shown

    model = make_small()
    loop = Loop(model, config(save_every=1, clip=1e9), points=ResumePoints(tmp_path), seed=3)
    with pytest.raises(
        TrainingError, match="step 2: the gradient is not a number; the last good state is that of step 1"
    ):
        loop.run(Edge(model), Metrics(None))
    assert all(bool(value.isfinite().all()) for value in weights_of(model).values())


def test_a_step_without_weight_changes_nothing_and_goes_on(tmp_path: Path):
    settings = config(steps=2, save_every=1)
    one = trained(tmp_path / "one", given=config(steps=1, save_every=1, warmup=1, schedule="constant"))
    two = trained(
        tmp_path / "two", given=config(steps=2, save_every=1, warmup=1, schedule="constant"), empty_steps=(1,)
    )
    assert_close(one, two, 0.0)
    line = read_metrics(tmp_path / "two")[-1]
    assert (line["step"], line["skipped"], line["loss"], line["tokens_per_second"]) == (2, 1.0, 0.0, 0.0)
    assert trained(tmp_path / "none", given=settings, empty_steps=(0, 1))["last.bias"].isfinite().all()


def test_a_full_disk_stops_the_run_and_keeps_the_point_from_before(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    real = ResumePoints.save

    def save(self: ResumePoints, step: int, *rest: object) -> None:
        if step == 4:
            with monkeypatch.context() as full:

                def refuse(*_: object) -> None:
                    raise OSError(errno.ENOSPC, "No space left on device")

                full.setattr("os.fsync", refuse)
                real(self, step, *rest)
        real(self, step, *rest)

    monkeypatch.setattr(ResumePoints, "save", save)
    with pytest.raises(StorageError, match="No space left"):
        trained(tmp_path)
    monkeypatch.undo()
    assert ResumePoints(tmp_path / "points").newest_step() == 2
    loop = Loop(make_small(), config(), points=ResumePoints(tmp_path / "points"), seed=3)
    assert loop.resume() == 2


def test_an_interrupt_keeps_the_last_whole_step(tmp_path: Path):
    class Interrupted(Rows):
        def loss(self, micro):
            if micro[0] == 3:
                raise KeyboardInterrupt
            return super().loss(micro)

    model = make_small()
    loop = Loop(model, config(), points=ResumePoints(tmp_path / "points"), seed=3)
    with pytest.raises(KeyboardInterrupt), Metrics(tmp_path, board=False) as metrics:
        loop.run(Interrupted(model), metrics)
    again = make_small()
    torch.nn.init.zeros_(again.first.weight)
    loop = Loop(again, config(), points=ResumePoints(tmp_path / "points"), seed=3)
    assert loop.resume() == 3
    with Metrics(tmp_path, board=False) as metrics:
        loop.run(Rows(again), metrics)
    assert_close(weights_of(again), trained(tmp_path / "whole"), 0.0)


def test_what_is_put_back_lies_where_the_parameters_are(tmp_path: Path):
    model = make_small()
    loop = Loop(model, config(steps=2), points=ResumePoints(tmp_path / "points"), seed=3)
    loop.run(Rows(model), Metrics(None))
    kept = ResumePoints(tmp_path / "points").newest()
    assert kept is not None
    # A device that is none, in the place of a GPU: its optimizer cannot read a count of steps that lies elsewhere.
    elsewhere = make_small().to("meta")
    optimizer = torch.optim.AdamW(parameter_groups(elsewhere, 0.1))
    put_back(elsewhere, optimizer, kept.tensors())
    held = [value for state in optimizer.state.values() for value in state.values()]
    assert len(held) == 3 * 8 and {value.device.type for value in held} == {"meta"}


def test_a_state_of_another_model_is_refused(tmp_path: Path):
    trained(tmp_path)
    other = torch.nn.Linear(6, 8)
    with pytest.raises(CheckpointError, match="only one of the two has"):
        Loop(other, config(), points=ResumePoints(tmp_path / "points")).resume()
    wider = make_small()
    wider.last = torch.nn.Linear(8, 2)
    with pytest.raises(CheckpointError, match=r"last\.weight has the shape \(1, 8\), now \(2, 8\)"):
        Loop(wider, config(), points=ResumePoints(tmp_path / "points")).resume()


def test_nothing_that_moves_is_refused(tmp_path: Path):
    with pytest.raises(TrainingError, match="nothing would be trained"):
        Loop(make_small().requires_grad_(False), config(), points=ResumePoints(tmp_path))


def test_the_rate_warms_up_and_goes_down():
    linear, cosine = config(steps=10, warmup=4, schedule="linear"), config(steps=10, warmup=4)
    assert [scale_at(step, linear) for step in range(4)] == [0.25, 0.5, 0.75, 1.0]
    assert [round(scale_at(step, linear), 4) for step in (4, 7, 10)] == [1.0, 0.5, 0.0]
    assert [round(scale_at(step, cosine), 4) for step in (4, 7, 10)] == [1.0, 0.5, 0.0]
    assert scale_at(9, config(steps=10, warmup=0, schedule="constant")) == 1.0


def test_an_interrupt_where_the_objective_cannot_go_on_keeps_no_point(tmp_path: Path):
    class Interrupted(Rows):
        def data(self, step):
            if step == 3:
                raise KeyboardInterrupt
            return super().data(step)

    model = make_small()
    points = ResumePoints(tmp_path / "points")
    with pytest.raises(KeyboardInterrupt):
        Loop(model, config(), points=points).run(
            Interrupted(model), Metrics(None), goes_on_at=lambda step: step % 2 == 0
        )
    assert points.newest_step() == 2
