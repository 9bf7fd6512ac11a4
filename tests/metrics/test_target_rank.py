from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from click.testing import CliRunner

import rageval_spec
from rageval_spec import kernels
from rageval_spec.cli import cli
from rageval_spec.data.outcomes import Note
from rageval_spec.errors import UsageError
from rageval_spec.runner import Options, RunOutcome, run
from tests.metrics.scoring import missing_value, plugin, value_of, values_of
from tests.tiny import write_spec

GRADES = {"a": 2, "n": 0, "m": -1}


@pytest.mark.parametrize(
    ("measure", "ranking", "expected"),
    [
        ("target_rank", "xay", 2.0),
        ("target_rank", "a", 1.0),
        ("target_rank", "nmxa", 4.0),  # all documents above it count, judged or not
        ("target_rank", "xy", 0.0),  # not retrieved
        ("target_rank@3", "xya", 3.0),
        ("target_rank@2", "xya", 0.0),  # below the cutoff
        ("target_rank(judged_only=true)", "xnma", 2.0),  # x and m are removed
        ("target_rank(rel=3)", "a", 0.0),  # nothing is relevant from 3 on
    ],
)
def test_hand_worked(measure: str, ranking: str, expected: float) -> None:
    assert value_of(measure, GRADES, ranking) == expected


def test_without_exactly_one_target_there_is_no_rank() -> None:
    assert value_of("target_rank", {"a": 0, "b": -1}, "ab") == 0.0
    assert value_of("target_rank", {"a": 1, "b": 3}, "ab") == 0.0
    assert value_of("target_rank(rel=2)", {"a": 1, "b": 3}, "ab") == 2.0
    assert value_of("target_rank", {"a": 1, "b": 3}, "ab", relevance_level=2) == 2.0


def test_ranking_options_apply() -> None:
    assert value_of("target_rank", GRADES, "xya", depth=2) == 0.0
    assert value_of("target_rank", GRADES, "xna", judged_only=True) == 2.0
    assert value_of("target_rank", {"a": 1}, "qa", drop_self=True) == 1.0
    assert missing_value("target_rank", GRADES) == 0.0


def test_large_ranks_are_whole_numbers() -> None:
    docs = "".join(map(chr, range(0x4E00, 0x4E00 + 5000)))
    for target in (3, 49, 4999):
        assert value_of("target_rank", {docs[target]: 1}, docs) == target + 1


def test_the_mean_covers_only_retrieved_targets() -> None:
    judgements = {query: {"a": 1} for query in ("q1", "q2", "q3")}
    values = values_of("target_rank", judgements, {"q1": "xa", "q2": "xyzwa", "q3": "x"})
    assert values == {"q1": 2.0, "q2": 5.0, "q3": 0.0}
    results = rageval_spec.evaluate(
        judgements, {"q1": {"x": 2, "a": 1}, "q2": {"b": 3, "c": 2, "a": 1}, "q3": {"x": 1}}, ["target_rank"]
    )
    assert results.means == {"target_rank": 2.5}


def ends(scores: dict[str, float], measure: str = "target_rank", ties: Any = "trec_eval") -> tuple[float, ...]:
    """The rank of `t`, and its lowest and highest rank over all orders of ties."""
    qrels = pl.DataFrame({"query_id": ["q"], "doc_id": ["t"], "relevance": [1]})
    ranking = pl.DataFrame({"query_id": "q", "doc_id": list(scores), "score": list(scores.values())})
    ranked = kernels.evaluate_ranking(qrels, ranking, [measure], kernels.RankingOptions(tie_range=True, ties=ties))
    assert ranked.low is not None
    assert ranked.high is not None
    return ranked.values[0, 0], ranked.low[0, 0], ranked.high[0, 0]


def test_ties() -> None:
    # as float32 all but a are tied; with descending ids, u and v come before t
    scores = {"a": 9.0, "t": 1.00000001, "s": 1.0, "u": 1.0, "v": 1.0, "z": 0.5}
    assert ends(scores) == (4.0, 2.0, 5.0)
    assert ends(scores, ties="float64") == (2.0, 2.0, 2.0)
    assert ends(scores, "target_rank@4") == (4.0, 2.0, 0.0)  # retrieved as it is, missed in the worst order
    assert ends(scores, "target_rank@3") == (0.0, 2.0, 0.0)  # missed as it is, retrieved in the best order
    assert ends(scores, "target_rank@1") == (0.0, 0.0, 0.0)


def numbers(ranks: list[float], targets: list[float], level: str = "") -> pl.DataFrame:
    return pl.DataFrame({f"target_rank{level}": ranks, f"num_rel{level}": targets})


def test_reasons() -> None:
    metric: Any = plugin("target_rank")
    reasons = metric.unscorable(numbers([3.0, 0.0, 0.0, 0.0], [1.0, 1.0, 0.0, 2.0]))
    assert reasons.to_list() == [None, "missed", "no relevant document", "several relevant documents"]
    level: Any = plugin("target_rank", rel=2)
    assert level.unscorable(numbers([0.0], [1.0], "(rel=2)")).to_list() == ["missed"]
    assert metric.unscorable(numbers([], [])).to_list() == []


def note(rows: list[tuple[float | None, str | None, float | None, float | None]]) -> Note:
    """The text about `value, reason, tie_low, tie_high`."""
    names = ["value", "reason", "tie_low", "tie_high"]
    schema = {name: pl.String if name == "reason" else pl.Float64 for name in names}
    status = pl.when(pl.col("value").is_null()).then(pl.lit("unscorable")).otherwise(pl.lit("scored")).alias("status")
    metric: Any = plugin("target_rank")
    remark: Note = metric.remark_on(pl.DataFrame(rows, schema, orient="row").with_columns(status))
    return remark


def test_match_and_miss_share() -> None:
    found, missed = (1.0, None, 1.0, 1.0), (None, "missed", None, None)
    none = (None, "no relevant document", None, None)
    remark = note([found, found, found, missed, none])
    assert (remark.code, remark.count) == ("target_missed", 1)
    assert remark.message == (
        "the target was retrieved for 3 of 4 queries with one target (match share 0.750, miss share 0.250)"
    )
    assert "for 2 of 2 queries with one target (match share 1.000, miss share 0.000)" in note([found, found]).message
    assert note([none]).message == "no query has exactly one relevant document"


def test_what_ties_decide() -> None:
    remark = note([(4.0, None, 2.0, None), (None, "missed", 2.0, None), (4.0, None, 2.0, 5.0)])
    assert remark.message.endswith("; the order of tied documents decides this for 2")


# From a spec to its reports. q1 has two relevant documents, q2 and q4 have one, q3 has none. `good` has q2's target
# first and does not answer q4; `tied` has q2's target behind another and q4's first.


def evaluate(folder: Path, **sections: Any) -> RunOutcome:
    options = Options(output=folder / "out")
    return run(write_spec(folder, **{"metrics": ["target_rank@10"], "reports": ["json"], **sections}), options)


def rows(outcome: RunOutcome, system: str, column: str) -> dict[str, Any]:
    cell = outcome.evaluation.values.filter(pl.col("system") == system)
    return dict(cell.select("query_id", column).iter_rows())


def messages(outcome: RunOutcome, system: str) -> list[str]:
    notes = outcome.evaluation.notes
    return [note.message for note in notes if (note.code, note.system) == ("target_missed", system)]


def test_a_spec_gives_ranks_and_reasons_for_missing_ones(tmp_path: Path) -> None:
    outcome = evaluate(tmp_path)
    assert rows(outcome, "good", "value") == {"q1": None, "q2": 1.0, "q3": None, "q4": None}
    assert rows(outcome, "good", "status") == {
        "q1": "unscorable", "q2": "scored", "q3": "unscorable", "q4": "unscorable",
    }  # fmt: skip
    assert rows(outcome, "good", "reason") == {
        "q1": "several relevant documents", "q2": None, "q3": "no relevant document", "q4": "missed",
    }  # fmt: skip
    assert rows(outcome, "tied", "value") == {"q1": None, "q2": 2.0, "q3": None, "q4": 1.0}
    assert messages(outcome, "good") == [
        "target_rank@10: the target was retrieved for 1 of 2 queries with one target "
        "(match share 0.500, miss share 0.500)"
    ]
    means = {aggregate.system: (aggregate.mean, aggregate.scored) for aggregate in outcome.evaluation.aggregates}
    assert means == {"good": (1.0, 1), "tied": (1.5, 2)}
    report = json.loads((tmp_path / "out" / "results.json").read_text())
    assert "match share 0.500" in json.dumps(report["notes"])


def test_settings_of_the_spec_apply(tmp_path: Path) -> None:
    skipped = evaluate(tmp_path, ranking={"missing": "skip", "no_relevant": "skip"})
    assert rows(skipped, "good", "reason")["q4"] == "the query is not in the run"
    assert rows(skipped, "good", "reason")["q3"] == "the query has no relevant document"
    assert "for 1 of 1 queries" in messages(skipped, "good")[0]
    assert rows(evaluate(tmp_path, ranking={"depth": 1}), "tied", "reason")["q2"] == "missed"
    assert rows(evaluate(tmp_path, ranking={"judged_only": True}), "tied", "value")["q2"] == 1.0
    # at relevance level 2, d1 is q1's only target; it is tied with another document and comes second by descending id
    level = evaluate(tmp_path, ranking={"relevance_level": 2})
    assert rows(level, "tied", "value") == {"q1": 2.0, "q2": None, "q3": None, "q4": None}
    assert rows(level, "tied", "tie_low")["q1"] == 1.0
    assert rows(level, "tied", "tie_high")["q1"] == 2.0


def test_ties_that_decide_whether_a_target_is_retrieved(tmp_path: Path) -> None:
    outcome = evaluate(tmp_path, metrics=[{"use": "target_rank", "cutoff": 1, "rel": 2, "as": "rank"}])
    assert rows(outcome, "tied", "reason")["q1"] == "missed"
    assert rows(outcome, "tied", "tie_low")["q1"] == 1.0
    assert rows(outcome, "tied", "tie_high")["q1"] is None
    assert messages(outcome, "tied") == [
        "rank: the target was retrieved for 0 of 1 queries with one target (match share 0.000, miss share 1.000); "
        "the order of tied documents decides this for 1"
    ]


def test_a_lower_rank_is_better_in_gates_and_comparisons(tmp_path: Path) -> None:
    gates = [{"metric": "rank", "target": 1.2, "min_scored": 0.1}]
    (tmp_path / "data").mkdir()
    outcome = evaluate_two(tmp_path, gates)
    (comparison,) = outcome.evaluation.comparisons
    assert (comparison.system, comparison.difference, comparison.wins, comparison.losses) == ("late", 1.0, 0, 2)
    assert [gate.outcome for gate in outcome.evaluation.gates] == ["pass", "warn"]


def evaluate_two(folder: Path, gates: list[dict[str, Any]]) -> RunOutcome:
    """Two queries; `early` ranks their target first, and `late` ranks it second."""
    (folder / "data" / "judged.qrels").write_text("q1 0 a 1\nq2 0 a 1\n")
    (folder / "data" / "early.run").write_text("q1 Q0 a 1 9 t\nq2 Q0 a 1 9 t\n")
    (folder / "data" / "late.run").write_text("q1 Q0 x 1 9 t\nq1 Q0 a 2 8 t\nq2 Q0 x 1 9 t\nq2 Q0 a 2 8 t\n")
    return evaluate(
        folder,
        datasets={"two": {"use": "trec", "qrels": "data/judged.qrels"}},
        systems={name: {"use": "file", "path": f"data/{name}.run"} for name in ("early", "late")},
        metrics=[{"use": "target_rank", "as": "rank"}],
        gates=gates,
    )


def test_comparisons_outside_a_spec_treat_lower_ranks_as_better() -> None:
    qrels = {query: {"a": 1} for query in ("q1", "q2", "q3", "q4")}
    early = {"q1": {"a": 9}, "q2": {"a": 9}, "q3": {"x": 9, "a": 8}, "q4": {"a": 1}}
    late = {"q1": {"x": 9, "a": 8}, "q2": {"x": 9, "y": 8, "a": 7}, "q3": {"a": 9}, "q4": {"x": 1}}
    (pair,) = rageval_spec.compare(qrels, {"early": early, "late": late}, ["target_rank"]).pairs
    assert (pair.queries, pair.wins, pair.losses) == (3, 1, 2)  # not q4, because one system misses its target
    assert pair.difference == pytest.approx(2 / 3)
    with pytest.raises(UsageError, match="target_rank@1: no query has a rank in both misses and early"):
        rageval_spec.compare(qrels, {"misses": {"q1": {"x": 1}}, "early": early}, ["target_rank@1"])


def test_the_terminal_says_how_many_targets_were_missed(tmp_path: Path) -> None:
    path = write_spec(tmp_path, metrics=["target_rank@10", "rr"], reports=["terminal"])
    result = CliRunner().invoke(cli, ["run", str(path), "-o", str(tmp_path / "out")])
    assert result.exit_code == 0, result.output
    assert "match share 0.500, miss share 0.500" in " ".join(result.output.split())


def test_name() -> None:
    assert plugin("target_rank").name == "target_rank"
    assert plugin("target_rank", cutoff=10, rel=2).name == "target_rank(rel=2)@10"
    assert kernels.parse_measure("Target-Rank@10").text == "target_rank@10"


def test_missed_targets_have_the_rank_0_and_queries_without_one_target_have_none() -> None:
    values = pl.DataFrame({
        "value": [3.0, None, None, None],
        "status": ["scored", "unscorable", "unscorable", "error"],
        "reason": [None, "missed", "several relevant documents", "HTTP 500"],
    })  # fmt: skip
    found = plugin("target_rank").find_ranks(values)
    assert found is not None
    assert found.to_list() == [3, 0]


def test_reports_and_results_count_the_ranks(tmp_path: Path) -> None:
    outcome = evaluate(tmp_path, metrics=["target_rank", {"use": "rr", "as": "first"}, "ndcg@10"])
    counted = outcome.evaluation.target_ranks
    assert {one.metric for one in counted} == {"target_rank", "first"}
    for one in counted:
        values = outcome.evaluation.values.filter(system=one.system, metric=one.metric)
        assert sum(one.ranks.values()) == one.queries
        assert one.ranks["none"] == values.filter((pl.col("value") == 0) | (pl.col("reason") == "missed")).height
        assert one.ranks["1"] == values.filter(pl.col("value") == 1).height
    assert rageval_spec.load_results(tmp_path / "out").data.target_ranks == counted
