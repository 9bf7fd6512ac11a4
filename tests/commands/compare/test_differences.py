"""What else differs between two evaluations."""

from __future__ import annotations

from dataclasses import replace

from rageval_spec.commands.compare.differences import list_differences as list_known
from rageval_spec.commands.compare.differences import list_edited_parts
from rageval_spec.data.evaluation import Evaluation
from rageval_spec.data.fingerprints import Fingerprint, Fingerprints
from rageval_spec.data.origin import Origin
from rageval_spec.history.comparability import find_comparability
from tests.commands.compare.results import AFTER, BEFORE, evaluation


def list_differences(now: Evaluation, earlier: Evaluation) -> list[str]:
    return list_known(now, earlier, find_comparability(now, earlier, "before"))


def test_equal_evaluations_do_not_differ() -> None:
    assert list_differences(evaluation(BEFORE), evaluation(BEFORE)) == []


def test_edited_data_come_first_then_settings_models_prompts_and_versions() -> None:
    before, after = evaluation(BEFORE), evaluation(AFTER)
    prints = {**after.fingerprints.datasets["golden"], "q1": Fingerprint("a", "edited", None)}
    after = replace(
        after,
        load_fingerprints=lambda: Fingerprints({"golden": prints}),
        settings={**after.settings, "limit": 5, "statistics": {"seed": 1}},
        models={"minilm": {"sha256": "other"}},
        prompts={"strict.verdicts": "b"},
        versions={"rageval-spec": "2.0"},
    )
    assert list_differences(after, replace(before, prompts={"strict.verdicts": "a"})) == [
        "not comparable: token_f1, because the reference of 1 query changed",
        "limit: None before, 5 after",
        "the model minilm is not the same",
        "the prompt strict.verdicts was edited",
        "rageval-spec 1.2.3 before, 2.0 after",
    ]
    assert list_edited_parts(after, before, "golden", "q1") == ["reference"]
    assert list_edited_parts(after, before, "golden", "q2") == []


def test_versions_of_datasets_are_compared_with_what_changed() -> None:
    def versioned(version: str | None, **digests: str) -> Evaluation:
        origins = {} if version is None else {"faq": Origin(version)}
        return replace(evaluation(BEFORE), datasets=("faq",), origins=origins, digests={"faq": digests})

    old = versioned("2.1", questions="a", references="b")
    assert list_differences(versioned("2.1", questions="a", references="b"), old) == []
    assert list_differences(versioned("2.1", questions="x", references="y"), old) == [
        "the dataset faq has version 2.1 before and after, but its questions and references changed"
    ]
    assert list_differences(versioned("2.2", questions="x", references="b"), old) == [
        "the dataset faq had version 2.1 before and has 2.2 now"
    ]
    assert list_differences(versioned("2.2", questions="a", references="b"), old) == [
        "the dataset faq had version 2.1 before and has 2.2 now; its content is the same"
    ]
    assert list_differences(versioned("2.1", questions="a"), versioned(None, questions="a")) == [
        "the dataset faq had version unknown before and has 2.1 now; its content is the same"
    ]


def test_systems_metrics_and_queries_of_one_side_are_named() -> None:
    before = evaluation({"q1": 0.5}, systems=("v1", "v0"), metrics=("token_f1", "rr"))
    after = evaluation({"q1": 0.5, "q2": 0.5}, systems=("v1", "v2"))
    assert list_differences(after, before) == [
        "compared with before on 1 of 2 questions: 1 is new",
        "only before: the system v0",
        "only after: the system v2",
        "only before: the metric rr",
        "only after: the metric latency",
    ]


def test_a_system_that_was_renamed_is_said_to_be() -> None:
    found = list_differences(evaluation(AFTER, "v2"), evaluation(BEFORE, "v1"))
    assert found == ["the system v2 is compared with v1"]


def test_results_without_fingerprints_say_that_edits_are_not_known() -> None:
    old = evaluation(BEFORE, load_fingerprints=Fingerprints)
    assert "so it is not known whether they changed" in list_differences(evaluation(AFTER), old)[0]
