"""Files of other tools, in the layouts that their exporters write. The rows are made by hand."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest

from rageval_spec.errors import DataError
from rageval_spec.reading.answer_files import read_answers
from rageval_spec.reading.column_meanings import find_spellings, spells_freely
from rageval_spec.reading.column_names import QUESTIONS, AnswerColumns, QuestionColumns, RecordColumn
from rageval_spec.reading.formats.text_files import ForeignFileError
from rageval_spec.reading.row_sources import QUICKLY_READ, RowFile, Unfolding, open_text
from rageval_spec.recorded.json_path import parse_path
from rageval_spec.recorded.tool_layouts import find_layout, name_layout
from tests.exchange.peers import run_peer
from tests.plugins import build_dataset

Row = dict[str, Any]
TOOLS: dict[str, tuple[Row, dict[str, Any]]] = {
    "langsmith": (
        {
            "id": "e1",
            "inputs": {"question": "why?"},
            "outputs": {"answer": "because", "relevant_doc_ids": ["d1"]},
            "metadata": {"difficulty": "easy"},
        },
        {"id": "e1", "relevant": ["d1"], "difficulty": "easy"},
    ),
    "langsmith, one key": ({"id": "e1", "inputs": {"ask it": "why?"}, "outputs": {"told": "because"}}, {"id": "e1"}),
    "langfuse": (
        {
            "id": "i1",
            "input": "why?",
            "expectedOutput": "because",
            "metadata": {"difficulty": "easy"},
            "sourceTraceId": None,
            "status": "ACTIVE",
        },
        {"id": "i1", "difficulty": "easy"},
    ),
    "langfuse, objects": (
        {
            "id": "i1",
            "input": {"question": "why?"},
            "expected_output": {"answer": "because"},
            "metadata": None,
            "dataset_id": "ds",
        },
        {"id": "i1"},
    ),
    "braintrust": (
        {
            "id": "b1",
            "input": {"question": "why?"},
            "expected": {"answer": "because", "relevant_doc_ids": ["d1"]},
            "metadata": {"difficulty": "easy"},
            "tags": None,
        },
        {"id": "b1", "relevant": ["d1"], "difficulty": "easy"},
    ),
    "braintrust, texts": ({"id": "b1", "input": "why?", "expected": "because", "tags": ["x"]}, {"id": "b1"}),
    "mlflow": (
        {
            "dataset_record_id": "dr-1",
            "inputs": {"question": "why?"},
            "expectations": {
                "expected_response": "because",
                "expected_retrieved_context": [
                    {"doc_uri": "d1", "content": "text 1"},
                    {"doc_uri": "d2", "content": "t"},
                ],
            },
            "tags": {"difficulty": "easy"},
        },
        {"id": "dr-1", "relevant": ["d1", "d2"], "contexts": ["text 1", "t"], "difficulty": "easy"},
    ),
    "mlflow, ids only": (
        {
            "inputs": {"question": "why?"},
            "expectations": {"expected_response": "because", "expected_retrieved_context": [{"doc_uri": "d1"}]},
        },
        {"id": "1", "relevant": ["d1"]},
    ),
    "mlflow 2": (
        {"request_id": "r1", "request": "why?", "expected_response": "because", "expected_facts": ["a"]},
        {"id": "r1"},
    ),
    "promptfoo": ({"question": "why?", "__expected": "equals: because", "__description": "a test"}, {"id": "1"}),
    "ragas": (
        {"user_input": "why?", "reference": "because", "reference_contexts": ["t"]},
        {"id": "1", "contexts": ["t"]},
    ),
    "deepeval": (
        {
            "input": "why?",
            "expectedOutput": "because",
            "actualOutput": None,
            "context": ["t"],
            "retrievalContext": None,
        },
        {"id": "1", "contexts": ["t"]},
    ),
}


def write_jsonl(path: Path, *rows: Row) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def write_csv(path: Path, *rows: Row) -> Path:
    """As the tools write CSV: objects and lists are JSON."""
    with path.open("w", newline="") as stream:
        writer = csv.DictWriter(stream, list(rows[0]))
        writer.writeheader()
        for row in rows:
            flat = {name: json.dumps(v) if isinstance(v, (dict, list)) else v for name, v in row.items()}
            writer.writerow(flat)
    return path


@pytest.mark.parametrize("form", ["jsonl", "csv"])
@pytest.mark.parametrize("name", TOOLS)
def test_an_export_is_read_without_a_mapping(tmp_path: Path, name: str, form: str) -> None:
    row, wanted = TOOLS[name]
    path = (write_jsonl if form == "jsonl" else write_csv)(tmp_path / f"export.{form}", row)
    collection = build_dataset("golden", tmp_path, path=path.name).open()
    assert collection.queries is not None and collection.references is not None
    assert collection.queries.rows() == [(wanted["id"], "why?")]
    known = collection.references.row(0, named=True)
    assert known["references"] == ["because"]
    assert known["reference_contexts"] == wanted.get("contexts")
    judged = None if collection.qrels is None else collection.qrels["doc_id"].to_list()
    assert judged == wanted.get("relevant")
    columns = {} if collection.columns is None else json.loads(collection.columns["columns"][0])
    assert columns.get("difficulty") == wanted.get("difficulty")


ANSWERS: dict[str, Row] = {
    "langsmith": {
        "id": "r",
        "inputs": {"question": "why?"},
        "outputs": {"answer": "so", "contexts": ["t"]},
        "run_type": "chain",
    },
    "langfuse": {"id": "t", "input": "why?", "output": {"answer": "so", "contexts": ["t"]}, "traceId": "x"},
    "braintrust": {
        "id": "b",
        "input": "why?",
        "output": {"answer": "so", "contexts": ["t"]},
        "scores": {},
        "span_id": "s",
    },
    "mlflow": {
        "inputs": {"question": "why?"},
        "outputs": {"response": "so", "contexts": ["t"]},
        "expectations": {"expected_response": "because"},
    },
    "ragas": {"user_input": "why?", "response": "so", "retrieved_contexts": ["t"], "reference": "because"},
}


@pytest.mark.parametrize("form", ["jsonl", "csv"])
@pytest.mark.parametrize("name", ANSWERS)
def test_an_export_with_answers_is_read_without_a_mapping(tmp_path: Path, name: str, form: str) -> None:
    path = (write_jsonl if form == "jsonl" else write_csv)(tmp_path / f"export.{form}", ANSWERS[name])
    (found,) = read_answers(RowFile(path), AnswerColumns())
    assert (found.question, found.row.answer, found.row.contexts) == ("why?", "so", ("t",))


DEEPEVAL = {
    "input": "why?",
    "actual_output": "so",
    "expected_output": "because",
    "retrieval_context": "r1|r2",
    "context": "c1|c2",
    "name": None,
}


@pytest.mark.parametrize("write", [write_jsonl, write_csv], ids=["jsonl", "csv"])
@pytest.mark.parametrize("word", ["golden", "own"])
def test_contexts_that_deepeval_joins_are_several(tmp_path: Path, write: Any, word: str) -> None:
    form = "jsonl" if write is write_jsonl else "csv"
    path = write(tmp_path / f"goldens.{form}", DEEPEVAL)
    collection = build_dataset(form if word == "own" else word, tmp_path, path=path.name).open()
    assert collection.references is not None
    assert collection.references["reference_contexts"].to_list() == [["c1", "c2"]]
    (answer,) = read_answers(RowFile(path), AnswerColumns())
    assert answer.row.contexts == ("r1", "r2")


@pytest.mark.parametrize("write", [write_jsonl, write_csv], ids=["jsonl", "csv"])
def test_a_bar_in_the_context_of_another_tool_stays(tmp_path: Path, write: Any) -> None:
    row = {"user_input": "why?", "response": "so", "reference": "x", "retrieved_contexts": "a|b", "context": "c|d"}
    path = write(tmp_path / f"rows.{'jsonl' if write is write_jsonl else 'csv'}", row)
    (answer,) = read_answers(RowFile(path), AnswerColumns())
    assert answer.row.contexts == ("a|b",)
    (plain,) = read_answers(RowFile(write_jsonl(tmp_path / "p.jsonl", DEEPEVAL), layout="none"), AnswerColumns())
    assert plain.row.contexts == ("r1|r2",)


def test_the_spec_overrides_the_layout(tmp_path: Path) -> None:
    row = {"inputs": {"question": "why?", "hint": "think"}, "outputs": {"answer": "so", "short": "s"}}
    source = RowFile(write_jsonl(tmp_path / "export.jsonl", row))
    named = QuestionColumns(text="$.inputs.hint", reference="$.outputs.short")
    resolved = source.resolve(named)
    assert (resolved.text, resolved.reference) == ("$.inputs.hint", "$.outputs.short")
    assert next(source.rows(resolved))[1]["$.outputs.short"] == "s"


def test_a_part_in_later_rows_only_is_found(tmp_path: Path) -> None:
    rows: list[Row] = [{"id": str(n), "inputs": {"question": f"{n}?"}, "outputs": {}} for n in range(30)]
    rows[29]["outputs"] = {"answer": "so"}
    resolved = RowFile(write_jsonl(tmp_path / "export.jsonl", *rows)).resolve(QuestionColumns())
    assert (resolved.text, resolved.reference) == ("$.inputs.question", "$.outputs.answer")


def test_columns_of_records_are_text_and_placed(tmp_path: Path) -> None:
    path = write_jsonl(tmp_path / "rows.jsonl", {"a": {"b": "x"}}, {"a": {"b": ["y"]}})
    source, columns = RowFile(path), QuestionColumns(text="$.a.b")
    with pytest.raises(DataError, match=r"rows\.jsonl:2: '\$\.a\.b' must be text, not \[\"y\"\]"):
        source.records(columns, columns.over((RecordColumn("text", QUESTIONS),), "columns"))


def test_an_unreadable_file_has_no_tool(tmp_path: Path) -> None:
    (tmp_path / "rows.jsonl").write_text('{"inputs"')
    assert RowFile(tmp_path / "rows.jsonl").tool is None
    assert RowFile(tmp_path / "none.xlsx").tool is None


PEER = """
import json, os, sys
os.environ.update(DEEPEVAL_TELEMETRY_OPT_OUT="YES", DEEPEVAL_UPDATE_WARNING_OPT_OUT="YES")
from deepeval.dataset import EvaluationDataset, Golden
folder = json.loads(sys.argv[1])
contexts = {"context": ["c1", "c2"], "retrieval_context": ["r1"]}
golden = Golden(input="why?", expected_output="because", actual_output="so", **contexts)
bare = Golden(input="how?", expected_output="like this")
for kind in ("json", "csv", "jsonl"):
    EvaluationDataset(goldens=[golden, bare]).save_as(file_type=kind, directory=folder, file_name="theirs")
found = {}
for kind in ("json", "csv", "jsonl"):
    dataset = EvaluationDataset()
    getattr(dataset, f"add_goldens_from_{kind}_file")(os.path.join(folder, f"theirs.{kind}"))
    found[kind] = [[one.context or [], one.retrieval_context or []] for one in dataset.goldens]
print(json.dumps(found))
"""


def test_contexts_are_those_that_deepeval_itself_reads(tmp_path: Path) -> None:
    theirs = run_peer("deepeval", "deepeval==4.3.1' 'pandas", PEER, str(tmp_path))
    for kind in ("json", "csv", "jsonl"):
        collection = build_dataset("golden", tmp_path, path=f"theirs.{kind}").open()
        assert collection.references is not None
        answers = read_answers(RowFile(tmp_path / f"theirs.{kind}"), AnswerColumns())
        ours = zip(collection.references["reference_contexts"].to_list(), answers, strict=True)
        assert [[gold or [], list(answer.row.contexts or ())] for gold, answer in ours] == theirs[kind]
        assert theirs[kind] == [[["c1", "c2"], ["r1"]], [[], []]]


LANGSMITH = """
import datetime, json, uuid
from langsmith.schemas import Example
ids, now = [uuid.uuid4(), uuid.uuid4()], datetime.datetime.now()
parts = {"inputs": {"question": "why?"}, "outputs": {"answer": "so"}, "metadata": {"difficulty": "easy"}}
print(json.dumps(json.loads(Example(id=ids[0], dataset_id=ids[1], created_at=now, **parts).json())))
"""
LANGFUSE = """
import datetime, json
from langfuse.api import DatasetItem
now = datetime.datetime.now()
dates = {"created_at": now, "updated_at": now}
parts = {"input": {"question": "why?"}, "expected_output": {"answer": "so"}, "metadata": {"difficulty": "easy"}}
ids = {"id": "i", "dataset_id": "d", "dataset_name": "n", "source_trace_id": None, "source_observation_id": None}
item = DatasetItem(status="ACTIVE", media_references=[], **ids, **dates, **parts)
print(json.dumps(json.loads(item.model_dump_json(by_alias=True))))
"""


@pytest.mark.parametrize(
    ("name", "requirement", "script"),
    [("langsmith", "langsmith==0.15.0", LANGSMITH), ("langfuse5", "langfuse==5.0.4", LANGFUSE)],
)
def test_what_the_sdks_themselves_dump_is_read(tmp_path: Path, name: str, requirement: str, script: str) -> None:
    row = run_peer(name, requirement, script)
    collection = build_dataset("golden", tmp_path, path=write_jsonl(tmp_path / "export.jsonl", row).name).open()
    assert collection.queries is not None and collection.references is not None and collection.columns is not None
    assert collection.queries.rows() == [(row["id"], "why?")]
    assert collection.references["references"].to_list() == [["so"]]
    assert json.loads(collection.columns["columns"][0])["difficulty"] == "easy"


DEEPEVAL_LAYOUT = find_layout(
    ("input", "actual_output", "expected_output", "retrieval_context", "context"), keeps_lists=False
)


def test_a_path_is_a_column_with_what_it_finds() -> None:
    paths = tuple(map(parse_path, ("$.inputs.question", "$.docs[*].id", "$.none")))
    row = {"inputs": {"question": "why?"}, "docs": [{"id": "a"}, {"id": "b"}]}
    assert Unfolding(paths=paths).apply("f:1", row) == {
        **row,
        "$.inputs.question": "why?",
        "$.docs[*].id": ["a", "b"],
    }


@pytest.mark.parametrize("text", ['{"question": "why?"}', "{'question': 'why?'}"])
def test_a_path_leads_into_objects_that_csv_holds_as_text(text: str) -> None:
    found = Unfolding(paths=(parse_path("$.inputs.question"),)).apply("f:1", {"inputs": text})
    assert found["$.inputs.question"] == "why?"


def test_items_of_which_some_lack_the_value_are_an_error_with_their_place() -> None:
    unfolding = Unfolding(paths=(parse_path("$.docs[*].id"),))
    assert unfolding.apply("f:1", {"docs": []}) == {"docs": [], "$.docs[*].id": []}
    assert "$.docs[*].id" not in unfolding.apply("f:1", {"docs": [{"name": "a"}]})
    with pytest.raises(DataError, match=r"f:7: \$\.docs\[\*\]\.id finds nothing: the row\['docs'\]|f:7: .*has no 'id'"):
        unfolding.apply("f:7", {"docs": [{"id": "a"}, {"name": "b"}]})


def test_contexts_of_deepeval_are_split_and_lists_stay() -> None:
    row: dict[str, Any] = {"input": "a|b", "context": "c1|c2", "retrieval_context": ["r1|still r1"]}
    assert Unfolding(DEEPEVAL_LAYOUT).apply("f:1", row) == {**row, "context": ["c1", "c2"]}
    listed = '["a|b", "c"]'  # a list of another writer, as JSON
    assert Unfolding(DEEPEVAL_LAYOUT).apply("f:1", {"context": listed})["context"] == listed
    assert Unfolding(DEEPEVAL_LAYOUT).apply("f:1", {"context": "", "retrieval_context": None})["context"] == ""


def test_metadata_becomes_columns_but_gives_no_question_and_no_answer() -> None:
    layout = name_layout("langfuse", (), keeps_lists=False)
    row = {
        "input": "why?",
        "metadata": {"category": "a", "input": "other", "answer": "x", "difficulty": 2},
        "difficulty": 1,
    }
    assert Unfolding(layout).apply("f:1", row) == {**row, "category": "a"}


@pytest.mark.parametrize(
    ("row", "given"),
    [
        ({"assert": [{"type": "equals", "value": "x"}, {"type": "contains", "value": "y"}]}, ["x"]),
        ({"assert": [{"type": "not-equals", "value": "x"}]}, None),
        ({"__expected": "x"}, ["x"]),
        ({"__expected1": "similar(0.8): x", "__expected2": "contains: y"}, ["x"]),
        ({"__expected": "llm-rubric: is polite"}, None),
        ({"__expected": "At 12: the gate"}, ["At 12: the gate"]),
        ({"assert": "none"}, None),
    ],
)
def test_gold_answers_of_promptfoo_are_what_must_be_equal_or_similar(
    row: dict[str, Any], given: list[str] | None
) -> None:
    layout = name_layout("promptfoo", (), keeps_lists=True)
    assert Unfolding(layout).apply("f:1", row).get("assert.value") == given


def test_names_that_differ_in_case_and_spaces_are_known() -> None:
    names = ["Question", "Ground Truth", "Region", "ID"]
    spelled = {"Question": "question", "Ground Truth": "ground_truth", "ID": "id"}
    assert find_spellings(names, ()) == spelled
    assert find_spellings(["Answer", "answer"], ()) == {}
    assert "Question" not in find_spellings(names, (), {"Question"})
    assert spells_freely(names, ())
    assert not spells_freely(["question", "Ground Truth"], ())
    assert not spells_freely(names, ("text",))
    assert find_spellings(["Frage", "Antwort"], ()) == {}
    row = {"Question": "why?", "Ground Truth": "so", "Region": "EU"}
    unfolded = {"question": "why?", "ground_truth": "so", "Region": "EU"}
    assert Unfolding(spellings=spelled).apply("f:1", row) == unfolded


@pytest.mark.parametrize("value", ["text", "[see below]", "{not json", 7, None, ["a"], "[" * 10_000])
def test_what_is_no_object_stays_as_it_is(value: object) -> None:
    assert open_text(value) == value


def test_another_spelling_never_stands_for_a_part_that_has_an_exact_name() -> None:
    found = find_spellings(("ID", "question", "groundTruth", "Group"), ())
    assert found == {"ID": "id", "groundTruth": "ground_truth"}
    assert find_spellings(("query_id", "ID", "question", "reference", "Ground Truth"), ()) == {}
    assert find_spellings(("ID", "question"), ("query_id",)) == {}


def test_of_two_columns_in_other_spellings_the_first_has_the_name() -> None:
    assert find_spellings(["ID", "Id"], ()) == {"ID": "id"}


def test_a_list_that_numpy_printed_stays_several_texts() -> None:
    assert open_text("['c1'\n 'c2']") == ["c1", "c2"]


def test_all_keys_of_all_rows_are_columns(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text('{"a": 1}\n{"b": 2, "a": 1}\n{"c": null}\n')
    assert RowFile(path).list_names(QuestionColumns()) == ["a", "b", "c"]


@pytest.mark.parametrize("content", ["", '{"a"', "[1, 2]", '{"a": 1}\n{"a": NaN}\n'])
def test_the_columns_of_an_unreadable_file_are_unknown(tmp_path: Path, content: str) -> None:
    (tmp_path / "a.jsonl").write_text(content)
    with pytest.raises(DataError, match=r"a\.jsonl"):
        RowFile(tmp_path / "a.jsonl").list_names(QuestionColumns())


def test_a_large_file_is_recognised_without_reading_all_of_it(tmp_path: Path) -> None:
    rows = '{"a": 1}\n' * (QUICKLY_READ // 9 + 1)
    (tmp_path / "a.jsonl").write_text(rows + '{"b": 1}\n')
    assert RowFile(tmp_path / "a.jsonl").list_names(QuestionColumns()) is None
    (tmp_path / "b.jsonl").write_text("x,y\n" + rows)
    with pytest.raises(ForeignFileError, match="this is CSV with the columns 'x', 'y', not JSON Lines"):
        RowFile(tmp_path / "b.jsonl").list_names(QuestionColumns())


def test_a_file_of_another_format_is_named(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text("query_id,doc_id\nq1,d1\n")
    with pytest.raises(ForeignFileError, match="not JSON Lines; write use: csv"):
        RowFile(tmp_path / "a.jsonl").list_names(QuestionColumns())
