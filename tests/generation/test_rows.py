import json

from rageval_spec.generation.rows import COLUMNS
from tests.generation.writing import Workshop


def test_a_row_says_where_its_answer_stands_and_how_it_was_made(workshop: Workshop) -> None:
    made = workshop.make("count: 4, types: factual")
    for row in made.rows:
        text = (workshop.folder / "corpus" / row["relevant_documents"][0]).read_text("utf-8")
        (evidence,) = row["evidence"]
        assert row["reference_contexts"][0][evidence["start"] : evidence["end"]] == evidence["quote"]
        assert text[evidence["document_start"] : evidence["document_end"]] == evidence["quote"]
        assert evidence["quote"].startswith("delivers")
        assert row["relevant"] == [evidence["chunk"]]
        assert row["ranks"] == {"bm25": 1}
        assert (row["difficulty"], row["language"], row["answerable"]) == ("easy", "en", True)
        assert row["asked_difficulty"] in ("easy", "medium", "hard")
        (source,) = row["sources"]
        assert source["title"].endswith(" pump")
        assert source["version"]
        assert row["made"]["model"] == "tiny"
        assert row["made"]["prompts"]["draft"] == "1"
        assert row["made"]["by"].startswith("rageval-spec ")
        assert json.dumps(row)


def test_a_question_without_an_answer_has_no_reference_and_nothing_relevant(workshop: Workshop) -> None:
    (row,) = workshop.make("count: 1, unanswerable: 100").rows
    assert (row["reference"], row["relevant"], row["evidence"], row["difficulty"]) == (None, [], [], None)
    assert row["answerable"] is False
    assert row["sources"]


def test_the_columns_are_those_that_are_no_part_of_a_dataset(workshop: Workshop) -> None:
    (row,) = workshop.make("count: 1").rows
    parts = {"query_id", "question", "reference", "answerable", "relevant", "reference_contexts"}
    assert {*row} == parts | {*COLUMNS}
