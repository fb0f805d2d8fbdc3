"""Comment inputs: what a line may be, and how one that is none is named."""

from __future__ import annotations

import io

import pytest

from harnessctl.errors import Fault, FaultsError
from harnessctl.records.requests import MAX_LINE_BYTES, MAX_LISTED, read_requests, request_lines


def read(data: bytes) -> list[str]:
    return [request.id for request in read_requests(request_lines(io.BytesIO(data)), source="c.jsonl")]


def faults(data: bytes) -> list[Fault]:
    with pytest.raises(FaultsError) as caught:
        read(data)
    return caught.value.faults


def nested(depth: int) -> bytes:
    return b'{"id":"1","text":"x","context":{"a":' + b"[" * depth + b"]" * depth + b"}}\n"


def test_bom_windows_lines_blank_lines_and_a_missing_last_newline_are_no_faults() -> None:
    assert read(b'\xef\xbb\xbf{"id":"1","text":"a"}\r\n\r\n  \n{"id":"2","text":"b"}') == ["1", "2"]


def test_half_an_emoji_becomes_a_replacement_character() -> None:
    line = b'{"id":"1","text":"cut \\ud83d","context":{"k\\udc00":["\\ud83d\\ude00 \\uD800"]}}\n'
    (request,) = read_requests(request_lines(io.BytesIO(line)), source="c.jsonl")
    assert request.text == "cut \ufffd"
    assert request.context == {"k\ufffd": ["\U0001f600 \ufffd"]}


@pytest.mark.parametrize(
    ("data", "code", "says"),
    [
        ('{"id":"1","text":"价格"}'.encode("gbk"), "input-encoding", "it may be GBK"),
        ('{"id":"1","text":"a"}'.encode("utf-16"), "input-encoding", "it is UTF-16"),
        ('{"id":"1","text":"a"}'.encode("utf-16-le"), "input-encoding", "may be UTF-16"),
        (b'{"id":"1","text":"a\xff"}', "input-encoding", "got byte 0xff"),
        (b'[{"id":"1","text":"a"}]', "input-form", "jq -c '.[]'"),
        (b'{"id":"1","text":"\\ud83d", "ts": NaN}', "input-json", "not JSON"),
        (nested(300), "input-form", "nests too deeply"),
        (nested(5000), "input-json", "depth"),
        (b'{"id":"' + b"x" * 201 + b'","text":"a"}', "input-form", "id"),
        (b'"text"', "input-form", "Expected `object`"),
    ],
)
def test_a_line_that_is_no_request_is_named(data: bytes, code: str, says: str) -> None:
    first = faults(data)[0]
    assert (first.path, first.line, first.code) == ("c.jsonl", 1, code)
    assert says in first.render()


def test_a_line_without_end_is_read_no_further_than_it_takes() -> None:
    class Counting(io.BytesIO):
        most = 0

        def readline(self, size: int | None = -1, /) -> bytes:
            line = super().readline(size)
            self.most = max(self.most, len(line))
            return line

    file = Counting(b"x" * (3 * MAX_LINE_BYTES))
    (line,) = request_lines(file)
    assert len(line) == file.most == MAX_LINE_BYTES + 2


def test_a_long_line_is_named_and_the_next_one_read() -> None:
    long = b'{"id":"1","text":"' + b"x" * MAX_LINE_BYTES + b'"}\n'
    (fault,) = faults(long + b'{"id":"2","text":"ok"}\n')
    assert (fault.line, fault.code) == (1, "input-size")


def test_a_file_of_something_else_is_not_listed_line_by_line() -> None:
    found = faults(b"id,text\n" * 500)
    assert len(found) == MAX_LISTED + 1
    assert found[-1].render() == f"c.jsonl: error[input-more]: {500 - MAX_LISTED} more lines are no requests"


def test_an_id_twice_is_named_with_the_first_place() -> None:
    (fault,) = faults(b'{"id":"1","text":"a"}\n{"id":"1","text":"b"}\n')
    assert (fault.line, fault.code) == (2, "input-id")
    assert "taken by line 1" in fault.message
