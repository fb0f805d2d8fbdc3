"""YAML 1.2 core with a place for every value: PyYAML's C parser composes nodes, the scalars are read here.

What always holds: a loaded value is plain JSON (text keys, finite numbers within 2**53, no cycles), no tag runs code,
aliases cannot expand beyond a bound, and everything wrong is a fault with its line and column.
"""

from __future__ import annotations

import math
from typing import Any

from yaml import MappingNode, Node, ScalarNode, SequenceNode, YAMLError
from yaml.cyaml import CParser

from harnessctl.errors import Fault, Faults, Severity
from harnessctl.manifests import scalars
from harnessctl.manifests.encoding import decode
from harnessctl.manifests.passage import Passage, Place, aligned
from harnessctl.manifests.syntax import syntax_fault

MAX_DEPTH = 64
MAX_NODES = 200_000
MAX_INTEGER = 2**53

_TOO_MANY = (
    "yaml-alias-bomb",
    "too many values, those counted that aliases repeat",
    f"more than {MAX_NODES}",
    f"{MAX_NODES}",
    "write out what aliases repeat, or make the file smaller",
)

PathPart = str | int


class _TooManyNodes(Exception):
    """A document has more values than anybody writes; composing the rest would only take time and memory."""


class _Composer(CParser):
    """The C parser with YAML 1.2 core resolution of plain scalars."""

    nodes = 0

    def resolve(self, kind: type[Node], value: str | None, implicit: Any) -> str:
        self.nodes += 1
        if self.nodes > MAX_NODES:
            raise _TooManyNodes
        if kind is ScalarNode:
            return scalars.resolve(value or "") if implicit[0] else scalars.STR
        return scalars.MAP if kind is MappingNode else scalars.SEQ

    def descend_resolver(self, current_node: Any, current_index: Any) -> None:
        """Path resolvers are not used."""

    def ascend_resolver(self) -> None:
        """Path resolvers are not used."""


class Document:
    """A loaded YAML document: `value`, and the place of any part of it."""

    __slots__ = ("_root", "_shift", "_text", "path", "value")

    def __init__(self, path: str, value: Any, root: Node | None, text: str, shift: int) -> None:
        self.path = path
        self.value = value
        self._root = root
        self._text = text
        self._shift = shift

    def get(self, *at: PathPart, default: Any = None) -> Any:
        """The value at a path, or `default` when a step does not exist."""
        value = self.value
        for part in at:
            is_there = part in value if isinstance(value, dict) else _is_index(value, part)
            if not is_there:
                return default
            value = value[part]
        return value

    def place(self, *at: PathPart, key: bool = False) -> Place:
        """(line, column) of the value at a path, or of its key; of the nearest enclosing value when it is not there."""
        node, key_node = self._find(at)
        found = key_node if key and key_node is not None else node
        if found is None:
            return 1 + self._shift, 1
        return found.start_mark.line + 1 + self._shift, found.start_mark.column + 1

    def fault(
        self,
        code: str,
        message: str,
        *at: PathPart,
        key: bool = False,
        got: str = "",
        allowed: str = "",
        hint: str = "",
        severity: Severity = "error",
    ) -> Fault:
        """A fault at a path."""
        line, col = self.place(*at, key=key)
        return Fault(self.path, line, col, code, message, got, allowed, hint, severity)

    def passage(self, *at: PathPart) -> Passage:
        """The text at a path with the place of each character."""
        value = self.get(*at)
        text = value if isinstance(value, str) else ""
        node, _ = self._find(at)
        if not isinstance(node, ScalarNode):
            return Passage(self.path, text, lambda _offset: self.place(*at))
        start, end = node.start_mark.index, node.end_mark.index
        if node.style == "|":
            start = self._text.find("\n", start) + 1
        return aligned(self.path, text, self._text, start, end, (self._shift, 0))

    def _find(self, at: tuple[PathPart, ...]) -> tuple[Node | None, Node | None]:
        node, key_node = self._root, None
        for part in at:
            child: Node | None = None
            if isinstance(node, MappingNode):
                for name, value in node.value:
                    if name.value == part:
                        child, key_node = value, name
                        break
            elif isinstance(node, SequenceNode) and isinstance(part, int) and part < len(node.value):
                child, key_node = node.value[part], None
            if child is None:
                break
            node = child
        return node, key_node


def _is_index(value: Any, part: PathPart) -> bool:
    return isinstance(value, list) and isinstance(part, int) and 0 <= part < len(value)


class _Reader:
    """Turns nodes into values and collects what is wrong with them."""

    def __init__(self, path: str, faults: Faults, shift: int) -> None:
        self.path = path
        self.faults = faults
        self.shift = shift
        self.nodes = 0
        self.open: set[int] = set()
        self.stopped = False

    def fault(self, node: Node, code: str, message: str, got: str = "", allowed: str = "", hint: str = "") -> None:
        mark = node.start_mark
        self.faults.add(
            Fault(self.path, mark.line + 1 + self.shift, mark.column + 1, code, message, got, allowed, hint)
        )

    def read(self, node: Node, depth: int = 0) -> Any:
        """The value of `node`; None where a fault made it unreadable."""
        self.nodes += 1
        if self.stopped:
            return None
        if self.nodes > MAX_NODES:
            self.stopped = True
            self.fault(node, *_TOO_MANY)
            return None
        if isinstance(node, ScalarNode):
            return self._scalar(node)
        if id(node) in self.open:
            self.fault(node, "yaml-alias-cycle", "an alias stands inside the value that it repeats")
            return None
        if depth >= MAX_DEPTH:
            self.fault(
                node, "yaml-depth", "values are nested too deeply", f"more than {MAX_DEPTH} levels", f"{MAX_DEPTH}"
            )
            return None
        self.open.add(id(node))
        try:
            return self._mapping(node, depth) if isinstance(node, MappingNode) else self._sequence(node, depth)
        finally:
            self.open.discard(id(node))

    def _sequence(self, node: Node, depth: int) -> list[Any]:
        self._check_tag(node, scalars.SEQ)
        return [self.read(item, depth + 1) for item in node.value]

    def _mapping(self, node: Node, depth: int) -> dict[str, Any]:
        self._check_tag(node, scalars.MAP)
        out: dict[str, Any] = {}
        seen: dict[str, Node] = {}
        for key_node, value_node in node.value:
            key = self._key(key_node)
            value = self.read(value_node, depth + 1)
            if key is None:
                continue
            if key in seen:
                first = seen[key].start_mark.line + 1 + self.shift
                self.fault(
                    key_node,
                    "yaml-duplicate-key",
                    f"the key `{key}` is given twice",
                    f"first at line {first}",
                    hint="remove one of the two",
                )
                continue
            seen[key] = key_node
            out[key] = value
        return out

    def _key(self, node: Node) -> str | None:
        if not isinstance(node, ScalarNode):
            self.fault(node, "yaml-key", "a key is a list or a mapping", allowed="text")
            return None
        if node.value == "<<" and not node.style:
            self.fault(node, "yaml-merge-key", "merge keys are not part of YAML 1.2", "<<", hint="write the fields out")
            return None
        value = self._scalar(node)
        if not isinstance(value, str):
            self.fault(
                node,
                "yaml-key",
                "a key is not text",
                str(node.value) or "nothing",
                "text",
                f'put it in quotes: "{node.value}":',
            )
            return None
        return value

    def _scalar(self, node: Node) -> Any:
        text: str = node.value
        if node.tag == scalars.STR:
            return text
        if node.tag not in (scalars.NULL, scalars.BOOL, scalars.INT, scalars.FLOAT):
            return self._check_tag(node, scalars.STR)
        try:
            value = scalars.construct(node.tag, text)
        except ValueError:
            kind = node.tag.rpartition(":")[2]
            self.fault(node, "yaml-tag", f"the value is not of type {kind}", text[:60], kind, "remove the tag")
            return None
        if (isinstance(value, float) and not math.isfinite(value)) or (
            isinstance(value, int) and abs(value) > MAX_INTEGER
        ):
            self.fault(
                node,
                "yaml-number",
                "the number cannot be kept exactly in JSON",
                text[:60],
                "finite numbers, integers up to 2**53",
                f'put it in quotes if it is text: "{text[:60]}"',
            )
            return None
        return value

    def _check_tag(self, node: Node, expected: str) -> None:
        if node.tag != expected:
            shown = node.tag.replace("tag:yaml.org,2002:", "!!")
            self.fault(
                node,
                "yaml-tag",
                "an unknown tag",
                shown,
                "!!str !!int !!float !!bool !!null !!map !!seq",
                "remove the tag; put text in quotes",
            )


def load_text(path: str, text: str, faults: Faults, *, first_line: int = 1) -> Document | None:
    """The document in `text`, or None after a syntax fault. `first_line` is the line of the file that `text` begins at.

    An empty text is a document whose value is None.
    """
    shift = first_line - 1
    if text.startswith("%") or "\n%" in text:
        line = 1 if text.startswith("%") else text.count("\n", 0, text.index("\n%") + 1) + 1
        directive = text.split("\n")[line - 1]
        if directive.startswith(("%YAML", "%TAG")):
            faults.add(
                Fault(
                    path,
                    line + shift,
                    1,
                    "yaml-directive",
                    "directives are not read",
                    directive[:60],
                    hint="remove the line; files are YAML 1.2 without it",
                )
            )
            return None
    parser = _Composer(text)
    try:
        root = parser.get_single_node()
    except YAMLError as error:
        faults.add(syntax_fault(path, text, error, shift))
        return None
    except _TooManyNodes:
        faults.add(Fault(path, 0, 0, *_TOO_MANY))
        return None
    finally:
        parser.dispose()
    if root is None:
        return Document(path, None, None, text, shift)
    reader = _Reader(path, faults, shift)
    value = reader.read(root)
    return Document(path, value, root, text, shift)


def load_yaml(path: str, data: bytes, faults: Faults) -> Document | None:
    """The document in the bytes of a file, or None when it cannot be read; `path` is how faults name the file."""
    text = decode(path, data, faults)
    return None if text is None else load_text(path, text, faults)
