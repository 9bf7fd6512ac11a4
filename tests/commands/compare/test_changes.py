"""The numbers of two evaluations, with paired tests.

`compare` and metrics that people's labels correct.

What else differs between two evaluations.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from rageval_spec.commands.compare.changes import MetricChange, find_changes, list_edited_parts
from rageval_spec.commands.compare.changes import compare_metrics as compare_known
from rageval_spec.commands.compare.changes import list_differences as list_known
from rageval_spec.data.datasets import DatasetOrigin, Design, DesignSummary, Fingerprint, Fingerprints
from rageval_spec.data.evaluation import Evaluation
from rageval_spec.data.outcomes import Diagnosis, Interval
from rageval_spec.drawing.question_order import Filter
from rageval_spec.errors import UsageError
from rageval_spec.history.comparability import find_comparability
from rageval_spec.runner import Options, run
from tests.answered_evaluation import answered, sample, value
from tests.command_line import invoke
from tests.commands.compare.results import AFTER, BEFORE, evaluation
from tests.pipeline.labelling import write
from tests.sample_evaluation import alter


def compare_metrics(now: Evaluation, earlier: Evaluation, name: str = "before") -> list[MetricChange]:
    return compare_known(now, earlier, find_comparability(now, earlier, name))


def test_the_difference_is_of_the_questions_in_both_with_a_test() -> None:
    before = evaluation(BEFORE)
    found, latency = compare_metrics(evaluation(AFTER), before, "before")
    assert found.difference == pytest.approx((-0.8 + 0.6 - 0.1) / 5)
    assert found.is_worse is True
    assert found.comparison is not None
    assert (found.comparison.queries, found.comparison.wins, found.comparison.losses) == (5, 1, 2)
    assert found.comparison.baseline == "before"
    assert (latency.comparison, latency.difference, latency.is_worse) == (None, 0.0, None)


def test_results_say_the_range_of_their_values_also_without_their_spec() -> None:
    """Without the range, the interval of the difference of two shares leaves [-1, 1]."""
    known = compare_metrics(evaluation(AFTER, spec={}, ranges={"token_f1": (0.0, 1.0)}), evaluation(BEFORE))
    assert known[0].comparison == compare_metrics(evaluation(AFTER), evaluation(BEFORE))[0].comparison
    assert known[0].comparison is not None and known[0].comparison.interval is not None
    assert -1 <= known[0].comparison.interval.low < known[0].comparison.interval.high <= 1
    assert known[0].comparison.interval.method == "gaffke"
    unknown = compare_metrics(evaluation(AFTER, spec={}), evaluation(BEFORE))[0].comparison
    assert unknown is not None and unknown.interval is not None
    assert unknown.interval.method == "bootstrap-bca-t"


def test_questions_of_one_side_do_not_count() -> None:
    (found, _) = compare_metrics(evaluation(AFTER), evaluation({"q1": 0.9, "q3": 0.9}), "before")
    assert found.difference == pytest.approx(-0.45)
    assert found.before.mean == pytest.approx(0.9)


def test_low_values_can_be_good() -> None:
    before, after = (evaluation(numbers, lower_is_better=("token_f1",)) for numbers in (BEFORE, AFTER))
    found = compare_metrics(after, before, "before")[0]
    assert (found.is_worse, found.comparison and found.comparison.wins) == (False, 2)


def test_a_single_system_is_compared_whatever_its_name() -> None:
    found = compare_metrics(evaluation(AFTER, "v2"), evaluation(BEFORE, "v1"), "before")
    assert [(one.system, one.before.system) for one in found] == [("v2", "v1")] * 2
    assert found[0].comparison is not None


def test_questions_with_another_text_are_not_compared() -> None:
    prints = {query: Fingerprint("other" if query == "q1" else "a", "b") for query in AFTER}
    after = evaluation(AFTER, load_fingerprints=lambda: Fingerprints({"golden": prints}))
    found = compare_metrics(after, evaluation(BEFORE))[0]
    assert found.comparison is not None
    assert (found.comparison.queries, found.comparison.wins, found.comparison.losses) == (4, 1, 1)
    assert found.difference == pytest.approx((0.6 - 0.1) / 4)


def test_a_metric_whose_data_changed_is_not_worse_but_not_comparable() -> None:
    prints = {query: Fingerprint("a", "other" if query == "q1" else "b") for query in AFTER}
    after = evaluation(AFTER, load_fingerprints=lambda: Fingerprints({"golden": prints}))
    found = compare_metrics(after, evaluation(BEFORE))[0]
    assert found.comparison is not None
    assert [change.told for change in found.comparison.changes] == ["the reference of 1 query changed"]
    assert (found.comparison.is_comparable, found.is_worse) == (False, None)


def test_the_interval_is_that_of_the_gate_which_holds_though_the_evaluation_stopped_early() -> None:
    ordinary = compare_metrics(evaluation(AFTER), evaluation(BEFORE))[0].comparison
    assert ordinary is not None
    sequence = Interval(-0.6, 0.4, 0.95, "betting")
    gated = replace(ordinary, baseline="main", interval=sequence)
    found = compare_metrics(evaluation(AFTER, baselines=(gated,)), evaluation(BEFORE))[0].comparison
    assert found is not None
    assert (ordinary.interval != sequence, found.interval) == (True, sequence)


def test_clusters_and_weights_of_the_later_evaluation_count_on_both_sides() -> None:
    summary = DesignSummary(6, cluster="source", weight="traffic")
    weights = {f"q{number}": float(number) for number in range(10)}
    design = Design({f"q{number}": number // 3 for number in range(10)}, weights, summary=summary)
    plain = evaluation(AFTER)
    later = replace(plain, load_question_designs=lambda: {plain.datasets[0]: design})
    found = compare_metrics(later, evaluation(BEFORE), "before")[0]
    assert found.comparison is not None and found.comparison.design is not None
    assert found.comparison.design.plain == pytest.approx((-0.8 + 0.6 - 0.1) / 5)
    assert found.difference == found.comparison.difference != found.comparison.design.plain
    assert found.comparison.design.clusters is not None


def evaluate(folder: Path, name: str, **changes: Any) -> Evaluation:
    return run(write(folder, **changes), Options(output=folder / name)).evaluation


def compare(folder: Path) -> str:
    done = invoke("compare", folder / "before", folder / "after")
    assert done.exit_code == 0, done.output
    return " ".join(done.stdout.split())


def swap(folder: Path) -> None:
    """Let the system `a` answer as `b` did, and its labels be those of b's answers."""
    (folder / "a.jsonl").write_bytes((folder / "b.jsonl").read_bytes())
    header, *rows = (folder / "labels.csv").read_text().splitlines()
    own = [row.replace(",b,", ",a,") for row in rows if ",b," in row]
    (folder / "labels.csv").write_text("\n".join([header, *own]))


def test_the_difference_is_the_one_that_people_would_see(tmp_path: Path) -> None:
    both = evaluate(tmp_path, "both")
    evaluate(tmp_path, "before", systems=("a",))
    path = write(tmp_path, systems=("a",))
    swap(tmp_path)
    run(path, Options(output=tmp_path / "after"))
    (test,) = both.comparisons
    assert f"{test.difference:+.3f}".replace("-", "−") in compare(tmp_path).replace("-", "−")
    assert test.correction is not None and f"{test.correction.judged:+.3f}" not in compare(tmp_path)
    assert (
        "Holm-adjusted p. The numbers of token_f1 are corrected by people's labels; the test is a t test of the "
        "corrected difference."
    ) in compare(tmp_path)
    assert "permutation" not in compare(tmp_path)


def test_a_judges_mean_is_not_compared_with_a_corrected_one(tmp_path: Path) -> None:
    evaluate(tmp_path, "before", metrics=["token_f1"])
    evaluate(tmp_path, "after")
    assert "not compared: token_f1, because people's labels correct it only after" in compare(tmp_path)


def test_labels_without_a_digest_do_not_compare_answers(tmp_path: Path) -> None:
    for name in ("before", "after"):
        evaluate(tmp_path, name, columns="query_id,system,value")
    assert "not compared: token_f1, because its labels do not name the answers' digests" in compare(tmp_path)


def list_differences(now: Evaluation, earlier: Evaluation) -> list[str]:
    return list_known(now, earlier, find_comparability(now, earlier, "before"))


def test_equal_evaluations_do_not_differ() -> None:
    assert list_differences(evaluation(BEFORE), evaluation(BEFORE)) == []


def test_edited_data_come_first_then_settings_models_prompts_and_versions() -> None:
    before, after = evaluation(BEFORE), evaluation(AFTER)
    prints = {**after.fingerprints.datasets["golden"], "q1": Fingerprint("a", "edited", None)}
    after = alter(
        after,
        load_fingerprints=lambda: Fingerprints({"golden": prints}),
        settings={**after.provenance.settings, "limit": 5, "statistics": {"seed": 1}},
        models={"minilm": {"sha256": "other"}},
        prompts={"strict.verdicts": "b"},
        versions={"rageval-spec": "2.0"},
    )
    assert list_differences(after, alter(before, prompts={"strict.verdicts": "a"})) == [
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
        origins = {} if version is None else {"faq": DatasetOrigin(version)}
        return alter(evaluation(BEFORE), datasets=("faq",), origins=origins, digests={"faq": digests})

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


def kinds(after: Evaluation, before: Evaluation, **wanted: object) -> list[tuple[str, str]]:
    found = find_changes(after, before, Filter(**wanted))  # type: ignore[arg-type]
    return [(one.query_id, one.kind) for one in found.shown]


def test_each_question_has_one_kind_and_broken_ones_come_first() -> None:
    found = find_changes(evaluation(AFTER), evaluation(BEFORE), Filter())
    assert [(one.query_id, one.kind) for one in found.shown] == [
        ("q1", "broken"),
        ("q2", "fixed"),
        ("q3", "worse"),
        ("q4", "changed"),
    ]
    assert found.counts == {"broken": 1, "fixed": 1, "worse": 1, "better": 0, "changed": 1}
    assert found.shared == 5
    broken = found.shown[0]
    assert (broken.metric, broken.before, broken.after) == ("token_f1", 0.9, 0.1)
    assert broken.size == pytest.approx(0.8)
    assert (broken.answer_before, broken.answer) == ("It is red.", "It is blue.")


def test_the_largest_changes_come_first_and_the_limit_is_for_each_kind() -> None:
    before = evaluation({"q1": 0.9, "q2": 0.9, "q3": 0.2, "q4": 0.3})
    after = evaluation({"q1": 0.4, "q2": 0.1, "q3": 0.6, "q4": 0.9})
    assert kinds(after, before) == [("q2", "broken"), ("q1", "broken"), ("q4", "fixed"), ("q3", "fixed")]
    assert kinds(after, before, limit=1) == [("q2", "broken"), ("q4", "fixed")]


def test_the_diagnosis_says_what_is_wrong() -> None:
    before, after = evaluation({"q1": 0.4}), evaluation({"q1": 0.2})
    assert kinds(after, before) == [("q1", "worse")]
    diagnosis = Diagnosis("ndcg@10", "token_f1", None, 0.3, 0.7)
    assert kinds(replace(after, diagnosis=diagnosis), before) == [("q1", "broken")]


def test_an_answer_that_came_or_went_is_fixed_or_broken() -> None:
    here, gone = sample("q1"), sample("q1", answer=None, error="timeout")
    rows, none = [value("q1", "token_f1", 0.9)], [value("q1", "token_f1", None)]
    assert kinds(answered(none, [gone]), answered(rows, [here])) == [("q1", "broken")]
    assert kinds(answered(rows, [here]), answered(none, [gone])) == [("q1", "fixed")]
    (change,) = find_changes(answered(none, [gone]), answered(rows, [here]), Filter()).shown
    assert (change.size, change.metric, change.error) == (1.0, None, "timeout")


def test_the_metric_that_crosses_the_line_decides_before_one_that_moves_further() -> None:
    before = answered([value("q1", "token_f1", 0.55), value("q1", "ndcg@10", 0.51)])
    after = answered([value("q1", "token_f1", 0.95), value("q1", "ndcg@10", 0.45)])
    (change,) = find_changes(after, before, Filter()).shown
    assert (change.kind, change.metric) == ("broken", "ndcg@10")
    assert kinds(after, before, metric="token_f1") == [("q1", "better")]


def test_systems_that_only_retrieve_are_compared_too() -> None:
    before, after = answered([value("q1", "ndcg@10", 0.9)]), answered([value("q1", "ndcg@10", 0.1)])
    assert kinds(after, before) == [("q1", "broken")]


def test_questions_of_one_side_are_left_out() -> None:
    assert find_changes(evaluation({"q1": 0.5, "q2": 0.1}), evaluation({"q1": 0.5, "q3": 0.1}), Filter()).shared == 1


def test_a_renamed_system_is_matched_and_filters_apply() -> None:
    after, before = evaluation(AFTER, "v2"), evaluation(BEFORE, "v1")
    assert len(kinds(after, before, system="v2", dataset="golden")) == 4
    assert find_changes(after, before, Filter(limit=1)).shown[0].answer_before == "It is red."
    with pytest.raises(UsageError, match="unknown system 'v1'"):
        kinds(after, before, system="v1")


def test_an_answer_that_one_of_the_results_does_not_hold_is_not_said_to_be_removed() -> None:
    values = ([value("q1", "token_f1", 1.0)], [value("q1", "token_f1", 0.0)])
    before = answered(values[0], [sample("q1", status="answered")])
    (one,) = find_changes(answered(values[1], [sample("q1", status="answered", answer=None)]), before, Filter()).shown
    assert (one.kind, one.answer_before, one.answer) == ("broken", None, None)
    (one,) = find_changes(answered(values[1]), before, Filter()).shown
    assert (one.kind, one.answer_before, one.answer) == ("broken", None, None)
    (one,) = find_changes(answered(values[1], [sample("q1", status="failed", answer=None)]), before, Filter()).shown
    assert (one.kind, one.answer is None, one.answer_before is None) == ("broken", True, False)
