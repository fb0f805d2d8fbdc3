"""What a reply is taken apart into, broken ones too."""

from __future__ import annotations

import pytest

from harnessctl.decode.output import Output, WrittenCall, parse_output

CALL = '<tool_call>\n{"name": "get_product", "arguments": {"link": 3}}\n</tool_call>'
PRODUCT = WrittenCall("get_product", '{"link": 3}')


@pytest.mark.parametrize(
    ("text", "output"),
    [
        ("  59 yuan.\n", Output("59 yuan.", [], None)),
        ("", Output(None, [], None)),
        (CALL, Output(None, [PRODUCT], None)),
        (f"One moment.\n{CALL}\n{CALL}", Output("One moment.", [PRODUCT, PRODUCT], None)),
        (f"<think>\nlook it up\n</think>\n\n{CALL}", Output(None, [PRODUCT], "look it up")),
        ("<think>never closed", Output(None, [], "never closed")),
        ('<tool_call>{"name": "x"}</tool_call>', Output(None, [WrittenCall("x", "{}")], None)),
        ('<tool_call>{"name": "x", "arguments": "{}"}</tool_call>', Output(None, [WrittenCall("x", "{}")], None)),
        ('<tool_call>{"name": "x", "arguments": {"a": ', Output(None, [WrittenCall("x", '{"a":')], None)),
        ("<tool_call>get_product(3)</tool_call>", Output(None, [WrittenCall("", "get_product(3)")], None)),
        ("<tool_call>[1]</tool_call>", Output(None, [WrittenCall("", "[1]")], None)),
        (
            '<tool_call>{"name": "说", "arguments": {"词": "好"}}',
            Output(None, [WrittenCall("说", '{"词": "好"}')], None),
        ),
    ],
)
def test_a_reply_is_taken_apart(text: str, output: Output) -> None:
    assert parse_output(text, calls=True) == output


def test_without_tools_the_tag_is_ordinary_text() -> None:
    assert parse_output(CALL, calls=False) == Output(CALL, [], None)


@pytest.mark.parametrize(("is_cut", "content"), [(True, "Hello"), (False, "Hello <tool_ca")])
def test_a_tag_that_the_limit_on_tokens_cut_is_no_text(is_cut: bool, content: str) -> None:
    assert parse_output("Hello <tool_ca", calls=True, is_cut=is_cut).content == content
