"""The stall's judge and roles, and models that judge as they are told."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import orjson

from harnessctl.bundle.files import Bundle
from harnessctl.errors import ModelError
from harnessctl.evaluate.config import FaultsConfig
from harnessctl.evaluate.judging.case import Case
from harnessctl.evaluate.judging.panel import Jury, open_panel
from harnessctl.evaluate.judging.voting import collect
from harnessctl.manifests.specs.roles import JudgeRole, RoleModel, Roles, RoleSet
from harnessctl.records.comment import CommentInput
from harnessctl.records.vote import Vote
from harnessctl.runtime.protocols import ModelReply, ModelRequest, ModelToolCall

NO_FAULTS = FaultsConfig(timeout=0, malformed=0, denied=0, stale=0)

FILES = {
    "manifests/judges/stall-judge.yaml": """apiVersion: harnessctl/v1
kind: Harness
name: stall-judge
version: 1.0.0
include: {tools: [look]}
prompt: stall-judge
world: stall
limits: {max_rounds: 3, model_retries: 0, deadline_s: 20}
reply:
  format: json
  schema:
    type: object
    required: [id, accuracy, effectiveness, reason]
    properties:
      id: {type: string}
      accuracy: {enum: [0, 1]}
      effectiveness: {enum: [0, 0.5, 1]}
      reason: {type: string}
scores: {accuracy: /accuracy, effectiveness: /effectiveness}
""",
    "manifests/prompts/stall-judge.yaml": """apiVersion: harnessctl/v1
kind: PromptPipeline
name: stall-judge
inputs: {type: object, properties: {judged: {type: object}}, required: [judged]}
blocks:
  - {id: base, template: "You grade.{% if judged.gold %} Gold: {{ judged.gold | tojson }}{% endif %}"}
  - id: item
    role: user
    template: |
      Item {{ judged.id }}
      {% for message in messages %}
      Viewer: {{ message.text }}
      {% endfor %}
      Reply: {{ judged.reply }}
      {% if judged.fault %}
      Fault: {{ judged.fault }}
      {% endif %}
""",
    "manifests/tools/look.yaml": """apiVersion: harnessctl/v1
kind: Tools
tools:
  - name: get_product
    description: Gets price and stock of a link.
    parameters: {type: object, properties: {link_id: {type: integer}}, required: [link_id]}
    run: {python: "stall:get_product"}
""",
    "manifests/roles.yaml": """apiVersion: harnessctl/v1
kind: Roles
models:
  a: {name: model-a, policy: scripted, script: a.jsonl}
  b: {name: model-b, policy: scripted, script: b.jsonl}
  c: {name: model-c, policy: scripted, script: c.jsonl}
  teacher: {name: model-t}
roles:
  teacher: {model: teacher}
  panel: {models: [a, b, c], judge: stall-judge}
""",
}


def write_judge(root: Path) -> Path:
    """Add the judge and the roles to the project at `root`."""
    for name, text in FILES.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return root


def write_scripts(root: Path, **said: Sequence[dict[str, Any]]) -> None:
    """The scripts of voters a, b and c: conversations."""
    for name, lines in said.items():
        (root / f"{name}.jsonl").write_bytes(b"".join(orjson.dumps(line) + b"\n" for line in lines))


def answer(item: str, accuracy: Any = 1, effectiveness: Any = 1, reason: str = "as the table says") -> str:
    """An answer of a judge."""
    fields = {"id": item, "accuracy": accuracy, "effectiveness": effectiveness, "reason": reason}
    return orjson.dumps(fields).decode()


def item_of(request: ModelRequest) -> str:
    """The item that a judge is asked about."""
    users = [m["content"] for m in request.messages if m["role"] == "user"]
    found = re.search(r"^Item (\S+)", users[0], re.MULTILINE)
    assert found is not None
    return found[1]


class Judging:
    """A model that says what `says` gives for (item, how often this item was asked about before): a text, a call as
    (tool, arguments), or a ModelError."""

    template: str | None = None

    def __init__(self, says: Callable[[str, int], Any] | str | None = None, name: str = "judging") -> None:
        self.name = name
        self.requests: list[ModelRequest] = []
        self._says = says
        self._asked: dict[str, int] = {}

    async def complete(self, request: ModelRequest) -> ModelReply:
        await asyncio.sleep(0)
        self.requests.append(request)
        item = item_of(request)
        number = self._asked.get(item, 0)
        self._asked[item] = number + 1
        said = (
            self._says
            if isinstance(self._says, str)
            else answer(item)
            if self._says is None
            else self._says(item, number)
        )
        if isinstance(said, ModelError):
            raise said
        if isinstance(said, tuple):
            return ModelReply(content=None, tool_calls=[ModelToolCall("c1", said[0], orjson.dumps(said[1]).decode())])
        return ModelReply(content=said, tool_calls=[])

    async def aclose(self) -> None:
        """Nothing is held."""


def case(name: str = "i1", text: str = "how much is link 1?", reply: str = "18 yuan.", **fields: Any) -> Case:
    request = CommentInput(id=name, text=text)
    given: dict[str, Any] = {"context": {}, "route": "public", "stop": "replied", "calls": []}
    return Case(id=name, request=request, reply=reply, **(given | fields))


def jury_of(bundle: Bundle, *names: str, sees: Any = "reply", **fields: Any) -> Jury:
    models = {name: RoleModel(name=f"model-{name}", **fields) for name in names}
    role = JudgeRole(models=list(names), judge=bundle.name, sees=sees)
    return Jury(
        "panel", Roles(api_version="harnessctl/v1", kind="Roles", models=models, roles=RoleSet(panel=role)), bundle
    )


def judged(
    root: Path,
    bundle: Bundle,
    models: dict[str, Any],
    *cases: Case,
    workers: int = 4,
    tries: int = 3,
    jury: Jury | None = None,
    on_vote: Callable[[Vote], None] | None = None,
    world: Any = None,
) -> list[list[Vote]]:
    """The votes of a panel of these models on some cases."""

    async def main() -> list[list[Vote]]:
        async with open_panel(root, jury or jury_of(bundle, *models), world=world, tries=tries, models=models) as panel:
            return await collect(panel, cases, workers=workers, on_vote=on_vote)

    return asyncio.run(main())
