"""Encoded model: gives ids to a model that has none, as if it had spoken in the policy's template and tokens.

What always holds: prompt and completion of an answer are the beginning of the next prompt, as with a local model, so
that a teacher's trajectory has token paths to train on; what the ids say is read back as what the teacher said.
"""

from __future__ import annotations

from typing import Any

import msgspec
import orjson

from harnessctl.decode.output import parse_output
from harnessctl.decode.prompt import PromptEncoder
from harnessctl.decode.template import ChatTemplate, message_view, model_json
from harnessctl.decode.tokens import TokenCodec
from harnessctl.errors import ModelError, UsageError
from harnessctl.runtime.protocols import Model, ModelReply, ModelRequest, ModelToolCall
from harnessctl.runtime.reasoning import split_reasoning


class EncodedModel:
    """`inner` (an oracle, an endpoint) with the ids of `template` and `codec`. `aclose` closes `inner`.

    Log-probabilities are 0: the policy sampled nothing. An answer is handed over as a local model's would be: reasoning
    set apart, the white space around text taken off, arguments in the order in which the tool's schema names them (the
    only one that the grammar of a local model lets be said).
    """

    def __init__(self, inner: Model, template: ChatTemplate, codec: TokenCodec) -> None:
        self._inner = inner
        self._encoder = PromptEncoder(template, codec)
        self.name = inner.name
        self.template: str | None = template.digest

    async def complete(self, request: ModelRequest) -> ModelReply:
        """The answer of `inner`. ModelError (not retryable) where it cannot be said in the template: text that would be
        read as a call or as reasoning, or a template that has no such reply."""
        answer = _tidied(await self._inner.complete(request), request.tools)
        calls = [_call_message(call) for call in answer.tool_calls]
        try:
            prompt = self._encoder.prompt(request)
            completion = self._encoder.reply(answer.content, answer.reasoning, calls)
        except UsageError as error:
            raise ModelError(error.message, retryable=False, hint=error.hint) from error
        offers = bool(request.tools) and request.tool_choice != "none"
        self._check(answer, calls, completion, offers=offers)
        return msgspec.structs.replace(
            answer, prompt_ids=prompt, completion_ids=completion, logprobs=[0.0] * len(completion)
        )

    async def aclose(self) -> None:
        """Close the model behind it."""
        await self._inner.aclose()

    def _check(self, answer: ModelReply, calls: list[dict[str, Any]], completion: list[int], *, offers: bool) -> None:
        """What was said is what a policy's output of these ids would be read as."""
        read = parse_output(self._encoder.decode(completion[:-1]), calls=offers or bool(calls))
        said = _view(answer.content, answer.reasoning, calls)
        heard = _view(
            read.content,
            read.reasoning,
            [_call_message(ModelToolCall(id="", name=call.name, arguments=call.arguments)) for call in read.calls],
        )
        if said != heard:
            part = next(name for name in ("reasoning", "content", "calls") if said[name] != heard[name])
            raise ModelError(
                f"what {self.name} said would be read as something else: its {part} {_shown(said[part])} "
                f"as {_shown(heard[part])}",
                retryable=False,
            )


def _tidied(answer: ModelReply, tools: list[dict[str, Any]]) -> ModelReply:
    """The answer as a local model's output would be handed over."""
    content, thoughts = answer.content or "", [answer.reasoning or ""]
    if "think>" in content:
        content, thought = split_reasoning(content)
        thoughts.append(thought or "")
    reasoning = "\n".join(text.strip() for text in thoughts if text.strip())
    schemas = {tool["function"]["name"]: tool["function"].get("parameters") or {} for tool in tools}
    return msgspec.structs.replace(
        answer,
        content=content.strip() or None,
        reasoning=reasoning or None,
        tool_calls=[_in_order(call, schemas.get(call.name, {})) for call in answer.tool_calls],
    )


def _in_order(call: ModelToolCall, schema: dict[str, Any]) -> ModelToolCall:
    """The call with its arguments written as the model writes them; as they are where they are no JSON."""
    text = call.arguments if call.arguments.strip() else "{}"
    try:
        text = model_json(_ordered(orjson.loads(text), schema))
    except orjson.JSONDecodeError:
        pass
    return ModelToolCall(id=call.id, name=call.name, arguments=text)


def _ordered(value: Any, schema: Any) -> Any:
    """`value` with the keys of objects in the order of the schema's properties; others after them."""
    if not isinstance(schema, dict):
        return value
    if isinstance(value, list):
        return [_ordered(item, schema.get("items")) for item in value]
    if not isinstance(value, dict):
        return value
    properties = schema.get("properties") or {}
    names = [*(name for name in properties if name in value), *(name for name in value if name not in properties)]
    return {name: _ordered(value[name], properties.get(name)) for name in names}


def _call_message(call: ModelToolCall) -> dict[str, Any]:
    return {"function": {"name": call.name, "arguments": call.arguments}}


def _view(content: str | None, reasoning: str | None, calls: list[dict[str, Any]]) -> dict[str, Any]:
    """What was said as the template sees it."""
    return message_view({"role": "assistant", "content": content, "reasoning": reasoning, "tool_calls": calls}, 0)


def _shown(value: Any) -> str:
    text = value if isinstance(value, str) else orjson.dumps(value).decode()
    return ascii(text if len(text) <= 80 else text[:80] + "...")
