"""Opening: from what a user names to a model that answers. Imports torch inside, so that importing it is cheap."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Literal

from harnessctl.decode.catalog import CATALOG, locate
from harnessctl.decode.extras import require_extras
from harnessctl.errors import StorageError, UsageError
from harnessctl.runtime.protocols import Sampling

if TYPE_CHECKING:  # importing it for real would load torch
    from harnessctl.decode.local import LocalModel


def open_local(
    model: str = "smol",
    *,
    dtype: Literal["auto", "float32", "bfloat16", "int8"] = "auto",
    device: str | None = None,
    threads: int | None = None,
    template: Path | None = None,
    end: str = "<|im_end|>",
    reasoning: bool = False,
    sampling: Sampling | None = None,
    cache: Path | None = None,
) -> LocalModel:
    """Load a model of the catalog, or the folder of one, and make it answer.

    `threads` sets torch's threads for the whole process; null leaves them. `template` is a chat template of one message
    (see `harnessctl.decode.template`), `end` the special token that ends a message in it. `sampling` fills what requests
    leave open. Raises UsageError: extras missing, model not pulled or not a model, dtype not for the device,
    template that does not go with the tokenizer.
    """
    require_extras()
    folder = locate(model, cache=cache)
    source = _read_template(template)
    import torch

    from harnessctl.decode.grammar import MAX_CALLS
    from harnessctl.decode.local import DEFAULTS, LocalModel
    from harnessctl.decode.template import ChatTemplate
    from harnessctl.decode.weights import load_weights

    if threads is not None:
        torch.set_num_threads(threads)
    known = CATALOG.get(model)
    return LocalModel(
        load_weights(folder.path, dtype=dtype, device=device),
        name=folder.name,
        template=ChatTemplate(source, end=end),
        defaults=sampling or DEFAULTS,
        reasoning=reasoning,
        max_calls=known.max_calls if known else MAX_CALLS,
    )


def _read_template(path: Path | None) -> str | None:
    if path is None:
        return None
    try:
        return path.read_text("utf-8")
    except OSError as error:
        raise StorageError(f"cannot read {path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise UsageError(f"{path}: a chat template must be UTF-8; byte {error.start} is not") from error
