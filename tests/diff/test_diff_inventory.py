"""The inventory of a bundle, and its reconciliation with the manifests."""

from __future__ import annotations

from diff_project import FILES, SKILL
from diff_states import make_state

from harnessctl.bundle.files import make_bundle
from harnessctl.compile.inventory import inventory, reconcile
from harnessctl.compile.revision import load_side

VERSIONS = {
    "skills": {"item-qa": "1.2.0", "small-talk": "1.0.0", "after-sales": "0.3.0"},
    "tools": {"get_product": "2.0.0", "search_faq": "1.0.0", "move_link": "1.0.0", "send_coupon": "1.1.0"},
    "hooks": {"check-input": "1.0.0", "look-up-first": "1.0.1", "short-reply": "1.0.0"},
}


def test_tables_11_and_12() -> None:
    state = make_state()
    state.tools[2].group, state.tools[2].run = "flow-control", {"mcp": {"server": "market", "tool": "move"}}
    tools, skills, hooks = inventory(make_bundle(state, name="live", version="1.0.0", inventory=VERSIONS)).tables()
    assert tools.title == "Table 11. Tools by responsibility (4)"
    assert tools.rows == [
        ("retrieval", "2", "get_product 2.0.0, search_faq 1.0.0", "python"),
        ("commerce", "1", "send_coupon 1.1.0", "python"),
        ("flow-control", "1", "move_link 1.0.0", "mcp:market"),
    ]
    assert skills.title == "Table 12. Skills (1 reply, 2 strategy)"
    assert skills.rows == [
        ("reply skill", "item-qa", "1.2.0"),
        ("strategy skill", "small-talk", "1.0.0"),
        ("strategy skill", "after-sales", "0.3.0"),
    ]
    assert hooks.rows == [
        ("input", "check-input", "1.0.0", "max_chars else block"),
        ("post_model", "short-reply", "1.0.0", "always warn"),
        ("stop", "look-up-first", "1.0.1", "all else retry"),
    ]


def reconciled(project, changed: dict[str, str]) -> list[str]:
    root = project(FILES)
    bundle = load_side(str(root))
    assert reconcile(bundle, root) == []
    for name, text in changed.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return [fault.render() for fault in reconcile(bundle, root)]


def test_another_version(project) -> None:
    (fault,) = reconciled(project, {"skills/greet/SKILL.md": SKILL.replace('"1.0.0"', '"1.1.0"')})
    assert fault == (
        "skills/greet/SKILL.md:2:7: error[inventory-version]: the skill `greet` has another version in its manifest; "
        "got 1.1.0; allowed 1.0.0\n    hint: compile it again"
    )


def test_a_changed_skill_that_keeps_its_version(project) -> None:
    (fault,) = reconciled(project, {"skills/greet/SKILL.md": SKILL.replace("Be kind.", "Be very kind.")})
    assert "error[inventory-stale]: the skill `greet` changed and kept its version; got 1.0.0" in fault


def test_a_comment_is_no_disagreement(project) -> None:
    assert reconciled(project, {"skills/greet/SKILL.md": SKILL.replace("---\nBe", "# a remark\n---\nBe")}) == []


def test_added_and_missing_modules(project) -> None:
    later = SKILL.replace("name: greet", "name: part").replace("Greets", "Parts from")
    root = project(FILES)
    both = project({"skills/part/SKILL.md": later})
    bundle = load_side(str(both))
    (root / "skills/part/SKILL.md").unlink()
    (root / "skills/part").rmdir()
    assert [f.code for f in reconcile(bundle, root)] == ["inventory-missing"]
    without = load_side(str(root))
    project({"skills/part/SKILL.md": later})
    (fault,) = reconcile(without, root)
    assert (fault.code, fault.path, fault.line) == ("inventory-added", "skills/part/SKILL.md", 2)


def test_the_harness_itself(project) -> None:
    harness = FILES["manifests/harness.yaml"].replace("version: 1.0.0", "version: 1.0.1")
    (fault,) = reconciled(project, {"manifests/harness.yaml": harness})
    assert fault.startswith("manifests/harness.yaml:3:7: error[inventory-version]: the harness `shop`")
