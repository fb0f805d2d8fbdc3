"""Hooks: checks and actions at the points of an agent's request."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

from harnessctl.manifests.specs.base import END, ApiVersion, Expression, JsonSchema, Seconds, Spec, Version
from harnessctl.manifests.specs.tools import PythonTarget

Event = Literal["input", "pre_model", "post_model", "pre_tool", "post_tool", "stop", "end"]
Target = Literal["message", "output", "args", "result", "reply"]
ActionName = Literal["block", "retry", "rewrite", "warn", "stop_loop", "fallback"]


class When(Spec, kw_only=True):
    """Which occurrences of the event the hook looks at; every given field must match."""

    tools: list[str] = []
    tags: list[str] = []
    groups: list[str] = []
    effects: list[Literal["none", "write"]] = []
    result: list[Literal["ok", "error", "timeout", "denied", "invalid", "blocked"]] = []
    skill_kinds: Annotated[
        list[Literal["reply", "strategy"]], Meta(description="a skill of one of these kinds is loaded")
    ] = []
    expr: Expression | None = None


class JsonSchemaCheck(Spec, kw_only=True):
    """The target (parsed as JSON when it is text) fits the schema."""

    schema: JsonSchema
    target: Target | None = None


class RegexCheck(Spec, kw_only=True):
    """`must` is found in the target and `must_not` is not (Python's `re`, searched)."""

    must: str | None = None
    must_not: str | None = None
    target: Target | None = None


class SkillLoadedCheck(Spec, kw_only=True):
    """A skill of this name, or of this kind, has been loaded."""

    skill: str | None = None
    kind: Literal["reply", "strategy"] | None = None


class ToolCalledCheck(Spec, kw_only=True):
    """Calls so far that match number between `min` and `max`. `same_args`: only calls whose named arguments equal this call's."""

    tools: list[str] = []
    tags: list[str] = []
    ok: Annotated[bool | None, Meta(description="only calls that succeeded (true) or failed (false)")] = None
    same_args: Annotated[list[str] | bool, Meta(description="true: all arguments; a list: these")] = False
    scope: Literal["request", "session"] = "request"
    min: Annotated[int, Meta(ge=0)] = 1
    max: Annotated[int, Meta(ge=0)] | None = None


class ToolOrderCheck(Spec, kw_only=True):
    """Of the named tools, those that were called first succeeded in this order (others may stand between)."""

    order: Annotated[list[str], Meta(min_length=2)]
    scope: Literal["request", "session"] = "request"


class GroundedNumbersCheck(Spec, kw_only=True):
    """Each number in the target occurs in a tool result, the context or the viewer's own message."""

    sources: Annotated[
        list[Literal["results", "context", "message", "skills"]], Meta(description="default: results, context, message")
    ] = []
    ignore_below: Annotated[float, Meta(description="numbers below this (counts, 'two links') need no source")] = 0
    target: Target | None = None


class ForbidPhrasesCheck(Spec, kw_only=True):
    """None of the phrases occurs in the target (case and width folded)."""

    phrases: Annotated[list[str], Meta(min_length=1)]
    target: Target | None = None


class JudgeCheck(Spec, kw_only=True, rename={"pass_": "pass"}):
    """Another harness of the project judges: `pass` is an expression over its scores."""

    harness: str
    input: Annotated[dict[str, str], Meta(description="context of the judge: name to expression")] = {}
    pass_: Expression = "score >= 1"


class CommandCheck(Spec, kw_only=True):
    """A program: JSON on standard input; exit 0 passes, 2 blocks with stderr as the reason, another code warns.

    `claude` and `gemini` speak those agents' hook protocols. A launch that fails is an error, never a decision.
    """

    run: Annotated[list[str], Meta(min_length=1)] | None = None
    shell: str | None = None
    files: Annotated[
        list[str], Meta(description="project files embedded in the bundle and laid out for the program")
    ] = []
    protocol: Literal["harnessctl", "claude", "gemini"] = "harnessctl"
    env: Annotated[list[str], Meta(description="names of environment variables passed on")] = []


class MaxCharsCheck(Spec, kw_only=True):
    """The target has at most this many code points."""

    value: int | None = None
    limit: str | None = None
    target: Target | None = None


class Check(Spec, kw_only=True, rename={"not_": "not"}):
    """Exactly one check. `all`, `any` and `not` compose."""

    all: Annotated[list[Check], Meta(min_length=1)] | None = None
    any: Annotated[list[Check], Meta(min_length=1)] | None = None
    not_: Check | None = None
    json_schema: JsonSchemaCheck | None = None
    regex: RegexCheck | None = None
    max_chars: Annotated[int, Meta(ge=1)] | MaxCharsCheck | None = None
    skill_loaded: SkillLoadedCheck | None = None
    tool_called: ToolCalledCheck | None = None
    tool_order: ToolOrderCheck | None = None
    grounded_numbers: GroundedNumbersCheck | None = None
    forbid_phrases: ForbidPhrasesCheck | None = None
    judge: JudgeCheck | None = None
    expr: Expression | None = None
    python: PythonTarget | None = None
    command: CommandCheck | None = None


class Message(Spec, kw_only=True):
    """What the model is told. `wrap` puts the text into a named tag."""

    text: Annotated[str, Meta(min_length=1)]
    role: Literal["tool", "user", "system"] | None = None
    wrap: Annotated[str, Meta(pattern=r"^[a-z][a-z0-9_-]*" + END)] | None = None


class Rewrite(Spec, kw_only=True):
    """Replaces the target by `to`, a sandboxed template over the names that expressions have."""

    target: Target
    to: str


class Fallback(Spec, kw_only=True):
    """The reply given instead, and where it goes."""

    reply: str = ""
    route: Literal["public", "private", "silent"] = "public"


class Action(Spec, kw_only=True):
    """What happens: `otherwise` when the check fails, `then` always."""

    action: ActionName
    message: Message | None = None
    max_retries: Annotated[int, Meta(ge=1, le=10)] | None = None
    exhausted: Annotated[
        Literal["block", "warn", "stop_loop", "fallback"] | None,
        Meta(description="what a retry becomes when max_retries is used up; default block"),
    ] = None
    rewrite: Rewrite | None = None
    fallback: Fallback | None = None


class Observe(Spec, kw_only=True):
    """Told of the event and asked nothing: runs beside the request."""

    python: PythonTarget | None = None
    command: CommandCheck | None = None


class Hook(Spec, kw_only=True):
    """One hook: exactly one of check + otherwise, then, observe."""

    id: Annotated[str, Meta(pattern=r"^[a-z0-9]+(-[a-z0-9]+)*" + END, max_length=64)]
    event: Event
    version: Version = "1.0.0"
    description: str | None = None
    order: Annotated[int, Meta(description="lower runs first; ties by place in the file")] = 0
    when: When | None = None
    check: Check | None = None
    otherwise: Action | None = None
    then: Action | None = None
    observe: Observe | None = None
    on_error: Literal["block", "pass"] = "block"
    timeout_s: Seconds = 5.0
    enforces: Annotated[
        list[Annotated[str, Meta(pattern=r"^[a-z0-9-]+#[a-z0-9_-]+" + END)]],
        Meta(description="skill#rule that this hook enforces"),
    ] = []


class Hooks(Spec, kw_only=True, rename={"api_version": "apiVersion"}):
    """A file of hooks: `manifests/hooks/<name>.yaml`."""

    api_version: ApiVersion
    kind: Literal["Hooks"]
    hooks: list[Hook]
