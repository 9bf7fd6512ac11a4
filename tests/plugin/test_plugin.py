""""""

from __future__ import annotations

from datetime import date
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest
from pydantic import Field, ValidationError

from rageval_spec import registry
from rageval_spec.data.findings import Ability, Assessment, Criterion
from rageval_spec.errors import UsageError
from rageval_spec.metrics.shared.judged_metrics import list_able_judges
from rageval_spec.plugin import ChatModel, Context, EmbeddingModel, Judge, JudgeNode, Node, Plugin
from rageval_spec.plugin.plugin import KnownModel
from tests.metrics.judges import RuleJudge, TableModel
from tests.plugins import build_dataset, build_system


class Shape(Node):
    size: int = 1
    from_: str | None = Field(default=None, alias="from")
    later: tuple[str, ...] = ()


class Thing(Plugin[Shape]):
    node_type = Shape
    version = "3"
    later_keys = frozenset({"later"})


def build(**keys: object) -> Thing:
    return Thing(Shape.model_validate({"use": "thing", **keys}), Context("mine"))


def test_a_node_is_frozen_and_knows_no_further_keys() -> None:
    with pytest.raises(ValidationError, match="Extra inputs are not permitted"):
        build(seize=2)
    with pytest.raises(ValidationError, match="frozen"):
        build().node.size = 2  # type: ignore[misc]


def test_content_is_the_node_in_yaml_types_with_word_and_version() -> None:
    assert build(size=2, **{"from": "x"}).content() == {
        "word": "thing",
        "version": "3",
        "node": {"use": "thing", "size": 2, "from": "x"},
    }


def test_a_key_added_later_counts_only_if_it_is_not_at_its_default() -> None:
    assert build(later=[]).content() == build().content()
    assert build(later=["a"]).content()["node"]["later"] == ["a"]


def test_a_plugin_names_no_files_and_finds_no_fault_unless_it_says_so() -> None:
    thing = build()
    assert (thing.inputs(), thing.check(), tuple(thing.check_files()), thing.known_as) == ((), None, (), ())


def test_relative_paths_start_at_the_specs_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    context = Context("golden", Path("/specs"))
    assert context.resolve("data/a.csv") == Path("/specs/data/a.csv")
    assert context.resolve("/data/a.csv") == Path("/data/a.csv")
    assert context.resolve("~/a.csv") == tmp_path / "a.csv"


def test_a_model_is_found_by_its_name_and_kind() -> None:
    model = TableModel({})
    context = Context("near", models={"minilm": model})
    assert context.model("minilm", EmbeddingModel) is model  # type: ignore[type-abstract]
    assert context.explain_model("minilm", EmbeddingModel, "gives no embeddings") is None
    assert context.explain_model("absent", EmbeddingModel, "gives no embeddings") is None  # the spec's reader says so


def test_a_missing_model_and_one_of_another_kind_are_reported() -> None:
    context = Context("near", models={"minilm": TableModel({})})
    with pytest.raises(UsageError, match="near: there is no model 'small'; declare it under 'models:'"):
        context.model("small", EmbeddingModel)  # type: ignore[type-abstract]
    with pytest.raises(UsageError, match=r"near: the model 'minilm' \(use: .*\) is not a chat model; name one with"):
        context.model("minilm", ChatModel)  # type: ignore[type-abstract]
    fault = context.explain_model("minilm", ChatModel, "writes no replies")
    assert fault is not None and fault.startswith("the model 'minilm' (use: ") and fault.endswith("writes no replies")


def test_a_judge_is_found_by_its_name() -> None:
    judge = RuleJudge("strict")
    context = Context("metric", judges={"strict": judge})
    assert context.judge("strict") is judge
    with pytest.raises(UsageError, match="metric: there is no judge 'mild'; declare it under 'judges:'"):
        context.judge("mild")


def test_without_a_store_nothing_is_kept() -> None:
    answers = Context("m").answers
    answers.keep("model", {b"question": b"answer"})
    assert answers.find("model", [b"question"]) == {}


class Reader(Judge[JudgeNode]):
    """A judge from another distribution."""

    declared = frozenset[Ability]({"support", "questions"})

    def assess(self, criterion: Criterion, samples: object) -> Assessment:
        return Assessment(())


def test_a_judge_can_do_what_it_declares_and_nothing_else() -> None:
    judge = Reader(JudgeNode(use="reader"), Context("mine"))
    assert judge.abilities == {"support", "questions"}
    with pytest.raises(UsageError, match=r"judges\.mine \(use: reader\) cannot list entities"):
        judge.entities(["x"])


def test_messages_suggest_judges_of_other_distributions_by_what_they_declare(monkeypatch: pytest.MonkeyPatch) -> None:
    """A judge that cannot be imported does not break the message."""
    group = "rageval_spec.judges"
    entries = {
        "reader": EntryPoint("reader", f"{__name__}:Reader", group),
        "broken": EntryPoint("broken", "no_such_module:Judge", group),
    }
    monkeypatch.setattr(registry, "_entry_points", lambda section: entries if section == "judges" else {})
    registry.words.cache_clear()
    try:
        assert list_able_judges(frozenset({"questions"})) == ["claims", "reader"]
        assert list_able_judges(frozenset({"questions", "support"})) == ["claims", "reader"]
        assert list_able_judges(frozenset({"questions", "entities"})) == ["claims"]
    finally:
        registry.words.cache_clear()
        registry.load.cache_clear()


def test_a_file_that_is_missing_is_not_described(tmp_path: Path) -> None:
    assert list(build_dataset("golden", tmp_path, path="none.json").describe_files()) == []
    assert list(build_dataset("csv", tmp_path, path="none.csv").describe_files()) == []
    assert list(build_system("file", tmp_path, path="none.jsonl").describe_files()) == []


def test_runs_and_judgements_have_no_columns_of_questions(tmp_path: Path) -> None:
    (tmp_path / "qrels.csv").write_text("query_id,doc_id,relevance\nq,d,1\n")
    (tmp_path / "a.run").write_text("q Q0 d 1 0.5 t\n")
    assert list(build_dataset("csv", tmp_path, path="qrels.csv").describe_files()) == []
    assert list(build_system("file", tmp_path, path="a.run").describe_files()) == []


def test_a_description_has_the_file_as_the_spec_writes_it(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("question,answer\nwhy?,so\n")
    (found,) = build_dataset("csv", tmp_path, path="a.csv").describe_files()
    assert (found.file, found.details) == ("a.csv", ("ids are row numbers",))
    assert found.columns == {"text": "question", "reference": "answer"}
    assert found.others == ()


JUDGES = [registry.load("judges", word) for word in registry.words("judges")]


@pytest.mark.parametrize("judge", JUDGES, ids=registry.words("judges"))
def test_the_models_that_a_judge_knows_have_the_same_columns_and_distinct_names(judge: type[Judge]) -> None:  # type: ignore[type-arg]
    models = judge.list_known_models()
    assert all(isinstance(model, KnownModel) for model in models)
    assert len({model.name.casefold() for model in models}) == len(models)
    assert len({tuple(model.columns) for model in models}) <= 1
    assert all(model.sources and model.read <= date.today() for model in models)


def test_some_judge_knows_models() -> None:
    assert any(judge.list_known_models() for judge in JUDGES)
