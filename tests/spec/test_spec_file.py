""""""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from rageval_spec import registry
from rageval_spec.diagnostics import Position, SpecError
from rageval_spec.errors import UsageError
from rageval_spec.pipeline.planning.spec_selection import select
from rageval_spec.plugin.secrets import Secret
from rageval_spec.spec import Spec, check_inputs, load, load_dict, loads
from rageval_spec.spec.spec_file import find_spec_origin
from tests.spec import plugins
from tests.tiny import write_spec

SMALL = """\
version: 1
datasets: {support: {use: folder, path: data}}
systems: {sparse: {use: sparse}}
metrics: [ndcg@10]
"""


def read(text: str, environment: Mapping[str, str] | None = None, overrides: Sequence[str] = ()) -> Spec:
    return loads(text, environment=environment or {}, overrides=overrides, check_files=False)


def diagnose(text: str | bytes, folder: Path, overrides: Sequence[str] = ()) -> list[str]:
    """Each diagnostic of a spec's file as `line:column message`."""
    path = folder / "spec.yaml"
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    with pytest.raises(SpecError) as caught:
        load(path, overrides=overrides, environment={}, check_files=False)
    return [f"{d.position.line}:{d.position.column} {d.message}" for d in caught.value.diagnostics]


@pytest.mark.usefixtures("own_plugins")
def test_defaults_are_filled_in() -> None:
    spec = read(SMALL)
    assert spec.name == "text"
    assert [report.use for report in spec.reports] == ["terminal"]
    assert spec.ranking.ties == "trec_eval"
    assert spec.statistics.confidence == 0.95
    assert spec.gates == ()
    assert spec.warnings == ()
    assert dict(spec.models) == {}


@pytest.mark.usefixtures("own_plugins")
def test_a_spec_is_frozen() -> None:
    spec = read(SMALL)
    with pytest.raises(TypeError):
        spec.systems["more"] = spec.systems["sparse"]  # type: ignore[index]
    with pytest.raises(ValueError, match="frozen"):
        spec.systems["sparse"].use = "other"  # type: ignore[misc]


@pytest.mark.usefixtures("own_plugins")
def test_bare_metrics_get_the_spelling_of_the_kernel() -> None:
    metrics = "[nDCG@5, P_10, 'P(rel=2)@3', AP, {use: faithful, judge: a, as: grounded}]\n"
    spec = read(SMALL.replace("[ndcg@10]", metrics + "judges: {a: {use: binary, model: minilm}}"))
    assert [metric.name for metric in spec.metrics] == [
        "ndcg@5",
        "precision@10",
        "precision(rel=2)@3",
        "map",
        "grounded",
    ]
    assert spec.metrics[2].node.model_dump(exclude_defaults=True) == {"use": "precision", "cutoff": 3, "rel": 2}


@pytest.mark.usefixtures("own_plugins")
@pytest.mark.parametrize("alias", ["ndcg@10", "NDCG@10", "ndcg_cut_10", "ndcg_cut.10"])
def test_a_gate_can_use_any_name_of_a_metric(alias: str) -> None:
    spec = read(SMALL + f"gates: [{{metric: {alias}, min: 0.1}}]")
    assert spec.gates[0].metric == "ndcg@10"


@pytest.mark.usefixtures("own_plugins")
def test_a_whole_float_is_an_integer_as_in_json() -> None:
    spec = read(SMALL.replace("ndcg@10", "{use: ndcg, cutoff: 10.0}"))
    assert spec.metrics[0].name == "ndcg@10"


@pytest.mark.usefixtures("own_plugins")
def test_a_branch_of_a_union_can_be_a_list_or_a_word() -> None:
    text = SMALL.replace("{use: sparse}", "{use: sparse, stop_words: [a, b]}")
    assert read(text).systems["sparse"].model_dump()["stop_words"] == ["a", "b"]


@pytest.mark.usefixtures("own_plugins")
def test_the_digest_depends_only_on_the_content() -> None:
    same = """
    # a comment
    metrics:
      - ndcg@10
    systems:
      sparse:
        use: "sparse"
    version: 1
    datasets: {'support': {path: data, use: folder}}
    """
    assert read(same).digest == read(SMALL).digest
    assert read(SMALL + "gates: []\nreports: [terminal]").digest == read(SMALL).digest
    assert read(SMALL, overrides=["systems.sparse.k1=0.9"]).digest == read(SMALL).digest
    others = [
        SMALL.replace("ndcg@10", "ndcg@5"),
        SMALL + "name: named",
        SMALL.replace("path: data", "path: other"),
        SMALL + "gates: [{metric: ndcg@10, min: 0.1}]",
        SMALL + "statistics: {seed: 1}",
        SMALL.replace("{sparse: {use: sparse}}", "{renamed: {use: sparse}}"),
    ]
    assert len({read(text).digest for text in [SMALL, *others]}) == len(others) + 1


@pytest.mark.usefixtures("own_plugins")
def test_the_order_of_systems_and_metrics_is_part_of_the_digest() -> None:
    one = SMALL.replace("{sparse: {use: sparse}}", "{a: {use: sparse}, b: {use: sparse, k1: 2}}")
    other = SMALL.replace("{sparse: {use: sparse}}", "{b: {use: sparse, k1: 2}, a: {use: sparse}}")
    assert read(one).digest != read(other).digest


REMOTE = SMALL.replace("{use: sparse}", '{use: remote, url: "${URL}", api_key: "${secret:KEY}"}')


@pytest.mark.usefixtures("own_plugins")
def test_only_the_name_of_a_secret_is_shown() -> None:
    text = REMOTE.replace("api_key:", 'headers: {Authorization: "Bearer ${secret:KEY} of ${URL}"}, api_key:')
    spec = read(text, {"URL": "https://example.org", "KEY": "hunter2"})
    node = spec.systems["sparse"]
    assert isinstance(node, plugins.RemoteNode)
    assert isinstance(node.api_key, Secret)
    assert node.api_key.reveal() == "hunter2"
    assert node.headers["Authorization"].reveal() == "Bearer hunter2 of https://example.org"
    assert str(node.headers["Authorization"]) == "Bearer ${secret:KEY} of https://example.org"
    shown = [repr(spec), str(node), node.model_dump_json(), repr(node.model_dump()), str(node.api_key)]
    assert not [text for text in shown if "hunter2" in text]


@pytest.mark.usefixtures("own_plugins")
def test_the_digest_contains_only_the_name_of_a_secret() -> None:
    def digest(text: str, **environment: str) -> str:
        return read(text, {"URL": "https://example.org", **environment}).digest

    assert digest(REMOTE, KEY="one") == digest(REMOTE, KEY="two")
    assert digest(REMOTE, KEY="one") != digest(REMOTE.replace("secret:KEY", "secret:OTHER"), OTHER="one")


@pytest.mark.usefixtures("own_plugins")
def test_a_literal_key_is_masked() -> None:
    node = read(REMOTE.replace("${secret:KEY}", "hunter2"), {"URL": "https://example.org"}).systems["sparse"]
    assert isinstance(node, plugins.RemoteNode)
    assert node.api_key is not None
    assert (str(node.api_key), node.api_key.reveal()) == ("***", "hunter2")


@pytest.mark.usefixtures("own_plugins")
@pytest.mark.parametrize(
    ("written", "value"),
    [
        ("${A}", "a"),
        ("${A}-${B}", "a-b"),
        ("${MISSING:-x}", "x"),
        ("${EMPTY:-x}", "x"),
        ("${EMPTY}", ""),
        ("${MISSING:-}", ""),
        ("${A:-x}", "a"),
        ("$${A}", "${A}"),
        ("$$${A}", "$${A}"),
        ("$A $ {A}", "$A $ {A}"),
        ("${NESTED}", "${A}"),
        ("$${secret:A}", "${secret:A}"),
        ("${MISSING:-a:-b}", "a:-b"),
    ],
)
def test_variables(written: str, value: str) -> None:
    environment = {"A": "a", "B": "b", "EMPTY": "", "NESTED": "${A}"}
    spec = read(SMALL.replace("path: data", f"path: '{written}'"), environment)
    assert spec.datasets["support"].model_dump()["path"] == value


@pytest.mark.usefixtures("own_plugins")
def test_the_environment_of_the_process_is_the_default(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RAGEVAL_TEST_FOLDER", "somewhere")
    spec = loads(SMALL.replace("path: data", "path: '${RAGEVAL_TEST_FOLDER}'"), check_files=False)
    assert spec.datasets["support"].model_dump()["path"] == "somewhere"


@pytest.mark.usefixtures("own_plugins")
@pytest.mark.parametrize(
    ("assignment", "read_back"),
    [
        ("systems.sparse.k1=1.2", lambda spec: spec.systems["sparse"].k1 == 1.2),
        ("systems.sparse={use: sparse, b: 1}", lambda spec: spec.systems["sparse"].b == 1),
        ("systems.more={use: sparse}", lambda spec: list(spec.systems) == ["sparse", "more"]),
        ("systems.sparse.fields.title=2", lambda spec: spec.systems["sparse"].fields.title == 2),
        ("metrics.0=recall@5", lambda spec: spec.metrics[0].name == "recall@5"),
        ("metrics=[map, recall@5]", lambda spec: [m.name for m in spec.metrics] == ["map", "recall@5"]),
        ("ranking.depth=5", lambda spec: spec.ranking.depth == 5),
        ("ranking.depth=", lambda spec: spec.ranking.depth is None),
        ("gates.0.min=0.5", lambda spec: spec.gates[0].min == 0.5),
        ("name=a=b", lambda spec: spec.name == "a=b"),
        ("datasets.support.path=${HOME_FOLDER}", lambda spec: spec.datasets["support"].path == "/home"),
    ],
)
def test_overrides(assignment: str, read_back: Any) -> None:
    text = SMALL + "gates: [{metric: map, min: 0.1}]\n" if "map" in assignment else SMALL
    text = SMALL + "gates: [{metric: ndcg@10, min: 0.1}]\n" if assignment.startswith("gates") else text
    assert read_back(read(text, {"HOME_FOLDER": "/home"}, [assignment]))


@pytest.mark.usefixtures("own_plugins")
def test_overrides_apply_in_order_and_reach_names_with_dots() -> None:
    text = SMALL.replace("sparse: {use", "bm25.v2: {use")
    spec = read(text, overrides=["systems.bm25.v2.k1=1", "systems.bm25.v2.k1=2"])
    assert spec.systems["bm25.v2"].model_dump()["k1"] == 2


@pytest.mark.usefixtures("own_plugins")
def test_an_override_of_a_shared_alias_changes_one_place() -> None:
    text = SMALL.replace("{sparse: {use: sparse}}", "{a: &a {use: sparse, k1: 1}, b: *a}")
    spec = read(text, overrides=["systems.b.k1=2"])
    assert [node.model_dump()["k1"] for node in spec.systems.values()] == [1, 2]


@pytest.mark.usefixtures("own_plugins")
def test_a_later_diagnostic_points_to_the_key_or_its_enclosing_block() -> None:
    spec = read(SMALL + "gates:\n  - {metric: ndcg@10, min: 0.5}\n", overrides=["systems.sparse.k1=1"])
    assert spec.diagnose(("gates", 0, "min"), "low", "gate").position == Position(6, 28, 3)
    assert spec.diagnose(("gates", 0, "max"), "high", "gate").position == Position(6, 5, 1)
    assert spec.diagnose(("systems", "sparse"), "slow", "system").position == Position(3, 11, 6)
    assert str(spec.diagnose(("systems", "sparse", "k1"), "low", "value", "raise it")).splitlines() == [
        "--set:1:19: low; raise it [value]",
        "  systems.sparse.k1=1",
        "                    ^",
    ]
    assert spec.diagnose((), "odd", "spec").position.line == 1


@pytest.mark.usefixtures("own_plugins")
def test_missing_files_are_found_on_demand(tmp_path: Path) -> None:
    path = tmp_path / "spec.yaml"
    path.write_text(SMALL)
    spec = load(path, check_files=False)
    assert [(d.code, d.position) for d in check_inputs(spec)] == [("missing-file", Position(2, 41, 4))]
    with pytest.raises(SpecError, match="there is no folder 'data'"):
        load(path)
    (tmp_path / "data").mkdir()
    assert check_inputs(load(path)) == []


@pytest.mark.usefixtures("own_plugins")
def test_an_impossible_path_does_not_crash() -> None:
    with pytest.raises(SpecError, match="path"):
        loads(SMALL.replace("path: data", f"path: {'x' * 5000}"))


@pytest.mark.usefixtures("own_plugins")
def test_the_name_defaults_to_the_name_of_the_file(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    for file, text, name in [("my.eval.yaml", SMALL, "my.eval"), ("b.yaml", SMALL + "name: Näme 2", "Näme 2")]:
        (tmp_path / file).write_text(text, encoding="utf-8")
        spec = load(tmp_path / file)
        assert (spec.name, spec.path, spec.folder) == (name, str(tmp_path / file), tmp_path)


@pytest.mark.usefixtures("own_plugins")
def test_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(SMALL.encode())))
    spec = load("-", check_files=False)
    assert (spec.name, spec.path, spec.folder) == ("stdin", "<stdin>", Path())


@pytest.mark.usefixtures("own_plugins")
@pytest.mark.parametrize("ending", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_line_ends_and_byte_order_mark(ending: str, mark: str, tmp_path: Path) -> None:
    text = mark + SMALL.replace("ndcg@10", "ndgc@10").replace("\n", ending)
    assert diagnose(text.encode(), tmp_path) == ["4:11 unknown measure 'ndgc@10'"]


@pytest.mark.usefixtures("own_plugins")
@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (SMALL.encode("utf-16"), "1:1 the spec is UTF-16 text"),
        (b"version: 1\nname: caf\xe9\n", "2:10 the byte 0xE9 is not UTF-8"),
        (b"", "1:1 the spec is empty"),
        (b"---\n", "1:1 the spec is empty"),
        (b"\x1f\x8b\x08\x00", "1:2 the byte 0x8B is not UTF-8"),
        (b"a" * 4_000_001, "1:1 the spec is larger than 4,000,000 bytes"),
    ],
)
def test_files_that_are_not_text_are_explained(data: bytes, expected: str, tmp_path: Path) -> None:
    assert diagnose(data, tmp_path) == [expected]


@pytest.mark.usefixtures("own_plugins")
def test_missing_specs_are_explained(tmp_path: Path) -> None:
    (tmp_path / "quickstart.yaml").write_text(SMALL)
    with pytest.raises(SpecError, match=r"there is no such file; did you mean 'quickstart\.yaml'"):
        load(tmp_path / "quickstrat.yaml")
    with pytest.raises(SpecError, match="this is a folder"):
        load(tmp_path)
    with pytest.raises(SpecError, match="cannot be read"):
        load("nul\0byte")


@pytest.mark.usefixtures("own_plugins")
@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_a_file_without_permission(tmp_path: Path) -> None:
    path = tmp_path / "spec.yaml"
    path.touch(mode=0o000)
    with pytest.raises(SpecError, match="cannot be read"):
        load(path)


@pytest.mark.usefixtures("own_plugins")
def test_only_the_first_hundred_errors_are_shown(tmp_path: Path) -> None:
    found = diagnose(SMALL + "ranking: {" + ", ".join(f"key{n}: 1" for n in range(500)) + "}", tmp_path)
    assert len(found) == 101
    assert found[-1].endswith("400 more errors follow")


@pytest.mark.usefixtures("own_plugins")
def test_errors_and_warnings_are_sorted_together(tmp_path: Path) -> None:
    text = SMALL.replace("{use: sparse}", "{use: sparse, lowercase: no, k2: 1}") + "sistems: {}\n"
    found = diagnose(text, tmp_path, overrides=["nothing"])
    assert found == [
        "1:1 an override must have the form PATH=VALUE",
        "3:44 YAML 1.2, which many editors use, reads no as text",
        "3:48 unknown key 'k2'",
        "5:1 unknown key 'sistems'",
    ]


@pytest.mark.usefixtures("own_plugins")
def test_a_plugin_that_does_not_import_is_diagnosed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def fail(section: str, word: str) -> Any:
        if word == "sparse":
            raise UsageError("systems: the plugin 'sparse' cannot be imported: no module named 'torch'")
        return plugins.load(section, word)

    monkeypatch.setattr(registry, "load", fail)
    assert diagnose(SMALL, tmp_path) == [
        "3:25 systems: the plugin 'sparse' cannot be imported: no module named 'torch'"
    ]


GATES = [{"metric": "rr", "min": 0.1}, {"metric": "precision@1", "min": 0.2}, {"metric": "rr", "max": 1.0}]


def read_lines(path: Path, lines: tuple[int, ...]) -> list[str]:
    text = path.read_text().splitlines()
    return [text[line - 1] for line in lines]


def test_the_path_starts_at_the_top_of_the_repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "evals").mkdir()
    path = write_spec(tmp_path / "evals", gates=GATES)
    monkeypatch.chdir(path.parent)
    origin = find_spec_origin(load(path.name))
    assert origin is not None
    assert origin.path == "spec.yaml"
    (tmp_path / ".git").mkdir()
    origin = find_spec_origin(load(path.name))
    assert origin is not None
    assert origin.path == "evals/spec.yaml"
    assert read_lines(path, origin.gate_lines) == ["- metric: rr", "- metric: precision@1", "- metric: rr"]


def test_gates_that_only_selects_keep_their_lines(tmp_path: Path) -> None:
    path = write_spec(tmp_path, gates=GATES)
    origin = find_spec_origin(select(load(path), ["precision@1"])[0])
    assert origin is not None
    assert read_lines(path, origin.gate_lines) == ["- metric: precision@1"]
    origin = find_spec_origin(select(load(path), ["rr"])[0])
    assert origin is not None
    assert origin.gate_lines[1] > origin.gate_lines[0] + 2


def test_a_gate_that_the_command_line_set_is_on_the_first_line(tmp_path: Path) -> None:
    path = write_spec(tmp_path, gates=GATES)
    origin = find_spec_origin(load(path, overrides=["gates=[{metric: rr, min: 0.5}]"]))
    assert origin is not None
    assert len(origin.gate_lines) == 1


def test_a_dict_has_no_origin(tmp_path: Path) -> None:
    write_spec(tmp_path)
    assert find_spec_origin(load_dict({
        "version": 1, "datasets": {"fruit": {"use": "beir", "path": "data"}},
        "systems": {"good": {"use": "file", "path": "data/good.run"}}, "metrics": ["rr"],
    }, folder=tmp_path)) is None  # fmt: skip


def test_empty_datasets_are_told_beside_other_faults(installation: None) -> None:
    text = SMALL.replace("{support: {use: folder, path: data}}", "{}") + "gates: [{metric: nope, min: 1}]\n"
    with pytest.raises(SpecError) as found:
        loads(text, check_files=False)
    told = [str(one) for one in found.value.diagnostics]
    assert any("'datasets' is empty" in one for one in told)
    assert any("the spec has no metric 'nope'" in one for one in told)
