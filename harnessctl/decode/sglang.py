"""SGLang model: rollouts from SGLang's native `/generate`, by token ids.

What always holds: what is sent are the prompt's ids and nothing else that could be encoded in another way; completion ids
and log-probabilities are the server's own, one each; a server that speculates with thresholds other than 1.0 is refused,
because then what it says is not drawn from the policy (facts: a draft token would be accepted too often). `complete`
raises ModelError and nothing else.

The server's log-probabilities are log softmax(logits / temperature), as ours are, unless it was started so as to return
those of temperature 1. Grammars are not asked for: a server masks the logits before it takes the log-probabilities.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import orjson
from tokenizers import Tokenizer

from harnessctl.decode.prompt import PromptEncoder
from harnessctl.decode.replying import DEFAULTS, Said, cut_at_stop, make_reply, whole_sampling
from harnessctl.decode.sglang_server import SGLangServer
from harnessctl.decode.template import ChatTemplate
from harnessctl.decode.tokens import TokenCodec
from harnessctl.errors import ModelError
from harnessctl.runtime.protocols import ModelReply, ModelRequest, Sampling

_THRESHOLDS = ("speculative_accept_threshold_single", "speculative_accept_threshold_acc")
#: Counters of one request that add up over many [5.5: acceptance].
_COUNTERS = ("spec_verify_ct", "spec_num_correct_drafts", "spec_num_proposed_drafts")


class FinishReason(msgspec.Struct):
    """Why the server stopped: `stop`, `length` or `abort`; the latter says more."""

    type: str
    message: str | None = None
    status_code: int | None = None


class MetaInfo(msgspec.Struct):
    """What is read of `meta_info`. A log-probability stands before its token's id and text (mostly null)."""

    finish_reason: FinishReason
    output_token_logprobs: list[tuple[float, int, Any]]
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    spec_verify_ct: int = 0
    spec_num_correct_drafts: int = 0
    spec_num_proposed_drafts: int = 0


class SGLangModel:
    """A policy on a server. `name` is what records call it; `template` is the digest of its chat template.

    `base_url` is the server's root. `tokenizer` and `template` are the policy's own: prompts are encoded here. `ends` are
    ids that end a reply beside the template's; `defaults` fill what a request's sampling leaves open; other options are
    those of SGLangServer. Seeds are sent as `sampling_seed`, which a server obeys where it runs deterministically.
    `counters` sums what the server says of speculation: verify passes, drafts proposed and accepted.
    """

    def __init__(
        self,
        base_url: str,
        *,
        name: str,
        tokenizer: Tokenizer,
        template: ChatTemplate | None = None,
        ends: Sequence[int] = (),
        defaults: Sampling = DEFAULTS,
        **options: Any,
    ) -> None:
        chat = template or ChatTemplate()
        self.name = name
        self.template: str | None = chat.digest
        self.counters: Counter[str] = Counter()
        self._server = SGLangServer(base_url, **options)
        self._codec = TokenCodec(tokenizer, end=chat.end)
        self._encoder = PromptEncoder(chat, self._codec)
        self._ends = sorted({self._codec.end_id, *ends})
        self._defaults = defaults
        self._is_checked = False

    async def complete(self, request: ModelRequest) -> ModelReply:
        """Answer one request; ModelError says whether another try may help."""
        started = time.monotonic()
        if request.deadline <= started:
            raise ModelError("the deadline had passed before the model was asked", retryable=False)
        if not self._is_checked:
            await self.check(seconds=request.deadline - started)
        prompt = self._encoder.prompt(request)
        sampling = whole_sampling(request.sampling, self._defaults)
        document = {
            "input_ids": prompt,
            "sampling_params": self._parameters(sampling),
            "return_logprob": True,
            "logprob_start_len": -1,
        }
        answer = await self._server.ask("/generate", document, seconds=request.deadline - time.monotonic())
        info = self._read(answer, prompt)
        for counter in _COUNTERS:
            self.counters[counter] += getattr(info, counter)
        return make_reply(request, prompt, self._said(info, sampling), started=started)

    async def check(self, *, seconds: float = 60.0) -> None:
        """ModelError (not retryable) when the server speculates in a way that is not exact, or does not say."""
        told = await self._server.ask("/server_info", None, seconds=seconds)
        if told.get("speculative_algorithm"):
            # The states say what was changed at run time.
            states = [state for state in told.get("internal_states") or () if isinstance(state, dict)]
            for name in _THRESHOLDS:
                values = [told.get(name), *(state[name] for state in states if name in state)]
                wrong = next((value for value in values if value != 1.0), 1.0)
                if wrong != 1.0:
                    raise ModelError(
                        f"{self._server.shown} speculates with {name}; got {orjson.dumps(wrong).decode()}; allowed 1.0 "
                        "for rollouts: with less it says draft tokens more often than the policy would",
                        retryable=False,
                        hint=f"start it with --{name.replace('_', '-')} 1.0",
                    )
        self._is_checked = True

    async def update_weights(self, path: Path | str, *, seconds: float = 600.0) -> None:
        """Have the server read the checkpoint in `path`, a folder that it sees; what it cached is forgotten there.

        ModelError when it did not: the old weights may or may not be in place then.
        """
        document = {"model_path": str(path)}
        answer = await self._server.ask("/update_weights_from_disk", document, seconds=seconds, refused=True)
        if answer.get("success") is not True:
            raise ModelError(
                f"{self._server.shown} did not take the weights of {path}: "
                f"{self._server.short(str(answer.get('message') or answer))}",
                retryable=False,
                hint="the folder must lie where the server can read it, with the architecture it was started with",
            )
        await self.check()

    async def aclose(self) -> None:
        """Close the connections of the running event loop."""
        await self._server.aclose()

    def _parameters(self, sampling: Sampling) -> dict[str, Any]:
        parameters: dict[str, Any] = {
            "temperature": sampling.temperature,
            "top_p": sampling.top_p,
            "max_new_tokens": sampling.max_tokens,
            "stop_token_ids": self._ends,
        }
        if sampling.stop:
            parameters["stop"] = sampling.stop
        if sampling.seed is not None:
            parameters["sampling_seed"] = sampling.seed
        return parameters

    def _read(self, answer: dict[str, Any], prompt: list[int]) -> MetaInfo:
        """`meta_info` of a reply to `prompt`, in which everything is as it must be."""
        odd = self._server.odd
        try:
            info = msgspec.convert(answer.get("meta_info"), MetaInfo)
        except msgspec.ValidationError as error:
            raise odd("/generate", f"meta_info: {error}") from error
        finish, count = info.finish_reason, len(info.output_token_logprobs)
        if finish.type == "abort":
            retryable = finish.status_code is None or finish.status_code >= 500
            said = self._server.short(finish.message or "it does not say why")
            raise ModelError(f"{self._server.shown} gave up: {said}", retryable=retryable)
        if finish.type not in ("stop", "length"):
            raise odd("/generate", f"finish_reason.type; got {finish.type!r}; allowed stop, length, abort")
        if (info.completion_tokens is not None and info.completion_tokens != count) or not count:
            raise odd("/generate", f"{info.completion_tokens} tokens and {count} log-probabilities")
        if info.prompt_tokens is not None and info.prompt_tokens != len(prompt):
            raise odd("/generate", f"it read {info.prompt_tokens} tokens; {len(prompt)} were sent")
        return info

    def _said(self, info: MetaInfo, sampling: Sampling) -> Said:
        """What the ids say, as a local model would have it: without the end token, a stop string and what follows it."""
        ids = [token for _, token, _ in info.output_token_logprobs]
        text = self._codec.decode(ids[:-1] if ids[-1] in self._ends else ids)
        cut = cut_at_stop(text, sampling.stop)
        is_over = info.finish_reason.type == "stop"
        return Said(
            ids=ids,
            logprobs=[log_prob for log_prob, _, _ in info.output_token_logprobs],
            text=cut if cut is not None else text if is_over else text.rstrip("\ufffd"),
            finish="stop" if is_over else "length",
        )
