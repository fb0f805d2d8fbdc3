"""Context: the inputs of the prompt, from the world and the request, checked against the pipeline's schema.

What always holds: text in it is cleaned as viewers' text is (see `outside`), since histories and reviews are viewers'
text too; the request in the record keeps the original.
"""

from __future__ import annotations

from typing import Any

import jsonschema_rs
import orjson

from harnessctl.bundle.state import Prompt
from harnessctl.bundle.validators import validator_of
from harnessctl.errors import BundleError
from harnessctl.records.comment import CommentInput
from harnessctl.runtime.outside import clean_value, may_be_unclean
from harnessctl.runtime.protocols import World


class ContextError(Exception):
    """The context does not fit the prompt's inputs, or the world could not supply it; the text is for the record."""


class ContextReader:
    """Makes a request's context. Compiled once per bundle; BundleError when the inputs are no JSON Schema."""

    def __init__(self, prompt: Prompt) -> None:
        properties: dict[str, Any] = prompt.inputs.get("properties", {})
        #: What a world is asked for; everything, where the inputs are not named.
        self._names = frozenset(properties) or None
        self._omitted: list[tuple[str, Any]] = [
            (name, schema.get("default") if isinstance(schema, dict) else None) for name, schema in properties.items()
        ]
        try:
            self._validator = validator_of(prompt.inputs)
        except (jsonschema_rs.ValidationError, ValueError) as error:
            raise BundleError(f"the prompt's inputs are not a JSON Schema: {error}") from error

    def read(self, request: CommentInput, world: World | None, warnings: list[str] | None = None) -> dict[str, Any]:
        """What the world supplies, then what the request says; omitted optional inputs are their default or null.

        ContextError names every input that does not fit. What was cleaned is added to `warnings`.
        """
        context: dict[str, Any] = {}
        if world is not None:
            try:
                context.update(world.context(request, self._names))
            except Exception as error:  # a world is given from above: whatever it raises is this request's fault alone
                raise ContextError(f"context: the world failed: {type(error).__name__}: {error}") from error
        context.update(request.context)
        encoded = self._checked(context)
        if context and may_be_unclean(encoded):
            context = clean_value(context, [] if warnings is None else warnings, "context")
        for name, default in self._omitted:
            if name not in context:
                context[name] = default
        return context

    def _checked(self, context: dict[str, Any]) -> bytes:
        """`context` as JSON, which fits the inputs."""
        try:
            encoded = orjson.dumps(context)
        except TypeError as error:
            raise ContextError(f"context: not JSON: {error}") from error
        if self._validator.is_valid(context):
            return encoded
        faults = [f"{_place(error.instance_path)}: {error.message}" for error in self._validator.iter_errors(context)]
        raise ContextError("context: " + "; ".join(sorted(faults)))


def _place(path: list[str | int]) -> str:
    return "/" + "/".join(str(step) for step in path) if path else "the whole"
