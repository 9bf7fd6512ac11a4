from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rageval_spec.plugin.secret import MARK
from rageval_spec.spec.environment import fill_in_variables
from rageval_spec.spec.places import Source
from rageval_spec.spec.reading import YamlScalar, read_yaml


def fill(text: str, **environment: str) -> tuple[YamlScalar, dict[str, str], list[str]]:
    node, _ = read_yaml(Source("spec.yaml", text))
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
