from __future__ import annotations

import tracemalloc

import pytest

from rageval_spec.errors import UsageError
from rageval_spec.judging.templates import DEEPEST, MOST_CHARACTERS, Meter, RunawayError, compile_template, render

SET = "{% set ns = namespace(x='ab') %}"


def run(text: str, **variables: str | int | float) -> str:
    return render(compile_template(text, "t.jinja"), variables)


@pytest.mark.parametrize(
    "text",
    [
        "{{ 'a' * 10**10 }}",
        "{{ 10**10 * 'a' }}",
        "{{ [1] * 10**9 }}",
        "{{ (1, 2) * 10**9 }}",
        "{{ 10 ** (10**10) }}",
        "{{ 10 ** 9999 * 10 ** 9999 }}",
        "{{ 'a' | center(10**10) }}",
        "{{ 'a'.center(10**10) }}",
        "{{ 'a'.ljust(10**10) }}",
        "{{ 'a'.zfill(10**10) }}",
        "{{ ('\\t' * 9999).expandtabs(10**6) }}",
        "{{ '%10000000000d' % 1 }}",
        "{{ '%*d' % (10**10, 1) }}",
        "{{ '{:>10000000000}'.format(1) }}",
        "{{ '%10000000000d' | format(1) }}",
        "{{ ('{0}' * 9999).format('a' * 9999) }}",
        "{{ ('a' * 99999).replace('a', 'b' * 99999) }}",
        "{{ ('a' * 99999) | replace('a', 'b' * 99999) }}",
        "{{ ('a' * 99999).join(range(99999) | map('string')) }}",
        "{{ range(99999) | join('a' * 99999) }}",
        "{{ ('\\n' * 99999) | indent(9999) }}",
        "{{ [[[[1]]]] | tojson(indent=10**9) }}",
        "{{ (1).to_bytes(10**10, 'big') }}",
        SET + "{% for i in range(99) %}{% set ns.x = ns.x ~ ns.x %}{% endfor %}",
        SET + "{% for i in range(99) %}{% set ns.x = ns.x + ns.x %}{% endfor %}",
        SET + "{% for i in range(99) %}{% set ns.x = ns.x * 2 %}{% endfor %}",
        SET + "{% for i in range(99) %}{% set ns.x = [ns.x, ns.x] %}{% endfor %}{{ ns.x }}",
        SET + "{% for i in range(99) %}{% set ns.x %}{{ ns.x }}{{ ns.x }}{% endset %}{% endfor %}",
        "{% for i in range(9999) %}{{ 'a' * 9999 }}{% endfor %}",
        "{% for i in range(10**5) %}{% for j in range(10**5) %}{% endfor %}{% endfor %}",
        "{% for i in range(10**9) %}{% endfor %}",
        "{{ range(10**9) | list }}",
        "{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}",
        "{% macro m(n) %}{% if n %}{{ m(n - 1) }}{{ m(n - 1) }}{% endif %}{% endmacro %}{{ m(40) }}",
        "{% macro a() %}{{ b() }}{% endmacro %}{% macro b() %}{{ a() }}{% endmacro %}{{ a() }}",
        "{% block a %}{{ self.a() }}{% endblock %}",
        "{% for i in [1] recursive %}{{ loop([1]) }}{% endfor %}",
        "{% macro m() %}{{ caller() }}{% call m() %}{% endcall %}{% endmacro %}{% call m() %}{% endcall %}",
    ],
)
def test_a_template_that_exceeds_a_bound_is_stopped_before_it_takes_memory(text: str) -> None:
    tracemalloc.start()
    try:
        with pytest.raises((RunawayError, OverflowError)):
            run(text)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 200_000_000


@pytest.mark.parametrize(
    "text",
    ["{% include 't.jinja' %}", "{% import 't.jinja' as t %}", "{% extends 't.jinja' %}", "{{ lipsum() }}"],
)
def test_a_template_can_include_neither_another_template_nor_itself(text: str) -> None:
    with pytest.raises(Exception, match=r"no loader|undefined"):
        run(text)


@pytest.mark.parametrize(
    "text", ["{{ " + "(" * 5000, "{% if 1 %}" * 500 + "{% endif %}" * 500, "{{ " + "-" * 9999 + "1 }}"]
)
def test_a_template_that_is_nested_too_deeply_does_not_parse(text: str) -> None:
    with pytest.raises(UsageError, match=r"t\.jinja:1: "):
        run(text)


@pytest.mark.parametrize(
    ("text", "made"),
    [
        (
            "{{ 'ab' * 3 }} {{ 2 ** 10 }} {{ 7 // 2 }} {{ 7 % 4 }} {{ 1 / 4 }} {{ '%s-%d' % ('a', 3) }}",
            "ababab 1024 3 3 0.25 a-3",
        ),
        ("{{ 'a' ~ 1 ~ 'b' }} {{ [1, 2] + [3] }}", "a1b [1, 2, 3]"),
        (
            "{% for x in [3, 1, 2] | sort %}{{ loop.index }}/{{ loop.length }}:{{ x }}"
            "{{ ', ' if not loop.last }}{% endfor %}",
            "1/3:1, 2/3:2, 3/3:3",
        ),
        ("{% for x in [] %}{% else %}none{% endfor %}", "none"),
        ("{% for x in [1, [2, [3]]] recursive %}{{ loop(x) if x is iterable else x }}{% endfor %}", "123"),
        ("{% macro m(n) %}<{{ n }}>{% endmacro %}{{ m(1) }}{{ m(n=2) }}", "<1><2>"),
        ("{{ ['a', 'b'] | map('upper') | join(', ') }} {{ 'x,y'.split(',') | last }}", "A, B y"),
        ("{{ 'a-b'.replace('-', '+') }} {{ 'a-b' | replace('-', '+') }} {{ '{}{}'.format(1, 2) }}", "a+b a+b 12"),
        (
            "{{ 'one\\ntwo' | indent(2) }} {{ 'abc' | truncate(2, True, '', 0) }} {{ {'a': 1} | tojson }}",
            'one\n  two ab {"a": 1}',
        ),
        ("{% set x %}y{% endset %}{{ x }} {{ none_given | default('z') }}", "y z"),
    ],
)
def test_templates_can_do_what_prompts_need(text: str, made: str) -> None:
    assert run(text) == made


def test_long_texts_are_handled_whole() -> None:
    text = "word " * 1_000_000
    assert run("{{ t | trim | replace(' ', '-') }}", t=text) == text.strip().replace(" ", "-")
    assert run("{{ t }}{{ t }}{{ t }}", t=text) == text * 3


def test_a_meter_counts_steps_calls_and_characters() -> None:
    meter = Meter()
    assert meter.most == MOST_CHARACTERS
    assert meter.measure(["ab", {"c": 1}, range(3)]) == 4 + 2 + 4 + 1 + 8 + 24
    with pytest.raises(RunawayError, match="more than 10,000,000 characters"):
        meter.measure(["x" * MOST_CHARACTERS] * 2)
    assert Meter(1_000_000).most == 16_000_000
    with pytest.raises(RunawayError, match="it calls itself"):
        nest(meter, DEEPEST + 1)
    nest(meter, DEEPEST)


def nest(meter: Meter, calls: int) -> None:
    if calls:
        with meter.enter():
            nest(meter, calls - 1)
