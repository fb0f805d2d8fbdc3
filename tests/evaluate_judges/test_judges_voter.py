"""Voters: repair, retry, no score with its cause, and nothing asked twice."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from judge_project import Judging, answer, case, judged, jury_of

from harnessctl.bundle.files import Bundle
from harnessctl.errors import ModelError, RecordError
from harnessctl.evaluate.judging.voter import GIVE_UP_AFTER
from harnessctl.records.vote import Vote
from harnessctl.simulate.world import LiveWorld, open_world

DOWN = ModelError("503 Service Unavailable", retryable=False)


@pytest.fixture
def world(root: Path):
    opened = open_world(root / "manifests" / "worlds" / "stall.yaml", cache=root / "build" / "worlds")
    yield opened
    opened.close()


def one(root: Path, judge: Bundle, model: Judging, **options: Any) -> Vote:
    return judged(root, judge, {"a": model}, case(), **options)[0][0]


def test_a_vote_is_recorded_with_what_made_it(root: Path, judge: Bundle):
    vote = one(root, judge, Judging(lambda item, n: answer(item, 0, 0.5, "wrong price")))
    assert (vote.id, vote.voter, vote.model) == ("i1", "a", "model-a")
    assert (vote.harness, vote.judge) == ("stall-judge", judge.digest)
    assert (vote.accuracy, vote.effectiveness, vote.reason) == (0, 0.5, "wrong price")
    assert (vote.attempts, vote.cause, vote.error) == (1, None, None)


@pytest.mark.parametrize(
    ("said", "cause", "words"),
    [
        ("All is well.", "prose", "it is no JSON object"),
        ('{"id": "i1", "accuracy": 1', "broken-json", "it is no JSON object"),
        (answer("i1", 7), "out-of-range", "its accuracy is 7"),
        (answer("i2"), "other-item", "its id is 'i2'"),
        ("", "nothing", "it is empty"),
        ('{"id": "i1", "accuracy": NaN, "effectiveness": 1, "reason": "x"}', "broken-json", "it is no JSON object"),
        (answer("i1", reason=" "), "no-reason", "it gives no reason"),
    ],
)
def test_a_bad_answer_is_asked_for_again_and_then_no_score(
    root: Path, judge: Bundle, said: str, cause: str, words: str
):
    model = Judging(said)
    vote = one(root, judge, model, tries=2)
    assert (vote.accuracy, vote.effectiveness, vote.cause, vote.attempts) == (None, None, cause, 2)
    assert (vote.error or "").startswith(words)
    last = next(m["content"] for m in model.requests[-1].messages if m["role"] == "user")
    assert "Fault: " + words in last


def test_repair_tells_the_fault_and_takes_the_second_answer(root: Path, judge: Bundle):
    def says(item: str, number: int) -> str:
        return answer("other") if number == 0 else answer(item)

    model = Judging(says)
    vote = one(root, judge, model)
    assert (vote.accuracy, vote.attempts, vote.cause) == (1, 2, None)
    assert (
        "its id is 'other', and this item is 'i1'"
        in [m["content"] for m in model.requests[1].messages if m["role"] == "user"][-1]
    )


def test_the_harness_sends_back_what_its_schema_refuses_within_one_attempt(root: Path, judge: Bundle):
    def says(item: str, number: int) -> str:
        return ["I think it is fine", answer(item, 7), answer(item, 0, 0)][number]

    vote = one(root, judge, Judging(says))
    assert (vote.accuracy, vote.attempts) == (0, 1)


def test_an_endpoint_that_fails_is_tried_again(root: Path, judge: Bundle):
    model = Judging(lambda item, n: DOWN if n < 2 else answer(item))
    vote = one(root, judge, model)
    assert (vote.accuracy, vote.attempts, vote.cause) == (1, 3, None)
    assert all("Fault:" not in request.messages[-1]["content"] for request in model.requests)


def test_an_endpoint_that_stays_down_is_no_score(root: Path, judge: Bundle):
    vote = one(root, judge, Judging(lambda item, n: DOWN), tries=2)
    assert (vote.accuracy, vote.cause, vote.attempts) == (None, "endpoint", 2)
    assert "503 Service Unavailable" in (vote.error or "")


def test_a_dead_endpoint_is_not_asked_about_every_item(root: Path, judge: Bundle):
    model = Judging(lambda item, n: DOWN)
    votes = judged(root, judge, {"a": model}, *(case(f"i{n}") for n in range(30)), workers=1, tries=1)
    assert len(model.requests) == GIVE_UP_AFTER
    assert {of_item[0].cause for of_item in votes} == {"endpoint"}
    assert "not asked: 8 items before it failed, the last with: " in (votes[-1][0].error or "")


def test_what_was_voted_is_not_asked_again(root: Path, judge: Bundle):
    first, second = Judging(), Judging(lambda item, n: answer(item, 0, 0))
    before = judged(root, judge, {"a": first}, case("i1"), case("i2"))
    again = judged(root, judge, {"a": second}, case("i1"), case("i2"))
    assert before == again
    assert second.requests == []


def test_no_score_is_asked_again(root: Path, judge: Bundle):
    assert one(root, judge, Judging("prose"), tries=1).cause == "prose"
    assert one(root, judge, Judging()).accuracy == 1


@pytest.mark.parametrize("change", ["reply", "model", "sampling", "judge"])
def test_another_reply_model_sampling_or_judge_is_asked_anew(root: Path, judge: Bundle, host: Bundle, change: str):
    judged(root, judge, {"a": Judging()}, case())
    model = Judging(lambda item, n: answer(item, 0, 0))
    jury = jury_of(judge, "a")
    asked = case(reply="17 yuan.") if change == "reply" else case()
    if change == "model":
        jury = jury_of(judge, "a", body={"top_k": 1})
    if change == "sampling":
        from harnessctl.manifests.specs.roles import RoleSampling

        jury = jury_of(judge, "a", sampling=RoleSampling(temperature=0.7))
    if change == "judge":
        import msgspec

        from harnessctl.bundle import make_bundle

        state = msgspec.structs.replace(judge.state, require_skill="none", route_default="private")
        other = make_bundle(state, name=judge.name, version="1.0.1", world=judge.world)
        votes = judged(root, other, {"a": model}, asked)
    else:
        votes = judged(root, judge, {"a": model}, asked, jury=jury)
    assert votes[0][0].accuracy == 0
    assert len(model.requests) == 1


def test_a_torn_or_strange_line_of_kept_votes_costs_one_vote(root: Path, judge: Bundle):
    judged(root, judge, {"a": Judging()}, case("i1"), case("i2"), workers=1)
    (path,) = (root / "build" / "ballots").rglob("a.jsonl")
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"not json\n" + lines[0] + lines[1][:40])
    model = Judging(lambda item, n: answer(item, 0, 0))
    votes = judged(root, judge, {"a": model}, case("i1"), case("i2"))
    assert [of_item[0].accuracy for of_item in votes] == [1, 0]
    assert len(model.requests) == 1


def test_a_judge_looks_facts_up_in_a_world_of_its_own(root: Path, judge: Bundle, world: LiveWorld):
    def says(item: str, number: int) -> Any:
        return ("get_product", {"link_id": 1}) if number == 0 else answer(item, 1, 1)

    model = Judging(says)
    vote = judged(root, judge, {"a": model}, case(), world=world)[0][0]
    assert (vote.accuracy, vote.lookups) == (1, 1)
    (result,) = [m["content"] for m in model.requests[-1].messages if m["role"] == "tool"]
    assert '"price":18' in result.replace(" ", "")


def test_a_judge_that_only_looks_up_comes_to_no_score(root: Path, judge: Bundle, world: LiveWorld):
    model = Judging(lambda item, n: ("get_product", {"link_id": n + 1}))
    vote = judged(root, judge, {"a": model}, case(), world=world, tries=1)[0][0]
    assert vote.cause == "nothing"
    assert vote.lookups == 3


def test_votes_come_in_the_order_of_items_and_voters_whatever_is_under_way(root: Path, judge: Bundle):
    names = [f"i{n}" for n in range(12)]
    for workers in (1, 7):
        models = {name: Judging() for name in ("a", "b", "c")}
        votes = judged(root, judge, models, *map(case, names), workers=workers)
        assert [[(v.id, v.voter) for v in of_item] for of_item in votes] == [
            [(name, voter) for voter in ("a", "b", "c")] for name in names
        ]


def test_gold_is_told_only_where_the_panel_sees_it(root: Path, judge: Bundle):
    hidden, shown = Judging(), Judging()
    judged(root, judge, {"a": hidden}, case())
    judged(root, judge, {"a": shown}, case(gold={"facts": ["18 yuan"]}), jury=jury_of(judge, "a", sees="gold"))
    assert "Gold" not in hidden.requests[0].messages[0]["content"]
    assert "18 yuan" in shown.requests[0].messages[0]["content"]


def test_two_items_of_one_id_are_refused(root: Path, judge: Bundle):
    with pytest.raises(RecordError, match="two items have the id 'i1'"):
        judged(root, judge, {"a": Judging()}, case(), case(reply="other"))


def test_a_case_that_the_judge_does_not_take_is_not_asked_about_again(root: Path, judge: Bundle):
    import msgspec

    from harnessctl.bundle import make_bundle

    inputs = {"type": "object", "properties": {"judged": {"type": "object"}}, "additionalProperties": False}
    prompt = msgspec.structs.replace(judge.state.prompt, inputs=inputs)
    state = msgspec.structs.replace(judge.state, prompt=prompt)
    other = make_bundle(state, name=judge.name, version="1.0.1", world=None)
    model = Judging()
    vote = judged(root, other, {"a": model}, case(context={"room": {"name": "x"}}))[0][0]
    assert (vote.cause, vote.attempts) == ("harness", 1)
    assert "'room' was unexpected" in (vote.error or "")
    assert model.requests == []
