"""Grammars: what may be said, and that a reply under one is well-formed and ends."""

from __future__ import annotations

import json
import random
from typing import Any

import jsonschema_rs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harnessctl.decode import grammar as grammar_module
from harnessctl.decode.bounds import MAX_STRING, bound_schema
from harnessctl.decode.grammar import Constraint, Grammars, reply_grammar
from harnessctl.decode.output import parse_output
from harnessctl.decode.tokens import TokenCodec
from harnessctl.errors import ModelError
from tests.decode.conftest import TOOLS, function_tool, make_tokenizer

CODEC = TokenCodec(make_tokenizer(), end="<|im_end|>")
END = CODEC.end_id
VOCAB = make_tokenizer().get_vocab_size()
GRAMMARS = Grammars(CODEC.source, vocab_size=VOCAB, ends=[END], reasoning=False, max_calls=2)
THINKING = Grammars(CODEC.source, vocab_size=VOCAB, ends=[END], reasoning=True, max_calls=2)
CALL = '<tool_call>\n{"name": "get_product", "arguments": {"link": 3}}\n</tool_call>'
SCORE = {"type": "object", "properties": {"score": {"enum": [0, 1]}}, "required": ["score"]}


def fits(constraint: Constraint, text: str, *, is_whole: bool = True) -> bool:
    """Whether the text may be said and, if it is whole, may end there."""
    for token in CODEC.encode_data(text):
        if not constraint.allowed()[token]:
            return False
        constraint.accept([token])
    return bool(constraint.allowed()[END]) is is_whole


AUTO_YES = [
    "Hello there!",
    "a <tool and </tool_call> are words",
    "价格 59 元",
    CALL,
    f"Let me see.\n{CALL}",
    f"{CALL}\n{CALL}",
    '<tool_call>\n{"name": "load_skill", "arguments": {"skill": "闲聊"}}\n</tool_call>',
]
AUTO_NO = [
    "<tool_call> is what I say",
    '<tool_call>\n{"name": "get_stock", "arguments": {}}\n</tool_call>',
    '<tool_call>\n{"name": "get_product", "arguments": {"link": "3"}}\n</tool_call>',
    '<tool_call>\n{"name": "get_product", "arguments": {"link": 100}}\n</tool_call>',
    '<tool_call>\n{"name": "get_product", "arguments": {}}\n</tool_call>',
    '<tool_call>\n{"name": "get_product", "arguments": {"link": 3, "x": 1}}\n</tool_call>',
    '<tool_call>\n{"name": "load_skill", "arguments": {"skill": "other"}}\n</tool_call>',
    f"{CALL}\nand some words",
    f"{CALL}\n{CALL}\n{CALL}",
]


@pytest.mark.parametrize("text", AUTO_YES)
def test_free_text_and_fitting_calls_may_be_said(text: str) -> None:
    constraint = GRAMMARS.constraint(TOOLS)
    assert constraint is not None
    assert fits(constraint, text)


@pytest.mark.parametrize("text", AUTO_NO)
def test_a_call_once_begun_must_fit(text: str) -> None:
    constraint = GRAMMARS.constraint(TOOLS)
    assert constraint is not None
    assert not fits(constraint, text)


@pytest.mark.parametrize(
    ("choice", "schema", "text", "may"),
    [
        ("required", None, CALL, True),
        ("required", None, "Hello", False),
        ("required", SCORE, '{"score": 1}', False),
        ("none", None, "Hello", True),
        ("none", None, CALL, False),
        ("auto", SCORE, '{"score": 1}', True),
        ("auto", SCORE, CALL, True),
        ("auto", SCORE, "Hello", False),
        ("none", SCORE, '{"score": 0}', True),
        ("none", SCORE, CALL, False),
        ("none", SCORE, '{"score": 2}', False),
        ("auto", {}, '{"score": 2, "why": "late"}', True),
        ("auto", {}, "2", False),
    ],
)
def test_the_choice_of_tools_and_the_schema_of_the_reply(choice: Any, schema: Any, text: str, may: bool) -> None:
    constraint = GRAMMARS.constraint(TOOLS, choice, schema)
    assert constraint is not None
    assert fits(constraint, text) is may


@pytest.mark.parametrize(
    ("choice", "schema", "text"),
    [("required", None, CALL), ("auto", SCORE, '{"score": 1}'), ("auto", None, CALL)],
)
def test_thinking_may_stand_before_what_is_bound(choice: Any, schema: Any, text: str) -> None:
    thought = f"<think>a {{ and <tool>\n</think>{text}"
    allowed, refused = (given.constraint(TOOLS, choice, schema) for given in (THINKING, GRAMMARS))
    assert allowed is not None and refused is not None
    assert fits(allowed, thought)
    assert fits(refused, thought) is (choice == "auto" and schema is None)


def test_no_tools_and_no_schema_leave_everything_free() -> None:
    assert GRAMMARS.constraint([]) is None


def test_special_tokens_are_never_part_of_a_reply() -> None:
    constraint = GRAMMARS.constraint(TOOLS)
    assert constraint is not None
    allowed = constraint.allowed()
    assert [token for token in CODEC.special_ids if allowed[token]] == [END]


def test_what_can_only_go_on_in_one_way_is_forced() -> None:
    constraint = GRAMMARS.constraint(TOOLS, "required")
    assert constraint is not None
    forced = constraint.forced()
    assert CODEC.decode(forced) == '<tool_call>\n{"name": "'
    constraint.accept(forced)
    constraint.accept(CODEC.encode_data("g"))
    assert CODEC.decode(constraint.forced()) == 'et_product", "arguments": {"link": '


def test_a_token_that_the_grammar_lacks_is_an_error() -> None:
    constraint = GRAMMARS.constraint(TOOLS, "required")
    assert constraint is not None
    with pytest.raises(ModelError, match="refused a token"):
        constraint.accept(CODEC.encode_data("x"))


def test_a_required_call_without_tools_is_an_error() -> None:
    with pytest.raises(ModelError, match="no tool is offered"):
        GRAMMARS.constraint([], "required")


@pytest.mark.parametrize(
    "schema",
    [
        {"properties": {"x": {"$ref": "https://example.org/remote.json"}}},
        {"properties": {"x": {"type": "string", "pattern": "(?=a)b"}}},
    ],
)
def test_a_schema_that_no_grammar_can_keep_names_its_tool(schema: dict[str, Any]) -> None:
    with pytest.raises(ModelError, match="parameters of tool 'odd'") as caught:
        GRAMMARS.constraint([*TOOLS, function_tool("odd", schema)])
    assert not caught.value.retryable


def test_a_grammar_is_built_once_for_the_same_tools(monkeypatch: pytest.MonkeyPatch) -> None:
    built: list[str | None] = []

    def counted(*args: Any, **options: Any) -> str | None:
        built.append(reply_grammar(*args, **options))
        return built[-1]

    monkeypatch.setattr(grammar_module, "reply_grammar", counted)
    grammars = Grammars(CODEC.source, vocab_size=VOCAB, ends=[END], reasoning=False, max_calls=1)
    for _ in range(3):
        constraint = grammars.constraint([dict(tool) for tool in TOOLS])
        assert constraint is not None
        assert fits(constraint, CALL)
    assert len(built) == 1


def test_the_grammar_of_two_tools_reads_as_expected() -> None:
    form = (
        '"x-guidance": {"whitespace_flexible": false, "item_separator": ", ", "key_separator": ": ", "lenient": true}'
    )
    grammar = reply_grammar(TOOLS, "auto", None, max_calls=2)
    assert grammar == (
        "%llguidance {}\n"
        "start: TEXT | trigger calls\n"
        "TEXT: /(.|\\n)*/\n"
        'trigger[lazy]: TEXT "<tool_call>"\n'
        'calls: call ("\\n<tool_call>" call){0,1}\n'
        'call: "\\n" body "\\n</tool_call>"\n'
        "body: tool_0 | tool_1\n"
        'tool_0: "{\\"name\\": \\"get_product\\", \\"arguments\\": " %json {"type": "object", "properties": {"link": '
        '{"type": "integer", "minimum": 1, "maximum": 99}}, "required": ["link"], "additionalProperties": false, '
        f'{form}}} "}}"\n'
        'tool_1: "{\\"name\\": \\"load_skill\\", \\"arguments\\": " %json {"type": "object", "properties": {"skill": '
        '{"enum": ["item-qa", "闲聊"]}}, "required": ["skill"], "additionalProperties": false, '
        f'{form}}} "}}"\n'
    )


NAMES = st.sampled_from(["a", "b", "link", "商品"])
LEAVES = st.sampled_from(
    [
        {"type": "string"},
        {"type": "string", "minLength": 2, "maxLength": 5},
        {"type": "string", "pattern": "^[a-z]+-[0-9]+$"},
        {"type": "string", "format": "date"},
        {"type": "integer"},
        {"type": "integer", "minimum": 3},
        {"type": "number"},
        {"type": "number", "exclusiveMinimum": 0, "maximum": 1},
        {"type": ["integer", "null"]},
        {"type": "boolean"},
        {"enum": ["x", 1, None]},
        {"const": "k"},
        {"type": "object"},
        {"type": "array"},
        {"type": "object", "additionalProperties": {"type": "integer"}},
        {},
    ]
)


def objects(values: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    return st.dictionaries(NAMES, values, max_size=3).flatmap(
        lambda properties: st.lists(st.sampled_from(sorted(properties) or ["z"]), unique=True).map(
            lambda required: {"type": "object", "properties": properties, "required": required}
        )
    )


SCHEMAS = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        objects(inner),
        inner.map(lambda item: {"type": "array", "items": item, "maxItems": 3}),
        st.lists(inner, min_size=1, max_size=2).map(lambda some: {"anyOf": some}),
    ),
    max_leaves=4,
)


def random_reply(constraint: Constraint, seed: int, longest: int) -> str:
    """What a model without any sense would say under the constraint."""
    rng = random.Random(seed)
    ids: list[int] = []
    while len(ids) < longest:
        allowed = constraint.allowed()
        choices = [token for token in range(VOCAB) if allowed[token]]
        token = rng.choice(choices)
        if token == END:
            return CODEC.decode(ids)
        constraint.accept([token])
        ids.append(token)
    raise AssertionError(f"no end after {longest} tokens: {CODEC.decode(ids)}")


@settings(max_examples=40, deadline=None)
@given(schema=objects(SCHEMAS), seed=st.integers(0, 1000))
def test_a_senseless_model_still_ends_with_arguments_that_fit_the_tool(schema: dict[str, Any], seed: int) -> None:
    constraint = GRAMMARS.constraint([function_tool("act", schema)], "required")
    assert constraint is not None
    output = parse_output(random_reply(constraint, seed, 60 * MAX_STRING), calls=True)
    assert output.content is None
    assert 1 <= len(output.calls) <= 2
    for call in output.calls:
        assert call.name == "act"
        jsonschema_rs.validate(schema, json.loads(call.arguments))


@settings(max_examples=60, deadline=None)
@given(SCHEMAS)
def test_bounding_a_bounded_schema_changes_nothing(schema: dict[str, Any]) -> None:
    bounded = bound_schema(schema)
    assert bound_schema(bounded) == bounded


def test_bounds_leave_what_the_schema_says_and_drop_what_is_only_told() -> None:
    schema = {
        "type": "object",
        "title": "T",
        "properties": {
            "q": {"type": "string", "description": "words", "maxLength": 500},
            "title": {"type": "string"},
            "n": {"type": "array", "items": {"type": "integer", "minimum": 0, "maximum": 9}, "minItems": 20},
        },
        "required": ["q", "late"],
    }
    assert bound_schema(schema) == {
        "type": "object",
        "properties": {
            "q": {"type": "string", "maxLength": 500},
            "title": {"type": "string", "maxLength": 200},
            "n": {
                "type": "array",
                "items": {"type": "integer", "minimum": 0, "maximum": 9},
                "minItems": 20,
                "maxItems": 20,
            },
            "late": {
                "type": ["string", "number", "boolean", "null"],
                "maxLength": 200,
                "minimum": -(10**12),
                "maximum": 10**12,
                "multipleOf": 1e-6,
            },
        },
        "required": ["q", "late"],
        "additionalProperties": False,
    }


def test_joined_schemas_are_not_closed() -> None:
    joined = {
        "allOf": [
            {"type": "object", "properties": {"a": {"type": "boolean"}}, "required": ["a"]},
            {"properties": {"b": {"type": "boolean"}}, "required": ["b"]},
        ]
    }
    assert "additionalProperties" not in json.dumps(bound_schema(joined))
    constraint = GRAMMARS.constraint([], reply_schema=joined)
    assert constraint is not None
    assert fits(constraint, '{"a": true, "b": false}')
