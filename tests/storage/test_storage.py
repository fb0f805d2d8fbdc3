import os
import resource
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harnessctl.errors import RecordError, StorageError
from harnessctl.storage import (
    JsonLinesWriter,
    canonical_json,
    cut_torn_line,
    digest,
    read_json_lines,
    write_atomic,
)


def test_canonical_json_sorts_keys_and_writes_numbers_as_rfc_8785_says():
    assert canonical_json({"b": 1.0, "a": [1e21, "é"], "": None}) == '{"":null,"a":[1e+21,"é"],"b":1}'.encode()


@pytest.mark.parametrize("value", [2**53 + 1, -(10**30), float("nan"), float("inf"), "\ud800", {"é": [[2**53 + 1]]}])
def test_what_canonical_json_cannot_hold_is_a_clear_error(value):
    with pytest.raises(StorageError, match="canonical JSON"):
        canonical_json({"x": value})


def test_digest_does_not_depend_on_key_order():
    assert digest({"a": 1, "b": 2}) == digest({"b": 2, "a": 1})
    assert len(digest({})) == 64


def test_an_atomic_write_replaces_the_file_and_leaves_nothing_else(tmp_path: Path):
    path = tmp_path / "deep" / "x.json"
    write_atomic(path, b"one")
    write_atomic(path, b"two")
    assert path.read_bytes() == b"two"
    assert [p.name for p in path.parent.iterdir()] == ["x.json"]


def test_a_failed_write_keeps_the_old_file_and_names_the_cause(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    path = tmp_path / "x.json"
    write_atomic(path, b"old")

    def full(fd: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(StorageError, match=r"cannot write .*x\.json: No space left"):
        write_atomic(path, b"new")
    assert path.read_bytes() == b"old"
    assert [p.name for p in tmp_path.iterdir()] == ["x.json"]


def test_lines_come_back_with_their_numbers(tmp_path: Path):
    path = tmp_path / "t.jsonl"
    with JsonLinesWriter(path) as writer:
        writer.write(b'{"a":1}')
        writer.write(b'{"a":2}')
    assert list(read_json_lines(path)) == [(1, {"a": 1}), (2, {"a": 2})]


def test_a_bad_line_names_path_line_and_cause(tmp_path: Path):
    path = tmp_path / "t.jsonl"
    path.write_bytes(b'{"a":1}\n{oops}\n{"a":3}\n')
    with pytest.raises(RecordError, match=r"t\.jsonl:2: not JSON"):
        list(read_json_lines(path))


@given(
    lines=st.lists(st.dictionaries(st.text(max_size=4), st.integers(-9999, 9999), max_size=3), max_size=5),
    cut=st.integers(0, 200),
)
@settings(max_examples=60, deadline=None)
def test_whatever_the_tear_whole_lines_survive_and_writing_goes_on(tmp_path_factory, lines, cut):
    path = tmp_path_factory.mktemp("torn") / "t.jsonl"
    with JsonLinesWriter(path) as writer:
        for line in lines:
            writer.write(canonical_json(line))
    whole = path.read_bytes()
    torn = whole[: max(0, len(whole) - cut)]
    path.write_bytes(torn)
    kept = torn[: torn.rfind(b"\n") + 1]
    assert cut_torn_line(path) == len(torn) - len(kept)
    with JsonLinesWriter(path) as writer:
        writer.write(b'{"after":1}')
    assert path.read_bytes() == kept + b'{"after":1}\n'


def test_kill_9_leaves_whole_lines_only(tmp_path: Path):
    path = tmp_path / "t.jsonl"
    code = f"""
        from pathlib import Path
        from harnessctl.storage import JsonLinesWriter
        writer = JsonLinesWriter(Path({str(path)!r}))
        print("go", flush=True)
        while True:
            writer.write(b'{{"x":"' + b"y" * 5000 + b'"}}')
    """
    process = subprocess.Popen([sys.executable, "-c", textwrap.dedent(code)], stdout=subprocess.PIPE)
    assert process.stdout is not None
    process.stdout.readline()
    while not path.stat().st_size > 100_000:
        pass
    process.send_signal(signal.SIGKILL)
    process.wait()
    process.stdout.close()
    cut_torn_line(path)
    assert all(document == {"x": "y" * 5000} for _, document in read_json_lines(path))


def test_a_full_disk_is_a_clear_error_and_leaves_whole_lines(tmp_path: Path):
    path = tmp_path / "t.jsonl"
    code = f"""
        import resource, signal, sys
        from pathlib import Path
        from harnessctl.errors import StorageError
        from harnessctl.storage import JsonLinesWriter
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (2500, {resource.RLIM_INFINITY}))
        writer = JsonLinesWriter(Path({str(path)!r}))
        try:
            while True:
                writer.write(b'"' + b"y" * 998 + b'"')
        except StorageError as error:
            print(error)
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, check=True)
    assert f"cannot write {path}" in done.stdout
    assert [len(document) for _, document in read_json_lines(path)] == [998, 998]
    assert path.stat().st_size == 2002
