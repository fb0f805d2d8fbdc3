"""Generation: the loop that reads a prompt and says tokens until an end, a stop string or the limit.

What always holds: between two forward passes the context is whole, so that a reply given up half-way leaves a usable
one; `check` is asked before every pass. Tokens that a grammar forces are read in the same pass as the token before
them.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import nn

from harnessctl.decode.kv import Context
from harnessctl.decode.replying import Said
from harnessctl.decode.speech import Speech

# Tokens of a prompt read in one pass: few enough that a deadline is noticed within a second on a slow machine.
CHUNK = 256


class Generation:
    """One reply of `model`, a causal language model on `device`. `check` raises to give up."""

    def __init__(self, model: nn.Module, device: torch.device, speech: Speech, *, check: Callable[[], None]) -> None:
        self._model = model
        self._device = device
        self._speech = speech
        self._check = check

    def run(self, context: Context, prompt: list[int]) -> Said:
        """Read what of `prompt` the context lacks, and speak. The context ends up with all that was read and said,
        less the last token."""
        speech = self._speech
        with torch.inference_mode():
            logits = self._read_prompt(context, prompt)
            while not speech.said.finish:
                token = speech.draw(logits)
                if not speech.said.finish:
                    logits = self._read_with_forced(context, [token])
        return speech.said

    def _read_prompt(self, context: Context, prompt: list[int]) -> torch.Tensor:
        """Logits (V,) for the first token that is free."""
        rest = prompt[len(context.ids) :]
        while len(rest) > CHUNK:
            self._feed(context, rest[:CHUNK], keep=1)
            rest = rest[CHUNK:]
        return self._read_with_forced(context, rest)

    def _read_with_forced(self, context: Context, ids: list[int]) -> torch.Tensor:
        """Read `ids` and the tokens that must follow them, say the latter; logits (V,) for the next one."""
        forced = self._speech.forced()
        logits = self._feed(context, ids + forced, keep=1 + len(forced))
        self._speech.hear(forced, logits)
        return logits[-1]

    def _feed(self, context: Context, ids: list[int], *, keep: int) -> torch.Tensor:
        """One forward pass; logits (keep, V) of the last tokens, float32 on the CPU."""
        self._check()
        out = self._model(
            input_ids=torch.tensor([ids], device=self._device),
            cache=context.cache,
            use_cache=True,
            logits_to_keep=keep,
        )
        context.ids += ids
        return out.logits[0].float().cpu()
