"""General tasks: items are functions of their numbers, answers follow from what is shown, held-out names are new."""

from __future__ import annotations

import random
import re

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harnessctl.augment import lexicon
from harnessctl.data.general import GeneralItem, default_shares, draw, is_right
from harnessctl.data.general.concepts import concepts_of
from harnessctl.data.general.names import _SPELLED, Names, syllables, words
from harnessctl.data.general.tasks import tasks
from harnessctl.errors import UsageError

numbers = st.integers(0, 10**6)
names_of = st.sampled_from(sorted(tasks()))
spaces = st.sampled_from(["train", "held-out"])


def system(item: GeneralItem) -> str:
    return item.messages[0]["content"]


@settings(max_examples=60, deadline=None)
@given(numbers, numbers, spaces)
def test_the_same_numbers_give_the_same_item(seed, number, space):
    assert draw(seed, number, names=space) == draw(seed, number, names=space)


def test_neighbours_differ():
    found = {str(draw(seed, number)) for seed in range(4) for number in range(50)}
    assert len(found) == 200


@settings(max_examples=100, deadline=None)
@given(numbers, names_of, spaces)
def test_a_dialogue_is_well_formed_and_its_own_answers_are_right(number, task, space):
    item = draw(0, number, names=space, concepts=space, shares={task: 1})
    assert item.task == task
    assert [m["role"] for m in item.messages[:3]] == ["system", "user", "assistant"]
    assert item.messages[-1]["role"] == "assistant"
    told = {tool["function"]["name"] for tool in item.tools}
    assert len(told) == len(item.tools)
    for turn in range(len(item.turns)):
        answer = item.answer(turn)
        assert is_right(item, turn, answer)
        assert not is_right(item, turn, {"role": "assistant", "content": "no such thing"})
        assert [*item.before(turn), answer] == item.messages[: item.turns[turn] + 1]
        assert {call["function"]["name"] for call in answer.get("tool_calls") or []} <= told


@settings(max_examples=150, deadline=None)
@given(numbers, st.sampled_from(["lookup", "choice"]))
def test_exactly_one_entry_of_a_list_is_right(number, task):
    item = draw(1, number, shares={task: 1})
    entries = [re.split(" [=-]> ", line) for line in system(item).splitlines() if re.search(" [=-]> ", line)]
    described = {name: about for about, name in entries}
    assert len(described) == len(entries) >= 2
    about = {text: concept for concept in concepts_of("train") for text in concept.about}
    for at, turn in enumerate(item.turns):
        answer = item.answer(at)
        name = answer["content"]
        if task == "choice":
            (call,) = answer["tool_calls"]
            (name,) = re.findall(r':"(.*?)"', call["function"]["arguments"])
        wish = item.messages[turn - 1]["content"]
        right = [one for one, text in described.items() if wish in about[text].asks + about[text].about]
        assert right == [name]


@settings(max_examples=150, deadline=None)
@given(numbers)
def test_arguments_and_values_are_copied_from_what_is_shown(number):
    item = draw(2, number, shares={"call": 1, "chain": 1, "value": 1})
    for at, turn in enumerate(item.turns):
        answer, shown = item.answer(at), "\n".join(m["content"] or "" for m in item.before(at))
        for call in answer.get("tool_calls") or []:
            schema = next(
                t["function"]["parameters"] for t in item.tools if t["function"]["name"] == call["function"]["name"]
            )
            arguments = orjson.loads(call["function"]["arguments"])
            assert set(schema.get("required", [])) <= set(arguments) <= set(schema["properties"])
            for name, value in arguments.items():
                kind = schema["properties"][name]
                assert (
                    value in kind["enum"]
                    if "enum" in kind
                    else isinstance(value, {"integer": int, "string": str}[kind["type"]])
                )
                assert str(value) in shown
        if answer["content"] and item.task != "chain":
            assert answer["content"] in shown
        assert item.messages[turn] is answer


@settings(max_examples=60, deadline=None)
@given(numbers)
def test_a_tool_fits_a_wish_in_one_way(number):
    """Parameters of one tool are of different kinds, so that what is said belongs to one of them."""
    for tool in draw(3, number, shares={"call": 1}).tools:
        kinds = ["enum" if "enum" in p else p["type"] for p in tool["function"]["parameters"]["properties"].values()]
        assert len(kinds) == len(set(kinds))


def test_reverse_and_copy_and_format_do_what_they_say():
    for number in range(50):
        item = draw(4, number, shares={"reverse": 1})
        for at, turn in enumerate(item.turns):
            assert item.answer(at)["content"].split()[::-1] == item.messages[turn - 1]["content"].split()
        item = draw(4, number, shares={"copy": 1})
        for at, turn in enumerate(item.turns):
            assert item.answer(at)["content"] == item.messages[turn - 1]["content"]
        item = draw(4, number, shares={"format": 1})
        for at, turn in enumerate(item.turns):
            assert item.messages[turn - 1]["content"].lower() in item.answer(at)["content"].lower()


def test_calls_are_compared_as_json_in_any_order():
    item = next(i for i in (draw(5, n, shares={"chain": 1}) for n in range(99)) if len(i.answer(0)["tool_calls"]) == 2)
    calls = item.answer(0)["tool_calls"]
    spaced = [
        {"function": {**c["function"], "arguments": c["function"]["arguments"].replace(":", ": ")}} for c in calls
    ]
    assert is_right(item, 0, {"content": "", "tool_calls": spaced[::-1]})
    assert not is_right(item, 0, {"content": "", "tool_calls": spaced[:1]})
    assert not is_right(item, 0, {"content": "now", "tool_calls": spaced})
    spaced[0]["function"]["arguments"] = "{broken"
    assert not is_right(item, 0, {"content": "", "tool_calls": spaced})


def test_the_spaces_share_no_word_no_syllable_and_no_matter():
    assert not set(words("train")) & set(words("held-out"))
    assert not set(syllables("train")) & set(syllables("held-out"))
    assert not set(concepts_of("train")) & set(concepts_of("held-out"))
    assert len(words("held-out")) > 100 and len(syllables("held-out")) > 30 and len(concepts_of("held-out")) > 20


@settings(max_examples=100, deadline=None)
@given(numbers)
def test_no_part_of_a_held_out_name_is_in_a_name_to_train_on(number):
    def parts(space):
        drawn = Names(random.Random(number), space).several(40)
        return {part for name in drawn for part in re.split("[-_]", name) if not part.isdigit()}

    assert not parts("train") & parts("held-out")


def test_no_part_of_a_name_is_a_word_that_augmentation_names_with():
    taken = {*lexicon.VERBS, *lexicon.NOUNS, *lexicon.ADJECTIVES, *lexicon.THINGS, *lexicon.FIELDS, *lexicon.SYNONYMS}
    taken |= {word for group in lexicon.SYNONYMS.values() for word in group}
    assert not taken & {*words("train"), *words("held-out")}
    known = {*syllables("train"), *syllables("held-out")}
    assert {word for word in taken if is_spelled(word, known)} <= _SPELLED


def is_spelled(word, known, most=3):
    """Whether two or three syllables spell the word."""
    if not word or most == 0:
        return not word and most <= 1
    return any(word[:end] in known and is_spelled(word[end:], known, most - 1) for end in (2, 3, 4))


def test_matters_are_distinct():
    matters = concepts_of("train") + concepts_of("held-out")
    texts = [text for concept in matters for text in concept.about + concept.asks]
    assert len(texts) == len(set(texts))
    assert all(len(c.about) == 3 and len(c.asks) == 4 for c in matters)


def test_easy_items_have_names_of_one_word_and_wishes_in_the_lists_words():
    known = set(words("train"))
    plain = literal = 0
    for number in range(200):
        item = draw(8, number, shares={"lookup": 1}, ease=0.5)
        lines = dict(re.findall(r"^(.+) [=-]> (.+)$", system(item), re.MULTILINE))
        plain += known.issuperset(lines.values())
        literal += all(
            lines.get(asked["content"]) == said["content"]
            for asked, said in zip(item.messages[1::2], item.messages[2::2], strict=True)
        )
    assert 80 < plain < 130 and 80 < literal < 130
    assert draw(8, 1, ease=0.0) == draw(8, 1)


def test_shares_and_entries_are_kept():
    assert {draw(6, number, shares={"copy": 1, "value": 0}).task for number in range(30)} == {"copy"}
    assert {draw(6, number).task for number in range(300)} == set(default_shares())
    for number in range(30):
        assert system(draw(6, number, shares={"lookup": 1}, entries=(8, 8))).count("> ") == 8


@pytest.mark.parametrize(
    "options",
    [
        {"shares": {"lockup": 1}},
        {"shares": {"copy": 0}},
        {"shares": {}},
        {"shares": {"copy": -1}},
        {"entries": (1, 4)},
        {"entries": (5, 4)},
    ],
)
def test_what_cannot_be_drawn_is_told(options):
    with pytest.raises(UsageError):
        draw(0, 0, **options)
