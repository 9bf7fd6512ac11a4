""""""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rageval_spec.diagnostics import SpecError
from rageval_spec.plugin.secrets import MARK
from rageval_spec.spec import loads
from rageval_spec.spec.text.places import SourceText
from rageval_spec.spec.text.variables import fill_in_variables
from rageval_spec.spec.text.yaml_tree import YamlScalar, read_yaml


def fill(text: str, **environment: str) -> tuple[YamlScalar, dict[str, str], list[str]]:
    node, _ = read_yaml(SourceText("spec.yaml", text))
    assert isinstance(node, YamlScalar)
    filled = fill_in_variables(node, environment)
    return node, dict(filled.secrets), [f"{d.position.column}: {d.message}; {d.hint}" for d in filled.diagnostics]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("${A}", "x"),
        ("pre-${A}-${A}", "pre-x-x"),
        ("${NONE:-y}", "y"),
        ("${EMPTY:-y}", "y"),
        ("${EMPTY}", ""),
        ("${NONE:-}", ""),
        ("$${A}", "${A}"),
        ("$A", "$A"),
    ],
)
def test_variables_become_their_text(text: str, value: str) -> None:
    node, secrets, faults = fill(text, A="x", EMPTY="")
    assert (node.value, secrets, faults) == (value, {}, [])


def test_a_secret_stays_out_of_the_tree() -> None:
    node, secrets, faults = fill("Bearer ${secret:KEY}", KEY="s3cret")
    assert faults == []
    assert node.value == f"{MARK}Bearer ${{secret:KEY}}"
    assert secrets == {node.value: "Bearer s3cret"}


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("${HOM}", "1: the environment variable HOM is not set; did you mean 'HOME'?"),
        ("a ${XYZ}", "3: the environment variable XYZ is not set; set it: export XYZ=..."),
        ("${A", "1: '${' is not closed; write ${NAME}, or $${ for a literal ${"),
        ("${secret:A:-x}", "1: a secret cannot have a default; set the environment variable"),
        ("${1A}", "1: '${1A}' is not a valid variable; write ${NAME}"),
        (
            "${NUL}",
            "1: the environment variable NUL contains a NUL character; remove the character",
        ),
    ],
)
def test_errors_point_to_the_variable(text: str, fault: str) -> None:
    node, _, (found,) = fill(text, A="x", HOME="/root", NUL="a\0b")
    assert found.startswith(fault)
    assert node.faulty


PARTS = st.sampled_from(
    ["${A}", "${B:-b}", "${secret:KEY}", "$${", "${", "${GONE}", "${secret:GONE}", "text ", "}", "$"]
)


@given(st.lists(PARTS, min_size=1).map("".join))
def test_a_secret_is_only_among_the_secrets(text: str) -> None:
    node, secrets, faults = fill(f'"{text}"', A="a", B="", KEY="s3cret")
    assert "s3cret" not in str(node.value) + "".join(faults) + "".join(secrets)
    assert node.faulty == bool(faults)
    if not faults and "${secret:KEY}" in text.replace("$${", ""):
        assert "s3cret" in secrets[str(node.value)]
    else:
        assert faults or not secrets


def test_a_variable_s_text_is_taken_as_it_is() -> None:
    assert fill("${A}", A="${B} $${C} \n: [")[0].value == "${B} $${C} \n: ["


SPEC = """version: 1
datasets: {{d: {{use: beir, path: d}}}}
systems: {{s: {{use: http, url: "{url}", api_key: "{key}"}}}}
metrics: [error_rate]
"""
KEY = "sk-proj-abcdef0123456789abcdef"


def test_a_literal_key_draws_a_warning_that_says_what_to_write_without_showing_the_key() -> None:
    (warning,) = loads(SPEC.format(url="http://host/x", key=KEY), check_files=False).warnings
    assert "this looks like a key or token, and is written in plain text" in str(warning)
    assert "write ${secret:NAME} [plain-credential]" in str(warning)
    assert KEY not in str(warning)
    assert (warning.position.line, warning.code) == (3, "plain-credential")


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
