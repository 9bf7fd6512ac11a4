"""Sheets made by hand, for tests of forms."""

from __future__ import annotations

from typing import Any

from rageval_spec.review.criteria import ReviewCriterion, make_criterion
from rageval_spec.review.tasks import ReviewClaim, ReviewContext, ReviewSheet, ReviewTask
from tests.sample_evaluation import HOSTILE


def make_task(query_id: str = "q1", **changes: Any) -> ReviewTask:
    """A task with two contexts and two claims that the judge of `faithfulness` found."""
    parts: dict[str, Any] = {
        "dataset": "golden",
        "system": "v1",
        "query_id": query_id,
        "question": f"Question {query_id}?",
        "answer": "It is 120 m long.\nIt was built in 1911.",
        "contexts": (ReviewContext("It is 120 m long.", "length"), ReviewContext("It opened in 1909.")),
        "references": ("It was built in 1909.",),
        "claims": (
            ReviewClaim("faithfulness", 0, "It is 120 m long.", verdict="supported", score=1.0),
            ReviewClaim("faithfulness", 1, "It was built in 1911.", verdict="contradicted", score=0.0),
        ),
        "judged": {"faithfulness": 0.5, "fluency": None},
        "reasons": ("random", "low"),
        "probability": 0.25,
        "slices": ("hard",),
    }
    return ReviewTask(**parts | changes)


FAITHFULNESS = make_criterion("faithfulness")
FLUENCY = make_criterion("fluency", "1..5")
CLAIMS = make_criterion("faithfulness", "claims")


def make_sheet(*criteria: ReviewCriterion, tasks: tuple[ReviewTask, ...] | None = None, **changes: Any) -> ReviewSheet:
    """A sheet of two tasks, by default with a yes or no and a grade."""
    tasks = tasks or (make_task("q1"), make_task("007"))
    return ReviewSheet("bridges", "rageval-results", "0" * 64, tasks, criteria or (FAITHFULNESS, FLUENCY), **changes)


def make_hostile_sheet() -> ReviewSheet:
    """A sheet whose texts try to break out of a form."""
    texts = ('=HYPERLINK("http://x")', "+49 123", "-1", "@cmd", "\t=1", HOSTILE, "\ud800", "x" * 40_000, "$question")
    return make_sheet(
        tasks=tuple(make_task(text[:200], question=text, answer=text, references=(text,)) for text in texts),
        annotator="=ann",
    )
