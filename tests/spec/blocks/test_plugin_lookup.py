""""""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from rageval_spec.diagnostics import SpecError
from rageval_spec.spec import Spec, loads

TEXT = """\
version: 1
datasets: {d: %s}
systems: {s: %s}
models: {m: %s}
metrics: [%s]
"""


def fault(
    dataset: str = "{use: trec, qrels: q}", system: str = "{use: file, path: r}",
    model: str = "{use: onnx, model: minilm}", metric: str = "rr",
) -> str:  # fmt: skip
    with pytest.raises(SpecError) as caught:
        loads(TEXT % (dataset, system, model, metric), check_files=False)
    (found,) = caught.value.diagnostics
    return f"{found.message}; {found.hint}"


@pytest.mark.parametrize(
    ("block", "message"),
    [
        ("{use: elasticsearch}", "unknown system 'elasticsearch'; did you mean 'bm25'?"),
        ("{use: cross-encoder}", "unknown system 'cross-encoder'; did you mean 'rerank'?"),
        ("{use: minilm}", "unknown system 'minilm'; 'minilm' is a model: write {use: dense, model: minilm}"),
        ("{use: ndcg}", "unknown system 'ndcg'; it is a word of 'metrics:'; the words of 'systems:' are"),
        ("{path: r.run}", "the key 'use' is missing; the words of 'systems:' are"),
        (
            "runs/a.run",
            "expected a block with 'use:', found the text 'runs/a.run'; write {use: file, path: runs/",
        ),
        ("bm25", "expected a block with 'use:', found the text 'bm25'; write {use: bm25}"),
        ("{use: 3}", "expected a word of systems, found the number 3; the words of 'systems:' are"),
    ],
)
def test_systems(block: str, message: str) -> None:
    assert fault(system=block).startswith(message)


def test_a_name_in_place_of_a_model_block_suggests_the_block() -> None:
    assert "write {use: onnx, model: intfloat/e5}" in fault(model="intfloat/e5")


def test_measures_with_a_cutoff_are_written_without_use() -> None:
    assert fault(metric="{use: ndcg@10}") == (
        "unknown metric 'ndcg@10'; write a measure with its cutoff without 'use:': - ndcg@10; beside other keys, as "
        "'cutoff: 10'"
    )


SPEC = """\
version: 1
datasets:
  golden:
    use: %s
    path: gold.file
%s
systems: {made: {use: file, path: made.run}}
metrics: [rr]
"""


def load(word: str, keys: str) -> Spec:
    return loads(SPEC % (word, "".join(f"    {line}\n" for line in keys.splitlines())), check_files=False)


CASES = {
    "jsonl": ("jsonl", "fields: {text: ask}", {"text": "ask"}, ["columns: {...}"]),
    "both": (
        "jsonl",
        "fields: {text: ask}\ncorpus: c.jsonl\ncorpus_fields: {text: body}",
        {"text": "ask", "corpus": {"text": "body"}},
        ["columns: {...}", "columns: {corpus: {...}}"],
    ),
    "questions in the main file": ("csv", "query_columns: {text: ask}", {"text": "ask"}, ["columns: {...}"]),
    "questions in a file of their own": (
        "parquet",
        "columns: {query_id: nr}\nqueries: q.parquet\nquery_columns: {text: ask}",
        {"query_id": "nr", "queries": {"text": "ask"}},
        ["columns: {queries: {...}}"],
    ),
    "two keys of one file": (
        "csv",
        "columns: {doc_id: page}\nquery_columns: {text: ask}",
        {"doc_id": "page", "text": "ask"},
        ["columns: {...}"],
    ),
}


@pytest.mark.parametrize(("word", "keys", "columns", "advice"), CASES.values(), ids=CASES)
def test_former_keys_are_read_with_a_warning_that_names_the_new_one(
    word: str, keys: str, columns: dict[str, Any], advice: list[str]
) -> None:
    spec = load(word, keys)
    found = spec.datasets["golden"].columns.model_dump(exclude_none=True)  # type: ignore[attr-defined]
    assert {key: value for key, value in found.items() if value != {}} == columns
    assert [warning.severity for warning in spec.warnings] == ["warning"] * len(advice)
    assert [warning.hint for warning in spec.warnings] == [f"write {text}" for text in advice]
    first = spec.warnings[0]
    assert first.source_line.strip().startswith(first.message.split("'")[1])


def test_a_name_under_both_keys_is_refused() -> None:
    with pytest.raises(
        SpecError, match="'text' is defined under both 'fields' and 'columns'; keep only the one under 'columns'"
    ):
        load("jsonl", "columns: {text: a}\nfields: {text: b}")


def test_errors_under_a_former_key_point_to_their_place() -> None:
    with pytest.raises(SpecError) as caught:
        load("jsonl", "fields: {txt: ask}")
    (fault,) = [found for found in caught.value.diagnostics if found.severity == "error"]
    assert (fault.message, fault.hint) == ("unknown key 'txt'", "did you mean 'text'?")
    assert fault.source_line.strip() == "fields: {txt: ask}"


def test_aliases_of_a_block_are_read_the_same_way() -> None:
    text = """\
version: 1
datasets:
  first: &block {use: jsonl, path: a.jsonl, fields: &names {text: ask}}
  second: *block
  third: {use: jsonl, path: b.jsonl, columns: *names}
systems: {made: {use: file, path: made.run}}
metrics: [rr]
"""
    spec = loads(text, check_files=False)
    texts = [node.columns.text for node in spec.datasets.values()]  # type: ignore[attr-defined]
    assert texts == ["ask"] * 3
    assert len(spec.warnings) == 1


@pytest.mark.parametrize("key", ["fields", "mapping", "query_columns"])
def test_keys_of_other_tools_only_get_a_suggestion(key: str) -> None:
    text = SPEC % ("csv", "")
    with pytest.raises(SpecError) as caught:
        loads(text.replace("path: made.run", f"path: made.run, {key}: {{answer: x}}"), check_files=False)
    (fault,) = caught.value.diagnostics
    assert (fault.message, fault.hint) == (f"unknown key '{key}'", "did you mean 'columns'?")


def test_values_that_are_not_mappings_are_refused_as_under_the_new_key(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match="expected a mapping, found the text 'ask'"):
        load("jsonl", "fields: ask")
