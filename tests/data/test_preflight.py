"""Templates that drop or change history, and tokenizers that lose text, are found before anything is trained."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import jinja2
import pytest
from tokenizers import Tokenizer, normalizers

import harnessctl
from harnessctl.data.preflight import check_template, check_tokenizer
from harnessctl.decode.catalog import model_folder
from harnessctl.decode.prompt import PromptEncoder
from harnessctl.decode.template import ChatTemplate
from harnessctl.decode.tokens import TokenCodec
from harnessctl.errors import TrainingError
from tests.decode.conftest import make_tokenizer

CONTROL = ("<|im_start|>", "<|im_end|>")
SHIPPED = sorted(
    path for path in Path(harnessctl.__file__).parent.rglob("*.jinja") if "<|im_start|>" in path.read_text("utf-8")
)


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.name)
@pytest.mark.parametrize("added", [(), ("<think>", "</think>", "<tool_call>", "</tool_call>")])
def test_shipped_templates_pass(path: Path, added: tuple[str, ...]) -> None:
    template = ChatTemplate(path.read_text("utf-8"))
    check_template(PromptEncoder(template, TokenCodec(make_tokenizer(added=added), end=template.end)))


class WholeTemplate:
    """A template of a whole conversation, as models are published with, and replies as it renders the last message."""

    def __init__(self, source: str, encoder: PromptEncoder) -> None:
        self._template = jinja2.Environment(trim_blocks=True, lstrip_blocks=True).from_string(source)
        self._encoder = encoder
        self.end_id = encoder.end_id
        self._so_far: list[Any] = []

    def _ids(self, messages: Sequence[Mapping[str, Any]], **more: Any) -> list[int]:
        return self._encoder.control(self._template.render(messages=messages, **more))

    def extend(
        self, ids: Sequence[int], messages: Sequence[Mapping[str, Any]], tools: Sequence[Mapping[str, Any]] = ()
    ) -> list[int]:
        if not ids:
            self._so_far = list(messages)
            return self._ids(messages, opens=True)
        # The conversation that was just rendered from nothing, from where its last turn ended.
        return [*ids, *self._ids(self._so_far, opens=True)[len(ids) :]]

    def reply(self, content: str | None, reasoning: str | None = None, tool_calls: Sequence[Any] = ()) -> list[int]:
        message = {"role": "assistant", "content": content, "reasoning_content": reasoning, "tool_calls": tool_calls}
        return self._ids([*self._so_far, message])[len(self._ids(self._so_far, opens=True)) :]

    def decode(self, ids: list[int]) -> str:
        return self._encoder.decode(ids)


#: As Qwen3's: reasoning of turns before the last question is dropped.
DROPS = """
{%- set last = namespace(at=0) %}
{%- for message in messages if message.role == "user" %}{% set last.at = messages.index(message) %}{% endfor %}
{%- for message in messages %}
{%- if not loop.first %}{{ "\n" }}{% endif %}
<|im_start|>{{ message.role }}
{% if message.reasoning_content and (KEEPS or loop.index0 > last.at) %}<think>{{ message.reasoning_content }}</think>{% endif %}
{{ message.content or "" }}{% for call in message.tool_calls or [] %}<tool_call>{{ call.function.arguments }}{% endfor %}<|im_end|>
{%- endfor %}
{%- if opens %}{{ "\n" }}<|im_start|>assistant
{% endif %}"""


def test_a_template_that_drops_earlier_reasoning_is_named(encoder: PromptEncoder) -> None:
    check_template(WholeTemplate(DROPS.replace("KEEPS", "true"), encoder))
    with pytest.raises(TrainingError, match=r"turn 4 \(message 9\) does not begin with turn 3") as caught:
        check_template(WholeTemplate(DROPS.replace("KEEPS", "false"), encoder))
    assert "'think>Two prices are asked for' was read or said" in caught.value.message
    assert "renders each message by itself" in caught.value.hint


def test_a_template_that_rewrites_a_message_is_named(encoder: PromptEncoder) -> None:
    trims = DROPS.replace("KEEPS", "true").replace('message.content or ""', '(message.content or "") | trim')
    check_template(WholeTemplate(trims, encoder))  # it trims what is said, too
    late = DROPS.replace("KEEPS", "true").replace(
        'message.content or ""', '(message.content or "") if loop.last else (message.content or "") | trim'
    )
    with pytest.raises(TrainingError, match=r"turn 4 .* does not begin with turn 3 and what was said in it"):
        check_template(WholeTemplate(late, encoder))


PARTS = {
    "does not begin an assistant's message": "{% if message is none %}<|im_start|>assistant\n\n<think>{% else %}<|im_start|>{{ message.role }}\n\n{{ message.content }}<|im_end|>{% endif %}",
    "does not end an assistant's message": "{% if message is none %}<|im_start|>assistant\n\n{% else %}<|im_start|>{{ message.role }}\n\n{{ message.content }}<|im_end|>\n\n{% endif %}",
    "does not end with the one end token": "{% if message is none %}<|im_start|>assistant\n\n{% else %}<|im_start|>{{ message.role }}\n\n{{ message.content }}<|im_end|><|im_end|>{% endif %}",
}


@pytest.mark.parametrize("what", PARTS)
def test_templates_of_one_message_that_do_not_fit_are_named(codec: TokenCodec, what: str) -> None:
    with pytest.raises(TrainingError, match=rf"turn 1 \(message 2\): .*{what}"):
        check_template(PromptEncoder(ChatTemplate(PARTS[what]), codec))


def test_a_tokenizer_of_bytes_passes(either: PromptEncoder) -> None:
    check_tokenizer(either, CONTROL)


@pytest.mark.slow
def test_the_small_model_passes() -> None:
    path = model_folder("smol") / "tokenizer.json"
    if not path.is_file():
        pytest.skip("the model smol has not been pulled")
    encoder = PromptEncoder(ChatTemplate(), TokenCodec(Tokenizer.from_file(str(path)), end="<|im_end|>"))
    check_template(encoder)
    check_tokenizer(encoder, CONTROL)


def test_a_control_token_that_is_text_is_named(encoder: PromptEncoder) -> None:
    with pytest.raises(TrainingError, match=r"reads the control token '<\|im_sep\|>' as \d+ tokens"):
        check_tokenizer(encoder, ["<|im_sep|>"])


def test_a_tokenizer_that_normalises_is_named() -> None:
    tokenizer = Tokenizer.from_str(make_tokenizer().to_str())
    tokenizer.normalizer = normalizers.NFKC()
    encoder = PromptEncoder(ChatTemplate(), TokenCodec(tokenizer, end="<|im_end|>"))
    with pytest.raises(TrainingError, match="does not give a text back: 'ﬁ ½"):
        check_tokenizer(encoder, CONTROL)


def test_a_tokenizer_that_lets_text_command_is_named(encoder: PromptEncoder) -> None:
    class Open:
        end_id = encoder.end_id
        control = staticmethod(encoder.control)
        data = staticmethod(encoder.control)
        decode = staticmethod(encoder.decode)

    with pytest.raises(TrainingError, match="lets anybody's text say the control token"):
        check_tokenizer(Open(), CONTROL)
