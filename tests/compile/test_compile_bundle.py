"""A project without faults becomes a bundle: what is in it, and when its digest changes."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from harnessctl.bundle import Bundle, Ref, encode_bundle, read_bundle
from harnessctl.bundle.state import Part, Rule
from harnessctl.compile import compile_project
from harnessctl.errors import FaultsError, UsageError

Make = Callable[..., Bundle]


def test_the_shop_has_no_fault(faults: Callable[..., list[str]]) -> None:
    assert faults() == []


def test_skills_are_text_and_rules_with_references(bundle: Make) -> None:
    state = bundle().state
    item, upsell = state.skills
    assert (item.name, item.kind, upsell.kind) == ("item-qa", "reply", "strategy")
    assert item.description == ["Answers price and stock questions with ", Ref("tool", "get_product"), "."]
    assert item.body == [
        Part(text=["The viewer hears the answer once: fact first.\n\n## Rules\n"]),
        Part(rules=["lookup", "short", "ask"]),
    ]
    assert item.rules == [
        Rule(id="lookup", text=["Call ", Ref("tool", "get_product"), " before any price is said."], protected=True),
        Rule(
            id="short",
            text=["Reply in at most ", Ref("limit", "reply_max_chars"), " characters."],
            limit="reply_max_chars",
        ),
        Rule(id="ask", text=["If two links fit, ask; ", Ref("rule", "lookup"), " waits."], requires="lookup"),
    ]
    assert item.allowed_tools == ["get_product", "search_faq"]
    user, call, result, reply = item.examples[0]
    assert user.content == ["get_product of 3?"] and result.content == ['{"price": 5}']
    assert call.calls == [{"tool": "get_product", "arguments": {"link_id": 3}}]
    assert reply.content == ["5 yuan, says ", Ref("tool", "get_product"), "."]


def test_tools_have_their_descriptions_apart(bundle: Make) -> None:
    state = bundle().state
    assert [tool.name for tool in state.tools] == ["load_skill", "get_product", "add_to_cart", "search_faq", "refuse"]
    load, get = state.tools[:2]
    assert load.run == {"builtin": "load_skill"} and load.group == "flow-control"
    assert get.parameters == {
        "type": "object",
        "properties": {"link_id": {"type": "integer", "minimum": 1}},
        "required": ["link_id"],
    }
    assert get.docs == {"/properties/link_id": ["The number of the link, not a `#id`."]}
    assert state.tools[3].parameters["required"] == ["query"]


def test_hooks_stand_in_the_order_in_which_they_run(bundle: Make) -> None:
    state = bundle().state
    assert [hook.id for hook in state.hooks] == ["short-reply", "look-up-first"]
    first = state.hooks[1]
    assert first.when == {"effects": ["write"]} and first.enforces == ["item-qa#lookup"]
    assert first.otherwise is not None and first.otherwise.message is not None
    assert first.otherwise.message.text == ["Call ", Ref("tool", "get_product"), " first."]


def test_prompt_limits_code_and_the_rest(bundle: Make) -> None:
    made = bundle()
    state = made.state
    assert [block.id for block in state.prompt.blocks] == ["role", "always", "links", "viewer"]
    assert [rule.text for rule in state.prompt.blocks[1].items] == [
        ["Say what ", Ref("tool", "get_product"), " said."],
        ["At most ", Ref("limit", "reply_max_chars"), " characters."],
    ]
    assert state.limits["max_rounds"].range == [2, 6] and state.limits["deadline_s"].value == 15
    assert set(state.code) == {"shelf", "prices"} and "def price" in state.code["prices"]
    assert (state.require_skill, state.private_when, made.world) == ("reply", "'address' in message", "stall")
    assert made.inventory["skills"] == {"item-qa": "1.2.0", "upsell": "1.0.0"}
    assert made.source_map["skills/item-qa/rules/short"] == ["skills/item-qa/SKILL.md", 11, 1]
    assert "prices.py" in made.sources and "skills/item-qa/examples.yaml" in made.sources


def test_the_file_is_what_the_bundle_package_would_write(shop: Callable[..., Path]) -> None:
    result = compile_project(shop())
    assert encode_bundle(read_bundle(result.path())) == result.path().read_bytes()
    assert result.path().name == f"shop-1.0.0+{result.bundles[0].digest[:12]}.bundle.json"


def test_equal_sources_give_equal_bytes_anywhere(
    shop: Callable[..., Path], tmp_path_factory: pytest.TempPathFactory
) -> None:
    here = shop()
    there = tmp_path_factory.mktemp("there") / "project"
    shutil.copytree(here, there)
    one, two = compile_project(here).path(), compile_project(there).path()
    assert one.read_bytes() == two.read_bytes() and one.name == two.name
    assert (here / "harness.lock").read_bytes() == (there / "harness.lock").read_bytes()


@pytest.mark.parametrize(
    ("path", "change"),
    [
        ("manifests/harness.yaml", ("kind: Harness", "kind: Harness  # a comment")),
        ("manifests/tools/catalog.yaml", ("tags: [lookup]", 'tags: ["lookup"]')),
        (
            "manifests/tools/catalog.yaml",
            ("    tags: [lookup]\n", "    tags: [lookup]\n    effect: none\n    retries: 0\n"),
        ),
        ("manifests/hooks/guards.yaml", ("order: -1", "order: -1\n    on_error: block\n    timeout_s: 5")),
        ("manifests/harness.yaml", ("version: 1.0.0", "version: 1.0.1")),
        ("skills/item-qa/SKILL.md", ('"1.2.0"', '"1.2.1"')),
        ("skills/item-qa/SKILL.md", (" {#lookup .protected}", "   {.protected  #lookup}")),
        (
            "manifests/tools/catalog.yaml",
            ("type: integer, minimum: 1,", "type: integer, title: Link, minimum: 1, examples: [1],"),
        ),
    ],
)
def test_what_changes_no_behaviour_keeps_the_digest(bundle: Make, path: str, change: tuple[str, str]) -> None:
    before = bundle().digest
    assert bundle({path: change}).digest == before


@pytest.mark.parametrize(
    ("path", "change"),
    [
        ("skills/item-qa/SKILL.md", ("before any price", "before each price")),
        ("skills/item-qa/SKILL.md", (" .protected", "")),
        ("manifests/harness.yaml", ("value: 80,", "value: 81,")),
        ("manifests/harness.yaml", ("[50, 120]", "[50, 121]")),
        ("manifests/harness.yaml", ("[item-qa, upsell]", "[upsell, item-qa]")),
        ("manifests/hooks/guards.yaml", ("max_retries: 2", "max_retries: 1")),
        ("prices.py", ("return 5", "return 6")),
        ("manifests/prompts/main.yaml", ("You host", "You are the host of")),
        ("manifests/tools/catalog.yaml", ("minimum: 1", "minimum: 2")),
    ],
)
def test_what_changes_behaviour_changes_the_digest(bundle: Make, path: str, change: tuple[str, str]) -> None:
    before = bundle().digest
    assert bundle({path: change}).digest != before


def test_several_harnesses_share_sources(shop: Callable[..., Path]) -> None:
    mini = (
        "apiVersion: harnessctl/v1\nkind: Harness\nname: mini\nversion: 0.1.0\ninclude: {tools: [tiny]}\nprompt: tiny\n"
    )
    root = shop(
        {
            "manifests/mini.yaml": mini,
            "manifests/judges/live.yaml": mini.replace("name: mini", "name: live-judge"),
            "manifests/tools/tiny.yaml": "apiVersion: harnessctl/v1\nkind: Tools\n"
            "tools: [{name: get_product, description: Gets it., run: {python: 'shelf:get_product'}}]\n",
            "manifests/tools/shelf.py": "def get_product(ctx, link_id=1):\n    return 1\n",
            "manifests/prompts/tiny.yaml": "apiVersion: harnessctl/v1\nkind: PromptPipeline\nname: tiny\n"
            "blocks: [{id: a, template: Hello.}]\n",
        }
    )
    result = compile_project(root)
    assert [(b.harness, b.file) for b in result.bundles] == [
        ("shop", "harness"), ("live-judge", "judges/live"), ("mini", "mini"),
    ]  # fmt: skip
    assert compile_project(root, harness="judges/live").path("judges/live").name.startswith("live-judge-")
    assert len(compile_project(root, harness="mini").bundles) == 1
    with pytest.raises(UsageError, match="no harness `nano`") as error:
        compile_project(root, harness="nano")
    assert "shop, live-judge, mini" in error.value.hint
    tiny = read_bundle(result.path("mini")).state
    assert [tool.name for tool in tiny.tools] == ["get_product"], "no skills, so no load_skill"


def test_nothing_is_written_when_anything_is_wrong(shop: Callable[..., Path]) -> None:
    root = shop({"skills/upsell/SKILL.md": ("Offer one more.", "Call get_product.")})
    with pytest.raises(FaultsError):
        compile_project(root)
    assert not list((root / "build").glob("*.json")) and not (root / "harness.lock").exists()


def test_a_project_of_nothing_is_told_what_to_add(tmp_path: Path) -> None:
    with pytest.raises(FaultsError) as error:
        compile_project(tmp_path)
    assert "error[harness-missing]: the project has no harness; allowed manifests/harness.yaml" in error.value.render()


def test_load_skill_may_be_declared_and_described(bundle: Make) -> None:
    tools = "  - name: open_guide\n    description: Opens a guide.\n    run: {builtin: load_skill}\n  - name: refuse\n"
    state = bundle({"manifests/tools/catalog.yaml": ("  - name: refuse\n", tools)}).state
    loads = [tool for tool in state.tools if tool.run == {"builtin": "load_skill"}]
    assert [(tool.name, tool.description) for tool in loads] == [("open_guide", ["Opens a guide."])]
    assert loads[0].parameters["properties"] == {"skill": {"type": "string"}}


def test_an_explicit_reference_says_which_of_two_is_meant(bundle: Make) -> None:
    tool = "  - name: upsell\n    description: Shows it.\n    run: {python: 'shelf:show'}\n  - name: refuse\n"
    state = bundle(
        {
            "manifests/tools/catalog.yaml": ("  - name: refuse\n", tool),
            "manifests/tools/shelf.py": (")}\n", ")}\n\n\ndef show():\n    return 1\n"),
            "skills/upsell/SKILL.md": ("Offer one more.", "Load `skill:upsell`, call ``tool:upsell``."),
        }
    ).state
    assert state.skills[1].body == [
        Part(text=["Load ", Ref("skill", "upsell"), ", call ", Ref("tool", "upsell"), "."]),
    ]  # fmt: skip
