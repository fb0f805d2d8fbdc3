"""harness.lock, --locked, and the tools of MCP servers that are locked in it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson
import pytest

from harnessctl.bundle import Ref, read_bundle
from harnessctl.compile import compile_project, validate_project
from harnessctl.errors import FaultsError, ToolError

Shop = Callable[..., Path]
TOOLS = "manifests/tools/catalog.yaml"
SERVERS = """mcpServers:
  campaigns:
    command: campaign-server
    env: {CAMPAIGN_TOKEN: "${CAMPAIGN_TOKEN}"}
    defaults: {group: marketing, effect: write}
    discover: true
"""
LISTED = [
    {"name": "start_campaign", "description": "Starts one.", "annotations": {"x": 1}, "inputSchema": {
        "type": "object", "properties": {"id": {"type": "string", "description": "Which"}}, "title": "Args"}},
    {"name": "a b", "description": "Bad name."},
]  # fmt: skip


def lock_of(root: Path) -> dict[str, Any]:
    loaded: dict[str, Any] = orjson.loads((root / "harness.lock").read_bytes())
    return loaded


def locked(root: Path) -> list[str]:
    with pytest.raises(FaultsError) as error:
        compile_project(root, locked=True)
    return [fault.render().split("\n")[0] for fault in error.value.faults]


def test_the_lock_names_every_source_and_bundle(shop: Shop) -> None:
    root = shop()
    result = compile_project(root)
    lock = lock_of(root)
    assert lock["bundles"] == {"shop": {"version": "1.0.0", "digest": result.bundles[0].digest}}
    assert set(lock["sources"]) >= {
        "manifests/harness.yaml",
        "manifests/tools/shelf.py",
        "prices.py",
        "skills/upsell/SKILL.md",
    }
    assert ("bundle shop", "", f"1.0.0+{result.bundles[0].digest[:12]}") in result.lock_changes
    assert compile_project(root, locked=True).bundles[0].digest == result.bundles[0].digest


def test_locked_needs_a_lock(shop: Shop) -> None:
    root = shop()
    assert locked(root) == [
        "harness.lock: error[lock-missing]: the project is not locked; allowed a committed harness.lock"
    ]
    assert not (root / "harness.lock").exists() and not list((root / "build").glob("*.json"))


def test_locked_names_everything_that_would_change(shop: Shop) -> None:
    root = shop()
    compile_project(root)
    before = (root / "harness.lock").read_bytes()
    skill = root / "skills/upsell/SKILL.md"
    skill.write_text(skill.read_text().replace("one more", "two more"))
    (root / "skills/new").mkdir()
    (root / "skills/new/SKILL.md").write_text("---\nname: new\ndescription: New.\n---\nNew.\n")
    found = locked(root)
    assert [line.split(";")[0] for line in found] == [
        "harness.lock: error[lock-changed]: bundle shop would change",
        "harness.lock: error[lock-changed]: source skills/new/SKILL.md would change",
        "harness.lock: error[lock-changed]: source skills/upsell/SKILL.md would change",
    ]
    assert (root / "harness.lock").read_bytes() == before


def test_a_changed_comment_changes_the_source_and_not_the_bundle(shop: Shop) -> None:
    root = shop()
    compile_project(root)
    path = root / "manifests/harness.yaml"
    path.write_text(path.read_text() + "# a comment\n")
    assert [line.split(";")[0].split(": ")[-1] for line in locked(root)] == [
        "source manifests/harness.yaml would change"
    ]


def test_a_lock_with_a_merge_conflict_is_named(shop: Shop) -> None:
    root = shop()
    (root / "harness.lock").write_text('{\n<<<<<<< ours\n  "format": 1\n')
    (fault,) = validate_project(root).items
    assert fault.render().startswith("harness.lock:2: error[lock-unreadable]: the file is not JSON")
    assert "resolve the conflict" in fault.hint


def test_a_lock_of_another_version_is_named(shop: Shop) -> None:
    root = shop()
    (root / "harness.lock").write_text('{"format": "harnessctl/lock.v9"}')
    (fault,) = validate_project(root).items
    assert "error[lock-unreadable]: the file is not a lock of this version; got harnessctl/lock.v9" in fault.render()


def test_discovered_tools_are_asked_for_once_and_locked(shop: Shop) -> None:
    root = shop({TOOLS: ("tools:\n", f"{SERVERS}tools:\n")})
    asked: list[tuple[str, str]] = []

    def discover(name: str, spec: dict[str, Any]) -> list[dict[str, Any]]:
        asked.append((name, spec["command"]))
        return LISTED

    result = compile_project(root, discover=discover)
    assert asked == [("campaigns", "campaign-server")]
    assert [w.render().split("; ")[0] for w in result.warnings] == [
        "manifests/tools/catalog.yaml:4:3: warning[server-tool]: a tool of the MCP server `campaigns` cannot be used: "
        "its name is not one that a model can call: 'a b'"
    ]
    state = read_bundle(result.path()).state
    tool = state.tools[-1]
    assert (tool.name, tool.group, tool.effect) == ("start_campaign", "marketing", "write")
    assert tool.run == {"mcp": {"server": "campaigns", "tool": "start_campaign"}}
    assert tool.parameters == {"type": "object", "properties": {"id": {"type": "string"}}}
    assert tool.docs == {"/properties/id": ["Which"]}
    assert set(state.servers) == {"campaigns"}
    assert [tool["name"] for tool in lock_of(root)["discovered"]["campaigns"]["tools"]] == ["a b", "start_campaign"]

    hook = root / "manifests/hooks/guards.yaml"
    hook.write_text(
        hook.read_text()
        .replace("tools: [get_product]", "tools: [start_campaign]")
        .replace(", same_args: [link_id]", "")
    )
    compile_project(root, discover=discover)
    assert len(asked) == 1
    assert compile_project(root, locked=True).bundles


def test_code_spans_in_the_texts_of_servers_are_references(shop: Shop) -> None:
    root = shop({TOOLS: ("tools:\n", f"{SERVERS}tools:\n")})
    listed = [{"name": "start_campaign", "description": "After `get_product`; see get_product."}]
    state = read_bundle(compile_project(root, discover=lambda name, spec: listed).path()).state
    assert state.tools[-1].description == ["After ", Ref("tool", "get_product"), "; see get_product."]


def test_a_server_that_is_not_locked_is_a_fault_where_nobody_may_ask(shop: Shop) -> None:
    root = shop({TOOLS: ("tools:\n", f"{SERVERS}tools:\n")})
    (fault,) = validate_project(root).items
    assert fault.render().startswith(
        "manifests/tools/catalog.yaml:4:3: error[server-not-locked]: the tools of the MCP server `campaigns` are not locked: "
        "it was never asked"
    )
    with pytest.raises(FaultsError, match="1 error"):
        compile_project(root, locked=True, discover=lambda name, spec: LISTED)


def test_a_changed_server_is_asked_again(shop: Shop) -> None:
    root = shop({TOOLS: ("tools:\n", f"{SERVERS}tools:\n")})
    compile_project(root, discover=lambda name, spec: LISTED[:1])
    path = root / TOOLS
    path.write_text(path.read_text().replace("command: campaign-server", "command: other-server"))
    assert "its entry changed since" in validate_project(root).items[0].message
    result = compile_project(root, discover=lambda name, spec: [])
    assert ("server campaigns", "1 tools", "0 tools") in result.lock_changes


@pytest.mark.parametrize("error", [ToolError("it did not start"), RuntimeError("no event loop")])
def test_a_server_that_fails_is_named(shop: Shop, error: Exception) -> None:
    root = shop({TOOLS: ("tools:\n", f"{SERVERS}tools:\n")})

    def discover(name: str, spec: dict[str, Any]) -> list[dict[str, Any]]:
        raise error

    with pytest.raises(FaultsError) as raised:
        compile_project(root, discover=discover)
    assert (
        "catalog.yaml:4:3: error[server-discover]: the MCP server `campaigns` did not list its tools; got"
        in raised.value.render()
    )


def test_a_declared_tool_stands_for_the_discovered_one(shop: Shop) -> None:
    declared = (
        "tools:\n  - name: begin\n    description: Ours.\n    run: {mcp: {server: campaigns, tool: start_campaign}}\n"
    )
    root = shop({TOOLS: ("tools:\n", SERVERS + declared)})
    state = read_bundle(compile_project(root, discover=lambda name, spec: LISTED[:1]).path()).state
    assert [tool.name for tool in state.tools if tool.run and "mcp" in tool.run] == ["begin"]


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (
            ("    command: campaign-server\n", ""),
            "4:3: error[server-form]: the MCP server `campaigns` is reached in exactly one way",
        ),
        (("    discover", "    url: https://x.example\n    discover"), "4:3: error[server-form]"),
        (
            ("    discover", "    type: http\n    discover"),
            "8:11: error[server-form]: the type of the server does not go with",
        ),
        (("    discover", "    headers: {a: b}\n    discover"), "8:5: error[server-form]: headers go with url only"),
        (
            ('"${CAMPAIGN_TOKEN}"', "abc"),
            "6:27: error[secret-literal]: the value of `CAMPAIGN_TOKEN` looks like a secret",
        ),
        (
            ("    discover", "    dicsover: 1\n    discover"),
            "8:5: error[schema-unknown-field]: unknown field `dicsover`",
        ),
    ],
)
def test_servers_that_are_wrong(shop: Shop, change: tuple[str, str], expected: str) -> None:
    root = shop({TOOLS: ("tools:\n", SERVERS.replace(*change) + "tools:\n")})
    with pytest.raises(FaultsError) as raised:
        compile_project(root, discover=lambda name, spec: LISTED[:1])
    assert expected in raised.value.render()
