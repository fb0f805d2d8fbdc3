"""Roles: `manifests/roles.yaml`, read and checked: which models teach and judge, and that they are kept apart [C.1].

What always holds of roles that were read: the reward judge shares no model with the panel; the teacher is in the panel
only as one voter of three or more; every judge role has an odd number of voters, no two of which are one model.
Two entries are one model when their `weights` (or, where they give none, their `name`) are equal but for case, at
whatever endpoint.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from harnessctl.bundle.files import Bundle
from harnessctl.errors import Faults, FaultsError, HarnessctlError, UsageError
from harnessctl.manifests.load import Document, PathPart, load_yaml
from harnessctl.manifests.locate import ROLES
from harnessctl.manifests.schemas import convert
from harnessctl.manifests.specs.roles import JudgeRole, RoleModel, Roles
from harnessctl.manifests.violations import did_you_mean
from harnessctl.storage import read_bytes

JUDGES = ("rejection", "reward", "panel")
#: Finds a harness of the project by name; may raise any HarnessctlError.
FindBundle = Callable[[str], Bundle]


def identity(model: RoleModel) -> str:
    """What makes two entries one model."""
    return (model.weights or model.name).strip().casefold()


def load_roles(root: Path) -> Roles:
    """The project's roles. UsageError when it has none; FaultsError holds everything that is wrong with them."""
    if not (root / ROLES).is_file():
        raise UsageError(
            f"the project has no {ROLES}", hint="`harnessctl docs judges` shows one; `harnessctl schema Roles` its form"
        )
    faults = Faults()
    roles = _read(root, faults, None)
    faults.raise_if_errors()
    if roles is None:
        raise FaultsError(faults.items)
    return roles


def check_roles(root: Path, bundles: FindBundle | None = None) -> Faults:
    """What is wrong with the project's roles; nothing where it has none. `bundles` finds the judges' harnesses."""
    faults = Faults()
    if (root / ROLES).is_file():
        _read(root, faults, bundles)
    return faults


def judge_role(roles: Roles, name: str) -> JudgeRole:
    """The judge role of a name. UsageError with those that there are."""
    found: JudgeRole | None = getattr(roles.roles, name) if name in JUDGES else None
    if found is None:
        there = [role for role in JUDGES if getattr(roles.roles, role) is not None]
        raise UsageError(f"no judge {name!r} in {ROLES}", hint=f"judges there: {', '.join(there) or 'none'}")
    return found


def check_policy(roles: Roles, role: str, policy: str) -> None:
    """UsageError where the model that is evaluated, by its endpoint's name, is a voter of the role: none grades itself."""
    wanted = policy.strip().casefold()
    for name in judge_role(roles, role).models:
        model = roles.models[name]
        if wanted in (identity(model), model.name.strip().casefold()):
            raise UsageError(
                f"the policy {policy} is {name} of {ROLES}, a voter of the {role}: no model grades itself",
                hint="judge this run with a panel that does not hold it",
            )


def _read(root: Path, faults: Faults, bundles: FindBundle | None) -> Roles | None:
    document = load_yaml(ROLES, read_bytes(root / ROLES), faults)
    if document is None:
        return None
    if not isinstance(document.value, dict):
        hint = "begin with the lines: apiVersion: harnessctl/v1 / kind: Roles"
        faults.add(document.fault("manifest-empty", "the file is not a manifest", allowed="a mapping", hint=hint))
        return None
    roles = convert(document, "Roles", Roles, faults)
    if roles is not None:
        _check_names(document, roles, faults)
        _check_separation(document, roles, faults)
        if bundles is not None:
            _check_judges(document, roles, faults, bundles)
    return roles


def _named(roles: Roles) -> list[tuple[str, tuple[PathPart, ...]]]:
    """Each mention of a model under `roles:` with its place."""
    teacher = roles.roles.teacher
    found: list[tuple[str, tuple[PathPart, ...]]] = []
    if teacher is not None:
        found.append((teacher.model, ("roles", "teacher", "model")))
    for role, judge in _judges(roles).items():
        found += [(name, ("roles", role, "models", n)) for n, name in enumerate(judge.models)]
    return found


def _judges(roles: Roles) -> dict[str, JudgeRole]:
    found = {name: getattr(roles.roles, name) for name in JUDGES}
    return {name: judge for name, judge in found.items() if judge is not None}


def _check_names(document: Document, roles: Roles, faults: Faults) -> None:
    for name, at in _named(roles):
        if name not in roles.models:
            known = ", ".join(roles.models) or "none"
            hint = did_you_mean(name, roles.models)
            message = "no model of this name under `models`"
            faults.add(document.fault("roles-model", message, *at, got=name, allowed=known, hint=hint))


def _check_separation(document: Document, roles: Roles, faults: Faults) -> None:
    who = {name: identity(model) for name, model in roles.models.items()}
    judges = _judges(roles)
    for role, judge in judges.items():
        at: tuple[PathPart, ...] = ("roles", role, "models")
        if len(judge.models) % 2 == 0:
            got = f"{len(judge.models)} voters"
            message = "an even number of voters has no majority where it is split in halves"
            faults.add(
                document.fault("roles-even", message, *at, got=got, allowed="1, 3, 5, ...", hint="add or remove one")
            )
        first: dict[str, str] = {}
        for n, name in enumerate(judge.models):
            if name not in who:
                continue
            before = first.setdefault(who[name], name)
            if n and (before != name or name in judge.models[:n]):
                message = "two voters are one model, whose mistakes would count twice"
                got = name if before == name else f"{name}, which is {before}: {who[name]}"
                faults.add(document.fault("roles-twice", message, *at, n, got=got, hint="each voter another model"))
    panel, reward, teacher = judges.get("panel"), judges.get("reward"), roles.roles.teacher
    if panel is None:
        return
    voters = [who[name] for name in panel.models if name in who]
    for n, name in enumerate(reward.models if reward is not None else []):
        if who.get(name) in voters:
            same = next(voter for voter in panel.models if who.get(voter) == who[name])
            message = "a model of the reward judge votes in the panel: the policy was trained to please it"
            got = name if same == name else f"{name}, which is {same} of the panel: {who[name]}"
            faults.add(document.fault("roles-overlap", message, "roles", "reward", "models", n, got=got))
    if teacher is not None and teacher.model in who:
        count = voters.count(who[teacher.model])
        if 2 * count > len(panel.models):
            message = "the teacher alone decides the panel: the policy was made from its answers"
            faults.add(
                document.fault(
                    "roles-teacher",
                    message,
                    *("roles", "panel", "models"),
                    got=f"{count} of {len(panel.models)} voters are {teacher.model}",
                    allowed="less than half of the voters",
                    hint="add voters of other models",
                )
            )


def _check_judges(document: Document, roles: Roles, faults: Faults, bundles: FindBundle) -> None:
    for role, judge in _judges(roles).items():
        try:
            fault = unfit_judge(bundles(judge.judge))
            hint = ""
        except UsageError as error:
            fault, hint = "there is no such harness", error.hint
        except HarnessctlError as error:
            fault, hint = error.message, error.hint
        if fault:
            message = "the harness cannot judge"
            faults.add(
                document.fault("roles-judge", f"{message}: {fault}", "roles", role, "judge", got=judge.judge, hint=hint)
            )


def unfit_judge(bundle: Bundle) -> str:
    """Why a harness is no judge: no scores in its reply, or a tool that writes; empty where it is one."""
    missing = [name for name in ("accuracy", "effectiveness") if name not in bundle.state.scores]
    if missing:
        return f"`scores` of {bundle.name} does not say where {' and '.join(missing)} is"
    writes = sorted(tool.name for tool in bundle.state.tools if tool.effect == "write")
    return f"{bundle.name} has tools that write: {', '.join(writes)}" if writes else ""
