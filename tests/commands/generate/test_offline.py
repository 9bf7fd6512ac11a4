"""`generate --no-model`, as a user runs it on a small folder of Markdown."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import Result

from tests.command_line import invoke
from tests.generation.manual import write_manual


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_manual(tmp_path / "manual")
    return tmp_path


def generate(folder: Path, *more: str) -> Result:
    place = ["generate", str(folder / "manual"), "-o", str(folder / "golden.jsonl"), "--no-model"]
    return invoke(*place, "--chunk-words", "60", *more)


def read_rows(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def test_a_set_is_generated_and_a_spec_of_four_lines_evaluates_it(folder: Path) -> None:
    done = generate(folder, "--count", "20")
    assert done.exit_code == 0, done.output
    assert "20 questions about 8 of 8 documents" in done.stdout
    table = [line.split() for line in done.stdout.splitlines()]
    assert [line[0] for line in table if line and line[0] in ("type", "difficulty", "language")] == [
        "type", "difficulty", "language",
    ]  # fmt: skip
    assert {row["made_by"] for row in read_rows(folder / "golden.jsonl")} == {"no-model"}
    spec = folder / "spec.yaml"
    spec.write_text(
        "version: 1\ndatasets: {golden: {use: jsonl, path: golden.jsonl, corpus: golden.corpus.jsonl}}\n"
        "systems: {bm25: {use: bm25}}\nmetrics: [ndcg@10]\n"
    )
    evaluated = invoke("run", str(spec), "--no-history", "-o", str(folder / "results"))
    assert evaluated.exit_code == 0, evaluated.output
    assert "20/20" in evaluated.output
    results = json.loads((folder / "results" / "results.json").read_text("utf-8"))
    assert "model none" in results["origins"]["golden"]["made"]


def test_what_was_not_read_is_named(folder: Path) -> None:
    done = generate(folder)
    assert "picture.png: files in .png are not read, only Markdown, text, HTML and PDF" in done.stderr
    assert "empty.md: the file is empty" in done.stderr


def test_a_split_writes_a_file_for_each_set_and_a_later_run_without_it_removes_them(folder: Path) -> None:
    assert generate(folder, "--split", "30:70").exit_code == 0
    sides = {side: read_rows(folder / f"golden.{side}.jsonl") for side in ("validation", "test")}
    documents = [{name for row in rows for name in row["relevant_documents"]} for rows in sides.values()]
    assert documents[0].isdisjoint(documents[1])
    assert sorted(row["query_id"] for rows in sides.values() for row in rows) == sorted(
        row["query_id"] for row in read_rows(folder / "golden.jsonl")
    )
    assert generate(folder, "--force").exit_code == 0
    assert not (folder / "golden.test.jsonl").exists()


def test_the_same_command_writes_the_same_files(folder: Path) -> None:
    generate(folder)
    first = (folder / "golden.jsonl").read_bytes()
    assert generate(folder).exit_code == 2, "the file exists"
    assert generate(folder, "--force").exit_code == 0
    assert (folder / "golden.jsonl").read_bytes() == first


def test_the_summary_can_be_json(folder: Path) -> None:
    content = json.loads(generate(folder, "--count", "9", "--format", "json").stdout)
    assert (content["questions"], content["made_by"], content["documents"]) == (9, "no-model", 8)
    assert sum(content["type"].values()) == 9
    assert content["files"][0].endswith("golden.jsonl")


def test_fewer_questions_than_wanted_are_a_note_and_none_is_a_failure(folder: Path, tmp_path: Path) -> None:
    assert "note: the corpus gives only" in generate(folder, "--count", "999").stdout
    (tmp_path / "short").mkdir()
    (tmp_path / "short" / "a.txt").write_text("One line.")
    done = invoke("generate", str(tmp_path / "short"), "--no-model", "-o", str(tmp_path / "none.jsonl"))
    assert done.exit_code == 3
    assert "0 questions" in done.stdout
    assert "no question could be made; " in done.stderr
    assert not (tmp_path / "none.jsonl").exists()


def test_copies_of_one_document_give_no_question_and_the_rejected_ones_say_why(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / f"{name}.txt").write_text(
            "Pumps need an impeller of brass. Hoses must stay dry in summer. Frost breaks old housings of iron."
        )
    done = invoke("generate", str(tmp_path), "--no-model", "-o", str(tmp_path / "golden.jsonl"))
    assert done.exit_code == 3
    assert "no question could be made; the rejected ones have the reasons" in done.stderr
    assert {row["reason"] for row in read_rows(tmp_path / "golden.rejected.jsonl")} >= {"several_sources"}


def test_texts_whose_language_is_unclear_are_not_counted_as_a_language(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text(
        "Zubo kralo mivek trona pel gam. Dasko rufem golat zin mor lun. Kralo dasko pel zubo zin bor."
    )
    done = invoke("generate", str(tmp_path), "--no-model", "-o", str(tmp_path / "golden.jsonl"), "--format", "json")
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["language"] == {}


def test_options_for_a_model_are_refused(folder: Path) -> None:
    done = generate(folder, "--price", "1/2", "--types", "factual:100")
    assert done.exit_code == 2
    assert "--price and --types cannot be used with --no-model, which asks no model" in done.stderr


def test_without_a_model_it_must_be_said_that_none_is_wanted(folder: Path) -> None:
    done = invoke("generate", str(folder / "manual"), "-o", str(folder / "golden.jsonl"))
    assert done.exit_code == 2
    assert "make questions without one with --no-model" in done.stderr


def test_a_split_by_question_has_documents_in_both_sets(folder: Path) -> None:
    def shared() -> set[str]:
        sets = [
            {row["sources"][0]["document"] for row in read_rows(folder / f"golden.{side}.jsonl")}
            for side in ("validation", "test")
        ]
        return sets[0] & sets[1]

    assert generate(folder, "--split", "50:50").exit_code == 0
    assert not shared()
    assert generate(folder, "--split", "50:50", "--split-by", "question", "--force").exit_code == 0
    assert shared()


def test_a_wrong_split_is_refused_before_anything_is_made(folder: Path) -> None:
    done = generate(folder, "--split", "half")
    assert done.exit_code == 2
    assert "such as 30:70, not 'half'" in done.stderr
    lone = generate(folder, "--split-by", "document")
    assert lone.exit_code == 2
    assert "add --split, such as --split 30:70" in lone.stderr
    assert not (folder / "golden.jsonl").exists()


def test_the_block_to_write_is_yaml_whatever_the_file_is_called_and_however_narrow_the_terminal(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    place = folder / "my set, number 2: new.jsonl"
    done = invoke("generate", str(folder / "manual"), "-o", str(place), "--no-model", "--count", "4")
    block = yaml.safe_load(done.stdout[done.stdout.index("  datasets:") :])
    corpus = str(place).replace(".jsonl", ".corpus.jsonl")
    assert block["datasets"] == {"golden": {"use": "jsonl", "path": str(place), "corpus": corpus}}
    assert block["metrics"] == ["ndcg@10", "recall@10"]


@pytest.mark.parametrize("columns", ["doc_id: url, text: body", "{doc_id: url, text: body}"])
def test_a_corpus_with_other_keys_is_read_as_its_error_says(tmp_path: Path, columns: str) -> None:
    corpus = tmp_path / "pages.jsonl"
    texts = (
        text * 3
        for text in ("A pump drains flooded cellars fast overnight. ", "Tomatoes wilt in heat without any shade. ")
    )
    rows = (json.dumps({"url": f"/pumps/{place}", "body": text}) for place, text in enumerate(texts))
    corpus.write_text("\n".join(rows), "utf-8")
    command = ("generate", str(corpus), "-o", str(tmp_path / "golden.jsonl"), "--no-model")
    assert "doc_id" in invoke(*command).stderr
    done = invoke(*command, "--columns", columns)
    assert done.exit_code == 0, done.output
    assert {row["relevant"][0][:7] for row in read_rows(tmp_path / "golden.jsonl")} == {"/pumps/"}


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ("txt: body", "--columns: unknown name 'txt'; did you mean 'text'?"),
        ("body", "--columns: 'body' names no keys; write 'doc_id: url, text: body'"),
        ("", "names no keys"),
        ("text: [a", "names no keys"),
    ],
)
def test_wrong_columns_say_what_to_write(folder: Path, columns: str, message: str) -> None:
    done = generate(folder, "--columns", columns)
    assert (done.exit_code, message in done.stderr) == (2, True), done.output
