"""YAML text: manifests that read well, and that every reader reads alike.

What always holds: what was written is read back equal by the compiler's own loader; texts that a YAML 1.1 reader would
take for something else (`on`, `yes`, `1.0`, `12:30`, a date) are in quotes, as keys too.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.comments import CommentedMap, CommentedSeq
from ruamel.yaml.scalarstring import DoubleQuotedScalarString, LiteralScalarString

from harnessctl.errors import Faults
from harnessctl.manifests.load import load_text

WIDTH = 110
_YAML_1_1 = re.compile(
    r"(?i:y|n|yes|no|on|off|true|false|null|~|=|<<)|[-+.]?\d[\d_:.,eExXoO+a-fA-F-]*(?:[tT ][\d:.+zZ -]*)?|[-+]?\.(?i:inf|nan)|"
)
#: Long texts with these would be quoted and full of escapes.
_NEEDS_QUOTES = "\"'\\{}[]#:"


def to_yaml(value: dict[str, Any]) -> str:
    """`value` (plain JSON) as block YAML: block scalars for texts of several lines, quotes where they are needed.

    ValueError for what YAML 1.2 in the project's loader cannot hold, such as an integer beyond 2**53.
    """
    faults = Faults()
    for text in _forms(value):
        faults = Faults()
        document = load_text("", text, faults)
        if document is not None and not faults.errors and document.value == value:
            return text
    reason = faults.errors[0].message if faults.errors else "it does not come back as it was"
    raise ValueError(reason)


def _forms(value: dict[str, Any]) -> Iterator[str]:
    """The value in ever plainer forms: the first that comes back as it was is taken."""
    text = _dump(_styled(value, readable=True))
    yield re.sub(r" +$", "", text, flags=re.MULTILINE)  # where a long text is wrapped, the dumper leaves a space
    yield text
    yield _dump(_styled(value, readable=False))


def _dump(value: Any) -> str:
    yaml = YAML()
    yaml.width = WIDTH
    yaml.indent(mapping=2, sequence=4, offset=2)
    yaml.allow_unicode = True
    out = io.StringIO()
    yaml.dump(value, out)
    return out.getvalue()


def _styled(value: Any, *, readable: bool) -> Any:
    if isinstance(value, dict):
        out = CommentedMap()
        for key, item in value.items():
            out[_text(key, readable=readable) if _misread(key) or not readable else key] = _styled(
                item, readable=readable
            )
        return out
    if isinstance(value, list):
        items = CommentedSeq([_styled(item, readable=readable) for item in value])
        plain = all(not isinstance(item, (dict, list)) and "\n" not in str(item) for item in value)
        if plain and len(str(value)) < WIDTH - 30:
            items.fa.set_flow_style()
        return items
    return _text(value, readable=readable) if isinstance(value, str) else value


def _text(text: str, *, readable: bool) -> str:
    if not readable or _misread(text):
        return DoubleQuotedScalarString(text)
    block = "\n" in text or (len(text) > WIDTH and any(char in text for char in _NEEDS_QUOTES))
    if block and "\t" not in text and not text.startswith((" ", "\n")):
        return LiteralScalarString(text)
    return text


def _misread(text: str) -> bool:
    return _YAML_1_1.fullmatch(text) is not None
