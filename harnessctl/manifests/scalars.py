"""Plain scalars as YAML 1.2's core schema reads them: `on`, `yes`, `012`, `1_000`, `12:30` and dates are no surprise.

null: `~ null Null NULL` and nothing. bool: `true True TRUE false False FALSE`. int: `[-+]?[0-9]+`, `0o[0-7]+`,
`0x[0-9a-fA-F]+`. float: decimals with a point or an exponent, `.inf`, `.nan`. Everything else is a string.
"""

from __future__ import annotations

import re

STR = "tag:yaml.org,2002:str"
NULL = "tag:yaml.org,2002:null"
BOOL = "tag:yaml.org,2002:bool"
INT = "tag:yaml.org,2002:int"
FLOAT = "tag:yaml.org,2002:float"
SEQ = "tag:yaml.org,2002:seq"
MAP = "tag:yaml.org,2002:map"

NULL_PATTERN = re.compile(r"^(?:~|null|Null|NULL|)$")
BOOL_PATTERN = re.compile(r"^(?:true|True|TRUE|false|False|FALSE)$")
INT_PATTERN = re.compile(r"^(?:[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+)$")
FLOAT_PATTERN = re.compile(
    r"^(?:[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN))$"
)
PATTERNS = ((NULL, NULL_PATTERN), (BOOL, BOOL_PATTERN), (INT, INT_PATTERN), (FLOAT, FLOAT_PATTERN))

_FIRST = frozenset("~nNtTfF+-.0123456789")
_CONSTANT: dict[str, bool | None] = {
    "": None,
    "~": None,
    "null": None,
    "Null": None,
    "NULL": None,
    "true": True,
    "True": True,
    "TRUE": True,
    "false": False,
    "False": False,
    "FALSE": False,
}


def resolve(text: str) -> str:
    """The tag of the plain scalar `text`."""
    if text and text[0] not in _FIRST:
        return STR
    for tag, pattern in PATTERNS:
        # `$` would also match before a final newline, which a plain scalar cannot have.
        if pattern.match(text):
            return tag
    return STR


def construct(tag: str, text: str) -> str | int | float | bool | None:
    """The value of `text` under one of the tags of this module; ValueError when it is not of that form."""
    if tag == STR:
        return text
    if tag in (NULL, BOOL):
        if text not in _CONSTANT or (tag == NULL) != (_CONSTANT[text] is None):
            raise ValueError(text)
        return _CONSTANT[text]
    if tag == INT:
        if not INT_PATTERN.match(text):
            raise ValueError(text)
        return int(text, 0) if text[:2] in ("0o", "0x") else int(text)
    if not FLOAT_PATTERN.match(text):
        raise ValueError(text)
    return float(text.lower().replace(".inf", "inf").replace(".nan", "nan"))
