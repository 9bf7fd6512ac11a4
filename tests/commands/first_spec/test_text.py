from __future__ import annotations

import yaml

from rageval_spec.commands.first_spec.inspection import Findings
from rageval_spec.commands.first_spec.text import is_retrieval, write_text

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
    assert "1,200 queries" in text and "bm25:" in text and "token_f1" not in text
