"""People's grades of pairs: TREC qrels and rows, and what is refused with its place."""

from __future__ import annotations

from pathlib import Path

import pytest

from rageval_spec.errors import DataError
from rageval_spec.labels.qrels import QrelsLabels, QrelsLabelsNode
from rageval_spec.plugin import Context


def make(folder: Path, name: str, text: str) -> QrelsLabels:
    (folder / name).write_text(text)
    return QrelsLabels(QrelsLabelsNode(use="qrels", path=name), Context("people", folder))


def test_trec_qrels_have_a_grade_for_each_pair(tmp_path: Path) -> None:
    labels = make(tmp_path, "people.txt", "q1 0 d1 2\nq1 0 d2 0\n").read()
    assert [(one.query_id, one.document, one.value, one.probability) for one in labels] == [
        ("q1", "d1", 2.0, None),
        ("q1", "d2", 0.0, None),
    ]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("l.csv", "query_id,doc_id,relevance,probability,annotator\nq1,d1,2,0.25,ann\n"),
        ("l.jsonl", '{"query_id": "q1", "doc_id": "d1", "relevance": 2, "probability": 0.25, "annotator": "ann"}\n'),
        (
            "l.jsonl",
            '{"query_id": "q1", "doc_id": "d1", "relevance": 2, "probability": 0.25, "annotator": "ann", '
            '"judged_by": "people"}\n',
        ),
        ("l.tsv", "query-id\tcorpus-id\tscore\tprobability\tannotator\nq1\td1\t2\t0.25\tann\n"),
    ],
)
def test_rows_can_say_more(tmp_path: Path, name: str, text: str) -> None:
    (label,) = make(tmp_path, name, text).read()
    found = (label.query_id, label.document, label.value, label.probability, label.annotator)
    assert found == ("q1", "d1", 2.0, 0.25, "ann")


def test_two_people_can_judge_a_pair(tmp_path: Path) -> None:
    text = "query_id,doc_id,relevance,annotator\nq1,d1,2,ann\nq1,d1,1,bo\nq1,d2,1,ann\n"
    assert len(make(tmp_path, "l.csv", text).read()) == 3


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("l.csv", "query_id,relevance\nq1,1\n", "l.csv:2: a label needs a 'doc_id' and a grade that is a whole number"),
        ("l.csv", "query_id,doc_id,relevance\nq1,d1,1\nq1,d2,0.5\n", "l.csv:3: a label needs a 'doc_id' and a grade"),
        ("l.csv", "query_id,doc_id,relevance\nq1,d1,good\n", "l.csv:2: a label needs a 'doc_id' and a grade"),
        ("l.csv", "query_id,doc_id,relevance\nq1,d1,nan\n", "l.csv:2: the value is nan"),
        (
            "l.csv",
            "query_id,doc_id,relevance\nq1,d1,1\nq1,d1,0\n",
            "l.csv:3: the same annotator judged q1 on d1 already",
        ),
        ("l.csv", "query_id,doc_id,relevance\nq1,d1,1\nq1,d2,yes\n", "l.csv:3: a label needs a 'doc_id' and a grade"),
        ("l.csv", "query_id,doc_id,relevance,probability\nq1,d1,1,0.5\nq1,d2,0,\n", "l.csv:3: the label has no probab"),
        ("l.csv", "query_id,doc_id,relevance,probability\nq1,d1,1,0\n", "l.csv:2: the probability is '0'"),
        ("l.csv", "query_id,doc_id,relevance\n,d1,1\n", "l.csv:2: the label has a value and no query_id"),
        ("l.csv", "query_id,doc_id,relevance\n", "a header and no rows"),
        ("l.csv", "", "l.csv"),
        ("people.txt", "", "people.txt"),
        ("people.txt", "q1 0 d1\n", "people.txt:1"),
        (
            "all.txt",
            "q1 people d1 1\nq1 strict d2 1\n",
            "all.txt: 1 grade is of a judge, 'strict', and labels are people's",
        ),
        (
            "all.jsonl",
            '{"query_id": "q1", "doc_id": "d1", "relevance": 2, "judged_by": "strict"}\n' * 2,
            "all.jsonl: 2 grades are of a judge, 'strict'",
        ),
        ("people.txt", "q1 0 d1 1\nq1 0 d1 2\n", "people.txt:2"),
    ],
)
def test_what_is_no_label_is_refused_with_its_place(tmp_path: Path, name: str, text: str, message: str) -> None:
    with pytest.raises(DataError) as raised:
        make(tmp_path, name, text).read()
    assert message in str(raised.value)
