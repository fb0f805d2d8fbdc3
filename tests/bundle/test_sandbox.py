import jinja2
import pytest

from harnessctl.bundle.sandbox import (
    called_with_constant,
    compile_expression,
    compile_template,
    undeclared_names,
    unsafe_accesses,
)


@pytest.mark.parametrize(
    ("expression", "names", "value"),
    [
        ("a.b.c > 3", {}, None),
        ("a.b == 2", {"a": {"b": 2}}, True),
        ("missing == 'x'", {}, False),
        ("1 / zero", {"zero": 0}, None),
        ("x + 'a'", {"x": 1}, None),
        ("'abc' in text", {"text": "xabcx"}, True),
        ("rows[5].name", {"rows": []}, None),
    ],
)
def test_an_undefined_name_or_a_failing_operation_is_not_an_error(expression, names, value):
    assert compile_expression(expression)(names) == value


@pytest.mark.parametrize(
    "source",
    [
        "{{ ''.__class__.__mro__ }}",
        "{{ x['__globals__'] }}",
        "{% include 'a' %}",
        "{% import 'a' as b %}",
        "{{ x|attr('y') }}",
        "{{ f.format_map(g) }}",
    ],
)
def test_an_escape_is_found_without_running_the_template(source):
    assert unsafe_accesses(source)


@pytest.mark.parametrize("source", ["{{ 'a' * 10000000 }}", "{{ 10 ** 10 ** 10 }}", "{{ range(10000000)|list }}"])
def test_a_template_cannot_fill_the_memory(source):
    with pytest.raises((jinja2.TemplateError, OverflowError)):
        compile_template(source).render()


def test_templates_are_strict():
    with pytest.raises(jinja2.UndefinedError):
        compile_template("{{ nothing }}").render()


def test_names_and_calls_are_read_from_the_source():
    assert undeclared_names("{{ a }}{% for b in c %}{{ b }}{% endfor %}") == {"a", "c"}
    assert called_with_constant("{{ tool('x') }}\n{{ tool(y) }}", "tool") == [(1, "x"), (2, None)]


def test_an_expression_cannot_reach_the_interpreter():
    assert compile_expression("''.__class__.__mro__[1].__subclasses__()")({}) is None
