from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl

from rageval_spec.data.findings import stream_findings
from rageval_spec.pipeline.redaction import redact_samples, redact_values
from rageval_spec.runner import Options, run
from tests.answered_evaluation import bridges
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
