"""Files that say they are bundles and are none that can be trusted: each refused with the cause, none a crash."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson
import pytest

from harnessctl.bundle import read_bundle
from harnessctl.bundle.files import FORMAT
from harnessctl.errors import BundleError
from harnessctl.storage import digest

STATE: dict[str, Any] = {
    "skills": [],
    "tools": [],
    "hooks": [],
    "prompt": {"blocks": []},
    "limits": {},
    "surface": {},
}


def written(path: Path, **changes: Any) -> Path:
    document = {"format": FORMAT, "name": "shop", "version": "1.0.0", "state": STATE, **changes}
    if "digest" not in document:
        document["digest"] = digest(document["state"])
    path.write_bytes(orjson.dumps(document))
    return path


def test_the_plain_one_is_read(tmp_path: Path) -> None:
    assert read_bundle(written(tmp_path / "b")).name == "shop"


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"state": {**STATE, "newer": 1}}, "unknown field `newer`"),
        ({"newer": 1}, "unknown field `newer`"),
        ({"state": {**STATE, "tools": 3}}, "Expected `array`, got `int` - at `$.state.tools`"),
        ({"name": "../../x"}, "its name and version make no file name: '../../x-1.0.0"),
        ({"version": "1.0.0\n"}, "make no file name"),
        ({"name": "x" * 300}, "make no file name"),
        ({"state": {**STATE, "files": {"a": 2**60 + 1}}, "digest": "x"}, "not a bundle: not representable as canonical JSON"),
    ],
)  # fmt: skip
def test_what_it_says_is_not_what_a_bundle_says(tmp_path: Path, changes: dict[str, Any], said: str) -> None:
    with pytest.raises(BundleError) as error:
        read_bundle(written(tmp_path / "b", **changes))
    assert said in error.value.message and str(tmp_path / "b") in error.value.message


def test_one_of_another_version_says_so(tmp_path: Path) -> None:
    with pytest.raises(BundleError) as error:
        read_bundle(written(tmp_path / "b", state={**STATE, "newer": 1}))
    assert "it may be of another version of harnessctl" in error.value.hint


def test_a_state_that_is_nested_without_end(tmp_path: Path) -> None:
    path = tmp_path / "b"
    path.write_bytes(b'{"format":"%s","state":%s%s}' % (FORMAT.encode(), b"[" * 900, b"]" * 900))
    with pytest.raises(BundleError, match="nested too deeply"):
        read_bundle(path)
