"""Ranking metrics with people's labels of pairs, from the spec to the results, the gates and the messages."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest
import yaml

from rageval_spec.data.evaluation import Aggregate
from rageval_spec.runner import Options, RunOutcome, run
from tests.command_line import invoke

QUERIES, DOCUMENTS = 30, 6
SYSTEMS = ("a", "b")


def people_say(query: int, document: int) -> int:
    return int(random.Random(f"{query} {document}").random() < 0.7 - 0.1 * document)


def judge_says(query: int, document: int) -> int:
    """The judge takes many others for relevant."""
    return max(people_say(query, document), int(random.Random(f"judge {query} {document}").random() < 0.3))


def write(
    folder: Path,
    *,
    labelled: int = QUERIES * DOCUMENTS,
    rows: list[str] | None = None,
    qrels: Any = judge_says,
    header: str = "query_id,doc_id,relevance,probability",
    **sections: Any,
) -> Path:
    """A spec with two systems, a judge's qrels and labels of the first pairs in a random order."""
    pairs = [(query, document) for query in range(QUERIES) for document in range(DOCUMENTS)]
    (folder / "machine.txt").write_text("".join(f"q{q} 0 d{d} {qrels(q, d)}\n" for q, d in pairs))
    for system in SYSTEMS:
        ranked = [(q, d, random.Random(f"{system} {q} {d}").random() - d * (system == "a") / 4) for q, d in pairs]
        (folder / f"{system}.run").write_text("".join(f"q{q} Q0 d{d} 0 {s} {system}\n" for q, d, s in ranked))
    chosen = random.Random(1).sample(pairs, labelled)
    told = [f"q{q},d{d},{people_say(q, d)},{labelled / len(pairs)}" for q, d in chosen] if rows is None else rows
    (folder / "people.csv").write_text("\n".join([header, *told]) + "\n")
    content = {
        "version": 1,
        "datasets": {"judged": {"use": "trec", "qrels": "machine.txt"}},
        "systems": {name: {"use": "file", "path": f"{name}.run"} for name in SYSTEMS},
        "labels": {"people": {"use": "qrels", "path": "people.csv"}},
        "metrics": [{"use": "ndcg", "cutoff": 3, "labels": "people"}],
        **sections,
    }
    (folder / "spec.yaml").write_text(yaml.safe_dump(content, sort_keys=False))
    return folder / "spec.yaml"


def evaluate(path: Path, **options: Any) -> RunOutcome:
    return run(path, Options(output=path.parent / "out", **options))


def cells(outcome: RunOutcome) -> dict[str, Aggregate]:
    return {one.system: one for one in outcome.evaluation.aggregates}


@pytest.fixture
def truth(tmp_path: Path) -> dict[str, Aggregate]:
    """What people's grades of all pairs give."""
    folder = tmp_path / "truth"
    folder.mkdir()
    return cells(evaluate(write(folder, qrels=people_say, metrics=["ndcg@3"])))


def test_with_labels_of_all_pairs_the_numbers_are_those_of_peoples_grades(
    tmp_path: Path, truth: dict[str, Aggregate]
) -> None:
    outcome = evaluate(write(tmp_path))
    for system, cell in cells(outcome).items():
        assert cell.mean == pytest.approx(truth[system].mean)
        assert cell.correction is not None and cell.correction.judged != pytest.approx(cell.mean)
        assert (cell.correction.labels, cell.correction.source, cell.correction.method) == (180, "people", "imputation")
        assert cell.interval is not None and cell.interval.method == "imputation"
    (test,) = outcome.evaluation.comparisons
    means = [truth[system].mean or 0.0 for system in SYSTEMS]
    assert test.difference == pytest.approx(means[1] - means[0]) and test.baseline_mean == pytest.approx(means[0])


def test_some_labels_correct_means_comparisons_slices_and_gates(tmp_path: Path, truth: dict[str, Aggregate]) -> None:
    gates = [{"metric": "ndcg@3", "min": 0.1, "on": "lower"}, {"metric": "ndcg@3", "baseline": "a", "max_drop": 0.9}]
    outcome = evaluate(write(tmp_path, labelled=90, gates=gates))
    found = cells(outcome)
    for system, cell in found.items():
        assert cell.interval is not None and cell.interval.low <= (truth[system].mean or 0.0) <= cell.interval.high
    (test,) = outcome.evaluation.comparisons
    assert test.correction is not None and test.interval is not None
    assert test.interval.low <= (truth["b"].mean or 0.0) - (truth["a"].mean or 0.0) <= test.interval.high
    lower = outcome.evaluation.gates[0]
    assert found["a"].interval is not None and lower.observed == found["a"].interval.low
    assert "corrected by 90 labels" in lower.reason
    drops = [gate for gate in outcome.evaluation.gates if gate.baseline == "a"]
    assert drops[-1].observed == test.difference
    stored = json.loads((tmp_path / "out" / "results.json").read_text())
    assert [one["correction"]["method"] for one in stored["aggregates"]] == ["imputation", "imputation"]


def test_equal_input_gives_equal_bytes(tmp_path: Path) -> None:
    path = write(tmp_path, labelled=60)
    evaluate(path)
    first = (tmp_path / "out" / "results.json").read_bytes()
    evaluate(path)
    assert (tmp_path / "out" / "results.json").read_bytes() == first


def test_too_few_labels_in_the_pool_give_no_number_and_never_the_judges(tmp_path: Path) -> None:
    rows = [f"q{n},elsewhere,1," for n in range(20)] + ["q1,d1,1,", "q2,d1,0,"]
    outcome = evaluate(write(tmp_path, rows=rows, gates=[{"metric": "ndcg@3", "min": 0.0}]))
    for cell in outcome.evaluation.aggregates:
        assert cell.mean is None and cell.interval is None and cell.correction is not None
        assert cell.correction.reason == "only 2 judged pairs have labels, where at least 10 are needed"
    assert outcome.evaluation.comparisons == ()
    assert outcome.evaluation.verdict == "fail"
    notes = {note.code: note.message for note in outcome.evaluation.notes}
    assert notes["unused_labels"].endswith(": 20")
    assert "was not compared" in notes["too_few_labels"]


def test_labels_that_equal_the_qrels_show_no_error_of_the_judge(tmp_path: Path) -> None:
    outcome = evaluate(write(tmp_path, labelled=40, qrels=people_say))
    (note,) = [note for note in outcome.evaluation.notes if note.code == "no_judge_errors"]
    assert note.level == "warning"
    assert "all 40 labels are the grades in the dataset's qrels" in note.message
    assert "generate qrels --also-judged" in note.message


def test_grades_beyond_those_of_the_qrels_are_told(tmp_path: Path) -> None:
    rows = [f"q{n},d1,{4 * (n % 2)},0.5" for n in range(20)]
    (note,) = [note for note in evaluate(write(tmp_path, rows=rows)).evaluation.notes if note.code == "two_scales"]
    assert note.level == "warning"
    assert note.message.startswith("people's grades go up to 4, those of the qrels to 1;")


def test_without_probabilities_labels_stand_for_the_pairs_of_their_ranks(
    tmp_path: Path, truth: dict[str, Aggregate]
) -> None:
    rows = [f"q{q},d{d},{people_say(q, d)}" for q in range(QUERIES) for d in range(DOCUMENTS) if (q + d) % 3 == 0]
    for system, cell in cells(evaluate(write(tmp_path, rows=rows, header="query_id,doc_id,relevance"))).items():
        assert cell.interval is not None and cell.interval.low <= (truth[system].mean or 0.0) <= cell.interval.high


def test_adjudicated_grades_count_and_else_the_median(tmp_path: Path) -> None:
    rows = []
    for query, document in [(q, d) for q in range(QUERIES) for d in range(DOCUMENTS)]:
        grade = people_say(query, document)
        for who, given, settled in (("ann", 1 - grade, "no"), ("bo", grade, "yes"), ("cy", 1 - grade, "no")):
            rows.append(f"q{query},d{document},{given},{who},{settled}")
    by_many = cells(evaluate(write(tmp_path, rows=rows, header="query_id,doc_id,relevance,annotator,adjudicated")))
    folder = tmp_path / "one"
    folder.mkdir()
    by_one = cells(evaluate(write(folder)))
    assert {name: cell.mean for name, cell in by_many.items()} == {name: cell.mean for name, cell in by_one.items()}


def test_an_earlier_evaluation_is_not_compared_with_the_judges_numbers(tmp_path: Path) -> None:
    evaluate(write(tmp_path, labelled=90), save_as="main")
    gates = [{"metric": "ndcg@3", "baseline": "main", "max_drop": 0.1}]
    outcome = evaluate(write(tmp_path, labelled=90, gates=gates))
    assert outcome.evaluation.baselines == ()
    told = [note.message for note in outcome.evaluation.notes if note.code == "too_few_labels"]
    assert any("labels of pairs compare systems of one evaluation" in message for message in told)
    assert {gate.outcome for gate in outcome.evaluation.gates} <= {"inconclusive", "warn", "fail"}


def test_samples_are_not_needed(tmp_path: Path) -> None:
    kept = cells(evaluate(write(tmp_path, labelled=90)))
    left_out = cells(evaluate(write(tmp_path, labelled=90, samples="none")))
    assert {name: cell.mean for name, cell in kept.items()} == {name: cell.mean for name, cell in left_out.items()}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"metrics": [{"use": "token_f1", "labels": "people"}]}, "token_f1 needs labels of answers (not 'use: qrels')"),
        ({"metrics": [{"use": "rr", "labels": "people", "correction": "rogan_gladen"}]}, "'correction' is for labels"),
        (
            {"metrics": [{"use": "gm_map", "labels": "people"}]},
            "labels correct means, and gm_map is the geometric mean",
        ),
        ({"metrics": [{"use": "dcg", "labels": "people"}]}, "dcg has no highest value"),
        ({"metrics": [{"use": "target_rank", "labels": "people"}]}, "target_rank is not a metric of answers"),
        ({"labelled": 4}, "'people' has labels of only 4 pairs for ndcg@3; a corrected mean needs at least 10"),
        (
            {"labels": {"people": {"use": "qrels", "path": "people.csv", "scale": [0, 2]}}},
            "labels of pairs are grades, without a scale; remove 'scale'",
        ),
        ({"rows": ["q1,d1,0.5,"]}, "people.csv:2: a label needs a 'doc_id' and a grade that is a whole number"),
    ],
)
def test_what_cannot_be_corrected_shows_before_anything_runs(
    tmp_path: Path, changes: dict[str, Any], message: str
) -> None:
    done = invoke("validate", write(tmp_path, **changes))
    assert done.exit_code == 2 and message in done.output, done.output


def test_several_datasets_need_labels_that_name_theirs(tmp_path: Path) -> None:
    both = {name: {"use": "trec", "qrels": "machine.txt"} for name in ("one", "two")}
    done = invoke("validate", write(tmp_path, datasets=both))
    assert done.exit_code == 2 and "the label does not name its dataset" in done.output


def test_the_plan_counts_no_answers(tmp_path: Path) -> None:
    done = invoke("plan", write(tmp_path))
    assert done.exit_code == 0 and "labels people" in done.output and "answers with labels" not in done.output
