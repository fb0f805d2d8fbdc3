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
        function = call.function
        if function is None:
            return
        if function.name and function.name != self.name:  # some endpoints repeat the whole name in every delta
            self.name += function.name
        self.arguments.append(function.arguments_text())


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

    def add(self, completion: Completion) -> bool:
        """Take a whole answer or one event in; true when it brought text, reasoning or a part of a call."""
        if completion.usage is not None:
            self._usage = completion.usage
        if completion.prompt_token_ids is not None:
            self._prompt_ids = completion.prompt_token_ids
        brought = False
        for choice in completion.choices or ():
            if choice.index == 0:
                brought = self._add_choice(choice) or brought
        return brought

    def _add_choice(self, choice: Choice) -> bool:
        if choice.finish_reason is not None:
            self._finish_reason = choice.finish_reason
            self.finished = True
        if choice.token_ids is not None:
            self._ids = (self._ids or []) + choice.token_ids
        if choice.logprobs is not None and choice.logprobs.content is not None:
            self._logprobs = (self._logprobs or []) + [token.logprob for token in choice.logprobs.content]
        if choice.message is not None:
            return self._add_message(choice.message, whole=True)
        return choice.delta is not None and self._add_message(choice.delta, whole=False)

    def _add_message(self, message: Message, *, whole: bool) -> bool:
        content = message.content
        if isinstance(content, list):
            content = "".join(part.text or "" for part in content)
        reasoning = message.reasoning_content or message.reasoning
        if content:
            self._content.append(content)
        if reasoning:
            self._reasoning.append(reasoning)
        if message.refusal:
            self._refusal.append(message.refusal)
        for call in message.tool_calls or ():
            self._call_of(call, whole=whole).add(call)
        return bool(content or reasoning or message.refusal or message.tool_calls)

    def _call_of(self, call: Call, *, whole: bool) -> _CallDraft:
        """The draft that `call` belongs to. In a whole answer each call is its own.

        A delta goes to the call at its index. Some endpoints give every parallel call index 0: an id that differs
        begins a new call where a name comes with it. Without an index an id or a name begins a new call, and
        anything else goes to the latest.
        """
        if not whole:
            begins = bool(call.id or (call.function is not None and call.function.name))
            if call.index is None:
                known = None if begins or not self._calls else self._calls[-1]
            else:
                known = self._open.get(call.index)
                named = call.function is not None and bool(call.function.name)
                if known is not None and call.id and known.id and call.id != known.id and named:
                    known = None
            if known is not None:
                return known
        draft = _CallDraft(len(self._calls) if call.index is None or whole else call.index)
        self._calls.append(draft)
        self._open[draft.index] = draft
        return draft

    def finish(self, request: ModelRequest, *, ttft_s: float | None) -> ModelReply:
        """The reply; empty text is null. Ids and log-probabilities are passed on as they came, paired or not."""
        usage = self._usage
        return ModelReply(
            content="".join(self._content) or "".join(self._refusal) or None,
            tool_calls=self._tool_calls(request),
            reasoning="".join(self._reasoning) or None,
            finish_reason=self._finish_reason,
            usage=Usage() if usage is None else Usage(usage.prompt_tokens or 0, usage.completion_tokens or 0),
            ttft_s=ttft_s,
            prompt_ids=self._prompt_ids,
            completion_ids=self._ids,
            logprobs=self._logprobs,
        )

    def _tool_calls(self, request: ModelRequest) -> list[ModelToolCall]:
        """The calls in order of index; an id that is missing or used twice is made up."""
        calls: list[ModelToolCall] = []
        seen: set[str] = set()
        for position, draft in enumerate(sorted(self._calls, key=lambda call: call.index)):
            name = draft.id if draft.id and draft.id not in seen else made_up_id(request, position)
            seen.add(name)
            calls.append(ModelToolCall(name, draft.name, "".join(draft.arguments)))
        return calls
