"""Source: where the weights of a draft head come from.

transformers drops `mtp.*` when it loads a checkpoint, so they are read from its files.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import torch
from transformers import PreTrainedModel

from harnessctl.checkpoint.export import head_tensors
from harnessctl.checkpoint.head import check_head, claimed_layers
from harnessctl.checkpoint.layout import read_config, read_layout
from harnessctl.decode.catalog import locate
from harnessctl.errors import CheckpointError, UsageError
from harnessctl.records.lineage import HeadSource
from harnessctl.train.mtp.config import Init, MtpConfig
from harnessctl.train.mtp.head import PREFIX, NextNHead, final_norm, last_full_layer


def open_head(
    model: PreTrainedModel, folder: Path, config: MtpConfig, talk: Callable[[str], None]
) -> tuple[NextNHead, HeadSource]:
    """The head as training begins with it, and where it is from. `auto`: the checkpoint's own where it has one, else fresh.

    CheckpointError when the config of the checkpoint claims a head that is not there, or it does not fit.
    """
    source, origin = head_source(folder, config)
    if origin is None:
        talk(f"head: fresh, init={config.init}")
        return fresh_head(model, init=config.init, seed=config.seed), source
    talk(f"head: native, that of {origin}" if source == "native" else f"head: grafted from {origin}")
    return stored_head(model, origin), source


def head_source(folder: Path, config: MtpConfig) -> tuple[HeadSource, Path | None]:
    """Where the head of the checkpoint in `folder` comes from, and the folder that holds it (null: it is fresh).

    UsageError when keys do not go together; CheckpointError when the head is not there, or not whole.
    """
    source = config.source
    if source == "auto":
        has_head = bool(read_layout(folder).head_names) or claimed_layers(read_config(folder)) > 0
        source = "native" if has_head else "fresh"
    if source != "grafted" and config.graft is not None:
        raise UsageError(
            f"graft={config.graft} is for source=grafted; got source={config.source}", hint="source=grafted"
        )
    if source == "fresh":
        return source, None
    if source == "grafted" and config.graft is None:
        raise UsageError("source=grafted, and graft names no checkpoint to take the head from", hint="graft=FOLDER")
    origin = folder if source == "native" else locate(str(config.graft)).path
    check_head(origin)
    if not read_layout(origin).head_names:
        raise _no_head(origin)
    return source, origin


def fresh_head(target: PreTrainedModel, *, init: Init, seed: int) -> NextNHead:
    """A new head. `last_layer` copies the target's last layer with full attention and its final norm; the rest is drawn
    from `seed`, so that every process draws the same."""
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        head = NextNHead(target)
    if init == "last_layer":
        head.layers[0].load_state_dict(last_full_layer(target).state_dict())
        head.norm.load_state_dict(final_norm(target).state_dict())
    return head


def stored_head(target: PreTrainedModel, folder: Path) -> NextNHead:
    """The head that the checkpoint in `folder` holds, beside `target`: native where it is the target's own checkpoint,
    grafted where it is another. CheckpointError when it has none, a part of one, or one of other shapes."""
    check_head(folder)
    return put_weights(fresh_head(target, init="random", seed=0), head_tensors(folder), folder)


def put_weights(head: NextNHead, tensors: dict[str, torch.Tensor], folder: Path) -> NextNHead:
    """`head` with the weights `tensors` (full names, experts fused) that come from `folder`."""
    given = {name.removeprefix(PREFIX): tensor for name, tensor in tensors.items()}
    wanted = head.state_dict()
    if not given:
        raise _no_head(folder)
    faults = [f"{PREFIX}{name} is missing" for name in sorted(wanted.keys() - given.keys())]
    faults += [f"{PREFIX}{name} is not of this architecture" for name in sorted(given.keys() - wanted.keys())]
    faults += [
        f"{PREFIX}{name} has the shape {list(given[name].shape)}, and the policy wants {list(wanted[name].shape)}"
        for name in sorted(given.keys() & wanted.keys())
        if given[name].shape != wanted[name].shape
    ]
    if faults:
        more = f" (and {len(faults) - 1} more)" if len(faults) > 1 else ""
        raise CheckpointError(f"the draft head in {folder} does not fit the policy: {faults[0]}{more}")
    head.load_state_dict(given)
    return head


def _no_head(folder: Path) -> CheckpointError:
    return CheckpointError(
        f"{folder} holds no draft head (no tensors mtp.*)",
        hint="source=fresh trains one from nothing, source=grafted graft=FOLDER takes another checkpoint's",
    )
