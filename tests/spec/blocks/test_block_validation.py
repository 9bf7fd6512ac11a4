""""""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel, ConfigDict, Field

from rageval_spec import registry
from rageval_spec.plugin.secrets import MARK
from rageval_spec.spec.blocks.block_validation import CheckedSpec, check_tree, drop_wrong_entries, list_places, validate
from rageval_spec.spec.blocks.error_explanation import CheckedBlock
from rageval_spec.spec.text.places import SourceText
from rageval_spec.spec.text.variables import fill_in_variables
from rageval_spec.spec.text.yaml_tree import YamlMapping, read_yaml
from tests.spec import plugins


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
    root, diagnostics = read_yaml(SourceText("spec.yaml", text))
    assert isinstance(root, YamlMapping) and not diagnostics
    fill_in_variables(root, environment or {})
    return root


def check(text: str, environment: dict[str, str] | None = None, secrets: Any = None) -> tuple[Outer | None, list[str]]:
    root = tree(text, environment)
    node, diagnostics = validate(CheckedBlock(root, root.place, Outer), Outer, secrets or {})
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
    node, diagnostics = validate(CheckedBlock(root, root.place, Outer), Outer, {f"{MARK}hidden": "s3cret"})
    assert node is not None
    (fault,) = diagnostics
    assert (fault.code, fault.position.column) == ("misplaced-secret", 8)
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


SPEC = """\
version: 1
datasets: {d: {use: folder, path: p}}
systems: {s: {use: sparse}}
metrics: [map]
"""


@pytest.fixture
def few_plugins(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only the plugins of `tests.spec.plugins`."""
    for name in ("words", "builtin_words", "load"):
        monkeypatch.setattr(registry, name, getattr(plugins, name))


def check_blocks(text: str, **environment: str) -> CheckedSpec:
    tree, faults = read_yaml(SourceText("spec.yaml", text))
    assert isinstance(tree, YamlMapping) and not faults
    filled = fill_in_variables(tree, environment)
    return check_tree(tree, filled.secrets, Path("/specs"))


def told(checked: CheckedSpec) -> list[str]:
    return [f"{d.position.line}:{d.position.column} {d.message}" + (f"; {d.hint}" if d.hint else "")
            for d in checked.diagnostics]  # fmt: skip


@pytest.mark.usefixtures("few_plugins")
class TestBlocks:
    def test_every_block_has_a_node_a_plugin_and_a_place(self) -> None:
        checked = check_blocks(SPEC)
        assert told(checked) == []
        assert [(b.section, b.path, b.name, b.place.position.column) for b in checked.blocks] == [
            ("datasets", ("datasets", "d"), "d", 12),
            ("systems", ("systems", "s"), "s", 11),
            ("metrics", ("metrics", 0), "map", 11),
            ("reports", ("reports", 0), "terminal", 1),
        ]
        (system,) = checked.of("systems")
        assert system.node.k1 == 0.9
        assert (system.plugin.context.name, system.plugin.context.folder) == ("s", Path("/specs"))

    def test_a_wrong_block_keeps_its_name_and_its_valid_keys(self) -> None:
        checked = check_blocks(SPEC.replace("{use: sparse}", "{use: dense, model: e5, depth: 0}, t: {use: sparse}"))
        assert checked.names["systems"] == ["s", "t"]
        assert checked.incomplete == {"systems"}
        assert [block.name for block in checked.of("systems")] == ["t"]
        (partial,) = checked.partial_blocks
        assert (partial.node.model, partial.node.depth) == ("e5", 1000)
        assert ("models", "e5") in [(named.section, named.name) for _, named in checked.references()]

    def test_references_by_default_in_a_wrong_block_do_not_count(self) -> None:
        checked = check_blocks(SPEC.replace("{use: sparse}", "{use: dense, depth: 0}"))
        assert [block.name for block in checked.partial_blocks] == ["s"]
        assert [*checked.references()] == []
        whole = check_blocks(SPEC.replace("{use: sparse}", "{use: dense}"))
        assert [named.name for _, named in whole.references()] == ["minilm"]

    def test_all_wrong_blocks_are_reported_at_once(self) -> None:
        text = SPEC.replace("{use: sparse}", "{use: spars}, t: 7, u: {use: sparse, k: 1}").replace("[map]", "[mapp, 3]")
        assert told(check_blocks(text)) == [
            "3:20 unknown system 'spars'; did you mean 'sparse'?",
            "3:31 expected a block with 'use:', found the number 7; the words of 'systems:' are dense, hybrid, "
            "ranking, remote, rerank, sparse",
            "3:51 unknown key 'k'; did you mean 'k1'?",
            "4:11 unknown measure 'mapp'; did you mean 'map'?",
            "4:17 expected a word or a block with 'use:', found the number 3; "
            "to list the metrics, run `rageval-spec list metrics`",
        ]

    @pytest.mark.parametrize("section", ["systems", "models", "metrics", "gates"])
    @pytest.mark.parametrize(("value", "found"), [("7", "the number 7"), ("text", "the text 'text'"), ("", "nothing")])
    def test_a_section_of_the_wrong_type_is_reported_once(self, section: str, value: str, found: str) -> None:
        lines = [line for line in SPEC.splitlines() if not line.startswith(section)]
        (message,) = told(check_blocks("\n".join([*lines, f"{section}: {value}"])))
        assert message.startswith(f"{len(lines) + 1}:")
        assert f" expected a {'mapping' if section in ('systems', 'models') else 'list'}, found {found}" in message

    def test_a_misspelled_section_is_not_reported_as_missing(self) -> None:
        assert told(check_blocks(SPEC.replace("systems:", "sistems:"))) == [
            "3:1 unknown key 'sistems'; did you mean 'systems'?"
        ]

    @pytest.mark.parametrize(("key", "owner"), [("seed", "statistics"), ("ties", "ranking"), ("max_cost", "limits")])
    def test_an_unknown_top_level_key_names_the_block_that_has_it(self, key: str, owner: str) -> None:
        assert told(check_blocks(SPEC + f"{key}: 1\n")) == [f"5:1 unknown key '{key}'; it is a key of '{owner}:'"]

    def test_a_faulty_value_is_reported_once(self) -> None:
        tree, _ = read_yaml(SourceText("spec.yaml", SPEC.replace("path: p", "path: '${GONE}'")))
        assert isinstance(tree, YamlMapping)
        filled = fill_in_variables(tree, {})
        checked = check_tree(tree, filled.secrets, Path())
        assert len(filled.diagnostics) == 1
        assert checked.diagnostics == []
        assert checked.incomplete == {"datasets"}
        assert checked.of("datasets") == []


@pytest.mark.usefixtures("few_plugins")
class TestGates:
    def test_each_gate_is_checked_on_its_own(self) -> None:
        checked = check_blocks(
            SPEC + "gates:\n- {metric: map, min: 0.5}\n- {metric: map, min: high}\n- {min: 0.1}\n- 7\n"
        )
        assert told(checked) == [
            "7:22 expected a number, found the text 'high'",
            "8:3 the key 'metric' is missing; add 'metric:', the metric's name in this spec: `ndcg@10`, or the name "
            "set with `as:`",
            "9:3 expected a mapping, found the number 7",
        ]
        assert {index: gate.min for index, gate in checked.gates.items()} == {0: 0.5, 1: None}
        assert checked.partial_gates == {1}

    @pytest.mark.parametrize(
        ("written", "meant"),
        [
            ("token_f1 > 0.5", "{metric: token_f1, min: 0.5}"),
            ("ndcg@10>=0.4", "{metric: ndcg@10, min: 0.4}"),
            ("latency@p95 <= 2", "{metric: latency@p95, max: 2}"),
            ("map", "{metric: map, min: 0.5}"),
        ],
    )
    def test_a_bound_as_text_is_spelled_as_a_gate(self, written: str, meant: str) -> None:
        (message,) = told(check_blocks(f"{SPEC}gates:\n- {written}\n"))
        assert message.endswith(f"; write {meant}")


def test_a_measure_without_its_cutoff_names_the_metric_of_answers_too() -> None:
    *_, message = told(check_blocks(SPEC.replace("[map]", "[map, f1]")))
    assert message.endswith("needs a cutoff; write 'f1@10' for rankings, or for answers 'token_f1' or 'verified_f1'")


def blocks_of(*metrics: str) -> list[dict[str, object]]:
    """The metrics' nodes, as read with the plugins of the package."""
    text = "version: 1\ndatasets: {d: {use: trec, qrels: q}}\nsystems: {s: {use: file, path: r}}\n"
    checked = check_blocks(text + f"metrics: [{', '.join(metrics)}]\n")
    assert told(checked) == []
    return [block.node.model_dump(exclude_defaults=True) for block in checked.of("metrics")]


def test_a_bare_measure_expands_to_its_block() -> None:
    assert blocks_of("ndcg@10", "'ndcg(gain=exp)@5'", "nDCG@10", "map", "'iprec@0.5'") == [
        {"use": "ndcg", "cutoff": 10},
        {"use": "ndcg", "gain": "exp", "cutoff": 5},
        {"use": "ndcg", "cutoff": 10},
        {"use": "map"},
        {"use": "iprec", "recall": 0.5},
    ]


def test_a_bare_percentile_expands_to_its_block() -> None:
    assert blocks_of("latency@p95", "latency", "exact_match") == [
        {"use": "latency", "percentile": 95},
        {"use": "latency"},
        {"use": "exact_match"},
    ]


@pytest.mark.parametrize(
    ("metric", "expected"),
    [
        ("latency@p0", "'percentile' must be at least 1"),
        ("latency@p100", "'percentile' must be at most 99"),
        ("latency@pNaN", "unknown measure 'latency@pNaN'"),
        ("exact_match@p95", "unknown measure 'exact_match@p95'"),
        ("'${secret:KEY}'", "a secret cannot be used here"),
    ],
)
def test_unknown_metrics_are_refused(metric: str, expected: str) -> None:
    text = "version: 1\ndatasets: {d: {use: trec, qrels: q}}\nsystems: {s: {use: file, path: r}}\n"
    checked = check_blocks(text + f"metrics: [{metric}]\n", KEY="hunter2")
    (found,) = told(checked)
    assert expected in found
    assert "hunter2" not in found
    assert checked.incomplete == {"metrics"}
