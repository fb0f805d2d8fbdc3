"""json_schema: the target fits a schema. Text is parsed as JSON first; text that is not JSON does not fit."""

from __future__ import annotations

from typing import Any

import jsonschema_rs
import orjson

from harnessctl.bundle.validators import validator_of
from harnessctl.errors import HookError
from harnessctl.manifests.specs.hooks import JsonSchemaCheck
from harnessctl.runtime.checks.check import PASSED, Check, Moment, Outcome, Setting, read_spec, value_of

MAX_FAULT_CHARS = 300


def compile_json_schema(raw: Any, setting: Setting) -> Check:
    """Compiled once; never fetches a schema from anywhere."""
    spec = read_spec(raw, JsonSchemaCheck)
    target = setting.target(spec.target)
    read = value_of(target)
    try:
        validator = validator_of(spec.schema)
    except (jsonschema_rs.ValidationError, jsonschema_rs.ReferencingError, ValueError) as error:
        raise HookError(f"json_schema: not a schema: {str(error).splitlines()[0]}") from error

    def test(moment: Moment) -> Outcome:
        value = read(moment)
        if isinstance(value, str):
            try:
                value = orjson.loads(value)
            except orjson.JSONDecodeError as error:
                return Outcome(ok=False, reason=f"{target} is not JSON: {error}")
        try:
            if validator.is_valid(value):
                return PASSED
            fault = next(iter(validator.iter_errors(value)))
        except (TypeError, ValueError) as error:  # a key that is no string: not JSON, so it fits no schema
            return Outcome(ok=False, reason=f"{target} is not JSON: {error}")
        place = "".join(f"/{step}" for step in fault.instance_path)
        return Outcome(ok=False, reason=f"{target}{place}: {fault.message}"[:MAX_FAULT_CHARS])

    return Check(test=test)


CHECKS = {"json_schema": compile_json_schema}
