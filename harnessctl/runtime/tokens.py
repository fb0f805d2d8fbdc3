"""Token paths: the ids that the model saw and said, joined call by call, with masks and logprobs.

What always holds: a path's ids begin with the whole context of its first call and grow only at the end; the mask is 1
on sampled ids of this request and nowhere else; ids, mask and logprobs have one length.
"""

from __future__ import annotations

import math

from harnessctl.records.trajectory import ModelCall, TokenPath
from harnessctl.runtime.protocols import ModelReply


class TokenPaths:
    """The paths of one request. `prefix_ids` and `prefix_messages` are what the next call must begin with, if known.

    A prefix left by an earlier turn of a session is given at the start; its ids count as seen, never as sampled.
    """

    __slots__ = ("_is_open", "paths", "prefix_ids", "prefix_messages")

    def __init__(self, prefix_ids: list[int] | None = None, prefix_messages: int = 0) -> None:
        self.paths: list[TokenPath] = []
        self.prefix_ids = prefix_ids
        self.prefix_messages = prefix_messages if prefix_ids is not None else 0
        self._is_open = False

    def record(self, reply: ModelReply, call: ModelCall, messages: int) -> list[str]:
        """Join one answer to the path and point `call` at it; returns warnings.

        `messages` is how many messages the path then covers, the model's own included. A prompt that does not begin
        with the path so far starts a new path. An answer without ids closes the path.
        """
        if reply.prompt_ids is None or reply.completion_ids is None:
            self.prefix_ids, self.prefix_messages, self._is_open = None, 0, False
            return []
        warnings: list[str] = []
        prompt, sampled = reply.prompt_ids, reply.completion_ids
        known = len(self.paths[-1].ids) if self._is_open else 0
        if not (self._is_open and prompt[:known] == self.paths[-1].ids):
            if self.prefix_ids is not None and prompt[: len(self.prefix_ids)] != self.prefix_ids:
                warnings.append(f"call {call.round}: the model rendered history anew; a new token path begins")
            self.paths.append(TokenPath(ids=[], mask=[], logprobs=[]))
            self._is_open, known = True, 0
        path = self.paths[-1]
        seen = len(prompt) - known
        path.ids += prompt[known:]
        path.ids += sampled
        path.mask += [0] * seen + [1] * len(sampled)
        logprobs = reply.logprobs
        if logprobs is None or len(logprobs) != len(sampled):
            got = "none" if logprobs is None else str(len(logprobs))
            warnings.append(f"call {call.round}: {len(sampled)} sampled ids and {got} logprobs; logprobs are left at 0")
            logprobs = [0.0] * len(sampled)
        elif not math.isfinite(sum(logprobs)):
            warnings.append(f"call {call.round}: logprobs that are no numbers; they are left at 0")
            logprobs = [value if math.isfinite(value) else 0.0 for value in logprobs]
        path.logprobs += [0.0] * seen
        path.logprobs += logprobs
        call.path = len(self.paths) - 1
        call.tokens = (known + seen, len(path.ids))
        self.prefix_ids = list(path.ids)
        self.prefix_messages = messages
        return warnings
