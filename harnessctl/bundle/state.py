"""The harness state h = (S, T, P, K) of the paper [2.2]: what a bundle's digest is taken over.

Everything here can change what the agent does; names, versions, comments and places in files cannot and lie
outside (see `harnessctl.bundle.files`). All names are canonical; `Surface` says what a model sees instead.
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from harnessctl.bundle.text import Text

Route = Literal["public", "private", "silent"]
Number = int | float


class State(msgspec.Struct, omit_defaults=True, kw_only=True, forbid_unknown_fields=True):
    """Base of the state's structs: defaults are left out, so that adding a field keeps old digests."""


class Rule(State, kw_only=True):
    """A rule of a skill or an item of a prompt block. `id` is unique within its owner."""

    id: str
    text: Text
    protected: bool = False
    verbatim: bool = False
    after: str | None = None
    requires: str | None = None
    limit: str | None = None


class Part(State, kw_only=True):
    """A stretch of a skill's body: text, or a list of rules (ids, in order) with the marker of its bullets."""

    text: Text = []
    rules: list[str] = []
    marker: Literal["-", "1."] = "-"


class ExampleMessage(State, kw_only=True):
    """role user | assistant | tool; `calls` are [{tool, arguments}] in canonical names."""

    role: Literal["user", "assistant", "tool"]
    content: Text = []
    calls: list[dict[str, Any]] = []


class Skill(State, kw_only=True):
    """A skill on offer."""

    name: str
    kind: Literal["reply", "strategy"]
    description: Text
    body: list[Part]
    rules: list[Rule] = []
    examples: list[list[ExampleMessage]] = []
    allowed_tools: list[str] = []


class Tool(State, kw_only=True):
    """A tool. `parameters` and `result` carry no title, description or examples; `docs` maps the JSON Pointer of a
    schema node to its description."""

    name: str
    description: Text
    group: str
    tags: list[str] = []
    effect: Literal["none", "write"] = "none"
    parameters: dict[str, Any] = {}
    docs: dict[str, Text] = {}
    result: dict[str, Any] | None = None
    run: dict[str, Any] | None = None
    simulate: dict[str, Any] | None = None
    timeout_s: float | None = None
    retries: int = 0
    final: dict[str, Any] | None = None


class Message(State, kw_only=True):
    """A hook's message to the model. `role` null: `tool` where calls are answered (post_model, pre_tool, post_tool), else
    `user`."""

    text: Text
    role: Literal["tool", "user", "system"] | None = None
    wrap: str | None = None


class Action(State, kw_only=True):
    """What a hook does; see manifests.specs.hooks.Action."""

    action: Literal["block", "retry", "rewrite", "warn", "stop_loop", "fallback"]
    message: Message | None = None
    max_retries: int | None = None
    exhausted: Literal["block", "warn", "stop_loop", "fallback"] | None = None
    rewrite: dict[str, str] | None = None
    fallback: dict[str, str] | None = None


class Hook(State, kw_only=True):
    """A hook; `when`, `check` and `observe` are the manifest's own JSON, in canonical names."""

    id: str
    event: Literal["input", "pre_model", "post_model", "pre_tool", "post_tool", "stop", "end"]
    when: dict[str, Any] = {}
    check: dict[str, Any] | None = None
    otherwise: Action | None = None
    then: Action | None = None
    observe: dict[str, Any] | None = None
    on_error: Literal["block", "pass"] = "block"
    timeout_s: float = 5.0
    enforces: list[str] = []


class Block(State, kw_only=True):
    """A prompt block: a template, or items under a heading."""

    id: str
    role: Literal["system", "user"] = "system"
    template: str | None = None
    heading: Text = []
    items: list[Rule] = []
    when: str | None = None
    after: str | None = None
    pin: bool = False


class Framing(State, kw_only=True):
    """How what viewers said and did is laid before the model, around what the author's templates make of it.

    `reverse` names the lists that templates go through from the newest member to the oldest, places in them staying what
    they are (`actions[-5:]`): `messages`, or inputs such as `actions`. `lead` is a line before the viewer's message,
    `wrap` a tag around both.
    """

    reverse: list[str] = []
    lead: Text = []
    wrap: str | None = None


class Prompt(State, kw_only=True):
    """The pipeline: `inputs` is the JSON Schema of the context; `framing` null leaves the viewer's message as rendered."""

    inputs: dict[str, Any] = {}
    blocks: list[Block]
    framing: Framing | None = None


class Limit(State, kw_only=True):
    """A limit's effective value and the range it may be moved in."""

    value: Number
    range: list[Number] | None = None
    unit: str | None = None


class Surface(State, kw_only=True):
    """What a model sees instead of canonical names; injective per map; a name not listed is its own surface.

    `parameters` maps a canonical tool name to {canonical parameter: surface parameter} (top-level properties), and
    `parameter_order` to its parameters (canonical) in the order in which they are shown.
    """

    tools: dict[str, str] = {}
    skills: dict[str, str] = {}
    parameters: dict[str, dict[str, str]] = {}
    parameter_order: dict[str, list[str]] = {}


class HarnessState(State, kw_only=True):
    """The whole state. Tools, skills and hooks are in the order in which a model sees them or they run.

    `code` maps a module name to its Python source; `files` maps a project path to the text of a file that command
    hooks need. `limits` holds every effective limit, defaults included. `servers` are MCP servers by name; one that was
    discovered has its tools/list under `tools`. `judges` maps each harness that a hook asks, by the name that it asks
    by, and those that judge the judges, to the digest of its state.
    """

    skills: list[Skill]
    tools: list[Tool]
    hooks: list[Hook]
    prompt: Prompt
    limits: dict[str, Limit]
    session_keep: list[str] = []
    require_skill: Literal["reply", "none"] = "none"
    reply_format: Literal["text", "json"] = "text"
    reply_schema: dict[str, Any] | None = None
    route_default: Route = "public"
    private_when: str | None = None
    silent_when: str | None = None
    scores: dict[str, str] = {}
    judges: dict[str, str] = {}
    servers: dict[str, dict[str, Any]] = {}
    code: dict[str, str] = {}
    files: dict[str, str] = {}
    surface: Surface = msgspec.field(default_factory=Surface)

    def limit_values(self) -> dict[str, Number]:
        """Each limit's effective value."""
        return {name: limit.value for name, limit in self.limits.items()}
