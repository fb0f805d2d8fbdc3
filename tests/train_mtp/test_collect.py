"""Sequences from trajectories, and hidden states that are computed once."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from typing import Any

import msgspec
import pytest
import torch

from harnessctl.errors import RecordError, StorageError, TrainingError
from harnessctl.records.trajectory import Trajectory
from harnessctl.train.mtp.collect import HiddenStates, collect, open_states
from harnessctl.train.mtp.sequences import LabelledSequence, Sequences, read_sequences
from tests.train_mtp.conftest import VOCAB, hidden_of, trajectory


def written(folder: Path, *trajectories: Trajectory) -> Path:
    path = folder / "trajectories.jsonl"
    path.write_bytes(b"".join(msgspec.json.encode(one) + b"\n" for one in trajectories))
    return path


def test_paths_end_with_the_last_sampled_token(tmp_path: Path) -> None:
    path = written(
        tmp_path,
        trajectory(0, ([5, 6, 7, 8, 9], [0, 0, 1, 1, 0]), ([5, 6, 7], [0, 0, 0])),
        trajectory(1, ([5, 6], [0, 1]), ([4] * 9, [0, 0, 1, 0, 0, 0, 0, 1, 1])),
    )
    found = read_sequences([path], max_tokens=6, vocabulary=VOCAB)
    assert found.items == [
        LabelledSequence([5, 6, 7, 8], [0, 0, 1, 1], f"{path}:1: r0#0", "r0"),
        LabelledSequence([4, 4, 4], [0, 0, 1], f"{path}:2: r1#1", "r1"),
    ]
    assert (found.cut, found.dropped, found.tokens) == (1, 2, 7)
    assert read_sequences([path], max_tokens=6, vocabulary=VOCAB, limit=1).items == found.items[1:]


def test_of_the_rollouts_of_rl_the_latest(tmp_path: Path) -> None:
    """Lines as rl keeps them, in a file for each process."""
    paths = [tmp_path / "rollouts.jsonl", tmp_path / "rollouts-1.jsonl"]
    for process, path in enumerate(paths):
        lines = [
            {
                "step": step,
                "trajectory": msgspec.to_builtins(trajectory(0, ([9, process, step], [0, 0, 1]))),
                "score": {},
            }
            for step in (1, 2, 3)
        ]
        path.write_bytes(b"".join(msgspec.json.encode(line) + b"\n" for line in lines))
    found = read_sequences(paths, max_tokens=9, vocabulary=VOCAB, limit=3)
    assert [item.ids for item in found.items] == [[9, 1, 2], [9, 0, 3], [9, 1, 3]]
    siblings = [msgspec.structs.replace(trajectory(0, ([9, 8, 7], [0, 0, 1])), id=f"mini-4#7.{n}") for n in range(2)]
    path = written(tmp_path, *siblings)
    assert [item.scenario for item in read_sequences([path], max_tokens=9, vocabulary=VOCAB).items] == ["mini-4"] * 2
    paths[0].write_bytes(b'{"step": 1, "trajectory": {"id": 3}}\n')
    with pytest.raises(RecordError, match=r"rollouts\.jsonl:1: not a trajectory"):
        read_sequences(paths, max_tokens=9, vocabulary=VOCAB)


def test_sequences_of_another_model_or_none_at_all(tmp_path: Path) -> None:
    path = written(tmp_path, trajectory(0, ([5, VOCAB, 7], [0, 1, 1])))
    with pytest.raises(TrainingError, match=f"the token {VOCAB}, and the policy knows {VOCAB}"):
        read_sequences([path], max_tokens=9, vocabulary=VOCAB)
    path = written(tmp_path, trajectory(0))
    with pytest.raises(TrainingError, match="no sequence with tokens that a policy sampled"):
        read_sequences([path], max_tokens=9, vocabulary=VOCAB)


def some(lengths: tuple[int, ...] = (5, 9, 4, 12, 7)) -> Sequences:
    generator = torch.Generator().manual_seed(2)
    items = [
        LabelledSequence(
            torch.randint(2, VOCAB, (n,), generator=generator).tolist(),
            [0, 0] + [1] * (n - 2),
            f"s{place}",
            f"s{place}",
        )
        for place, n in enumerate(lengths)
    ]
    return Sequences(items, 0, 0)


def opened(folder: Path, sequences: Sequences, policy: str = "p" * 64, **options: Any) -> HiddenStates:
    given: dict[str, Any] = {"width": 32, "dtype": "float32", "shard_tokens": 16, **options}
    return open_states(folder, sequences, policy=policy, **given)


def filled(states: HiddenStates, sequences: Sequences, model: Any, **options: Any) -> HiddenStates:
    collect(states, sequences.items, model, autocast=nullcontext, batch_tokens=24, **options)
    return states


@pytest.mark.parametrize("which", ["llama", "qwen"])
def test_states_are_those_of_each_sequence_alone_after_the_final_norm(
    tmp_path: Path, which: str, request: pytest.FixtureRequest
) -> None:
    model, sequences = request.getfixturevalue(which), some()
    states = filled(opened(tmp_path, sequences), sequences, model)
    assert states.manifest.shards == [2, 2, 1]
    for number, item in enumerate(sequences.items):
        example = states.read(number)
        assert example.ids.tolist() == item.ids and example.mask.tolist() == item.mask
        assert states.mask(number).tolist() == item.mask
        alone = hidden_of(model, torch.tensor([item.ids]))[0]
        assert torch.allclose(example.hidden, alone, atol=1e-5)
        with torch.no_grad():  # the policy's own logits come from them as they are
            logits = model(input_ids=torch.tensor([item.ids]), use_cache=False).logits[0]
            assert torch.allclose(model.lm_head(example.hidden), logits, atol=1e-4)


def test_what_was_broken_off_goes_on(tmp_path: Path, llama: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    sequences = some()
    whole = filled(opened(tmp_path / "whole", sequences), sequences, llama)

    def stop(done: int, total: int) -> None:
        raise KeyboardInterrupt

    states = opened(tmp_path / "cut", sequences)
    with pytest.raises(KeyboardInterrupt):
        filled(states, sequences, llama, on_shard=stop)
    (tmp_path / "cut" / ".states-00001.safetensors.new").write_bytes(b"torn")
    assert states.missing() == [1, 2]
    seen: list[tuple[int, int]] = []
    states = filled(
        opened(tmp_path / "cut", sequences), sequences, llama, on_shard=lambda done, total: seen.append((done, total))
    )
    assert seen == [(1, 2), (2, 2)] and not states.missing()
    for shard in range(3):
        assert states.path(shard).read_bytes() == whole.path(shard).read_bytes()

    def no_forward(*args: Any, **kwargs: Any) -> Any:
        raise AssertionError("the states are there already")

    monkeypatch.setattr(type(llama), "get_decoder", no_forward)
    filled(opened(tmp_path / "cut", sequences), sequences, llama)


def test_two_processes_share_the_shards(tmp_path: Path, llama: Any) -> None:
    sequences = some()
    states = opened(tmp_path, sequences)
    written_by: list[list[int]] = []
    for process in range(2):
        before = set(states.missing())
        monitored = filled(HiddenStates(tmp_path, states.manifest), sequences, llama, process=process, processes=2)
        written_by.append(sorted(before - set(monitored.missing())))
    # The first was done before the second had looked: what is whose does not hang on that.
    assert written_by == [[0, 2], [1]] and not states.missing()


def test_half_precision(tmp_path: Path, llama: Any) -> None:
    sequences = some()
    states = filled(opened(tmp_path, sequences, dtype="bfloat16"), sequences, llama)
    assert states.read(0).hidden.dtype == torch.bfloat16
    exact = hidden_of(llama, torch.tensor([sequences.items[0].ids]))[0]
    assert torch.allclose(states.read(0).hidden.float(), exact, atol=0.02, rtol=0.01)


def test_states_of_another_policy_or_other_data_are_refused(tmp_path: Path) -> None:
    opened(tmp_path, some())
    with pytest.raises(TrainingError, match="hidden states of the policy pppppppppppp; this one is qqqqqqqqqqqq"):
        opened(tmp_path, some(), policy="q" * 64)
    with pytest.raises(TrainingError, match="along other sequences"):
        opened(tmp_path, some((5, 9)))
    with pytest.raises(TrainingError, match="32 numbers of float32; wanted 32 of float16"):
        opened(tmp_path, some(), dtype="float16")


def test_a_damaged_shard_is_named(tmp_path: Path, llama: Any) -> None:
    sequences = some()
    states = filled(opened(tmp_path, sequences), sequences, llama)
    states.path(0).write_bytes(b"nothing")
    with pytest.raises(StorageError, match="states-00000"):
        states.read(0)
