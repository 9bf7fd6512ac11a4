from __future__ import annotations

import json
from pathlib import Path

from rageval_spec.runner import Options, run
from rageval_spec.wording import format_p_value


def test_a_gate_depends_neither_on_the_order_of_systems_nor_on_metrics_without_a_gate(tmp_path: Path) -> None:
    support = Path(__file__).parents[3] / "specs" / "data" / "support"
    runs = {name: {"use": "file", "path": str(support / "runs" / f"{name}.run")} for name in ("keyword", "rewrite")}
    gate = {"metric": "ndcg@10", "system": "keyword", "baseline": "rewrite", "max_drop": 0.02, "alpha": 0.05}

    def reason(order: list[str], metrics: list[str]) -> str:
        """The gate's outcome, after a check that the table shows the gate's p-value for any order of systems."""
        spec = {
            "version": 1,
            "datasets": {"support": {"use": "beir", "path": str(support)}},
            "systems": {name: runs[name] for name in order},
            "metrics": metrics,
            "gates": [gate],
        }
        path = tmp_path / "spec.yaml"
        path.write_text(json.dumps(spec))
        evaluation = run(path, Options(quiet=True, output=tmp_path / "out")).evaluation
        (outcome,) = evaluation.gates
        shown = evaluation.comparison("support", order[1], "ndcg@10")
        assert shown is not None
        assert f"(Holm-adjusted {format_p_value(shown.p_adjusted)})" in outcome.reason
        return f"{outcome.outcome}: {outcome.reason}"

    alone = reason(["keyword", "rewrite"], ["ndcg@10"])
    assert alone.startswith("fail")
    for order in (["keyword", "rewrite"], ["rewrite", "keyword"]):
        assert reason(order, ["ndcg@10", "rr", "recall@20"]) == alone


def test_two_gates_on_one_pair_show_the_p_value_of_the_reports(tmp_path: Path) -> None:
    support = Path(__file__).parents[3] / "specs" / "data" / "support"
    runs = {name: {"use": "file", "path": str(support / "runs" / f"{name}.run")} for name in ("keyword", "rewrite")}
    drop = {"max_drop": 0.02, "alpha": 0.05}
    metrics = ["ndcg@10", "rr", "recall@20"]
    spec = {
        "version": 1,
        "datasets": {"support": {"use": "beir", "path": str(support)}},
        "systems": runs,
        "metrics": metrics,
        "gates": [
            {"metric": "ndcg@10", "system": "keyword", "baseline": "rewrite", **drop},
            *({"metric": metric, "system": "rewrite", "baseline": "keyword", **drop} for metric in metrics),
        ],
        "reports": ["terminal", "markdown", "junit", "json"],
    }
    path = tmp_path / "spec.yaml"
    path.write_text(json.dumps(spec))
    evaluation = run(path, Options(quiet=True, output=tmp_path / "out")).evaluation
    [shown] = [one for one in evaluation.every_comparison if one.metric == "ndcg@10"]
    told = f"Holm-adjusted {format_p_value(shown.p_adjusted)}"
    reasons = [gate.reason for gate in evaluation.gates if gate.metric == "ndcg@10"]
    assert len(reasons) == 2
    assert all(f"({told})" in reason for reason in reasons)
    assert {one.p_adjusted for one in evaluation.baselines if one.metric == "ndcg@10"} == {shown.p_adjusted}
    markdown = (tmp_path / "out" / "report.md").read_text()
    assert "| Holm-adjusted p |" in markdown
    assert f"| {told.rpartition(' ')[2]} |" in markdown
