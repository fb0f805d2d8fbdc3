"""All published training tasks: the oracle completes them from the hooks' demands, or it is said what stands in the way."""

from __future__ import annotations

import copy
import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from harnessctl.bundle import read_bundle
from harnessctl.compile import compile_project
from harnessctl.records.scenario import Scenario
from harnessctl.records.trajectory import Trajectory
from harnessctl.score.rules import RuleScorer
from harnessctl.simulate.checking import Unreached, check_scenarios
from harnessctl.simulate.plan import PlanBlocked, complete
from harnessctl.simulate.world import open_world
from tests.retail.gold import WRITES
from tests.retail.tasks import scenario

HERE = Path(__file__).parent
TASKS = 74

#: Ids that the published database does not hold, by task; each stands in a gold action.
DANGLING = {2: "6086499569", 3: "6086499569", 4: "6086499569", 46: "#9502126", 47: "#9502126"}
#: The gold action of this task is refused by the shop itself: the gift card has 17.00 and the exchange costs 21.10 more.
REFUSED = 105


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory, shared_data: Path):
    root = tmp_path_factory.mktemp("retail-oracle") / "project"
    shutil.copytree(HERE / "project", root, ignore=shutil.ignore_patterns("build"))
    shutil.copy(shared_data / "tau2_retail" / "db.json", root / "manifests" / "worlds" / "db.json")
    return root, read_bundle(compile_project(root).bundles[0].path)


@pytest.fixture(scope="module")
def scenarios(shared_data: Path) -> list[Scenario]:
    folder = shared_data / "tau2_retail"
    database: dict[str, Any] = json.loads((folder / "db.json").read_text())
    return [scenario(task, database) for task in json.loads((folder / "tasks_train.json").read_text())]


@pytest.fixture(scope="module")
def carried_out(bundle, scenarios) -> tuple[list[Unreached], dict[str, Trajectory]]:
    root, compiled = bundle
    records: dict[str, Trajectory] = {}
    with open_world(root / "manifests" / "worlds" / "retail.yaml") as world:
        found = check_scenarios(
            compiled, world, scenarios, on_done=lambda s, t: records.update({s.id: t} if t is not None else {})
        )
    return found, records


def test_every_task_is_a_scenario(scenarios):
    assert len(scenarios) == len({s.id for s in scenarios}) == TASKS
    assert sum(bool(s.gold and s.gold.end_state) for s in scenarios) >= 60
    assert sum(len(s.gold.calls) for s in scenarios if s.gold) > 300


def test_what_cannot_be_reached_is_named(carried_out):
    found, _ = carried_out
    dangling = {f"tau2-{task}": id for task, id in DANGLING.items()}
    assert {u.scenario for u in found} == {*dangling, f"tau2-{REFUSED}"}
    for unreached in found:
        assert unreached.what == "call"
        assert unreached.by == "tool:error"
        expected = dangling.get(unreached.scenario, "the gift card's balance is too low")
        assert expected in f"{unreached.call} {unreached.reason}"


def test_all_others_make_every_call_and_leave_the_right_tables(carried_out, scenarios):
    found, records = carried_out
    unreached = {u.scenario for u in found}
    done = [s for s in scenarios if s.id not in unreached]
    assert len(done) == TASKS - 6
    scorer = RuleScorer(WRITES)
    for task in done:
        gold, record = task.gold, records[task.id]
        made = [(call.name, call.arguments) for call in record.tools if call.name != "load_skill"]
        assert [call.status for call in record.tools if call.status != "ok"] == []
        wanted = [(call.tool, call.arguments) for call in gold.calls]
        assert [call for call in made if call in wanted] == wanted
        assert record.stop == gold.stop
        if record.stop == "replied":
            assert scorer.score(record, task).effectiveness == 1


def test_who_asks_is_found_first_though_gold_does_not_say_so(carried_out, scenarios):
    _, records = carried_out
    without = [s for s in scenarios if s.gold.calls and not s.gold.calls[0].tool.startswith("find_user")]
    without = [s for s in without if s.gold.calls[0].tool != "transfer_to_human_agents"]
    assert len(without) > 25
    for task in without:
        names = [call.name for call in records[task.id].tools if call.name != "load_skill"]
        assert names[0].startswith("find_user_id_by")
        assert len([name for name in names if name.startswith("find_user")]) == 1


def test_a_customer_of_whom_nothing_is_known_blocks_the_plan(bundle, scenarios):
    task = copy.deepcopy(next(s for s in scenarios if s.id == "tau2-88"))
    task.gold.known = {}
    with pytest.raises(PlanBlocked) as caught:
        complete(task, bundle[1])
    assert caught.value.hook == "authenticate-first"
    assert "`email` is not known" in caught.value.message
    assert "`first_name`, `last_name`, `zip` is not known" in caught.value.message


def test_a_change_without_a_yes_blocks_the_plan(bundle, scenarios):
    task = copy.deepcopy(next(s for s in scenarios if s.id == "tau2-89"))
    task.request.text = "I should like to return things."
    with pytest.raises(PlanBlocked) as caught:
        complete(task, bundle[1])
    assert caught.value.hook == "confirm-write"
