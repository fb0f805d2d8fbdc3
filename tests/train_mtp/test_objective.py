"""What a step's data is, for one process and for two, in one row and in several."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

import msgspec
import pytest
import torch

from harnessctl.train.mtp.acceptance import measure
from harnessctl.train.mtp.collect import HiddenStates, collect, open_states
from harnessctl.train.mtp.config import MtpConfig
from harnessctl.train.mtp.head import NextNHead
from harnessctl.train.mtp.objective import MtpObjective, split
from harnessctl.train.mtp.rows import read_row
from harnessctl.train.mtp.sequences import LabelledSequence, Sequences
from tests.train_mtp.conftest import VOCAB
from tests.train_mtp.test_head import head_of


@pytest.fixture(scope="module")
def states(tmp_path_factory: pytest.TempPathFactory, llama: Any) -> HiddenStates:
    generator = torch.Generator().manual_seed(4)
    lengths = [6, 9, 4, 12, 7, 5, 8, 10]
    items = [
        LabelledSequence(
            torch.randint(2, VOCAB, (n,), generator=generator).tolist(), [0] * (n // 2) + [1] * (n - n // 2), "s", "s"
        )
        for n in lengths
    ]
    folder = tmp_path_factory.mktemp("states")
    found = open_states(folder, Sequences(items, 0, 0), policy="p" * 64, width=32, dtype="float32", shard_tokens=30)
    collect(found, items, llama, autocast=nullcontext, batch_tokens=64)
    return found


def objective(states: HiddenStates, head: NextNHead, process: int = 0, processes: int = 1, **keys: Any) -> MtpObjective:
    given = {"model": {"name": "x"}, "loop": {"steps": 9, "lr": 1e-3}, "row_tokens": 16, "rows": 4, **keys}
    config = msgspec.convert(given, MtpConfig)
    return MtpObjective(
        states,
        range(8),
        [0],
        head,
        config,
        autocast=nullcontext,
        process=process,
        processes=processes,
    )


def gradient(
    objectives: list[MtpObjective], head: NextNHead, step: int
) -> tuple[float, torch.Tensor, dict[str, float]]:
    """Loss, gradient and shown means of one step that these share."""
    head.zero_grad()
    total, shown, weights = 0.0, dict[str, float](), set()
    for one in objectives:
        data = one.data(step)
        weights.add(data.weight)
        for micro in data.micro:
            loss, sums = one.loss(micro)
            loss.backward()
            total += float(loss.detach())
            for name, value in sums.items():
                shown[name] = shown.get(name, 0.0) + value / data.weight
    (weight,) = weights
    assert head.fc.weight.grad is not None
    return total / weight, head.fc.weight.grad / weight, shown


@pytest.mark.parametrize("weights", ["equal", "decay"])
def test_two_processes_equal_one(states: HiddenStates, llama: Any, weights: str) -> None:
    head = head_of(llama)
    alone = gradient([objective(states, head, weights=weights)], head, 1)
    both = gradient([objective(states, head, p, 2, weights=weights) for p in range(2)], head, 1)
    three = [objective(states, head, p, 3, weights=weights) for p in range(3)]
    assert {len(one.data(1).micro) for one in three} == {2}, (
        "as many rows for each, empty ones where there are none left"
    )
    for found in (both, gradient(three, head, 1)):
        assert found[0] == pytest.approx(alone[0], rel=1e-5)
        assert torch.allclose(found[1], alone[1], atol=1e-6)
        assert found[2] == pytest.approx(alone[2], rel=1e-5)


def test_one_row_equals_several(states: HiddenStates, llama: Any) -> None:
    """An epoch in one row, and in rows of one sequence or two."""
    head = head_of(llama)
    whole = gradient([objective(states, head, row_tokens=61, rows=1)], head, 0)
    parts = objective(states, head, row_tokens=12, rows=1)
    several = gradient([objective(states, head, row_tokens=12, rows=parts._batches.per_epoch)], head, 0)
    assert parts._batches.per_epoch >= 6
    assert several[0] == pytest.approx(whole[0], rel=1e-5)
    assert torch.allclose(several[1], whole[1], atol=1e-6)
    assert several[2] == pytest.approx(whole[2], rel=1e-5)


@pytest.mark.parametrize(("weights", "beta"), [("equal", 0.5), ("decay", 0.5)])
def test_the_loss_is_the_weighted_mean_over_depths_and_places(
    states: HiddenStates, llama: Any, weights: str, beta: float
) -> None:
    """By a loop over depths and places, with every depth computed everywhere."""
    head = head_of(llama)
    one = objective(states, head, weights=weights, beta=beta)
    found, _, shown = gradient([one], head, 1)
    total, z, counted = 0.0, 0.0, [0, 0, 0]
    for micro in one.data(1).micro:
        row = micro.row
        with torch.no_grad():
            outputs = head(row.hidden, row.ids, row.segments, row.positions, 3, "teacher")
        for depth in range(3):
            weight = 1.0 if weights == "equal" else beta**depth
            for t in range(row.ids.shape[1] - 2 - depth):
                by = t + 2 + depth
                if row.segments[0, by] == row.segments[0, t] and row.mask[0, by]:
                    log_p = head.logits(outputs[depth][0, t]).log_softmax(-1)[row.ids[0, by]]
                    total, z, counted[depth] = total - weight * float(log_p), z + weight, counted[depth] + 1
    assert counted[0] > counted[1] > counted[2] > 0
    assert found == pytest.approx(total / z, rel=1e-4)
    mean = sum((1.0 if weights == "equal" else beta**k) * n * shown[f"loss/depth_{k}"] for k, n in enumerate(counted))
    assert mean / z == pytest.approx(found, rel=1e-4), "what is shown of each depth is its mean"


def test_acceptance_is_measured_at_the_temperature_of_the_recipe(states: HiddenStates, llama: Any) -> None:
    head = head_of(llama)
    found = objective(states, head, temperature=0.5, top_p=0.9).acceptance()
    assert (found.temperature, found.top_p) == (0.5, 0.9)
    assert found == measure(head, [read_row(states, [0], head)], depths=3, temperature=0.5, top_p=0.9)
    assert found.sampled != objective(states, head).acceptance().sampled


def test_the_data_of_a_step_is_a_function_of_seed_and_step(states: HiddenStates, llama: Any) -> None:
    head = head_of(llama)

    def ids(step: int, **keys: Any) -> list[list[int]]:
        return [micro.row.ids.tolist() for micro in objective(states, head, **keys).data(step).micro]

    once = objective(states, head)
    assert [micro.row.ids.tolist() for micro in (once.data(5), once.data(2))[1].micro] == ids(2)
    assert ids(2) != ids(3) and ids(2) != ids(2, seed=1)


def test_held_out_sequences_are_not_trained_on() -> None:
    apart = [f"s{number}" for number in range(40)]
    train, heldout = split(apart, 8, seed=3)
    assert sorted(train + heldout) == list(range(40)) and len(heldout) == 8
    assert split(apart, 8, seed=3) == (train, heldout) != split(apart, 8, seed=4)
    train, heldout = split(apart[:6], 32, seed=0)
    assert (len(train), len(heldout)) == (5, 1)


def test_rollouts_of_a_held_out_scenario_are_not_trained_on() -> None:
    """Siblings of a group say nearly the same: a head that has learnt them is not measured on the rest."""
    for seed in range(5):
        train, heldout = split([f"s{number % 5}" for number in range(20)], 3, seed=seed)
        assert sorted(train + heldout) == list(range(20)) and len(heldout) == 4
        assert len({number % 5 for number in heldout}) == 1 and not {n % 5 for n in train} & {n % 5 for n in heldout}
        train, heldout = split(["few", *["many"] * 9], 5, seed=seed)
        assert train and heldout and sorted(train + heldout) == list(range(10))
    train, heldout = split(["one"] * 8, 8, seed=0)
    assert (len(train), len(heldout)) == (6, 2)
