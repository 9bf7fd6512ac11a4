"""Evaluations made by hand, for tests of the report `html`: answers with claims, documents, and everything optional."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import polars as pl

from rageval_spec.data.chat import ReplyCounts
from rageval_spec.data.evaluation import (
    Aggregate,
    Comparison,
    Evaluation,
    JudgingCost,
    Provenance,
    SliceGap,
    SliceResult,
)
from rageval_spec.data.outcomes import Advice, CauseCount, Diagnosis, GateOutcome, Interval, Note
from rageval_spec.data.tables import SampleTable, empty_samples
from tests.sample_evaluation import alter

ATTACK = '</script><script>alert(1)</script><img src=x onerror="alert(2)">{{ 7 * 7 }}'
ARABIC = "كيف أسترد أموالي خلال 14 يومًا؟"
CHINESE = "如何在三十天内申请退款？请说明步骤。"
QUESTIONS = (
    "How do I get my money back?",
    ARABIC,
    CHINESE,
    ATTACK,
    "Why did the export fail?",
    "Who can see invoices?",
)
ANSWER = "Refunds take 14 days \U0001f600. Annual plans are never refunded. Call us at night."
CONTEXT = "Monthly plans can be refunded within 14 days of the first payment, annual plans within 30 days."
OTHER = "Invoices are under Settings > Billing. " * 12
SYSTEMS = ("v1", "v2")
METRICS = ("faithfulness", "token_f1", "latency")


def make_page_evaluation(count: int = len(QUESTIONS)) -> Evaluation:
    """Two systems that answer `count` questions: v2 fails one, and is worse than v1 on the even ones."""
    return Evaluation(
        name="support-bot",
        datasets=("golden",),
        systems=SYSTEMS,
        metrics=METRICS,
        aggregates=tuple(_aggregate(system, metric) for metric in METRICS for system in SYSTEMS),
        comparisons=(
            Comparison("golden", "faithfulness", "v2", "v1", -0.2, Interval(-0.3, -0.1), 0.001, 0.002, count, 0, 3),
            Comparison("golden", "token_f1", "v2", "v1", 0.01, Interval(-0.05, 0.07), 0.6, 0.7, count, 2, 2),
        ),
        gates=(
            GateOutcome(0, "golden", "v1", "faithfulness", "pass", "≥ 0.5", 0.8, "faithfulness of v1 is 0.8000"),
            GateOutcome(
                1,
                "golden",
                "v2",
                "faithfulness",
                "fail",
                "drop from v1 ≤ 0.02",
                -0.2,
                "is 0.2000 below v1",
                baseline="v1",
                max_drop=0.02,
            ),
            GateOutcome(2, "golden", "v2", "latency", "warn", "≤ 3.0, target 1.0", 1.5, "latency of v2 is 1.5000"),
        ),
        notes=(Note("refusals", "1 of 6 questions could not be scored", "golden", "v2", 1, "warning"),),
        values=make_page_values(count),
        provenance=Provenance(
            spec_digest="0123456789abcdef" * 4,
            settings={"statistics": {"seed": 20240601}, "ranking": {"relevance_level": 1}},
            versions={"rageval-spec": "1.2.3"},
            models={"judge": {"use": "chat", "model": "llama"}},
        ),
        lower_is_better=("latency",),
        units={"latency": "seconds"},
        sample_table=SampleTable(lambda: [make_page_samples(count)]),
    )


def make_full_evaluation() -> Evaluation:
    """The same with everything that is optional: slices, causes, summaries, digests, judging, prompts and the spec."""
    evaluation = make_page_evaluation()
    hard = [replace(one, slice="difficulty=hard", scored=3, total=3) for one in evaluation.aggregates]
    shares = (("generation", 3), ("fine", 2), ("undecided", 1))
    counts = tuple(
        CauseCount("golden", "v2", cause, count, 6, count / 6, Interval(count / 12, count / 4))  # type: ignore[arg-type]
        for cause, count in shares
    )
    return alter(
        evaluation,
        slices=(SliceResult("golden", "difficulty=hard", "difficulty", "difficulty is hard", 3, tuple(hard), ()),),
        weakest=(
            SliceGap(
                "golden", "v2", "faithfulness", "difficulty=hard", 0.4, 0.8, -0.4, Interval(-0.6, -0.2), 0.001, 0.01, 3
            ),
        ),
        diagnosis=Diagnosis(
            retrieval="context_recall",
            correctness="token_f1",
            faithfulness="faithfulness",
            wrong_below=0.5,
            right_from=0.7,
            counts=counts,
            advice=(Advice("golden", "v2", "Tighten the prompt: 3 of 6 answers do not follow their documents."),),
        ),
        summaries={"faithfulness": "The share of the answer's claims that its documents support."},
        digests={"golden": {"questions": "ab" * 32}},
        judging={"judge": JudgingCost(12, 3400, 560, 0.0123)},
        replies={"judge": ReplyCounts(first=7, later=2, never=1, repeats=5)},
        prompts={"strict.verdicts": "cd" * 32},
        spec={"models": {"judge": {"api_key": "${secret:JUDGE_KEY}"}}, "metrics": ["faithfulness"]},
    )


def make_page_samples(count: int) -> pl.DataFrame:
    rows = [_sample(system, number) for system in SYSTEMS for number in range(count)]
    schema = empty_samples().schema
    frame = pl.DataFrame([{key: row[key] for key in row if key in schema} for row in rows], schema=schema)
    extra = {name: [row[name] for row in rows] for name in ("scores", "columns", "slices", "status", "cause")}
    kinds: dict[str, Any] = {"scores": pl.List(pl.Float64), "slices": pl.List(pl.String)}
    made = [pl.Series(name, values, dtype=kinds.get(name, pl.String)) for name, values in extra.items()]
    return frame.with_columns(made)


def _sample(system: str, number: int) -> dict[str, Any]:
    fails = system == "v2" and number == 4
    return {
        "dataset": "golden",
        "system": system,
        "query_id": f"q{number}",
        "question": _question(number),
        "answer": None if fails else ATTACK if number == 3 else ANSWER,
        "contexts": [CONTEXT, OTHER],
        "context_ids": ["refunds", f"other-{number % 3}"],
        "references": ["Within 14 days."],
        "relevant": [
            {"doc_id": "refunds", "relevance": 2},
            {"doc_id": "elsewhere", "relevance": 1},
            {"doc_id": f"other-{number % 3}", "relevance": 0},
        ],
        "error": "HTTP 500" if fails else None,
        "seconds": 1.25,
        "scores": [9.5, 3.25],
        "columns": json.dumps({"difficulty": "hard", "note": ATTACK}),
        "slices": ["difficulty=hard"] if number % 2 else [],
        "status": "failed" if fails else "answered",
        "cause": "generation" if system == "v2" and number % 2 == 0 else "fine",
    }


def _question(number: int) -> str:
    return QUESTIONS[number] if number < len(QUESTIONS) else f"Question {number} about plan {number % 17}?"


def make_page_values(count: int) -> pl.DataFrame:
    rows: list[Sequence[Any]] = []
    for system in SYSTEMS:
        for number in range(count):
            worse = 0.25 if system == "v2" and number % 2 == 0 else 0.0
            is_error = system == "v2" and number == 4
            value = None if is_error else 0.9 - worse - 0.01 * (number % 7)
            status, reason = ("error", "there is no answer: HTTP 500") if is_error else ("scored", None)
            details = None if is_error or number == 3 else json.dumps(DETAILS)
            rows.append(("golden", system, "faithfulness", f"q{number}", value, status, reason, details))
            rows.append(("golden", system, "token_f1", f"q{number}", 0.5, "scored", None, None))
            rows.append(("golden", system, "latency", f"q{number}", 1.0 + number / 10, "scored", None, None))
    columns = ("dataset", "system", "metric", "query_id", "value", "status", "reason", "details")
    kinds: dict[str, Any] = {"value": pl.Float64}
    return pl.DataFrame(rows, schema={name: kinds.get(name, pl.String) for name in columns}, orient="row")


def _place(claim: str) -> dict[str, int]:
    start = ANSWER.index(claim)
    return {"start": start, "end": start + len(claim)}


DETAILS = {
    "score": 0.5,
    "raw": f"<b>{ATTACK}</b>",
    "claims": [
        {
            "text": "Refunds take 14 days \U0001f600.",
            **_place("Refunds take 14 days \U0001f600."),
            "verdict": "supported",
            "score": 0.9,
            "source": 0,
            "evidence": "refunded within 14  days",
        },
        {
            "text": "Annual plans are never refunded.",
            **_place("Annual plans are never refunded."),
            "verdict": "contradicted",
            "score": 0.1,
            "source": 0,
            "evidence": "annual plans within 30 days",
            "reason": "The document allows it within 30 days.",
        },
        {"text": "Call us at night.", **_place("Call us at night."), "verdict": "not_enough_info", "score": 0.2},
    ],
}


def _aggregate(system: str, metric: str) -> Aggregate:
    mean = {"faithfulness": 0.8, "token_f1": 0.5, "latency": 1.5}[metric] - (0.2 if system == "v2" else 0)
    return Aggregate("golden", system, metric, mean, Interval(mean - 0.1, mean + 0.1), 5, 6)
