from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel, ConfigDict, Field

from rageval_spec.plugin.secret import MARK
from rageval_spec.spec.environment import fill_in_variables
from rageval_spec.spec.explaining import Block
from rageval_spec.spec.places import Source
from rageval_spec.spec.reading import YamlMapping, read_yaml
from rageval_spec.spec.validating import drop_wrong_entries, list_places, validate


class Inner(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    share: float = 0.0


class Outer(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    count: int | None = Field(default=None, ge=1)
    share: float = 0.0
    flag: bool = False
    text: str = ""
    numbers: tuple[float, ...] = ()
    either: int | str = 0
    inner: Inner = Inner()


def tree(text: str, environment: dict[str, str] | None = None) -> YamlMapping:
    root, diagnostics = read_yaml(Source("spec.yaml", text))
    assert isinstance(root, YamlMapping) and not diagnostics
    fill_in_variables(root, environment or {})
    return root


def check(text: str, environment: dict[str, str] | None = None, secrets: Any = None) -> tuple[Outer | None, list[str]]:
    root = tree(text, environment)
    node, diagnostics = validate(Block(root, root.place, Outer), Outer, secrets or {})
    return node, [f"{d.position.column}: {d.message}" + (f"; {d.hint}" if d.hint else "") for d in diagnostics]


def test_a_whole_float_is_an_integer_and_text_is_not_a_number() -> None:
    node, faults = check("{count: 3.0, share: 1}")
    assert node is not None and (node.count, node.share, faults) == (3, 1.0, [])
    node, faults = check('{count: "3"}')
    assert node is None
    assert faults == ["9: expected a whole number, found the text '3'; remove the quotes"]
    assert check("{count: 3.5}")[1] == ["9: expected a whole number, found the number 3.5"]


VALUES = {"N": "3", "F": "0.25", "T": "true", "NO": "no", "WORD": "many", "LIST": "1, 2", "EMPTY": "", "HALF": "3.5"}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("{count: '${N}'}", {"count": 3}),
        ("{count: ${N}}".replace("${N}", "'1${N}'"), {"count": 13}),
        ("share: ${F}", {"share": 0.25}),
        ("share: ${N}", {"share": 3.0}),
        ("share: ${ABSENT:-0.5}", {"share": 0.5}),
        ("share: -${F}", {"share": -0.25}),
        ("flag: ${T}", {"flag": True}),
        ("flag: ${NO}", {"flag": False}),
        ("numbers: ['${N}', 1, '${F}']", {"numbers": (3.0, 1.0, 0.25)}),
        ("inner: {share: '${F}'}", {"inner": Inner(share=0.25)}),
        ("text: ${N}", {"text": "3"}),
        ("either: ${N}", {"either": "3"}),
    ],
)
def test_a_variable_can_give_a_number_or_a_boolean(text: str, expected: dict[str, Any]) -> None:
    node, faults = check(text, VALUES)
    assert faults == []
    assert node is not None and {key: getattr(node, key) for key in expected} == expected
    assert all(type(getattr(node, key)) is type(value) for key, value in expected.items())


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("count: ${WORD}", "expected a whole number, found the text '${WORD}'; set the variable to a whole number"),
        ("count: ${HALF}", "expected a whole number, found the number ${HALF}"),
        ("count: ${T}", "expected a whole number, found the text '${T}'; set the variable to a whole number"),
        ("share: ${EMPTY}", "expected a number, found the text '${EMPTY}'; set the variable to a number"),
        ("flag: ${N}", "expected true or false, found the text '${N}'; set the variable to true or false"),
        ("inner: {share: '${LIST}'}", "expected a number, found the text '${LIST}'; set the variable to a number"),
    ],
)
def test_a_variable_that_is_not_a_number_is_reported_without_its_value(text: str, fault: str) -> None:
    node, faults = check(text, VALUES)
    assert node is None
    assert [found.partition(": ")[2] for found in faults] == [fault]


def test_bounds_hold_for_variables_too() -> None:
    node, (fault,) = check("count: ${ZERO}", {"ZERO": "0"})
    assert node is None
    assert "must be at least 1" in fault


def test_a_secret_is_not_a_number() -> None:
    assert check("share: ${secret:F}", VALUES)[0] is None


def test_secrets_are_refused_in_keys_that_reports_show() -> None:
    root = tree("{text: a, share: 1}")
    root.entries["text"].value.value = f"{MARK}hidden"  # type: ignore[union-attr]
    node, diagnostics = validate(Block(root, root.place, Outer), Outer, {f"{MARK}hidden": "s3cret"})
    assert node is not None
    (fault,) = diagnostics
    assert (fault.code, fault.position.column) == ("secret", 8)
    assert "s3cret" not in str(fault)


def test_only_wrong_entries_are_dropped() -> None:
    root = tree("{count: many, share: 0.5, unknown: 1, inner: {share: x}}")
    kept = drop_wrong_entries(root, Outer, {})
    assert list(kept.entries) == ["share"]
    assert len(root.entries) == 4
    right = tree("share: 0.5")
    assert drop_wrong_entries(right, Outer, {}) is right


def test_every_key_path_has_its_place() -> None:
    root = tree("a: 1\nb:\n  - x\n  - {c: 2}\n")
    places = list_places(root, root.place)
    lines = {path: place.position.line for path, place in places.items()}
    assert lines[("a",)] == 1
    assert lines[("b", 0)] == 3
    assert lines[("b", 1, "c")] == 4
    assert set(places) == {(), ("a",), ("b",), ("b", 0), ("b", 1), ("b", 1, "c")}


def test_numbers_in_a_spec_can_come_from_the_environment(tmp_path: Path) -> None:
    from rageval_spec.spec import loads

    text = (
        "version: 1\ndatasets: {d: {use: trec, qrels: q.txt}}\nsystems: {a: {use: bm25, k1: '${K1}'}}\n"
        "metrics: [{use: ndcg, cutoff: '${CUT}'}]\ngates: [{metric: 'ndcg@10', min: '${MIN}'}]\n"
    )
    spec = loads(text, environment={"K1": "0.9", "CUT": "10", "MIN": "0.5"}, check_files=False)
    assert spec.systems["a"].k1 == 0.9  # type: ignore[attr-defined]
    assert [metric.name for metric in spec.metrics] == ["ndcg@10"]
    assert spec.gates[0].min == 0.5
    written = text.replace("'${K1}'", "0.9").replace("'${CUT}'", "10").replace("'${MIN}'", "0.5")
    assert loads(written, check_files=False).digest == spec.digest


def test_the_number_or_share_of_errors_can_come_from_the_environment() -> None:
    from rageval_spec.diagnostics import SpecError
    from rageval_spec.spec import loads

    def limit(written: str, value: str) -> int | str | None:
        text = (
            "version: 1\ndatasets: {d: {use: trec, qrels: q.txt}}\nsystems: {a: {use: bm25}}\nmetrics: [rr]\n"
            f"limits: {{max_errors: {written}}}\n"
        )
        return loads(text, environment={"MOST": value}, check_files=False).limits.max_errors

    assert limit('"${MOST}"', "10") == 10
    assert limit('"${MOST}"', "1%") == "1%"
    assert limit('"${MOST}%"', "2") == "2%"
    for wrong in ("many", "0.5", "-1", "101%"):
        with pytest.raises(SpecError):
            limit('"${MOST}"', wrong)
    with pytest.raises(SpecError, match="must be a number of questions such as 10"):
        limit('"10"', "")
