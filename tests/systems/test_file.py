from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rageval_spec.data.tables import Collection
from rageval_spec.errors import DataError, UsageError
from tests.plugins import COMPRESSIONS, build_system, run_of, write

ROWS = [("q1", "d1", 2.0), ("q1", "d2", 1.5), ("q2", "d1", -1.0)]
CONTENTS = {
    "run.txt": "q1 Q0 d1 1 2.0 tag\nq1 Q0 d2 2 1.5 tag\nq2 Q0 d1 1 -1.0 tag\n",
    "run.json": '{"q1": {"d1": 2, "d2": 1.5}, "q2": {"d1": -1.0}}',
    "run.jsonl": "".join(json.dumps(dict(zip(("qid", "docid", "score"), row, strict=True))) + "\n" for row in ROWS),
    "run.csv": "query_id,doc_id,rank,score\nq1,d1,1,2.0\nq1,d2,2,1.5\nq2,d1,1,-1.0\n",
    "run.tsv": "query-id\tcorpus-id\tscore\nq1\td1\t2.0\nq1\td2\t1.5\nq2\td1\t-1.0\n",
}


def retrieve(folder: Path, path: str | dict[str, str], **keys: Any) -> pl.DataFrame:
    run = run_of(build_system("file", folder, path=path, **keys), Collection("golden"))
    assert dict(run.schema) == {"query_id": pl.String, "doc_id": pl.String, "score": pl.Float64}
    return run


@pytest.mark.parametrize("compression", COMPRESSIONS)
@pytest.mark.parametrize("name", CONTENTS)
def test_the_name_says_the_format(tmp_path: Path, name: str, compression: str) -> None:
    write(tmp_path / name, CONTENTS[name], compression)
    assert retrieve(tmp_path, name + compression).rows() == ROWS


def test_parquet(tmp_path: Path) -> None:
    frame = pl.DataFrame(
        ROWS, schema={"query_id": pl.Categorical, "doc_id": pl.String, "score": pl.Float32}, orient="row"
    )
    frame.write_parquet(tmp_path / "run.parquet")
    assert retrieve(tmp_path, "run.parquet").rows() == ROWS


def test_format_overrules_the_name(tmp_path: Path) -> None:
    write(tmp_path / "run.json", CONTENTS["run.txt"])
    assert retrieve(tmp_path, "run.json", format="trec").rows() == ROWS


def test_columns_map_other_names(tmp_path: Path) -> None:
    write(tmp_path / "run.csv", "q,d,s,score\nq1,d1,0.5,7\n")
    run = retrieve(tmp_path, "run.csv", columns={"query_id": "q", "doc_id": "d", "score": "s"})
    assert run.rows() == [("q1", "d1", 0.5)]


@given(
    rows=st.lists(
        st.tuples(st.sampled_from(["q1", "q2", "q3"]), st.sampled_from("abcd"), st.sampled_from([0.0, 1.0, 2.0])),
        min_size=1,
    )
)
def test_queries_come_in_groups_best_first_and_ties_in_the_order_of_the_file(
    rows: list[tuple[str, str, float]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("run")
    write(folder / "run.csv", "query_id,doc_id,score\n" + "".join(f"{q},{d},{s}\n" for q, d, s in rows))
    order = list(dict.fromkeys(query_id for query_id, _, _ in rows))
    assert retrieve(folder, "run.csv").rows() == sorted(rows, key=lambda row: (order.index(row[0]), -row[2]))


def test_each_dataset_can_have_its_own_file(tmp_path: Path) -> None:
    write(tmp_path / "a.json", CONTENTS["run.json"])
    system = build_system("file", tmp_path, path={"golden": "a.json", "other": "b.json"})
    assert [(file.path, file.key) for file in system.inputs()] == [
        (tmp_path / "a.json", ("path", "golden")),
        (tmp_path / "b.json", ("path", "other")),
    ]
    assert [file.path.name for file in system.inputs_for("other")] == ["b.json"]
    assert run_of(system, Collection("golden")).rows() == ROWS
    with pytest.raises(
        UsageError, match=r"systems\.tested\.path: no file for the dataset 'third', only for 'golden', '"
    ):
        system.inputs_for("third")


def test_one_file_serves_every_dataset(tmp_path: Path) -> None:
    system = build_system("file", tmp_path, path="run.json")
    assert [(file.path, file.key) for file in system.inputs_for("any")] == [(tmp_path / "run.json", ("path",))]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("run.txt", "q1 Q0 d1 1 2.0 tag\nq1 Q0 d2 2 1.5\n", ":2"),
        (
            "run.csv",
            "query_id,doc_id,score\nq1,d1,1\nq1,d2,nan\n",
            ":3: the score of document 'd2' for query 'q1' must",
        ),
        ("run.csv", "query_id,doc_id,score\nq1,d1,1\nq1,d2,\n", ":3: the score of document 'd2' for query 'q1' must"),
        ("run.csv", "query_id,doc_id,score\nq1,d1,1\n,d2,1\n", ":3: no query_id"),
        ("run.csv", "query_id,doc_id\nq1,d1\n", ":1: no column 'score'; the columns are 'query_id', 'doc_id'"),
        (
            "run.jsonl",
            '{"qid": "q1", "docid": "d1", "score": "high"}\n',
            ":1: the score of document 'd1' for query 'q1'",
        ),
        ("run.jsonl", '{"qid": "q1", "docid": "d1", "score": true}\n', ":1: the score of document 'd1' for query 'q1'"),
        ("run.json", '{"q1": {"d1": 1,}}', ":1:"),
        ("run.json", '{"q1":\n{"d1": 1, "d1": 2}}', ": the key 'd1' is listed twice in one object"),
        ("run.json", '{"q1": {"d1": NaN}}', ": pair 1: the score of document 'd1' for query 'q1' must be a number"),
        ("run.json", '{"q1": {"d1": "1"}}', ": the score of document 'd1' for query 'q1' must be a number, not \"1\""),
        ("run.json", '{"q1": {"d1": true}}', ": the score of document 'd1' for query 'q1' must be a number, not true"),
        ("run.json", '{"q1": {"": 1}}', ": pair 1: no doc_id"),
        ("run.json", '{"q1": ["d1"]}', ": query 'q1' must be a map, {query: {document: score}}, not [\"d1\"]"),
        ("run.json", '[{"q1": {"d1": 1}}]', ": the file must be a map"),
        ("run.json", '{"q1": {}}', ": no query has a document"),
        ("run.json", '{"q1": {"\\ud83d": 1}}', ": "),
        ("run.json", "[" * 100_000, ": "),
        ("run.parquet", "q1 Q0 d1 1 2.0 tag\n", ": not a Parquet file"),
    ],
)
def test_a_wrong_run_is_refused_with_the_place(tmp_path: Path, name: str, content: str, message: str) -> None:
    path = write(tmp_path / name, content)
    with pytest.raises(DataError) as caught:
        retrieve(tmp_path, name)
    assert str(caught.value).startswith(f"{path}{message}")


@pytest.mark.parametrize("name", ["run.txt", "run.json", "run.jsonl", "run.csv", "run.parquet"])
@pytest.mark.parametrize("state", ["missing", "empty", "folder"])
def test_paths_that_are_not_files_are_refused_by_name(tmp_path: Path, name: str, state: str) -> None:
    if state == "empty":
        (tmp_path / name).touch()
    elif state == "folder":
        (tmp_path / name).mkdir()
    with pytest.raises(DataError) as caught:
        retrieve(tmp_path, name)
    assert str(caught.value).startswith(f"{tmp_path / name}")
