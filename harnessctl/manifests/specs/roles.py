"""Roles: which models teach and judge, declared once, so that their separation can be checked [C.1]."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from harnessctl.manifests.specs.base import ApiVersion, Slug, Spec


class RoleSampling(Spec, kw_only=True):
    """How the model samples; null leaves the choice to the endpoint."""

    temperature: Annotated[float, Meta(ge=0)] | None = None
    top_p: Annotated[float, Meta(gt=0, le=1)] | None = None
    max_tokens: Annotated[int, Meta(ge=1)] | None = None
    seed: Annotated[int, Meta(ge=0)] = 0


class RoleModel(Spec, kw_only=True):
    """One model and where it is. Secrets are never written here: `key_env` names the variable that holds the key."""

    name: Annotated[str, Meta(min_length=1, description="what the endpoint calls the model")]
    weights: Annotated[
        str | None,
        Meta(description="which model it really is, where `name` does not say so; equal weights are one model"),
    ] = None
    policy: Literal["openai", "local", "scripted"] = "openai"
    base_url: Annotated[str | None, Meta(description="null: OPENAI_BASE_URL")] = None
    key_env: Annotated[str | None, Meta(description="null: OPENAI_API_KEY")] = None
    stream: bool = True
    body: Annotated[dict[str, Any], Meta(description="merged into the body of every request")] = {}
    script: Annotated[str | None, Meta(description="policy scripted: its file, from the project's root")] = None
    sampling: RoleSampling = msgspec.field(default_factory=RoleSampling)


class TeacherRole(Spec, kw_only=True):
    """Who writes the candidates that the SFT learns from."""

    model: Slug


class JudgeRole(Spec, kw_only=True):
    """Who votes, each with the same judge harness. An odd number, so that there can be a majority."""

    models: Annotated[list[Slug], Meta(min_length=1)]
    judge: Annotated[str, Meta(min_length=1, description="a harness of the project that replies with scores")]
    sees: Annotated[
        Literal["reply", "gold"], Meta(description="gold: the judge is also told what a right answer does")
    ] = "reply"


class RoleSet(Spec, kw_only=True):
    """The roles of C.1; the fifth, human labels, is a file (`eval judge-calibration labels=FILE`)."""

    teacher: TeacherRole | None = None
    rejection: JudgeRole | None = None
    reward: JudgeRole | None = None
    panel: JudgeRole | None = None


class Roles(Spec, kw_only=True, rename={"api_version": "apiVersion"}):
    """`manifests/roles.yaml`."""

    api_version: ApiVersion
    kind: Literal["Roles"]
    models: dict[Slug, RoleModel]
    roles: RoleSet
