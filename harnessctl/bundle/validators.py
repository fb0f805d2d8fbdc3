"""Validators of JSON Schemas, kept by content: variants of a harness share nearly all of their schemas."""

from __future__ import annotations

import functools
from typing import Any

import jsonschema_rs
import orjson

_KEPT = 4096


def validator_of(schema: Any) -> jsonschema_rs.Validator:
    """A validator that fetches nothing; ValueError or ReferencingError when `schema` is not a JSON Schema.

    The same object for equal schemas; validators keep no state.
    """
    try:
        encoded = orjson.dumps(schema)
    except TypeError:  # an integer beyond 64 bits, say
        return jsonschema_rs.validator_for(schema, offline=True)
    return _compiled(encoded)


@functools.lru_cache(maxsize=_KEPT)
def _compiled(encoded: bytes) -> jsonschema_rs.Validator:
    return jsonschema_rs.validator_for(orjson.loads(encoded), offline=True)
