"""Wire: the part of chat completions that is read, whole or as a stream of deltas, and the reply it makes.

What always holds: a stream and the whole answer that it spells give the same reply (but for `ttft_s`); unknown
fields are passed over; a field of the wrong type is an error that names its place.
"""

from __future__ import annotations

from typing import Annotated, Any

import msgspec

from harnessctl.records.trajectory import Usage
from harnessctl.runtime.protocols import ModelReply, ModelRequest, ModelToolCall

Count = Annotated[int, msgspec.Meta(ge=0, lt=1 << 53)]
_text_decoder = msgspec.json.Decoder(str)
_NULL = msgspec.Raw(b"null")


class Function(msgspec.Struct):
    """Name and arguments of a call. Arguments are a string of JSON; some endpoints send the object itself."""

    name: str | None = None
    arguments: msgspec.Raw = _NULL

    def arguments_text(self) -> str:
        """The arguments, or the piece of them, as the model wrote them."""
        raw = bytes(self.arguments)
        if raw.startswith(b'"'):
            return _text_decoder.decode(raw)
        return "" if raw == b"null" else raw.decode()


class Call(msgspec.Struct):
    """A tool call, or a delta of the one at `index`."""

    index: int | None = None
    id: str | None = None
    function: Function | None = None

    def whole(self) -> ModelToolCall:
        """The call, where it is not a delta."""
        function = self.function
        if function is None:
            return ModelToolCall(self.id or "", "", "")
        return ModelToolCall(self.id or "", function.name or "", function.arguments_text())


class Part(msgspec.Struct):
    """A part of a content list; parts of other kinds have no text."""

    text: str | None = None


class Message(msgspec.Struct):
    """A message, or a delta of it. Endpoints write reasoning under either of two names."""

    content: str | list[Part] | None = None
    reasoning_content: str | None = None
    reasoning: str | None = None
    refusal: str | None = None
    tool_calls: list[Call] | None = None


class TokenLogprob(msgspec.Struct):
    """Log-probability of one sampled token."""

    logprob: float


class Logprobs(msgspec.Struct):
    """Log-probabilities of the sampled tokens, in order."""

    content: list[TokenLogprob] | None = None


class Choice(msgspec.Struct):
    """One of the answers; `message` of a whole one, `delta` of a stream. `token_ids` is what vLLM and SGLang add."""

    index: int = 0
    message: Message | None = None
    delta: Message | None = None
    finish_reason: str | None = None
    logprobs: Logprobs | None = None
    token_ids: list[Count] | None = None


class Tokens(msgspec.Struct):
    """Usage as endpoints send it: null where they do not count."""

    prompt_tokens: Count | None = None
    completion_tokens: Count | None = None


class Completion(msgspec.Struct):
    """A whole answer or one event of a stream; `error` stands in either where the endpoint gave up."""

    choices: list[Choice] | None = None
    usage: Tokens | None = None
    error: Any = None
    prompt_token_ids: list[Count] | None = None


_decoder = msgspec.json.Decoder(Completion)


def decode_completion(data: bytes) -> Completion:
    """`data` typed. msgspec.ValidationError names a wrong field; msgspec.DecodeError says that it is not JSON."""
    return _decoder.decode(data)


def made_up_id(request: ModelRequest, index: int) -> str:
    """An id for a call that came without one: equal for equal requests, and no other in the conversation has it."""
    return f"call_{len(request.messages)}_{index}"


def whole_reply(completion: Completion, choice: Choice, message: Message, request: ModelRequest) -> ModelReply:
    """The reply that a whole answer is; empty text is null. `message` is the one of `choice`."""
    return ModelReply(
        content=_content_text(message) or message.refusal or None,
        tool_calls=_tool_calls([call.whole() for call in message.tool_calls or ()], request),
        reasoning=message.reasoning_content or message.reasoning or None,
        finish_reason=choice.finish_reason,
        usage=_usage(completion.usage),
        prompt_ids=completion.prompt_token_ids,
        completion_ids=choice.token_ids,
        logprobs=_logprobs(choice),
    )


class ReplyDraft:
    """A reply under way. `finished` says that the endpoint gave a finish reason."""

    def __init__(self) -> None:
        self.finished = False
        self._content: list[str] = []
        self._reasoning: list[str] = []
        self._refusal: list[str] = []
        self._calls: list[_CallDraft] = []
        self._open: dict[int, _CallDraft] = {}
        self._finish_reason: str | None = None
        self._usage: Tokens | None = None
        self._prompt_ids: list[int] | None = None
        self._ids: list[int] | None = None
        self._logprobs: list[float] | None = None

    def add(self, event: Completion) -> bool:
        """Take one event in; true when it brought text, reasoning or a part of a call."""
        if event.usage is not None:
            self._usage = event.usage
        if event.prompt_token_ids is not None:
            self._prompt_ids = event.prompt_token_ids
        brought = False
        for choice in event.choices or ():
            if choice.index == 0:
                brought = self._add_choice(choice) or brought
        return brought

    def finish(self, request: ModelRequest, *, ttft_s: float | None) -> ModelReply:
        """The reply; empty text is null. Ids and log-probabilities are passed on as they came, paired or not."""
        calls = sorted(self._calls, key=lambda call: call.index) if len(self._calls) > 1 else self._calls
        return ModelReply(
            content="".join(self._content) or "".join(self._refusal) or None,
            tool_calls=_tool_calls([ModelToolCall(c.id, c.name, "".join(c.arguments)) for c in calls], request),
            reasoning="".join(self._reasoning) or None,
            finish_reason=self._finish_reason,
            usage=_usage(self._usage),
            ttft_s=ttft_s,
            prompt_ids=self._prompt_ids,
            completion_ids=self._ids,
            logprobs=self._logprobs,
        )

    def _add_choice(self, choice: Choice) -> bool:
        if choice.finish_reason is not None:
            self._finish_reason = choice.finish_reason
            self.finished = True
        if choice.token_ids is not None:
            self._ids = (self._ids or []) + choice.token_ids
        logprobs = _logprobs(choice)
        if logprobs is not None:
            self._logprobs = (self._logprobs or []) + logprobs
        delta = choice.delta if choice.delta is not None else choice.message
        return delta is not None and self._add_delta(delta)

    def _add_delta(self, delta: Message) -> bool:
        content = _content_text(delta)
        reasoning = delta.reasoning_content or delta.reasoning
        if content:
            self._content.append(content)
        if reasoning:
            self._reasoning.append(reasoning)
        if delta.refusal:
            self._refusal.append(delta.refusal)
        for call in delta.tool_calls or ():
            self._call_of(call).add(call)
        return bool(content or reasoning or delta.refusal or delta.tool_calls)

    def _call_of(self, call: Call) -> _CallDraft:
        """The draft that a delta belongs to: the one at its index.

        Some endpoints give every parallel call index 0: an id that differs begins a new call where a name comes with
        it. Without an index an id or a name begins a new call, and anything else goes to the latest.
        """
        named = call.function is not None and bool(call.function.name)
        if call.index is None:
            known = None if call.id or named or not self._calls else self._calls[-1]
        else:
            known = self._open.get(call.index)
            if known is not None and call.id and known.id and call.id != known.id and named:
                known = None
        if known is not None:
            return known
        draft = _CallDraft(len(self._calls) if call.index is None else call.index)
        self._calls.append(draft)
        self._open[draft.index] = draft
        return draft


class _CallDraft:
    """A call under way: its arguments arrive in pieces."""

    __slots__ = ("arguments", "id", "index", "name")

    def __init__(self, index: int) -> None:
        self.index = index
        self.id = ""
        self.name = ""
        self.arguments: list[str] = []

    def add(self, call: Call) -> None:
        if call.id:
            self.id = call.id
        if call.function is not None:
            name = call.function.name
            if name and name != self.name:  # some endpoints repeat the whole name in every delta
                self.name += name
            self.arguments.append(call.function.arguments_text())


def _content_text(message: Message) -> str | None:
    content = message.content
    return "".join(part.text or "" for part in content) if isinstance(content, list) else content


def _logprobs(choice: Choice) -> list[float] | None:
    if choice.logprobs is None or choice.logprobs.content is None:
        return None
    return [token.logprob for token in choice.logprobs.content]


def _usage(tokens: Tokens | None) -> Usage:
    return Usage() if tokens is None else Usage(tokens.prompt_tokens or 0, tokens.completion_tokens or 0)


def _tool_calls(calls: list[ModelToolCall], request: ModelRequest) -> list[ModelToolCall]:
    """`calls`, where an id that is missing or used twice is made up."""
    seen: set[str] = set()
    for position, call in enumerate(calls):
        if not call.id or call.id in seen:
            call.id = made_up_id(request, position)
        seen.add(call.id)
    return calls
