"""Policy saves: what training changed is new, everything else is as it was, byte for byte."""

from __future__ import annotations

import json
import os
import resource
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

from harnessctl.checkpoint.layout import head_digest, read_layout, weights_digest
from harnessctl.checkpoint.policy import check_checkpoint, is_base, next_lineage, read_lineage, save_checkpoint
from harnessctl.checkpoint.shards import read_shard
from harnessctl.errors import CheckpointError, RecordError, StorageError
from harnessctl.records.lineage import Head
from tests.checkpoint.conftest import (
    DENSE,
    Dying,
    Killed,
    drawn,
    file_digests,
    head_of,
    policy_tensors,
    some_lineage,
    write_checkpoint,
)

Q = "model.language_model.layers.1.self_attn.q_proj.weight"
INDEX = "model.safetensors.index.json"


def all_tensors(folder: Path) -> dict[str, torch.Tensor]:
    found: dict[str, torch.Tensor] = {}
    for path in sorted(folder.glob("*.safetensors")):
        found |= load_file(path)
    return found


@pytest.mark.parametrize("shards", [1, 3])
def test_only_what_was_given_changes(tmp_path: Path, shards: int):
    old = policy_tensors() | head_of()
    source = write_checkpoint(tmp_path / "source", old, shards=shards)
    new = {Q: torch.randn(64, 32)}
    before = file_digests(source)
    save_checkpoint(tmp_path / "target", source=source, changed=new, lineage=some_lineage())
    assert file_digests(source) == before
    after = file_digests(tmp_path / "target")
    touched = read_layout(source).files[Q]
    assert {name for name in before.keys() | after.keys() if before.get(name) != after.get(name)} == {
        touched,
        "lineage.json",
    }
    found = all_tensors(tmp_path / "target")
    assert found.keys() == old.keys()
    for name, tensor in old.items():
        assert found[name].dtype == tensor.dtype
        assert torch.equal(found[name], new[Q].to(torch.bfloat16) if name == Q else tensor)
    was, is_now = read_shard(source / touched), read_shard(tmp_path / "target" / touched)
    assert was.head == is_now.head, "names, order, offsets and metadata of the file are as they were"
    place = was.tensors[Q]
    one, other = (path.read_bytes() for path in (was.path, is_now.path))
    assert one[: place.start] == other[: place.start]
    assert one[place.end :] == other[place.end :]


def test_the_lineage_is_written_with_digests_and_the_state_of_the_head(tmp_path: Path):
    source = write_checkpoint(tmp_path / "source", policy_tensors() | head_of(), shards=2)
    lineage = next_lineage(source, stage="sft", recipe={"loop": {"lr": 0.1}}, steps=7, seeds={"run": 1})
    assert lineage.parent == lineage.base == weights_digest(source)
    assert is_base(lineage, source)
    first = tmp_path / "first"
    written = save_checkpoint(first, source=source, changed={Q: torch.ones(64, 32)}, lineage=lineage)
    assert read_lineage(first) == written
    assert written.weights == weights_digest(first) != lineage.parent
    assert written.head == Head(state="carried", source="native", weights=head_digest(source))
    check_checkpoint(first, content=True)

    onward = next_lineage(first, stage="rl", recipe={})
    assert (onward.base, onward.parent, onward.base_path) == (lineage.base, written.weights, str(source))
    assert is_base(onward, source)
    assert not is_base(onward, first)
    second = save_checkpoint(
        tmp_path / "second", source=first, changed={Q: torch.zeros(64, 32)}, lineage=onward, head="stale"
    )
    assert second.head.state == "stale"
    third = save_checkpoint(tmp_path / "third", source=tmp_path / "second", changed={}, lineage=onward)
    assert third.head.state == "stale", "a stale head does not become fresh by being carried on"
    assert third.head.weights == head_digest(source)


def test_acceptance_is_not_passed_on_to_another_policy(tmp_path: Path):
    source = write_checkpoint(tmp_path / "source", policy_tensors() | head_of())
    trained = Head(state="trained", source="fresh", depths=3, acceptance={"after": [0.9, 0.8, 0.7]})
    (source / "lineage.json").write_bytes(_encoded(some_lineage(head=trained)))
    written = save_checkpoint(tmp_path / "target", source=source, changed={}, lineage=some_lineage())
    assert written.head == Head(state="carried", source="fresh", depths=3, weights=head_digest(source))


def _encoded(value: Any) -> bytes:
    import msgspec

    return msgspec.json.encode(value)


def test_a_policy_without_a_head(tmp_path: Path):
    config = {"model_type": "llama", "tie_word_embeddings": False}
    source = write_checkpoint(tmp_path / "source", policy_tensors(), config=config)
    written = save_checkpoint(tmp_path / "target", source=source, changed={}, lineage=some_lineage())
    assert written.head == Head()
    assert head_digest(source) is None


def test_a_head_that_the_config_claims_and_the_folder_lacks(tmp_path: Path):
    source = write_checkpoint(tmp_path / "source", policy_tensors(), shards=2)
    with pytest.raises(CheckpointError, match=r"claims 1 layer of a draft head, and 19 of 19 tensors are missing") as e:
        save_checkpoint(tmp_path / "target", source=source, changed={}, lineage=some_lineage())
    assert "accept length of 1" in e.value.hint
    assert "mtp.layers.0.mlp.experts.gate_up_proj" in e.value.message
    assert not (tmp_path / "target").exists()
    written = save_checkpoint(tmp_path / "target", source=source, changed={}, lineage=some_lineage(), head="stale")
    assert written.head.state == "none"
    with pytest.raises(CheckpointError, match="19 of 19"):
        check_checkpoint(tmp_path / "target")
    check_checkpoint(tmp_path / "target", head=False, content=True)


def test_tied_embeddings(tmp_path: Path):
    table, output = "model.embed_tokens.weight", "lm_head.weight"
    rest = drawn({"model.norm.weight": (32,)}) | head_of(DENSE)
    new = torch.randn(40, 32)
    once = write_checkpoint(tmp_path / "once", {table: torch.ones(40, 32)} | rest, config=DENSE)
    for number, changed in enumerate(({table: new}, {output: new}, {table: new, output: new.clone()})):
        target = tmp_path / f"once-{number}"
        save_checkpoint(target, source=once, changed=changed, lineage=some_lineage())
        found = all_tensors(target)
        assert output not in found
        assert torch.equal(found[table], new)
    both = {table: torch.ones(40, 32), output: torch.ones(40, 32)}
    twice = write_checkpoint(tmp_path / "twice", both | rest, config=DENSE, shards=2)
    for number, name in enumerate((table, output)):
        target = tmp_path / f"twice-{number}"
        save_checkpoint(target, source=twice, changed={name: new}, lineage=some_lineage())
        found = all_tensors(target)
        assert torch.equal(found[table], new)
        assert torch.equal(found[output], new)
    with pytest.raises(CheckpointError, match="tied by the config"):
        save_checkpoint(tmp_path / "no", source=once, changed={table: new, output: new + 1}, lineage=some_lineage())


def test_tensors_that_do_not_fit_are_all_listed_before_anything_is_written(tmp_path: Path):
    source = write_checkpoint(tmp_path / "source", policy_tensors() | head_of())
    changed = {Q: torch.zeros(3, 3), "model.nowhere": torch.zeros(1), "mtp.fc.weight": torch.zeros(32, 64)}
    with pytest.raises(CheckpointError) as caught:
        save_checkpoint(tmp_path / "target", source=source, changed=changed, lineage=some_lineage())
    for says in ("3 of 3 tensors", "got shape [3, 3], stored [64, 32]", "model.nowhere: no such", "`export_head`"):
        assert says in caught.value.message
    assert [path.name for path in tmp_path.iterdir()] == ["source"]


@pytest.mark.parametrize(
    ("values", "says"), [(float("nan"), "not numbers"), (float("inf"), "not numbers"), (1e38, "range of F16")]
)
def test_weights_that_are_no_numbers_are_not_saved(tmp_path: Path, values: float, says: str):
    config = {"model_type": "llama"}
    source = write_checkpoint(tmp_path / "source", {"w": torch.ones(2, dtype=torch.float16)}, config=config)
    with pytest.raises(CheckpointError, match=says):
        save_checkpoint(
            tmp_path / "target", source=source, changed={"w": torch.tensor([1.0, values])}, lineage=some_lineage()
        )
    assert [path.name for path in tmp_path.iterdir()] == ["source"]


def test_quantised_tensors_are_carried_and_not_written(tmp_path: Path):
    tensors = {"w": torch.ones(4).to(torch.float8_e4m3fn), "v": torch.ones(2)}
    source = write_checkpoint(tmp_path / "source", tensors, config={"model_type": "llama"})
    save_checkpoint(tmp_path / "target", source=source, changed={"v": torch.zeros(2)}, lineage=some_lineage())
    assert all_tensors(tmp_path / "target")["w"].dtype == torch.float8_e4m3fn
    with pytest.raises(CheckpointError, match="F8_E4M3, quantised"):
        save_checkpoint(tmp_path / "no", source=source, changed={"w": torch.zeros(4)}, lineage=some_lineage())


def test_weights_in_other_forms_and_what_speaks_of_the_source_stay_behind(tmp_path: Path):
    source = write_checkpoint(tmp_path / "source", policy_tensors() | head_of(), shards=2)
    for name in ("pytorch_model.bin", "training_args.bin", "consolidated.safetensors", ".hidden", "card.json"):
        (source / name).write_bytes(b"old")
    write_checkpoint(source / "older", policy_tensors())
    (source / "older" / "lineage.json").write_bytes(_encoded(some_lineage()))
    save_checkpoint(tmp_path / "target", source=source, changed={}, lineage=some_lineage())
    assert sorted(file_digests(tmp_path / "target")) == sorted(
        [
            "chat_template.jinja", "config.json", "extra/notes.txt", "lineage.json", "tokenizer.json", INDEX,
            "model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors",
        ]
    )  # fmt: skip


def test_an_older_checkpoint_is_replaced_and_other_folders_are_not(tmp_path: Path):
    source = write_checkpoint(tmp_path / "source", policy_tensors() | head_of())
    target = tmp_path / "target"
    for value in (1.0, 2.0):
        save_checkpoint(target, source=source, changed={Q: torch.full((64, 32), value)}, lineage=some_lineage())
        assert float(all_tensors(target)[Q][0, 0]) == value
    save_checkpoint(target, source=target, changed={Q: torch.full((64, 32), 3.0)}, lineage=some_lineage())
    assert float(all_tensors(target)[Q][0, 0]) == 3.0
    other = tmp_path / "other"
    other.mkdir()
    (other / "thesis.txt").write_text("precious")
    with pytest.raises(CheckpointError, match="is there already"):
        save_checkpoint(other, source=source, changed={}, lineage=some_lineage())
    assert (other / "thesis.txt").read_text() == "precious"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["other", "source", "target"]


def _killed_at(call: int, target: Path, source: Path, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Save as a process does that is killed before the given call that changes the disk: that one fails and all after
    it. False when there are not so many calls."""
    dying = Dying(call)
    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", dying(os.fsync))
        patched.setattr(os, "replace", dying(os.replace))
        patched.setattr(Path, "rename", dying(Path.rename))
        patched.setattr("shutil.rmtree", lambda *_, **__: None)
        try:
            save_checkpoint(target, source=source, changed={"w": torch.full((4,), 2.0)}, lineage=some_lineage())
        except Killed:
            return True
    return False


def test_an_end_before_any_rename_or_sync_leaves_a_whole_checkpoint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    source = tmp_path / "source"
    source.mkdir()
    (source / "config.json").write_text("{}")
    save_file({"w": torch.full((4,), 1.0)}, source / "model.safetensors")
    found: list[float] = []
    for call in range(1, 60):
        target = tmp_path / str(call) / "target"
        save_checkpoint(target, source=source, changed={}, lineage=some_lineage())
        is_killed = _killed_at(call, target, source, monkeypatch)
        if target.exists():
            found.append(float(all_tensors(check_checkpoint(target, content=True).folder)["w"][0]))
        save_checkpoint(target, source=source, changed={}, lineage=some_lineage())
        assert [path.name for path in target.parent.iterdir()] == ["target"]
        if not is_killed:
            break
    assert len(found) > 6
    assert found == sorted(found)
    assert set(found) == {1.0, 2.0}


def test_a_save_that_was_killed_between_its_renames_is_put_right(tmp_path: Path):
    source = write_checkpoint(tmp_path / "source", policy_tensors() | head_of())
    target = tmp_path / "target"
    save_checkpoint(target, source=source, changed={}, lineage=some_lineage())
    target.rename(tmp_path / ".target.old-0123abcd")
    with pytest.raises(CheckpointError):
        save_checkpoint(target, source=source, changed={Q: torch.full((64, 32), float("nan"))}, lineage=some_lineage())
    check_checkpoint(target, content=True)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["source", "target"]


@pytest.fixture
def full_disk() -> Iterator[None]:
    """Files cannot grow beyond 6,000 bytes; the system refuses the write as a full disk does."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (6000, hard))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_a_full_disk_leaves_the_older_checkpoint(tmp_path: Path, request: pytest.FixtureRequest):
    source = write_checkpoint(tmp_path / "source", policy_tensors() | head_of())
    target = tmp_path / "target"
    save_checkpoint(target, source=source, changed={}, lineage=some_lineage())
    before = file_digests(target)
    request.getfixturevalue("full_disk")
    with pytest.raises(StorageError, match="cannot write"):
        save_checkpoint(target, source=source, changed={Q: torch.ones(64, 32)}, lineage=some_lineage())
    assert file_digests(target) == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["source", "target"]


def _edit_index(folder: Path, change: Any) -> None:
    index = json.loads((folder / INDEX).read_text())
    change(index["weight_map"])
    (folder / INDEX).write_text(json.dumps(index))


SECOND = "model-00002-of-00002.safetensors"


@pytest.mark.parametrize(
    ("damage", "says"),
    [
        (lambda f: (f / SECOND).unlink(), "1 of 2 files of weights are missing: model-00002"),
        (lambda f: (f / SECOND).write_bytes((f / SECOND).read_bytes()[:-1]), "cut short"),
        (lambda f: (f / SECOND).write_bytes(b""), "not a safetensors file"),
        (lambda f: (f / SECOND).write_bytes(b"\x05" + bytes(7) + b"{nope"), "header .* damaged"),
        (lambda f: _edit_index(f, lambda m: m.pop(Q)), "q_proj.weight is in .*, and the index has it nowhere"),
        (lambda f: _edit_index(f, lambda m: m.update(ghost=SECOND)), "ghost is not in model-00002"),
        (lambda f: _edit_index(f, lambda m: m.update(ghost="../x.safetensors")), "files of the folder itself"),
        (lambda f: _edit_index(f, lambda m: m.clear()), "maps tensors to files"),
        (lambda f: (f / "config.json").write_text("{"), r"config\.json: not JSON"),
        (lambda f: (f / "config.json").unlink(), r"holds no config\.json"),
        (lambda f: (f / INDEX).unlink(), "holds no model weights"),
        (lambda f: save_file({"a": torch.ones(1)}, f / "model.safetensors"), "index that does not list it"),
    ],
)
def test_damaged_checkpoints(tmp_path: Path, damage: Any, says: str):
    source = write_checkpoint(tmp_path / "source", policy_tensors() | head_of(), shards=2)
    check_checkpoint(source)
    damage(source)
    with pytest.raises(CheckpointError, match=says):
        check_checkpoint(source)


def test_what_is_no_checkpoint_says_what_to_do(tmp_path: Path):
    (tmp_path / "adapter_model.safetensors").write_bytes(b"")
    with pytest.raises(CheckpointError) as caught:
        check_checkpoint(tmp_path)
    assert "merge it" in caught.value.hint
    with pytest.raises(CheckpointError) as caught:
        check_checkpoint(tmp_path / "nowhere")
    assert "no such folder" in caught.value.hint


def test_weights_that_are_not_those_of_the_lineage(tmp_path: Path):
    source = write_checkpoint(tmp_path / "source", policy_tensors() | head_of())
    target = tmp_path / "target"
    save_checkpoint(target, source=source, changed={}, lineage=some_lineage())
    content = bytearray((target / "model.safetensors").read_bytes())
    content[-1] ^= 1
    (target / "model.safetensors").write_bytes(content)
    check_checkpoint(target)
    with pytest.raises(CheckpointError, match=r"lineage\.json says"):
        check_checkpoint(target, content=True)


def test_a_lineage_of_another_version_is_named(tmp_path: Path):
    assert read_lineage(tmp_path) is None
    (tmp_path / "lineage.json").write_text('{"format": "harnessctl/lineage.v9"}')
    with pytest.raises(RecordError, match=r"not a lineage of harnessctl/lineage\.v1: .*lineage\.v9"):
        read_lineage(tmp_path)
