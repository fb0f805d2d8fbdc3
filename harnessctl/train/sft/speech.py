"""Speech: whether a policy's chat template and tokenizer can be trained with, tried before anything is spent."""

from __future__ import annotations

from harnessctl.data.preflight import check_template, check_tokenizer
from harnessctl.decode.prompt import PromptEncoder
from harnessctl.train.policy import Policy


def check_speech(policy: Policy) -> None:
    """TrainingError for a template that drops or renders anew what stood before, and for a tokenizer that loses text or
    lets anybody's text end a message."""
    encoder = PromptEncoder(policy.template, policy.codec)
    check_template(encoder)
    check_tokenizer(encoder, [policy.template.end])
