""""""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from rageval_spec.commands.init.command import TOOLS
from rageval_spec.commands.init.first_spec import (
    JUDGED,
    LACKS,
    NAMES,
    OFFERS,
    Findings,
    inspect_files,
    is_retrieval,
    write_text,
)
from rageval_spec.dataclass import replace
from rageval_spec.errors import UsageError
from tests.command_line import invoke
from tests.commands.init.files import ANSWERS, ROWS, write_rows


def test_the_parts_that_any_row_has_are_found(tmp_path: Path) -> None:
    rows: list[dict[str, Any]] = [dict(row) for row in ANSWERS]
    rows[0] = {**rows[0], "relevant_doc_ids": ["d1"], "seconds": 0.5}
    path = write_rows(tmp_path / "answers.jsonl", rows)
    found = inspect_files(path, path, tmp_path, {})
    assert found.has == {"answer", "contexts", "reference", "relevant", "seconds"}
    assert found.questions == 4
    assert found.dataset == {"use": "jsonl", "path": "answers.jsonl"}


def test_a_file_of_questions_alone_has_no_system(tmp_path: Path) -> None:
    path = write_rows(tmp_path / "golden.jsonl", ROWS)
    found = inspect_files(path, path, tmp_path / "deeper" / "still", {})
    assert found.system is None
    assert found.dataset["path"] == "../../golden.jsonl"


def test_a_table_whose_answers_are_all_empty_has_no_system(tmp_path: Path) -> None:
    path = tmp_path / "golden.csv"
    path.write_text("input,actual_output,expected_output\nwhy?,,so\nhow?,,thus\n")
    assert inspect_files(path, path, tmp_path, {}).system is None


def test_columns_with_few_values_make_slices(tmp_path: Path) -> None:
    same = {"same": "x", "blank": "", "list": ["a"]}
    extra = [{"few": "ab"[at % 2], "many": str(at), "yes": at > 1, **same} for at in range(4)]
    path = write_rows(tmp_path / "golden.jsonl", [{**row, **more} for row, more in zip(ROWS, extra, strict=True)])
    assert inspect_files(path, None, tmp_path, {}).slices == ("few", "level", "yes")


@pytest.mark.parametrize(("name", "word"), [("a.csv", "csv"), ("a.tsv", "csv"), ("a.json", "json"), ("a.yml", "yaml")])
def test_the_name_of_a_file_tells_its_format(tmp_path: Path, name: str, word: str) -> None:
    texts = {"a.csv": "question,answer\na?,b\n", "a.tsv": "question\tanswer\na?\tb\n"}
    texts |= {"a.json": '[{"question": "a?", "reference": "b"}]', "a.yml": "- {question: a?, reference: b}\n"}
    (tmp_path / name).write_text(texts[name])
    assert inspect_files(tmp_path / name, None, tmp_path, {}).dataset["use"] == word


def test_a_file_that_cannot_be_read_is_an_error_with_its_place(tmp_path: Path) -> None:
    (tmp_path / "broken.jsonl").write_text('{"question": "a?"}\n{"question"\n')
    with pytest.raises(UsageError, match=r"broken\.jsonl:2"):
        inspect_files(tmp_path / "broken.jsonl", None, tmp_path, {})


ANSWERED = Findings(
    {"use": "csv", "path": "a b: c.csv", "columns": {"text": "Frage"}},
    {"use": "file", "path": "a b: c.csv"},
    frozenset({"answer", "reference"}),
    1,
    ("Stufe: 1", "level"),
)
RETRIEVAL = Findings({"use": "beir", "path": "data"}, None, frozenset({"relevant", "corpus"}), 1200)


def test_names_that_yaml_would_misread_are_quoted() -> None:
    content = yaml.safe_load(write_text(ANSWERED, "yes: no", "spec.yaml", None))
    assert content["name"] == "yes: no"
    assert content["datasets"]["golden"] == ANSWERED.dataset
    assert content["slices"] == ["Stufe: 1", "level"]


def test_every_metric_is_there_or_says_what_it_needs() -> None:
    text = write_text(ANSWERED, "a", "spec.yaml", None)
    assert "  - token_f1 " in text
    assert "needs `contexts`\n" in text
    assert "1 question." in text


def test_a_collection_for_retrieval_gets_a_baseline_and_no_metrics_of_answers() -> None:
    assert is_retrieval(RETRIEVAL) and not is_retrieval(ANSWERED)
    text = write_text(RETRIEVAL, "a", "spec.yaml", "beir")
    assert "dense: {use: dense, model: minilm}" in text
    assert "{use: dense, model: multilingual}" in write_text(
        replace(RETRIEVAL, model="multilingual"), "a", "spec.yaml", "beir"
    )
    assert "1,200 queries" in text and "bm25:" in text and "token_f1" not in text


def test_every_metric_that_is_offered_exists(tmp_path: Path) -> None:
    judged = [offer.line.replace("strict}", f"strict, as: judged{place}}}") for place, offer in enumerate(JUDGED)]
    metrics = ", ".join([*(offer.line for offer in OFFERS), *judged])
    rows = [{**row, "relevant": ["d1"], "answerable": True} for row in ANSWERS]
    path = write_rows(tmp_path / "answers.jsonl", rows)
    (tmp_path / "spec.yaml").write_text(
        "version: 1\nname: x\ndatasets: {g: {use: jsonl, path: answers.jsonl}}\n"
        f"systems: {{s: {{use: file, path: {path.name}}}}}\n"
        "models: {m: {use: chat, model: x, base_url: 'http://127.0.0.1:9/v1'}}\n"
        "judges: {strict: {use: claims, model: m}}\n"
        f"metrics: [{metrics}]\n"
    )
    assert invoke("validate", tmp_path / "spec.yaml").exit_code == 0


def test_every_part_has_words_for_its_absence_and_every_name_of_another_tool_a_metric() -> None:
    assert {part for offer in (*OFFERS, *JUDGED) for part in offer.needs} <= LACKS.keys()
    assert NAMES.keys() == {*TOOLS} - {"beir", "trec", "otel", "autojudge"}
    for name in {ours for names in NAMES.values() for ours in names.values()}:
        assert invoke("explain", f"metrics.{name}").exit_code == 0, name
