from __future__ import annotations

from pathlib import Path

import pytest

from rageval_spec import registry
from rageval_spec.spec.checking import Checked, check_tree
from rageval_spec.spec.environment import fill_in_variables
from rageval_spec.spec.places import Source
from rageval_spec.spec.reading import YamlMapping, read_yaml
from tests.spec import plugins

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


def check(text: str, **environment: str) -> Checked:
    tree, faults = read_yaml(Source("spec.yaml", text))
    assert isinstance(tree, YamlMapping) and not faults
    filled = fill_in_variables(tree, environment)
    return check_tree(tree, filled.secrets, Path("/specs"))


def told(checked: Checked) -> list[str]:
    return [f"{d.position.line}:{d.position.column} {d.message}" + (f"; {d.hint}" if d.hint else "")
            for d in checked.diagnostics]  # fmt: skip


@pytest.mark.usefixtures("few_plugins")
class TestBlocks:
    def test_every_block_has_a_node_a_plugin_and_a_place(self) -> None:
        checked = check(SPEC)
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
        checked = check(SPEC.replace("{use: sparse}", "{use: dense, model: e5, depth: 0}, t: {use: sparse}"))
        assert checked.names["systems"] == ["s", "t"]
        assert checked.incomplete == {"systems"}
        assert [block.name for block in checked.of("systems")] == ["t"]
        (partial,) = checked.partial_blocks
        assert (partial.node.model, partial.node.depth) == ("e5", 1000)
        assert ("models", "e5") in [(named.section, named.name) for _, named in checked.references()]

    def test_references_by_default_in_a_wrong_block_do_not_count(self) -> None:
        checked = check(SPEC.replace("{use: sparse}", "{use: dense, depth: 0}"))
        assert [block.name for block in checked.partial_blocks] == ["s"]
        assert [*checked.references()] == []
        whole = check(SPEC.replace("{use: sparse}", "{use: dense}"))
        assert [named.name for _, named in whole.references()] == ["minilm"]

    def test_all_wrong_blocks_are_reported_at_once(self) -> None:
        text = SPEC.replace("{use: sparse}", "{use: spars}, t: 7, u: {use: sparse, k: 1}").replace("[map]", "[mapp, 3]")
        assert told(check(text)) == [
            "3:20 unknown system 'spars'; did you mean 'sparse'?",
            "3:31 expected a block with 'use:', found the number 7; the words of 'systems:' are dense, hybrid, "
            "ranking, remote, rerank, sparse",
            "3:51 unknown key 'k'; did you mean 'k1'?",
            "4:11 unknown measure 'mapp'; did you mean 'map'?",
            "4:17 expected a word or a block with 'use:', found the number 3; "
            "to list the metrics, run `rageval-spec metrics`",
        ]

    @pytest.mark.parametrize("section", ["systems", "models", "metrics", "gates"])
    @pytest.mark.parametrize(("value", "found"), [("7", "the number 7"), ("text", "the text 'text'"), ("", "nothing")])
    def test_a_section_of_the_wrong_type_is_reported_once(self, section: str, value: str, found: str) -> None:
        lines = [line for line in SPEC.splitlines() if not line.startswith(section)]
        (message,) = told(check("\n".join([*lines, f"{section}: {value}"])))
        assert message.startswith(f"{len(lines) + 1}:")
        assert f" expected a {'mapping' if section in ('systems', 'models') else 'list'}, found {found}" in message

    def test_a_misspelled_section_is_not_reported_as_missing(self) -> None:
        assert told(check(SPEC.replace("systems:", "sistems:"))) == [
            "3:1 unknown key 'sistems'; did you mean 'systems'?"
        ]

    @pytest.mark.parametrize(("key", "owner"), [("seed", "statistics"), ("ties", "ranking"), ("max_cost", "limits")])
    def test_an_unknown_top_level_key_names_the_block_that_has_it(self, key: str, owner: str) -> None:
        assert told(check(SPEC + f"{key}: 1\n")) == [f"5:1 unknown key '{key}'; it is a key of '{owner}:'"]

    def test_a_faulty_value_is_reported_once(self) -> None:
        tree, _ = read_yaml(Source("spec.yaml", SPEC.replace("path: p", "path: '${GONE}'")))
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
        checked = check(SPEC + "gates:\n- {metric: map, min: 0.5}\n- {metric: map, min: high}\n- {min: 0.1}\n- 7\n")
        assert told(checked) == [
            "7:22 expected a number, found the text 'high'",
            "8:3 the key 'metric' is missing; add 'metric:', the metric's name in this spec: `ndcg@10`, or the name "
            "set with `as:`",
            "9:3 expected a mapping, found the number 7",
        ]
        assert {index: gate.min for index, gate in checked.gates.items()} == {0: 0.5, 1: None}
        assert checked.partial_gates == {1}


def blocks_of(*metrics: str) -> list[dict[str, object]]:
    """The metrics' nodes, as read with the plugins of the package."""
    text = "version: 1\ndatasets: {d: {use: trec, qrels: q}}\nsystems: {s: {use: file, path: r}}\n"
    checked = check(text + f"metrics: [{', '.join(metrics)}]\n")
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
    checked = check(text + f"metrics: [{metric}]\n", KEY="hunter2")
    (found,) = told(checked)
    assert expected in found
    assert "hunter2" not in found
    assert checked.incomplete == {"metrics"}
