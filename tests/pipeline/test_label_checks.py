"""Labels that cannot correct a metric are told before anything runs, with the place and what to write."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from rageval_spec.data.labels import Label
from rageval_spec.pipeline.label_checks import choose_labels
from tests.command_line import invoke
from tests.pipeline.labelling import write


def test_a_metric_takes_the_labels_that_name_it_its_word_or_nothing() -> None:
    labels = [Label("q1", metric, 1.0, "ann") for metric in ("strict", "faithfulness", "", "relevance")]
    assert [label.metric for label in choose_labels(labels, "strict", "faithfulness")] == ["strict", ""]
    assert [label.metric for label in choose_labels(labels, "lenient", "faithfulness")] == ["faithfulness", ""]


def block(**keys: Any) -> list[dict[str, Any]]:
    return [{"use": "token_f1", "labels": "people", **keys}]


@pytest.mark.parametrize(
    ("changes", "message", "hint"),
    [
        ({"metrics": block(labels="person")}, "the spec has no source of labels 'person'", "there is people"),
        (
            {"metrics": block(correction="ppl")},
            "expected ppi or rogan_gladen, found the text 'ppl'",
            "did you mean 'ppi'",
        ),
        (
            {"metrics": [*block(), {"use": "ndcg", "cutoff": 3, "labels": "people"}]},
            "ndcg is not a metric of answers",
            "remove 'labels:'",
        ),
        (
            {"metrics": [{"use": "latency", "percentile": 95, "labels": "people"}]},
            "latency@p95 is the p95 of its values",
            "remove",
        ),
        ({"metrics": [{"use": "latency", "labels": "people"}]}, "latency has no highest value", "remove 'labels:'"),
        (
            {"stopping": {"batch": 10}, "gates": [{"metric": "token_f1", "min": 0.1, "decide": "certain"}]},
            "'stopping' decides by the judge's values alone",
            "remove 'labels:' or 'stopping:'",
        ),
        (
            {"criterion": "relevance"},
            "no label of 'people' is about token_f1; they are about relevance",
            "name the metric as they do: 'as: relevance'",
        ),
        (
            {"labelled": 4},
            "'people' has labels of only 8 answers for token_f1; a corrected mean needs at least 10",
            "label more answers",
        ),
        ({"columns": "query_id,value"}, "the same annotator judged q0 already", ""),
        (
            {"columns": "query_id,metric,value,answer_digest"},
            "does not say its system, and there are several: a, b",
            "add a column 'system'",
        ),
        (
            {"value": "4"},
            "the label 4 lies outside the scale from 0 to 1; name the scale, worst first: scale: [1, 5]",
            "",
        ),
        ({"value": "good"}, "'good' is not a number", ""),
        ({"columns": "query_id,system,value,claim"}, "all labels of 'people' are of claims", "label whole answers"),
    ],
)
def test_what_cannot_be_corrected_shows_before_anything_runs(
    tmp_path: Path, changes: dict[str, Any], message: str, hint: str
) -> None:
    done = invoke("validate", write(tmp_path, **changes))
    assert done.exit_code == 2, done.output
    assert message in done.output and hint in done.output
    assert "spec.yaml:" in done.output and "^" in done.output
