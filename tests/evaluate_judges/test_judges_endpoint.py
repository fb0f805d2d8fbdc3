"""Panels over HTTP: endpoints that fail at times, die halfway and come back; every item is accounted for."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

import pytest
from judge_endpoint import FAILURES, JudgeEndpoint
from judge_project import answer, case, jury_of

from harnessctl.bundle.files import Bundle
from harnessctl.evaluate.judging.panel import Jury, open_panel
from harnessctl.evaluate.judging.roles import identity
from harnessctl.evaluate.judging.verdict import verdict
from harnessctl.evaluate.judging.voting import collect
from harnessctl.manifests.specs.roles import JudgeRole, RoleModel, Roles, RoleSet
from harnessctl.records.score import Score
from harnessctl.records.vote import Vote

ITEMS = [f"item-{n}" for n in range(24)]


async def votes_of(
    root: Path,
    bundle: Bundle,
    endpoints: Sequence[JudgeEndpoint],
    *,
    tries: int = 3,
    workers: int = 4,
    items: Sequence[str] = ITEMS,
) -> list[list[Vote]]:
    models = {
        f"v{n}": RoleModel(name=f"model-{n}", base_url=endpoint.url, stream=False)
        for n, endpoint in enumerate(endpoints)
    }
    role = JudgeRole(models=list(models), judge=bundle.name)
    roles = Roles(api_version="harnessctl/v1", kind="Roles", models=models, roles=RoleSet(panel=role))
    async with open_panel(root, Jury("panel", roles, bundle), world=None, tries=tries) as panel:
        return await collect(panel, [case(item) for item in items], workers=workers)


def test_three_voters_over_http(root: Path, judge: Bundle):
    async def main() -> list[list[Vote]]:
        async with JudgeEndpoint() as a, JudgeEndpoint(lambda i, n: answer(i, 0, 0.5)) as b, JudgeEndpoint() as c:
            return await votes_of(root, judge, [a, b, c])

    votes = asyncio.run(main())
    assert [[v.accuracy for v in of_item] for of_item in votes] == [[1, 0, 1]] * len(ITEMS)


@pytest.mark.parametrize("failure", FAILURES)
def test_an_endpoint_that_fails_every_fifth_time_costs_no_item(root: Path, judge: Bundle, failure: str):
    def says(item: str, number: int) -> str:
        return failure if number % 5 == 0 else answer(item)

    async def main() -> tuple[list[list[Vote]], list[str]]:
        async with JudgeEndpoint(says) as endpoint:
            return await votes_of(root, judge, [endpoint]), endpoint.asked

    votes, asked = asyncio.run(main())
    assert [of_item[0].id for of_item in votes] == ITEMS
    assert all(of_item[0].accuracy == 1 for of_item in votes)
    assert set(asked) == set(ITEMS)
    assert sum(of_item[0].attempts for of_item in votes) == len(asked)


def test_an_endpoint_that_dies_halfway_leaves_causes_and_is_asked_for_the_rest_later(root: Path, judge: Bundle):
    def dying(item: str, number: int) -> str:
        return answer(item) if number < 10 else "closed"

    async def main() -> tuple[list[list[Vote]], list[list[Vote]], list[str]]:
        async with JudgeEndpoint(dying) as endpoint:
            first = await votes_of(root, judge, [endpoint], workers=1, tries=1)
            endpoint._says = lambda item, number: answer(item)
            before = len(endpoint.asked)
            second = await votes_of(root, judge, [endpoint], workers=1, tries=1)
            return first, second, endpoint.asked[before:]

    first, second, asked = asyncio.run(main())
    assert [of_item[0].cause for of_item in first] == [None] * 10 + ["endpoint"] * 14
    assert all(of_item[0].error for of_item in first[10:])
    assert all(of_item[0].accuracy == 1 for of_item in second)
    assert asked == ITEMS[10:]


def test_one_voter_of_three_that_is_down_still_leaves_verdicts_where_the_others_agree(root: Path, judge: Bundle):
    def split(item: str, number: int) -> str:
        return answer(item, int(item != "item-1"), 1 if item != "item-2" else 0.5)

    async def main() -> list[list[Vote]]:
        async with JudgeEndpoint() as a, JudgeEndpoint(split) as b, JudgeEndpoint(lambda i, n: "closed") as c:
            return await votes_of(root, judge, [a, b, c], tries=1, items=ITEMS[:3])

    rules = Score(id="x", scenario="x", scorer="rules", bundle="b", tool_rationality=0.25, skill_selection=1)
    scores = [verdict(rules, of_item, "panel@x") for of_item in asyncio.run(main())]
    assert [(s.accuracy, s.effectiveness) for s in scores] == [(1, 1), (None, 1), (1, None)]
    assert scores[1].reasons["accuracy"] == ["no verdict of the panel: 1 for 0, 1 for 1, 1 without a score (endpoint)"]
    assert scores[2].reasons["effectiveness"] == [
        "no verdict of the panel: 1 for 0.5, 1 for 1, 1 without a score (endpoint)"
    ]
    assert {(s.tool_rationality, s.skill_selection, s.scorer) for s in scores} == {(0.25, 1, "panel@x")}


@pytest.mark.parametrize("said", ["lovely", '{"id": "x', "7"])
def test_endpoints_that_talk_nonsense_are_causes_not_scores(root: Path, judge: Bundle, said: str):
    def says(item: str, number: int) -> str:
        return said

    async def main() -> list[list[Vote]]:
        async with JudgeEndpoint(says) as endpoint:
            return await votes_of(root, judge, [endpoint], tries=1, items=ITEMS[:4])

    votes = [of_item[0] for of_item in asyncio.run(main())]
    assert {vote.accuracy for vote in votes} == {None}
    assert {vote.cause for vote in votes} <= {"prose", "broken-json"}


def test_secrets_and_addresses_change_no_digest_of_a_jury(judge: Bundle):
    plain, keyed = jury_of(judge, "a"), jury_of(judge, "a", key_env="SOME_KEY")
    assert plain.digest == keyed.digest
    assert identity(RoleModel(name="X-Large")) == identity(RoleModel(name="served", weights="x-large"))
