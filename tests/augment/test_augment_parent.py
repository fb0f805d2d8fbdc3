"""What is pinned, what may go, and which words there are."""

from __future__ import annotations

from harnessctl.augment.parent import Parent
from harnessctl.augment.users import maskable_rules, required_by, rule_users, skill_users
from harnessctl.augment.words import parts_of, words_of
from harnessctl.bundle import Bundle


def test_skills_that_something_unvarying_names_are_pinned(kiosk: Bundle):
    pinned = Parent(kiosk.state).pinned_skills
    assert pinned == {
        "in-template",
        "in-item",
        "in-tool",
        "in-code",
        "in-check",
        "in-message",
        "in-expression",
    }


def test_a_skill_that_only_another_skill_names_is_its_matter(kiosk: Bundle):
    assert skill_users(kiosk.state) == {"named-by-two": {"free-two"}}


def test_protected_and_mentioned_rules_are_pinned_with_what_they_use(kiosk: Bundle):
    pinned = Parent(kiosk.state).pinned_rules
    assert {name for name in pinned if name.startswith("free-one#")} == {"free-one#look", "free-one#told"}
    assert {name for name in pinned if name.startswith("more#")} == {"more#first"}


def test_rules_may_go_after_those_that_use_them(kiosk: Bundle):
    order = list(maskable_rules(kiosk.state))
    assert order.index("free-one#thanks") < order.index("free-one#name") < order.index("free-one#needed")
    assert order.index("free-one#enforced") < order.index("free-one#base")
    assert "free-one#short" not in order, "it tells a limit"
    assert not set(order) & Parent(kiosk.state).pinned_rules
    assert rule_users(kiosk.state)["free-one#name"] == ("thanks",)


def test_what_a_rule_requires_comes_along(kiosk: Bundle):
    assert required_by(kiosk.state, ["free-one#enforced"]) == {"free-one#enforced", "free-one#base"}


def test_enforced_rules_by_hook(kiosk: Bundle):
    assert Parent(kiosk.state).enforced == {"free-one#enforced": ("enforcing",)}


def test_words_are_of_everything(kiosk: Bundle):
    words = Parent(kiosk.state).words
    # a name and its parts, a schema key, an expression, code, a template, a text
    assert {"get_paper", "paper", "paper_no", "skills_loaded", "valueerror", "papers", "in-code", "buyer"} <= words
    assert not any(word != word.lower() for word in words)


def test_words_of_chinese_and_mixed_text():
    found = words_of("先调用get_product，再说‘Price-Tag’- 和 x_.")
    assert {"先调用get_product", "get_product", "price-tag", "再说", "和", "x_", "x"} <= found


def test_parts_of_names():
    assert parts_of("get_productDetails-v2") == ["get", "product", "details", "v2"]
    assert parts_of("HTTPServer.list") == ["http", "server", "list"]
