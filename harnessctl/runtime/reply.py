"""Reply: whether a proposed reply has the form that the harness asks for."""

from __future__ import annotations

import re

import jsonschema_rs

from harnessctl.bundle.state import HarnessState
from harnessctl.bundle.validators import validator_of
from harnessctl.errors import BundleError
from harnessctl.runtime.model_json import read_json

_FENCED = re.compile(r"\A```[A-Za-z]*\s*\n(.*?)\n?\s*```\Z", re.DOTALL)


class ReplyForm:
    """The reply's form for one bundle; BundleError when the reply's schema is no JSON Schema."""

    def __init__(self, state: HarnessState) -> None:
        self._is_json = state.reply_format == "json"
        try:
            self._validator = (
                validator_of(state.reply_schema) if self._is_json and state.reply_schema is not None else None
            )
        except (jsonschema_rs.ValidationError, ValueError) as error:
            raise BundleError(f"the reply's schema is not a JSON Schema: {error}") from error

    def check(self, text: str) -> tuple[str, str | None]:
        """(the reply, what is wrong with it or None). JSON may stand in one code fence, which is taken off."""
        text = text.strip()
        if not self._is_json:
            return text, None
        fenced = _FENCED.match(text)
        if fenced:
            text = fenced[1].strip()
        value, cause = read_json(text)
        if cause:
            return text, cause
        if self._validator is not None and not self._validator.is_valid(value):
            faults = [
                f"/{'/'.join(map(str, error.instance_path))}: {error.message}"
                for error in self._validator.iter_errors(value)
            ]
            return text, "; ".join(sorted(faults))
        return text, None
