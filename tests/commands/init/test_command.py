"""The arguments of `init`.

`init --answers` and `init --from`: what they write is valid and runs as it is.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest
import yaml

from rageval_spec.exchange.shared.spans.protobuf import encode_spans
from tests.command_line import invoke
from tests.commands.init.files import ANSWERS, ROWS, write_rows
from tests.exchange.otel.test_source import record_trace
from tests.systems.asking import Service
from tests.tiny import write_collection


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--answers", "a.jsonl", "--from", "ragas", "a.jsonl"), "--answers and --from exclude each other"),
        (("--golden", "a.jsonl"), "--golden belongs to --answers"),
        (("--column", "text=a"), "--column belongs to FILE, --answers or --from"),
        (("a.jsonl", "--from", "ragas", "a.jsonl"), "'a.jsonl' is a file; give it, --answers or --from"),
        (("--url", "http://localhost:1/ask"), "--url belongs to a file of questions"),
        (("a.jsonl", "--url", "localhost:1/ask"), "--url localhost:1/ask: write a URL such as"),
        (("a.jsonl", "--url", "http://user:word@localhost:1"), "credentials"),
        (("none.xlsx", "--url", "http://localhost:1"), "there is no file 'none.xlsx'"),
        (("a.jsonl", "b.jsonl"), "'b.jsonl' is one too many"),
        (("a.jsonl", "one", "two"), "'two' is one too many"),
        (("--answers", "a.jsonl", "--column", "foo=a"), "--column foo: there is no such part; write one of answer,"),
        (("--answers", "a.jsonl", "--column", "text"), "--column 'text': write PART=NAME"),
        (("--answers", "b.jsonl"), "b.jsonl has no answers of a system; name the column with --column answer=NAME"),
        (("--answers", "notes.txt"), "it is not clear what this file holds; its name must end in one of .csv,"),
        (("--answers", "bad.jsonl"), "bad.jsonl:1"),
        (("--from", "beir", "a.jsonl"), "is not a folder; a BEIR dataset is one with corpus.jsonl"),
        (("--from", "ragas", "."), "is a folder; name the file with the questions"),
        (("--from", "beir", "."), "there is no "),
        (
            ("--from", "trulens", "a.jsonl"),
            "--from trulens: write one of ragas, deepeval, promptfoo, beir, trec, otel or autojudge",
        ),
    ],
)
def test_wrong_arguments_are_explained_and_nothing_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...], message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    write_rows(tmp_path / "a.jsonl", ANSWERS)
    write_rows(tmp_path / "b.jsonl", ROWS)
    (tmp_path / "notes.txt").write_text("a?\n")
    (tmp_path / "bad.jsonl").write_text("[1]\n")
    result = invoke("init", *arguments)
    assert result.exit_code == 2
    assert message in " ".join(result.stderr.split())
    assert not (tmp_path / "spec.yaml").exists()


@pytest.mark.parametrize("suffix", ["jsonl", "csv", "xlsx"])
def test_a_golden_set_and_a_service_make_a_spec_that_asks_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, suffix: str
) -> None:
    monkeypatch.chdir(tmp_path)
    table = pl.DataFrame(ROWS)
    if suffix == "xlsx":
        table.write_excel(tmp_path / "golden.xlsx")
    elif suffix == "csv":
        table.write_csv(tmp_path / "golden.csv")
    else:
        write_rows(tmp_path / "golden.jsonl", ROWS)
    service = Service(
        lambda call: (200, {"answer": call.json["question"].removeprefix("Who is ").rstrip("?") + " is a king"})
    )
    try:
        written = invoke("init", f"golden.{suffix}", "--url", service.url)
        assert (written.exit_code, service.calls) == (0, []), "it only writes"
        content = yaml.safe_load((tmp_path / "spec.yaml").read_text())
        assert content["systems"] == {"live": {"use": "http", "url": service.url}}
        assert invoke("run", "spec.yaml").exit_code == 0
    finally:
        service.close()
    results = json.loads((tmp_path / "rageval-results" / "results.json").read_text())
    means = {row["metric"]: row["mean"] for row in results["aggregates"] if row["slice"] is None}
    assert (means["token_f1"], means["error_rate"], len(service.calls)) == (1.0, 0.0, 4)


def test_columns_that_a_spec_for_a_service_does_not_use_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "qa.csv").write_text("question,note,Antwort\nWho is a?,x,a\nWho is b?,y,b\nWho is c?,z,c\n")
    written = invoke("init", "qa.csv", "--url", "http://localhost:1/ask")
    assert written.exit_code == 0
    said = (
        "the spec does not use 'note' or 'Antwort'; if 'Antwort' has the gold answers, add --column reference=Antwort"
    )
    assert said in " ".join(written.output.split())
    again = invoke("init", "qa.csv", "--force", "--url", "http://localhost:1/ask", "--column", "reference=Antwort")
    assert "the spec does not use 'note'" in again.output and "gold answers, add" not in again.output


def test_a_file_with_answers_is_evaluated_as_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write_rows(tmp_path / "answers.jsonl", ANSWERS)
    assert invoke("init", "answers.jsonl", "evaluation").exit_code == 0
    content = yaml.safe_load((tmp_path / "evaluation" / "spec.yaml").read_text())
    assert content["systems"] == {"current": {"use": "file", "path": "../answers.jsonl"}}


def test_init_writes_a_spec_that_runs_as_it_is(tmp_path: Path) -> None:
    folder = tmp_path / "example"
    result = invoke("init", folder)
    assert result.exit_code == 0
    assert f"rageval-spec run {folder / 'spec.yaml'}" in result.stdout
    assert invoke("validate", folder / "spec.yaml").exit_code == 0
    assert invoke("run", folder / "spec.yaml", "-o", tmp_path / "out").exit_code == 0
    assert json.loads((folder / "spec.schema.json").read_text())["$schema"].startswith(
        "http://json-schema.org/draft-07"
    )


def test_init_writes_a_second_spec_for_answers_that_needs_no_model(tmp_path: Path) -> None:
    folder = tmp_path / "example"
    assert "answers.yaml" in invoke("init", folder).stdout
    assert invoke("validate", folder / "answers.yaml").stderr == ""
    result = invoke("run", folder / "answers.yaml", "-o", tmp_path / "out")
    assert result.exit_code == 0
    results = json.loads((tmp_path / "out" / "results.json").read_text())
    means = {row["metric"]: row["mean"] for row in results["aggregates"]}
    assert 0.8 < means["faithfulness"] < 1  # one answer says what no text supports, to show what that looks like
    assert len(results["gates"]) == 3
    assert "kept for ten years" in (folder / "data" / "answers.jsonl").read_text()


def test_init_overwrites_files_only_with_force(tmp_path: Path) -> None:
    (tmp_path / "spec.yaml").write_text("mine")
    result = invoke("init", tmp_path)
    assert result.exit_code == 2
    assert "already exists" in result.stderr
    assert (tmp_path / "spec.yaml").read_text() == "mine"
    assert not (tmp_path / "data").exists()
    assert invoke("init", tmp_path, "--force").exit_code == 0
    assert (tmp_path / "spec.yaml").read_text() != "mine"


def start(folder: Path, *arguments: Any, runs: bool = True) -> dict[str, Any]:
    """Write a spec; check that it is valid and, unless told otherwise, that it runs; return its content."""
    result = invoke("init", *arguments, folder)
    assert result.exit_code == 0, result.stderr
    path = folder / "spec.yaml"
    assert str(path) in result.stdout
    assert invoke("validate", path).stderr == ""
    assert not runs or invoke("run", path, "-q", "-o", folder / "out").exit_code == 0
    content: dict[str, Any] = yaml.safe_load(path.read_text())
    return content


def list_metrics(content: dict[str, Any]) -> list[str]:
    return [metric if isinstance(metric, str) else metric["use"] for metric in content["metrics"]]


def test_a_file_of_answers_gets_the_metrics_that_its_columns_allow(tmp_path: Path) -> None:
    content = start(tmp_path / "mine", "--answers", write_rows(tmp_path / "answers.jsonl", ANSWERS))
    assert content["datasets"] == {"golden": {"use": "jsonl", "path": "../answers.jsonl"}}
    assert content["systems"] == {"current": {"use": "file", "path": "../answers.jsonl"}}
    assert list_metrics(content) == [
        "token_f1", "rouge_l", "completeness", "faithfulness", "context_recall", "error_rate",
    ]  # fmt: skip
    assert content["slices"] == ["level"]
    text = (tmp_path / "mine" / "spec.yaml").read_text()
    assert "# - ndcg@10" in text and "# needs `context_ids` and `relevant_doc_ids`" in text
    results = json.loads((tmp_path / "mine" / "out" / "results.json").read_text())
    assert all(one["scored"] for one in results["aggregates"])


def test_a_file_with_rankings_times_and_answerability_gets_their_metrics(tmp_path: Path) -> None:
    more = {"context_ids": ["d1"], "relevant_doc_ids": ["d1"], "seconds": 0.5, "cost": 0.01, "answerable": True}
    rows = [{key: value for key, value in {**row, **more}.items() if key != "reference"} for row in ANSWERS]
    found = list_metrics(start(tmp_path / "mine", "--answers", write_rows(tmp_path / "answers.jsonl", rows)))
    assert {"faithfulness", "ndcg@10", "rr", "latency@p95", "cost", "answerability"} <= {*found}
    assert "token_f1" not in found


def test_answers_alone_get_what_needs_nothing_else(tmp_path: Path) -> None:
    rows = [{"question": "a?", "response": "b"}, {"question": "b?", "response": "c"}]
    assert list_metrics(start(tmp_path / "x", "--answers", write_rows(tmp_path / "a.jsonl", rows))) == ["error_rate"]


def test_questions_and_answers_can_be_in_two_files(tmp_path: Path) -> None:
    golden = write_rows(tmp_path / "golden.jsonl", ROWS)
    answers = write_rows(tmp_path / "answers.jsonl", [{"id": row["id"], "answer": "a king"} for row in ROWS])
    content = start(tmp_path / "mine", "--answers", answers, "--golden", golden)
    assert content["datasets"]["golden"]["path"] == "../golden.jsonl"
    assert content["systems"]["current"]["path"] == "../answers.jsonl"
    result = invoke("init", "--answers", answers, tmp_path / "other")
    assert result.exit_code == 2
    assert "no questions under a known name; its columns are 'id', 'answer'; name the column of" in result.stderr
    assert "or --golden FILE if the questions are elsewhere" in result.stderr


def test_columns_that_are_not_recognised_are_shown_with_the_mapping_to_pass(tmp_path: Path) -> None:
    path = tmp_path / "fragen.csv"
    path.write_text("Frage,Antwort des Bots,Gold\nWer?,Ada,Ada L.\nWo?,Rom,Rom\n")
    result = invoke("init", "--answers", path, tmp_path / "mine")
    assert result.exit_code == 2
    assert "its columns are 'Frage', 'Antwort des Bots', 'Gold'" in result.stderr
    assert "here: --column text=Frage --column reference=Gold --column answer=NAME" in result.stderr
    assert not (tmp_path / "mine").exists()
    columns = ("--column", "text=Frage", "--column", "answer=Antwort des Bots", "--column", "reference=Gold")
    content = start(tmp_path / "mine", "--answers", path, *columns)
    assert content["datasets"]["golden"]["columns"] == {"text": "Frage", "reference": "Gold"}
    assert content["systems"]["current"]["columns"] == {"answer": "Antwort des Bots", "question": "Frage"}
    assert list_metrics(content) == ["token_f1", "rouge_l", "completeness", "error_rate"]


RAGAS = [{"user_input": "a?", "reference": "b", "response": "b", "retrieved_contexts": ["b"]}] * 2
DEEPEVAL = [{"input": "a?", "expected_output": "b", "actual_output": "b", "retrieval_context": ["b"]}] * 2


@pytest.mark.parametrize(("tool", "rows"), [("ragas", RAGAS), ("deepeval", DEEPEVAL)])
def test_test_sets_of_other_tools_get_a_spec_with_the_names_of_their_metrics(
    tmp_path: Path, tool: str, rows: list[dict[str, Any]]
) -> None:
    content = start(tmp_path / "mine", "--from", tool, write_rows(tmp_path / "set.jsonl", rows))
    assert {"token_f1", "faithfulness"} <= {*list_metrics(content)}
    text = (tmp_path / "mine" / "spec.yaml").read_text()
    assert f"# What {tool} calls its metrics, and what they are called here:" in text
    assert "answer_relevancy\n" in text


def test_questions_without_answers_get_a_function_to_fill_in(tmp_path: Path) -> None:
    rows = [{"vars": {"question": row["question"]}, "reference": row["reference"]} for row in ROWS]
    content = start(tmp_path / "mine", "--from", "promptfoo", write_rows(tmp_path / "tests.jsonl", rows))
    assert content["systems"] == {"current": {"use": "python", "function": "answer:answer"}}
    assert "Replace the placeholder" in (tmp_path / "mine" / "answer.py").read_text()
    assert "token_f1" in list_metrics(content)


def test_a_beir_folder_gets_retrievers_and_the_split_that_it_has(tmp_path: Path) -> None:
    data = write_collection(tmp_path)
    content = start(tmp_path / "mine", "--from", "beir", data)
    assert content["datasets"] == {"golden": {"use": "beir", "path": "../data"}}
    assert [*content["systems"]] == ["bm25"]
    assert list_metrics(content) == ["ndcg@10", "recall@10", "precision@5", "rr"]
    (data / "qrels" / "test.tsv").rename(data / "qrels" / "dev.tsv")
    assert start(tmp_path / "dev", "--from", "beir", data)["datasets"]["golden"]["split"] == "dev"


def test_an_existing_spec_is_kept_without_force(tmp_path: Path) -> None:
    path = write_rows(tmp_path / "answers.jsonl", ANSWERS)
    (tmp_path / "spec.yaml").write_text("mine")
    assert "already exists" in invoke("init", "--answers", path, tmp_path).stderr
    assert (tmp_path / "spec.yaml").read_text() == "mine"
    assert invoke("init", "--answers", path, tmp_path, "--force").exit_code == 0


LAYOUTS = {
    "question,answer": ("question,answer", None, "answer"),
    "an id": ("id,question,answer", None, "answer"),
    "a rating": ("question,answer,rating", None, "answer"),
    "sources": ("question,answer,sources", None, "answer"),
    "latency": ("question,answer,latency", "answer", "answer"),
    "tokens": ("question,answer,input_tokens", "answer", "answer"),
    "a trace": ("question,answer,trace", "answer", "answer"),
    "contexts": ("question,answer,contexts", "answer", "answer"),
    "completions": ("prompt,completion", "completion", "completion"),
    "outputs": ("input,output", "output", "output"),
    "predictions": ("question,prediction", "prediction", "prediction"),
    "generated": ("question,generated_answer", "generated_answer", "generated_answer"),
}
"""The columns, and which of them `init FILE` and `init --answers FILE` take for a system's answers."""


def write_layout(path: Path, header: str) -> Path:
    """A file with these columns in the format of its suffix."""
    asked, numbers = ("question", "prompt", "input"), ("id", "latency", "input_tokens", "rating")
    rows = [
        {name: f"What is {row}?" if name in asked else row if name in numbers else f"{name} {row}"
         for name in header.split(",")}
        for row in range(1, 5)
    ]  # fmt: skip
    if path.suffix == ".jsonl":
        return write_rows(path, rows)
    if path.suffix == ".csv":
        pl.DataFrame(rows).write_csv(path)
        return path
    pl.DataFrame(rows).write_excel(path)
    return path


@pytest.mark.parametrize("suffix", [".csv", ".jsonl", ".xlsx"])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_answers_of_a_system_are_never_gold_answers(tmp_path: Path, layout: str, suffix: str) -> None:
    header, _, said = LAYOUTS[layout]
    path = write_layout(tmp_path / f"rows{suffix}", header)
    content = start(tmp_path / "mine", "--answers", path, runs=suffix == ".csv")
    assert content["systems"]["current"]["use"] == "file"
    assert not {"token_f1", "rouge_l", "completeness", "exact_match"} & {*list_metrics(content)}
    done = invoke("validate", tmp_path / "mine" / "spec.yaml")
    assert done.exit_code == 0, done.output
    assert f"answer: {said}" in done.output.partition("systems.current")[2]


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_file_of_questions_has_gold_answers_or_those_of_a_system(tmp_path: Path, layout: str) -> None:
    header, said, _ = LAYOUTS[layout]
    content = start(tmp_path / "mine", write_layout(tmp_path / "rows.csv", header))
    assert (content["systems"]["current"]["use"] == "file") == (said is not None)
    assert ("token_f1" in list_metrics(content)) == (said is None)
    assert invoke("validate", tmp_path / "mine" / "spec.yaml").exit_code == 0


@pytest.mark.parametrize(
    ("header", "gold", "advice"),
    [
        ("Frage,Antwort", "--column text=Frage --column reference=Antwort", "--column text=Frage --column answer=NAME"),
        ("Frage,Musterantwort,Antwort", "--column text=Frage", "--column text=Frage --column answer=NAME"),
        ("Frage,Bot-Antwort", "--column text=Frage", "--column text=Frage --column answer=NAME"),
        ("question,gold,answer", "--column reference=gold or --column reference=answer", None),
    ],
)
def test_advice_never_turns_answers_into_references(tmp_path: Path, header: str, gold: str, advice: str | None) -> None:
    path = write_layout(tmp_path / "rows.csv", header)
    for told, arguments in ((gold, (path,)), (advice or gold, ("--answers", path))):
        done = invoke("init", *arguments, tmp_path / "mine")
        assert done.exit_code == 2
        assert done.stderr.strip().endswith(f"here: {told}")


def test_rankings_beside_judgements_are_systems_of_their_names(tmp_path: Path) -> None:
    (tmp_path / "qrels.txt").write_text("q1 0 d1 1\nq2 0 d2 1\n")
    for name in ("bm25", "dense.v1", "dense.v2", "a:b"):
        (tmp_path / f"{name}.run").write_text("q1 Q0 d1 1 0.9 t\nq2 Q0 d3 1 0.9 t\n")
    result = invoke("init", "--from", "trec", tmp_path / "qrels.txt", tmp_path / "out")
    assert result.exit_code == 0, result.output
    spec = yaml.safe_load((tmp_path / "out" / "spec.yaml").read_text())
    assert spec["datasets"] == {"golden": {"use": "trec", "qrels": "../qrels.txt"}}
    assert {name: block["path"] for name, block in spec["systems"].items()} == {
        "a-b": "../a:b.run",
        "bm25": "../bm25.run",
        "dense.v1": "../dense.v1.run",
        "dense.v2": "../dense.v2.run",
    }
    result = invoke("run", tmp_path / "out" / "spec.yaml", "-o", tmp_path / "results")
    assert result.exit_code == 0, result.output
    assert "rr           0.500" in " ".join(result.stdout.split(" "))


def test_traces_are_questions_and_answers(tmp_path: Path) -> None:
    (tmp_path / "traces.otlp").write_bytes(encode_spans([*record_trace(1), *record_trace(2)]))
    result = invoke("init", "--from", "otel", tmp_path / "traces.otlp", tmp_path)
    assert result.exit_code == 0, result.output
    spec = yaml.safe_load((tmp_path / "spec.yaml").read_text())
    assert spec["systems"]["current"] == spec["datasets"]["golden"] == {"use": "otel", "path": "traces.otlp"}
    assert "2 questions" in (tmp_path / "spec.yaml").read_text()
    result = invoke("run", tmp_path / "spec.yaml", "-o", tmp_path / "results")
    assert result.exit_code == 0, result.output


@pytest.mark.parametrize("tool", ["trec", "otel"])
def test_recorded_files_that_cannot_be_read_are_named(tmp_path: Path, tool: str) -> None:
    (tmp_path / "bad.txt").write_bytes(b"\xff\xfe\x00 what?\n")
    (tmp_path / "a.run").write_text("q1 Q0 d1 1 0.9 t\n")
    result = invoke("init", "--from", tool, tmp_path / "bad.txt", tmp_path / "out")
    assert result.exit_code == 2, result.output
    assert "bad.txt" in result.stderr
    assert not (tmp_path / "out").exists()


def test_a_folder_of_judgements_or_traces_names_the_file_to_write(tmp_path: Path) -> None:
    for tool, file in (("trec", "qrels.tsv"), ("otel", "traces.jsonl")):
        result = invoke("init", "--from", tool, tmp_path, tmp_path / "spec")
        assert (result.exit_code, f"is a folder; name the file in it, such as {tmp_path / file}" in result.stderr) == (
            2,
            True,
        )


def test_a_golden_set_without_answers_is_to_be_written_alone(tmp_path: Path) -> None:
    path = tmp_path / "golden.csv"
    path.write_text("question,reference\nWho?,Ada\n", encoding="utf-8")
    result = invoke("init", "--answers", path, tmp_path)
    assert (result.exit_code, f"write a spec for the questions alone: rageval-spec init {path}" in result.stderr) == (
        2,
        True,
    )


@pytest.mark.parametrize(
    ("typed", "message"),
    [
        ("qrels.txt", "there is no file 'qrels.txt'; did you mean 'qrels.tsv'?"),
        ("trace.jsonl", "there is no file 'trace.jsonl'; did you mean 'traces.jsonl'?"),
        ("golden", "there is no file or folder 'golden'; did you mean 'golden.csv'?"),
        ("golden.cvs", "there is no file 'golden.cvs'; did you mean 'golden.csv'?"),
        ("bn25.run", "there is no file 'bn25.run'; did you mean 'bm25.run'?"),
    ],
)
def test_the_file_that_a_wrong_name_may_mean_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, typed: str, message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("qrels.tsv", "traces.jsonl", "golden.csv", "bm25.run"):
        (tmp_path / name).touch()
    result = invoke("init", typed)
    assert (result.exit_code, message in result.stderr) == (2, True), result.stderr
    assert len([*tmp_path.iterdir()]) == 4


def test_rankings_are_read_with_the_judgements_beside_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "bm25.run").write_text("q1 Q0 d1 1 0.9 t\n")
    (tmp_path / "qrels").mkdir()  # a folder is not a file of judgements
    result = invoke("init", "bm25.run")
    assert result.exit_code == 2
    assert "bm25.run has rankings; put the judgements beside it, and name them: " in result.stderr
    assert result.stderr.strip().endswith("rageval-spec init --from trec qrels.tsv")
    (tmp_path / "my qrels.txt").write_text("q1 0 d1 1\n")
    result = invoke("init", "bm25.run", "out")
    assert result.exit_code == 0, result.output
    assert yaml.safe_load((tmp_path / "out" / "spec.yaml").read_text())["datasets"]["golden"]["qrels"].endswith("s.txt")
    (tmp_path / "qrels.tsv").write_text("q1\t0\td1\t1\n")
    result = invoke("init", "bm25.run")
    assert result.exit_code == 2
    assert "name one of the judgements beside it: rageval-spec init --from trec 'my qrels.txt'" in result.stderr
