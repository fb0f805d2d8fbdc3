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


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ("{{ x.price }}", "3"),
        ("{{ x._note }}", "kept"),
        ("{{ x.items() | list | length }}", "3"),
        ("{{ x.get('price') }}", "3"),
        ("{{ x.keys is callable }}", "True"),
        ("{{ x.nothing is defined }}", "False"),
    ],
)
def test_members_of_a_dict_are_read_as_jinja_reads_them(source, text):
    names = {"x": {"price": 3, "_note": "kept", "keys": 1}}
    assert compile_template(source).render(names) == text


@pytest.mark.parametrize("source", ["{{ x.nothing }}", "{{ x.__class__ }}", "{{ x.update({'a': 1}) }}"])
def test_what_a_dict_does_not_have_or_may_not_do_is_an_error(source):
    names = {"x": {"price": 3}}
    with pytest.raises(jinja2.TemplateError):
        compile_template(source).render(names)
    assert names == {"x": {"price": 3}}


def test_expressions_share_the_globals_and_leave_the_names_alone():
    names = {"n": 2}
    assert compile_expression("range(n) | list")(names) == [0, 1]
    assert compile_expression("n + dict(a=1).a")(names) == 3
    assert names == {"n": 2}
