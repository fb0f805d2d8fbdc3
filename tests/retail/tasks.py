"""The published tasks as scenarios: gold actions are the calls, the customer's identity is what is known."""

from __future__ import annotations

import re
from typing import Any

from harnessctl.records.comment import CommentInput
from harnessctl.records.scenario import EndState, Fact, Gold, GoldCall, Scenario
from tests.retail.gold import WRITES, expected

_NAME = re.compile(r"\b(?:You are|You're|Your name is|You name is) ([A-Z][a-z]+) ([A-Z][a-z]+)\b")
_ZIP = re.compile(r"\b(\d{5})\b")
_EMAIL = re.compile(r"[\w.]+@[\w.]+\w")


def scenario(task: dict[str, Any], database: dict[str, Any]) -> Scenario:
    """One task. The customer has said yes already, since the harness lets nothing be changed before."""
    criteria = task["evaluation_criteria"]
    actions: list[dict[str, Any]] = criteria["actions"] or []
    names = {action["name"] for action in actions}
    calls = [GoldCall(tool=action["name"], arguments=action["arguments"]) for action in actions]
    wrong = [call for call in calls if finds_nobody(call, database)]
    said = criteria["communicate_info"] or []
    instructions = task["user_scenario"]["instructions"]
    ending = f" {', '.join(said)}." if said else ""
    return Scenario(
        id=f"tau2-{task['id']}",
        request=CommentInput(
            id=f"tau2-{task['id']}",
            text=f"{instructions['known_info']} {instructions['reason_for_call']} Yes, please go ahead.",
        ),
        harness="retail",
        intent="change" if names & WRITES else "question",
        family="tau2",
        language="en",
        source=f"tasks_train.json: task {task['id']}",
        gold=Gold(
            skills=["look-up", "change-order"] if names & WRITES else ["look-up"],
            calls=[call for call in calls if call not in wrong],
            optional=wrong,
            facts=[Fact(any=[value]) for value in said],
            stop="refused" if "transfer_to_human_agents" in names else "replied",
            end_state=end_states(database, actions),
            replies=[f"I have looked after that.{ending}", f"That is taken care of.{ending}"],
            known=identity(task, database),
        ),
    )


def finds_nobody(call: GoldCall, database: dict[str, Any]) -> bool:
    """Whether a call looks for a customer by what they said first, and wrongly: nothing that a right answer needs."""
    a = call.arguments
    users = database["users"].values()
    if call.tool == "find_user_id_by_email":
        return not any(user["email"].lower() == a["email"].lower() for user in users)
    if call.tool == "find_user_id_by_name_zip":
        wanted = (a["first_name"].lower(), a["last_name"].lower(), a["zip"])
        return not any(
            (u["name"]["first_name"].lower(), u["name"]["last_name"].lower(), u["address"]["zip"]) == wanted
            for u in users
        )
    return False


def identity(task: dict[str, Any], database: dict[str, Any]) -> dict[str, str]:
    """What the customer can say of themselves, under the names of the tools' parameters; of several e-mail addresses the
    one that the shop has."""
    instructions = task["user_scenario"]["instructions"]
    text = " ".join(filter(None, [instructions["known_info"], instructions["reason_for_call"]]))
    known: dict[str, str] = {}
    if name := _NAME.search(text):
        known |= {"first_name": name[1], "last_name": name[2]}
    if code := _ZIP.search(instructions["known_info"] or ""):
        known["zip"] = code[1]
    addresses = {user["email"] for user in database["users"].values()}
    if emails := [email for email in _EMAIL.findall(text) if email in addresses]:
        known["email"] = emails[0]
    return known


def end_states(database: dict[str, Any], actions: list[dict[str, Any]]) -> list[EndState]:
    """The rows that the actions must leave, worked out apart from the tools; none where they name what is not there."""
    try:
        after = expected(database, actions)
    except (KeyError, StopIteration):
        return []
    found = [("orders", "order_id", key, row) for key, row in after["orders"].items()]
    found += [("users", "user_id", key, row) for key, row in after["users"].items()]
    return [
        EndState(table=table, where={column: key}, values={k: v for k, v in row.items() if k != column})
        for table, column, key, row in found
    ]
