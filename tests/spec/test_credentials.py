from __future__ import annotations

import pytest

from rageval_spec.diagnostics import SpecError
from rageval_spec.spec import loads

SPEC = """version: 1
datasets: {{d: {{use: beir, path: d}}}}
systems: {{s: {{use: http, url: "{url}", api_key: "{key}"}}}}
metrics: [error_rate]
"""
KEY = "sk-proj-abcdef0123456789abcdef"


def test_a_literal_key_draws_a_warning_that_says_what_to_write_without_showing_the_key() -> None:
    (warning,) = loads(SPEC.format(url="http://host/x", key=KEY), check_files=False).warnings
    assert "this looks like a key or token, and is written in plain text" in str(warning)
    assert "write ${secret:NAME}" in str(warning)
    assert KEY not in str(warning)
    assert (warning.position.line, warning.code) == (3, "credential")


def test_a_key_in_a_url_draws_a_warning_that_says_where_it_belongs() -> None:
    url = "http://host/x?q=1&key=4f9aB71cE0d25Qz8Lm3xT6vR"
    (warning,) = loads(SPEC.format(url=url, key="${secret:KEY}"), check_files=False, environment={"KEY": KEY}).warnings
    assert "this URL contains what looks like a key or token, and is written in plain text" in str(warning)
    assert "send it as a header: ${secret:NAME}" in str(warning)
    assert "4f9aB71c" not in str(warning)


def test_a_key_from_a_plain_variable_draws_a_warning_too() -> None:
    spec = loads(SPEC.format(url="http://host/x", key="${KEY}"), check_files=False, environment={"KEY": KEY})
    assert "comes from ${VAR}" in str(spec.warnings[0])


def test_a_secret_draws_no_warning() -> None:
    text = SPEC.format(url="http://host/x", key="${secret:KEY}")
    assert loads(text, check_files=False, environment={"KEY": KEY}).warnings == ()


@pytest.mark.parametrize("url", ["http://me:hidden@host/x", "http://me:hid/den@host/x"])
def test_the_line_of_a_refused_url_does_not_show_its_password(url: str) -> None:
    with pytest.raises(SpecError) as caught:
        loads(SPEC.format(url=url, key="x"), check_files=False)
    assert "hid" not in str(caught.value)
    assert "@host/x" in str(caught.value)
