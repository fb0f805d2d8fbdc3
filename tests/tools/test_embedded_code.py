"""Embedded code: versions side by side, imports inside a bundle, errors with module and line, source lines kept."""

from __future__ import annotations

import inspect
import pickle
import sys
import traceback

import pytest

from harnessctl.errors import HookError, ToolError
from harnessctl.runtime.code import Code, place


def code(**modules: str) -> Code:
    return Code("ab" * 32, {name.replace("__", "."): source for name, source in modules.items()})


def test_two_versions_of_a_module_run_side_by_side() -> None:
    old = code(shop="def price(): return 1").function("shop:price")
    new = code(shop="def price(): return 2").function("shop:price")
    assert (old(), new()) == (1, 2)
    assert "shop" not in sys.modules


def test_equal_sources_are_loaded_once_whatever_the_bundle() -> None:
    first = Code("a" * 64, {"shop": "def price(): return 1"}).function("shop:price")
    second = Code("b" * 64, {"shop": "def price(): return 1"}).function("shop:price")
    assert first is second


@pytest.mark.parametrize(
    "line",
    [
        "from lib import rate",
        "from .lib import rate",
        "import lib\nrate = lib.rate",
        "import lib as other\nrate = other.rate",
        "from . import lib\nrate = lib.rate",
    ],
)
def test_imports_find_the_modules_of_the_same_bundle(line: str) -> None:
    for value in (3, 4):
        made = code(shop=f"{line}\ndef price(): return rate", lib=f"rate = {value}")
        assert made.function("shop:price")() == value


def test_an_import_inside_a_function_finds_the_same_bundle() -> None:
    for value in (3, 4):
        assert (
            code(shop="def price():\n    import lib\n    return lib.rate", lib=f"rate = {value}").function(
                "shop:price"
            )()
            == value
        )


@pytest.mark.parametrize(
    "line",
    [
        "from pkg.rates import rate",
        "import pkg.rates\nrate = pkg.rates.rate",
        "import pkg.rates as r\nrate = r.rate",
        "from pkg import rates\nrate = rates.rate",
    ],
)
def test_packages_with_and_without_a_source_of_their_own(line: str) -> None:
    sources = {
        "shop": f"{line}\ndef price(): return rate",
        "pkg.rates": "from .base import one\nrate = one + 1",
        "pkg.base": "one = 1",
    }
    assert Code("c" * 64, sources).function("shop:price")() == 2
    for own in ("pkg", "pkg.__init__"):
        made = Code("c" * 64, {**sources, own: "from .base import one\ndef base(): return one"})
        assert made.function("shop:price")() == 2
        assert made.function("pkg:base")() == 1


def test_everything_else_is_imported_as_usual() -> None:
    made = code(shop="import json, os.path\nfrom collections import abc\ndef same(): return json, os.path, abc")
    import collections.abc
    import json
    import os.path

    assert made.function("shop:same")() == (json, os.path, collections.abc)


def test_a_module_may_have_the_name_of_an_installed_one() -> None:
    import json

    made = code(shop="import json\ndef mark(): return json.mark", json="mark = 'ours'")
    assert made.function("shop:mark")() == "ours"
    assert not hasattr(json, "mark")


def test_a_target_that_is_not_embedded_comes_from_what_is_installed() -> None:
    import json

    assert code().function("json:dumps") is json.dumps


def test_source_lines_are_seen_by_tracebacks_and_inspect() -> None:
    function = code(shop="def price(sku):\n    return {}[sku]  # the line\n").function("shop:price")
    assert "# the line" in inspect.getsource(function)
    try:
        function("a")
    except KeyError as error:
        assert "return {}[sku]  # the line" in "".join(traceback.format_exception(error))
        assert place(error) == " (shop, line 2)"


def test_objects_of_embedded_classes_can_be_pickled() -> None:
    source = "from dataclasses import dataclass\n@dataclass\nclass Item:\n    sku: str\ndef make(): return Item('a')"
    item = code(shop=source).function("shop:make")()
    assert pickle.loads(pickle.dumps(item)) == item


@pytest.mark.parametrize(
    ("sources", "target", "said"),
    [
        ({"shop": "x = 1"}, "shop:price", "module `shop` has no function `price`"),
        ({"shop": "price = 1"}, "shop:price", "`price` in module `shop` is int, not a function"),
        (
            {"shop": "\n\n1 / 0"},
            "shop:price",
            "fails when it is imported: ZeroDivisionError: division by zero (shop, line 3)",
        ),
        ({"shop": "import nowhere_to_be_found"}, "shop:price", "No module named 'nowhere_to_be_found' (shop, line 1)"),
        ({"shop": "def price(:"}, "shop:price", "module `shop` is not Python: line 1"),
        ({"shop": "import lib", "lib": "\ndef f(:"}, "shop:price", "module `lib` is not Python: line 2"),
        ({"shop": "from lib import two", "lib": "one = 1"}, "shop:price", "cannot import name 'two' from 'lib'"),
        ({"shop": "raise SystemExit(3)"}, "shop:price", "SystemExit: 3 (shop, line 1)"),
        (
            {},
            "nowhere_to_be_found:price",
            "there is no module `nowhere_to_be_found`, neither in the bundle nor installed",
        ),
        ({}, "json.nowhere:price", "there is no module `json.nowhere`"),
        ({}, "shop.price", "it is not of the form module:function"),
        ({}, "shop:a.b", "it is not of the form module:function"),
    ],
)
def test_what_cannot_be_loaded_is_a_clear_error(sources: dict[str, str], target: str, said: str) -> None:
    with pytest.raises(ToolError) as error:
        Code("d" * 64, sources).function(target)
    assert error.value.message.startswith(f"`{target}` cannot be loaded: ")
    assert said in error.value.message


def test_a_misspelt_function_has_a_hint_and_hooks_have_their_own_error() -> None:
    with pytest.raises(HookError) as error:
        code(shop="def get_product(): pass").function("shop:get_prodct", error=HookError)
    assert error.value.hint == "it has get_product"
