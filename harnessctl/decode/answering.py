"""Answering: from a request to a prompt and the speech after it: all that comes before the forward passes.

What always holds: a prompt's ids begin with the request's `prefix_ids`; two models that answer through this differ in
how they compute and in nothing else.
"""

from __future__ import annotations

import torch

from harnessctl.decode.grammar import MAX_CALLS, Grammars
from harnessctl.decode.prompt import PromptEncoder
from harnessctl.decode.replying import DEFAULTS, whole_sampling
from harnessctl.decode.sampling import Sampler
from harnessctl.decode.speech import Limits, Speech
from harnessctl.decode.template import ChatTemplate
from harnessctl.decode.tokens import TokenCodec
from harnessctl.decode.weights import Weights
from harnessctl.errors import ModelError
from harnessctl.runtime.protocols import ModelRequest, Sampling


class Answering:
    """How a model called `name` answers. `template` is the digest of its chat template, `encoder` makes its prompts.

    `defaults` fill what a request's sampling leaves open. With `reasoning`, a `<think>` block may stand before a reply
    that is bound to a call or to a schema. `max_calls` bounds the calls of one reply. Without `grammar` nothing is bound:
    only special tokens cannot be said.
    """

    def __init__(
        self,
        weights: Weights,
        *,
        name: str,
        template: ChatTemplate | None = None,
        defaults: Sampling = DEFAULTS,
        reasoning: bool = False,
        max_calls: int = MAX_CALLS,
        grammar: bool = True,
    ) -> None:
        chat = template or ChatTemplate()
        self.name = name
        self.template: str = chat.digest
        self._context_length = weights.context_length
        self._defaults = defaults
        self._codec = TokenCodec(weights.tokenizer, end=chat.end)
        self.encoder = PromptEncoder(chat, self._codec)
        ends = [self._codec.end_id, *(end for end in weights.ends if end != self._codec.end_id)]
        self._ends = frozenset(ends)
        self._banned = torch.tensor(sorted(self._codec.special_ids - self._ends), dtype=torch.int64)
        self._grammars: Grammars | None = None
        if grammar:
            self._grammars = Grammars(
                self._codec.source, vocab_size=weights.vocab_size, ends=ends, reasoning=reasoning, max_calls=max_calls
            )

    def begin(self, request: ModelRequest) -> tuple[list[int], Speech]:
        """The ids to be read and the reply to be said after them. ModelError: a bad message, a prompt that does not fit
        the context, a schema of which no grammar can be made."""
        prompt = self.encoder.prompt(request)
        room = self._context_length - len(prompt)
        if room < 1:
            raise ModelError(
                f"the prompt has {len(prompt)} tokens; the context of {self.name} holds {self._context_length}",
                retryable=False,
                hint="fewer tools, shorter skills, or a lower max_message_chars",
            )
        sampling = whole_sampling(request.sampling, self._defaults)
        constraint = None
        if self._grammars is not None:
            constraint = self._grammars.constraint(request.tools, request.tool_choice, request.reply_schema)
        limits = Limits(ends=self._ends, stop=sampling.stop, max_tokens=min(sampling.max_tokens or room, room))
        sampler = Sampler(sampling, banned=self._banned)
        return prompt, Speech(self._codec, sampler=sampler, constraint=constraint, limits=limits)

    def failed(self, error: Exception) -> ModelError:
        """What torch raised (it may fail in many ways), as the only error that a model may raise."""
        return ModelError(f"the model {self.name} failed: {type(error).__name__}: {error}", retryable=False)

    def closed(self) -> ModelError:
        """The error of a request to a model that has been closed."""
        return ModelError(f"the model {self.name} has been closed", retryable=False)
