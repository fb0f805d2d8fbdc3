"""Judges: another harness scores what was said, each time asked under a name of its own and in time."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from typing import Any

import msgspec
import orjson
import pytest
from shop_agent import HangingModel, ToldModel, says, shop_state

from harnessctl.assembly import HarnessJudge
from harnessctl.bundle import Bundle, make_bundle
from harnessctl.bundle.files import read_bundle
from harnessctl.bundle.state import Action, Block, Hook, Prompt
from harnessctl.compile import compile_project
from harnessctl.errors import HookError, UsageError
from harnessctl.records.comment import CommentInput
from harnessctl.records.trajectory import Trajectory
from harnessctl.runtime.agent import Agent
from harnessctl.runtime.judge import judges_of
from harnessctl.runtime.models.scripted import ScriptedModel
from harnessctl.runtime.protocols import ModelReply, ModelRequest, Sampling

FINE = '{"accuracy": 1, "effectiveness": 1, "reason": "fine"}'


def asks(*names: str, **outside: Any) -> Bundle:
    """A bundle whose stop hooks ask these judges."""
    hooks = [
        Hook(id=f"h{n}", event="stop", check={"judge": {"harness": name}}, otherwise=Action(action="block"))
        for n, name in enumerate(names)
    ]
    return make_bundle(shop_state(hooks=hooks, skills=[], tools=[]), name="host", version="1.0.0", **outside)


def judge_bundle(*, world: str | None = None, **fields: Any) -> Bundle:
    prompt = Prompt(
        inputs={"type": "object", "properties": {"text": {}, "reply": {}}, "additionalProperties": False},
        blocks=[Block(id="base", template="Judge {{ reply }}{{ text or '' }}")],
    )
    scores = {"accuracy": "/accuracy", "effectiveness": "/effectiveness"}
    state = shop_state(skills=[], tools=[], hooks=[], prompt=prompt, scores=scores, reply_format="json", **fields)
    return make_bundle(state, name="live-judge", version="1.0.0", world=world)


class Asked(ToldModel):
    """Answers always the same and keeps how it was asked."""

    async def complete(self, request: ModelRequest) -> ModelReply:
        self.requests.append(request)
        return says(FINE)


def judging(
    model: Any, *contexts: Mapping[str, Any], seconds: float = 5, bundle: Bundle | None = None, **options: Any
) -> list[dict[str, Any]]:
    """What the judge says of each context; asked side by side."""

    async def main() -> list[dict[str, Any]]:
        found = bundle or judge_bundle()
        judge = await HarnessJudge.open(
            asks("live-judge"), lambda name: found, model, world=None, sampling=Sampling(seed=7), **options
        )
        try:
            deadline = time.monotonic() + seconds
            return await asyncio.gather(*(judge.judge("live-judge", dict(c), deadline) for c in contexts))
        finally:
            await judge.aclose()

    return asyncio.run(main())


def test_scores_and_the_answers_other_fields_come_back() -> None:
    assert judging(Asked(), {"reply": "89"}) == [{"accuracy": 1, "effectiveness": 1, "reason": "fine"}]


def test_each_request_is_asked_under_an_id_of_its_own_whatever_the_order() -> None:
    def seeds(*replies: str) -> dict[str, list[int | None]]:
        model = Asked()
        judging(model, *({"reply": reply} for reply in replies))
        found: dict[str, list[int | None]] = {}
        for request in model.requests:
            found.setdefault(request.messages[0]["content"], []).append(request.sampling.seed)
        return found

    one = seeds("a", "b", "a")
    assert len({seed for found in one.values() for seed in found}) == 3
    assert seeds("a", "a", "b") == one


@pytest.mark.parametrize(
    ("answers", "words"),
    [
        ([says("good!")] * 4, "it ended round_limit"),
        ([says("[1]")], "its reply is no JSON object"),
        ([says('{"accuracy": 1}')], "its reply has no effectiveness"),
        ([says('{"accuracy": null, "effectiveness": 1}')], "its reply has no accuracy"),
    ],
)
def test_no_score_is_an_error(answers: list[ModelReply], words: str) -> None:
    with pytest.raises(HookError, match=words):
        judging(ToldModel(*answers), {"reply": "89"})


def test_the_deadline_holds_for_the_judge_and_is_told_to_its_model() -> None:
    model = HangingModel()
    begun = time.monotonic()
    with pytest.raises(HookError, match="it ended deadline: the deadline that was set had passed"):
        judging(model, {"reply": "89"}, seconds=0.05)
    assert time.monotonic() - begun < 2
    assert model.requests[0].deadline < begun + 2


def test_a_context_that_the_judge_does_not_take_is_an_error_that_names_it() -> None:
    with pytest.raises(HookError, match=r"it ended hook_blocked: context: .*'more' was unexpected"):
        judging(Asked(), {"reply": "89", "more": 1})


def opened(bundle: Bundle, bundles: Callable[[str], Bundle], **options: Any) -> list[str]:
    async def main() -> list[str]:
        judge = await HarnessJudge.open(bundle, bundles, Asked(), sampling=Sampling(), **{"world": None, **options})
        await judge.aclose()
        return judge.warnings

    return asyncio.run(main())


def test_a_judge_that_cannot_be_had_is_a_warning_and_an_error_of_its_hook() -> None:
    def none(name: str) -> Bundle:
        raise UsageError("there is no project here", hint="give --project DIR")

    assert opened(asks("live-judge"), none)[0].startswith("judge `live-judge`: there is no project here")
    assert opened(asks("live-judge", world="shop"), lambda name: judge_bundle(world="other")) == [
        "judge `live-judge`: it reads the world other, which is not that of host"
    ]

    async def main() -> None:
        judge = await HarnessJudge.open(asks("live-judge"), none, Asked(), world=None, sampling=Sampling())
        await judge.judge("live-judge", {}, time.monotonic() + 5)

    with pytest.raises(HookError, match="there is no project here"):
        asyncio.run(main())


def test_a_judge_reads_the_runs_world_only_where_it_names_it() -> None:
    class World:
        digest = "0" * 64

        def context(self, request: object, names: object = None) -> dict[str, Any]:
            return {"text": " from the world"}

    def system(world: str | None) -> str:
        model = Asked()

        async def main() -> None:
            judge = await HarnessJudge.open(
                asks("live-judge", world="shop"),
                lambda name: judge_bundle(world=world),
                model,
                world=World(),
                sampling=Sampling(),
            )
            await judge.judge("live-judge", {"reply": "89"}, time.monotonic() + 5)

        asyncio.run(main())
        return model.requests[0].messages[0]["content"]

    assert system(None) == "Judge 89"
    assert system("shop") == "Judge 89 from the world"


def test_judges_are_found_in_composed_checks_and_opened_once_each() -> None:
    bundle = asks("a", "b")
    bundle.state.hooks[0] = msgspec.structs.replace(
        bundle.state.hooks[0],
        check={"all": [{"not": {"judge": {"harness": "c"}}}, {"any": [{"judge": {"harness": "b"}}, {"expr": "true"}]}]},
    )
    assert judges_of(bundle) == ["c", "b"]
    asked: list[str] = []

    def source(name: str) -> Bundle:
        asked.append(name)
        return asks("d") if name == "c" else judge_bundle()

    assert opened(bundle, source) == []
    assert asked == ["c", "b", "d"]


PROJECT = {
    "manifests/harness.yaml": """
apiVersion: harnessctl/v1
kind: Harness
name: host
version: 1.0.0
include: {tools: ["*"], hooks: ["*"]}
prompt: host
""",
    "manifests/prompts/host.yaml": """
apiVersion: harnessctl/v1
kind: PromptPipeline
name: host
blocks: [{id: base, template: You are the host.}]
""",
    "manifests/prompts/live-judge.yaml": """
apiVersion: harnessctl/v1
kind: PromptPipeline
name: live-judge
inputs:
  type: object
  additionalProperties: false
  properties: {text: {type: string}, reply: {type: string}, facts: {type: array}, seen: {type: array}}
blocks:
  - {id: base, template: "Facts: {{ seen | tojson }}; calls: {{ facts | length }}"}
  - {id: ask, role: user, template: "Asked: {{ text }} Said: {{ reply }}"}
""",
    "manifests/judges/live-judge.yaml": """
apiVersion: harnessctl/v1
kind: Harness
name: live-judge
version: 1.0.0
include: {}
prompt: live-judge
reply:
  format: json
  schema:
    type: object
    required: [accuracy, effectiveness, reason]
    properties: {accuracy: {enum: [0, 1]}, effectiveness: {enum: [0, 0.5, 1]}, reason: {type: string}}
scores: {accuracy: /accuracy, effectiveness: /effectiveness}
""",
    "manifests/tools/shop.yaml": """
apiVersion: harnessctl/v1
kind: Tools
tools:
  - name: get_price
    description: The price of an item.
    parameters: {type: object, properties: {item: {type: string}}, required: [item], additionalProperties: false}
    run: {python: "shop:get_price"}
""",
    "manifests/tools/shop.py": "async def get_price(item): return {'price': 89}\n",
    "manifests/hooks/judged.yaml": """
apiVersion: harnessctl/v1
kind: Hooks
hooks:
  - id: judged
    event: stop
    check:
      judge:
        harness: live-judge
        input: {text: message, reply: reply, facts: calls(ok=true), seen: calls(ok=true) | map(attribute='result')}
        pass: accuracy == 1 and effectiveness >= 0.5
    otherwise: {action: retry, max_retries: 1, exhausted: warn}
""",
}
SCRIPT = [
    {"match": "Said: It is 80", "replies": [{"content": '{"accuracy": 0, "effectiveness": 1, "reason": "`get_price` said 89."}'}]},
    {"match": "Said: It is 89", "replies": [{"content": FINE}]},
    {
        "match": "lamp",
        "replies": [
            {"tool_calls": [{"name": "get_price", "arguments": {"item": "lamp"}}]},
            {"content": "It is 80."},
            {"content": "It is 89."},
        ],
    },
]  # fmt: skip


def test_a_judge_of_the_project_sends_a_wrong_reply_back(project: Any) -> None:
    root = project(PROJECT | {"script.jsonl": b"\n".join(orjson.dumps(line) for line in SCRIPT)})

    def bundle(name: str | None) -> Bundle:
        return read_bundle(compile_project(root, harness=name).path(name))

    async def main() -> Trajectory:
        model = ScriptedModel.from_file(root / "script.jsonl")
        judge = await HarnessJudge.open(bundle(None), bundle, model, world=None, sampling=Sampling())
        async with await Agent.open(bundle(None), model, judge=judge) as agent:
            assert judge.warnings == []
            return await agent.run(CommentInput(id="1", text="lamp?"))

    trajectory = asyncio.run(main())
    assert (trajectory.stop, trajectory.reply) == ("replied", "It is 89.")
    assert [(d.decision, d.reason) for d in trajectory.hooks] == [("retry", "`get_price` said 89."), ("pass", None)]
    assert trajectory.messages[-2] == {"role": "user", "content": "`get_price` said 89."}
