"""Viewer names in records: kept, hashed or dropped, before anybody sees them."""

from __future__ import annotations

import pytest

from harnessctl.errors import UsageError
from harnessctl.records.comment import CommentInput, ViewerMessage
from harnessctl.trajectory import ViewerNames


def group(*viewers: str) -> CommentInput:
    return CommentInput(id="1", messages=[ViewerMessage("hi", viewer) for viewer in viewers])


def named(names: ViewerNames, *viewers: str) -> list[str]:
    return [m.viewer for m in names.apply(group(*viewers)).viewer_messages()]


def test_names_are_kept_unless_asked() -> None:
    request = group("Ann")
    assert ViewerNames().apply(request) is request


def test_hashes_are_equal_for_equal_names_under_one_key() -> None:
    names = ViewerNames("hash", b"secret")
    first, second, third = named(names, "Ann", "Bo", "Ann")
    assert first == third != second and first.startswith("viewer-") and len(first) == 19
    assert named(names, "Ann") == [first]
    assert named(ViewerNames("hash", b"other"), "Ann") != [first]
    assert named(names, "viewer") == ["viewer"]


def test_dropped_names_can_still_be_told_apart() -> None:
    names = ViewerNames("drop")
    assert named(names, "Ann", "Bo", "Ann", "viewer") == ["viewer-1", "viewer-2", "viewer-1", "viewer"]
    assert named(names, "Ann") == ["viewer"]


def test_a_hash_needs_a_key() -> None:
    with pytest.raises(UsageError, match="without a key"):
        ViewerNames("hash")
