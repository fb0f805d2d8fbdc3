"""Server-sent events: splits the bytes of a `text/event-stream` into the data of its events.

What always holds: the data that come out depend on the bytes that went in, never on how they were cut into chunks.
Lines end with LF, CRLF or CR; comments and fields other than `data` are passed over; several `data` lines of one event
are joined by LF (HTML standard, section 9.2.6).
"""

from __future__ import annotations

_BOM = b"\xef\xbb\xbf"


class EventSplitter:
    """An incremental parser. Its memory is the unfinished event: the reader of the stream bounds the bytes it feeds."""

    def __init__(self) -> None:
        self._line: list[bytes] = []  # pieces of the unfinished line: joined once, so tiny chunks cost linear time
        self._data: list[bytes] = []
        self._ended_with_cr = False
        self._head: bytes | None = b""  # the first bytes, until it is known whether they are a byte order mark

    def feed(self, chunk: bytes) -> list[bytes]:
        """Take `chunk` in; returns the data of the events that it completed."""
        if not chunk:
            return []
        if self._head is not None:
            chunk = self._head + chunk
            if len(chunk) < len(_BOM) and _BOM.startswith(chunk):
                self._head = chunk
                return []
            self._head = None
            chunk = chunk.removeprefix(_BOM)
        if self._ended_with_cr:
            chunk = chunk.removeprefix(b"\n")
        self._ended_with_cr = chunk.endswith(b"\r")
        if b"\r" in chunk:
            chunk = chunk.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        lines = chunk.split(b"\n")
        last = lines.pop()
        if lines and self._line:
            lines[0] = b"".join(self._line) + lines[0]
            self._line.clear()
        if last:
            self._line.append(last)
        return self._take(lines)

    def close(self) -> list[bytes]:
        """The data of an event that the end of the stream left without its blank line, if any.

        The standard drops it; servers exist that end with `data: [DONE]` and no newline.
        """
        line = (self._head or b"") + b"".join(self._line)
        self._line.clear()
        self._head = None
        return self._take([line, b""] if line else [b""])

    def _take(self, lines: list[bytes]) -> list[bytes]:
        """The data of the events that `lines` (without their ends) complete."""
        events: list[bytes] = []
        data = self._data
        for line in lines:
            if not line:
                if data:
                    events.append(data[0] if len(data) == 1 else b"\n".join(data))
                    data.clear()
            elif line.startswith(b"data:"):
                data.append(line[6:] if line.startswith(b"data: ") else line[5:])
            elif line == b"data":
                data.append(b"")
        return events
