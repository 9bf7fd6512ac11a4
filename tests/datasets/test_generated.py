import jsonschema
import polars as pl
import pytest

from rageval_spec.commands.store import prune_store
from rageval_spec.diagnostics import SpecError
from rageval_spec.errors import DataError
from rageval_spec.runner import Options, plan, run
from rageval_spec.spec import schema
from tests.checked_specs import validate
from tests.command_line import invoke
from tests.generation.conftest import workshop as workshop
from tests.generation.writing import Workshop


def explain(workshop: Workshop, keys: str, **replaced: str) -> str:
    with pytest.raises(SpecError) as raised:
        validate(workshop.write_spec(keys, **replaced))
    return str(raised.value)


def test_the_questions_are_a_collection_with_everything(workshop: Workshop) -> None:
    with workshop.open("count: 4, unanswerable: 25") as dataset:
        dataset.prepare()
        collection = dataset.open()
        assert collection.queries is not None
        assert collection.qrels is not None
        assert collection.corpus is not None
        assert collection.references is not None
        assert collection.columns is not None
        assert collection.queries.height == collection.references.height == collection.columns.height == 4
        assert collection.references.filter("answerable").height == 3
        assert collection.qrels["relevance"].to_list() == [1, 1, 1]
        assert collection.qrels.join(collection.corpus, on="doc_id", how="semi").height == 3
        assert collection.corpus.columns == ["doc_id", "title", "text"]
        assert collection.columns["columns"].str.json_path_match("$.type").null_count() == 0


def test_whole_documents_can_be_relevant_and_the_corpus(workshop: Workshop) -> None:
    path = workshop.folder / "corpus" / "ember.md"
    path.write_text(path.read_text("utf-8") + "\n## More\n\n" + "It has a long history of many words. " * 60, "utf-8")
    with workshop.open("count: 2, relevant: documents") as dataset:
        dataset.prepare()
        corpus = dataset.open().corpus
        assert corpus is not None
        assert (corpus.height, "ember.md" in corpus["doc_id"]) == (20, True)
    asked = len(workshop.writer.bodies)
    with workshop.open("count: 2, relevant: chunks") as dataset:
        dataset.prepare()
        corpus = dataset.open().corpus
        assert corpus is not None
        assert corpus.height > 20
    assert len(workshop.writer.bodies) == asked, "what is relevant changes no question"


def test_before_they_are_made_there_is_nothing_to_open(workshop: Workshop) -> None:
    with workshop.open("count: 3") as dataset:
        with pytest.raises(DataError, match="its questions are not made yet; `rageval-spec run` makes them"):
            dataset.open()
        supposed = dataset.foresee().queries
        assert isinstance(supposed, pl.DataFrame)
        assert supposed.height == 3
        assert dataset.find() is None
        assert not workshop.writer.bodies


def test_changed_documents_give_other_questions(workshop: Workshop) -> None:
    workshop.make("count: 3")
    asked = len(workshop.writer.bodies)
    for path in (workshop.folder / "corpus").iterdir():
        path.write_text(
            path.read_text("utf-8").replace("Unplug", "First unplug").replace("unplug it", "take its plug out"), "utf-8"
        )
    workshop.make("count: 3")
    assert len(workshop.writer.bodies) == 2 * asked


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ("types: {factual: 40}", "the shares sum to 40, and must sum to 100; in the same proportions: factual:100"),
        ("types: {facutal: 100}", "unknown name 'facutal'; did you mean 'factual'?"),
        ("types: 'factual:50,procedural:20'", "in the same proportions: factual:71,procedural:29"),
        ("style: {shouting: 100}", "there are plain, informal, typos, keywords and polite"),
        ("difficulty: {easy: 130, hard: -30}", "must be from 0 to 100"),
        ("multi_hop: 60, unanswerable: 60", "sum to more than 100"),
        ("checker: minilm", "the model 'minilm' (use: onnx) writes no replies; name a chat model"),
        ("embedding: gpt", "the model 'gpt' (use: chat) is not an embedding model"),
        ("judge: stritc", "the spec has no judge 'stritc'"),
        ("language: 'German!'", "language"),
        ("count: 0", "count"),
    ],
)
def test_a_wrong_block_says_what_to_write(workshop: Workshop, keys: str, message: str) -> None:
    assert message in explain(workshop, keys)


def test_a_missing_folder_and_a_model_that_is_not_there_are_found(workshop: Workshop) -> None:
    assert "there is no folder 'nowhere'" in explain(workshop, "count: 1", **{"path: corpus": "path: nowhere"})
    assert "the spec has no model 'gtp'" in explain(workshop, "count: 1", **{"model: gpt": "model: gtp"})


def test_a_model_that_only_a_dataset_names_is_used(workshop: Workshop) -> None:
    assert validate(workshop.write_spec()).warnings == ()


def test_shares_can_be_text_as_on_the_command_line(workshop: Workshop) -> None:
    with workshop.open("count: 1, style: 'informal,typos'") as dataset:
        assert dataset.node.style == {"informal": 50, "typos": 50}


@pytest.mark.parametrize("types", [{"factual": 60, "procedural": 40}, "factual:60,procedural:40"])
def test_editors_accept_shares_as_a_map_and_as_text(types: object) -> None:
    block = {"use": "generated", "path": "docs", "model": "gpt", "types": types}
    spec = {"version": 1, "datasets": {"golden": block}, "systems": {"a": {"use": "bm25"}}, "metrics": ["ndcg@10"]}
    validator = jsonschema.Draft7Validator(schema())
    assert validator.is_valid(spec)
    assert not validator.is_valid({**spec, "datasets": {"golden": {**block, "types": {"facutal": 100}}}})


def test_a_folder_without_a_readable_file_says_what_was_there(workshop: Workshop) -> None:
    corpus = workshop.folder / "corpus"
    for path in corpus.iterdir():
        path.unlink()
    with workshop.open("count: 1") as dataset, pytest.raises(DataError, match="nothing to read"):
        dataset.prepare()
    (corpus / "picture.png").write_bytes(b"\x89PNG")
    with workshop.open("count: 1") as dataset, pytest.raises(DataError, match=r"picture\.png: .*not read"):
        dataset.prepare()
    assert not workshop.writer.bodies


def test_what_lies_beside_the_documents_changes_nothing(workshop: Workshop) -> None:
    workshop.make("count: 3")
    asked = len(workshop.writer.bodies)
    (workshop.folder / "corpus" / ".rageval").mkdir()
    (workshop.folder / "corpus" / ".rageval" / "x.md").write_text("x", "utf-8")
    (workshop.folder / "corpus" / "golden.jsonl").write_text("{}", "utf-8")
    with workshop.open("count: 3") as dataset:
        assert dataset.find() is not None
    (workshop.folder / "corpus" / "ember.md").rename(workshop.folder / "corpus" / "amber.md")
    with workshop.open("count: 3") as dataset:
        assert dataset.find() is None, "names of files are ids of documents"
    assert len(workshop.writer.bodies) == asked


def test_the_place_of_the_documents_does_not_count(workshop: Workshop) -> None:
    workshop.make("count: 3")
    (workshop.folder / "corpus").rename(workshop.folder / "manual")
    path = workshop.write_spec("count: 3", **{"path: corpus": "path: manual"})
    assert plan(path).expectation.models[0].calls == 0


def test_pruning_keeps_what_a_spec_needs(workshop: Workshop) -> None:
    spec = workshop.write_spec("count: 2")
    assert run(spec, Options(output=None, no_history=True)).exit_code == 0
    store = workshop.folder / ".rageval" / "store"
    assert "removed 0 entries" in prune_store(store, older_than=None, max_size=None, unused_by=[spec], dry_run=False)
    with workshop.open("count: 2") as dataset:
        assert dataset.find() is not None
    other = workshop.folder / "other.yaml"
    other.write_text(spec.read_text("utf-8").replace("count: 2", "count: 1"), "utf-8")
    prune_store(store, older_than=None, max_size=None, unused_by=[other], dry_run=False)
    with workshop.open("count: 2") as dataset:
        assert dataset.find() is None


def test_some_of_the_questions_can_be_asked_alone(workshop: Workshop) -> None:
    spec = workshop.write_spec("count: 3")
    made = workshop.make("count: 3")
    wanted = {"golden": [made.rows[1]["query_id"]]}
    outcome = run(spec, Options(output=None, no_history=True, queries=wanted))
    assert outcome.evaluation.aggregates[0].total == 1
    (workshop.folder / ".rageval").rename(workshop.folder / "gone")
    assert run(spec, Options(output=None, no_history=True, queries=wanted)).evaluation.aggregates[0].total == 1


def test_an_audit_reads_the_stored_questions(workshop: Workshop) -> None:
    spec = workshop.write_spec("count: 4")
    assert "its questions are not made yet" in invoke("audit", str(spec)).output
    assert run(spec, Options(output=None, no_history=True)).exit_code == 0
    assert "4 questions" in invoke("audit", str(spec)).output


def test_results_tell_what_is_not_as_ordered(workshop: Workshop) -> None:
    spec = workshop.write_spec("count: 25, per_chunk: 1, difficulty: 'easy:100'")
    for _ in ("when the questions are made", "when they are stored"):
        outcome = run(spec, Options(output=None, no_history=True))
        told = [note.message for note in outcome.evaluation.notes if note.code == "other_than_ordered"]
        assert told == [
            "the generated questions: 5 questions are missing: no chunk is left to ask about (20 chunks, at most 1 "
            "question each)"
        ]
