from pathlib import Path

import msgspec
import pytest

from harnessctl.bundle import HarnessState, make_bundle, read_bundle, write_bundle
from harnessctl.bundle.state import Block, Limit, Part, Prompt, Rule, Skill
from harnessctl.errors import BundleError


def state(text: str = "Say the fact first.") -> HarnessState:
    skill = Skill(
        name="qa", kind="reply", description=["Answers."], body=[Part(rules=["r"])], rules=[Rule(id="r", text=[text])]
    )
    return HarnessState(
        skills=[skill],
        tools=[],
        hooks=[],
        prompt=Prompt(blocks=[Block(id="base", template="Hello")]),
        limits={"max_rounds": Limit(value=4)},
    )


def test_a_bundle_comes_back_as_it_was_written(tmp_path: Path):
    bundle = make_bundle(state(), name="host", version="1.0.0", sources={"a": "b"})
    path = write_bundle(bundle, tmp_path)
    assert path.name == f"host-1.0.0+{bundle.digest[:12]}.bundle.json"
    assert read_bundle(path) == bundle


def test_only_the_state_decides_the_digest():
    one = make_bundle(state(), name="host", version="1.0.0", source_map={"x": ["f", 1, 1]})
    assert one.digest == make_bundle(state(), name="other", version="2.0.0").digest
    assert one.digest != make_bundle(state("Say it later."), name="host", version="1.0.0").digest


def test_each_flipped_byte_of_the_state_is_noticed(tmp_path: Path):
    path = write_bundle(make_bundle(state(), name="host", version="1.0.0"), tmp_path)
    whole = path.read_bytes()
    at = whole.index(b"Say the fact")
    for offset in range(12):
        altered = bytearray(whole)
        altered[at + offset] ^= 1
        path.write_bytes(altered)
        with pytest.raises(BundleError, match=r"digest|not a bundle"):
            read_bundle(path)


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "not a bundle"),
        (b"[]", "not a bundle of format"),
        (b'{"format": "harnessctl/bundle.v0"}', "not a bundle of format"),
        (b'{"format": "harnessctl/bundle.v1"}', "digest"),
    ],
)
def test_what_is_no_bundle_is_refused(tmp_path: Path, content: bytes, says: str):
    path = tmp_path / "x.bundle.json"
    path.write_bytes(content)
    with pytest.raises(BundleError, match=says):
        read_bundle(path)


def test_an_unknown_field_of_the_state_is_refused(tmp_path: Path):
    bundle = make_bundle(state(), name="host", version="1.0.0")
    document = msgspec.to_builtins(bundle)
    document["state"]["surprise"] = 1
    path = tmp_path / "x.bundle.json"
    path.write_bytes(msgspec.json.encode(document))
    with pytest.raises(BundleError):
        read_bundle(path)
    with pytest.raises(BundleError, match="surprise"):
        read_bundle(path, verify=False)
