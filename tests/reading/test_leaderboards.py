"""Leaderboards in the forms of trec_eval, ir_measures and AutoJudge."""

from __future__ import annotations

from pathlib import Path

import pytest

from rageval_spec.errors import DataError
from rageval_spec.reading.leaderboards import read_leaderboard

ROWS = [
    ("a", "t1", 0.5),
    ("a", "t2", 1.0),
    ("a", "all", 0.75),
    ("b", "t1", 0.25),
    ("b", "t2", 0.5),
    ("b", "all", 0.375),
]
FORMS = {
    "ir_measures": "\n".join(f"{run}\t{topic}\tnDCG@10\t{value}" for run, topic, value in ROWS),
    "tot": "\n".join(f"{run} nDCG@10 {topic} {value}" for run, topic, value in ROWS),
    "rag4reports": "\n".join(f"{topic}\t{run}\tnDCG@10\t{value}" for run, topic, value in ROWS),
    "ranking": "\n".join(f"{topic}\tQ0\t{run}\t0\t{value}\tnDCG@10" for run, topic, value in ROWS),
    "jsonl": "\n".join(
        f'{{"run_id": "{run}", "topic_id": "{topic}", "measure": "nDCG@10", "value": {value}}}'
        for run, topic, value in ROWS
    ),
    "csv": "run,topic,measure,value\n" + "\n".join(f"{run},{topic},nDCG@10,{value}" for run, topic, value in ROWS),
    "other order": "score query_id metric system\n"
    + "\n".join(f"{value} {topic} nDCG@10 {run}" for run, topic, value in ROWS),
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("ending", ["", "\n", "\n\n"])
def test_all_forms_say_the_same(form: str, ending: str, tmp_path: Path) -> None:
    path = tmp_path / "judge.tsv"
    path.write_text(FORMS[form] + ending)
    found = read_leaderboard(path)
    assert found.name == "judge" and found.measures == ["nDCG@10"]
    assert found.values == {"nDCG@10": {"a": {"t1": 0.5, "t2": 1.0}, "b": {"t1": 0.25, "t2": 0.5}}}
    assert found.rank("nDCG@10") == {"a": 0.75, "b": 0.375}


def test_a_folder_has_a_file_for_each_system(tmp_path: Path) -> None:
    """Runs of one group often have the same tag, so that the file names the system."""
    (tmp_path / "first.run").write_text("runid\tall\ttag\nndcg\tt1\t0.5\nndcg\tall\t0.5\n")
    (tmp_path / "second.run").write_text("runid\tall\ttag\nndcg\tt1\t0.25\nndcg\tall\t0.25\n")
    assert read_leaderboard(tmp_path).rank("ndcg") == {"first.run": 0.5, "second.run": 0.25}
    alone = read_leaderboard(tmp_path / "first.run")
    assert alone.rank("ndcg") == {"tag": 0.5}


def test_the_other_order_of_three_columns(tmp_path: Path) -> None:
    path = tmp_path / "bm25"
    path.write_text("t1\tRR\t1.0\nt2\tRR\t0.5\nall\tRR\t0.75\n")
    assert read_leaderboard(path).values == {"RR": {"bm25": {"t1": 1.0, "t2": 0.5}}}


def test_means_come_from_topics_if_none_are_stated(tmp_path: Path) -> None:
    path = tmp_path / "judge.csv"
    path.write_text("run,topic,measure,value\na,t1,m,0.5\na,t2,m,1\n")
    assert read_leaderboard(path).rank("m") == {"a": 0.75}


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "is empty"),
        ("\n \n", "is empty; write a first line with the columns' names"),
        ("a t1 m 0.5\na t2 m 1\n", "does not show which column is the topic"),
        ("a t1 m\n", "does not show which column is the topic"),
        ("one two\n", ":1: 2 columns are not a leaderboard's"),
        ("run topic measure value\na t1 m 0.5\na t2 m\n", ":3: 3 columns, and the rows before have 4"),
        ("run topic measure value\na t1 m high\n", ":2: the value 'high' is not a number"),
        ("run topic measure value\na t1 m nan\n", ":2: the value 'nan' is not a number"),
        ("run topic measure value\na t1 m 1\na t1 m 1\n", ":3: m of 'a' for topic 't1' is there twice"),
        ("run topic measure value\n", "there is no row"),
        ('{"run_id": "a"}\n', ":1: there is no topic; write it as 'topic_id'"),
        ('{"run_id": "a"\n', ":1: this is not JSON"),
        ("{}\n[]\n", ":1: there is no system"),
    ],
)
def test_what_is_wrong_has_its_place(text: str, says: str, tmp_path: Path) -> None:
    path = tmp_path / "judge.tsv"
    path.write_text(text)
    with pytest.raises(DataError, match=r"judge\.tsv") as raised:
        read_leaderboard(path)
    assert says in str(raised.value)


def test_an_empty_folder(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="the folder has no files"):
        read_leaderboard(tmp_path)
