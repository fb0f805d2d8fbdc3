"""Privacy: what of an order a model does not need to see."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

_LONG_NUMBER = re.compile(r"\b([A-Z]{0,2}\d{2})\d{5,}(\d{2})\b")


def masked(names: Mapping[str, Any]) -> dict[str, Any]:
    """Passes, with every tracking or telephone number in the result shown as `SW12****34`; order numbers stay."""
    return {"ok": True, "value": _masked(names["result"])}


masked.inline = True


def _masked(value: Any, key: str = "") -> Any:
    if isinstance(value, dict):
        return {name: _masked(item, name) for name, item in value.items()}
    if isinstance(value, list):
        return [_masked(item, key) for item in value]
    if isinstance(value, str) and key not in ("order_id", "ticket_id"):
        return _LONG_NUMBER.sub(r"\1****\2", value)
    return value
