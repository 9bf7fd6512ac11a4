""""""

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import Result

from rageval_spec.commands.generate.output import Summary, check_output, place_beside, write_rows, write_set
from rageval_spec.drawing.terminal import render_text
from rageval_spec.errors import UsageError
from rageval_spec.generation.question_sets import KindShare
from tests.command_line import invoke
from tests.generation.manual import write_manual


def test_files_lie_beside_the_questions() -> None:
    assert place_beside(Path("sets/my.golden.jsonl"), "rejected") == Path("sets/my.golden.rejected.jsonl")


def test_a_file_that_exists_is_replaced_only_on_demand(tmp_path: Path) -> None:
    path = write_rows(tmp_path / "golden.jsonl", [{"question": "é"}])
    assert path.read_text("utf-8") == '{"question": "é"}\n'
    with pytest.raises(UsageError, match="people may have edited it"):
        check_output(path, force=False)
    check_output(path, force=True)
    check_output(path, force=False, dry_run=True)
    with pytest.raises(UsageError, match=r"name a file that ends in \.jsonl"):
        check_output(tmp_path / "golden.csv", force=False)


def test_each_set_of_a_split_has_its_file_and_sets_of_an_earlier_one_are_removed(tmp_path: Path) -> None:
    output = tmp_path / "golden.jsonl"
    rows = [{"split": "test", "n": 1}, {"split": "validation", "n": 2}, {"split": "test", "n": 3}]
    names = [path.name for path in write_set(output, rows, [], [])]
    assert names == ["golden.jsonl", "golden.validation.jsonl", "golden.test.jsonl"]
    assert place_beside(output, "test").read_text() == '{"split": "test", "n": 1}\n{"split": "test", "n": 3}\n'
    assert [*write_set(output, [{"n": 1}], [], [])] == [output]
    assert not place_beside(output, "test").exists()


def make(**parts: Any) -> Summary:
    values: dict[str, Any] = {
        "questions": 100, "wanted": 100, "chunks": 60, "all_chunks": 80, "documents": 9, "all_documents": 10,
        "shares": [KindShare("type", "factual", 60, 50), KindShare("type", "procedural", 40, 50)],
        "rejected": {"leak": 3},
        "shortages": [], "stopped": None, "cost": 0.5,
    }  # fmt: skip
    return Summary(**{**values, **parts})


def show(summary: Summary) -> str:
    return render_text(lambda _: summary.draw(Path("golden.jsonl"))).decode()


def test_the_mix_stands_beside_the_wanted_one_and_is_said_where_it_is_off() -> None:
    text = show(make())
    assert "100 questions about 60 of 80 chunks, from 9 of 10 documents" in text
    assert "! type factual: 60 instead of 50" in text
    assert "! type procedural: only 40 instead of 50" in text
    assert "leak" in text
    assert "      path: golden.jsonl\n" in text


def test_a_share_that_is_nearly_right_is_not_worth_a_word() -> None:
    assert "! type" not in show(make(shares=[KindShare("type", "factual", 53, 50)]))


def test_what_is_missing_and_what_stopped_it_is_said() -> None:
    short = make(questions=57, shortages=["43 questions: no chunk is left to ask about"])
    assert "57 of 100 questions" in show(short)
    assert "! missing 43 questions: no chunk is left to ask about" in show(short)
    assert short.complaint is None
    stopped = make(questions=57, stopped="limits.max_cost: 2 of 2 USD")
    assert stopped.complaint == (
        "57 of 100 questions are made: limits.max_cost: 2 of 2 USD; run the same command again to continue"
    )
    assert "to evaluate with them" not in show(stopped)
    assert make(questions=0, shares=[]).complaint == "no question could be made; the rejected ones have the reasons"


def test_json_has_everything(capsys: pytest.CaptureFixture[str]) -> None:
    assert make().report("json", Path("golden.jsonl"), [Path("golden.jsonl")]) == 0
    content = json.loads(capsys.readouterr().out)
    assert (content["questions"], content["rejected"], content["files"]) == (100, {"leak": 3}, ["golden.jsonl"])


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
    assert re.search(r"20 questions about \d+ of \d+ chunks, from 8 of 8 documents", done.stdout)
    table = [line.split() for line in done.stdout.splitlines()]
    assert [line[0] for line in table if line and line[0] in ("type", "difficulty,", "language")] == [
        "type", "difficulty,", "language",
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
    assert (content["questions"], content["made_by"], content["all_documents"]) == (9, "no-model", 8)
    assert sum(share["made"] for share in content["shares"] if share["column"] == "type") == 9
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
    assert "language" not in {share["column"] for share in json.loads(done.stdout)["shares"]}


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
