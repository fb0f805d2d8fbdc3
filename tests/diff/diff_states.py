"""A harness state to change: every kind of thing, each with words of its own so that no two are alike."""

from __future__ import annotations

from collections.abc import Mapping

from harnessctl.bundle.state import (
    Action,
    Block,
    ExampleMessage,
    Framing,
    HarnessState,
    Hook,
    Limit,
    Message,
    Part,
    Prompt,
    Rule,
    Skill,
    Surface,
    Tool,
)
from harnessctl.bundle.text import Ref, Text

SKILLS = ("item-qa", "small-talk", "after-sales")
TOOLS = ("get_product", "search_faq", "move_link", "send_coupon")
HOOKS = ("check-input", "look-up-first", "short-reply")
BLOCKS = ("base", "boundary", "skills")


def words(seed: str, count: int = 8) -> str:
    """`count` words that begin with `seed` and occur nowhere else."""
    return " ".join(f"{seed}{chr(97 + n)}{n}" for n in range(count))


def make_state(names: Mapping[str, str] | None = None) -> HarnessState:
    """The state; `names` gives other names to some of its skills, tools, hooks, blocks and rules."""
    names = names or {}

    def n(name: str) -> str:
        return names.get(name, name)

    def text(seed: str, *refs: Ref) -> Text:
        out: Text = [words(seed) + (" " if refs else "")]
        for ref in refs:
            out += [ref, f" {seed}tail"]
        return out

    def rule_name(skill: str, index: int) -> str:
        return names.get(f"{skill}/r{index}", f"r{index}")

    def skill(name: str) -> Skill:
        ids = [rule_name(name, i) for i in range(4)]
        rules = [
            Rule(
                id=rule,
                text=text(f"{name[:2]}{i}", Ref("tool", n("get_product"))),
                after=ids[0] if i == 1 else None,
                requires=ids[2] if i == 3 else None,
            )
            for i, rule in enumerate(ids)
        ]
        return Skill(
            name=n(name),
            kind="reply" if name == "item-qa" else "strategy",
            description=text(f"{name[:2]}desc", Ref("skill", n("item-qa"))),
            body=[Part(text=[words(f"{name[:2]}head", 12) + "\n"]), Part(rules=ids), Part(text=[f"{name} ends\n"])],
            rules=rules,
            examples=[
                [
                    ExampleMessage(role="user", content=["hello"]),
                    ExampleMessage(role="assistant", calls=[{"tool": n("get_product"), "arguments": {"id": 1}}]),
                ]
            ],
            allowed_tools=[n("search_faq")],
        )

    def tool(name: str) -> Tool:
        return Tool(
            name=n(name),
            description=text(name.replace("_", "")),
            group="retrieval" if name in ("get_product", "search_faq") else "commerce",
            parameters={
                "type": "object",
                "properties": {f"{name}_id": {"type": "integer"}, f"{name}_note": {"type": "string"}},
                "required": [f"{name}_id"],
            },
            docs={f"/properties/{name}_id": [words(f"{name[:3]}doc", 5)]},
            run={"python": f"shop.tools:{name}"},
            timeout_s=2.0,
        )

    hooks = [
        Hook(
            id=n("check-input"),
            event="input",
            check={"max_chars": {"limit": "max_message_chars"}},
            otherwise=Action(action="block", message=Message(text=[words("toolong", 6)])),
        ),
        Hook(
            id=n("look-up-first"),
            event="stop",
            when={"tools": [n("send_coupon")]},
            check={
                "all": [
                    {"tool_called": {"tools": [n("get_product")], "min": 1}},
                    {"skill_loaded": {"skill": n("item-qa")}},
                ]
            },
            otherwise=Action(
                action="retry",
                max_retries=1,
                message=Message(text=[words("lookup", 6) + " ", Ref("tool", n("get_product"))]),
            ),
            enforces=[f"{n('item-qa')}#{rule_name('item-qa', 0)}"],
        ),
        Hook(id=n("short-reply"), event="post_model", then=Action(action="warn", message=Message(text=["watch out"]))),
    ]
    blocks = [
        Block(id=n("base"), template=words("base") + " {{ tool('" + n("get_product") + "') }} {{ room }}\n", pin=True),
        Block(
            id=n("boundary"),
            heading=["Bounds"],
            items=[Rule(id=f"b{i}", text=[words(f"bound{i}")]) for i in range(3)],
            after=n("base"),
        ),
        Block(id=n("skills"), template=words("skl") + " {% for s in skills %}{{ s.name }}{% endfor %}\n", when="room"),
    ]
    return HarnessState(
        skills=[skill(name) for name in SKILLS],
        tools=[tool(name) for name in TOOLS],
        hooks=hooks,
        prompt=Prompt(
            inputs={"type": "object", "properties": {"room": {"type": "string"}}},
            blocks=blocks,
            framing=Framing(lead=["Heard by ", Ref("tool", n("get_product")), ":"]),
        ),
        limits={
            "max_rounds": Limit(value=4, range=[2, 6]),
            "reply_max_chars": Limit(value=80, range=[50, 120], unit="codepoints"),
            "max_message_chars": Limit(value=4000),
        },
        session_keep=["calls"],
        require_skill="reply",
        servers={"market": {"url": "https://market.example/mcp"}, "time": {"command": "mcp-server-time"}},
        code={
            "shop.tools": "def get_product(id):\n    return {}\n",
            "shop.hooks": "def check(scene):\n    return True\n",
        },
        files={"hooks/a.sh": "exit 0\n"},
        surface=Surface(
            tools={n("move_link"): "shift_link"},
            parameters={n("get_product"): {"get_product_id": "pid"}},
            parameter_order={n("get_product"): ["get_product_id"]},
        ),
    )
