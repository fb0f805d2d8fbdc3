from __future__ import annotations

import itertools

from hypothesis import given
from hypothesis import strategies as st

from harnessctl.runtime.models.sse import EventSplitter

RECORDED = (
    "\ufeff: a comment\r\n"
    'event: message\r\nid: 7\r\ndata: {"a": 1}\r\n\r\n'
    "data:first line\ndata: second line\ndata\n\n"
    "\n\n"
    "retry: 10\n: ping\n\n"
    "data:  two blanks, one of them dropped\r\r"
    "data: 价格 39.90 元 🎉\n\n"
    "data: [DONE]\n\n"
).encode()
EVENTS = [
    b'{"a": 1}',
    b"first line\nsecond line\n",
    b" two blanks, one of them dropped",
    "价格 39.90 元 🎉".encode(),
    b"[DONE]",
]


def events(chunks):
    splitter = EventSplitter()
    found = [event for chunk in chunks for event in splitter.feed(chunk)]
    return found, splitter.close()


def cut(data: bytes, places: list[int]) -> list[bytes]:
    edges = [0, *sorted(places), len(data)]
    return [data[start:end] for start, end in itertools.pairwise(edges)]


def test_every_kind_of_line():
    assert events([RECORDED]) == (EVENTS, [])


def test_one_byte_at_a_time():
    assert events([bytes([byte]) for byte in RECORDED]) == (EVENTS, [])


@given(st.lists(st.integers(0, len(RECORDED)), max_size=12))
def test_chunk_boundaries_do_not_matter(places):
    assert events(cut(RECORDED, places)) == (EVENTS, [])


@given(st.lists(st.sampled_from([b"data: a", b"data:", b"\r", b"\n", b"\r\n", b":", b"\xef\xbb\xbf", b"x"])), st.data())
def test_any_bytes_come_out_the_same_however_they_are_cut(pieces, data):
    stream = b"".join(pieces)
    places = data.draw(st.lists(st.integers(0, len(stream)), max_size=8))
    assert events(cut(stream, places)) == events([stream])


def test_an_event_without_its_blank_line_is_given_at_the_end():
    assert events([b"data: a\n\ndata: [DONE]"]) == ([b"a"], [b"[DONE]"])
    assert events([b"data: a\n\ndata: [DONE]\n"]) == ([b"a"], [b"[DONE]"])


def test_a_long_event_in_tiny_chunks_takes_linear_time():
    size = 200_000
    assert events([b"data: ", *[b"x"] * size, b"\n\n"]) == ([b"x" * size], [])
