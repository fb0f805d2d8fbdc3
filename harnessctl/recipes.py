"""Recipes: Hydra composes `recipes/<job>/<name>.yaml` with overrides into a plain, resolved config.

The only user of Hydra. A project's own recipes come first, the packaged ones stand behind them, so that a project made
before a job existed can still run it.
"""

from __future__ import annotations

import copy
import difflib
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from harnessctl.errors import UsageError
from harnessctl.manifests.templates import template_root

Config = TypeVar("Config", bound=msgspec.Struct)


def recipe_folders(root: Path | None) -> list[Path]:
    """Where recipes are looked for, first come first: the project's recipes/, then the packaged ones."""
    folders = [root / "recipes"] if root is not None and (root / "recipes").is_dir() else []
    packaged = template_root("live-stream") / "recipes"
    return folders + ([packaged] if packaged.resolve() not in [f.resolve() for f in folders] else [])


def recipe_names(root: Path | None, job: str) -> list[str]:
    """The recipes of a job, sorted."""
    return sorted({path.stem for folder in recipe_folders(root) for path in (folder / job).glob("*.yaml")})


def group_options(root: Path | None) -> dict[str, list[str]]:
    """Config groups (`model`, ...) and their options."""
    found: dict[str, set[str]] = {}
    for folder in recipe_folders(root):
        for path in (folder / "_groups").glob("*/*.yaml"):
            found.setdefault(path.parent.name, set()).add(path.stem)
    return {name: sorted(options) for name, options in sorted(found.items())}


def compose(root: Path | None, job: str, overrides: Sequence[str] = ()) -> dict[str, Any]:
    """The resolved config of `job`: recipe `default`, or the one that `recipe=NAME` among the overrides names.

    `model=X`, where X is no option of the group, sets `model.name=X`. UsageError says which key or value is wrong,
    what is allowed, and what may have been meant.
    """
    from hydra import compose as hydra_compose
    from hydra import initialize_config_dir
    from hydra.errors import HydraException
    from omegaconf import OmegaConf
    from omegaconf.errors import OmegaConfBaseException

    name = "default"
    rest: list[str] = []
    for item in overrides:
        if not item.partition("=")[0].strip() or "=" not in item:
            raise UsageError(f"{item!r} is not KEY=VALUE", hint="keys look like policy=local or seed=7")
        if item.startswith("recipe="):
            name = item.removeprefix("recipe=")
        else:
            rest.append(_group_or_name(root, item))
    if name not in recipe_names(root, job):
        raise UsageError(
            f"no recipe {job}/{name}.yaml; there are {', '.join(recipe_names(root, job)) or 'none'}",
            hint=f"recipes live in recipes/{job}/",
        )
    folders = recipe_folders(root)
    first = next(folder for folder in folders if (folder / job / f"{name}.yaml").is_file())
    search = [f"file://{folder / '_groups'}" for folder in folders if (folder / "_groups").is_dir()]
    search += [f"file://{folder}" for folder in folders if folder != first]
    try:
        with initialize_config_dir(str(first.resolve()), version_base="1.3"):
            config = hydra_compose(f"{job}/{name}", overrides=[*rest, f"hydra.searchpath=[{','.join(search)}]"])
        resolved = OmegaConf.to_container(config, resolve=True, throw_on_missing=True)
    except (HydraException, OmegaConfBaseException) as error:
        raise _explain(error, root, job, name) from error
    assert isinstance(resolved, dict)
    return {str(key): value for key, value in resolved.items()}


def typed(config: dict[str, Any], kind: type[Config], *, job: str) -> Config:
    """`config` as `kind`; UsageError names the key, what it got and what it takes."""
    try:
        return msgspec.convert(config, kind, strict=True)
    except msgspec.ValidationError as error:
        text = str(error)
        place = re.search(r" - at `\$\.?(.*?)`$", text)
        key = place.group(1) if place else ""
        what = text[: place.start()] if place else text
        got: Any = config
        for part in re.findall(r"[^.\[\]]+", key):
            got = got[int(part)] if isinstance(got, list) else got.get(part) if isinstance(got, dict) else None
        shown = f" (got {got!r})" if key and not isinstance(got, dict) else ""
        if what.startswith("Invalid enum value") and (choices := _choices(kind, key)):
            what, shown = f"no choice {got!r}", f"; there are {', '.join(choices)}"
        raise UsageError(
            f"key {key or job}: {what}{shown}", hint=f"`harnessctl {job} --cfg` prints every key"
        ) from error


def _choices(kind: type[msgspec.Struct], key: str) -> list[str]:
    """The texts that a key of a config takes; none where it is no choice between texts."""
    found: msgspec.inspect.Type = msgspec.inspect.type_info(kind)
    for part in key.split("."):
        if not isinstance(found, msgspec.inspect.StructType):
            return []
        found = next((field.type for field in found.fields if field.name == part), found)
    kinds = found.types if isinstance(found, msgspec.inspect.UnionType) else (found,)
    return [str(value) for one in kinds if isinstance(one, msgspec.inspect.LiteralType) for value in one.values]


def for_model(root: Path | None, job: str, overrides: Sequence[str]) -> list[str]:
    """The overrides of a job that trains a model. `model=X` picks the recipe X of the job; where there is none, X is the
    folder of a model (or a name that can be pulled), which takes the place of the recipe's own.

    UsageError where X is neither, or a recipe is named twice.
    """
    from harnessctl.decode.catalog import is_known

    given = [item.removeprefix("model=") for item in overrides if item.startswith("model=")]
    rest = [item for item in overrides if not item.startswith("model=")]
    if not given:
        return rest
    model, known = given[-1], recipe_names(root, job)
    if model in known:
        if any(item.startswith("recipe=") for item in rest):
            raise UsageError(
                f"model={model} picks the recipe {job}/{model}, and recipe= another", hint="give one of them"
            )
        return [f"recipe={model}", *rest]
    if not is_known(model) and not Path(model).expanduser().is_dir():
        models = ", ".join(name for name in known if name != "default") or "none"
        raise UsageError(
            f"no model {model!r}: neither a recipe of {job} ({models}) nor a folder",
            hint=f"recipes live in recipes/{job}/",
        )
    escaped, name = model.replace("'", "\\'"), Path(model).resolve().name.replace("'", "\\'")
    return [f"model.path='{escaped}'", f"model.name='{name}'", *rest]


def debugged(config: dict[str, Any], overrides: Sequence[str]) -> dict[str, Any]:
    """`config` with the values of its `in_debug` (dotted key: value) where `debug` is on, but for the keys that are given.

    UsageError for a key that the recipe does not have.
    """
    if not config.get("debug"):
        return config
    given = {item.partition("=")[0].lstrip("+") for item in overrides}
    known = set(_flat(config))
    found: dict[str, Any] = copy.deepcopy(config)
    for key, value in (config.get("in_debug") or {}).items():
        if any(f"{key}.".startswith(f"{whole}.") for whole in given):
            continue  # given, or a part of what is given as a whole
        if key not in known:
            raise UsageError(f"in_debug names the key {key!r}, which the recipe does not have")
        *parents, last = key.split(".")
        place = found
        for part in parents:
            place = place[part]
        place[last] = value
    return found


def with_values(config: dict[str, Any], overrides: Sequence[str]) -> dict[str, Any]:
    """`config` with the values of overrides such as `loop.keep=3`."""
    from omegaconf import OmegaConf
    from omegaconf.errors import OmegaConfBaseException

    try:
        merged = OmegaConf.to_container(OmegaConf.merge(OmegaConf.create(config), OmegaConf.from_dotlist([*overrides])))
    except OmegaConfBaseException as error:
        raise UsageError(str(error).splitlines()[0]) from error
    assert isinstance(merged, dict)
    return {str(key): value for key, value in merged.items()}


def expand(overrides: Sequence[str]) -> list[list[str]]:
    """Every combination of a sweep: `seed=1,2 loop=harness,react` gives four lists of overrides, in order."""
    from hydra._internal.core_plugins.basic_sweeper import BasicSweeper
    from hydra.core.override_parser.overrides_parser import OverridesParser
    from hydra.errors import HydraException

    try:
        parsed = OverridesParser.create().parse_overrides(list(overrides))
        return [list(batch) for batch in BasicSweeper.split_arguments(parsed, max_batch_size=None)[0]]
    except HydraException as error:
        raise UsageError(str(error).splitlines()[0]) from error


def to_yaml(config: dict[str, Any]) -> str:
    """The config as YAML, keys in the recipe's order."""
    from omegaconf import OmegaConf

    return OmegaConf.to_yaml(OmegaConf.create(config))


def from_yaml(text: str, *, source: str) -> dict[str, Any]:
    """The config that `to_yaml` wrote; UsageError, naming `source`, when it is none."""
    from omegaconf import OmegaConf
    from omegaconf.errors import OmegaConfBaseException
    from yaml import YAMLError

    try:
        config = OmegaConf.to_container(OmegaConf.create(text))
    except (YAMLError, OmegaConfBaseException) as error:
        raise UsageError(f"{source}: not a config: {str(error).splitlines()[0]}") from error
    if not isinstance(config, dict):
        raise UsageError(f"{source}: not a config; got {type(config).__name__}")
    return {str(key): value for key, value in config.items()}


def differing_keys(one: dict[str, Any], other: dict[str, Any]) -> list[str]:
    """The keys, dotted, whose values are not the same in both."""
    first, second = dict(_flat_items(one)), dict(_flat_items(other))
    return sorted(key for key in first.keys() | second.keys() if first.get(key) != second.get(key))


def _flat_items(config: dict[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in config.items():
        if isinstance(value, dict) and value:
            yield from _flat_items(value, f"{prefix}{key}.")
        else:
            yield prefix + key, value


def _group_or_name(root: Path | None, item: str) -> str:
    key, _, value = item.partition("=")
    options = group_options(root).get(key)
    if options is None or value in options or "," in value:
        return item
    escaped = value.replace("'", "\\'")
    return f"{key}.name='{escaped}'"


def _explain(error: Exception, root: Path | None, job: str, name: str) -> UsageError:
    """Hydra's and OmegaConf's errors as one sentence with the allowed keys."""
    text = str(error)
    key = re.search(r"Could not override '([^']+)'|Key '([^']+)' is not in struct", text)
    if key:
        wrong = key.group(1) or key.group(2)
        plain = compose(root, job, [f"recipe={name}"])
        known = list(_flat(plain))
        if (free := _free_part(wrong, plain)) is not None:
            return UsageError(
                f"key {free} of recipe {job}/{name} has no parts of a given name", hint=f"name one: +{free}.NAME=VALUE"
            )
        near = difflib.get_close_matches(wrong, known, n=1)
        hint = f"did you mean {near[0]}?" if near else f"keys: {', '.join(known)}"
        return UsageError(f"no key {wrong!r} in recipe {job}/{name}", hint=hint)
    missing = re.search(r"Missing mandatory value: (\S+)", text)
    if missing:
        return UsageError(f"key {missing.group(1)} has no value", hint=f"give {missing.group(1)}=VALUE")
    return UsageError(text.splitlines()[0])


def _free_part(key: str, config: dict[str, Any]) -> str | None:
    """`key`, or what it is a part of, where the recipe has an empty mapping there."""
    for whole in (key, key.rpartition(".")[0]):
        if dict(_flat_items(config)).get(whole) == {}:
            return whole
    return None


def _flat(config: dict[str, Any], prefix: str = "") -> list[str]:
    out: list[str] = []
    for key, value in config.items():
        out.append(prefix + key)
        if isinstance(value, dict):
            out.extend(_flat(value, f"{prefix}{key}."))
    return out
