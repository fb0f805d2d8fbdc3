"""Token loss: a causal model whose output is a sum of losses over chosen positions, never the logits of all of them.

What always holds: the trunk runs once over all tokens; the output matrix is applied to the chosen positions alone, in
pieces of at most `logits_at_once` numbers whose logits are computed again on the way back, so that memory does not grow
with the vocabulary. It is the root module of the training: a wrapper for several processes is called as a whole.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any, cast

import torch
from torch import nn
from torch.nn import functional
from torch.utils.checkpoint import checkpoint

from harnessctl.errors import TrainingError
from harnessctl.train.forest import ready_mask, use_forests
from harnessctl.train.sft.rows import LEAST_SHARED, Rows, Tokens, packed, padded

#: Logits (positions times vocabulary) that are in memory at once: 64 MB in float32.
LOGITS_AT_ONCE = 1 << 24
#: (logits (n, vocabulary), values of each position (n, ...)) to a pair: the sum of the losses, and a sum to be shown.
PositionLoss = Callable[[torch.Tensor, torch.Tensor], tuple[torch.Tensor, torch.Tensor]]

#: Logits may differ by this share of their spread between two ways of computing the same.
_TOLERANCE = 1e-2


class TokenLoss(nn.Module):
    """`model` is a PreTrainedModel with an output matrix, or a PeftModel around one. `recompute`: what its layers work out
    is forgotten and worked out again on the way back, for a third more time and much less memory. `is_compiled`: where
    there are gradients, trunk and losses are compiled by torch, once for all shapes."""

    def __init__(
        self,
        model: nn.Module,
        *,
        recompute: bool = False,
        is_compiled: bool = False,
        logits_at_once: int = LOGITS_AT_ONCE,
    ) -> None:
        super().__init__()
        self._recompute = recompute
        self._compiled: dict[str, Any] = {}
        if is_compiled:
            trunk: Any = cast(Any, model).get_decoder()
            # In a dictionary, which hides the parameters that both share from torch.
            self._compiled = {
                "trunk": torch.compile(trunk, dynamic=True),
                "part": torch.compile(self._part, dynamic=True),
            }
        if recompute:
            _prepare(model)
        self.model = model
        self.logits_at_once = logits_at_once
        #: What a sharding engine keeps whole.
        named: Any = getattr(model, "_no_split_modules", None)
        self._no_split_modules: Collection[str] = list(named or ())

    def forward(
        self, rows: Rows, loss: PositionLoss | None, values: torch.Tensor | None = None
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """The sums of `loss` over the chosen positions, given the labels, or `values` (n, ...) in their place.

        Without `loss`: the states of the chosen positions (n, width), twice. With nothing chosen the loss is a zero with
        a gradient of zero for every parameter on its way.
        """
        states = self.states(rows)
        if loss is None:
            return states, states
        given = rows.labels if values is None else values
        if not len(given):
            zero = self.logits(states).sum() * 0.0
            return zero, zero.detach()
        at_once = max(1, self.logits_at_once // self.vocabulary)
        of_part = self._now("part", self._part)
        total = shown = torch.zeros((), device=states.device)
        for part, value in zip(states.split(at_once), given.split(at_once), strict=True):
            if len(given) <= at_once:
                added, seen = of_part(part, value, loss)
            else:
                added, seen = cast(
                    tuple[torch.Tensor, torch.Tensor], checkpoint(of_part, part, value, loss, use_reentrant=False)
                )
            total, shown = total + added, shown + seen.detach()
        return total, shown

    def states(self, rows: Rows) -> torch.Tensor:
        """The trunk's last states at the chosen positions: (n, width)."""
        trunk: Any = self._now("trunk", cast(Any, self.model).get_decoder())
        more: dict[str, Any] = {}
        if rows.trees is not None:
            more = {"forest": rows.trees, "attention_mask": ready_mask(rows.ids.shape[1], rows.ids.device)}
        self.model.train(self._recompute and torch.is_grad_enabled())
        found = trunk(input_ids=rows.ids, position_ids=rows.positions, use_cache=False, **more).last_hidden_state
        self.model.eval()
        return found.flatten(0, 1)[rows.at]

    def _now(self, name: str, plain: Any) -> Any:
        """What is compiled, where there are gradients to win time for."""
        return self._compiled.get(name, plain) if torch.is_grad_enabled() else plain

    def logits(self, states: torch.Tensor) -> torch.Tensor:
        """The logits of states: (n, vocabulary)."""
        return cast(Any, self.model).get_output_embeddings()(states)

    @property
    def vocabulary(self) -> int:
        """How many ids the output matrix knows."""
        return cast(Any, self.model).config.get_text_config().vocab_size

    def _part(
        self, states: torch.Tensor, values: torch.Tensor, loss: PositionLoss
    ) -> tuple[torch.Tensor, torch.Tensor]:
        return loss(self.logits(states).float(), values)

    @torch.no_grad()
    def check(self) -> None:
        """TrainingError where the model's logits are not its output matrix times the trunk's states (scaled or capped
        ones, say): losses would be those of another model. Or where it is to be compiled, and cannot be."""
        tokens = self._probe(7)
        model: Any = self.model
        device = next(self.parameters()).device
        wanted = model(input_ids=tokens.ids.long()[None].to(device), use_cache=False).logits[0, :-1]
        if not _is_close(self.logits(self.states(padded([tokens]).to(device))), wanted):
            raise TrainingError(
                "the model's logits are not its output matrix times its last states, which the losses are computed from",
                hint="models that scale or cap their logits cannot be trained here",
            )
        if self._compiled:
            self._check_compiled()

    @torch.enable_grad()
    def _check_compiled(self) -> None:
        """Compile the trunk, on two rows: torch takes a single one for a case of its own."""
        rows = padded([self._probe(7), self._probe(9)]).to(next(self.parameters()).device)
        try:
            found = self.states(rows)
        except RuntimeError as error:
            raise TrainingError(
                f"compile: {str(error).splitlines()[0]}",
                hint="install a C++ compiler such as g++, or give compile=false",
            ) from error
        with torch.no_grad():
            wanted = self.states(rows)
        if not _is_close(found.detach(), wanted):
            raise TrainingError("compile: the compiled model's states are others", hint="give compile=false")

    @torch.no_grad()
    def why_not_packed(self) -> str | None:
        """Make ready to pack. Why that cannot be, or None: sequences of one row must be kept apart, which a model with a
        running state (linear attention) does not do."""
        why = use_forests(self.model)
        if why is not None:
            return why
        device = next(self.parameters()).device
        first, second, alone = self._probe(LEAST_SHARED + 5), self._probe(LEAST_SHARED + 9), self._probe(6)
        second.ids[:LEAST_SHARED] = first.ids[:LEAST_SHARED]
        probes = [first, second, alone]
        apart = self.logits(self.states(padded(probes).to(device)))
        together = self.logits(self.states(packed(probes).to(device)))
        return None if _is_close(together, apart) else "a trial shows that it lets one sequence of a row see another"

    def _probe(self, length: int) -> Tokens:
        generator = torch.Generator().manual_seed(length)
        ids = torch.randint(self.vocabulary, (length,), generator=generator, dtype=torch.int32)
        return Tokens(ids, torch.ones_like(ids))


def cross_entropy(logits: torch.Tensor, labels: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Sum of -log p(label), and how many labels are the likeliest token; `logits` (n, vocabulary), `labels` (n,)."""
    return functional.cross_entropy(logits, labels, reduction="sum"), (logits.detach().argmax(-1) == labels).sum()


def _prepare(model: Any) -> None:
    """Let layers forget what they work out in training mode, which is made to differ in nothing else: no dropout."""
    model.activation_checkpointing_enable({"use_reentrant": False})
    for layer in model.modules():
        if isinstance(layer, nn.Dropout):
            layer.p = 0.0
        if getattr(layer, "attention_dropout", 0.0):
            layer.attention_dropout = 0.0


def _is_close(found: torch.Tensor, wanted: torch.Tensor) -> bool:
    found, wanted = found.float(), wanted.float()
    return bool((found - wanted).abs().max() <= _TOLERANCE * wanted.std().clamp(min=1e-6))
