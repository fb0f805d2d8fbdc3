"""`harnessctl world build | sample | check | import` as a user has them."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import jsonschema_rs
import pytest

from harnessctl.manifests.schemas import schema_for
from harnessctl.simulate.scenario_files import read_scenarios
from tests.cli_world.world_shop import WORLD


def changed(shop: Path, path: str, old: str, new: str) -> None:
    text = (shop / path).read_text()
    assert old in text
    (shop / path).write_text(text.replace(old, new))


def test_build_shows_what_a_world_holds(harnessctl, shop):
    shown = harnessctl("world", "build", cwd=shop)
    assert shown.code == 0, shown.err
    assert all(len(line) <= 80 for line in shown.out.splitlines())
    built = harnessctl("world", "build", "shop", "--json").json
    assert built["tables"] == {"items": 3, "rooms": 2, "reservations": 0}
    assert built["mutable"] == ["reservations"]
    assert built["intents"]["price"] == {"share": 0.75, "families": {"shop": 1}}
    assert built["families"] == {"shop": {"en": 2, "zh": 1}}
    assert built["digest"][:12] in shown.out
    assert len(list((shop / "build" / "worlds").glob("*.sqlite"))) == 1


def test_build_needs_no_harness_that_compiles(harnessctl, shop):
    (shop / "skills/small-talk/SKILL.md").write_text("no skill")
    assert harnessctl("world", "build", "shop", cwd=shop).code == 0
    assert harnessctl("world", "build").code == 1


def test_sample_is_the_same_each_time_and_any_part_of_it(harnessctl, shop):
    first = harnessctl("world", "sample", "n=6", "seed=4", cwd=shop)
    again = harnessctl("world", "sample", "n=6", "seed=4")
    fewer = harnessctl("world", "sample", "n=2", "seed=4")
    other = harnessctl("world", "sample", "n=6", "seed=5")
    assert first.out == again.out != other.out
    assert first.out.startswith(fewer.out)
    lines = first.out.splitlines()
    validator = jsonschema_rs.validator_for(schema_for("Scenario"))
    assert len(lines) == 6
    for line in lines:
        validator.validate(json.loads(line))
    written = harnessctl("world", "sample", "n=6", "seed=4", "--out", "s.jsonl", "--json")
    assert (shop / "s.jsonl").read_text() == first.out
    assert written.json["scenarios"] == 6
    assert [s.seed for s in read_scenarios(shop / "s.jsonl")] == [4] * 6


def test_check_reaches_every_family(harnessctl, shop):
    done = harnessctl("world", "check", "each=3", "--json", cwd=shop)
    assert done.code == 0, done.err
    assert (done.json["families"], done.json["unreached"]) == (2, [])
    assert done.json["scenarios"] >= 6
    plain = harnessctl("world", "check")
    assert plain.out == ""
    assert "0 not reached" in plain.err


def test_check_lists_what_cannot_be_reached_with_the_reason(harnessctl, shop):
    harnessctl("world", "sample", "n=8", "seed=1", "--out", "s.jsonl", cwd=shop)
    changed(shop, "manifests/worlds/shop/items.csv", "89,4", "99,4")
    lines = (shop / "s.jsonl").read_text().replace('"article":1', '"article":7')
    (shop / "s.jsonl").write_text(lines)
    done = harnessctl("world", "check", "--scenarios", "s.jsonl")
    assert done.code == 1
    assert "tool:error" in done.out
    assert "warning: 8 scenarios were made with other tables than these" in done.err
    listed = harnessctl("world", "check", "--scenarios", "s.jsonl", "--json")
    assert listed.code == 1
    assert {u["what"] for u in listed.json["unreached"]} == {"call"}
    assert all("article 7" in u["reason"] for u in listed.json["unreached"])


def test_check_takes_only_scenarios_of_the_harness(harnessctl, shop):
    harnessctl("world", "sample", "n=2", "--out", "s.jsonl", cwd=shop)
    (shop / "s.jsonl").write_text((shop / "s.jsonl").read_text().replace('"harness":"shop"', '"harness":"other"'))
    done = harnessctl("world", "check", "--scenarios", "s.jsonl")
    assert done.code == 2
    assert "is for the harness other, not for shop" in done.err


@pytest.mark.parametrize(
    ("path", "old", "new", "says"),
    [
        ("manifests/worlds/shop/families/shop.yaml", "tool: get_price", "tool: get_cost", "get_cost"),
        ("manifests/worlds/shop/families/shop.yaml", "[answer-price]", "[no-skill]", "no-skill"),
        ("manifests/worlds/shop/families/shop.yaml", "is {price} yuan", "is {price} yuan" + " of course" * 20, "120"),
        ("manifests/worlds/shop/families/shop.yaml", "FROM items", "FROM items WHERE id > 9", "no row"),
        ("manifests/worlds/shop.yaml", "chat: 1", "talk: 1", "talk"),
        ("manifests/worlds/shop.yaml", "price: 3", "price: -3", "price"),
        ("manifests/worlds/shop.yaml", "  mix:", "  faults: {timeout: 0.7, denied: 0.7}\n  mix:", "1.4"),
        ("manifests/worlds/shop.yaml", "  mix:", "  history: 1.5\n  mix:", "1.5"),
        ("manifests/worlds/shop.yaml", "families/shop.yaml", "families/shopp.yaml", "did you mean"),
    ],
)
def test_what_is_wrong_with_a_simulation_is_told_by_its_place(harnessctl, shop, path, old, new, says):
    changed(shop, path, old, new)
    done = harnessctl("world", "sample", cwd=shop)
    assert done.code == 1
    assert f"{path}:" in done.err or "manifests/worlds/shop.yaml:" in done.err
    assert says in done.err
    assert done.out == ""


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("build", "nowhere"), "no world 'nowhere'; there are shop"),
        (("sample", "nowhere"), "nowhere"),
        (("sample", "n=0"), "n"),
        (("sample", "sed=1"), "did you mean seed"),
        (("sample", "one", "two"), "one world at a time"),
        (("check", "each=0"), "each"),
        (("check", "--scenarios", "none.jsonl"), "none.jsonl"),
        (("check", "--scenarios", "manifests/harness.yaml"), "harness.yaml:1"),
        (("import", "none.jsonl"), "none.jsonl"),
        (("import", "log.jsonl", "viewers=hash"), "HARNESSCTL_VIEWER_KEY"),
        (("import", "log.jsonl", "viewers=lose"), "viewers"),
        (("import", "log.jsonl", "--mapping", "none.yaml"), "none.yaml"),
        (("sample", "user=poet"), "user"),
    ],
)
def test_a_wrong_argument_is_said(harnessctl, shop, arguments, says):
    (shop / "log.jsonl").write_text("{}\n")
    done = harnessctl("world", *arguments, cwd=shop)
    assert done.code in (1, 2)
    assert says in done.err
    assert "Traceback" not in done.err


def test_cfg_prints_the_recipe(harnessctl, shop):
    shown = harnessctl("world", "sample", "--cfg", "seed=9", cwd=shop)
    assert "seed: 9" in shown.out


def test_a_world_without_a_simulation_draws_nothing(harnessctl, shop):
    text = WORLD[: WORLD.index("simulation:")]
    (shop / "manifests/worlds/shop.yaml").write_text(text)
    assert harnessctl("world", "build", "--json", cwd=shop).json["intents"] == {}
    done = harnessctl("world", "sample")
    assert done.code == 2
    assert "draws no scenarios" in done.err


def test_a_served_run_becomes_scenarios_that_can_be_confirmed_and_checked(harnessctl, shop):
    """The flywheel: run, import, confirm, check."""
    (shop / "comments.jsonl").write_text(
        '{"id": "1", "text": "How much is the cup?", "room": "back"}\n'
        '{"id": "2", "text": "How much is the cup?", "room": "back"}\n'
        '{"id": "3", "text": "Hello"}\n'
    )
    call = '{"tool_calls": [{"name": "%s", "arguments": %s}]}\n'
    price = (
        call % ("load_skill", '{"skill": "answer-price"}')
        + call % ("get_price", '{"article": 2}')
        + '{"content": "The cup is 19 yuan."}\n'
    )
    hello = call % ("load_skill", '{"skill": "small-talk"}') + '{"content": "Welcome!"}\n'
    (shop / "script.jsonl").write_text(price + price + hello)
    ran = harnessctl("run", "--input", "comments.jsonl", "policy=scripted", "script=script.jsonl", cwd=shop)
    assert ran.code == 0, ran.err
    done = harnessctl("world", "import", "runs/latest-run", "--out", "todo.jsonl")
    assert done.code == 0, done.err
    assert "3 items: 2 scenarios, 1 folded" in done.err
    price, hello = read_scenarios(shop / "todo.jsonl")
    assert (price.gold, price.request.room, price.logged and price.logged.times) == (None, "back", 2)
    assert [(c.tool, c.arguments) for c in price.logged.tools] == [("get_price", {"article": 2})]

    unconfirmed = harnessctl("world", "check", "--scenarios", "todo.jsonl")
    assert unconfirmed.code == 1
    assert "gold" in unconfirmed.out

    confirmed = json.loads((shop / "todo.jsonl").read_text().splitlines()[0])
    logged = confirmed.pop("logged")
    confirmed["gold"] = {"skills": logged["skills"], "calls": logged["tools"], "replies": [logged["reply"]]}
    (shop / "gold.jsonl").write_text(json.dumps(confirmed) + "\n")
    checked = harnessctl("world", "check", "--scenarios", "gold.jsonl")
    assert checked.code == 0, checked.out + checked.err


def test_import_to_stdout_and_as_json(harnessctl, shop):
    (shop / "m.yaml").write_text(
        "apiVersion: harnessctl/v1\nkind: LogMapping\nname: chat\nharness: shop\ntext: /q\n"
        "gold: {skills: /skill, calls: {at: /calls}}\n"
    )
    (shop / "log.jsonl").write_text(
        '{"q": "how much is 1", "skill": "answer-price", "calls": [{"name": "get_price", "arguments": {"article": 1}}]}\n'
        '{"q": "what", "skill": "answer-price", "calls": [{"name": "get_cost"}]}\n'
    )
    done = harnessctl("world", "import", "log.jsonl", "--mapping", "m.yaml", cwd=shop)
    assert done.code == 1
    (line,) = done.out.splitlines()
    assert json.loads(line)["gold"]["needs"]["tools"] == ["load_skill", "get_price"]
    assert "log.jsonl:2: gold names the tool get_cost, which shop does not have" in done.err
    as_json = harnessctl("world", "import", "log.jsonl", "--mapping", "m.yaml", "--json").json
    assert as_json["report"]["refused"] == 1
    assert as_json["scenarios"][0]["id"] == "chat-1"


def mappings_of_the_page(repository: Path) -> dict[str, str]:
    """The mappings of docs/simulation.md, by name."""
    blocks = (repository / "docs/simulation.md").read_text().split("\n\n")
    found = [b for b in blocks if b.startswith("    # manifests/mappings/")]
    texts = ["\n".join(line[4:] for line in block.splitlines()) + "\n" for block in found]
    return {text.splitlines()[0].rpartition("/")[2].removesuffix(".yaml"): text for text in texts}


def test_the_mapping_of_a_chat_log(harnessctl, repository, shop):
    text = mappings_of_the_page(repository)["chat-log"]
    (shop / "mapping.yaml").write_text(text.replace("harness: live-stream", "harness: shop"))
    item = {
        "request_id": "q1",
        "comment": {"text": "how much is the cup", "user": "Mei"},
        "on_air": 3,
        "answer": "19 yuan",
        "calls": [{"function": {"name": "log_event", "arguments": "{}"}},
                  {"function": {"name": "get_price", "arguments": '{"article": 2}'}}],
    }  # fmt: skip
    (shop / "log.jsonl").write_text(json.dumps(item) + "\n")
    done = harnessctl("world", "import", "log.jsonl", "--mapping", "mapping.yaml", cwd=shop)
    assert done.code == 0, done.err
    scenario = json.loads(done.out)
    assert scenario["request"] == {
        "id": "q1",
        "messages": [{"text": "how much is the cup", "viewer": "Mei"}],
        "room": "spring-table",
        "context": {"current_link_id": 3},
    }
    assert scenario["logged"]["tools"] == [{"tool": "get_price", "arguments": {"article": 2}}]


def test_the_training_tasks_of_tau2_retail(harnessctl, repository, shared_data, tmp_path):
    """The mapping of docs/simulation.md on 74 real tasks."""
    root = tmp_path / "retail"
    shutil.copytree(repository / "tests/retail/project", root)
    shutil.copy(shared_data / "tau2_retail/db.json", root / "manifests/worlds/db.json")
    (root / "mapping.yaml").write_text(mappings_of_the_page(repository)["tau2-retail"])
    tasks = str(shared_data / "tau2_retail/tasks_train.json")
    done = harnessctl("world", "import", tasks, "--mapping", "mapping.yaml", "--out", "retail.jsonl", cwd=root)
    assert done.code == 0, done.err
    assert "74 items: 74 scenarios, 74 with gold, 0 folded" in done.err
    scenarios = list(read_scenarios(root / "retail.jsonl"))
    source = json.loads((shared_data / "tau2_retail/tasks_train.json").read_text())
    for scenario, task in zip(scenarios, source, strict=True):
        assert scenario.id == task["id"]
        assert scenario.gold is not None
        actions = task["evaluation_criteria"]["actions"]
        assert [(c.tool, c.arguments) for c in scenario.gold.calls] == [(a["name"], a["arguments"]) for a in actions]
        assert task["user_scenario"]["instructions"]["reason_for_call"] in (scenario.request.text or "")
