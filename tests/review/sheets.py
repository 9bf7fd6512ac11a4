"""Review sheets made by hand, for tests of the page: claims, contexts, other scripts and hostile texts."""

from __future__ import annotations

from rageval_spec.review.criteria import make_criterion
from rageval_spec.review.tasks import ReviewClaim, ReviewContext, ReviewSheet, ReviewTask

ATTACK = '</script><script>alert(1)</script><img src=x onerror="alert(2)">{{ 7 * 7 }}\u2028<!--'
ARABIC = "كيف أسترد أموالي خلال 14 يومًا؟"
CHINESE = "如何在三十天内申请退款？请说明步骤。"
HALF = "\ud83d"
ANSWER = "Refunds take 14 days \U0001f600. Annual plans are never refunded [2]. Call us at night."
CLAIMS = ("Refunds take 14 days \U0001f600.", "Annual plans are never refunded [2].", "Call us at night.")
REFUNDS = "Monthly plans can be refunded within 14 days of the first payment, annual plans within 30 days."
INVOICES = "Invoices are under Settings > Billing. " * 60
CRITERIA = (make_criterion("faithfulness", "claims"), make_criterion("completeness"), make_criterion("fluency", "1..5"))


def make_claims(answer: str = ANSWER) -> tuple[ReviewClaim, ...]:
    verdicts = ("supported", "contradicted", "not_enough_info")
    return tuple(
        ReviewClaim(
            "faithfulness",
            number,
            text,
            start=answer.index(text),
            end=answer.index(text) + len(text),
            verdict=verdicts[number],
            score=0.5,
            reason="The contexts allow it within 30 days." if number == 1 else None,
            evidence="annual plans within 30 days" if number == 1 else None,
        )
        for number, text in enumerate(CLAIMS)
    )


def make_task(query_id: str, question: str = "How do I get my money back?", **keys: object) -> ReviewTask:
    usual: dict[str, object] = {
        "answer": ANSWER,
        "contexts": (
            ReviewContext(INVOICES, "invoices"),
            ReviewContext(REFUNDS, "refunds"),
            ReviewContext(ARABIC, "عربي"),
            ReviewContext("", None),
            ReviewContext("Exports are made at night."),
        ),
        "references": ("Within 14 days of the first payment.",),
        "claims": make_claims(),
        "judged": {"faithfulness": 0.333, "completeness": None},
        "reasons": ("low", "unsure"),
        "probability": 0.25,
    }
    return ReviewTask("golden", "assistant", query_id, question, **(usual | keys))  # type: ignore[arg-type]


def make_sheet(count: int = 6, *, shows_judge: bool = False) -> ReviewSheet:
    """Claims, other scripts, hostile texts, a long answer, and an answer of nothing; then more like the first."""
    tasks = [
        make_task("q0"),
        make_task("q1", ARABIC, answer=ARABIC, claims=(), contexts=(), references=()),
        make_task("q2", CHINESE, answer=f"请在三十天内联系客服。{HALF}", claims=()),
        make_task(
            "q3", ATTACK, answer=ATTACK, contexts=(ReviewContext(ATTACK, ATTACK),), references=(ATTACK,), claims=()
        ),
        make_task("q4", "Why did the export fail?", answer="Word after word. " * 3000, claims=()),
        make_task("q5", "Who can see invoices?", answer="", claims=()),
    ]
    tasks += [make_task(f"q{number}", f"Question {number} about plan {number % 17}?") for number in range(6, count)]
    return ReviewSheet("support-bot", "results", "0" * 16, tuple(tasks[:count]), CRITERIA, shows_judge=shows_judge)
