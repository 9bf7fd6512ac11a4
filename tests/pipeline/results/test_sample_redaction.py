from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from rageval_spec.data.findings import stream_findings
from rageval_spec.pipeline.results.sample_redaction import generalize, redact_samples, redact_values
from rageval_spec.runner import Options, run
from rageval_spec.spec.blocks.spec_node import RedactedColumn
from tests.answered_evaluation import bridges
from tests.command_line import invoke
from tests.tiny import write_spec


def test_redacted_columns_are_empty_and_the_others_stay() -> None:
    (block,) = redact_samples(bridges().samples.iter_slices(10), ["answer", "reference"])
    assert block["answer"].null_count() == block.height
    assert block["references"].to_list() == [[]] * block.height
    assert block["question"].null_count() == 0
    assert block.schema == bridges().samples.schema


def test_details_keep_verdicts_scores_and_places_and_no_text_of_the_sample() -> None:
    redacted = redact_values(bridges().values, ["answer"])
    (details,) = redacted["details"].drop_nulls().to_list()
    assert json.loads(details)["claims"][1] == {
        "start": 26, "end": 47, "verdict": "contradicted", "score": 0.0, "source": 1,
    }  # fmt: skip
    found = pl.concat(stream_findings(redacted, ["faithfulness"], iter([])))
    assert found.select("claim", "text", "verdict", "start").rows() == [
        (0, None, "supported", 0), (1, None, "contradicted", 26),
    ]  # fmt: skip


def test_reasons_of_failures_are_kept_unless_errors_are_redacted() -> None:
    def reasons(*columns: Any) -> list[str]:
        return redact_values(bridges().values, columns)["reason"].drop_nulls().to_list()

    assert reasons("answer") == ["there is no answer", "HTTP 500"]
    assert reasons("error") == ["there is no answer"]


SECRETS = ("Rosebud", "Xanadu", "Kane")


def evaluate(folder: Path, **sections: Any) -> dict[str, bytes]:
    """Everything that is written about a question, an answer and a context with a word each that nobody may see."""
    row = {"query_id": "q1", "question": "What is Rosebud?", "reference": "A sled.", "owner": "Kane"}
    (folder / "golden.jsonl").write_text(json.dumps(row))
    answer = {"query_id": "q1", "answer": "It lies in Xanadu.", "contexts": ["The sled burns in Xanadu."]}
    (folder / "answers.jsonl").write_text(json.dumps(answer))
    path = write_spec(
        folder,
        datasets={"faq": {"use": "jsonl", "path": "golden.jsonl"}},
        systems={"bot": {"use": "file", "path": "answers.jsonl"}},
        metrics=[{"use": "faithfulness", "judge": "overlap"}, "exact_match"],
        reports=["terminal", "json", "parquet", "csv", "markdown", {"use": "samples", "path": "q.jsonl"}],
        **sections,
    )
    outcome = run(path, Options(output=folder / "out", save_as="main"))
    assert outcome.lost_reports == ()
    written = {path.name: path.read_bytes() for path in (folder / "out").rglob("*") if path.is_file()}
    for name in (name for name in written if name.endswith(".parquet")):
        written[name] = pl.read_parquet(folder / "out" / name).write_ndjson().encode()
    history = folder / ".rageval" / "history" / "main"
    saved = {f"saved {path.name}": pl.read_parquet(path).write_ndjson().encode() for path in history.glob("*.parquet")}
    return {**written, **saved, "terminal": b"".join(outcome.shown)}


def test_redacted_texts_are_in_no_file_and_no_report(tmp_path: Path) -> None:
    (tmp_path / "open").mkdir()
    (tmp_path / "closed").mkdir()
    shown = evaluate(tmp_path / "open")
    told = {secret for secret in SECRETS if any(secret.encode() in content for content in shown.values())}
    assert told == {*SECRETS}
    hidden = evaluate(tmp_path / "closed", redact=["question", "answer", "contexts", "columns"])
    assert [(name, secret) for name, text in hidden.items() for secret in SECRETS if secret.encode() in text] == []
    assert b"A sled." in hidden["samples.parquet"]


def test_samples_can_leave_out_the_texts_of_documents_or_everything(tmp_path: Path) -> None:
    for kept in ("texts", "none"):
        (tmp_path / kept).mkdir()
    texts = evaluate(tmp_path / "texts", samples="texts")
    assert b"It lies in Xanadu." in texts["samples.parquet"]
    assert texts["documents.parquet"] == b""
    none = evaluate(tmp_path / "none", samples="none")
    assert not {"samples.parquet", "documents.parquet", "findings.parquet"} & none.keys()
    assert b"exact_match" in none["q.jsonl"]


CHECKS = """
def broken(sample):
    raise ValueError("cannot score " + str(sample.answer))
"""


def evaluate_errors(folder: Path, redact: list[str]) -> str:
    """Every report and table of an evaluation whose errors and reasons quote the data."""
    (folder / "notes.py").write_text(CHECKS)
    ids = ("q1", "q2", "q3")
    rows = [{"query_id": name, "question": "Where?", "expected": f"Kane of {name}"} for name in ids]
    (folder / "golden.jsonl").write_text("\n".join(map(json.dumps, rows)))
    answers = [{"query_id": name, "answer": "It lies in Xanadu.", "contexts": ["No."]} for name in ids[:2]]
    lines = [*answers, {"query_id": "q3", "error": "HTTP 400: Rosebud is not allowed"}]
    (folder / "answers.jsonl").write_text("\n".join(map(json.dumps, lines)))
    path = write_spec(
        folder,
        datasets={"faq": {"use": "jsonl", "path": "golden.jsonl"}},
        systems={"bot": {"use": "file", "path": "answers.jsonl"}},
        metrics=[
            {"use": "contains", "column": "expected"},
            "is_json",
            {"use": "python", "function": "notes:broken", "as": "broken"},
        ],
        gates=[{"metric": "is_json", "min": 0.5}],
        reports=["terminal", "markdown", "junit", "csv", "codequality", {"use": "samples", "path": "q.jsonl"}],
        redact=redact,
    )
    outcome = run(path, Options(output=folder / "out"))
    files = [path for path in (folder / "out").rglob("*") if path.is_file()]
    tables = [pl.read_parquet(path).write_ndjson() for path in files if path.suffix == ".parquet"]
    texts = [path.read_text() for path in files if path.suffix != ".parquet"]
    evaluation = outcome.evaluation
    return "".join([*tables, *texts, b"".join(outcome.shown).decode(), repr(evaluation.notes), *evaluation.failures])


@pytest.mark.parametrize(
    ("redact", "hidden"),
    [
        (["answer"], {"Xanadu", "Rosebud"}),
        (["columns"], {"Kane"}),
        (["error"], {"Rosebud"}),
        (["answer", "columns", "error"], {"Xanadu", "Kane", "Rosebud"}),
    ],
)
def test_notes_failures_and_reasons_do_not_quote_what_is_redacted(
    tmp_path: Path, redact: list[str], hidden: set[str]
) -> None:
    told = evaluate_errors(tmp_path, redact)
    assert {secret for secret in SECRETS if secret not in told} == hidden


def test_an_error_of_a_system_keeps_only_what_cannot_quote_the_question() -> None:
    samples = bridges().samples.with_columns(error=pl.lit("app raised ValueError: no idea about 'Rosebud'"))
    cases: list[tuple[RedactedColumn, str]] = [("question", "app raised ValueError"), ("columns", samples["error"][0])]
    for column, kept in cases:
        [block] = redact_samples(iter([samples]), [column])
        assert block["error"].to_list() == [kept] * samples.height
        assert block.schema == samples.schema


FAILING = """
def app(question):
    if question == "Who?":
        return "he"
    raise ValueError("no idea about " + question)
"""


@pytest.mark.parametrize("questions", [["What is Rosebud?"], ["Who?", "What is Rosebud?"]])
@pytest.mark.parametrize("redact", [[], ["question"]])
def test_what_a_run_prints_about_failures_does_not_quote_what_is_redacted(
    tmp_path: Path, questions: list[str], redact: list[str]
) -> None:
    (tmp_path / "failing_app.py").write_text(FAILING)
    rows = [{"query_id": f"q{number}", "question": question} for number, question in enumerate(questions)]
    (tmp_path / "golden.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    path = write_spec(
        tmp_path,
        datasets={"faq": {"use": "jsonl", "path": "golden.jsonl"}},
        systems={"app": {"use": "python", "function": "failing_app:app"}},
        metrics=["is_json"],
        reports=["terminal", "markdown", "csv"],
        redact=redact,
    )
    result = invoke("run", path, "-o", tmp_path / "out")
    assert "got no answer" in result.output or "none of 1 query got an answer" in result.stdout
    samples = pl.read_parquet(tmp_path / "out" / "samples.parquet")
    assert samples["error"].drop_nulls().to_list()[0].startswith("failing_app:app raised ValueError")
    files = [path.read_text() for path in (tmp_path / "out").iterdir() if path.suffix != ".parquet"]
    told = "".join([result.output, *files, samples.write_ndjson()])
    assert ("Rosebud" not in told) is bool(redact)


@pytest.mark.parametrize(
    ("reason", "general"),
    [
        ("checks:cites raised ValueError: no source in 'x'", "checks:cites raised ValueError"),
        ("the answer lacks 'Kane'", "the answer lacks"),
        ("the judge's reply is empty", "the judge's reply is empty"),
        ("HTTP 500", "HTTP 500"),
    ],
)
def test_a_general_reason_ends_where_it_quotes(reason: str, general: str) -> None:
    assert generalize(reason) == general
