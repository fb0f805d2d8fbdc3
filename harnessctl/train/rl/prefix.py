"""Shared prefix: the log-probabilities of a group's tokens with the common beginning computed once.

What always holds: the log-probabilities and their gradients are those of the paths read one by one, up to rounding. A row is
[prefix, continuation 1, ... continuation n], positions starting again after the prefix, under `train.forest.Tree`; models
that cannot read trees get rows of their own, padded. The output layer sees only tokens before one that the policy said.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint
from transformers import PreTrainedModel

from harnessctl.train.forest import Tree, ready_mask, use_forests
from harnessctl.train.rl.paths import Path, shared_length

#: The most by which log-probabilities of the probe may differ.
TOLERANCE = 1e-3
#: Logits (tokens times vocabulary) in float32 at once, 64 MB; beyond, they are made again on the way back.
LOGITS_AT_ONCE = 1 << 24


@dataclass(frozen=True)
class Rows:
    """What the model reads: `ids` and `positions` (R, S), `mask` as the model takes it, or `tree`.

    `columns` (U,) are the positions whose logits are wanted, `sources` (T,) where among the R x U logits each of the
    policy's tokens is predicted.
    """

    ids: torch.Tensor
    positions: torch.Tensor
    mask: torch.Tensor
    columns: torch.Tensor
    sources: torch.Tensor
    tree: Tree | None = None

    @property
    def size(self) -> int:
        """Tokens that are computed, padding included."""
        return self.ids.numel()


def tree_rows(paths: Sequence[Path], device: torch.device) -> Rows:
    """One row for paths with a common beginning."""
    prefix = shared_length(paths)
    ids = list(paths[0].ids[:prefix])
    positions = list(range(prefix))
    branches: list[int] = []
    places: list[int] = []
    for path in paths:
        rest = path.read[prefix:]
        shift = len(ids) - prefix
        places += [place - 1 if place - 1 < prefix else place - 1 + shift for place in path.places]
        ids += rest
        positions += range(prefix, prefix + len(rest))
        if rest:
            branches.append(len(rest))
    columns, sources = torch.unique(torch.tensor(places), return_inverse=True)
    return Rows(
        ids=torch.tensor([ids], device=device),
        positions=torch.tensor([positions], device=device),
        mask=ready_mask(len(ids), device),
        columns=columns.to(device),
        sources=sources.to(device),
        tree=Tree(prefix, tuple(branches), device),
    )


def padded_rows(paths: Sequence[Path], device: torch.device) -> Rows:
    """A row for each path, padded on the right with id 0."""
    longest = max(len(path.read) for path in paths)
    ids = torch.tensor([[*path.read, *[0] * (longest - len(path.read))] for path in paths])
    mask = torch.tensor([[1] * len(path.read) + [0] * (longest - len(path.read)) for path in paths])
    columns, inverse = torch.unique(
        torch.tensor([place - 1 for path in paths for place in path.places]), return_inverse=True
    )
    row = torch.arange(len(paths)).repeat_interleave(torch.tensor([len(path.places) for path in paths]))
    return Rows(
        ids=ids.to(device),
        positions=torch.arange(longest, device=device).expand(len(paths), longest),
        mask=mask.to(device),
        columns=columns.to(device),
        sources=(row * len(columns) + inverse).to(device),
    )


@dataclass(frozen=True)
class Read:
    """Of each of the policy's tokens, (T,) in float32: its log-probability, and the entropy of the distribution that it was drawn
    from (without gradient). `nothing` is a zero that hangs on the model's parameters."""

    log_probs: torch.Tensor
    entropy: torch.Tensor
    nothing: torch.Tensor


def read(model: nn.Module, rows: Rows, targets: torch.Tensor, *, temperature: float = 1.0) -> Read:
    """The log-probabilities of `targets` (T,), of log softmax(logits / temperature) as the sampler records them."""
    more: dict[str, Any] = {} if rows.tree is None else {"forest": (rows.tree,)}
    out = model(
        input_ids=rows.ids,
        position_ids=rows.positions,
        attention_mask=rows.mask,
        use_cache=False,
        logits_to_keep=rows.columns,
        **more,
    )
    logits = out.logits.flatten(0, -2)
    at_once = max(1, LOGITS_AT_ONCE // logits.shape[-1])
    found = [
        _scored(logits, at, ids, temperature)
        if len(targets) <= at_once
        else checkpoint(_scored, logits, at, ids, temperature, use_reentrant=False)
        for at, ids in zip(rows.sources.split(at_once), targets.split(at_once), strict=True)
    ]
    log_probs, entropy = (torch.cat(parts) for parts in zip(*found, strict=True))
    return Read(log_probs, entropy, log_probs.new_zeros(()))


def _scored(
    logits: torch.Tensor, sources: torch.Tensor, targets: torch.Tensor, temperature: float
) -> tuple[torch.Tensor, torch.Tensor]:
    """Log-probabilities of targets, and the entropies of what they were drawn from."""
    chosen = logits.index_select(0, sources).float() / temperature
    total = chosen.logsumexp(dim=-1)
    with torch.no_grad():
        entropy = total - (torch.softmax(chosen, dim=-1) * chosen).sum(dim=-1)
    return chosen.gather(1, targets[:, None])[:, 0] - total, entropy


def read_nothing(model: nn.Module, device: torch.device) -> Read:
    """No tokens, by a pass over one: sharded weights are gathered by all processes or by none."""
    logits = model(input_ids=torch.zeros(1, 1, dtype=torch.int64, device=device), use_cache=False).logits
    empty = torch.zeros(0, device=device)
    return Read(empty, empty, logits.float().sum() * 0.0)


class Reader:
    """How the paths of a micro-batch are laid out for a model. `why` says why they are not shared, if so."""

    def __init__(self, *, shares: bool, why: str | None = None) -> None:
        self.shares = shares
        self.why = why

    @classmethod
    def open(cls, model: PreTrainedModel, talk: Callable[[str], None], *, share: bool = True) -> Reader:
        """The reader for a model: trees where it can read them, which is tried out; the decision is told to `talk`."""
        why = (use_forests(model) or probe(model)) if share else "prefix=padded"
        talk("the prefix of a group is computed once" if why is None else f"paths are padded, not shared: {why}")
        return cls(shares=why is None, why=why)

    def rows(self, paths: Sequence[Path], device: torch.device) -> Rows:
        """The rows of a micro-batch."""
        return tree_rows(paths, device) if self.shares else padded_rows(paths, device)

    def chunks(self, paths: Sequence[Path], budget: int) -> list[list[Path]]:
        """The paths of one group in micro-batches of at most `budget` computed tokens, where single paths allow it. Those with a
        long common beginning come together, and a path joins no others where that saves nothing."""
        out: list[list[Path]] = []
        size = 0
        for path in sorted(paths, key=lambda path: list(path.ids)):
            joined = self.size([*out[-1], path]) if out else 0
            pays = not self.shares or joined <= size + len(path.read)
            if out and joined <= budget and pays:
                out[-1].append(path)
                size = joined
            else:
                out.append([path])
                size = len(path.read)
        return out

    def size(self, paths: Sequence[Path]) -> int:
        """How many tokens the rows of a micro-batch have."""
        if not self.shares:
            return len(paths) * max(len(path.read) for path in paths)
        prefix = shared_length(paths)
        return prefix + sum(len(path.read) - prefix for path in paths)


@torch.no_grad()
def probe(model: PreTrainedModel) -> str | None:
    """Why a model's answer on a small tree is not that on its paths one by one, or None: the model itself is asked, since
    no config says whether its layers hand the tree on to their attention."""
    size = model.config.get_text_config().vocab_size
    ids = [(7 * n + 3) % size for n in range(12)]
    paths = [
        Path(ids=ids[:5] + more, places=list(range(3, 5 + len(more))), advantages=[], sampled=[])
        for more in (ids[5:9], ids[8:11], ids[9:12] + ids[:2])
    ]
    device = next(model.parameters()).device
    targets = torch.tensor([path.ids[place] for path in paths for place in path.places], device=device)
    was_training = model.training
    model.eval()
    try:
        shared = read(model, tree_rows(paths, device), targets).log_probs
        alone = read(model, padded_rows(paths, device), targets).log_probs
    except (TypeError, RuntimeError, ValueError) as error:
        return f"{type(model).__name__} takes no tree: {error}"
    finally:
        model.train(was_training)
    gap = float((shared - alone).abs().max())
    allowed = TOLERANCE if next(model.parameters()).dtype == torch.float32 else 0.1
    return None if gap <= allowed else f"{type(model).__name__} answers otherwise on a tree (by {gap:.1e})"
