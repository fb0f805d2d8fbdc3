"""A stall: a small harness made by hand whose hooks send things back at every point, and a policy that says what it is
told, with ids."""

from __future__ import annotations

import asyncio
from typing import Any

from harnessctl.bundle import Bundle, HarnessState, make_bundle
from harnessctl.bundle.state import Action, Block, Hook, Limit, Message, Part, Prompt, Skill, Tool
from harnessctl.decode.encoded import EncodedModel
from harnessctl.decode.template import ChatTemplate
from harnessctl.decode.tokens import TokenCodec
from harnessctl.manifests.specs.harness import DEFAULT_LIMITS
from harnessctl.records.comment import CommentInput, ViewerMessage
from harnessctl.records.trajectory import Trajectory
from harnessctl.runtime.agent import Agent
from harnessctl.runtime.models.scripted import ScriptedCall, ScriptedModel, ScriptedReply
from harnessctl.simulate.clock import still_clock

CODE = """
def look(link):
    return {"link": link, "price": 80 + link}

def stock(link):
    return {"link": link, "left": link}
"""


def _tool(name: str, argument: str, kind: str, **fields: Any) -> Tool:
    parameters = {
        "type": "object",
        "properties": {argument: {"type": kind}},
        "required": [argument],
        "additionalProperties": False,
    }
    return Tool(name=name, description=[f"Does {name}."], parameters=parameters, group="retrieval", **fields)


def _hook(name: str, event: Any, check: dict[str, Any], action: Any, role: Any = None, **when: Any) -> Hook:
    then = Action(action=action, message=Message(text=[f"Not so: {name}."], role=role))
    if action == "retry":
        then.max_retries = 3
    return Hook(id=name, event=event, when=when, check=check, otherwise=then)


HOOKS = [
    _hook("curse", "post_model", {"regex": {"must_not": "curse"}}, "retry"),
    _hook("shout", "post_model", {"regex": {"must_not": "SHOUT"}}, "retry", "user"),
    _hook("link", "pre_tool", {"expr": "args.link < 10"}, "block", tools=["look"]),
    _hook("stock-link", "pre_tool", {"expr": "args.link < 10"}, "block", "user", tools=["stock"]),
    _hook("none-left", "post_tool", {"expr": "result.left > 0"}, "retry", "user", tools=["stock"]),
    _hook("length", "stop", {"max_chars": 20}, "retry"),
]


def stall(**fields: Any) -> Bundle:
    limits = DEFAULT_LIMITS | {"max_rounds": 9}
    state: dict[str, Any] = {
        "skills": [Skill(name="qa", kind="reply", description=["Answers."], body=[Part(text=["Fact first."])])],
        "tools": [
            _tool("load_skill", "skill", "string", run={"builtin": "load_skill"}),
            _tool("look", "link", "integer", run={"python": "code:look"}),
            _tool("stock", "link", "integer", run={"python": "code:stock"}),
        ],
        "hooks": HOOKS,
        "prompt": Prompt(blocks=[Block(id="base", template="You are the host.")]),
        "code": {"code": CODE},
        "limits": {name: Limit(value=value) for name, value in limits.items()},
        "session_keep": ["history"],
    }
    return make_bundle(HarnessState(**(state | fields)), name="stall", version="1.0.0")


def calls(*given: tuple[str, Any], text: str | None = None, thought: str | None = None) -> ScriptedReply:
    return ScriptedReply(
        tool_calls=[ScriptedCall(name, arguments) for name, arguments in given], content=text, reasoning=thought
    )


def look(link: int = 3) -> tuple[str, Any]:
    return "look", {"link": link}


def stock(link: int = 3) -> tuple[str, Any]:
    return "stock", {"link": link}


LOAD = ("load_skill", {"skill": "qa"})


def says(text: str, thought: str | None = None) -> ScriptedReply:
    return ScriptedReply(content=text, reasoning=thought)


def talk(codec: TokenCodec, *turns: list[ScriptedReply], session: str | None = None, **fields: Any) -> list[Trajectory]:
    """One request a turn (of one session, if named)."""
    bundle = stall(**fields)

    async def run() -> list[Trajectory]:
        found = []
        for number, replies in enumerate(turns):
            models = EncodedModel(ScriptedModel(replies), ChatTemplate(), codec)
            if not found:
                agent = await Agent.open(bundle, models, clock=still_clock())
            else:
                following = await Agent.open(bundle, models, clock=still_clock(), sessions=agent.sessions)
                await agent.aclose()
                agent = following
            found.append(
                await agent.run(
                    CommentInput(
                        id=f"r{number}", session=session, messages=[ViewerMessage(text="how much " + "again " * number)]
                    )
                )
            )
        await agent.aclose()
        return found

    return asyncio.run(run())
