"""JSON that a model wrote: read as it stands, and refused where nothing else could hold or show it again."""

from __future__ import annotations

from typing import Any

import orjson

#: Text with fewer characters or brackets than this cannot nest too deeply.
_FEW = 200


def read_json(text: str) -> tuple[Any, str]:
    """(the value, why there is none). Records, checks and tools hold values nested up to about 250 deep."""
    try:
        value = orjson.loads(text)
        if len(text) > _FEW and text.count("[") + text.count("{") > _FEW:
            orjson.dumps(value)
    except orjson.JSONDecodeError as error:
        return None, str(error)
    except TypeError:  # orjson.JSONEncodeError
        return None, "it is nested too deeply"
    return value, ""
