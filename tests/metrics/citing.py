"""Answers with citations for tests: a statement is supported if a cited context has all of its letters."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from rageval_spec.data.findings import Claim, Finding
from rageval_spec.data.samples import Sample
from tests.metrics.judges import RuleJudge, sample

RECORDED = [json.loads(line) for line in (Path(__file__).parent / "citation_scores.jsonl").read_text().splitlines()]
"""Answers of random words and the scores that others' code gives them, each a function of the file named here.

`alce`: recall and precision by `compute_autoais` in eval.py of princeton-nlp/ALCE at 3fdc2ed0, whose model was replaced
by the rule of `reading` (precision is 0 where no citation counts). `ragdoll`: weighted precision and recall by
`support_metric` in src/pi_trec/support/metrics.py of castorini/RAGDoll at 7d0fc489, the code of TREC's RAG track.
`veriscore`: F1@k by `get_avg_numbers` in veriscore/utils.py of Yixiao-Song/VeriScore at ed20098d.
"""


def reading(partial: bool = False) -> RuleJudge:
    """A judge that finds the words of a statement in its passage; each is a claim if support can be partial."""

    def say(one: Sample) -> Finding:
        words = (one.answer or "").lower().strip(".").split()
        (passage,) = one.contexts or ("",)
        met = [word in passage.lower().split() for word in words]
        met = met if partial else [all(met)]
        claims = [
            Claim(str(place), float(one), "supported" if one else "not_enough_info") for place, one in enumerate(met)
        ]
        return Finding(sum(met) / len(met), tuple(claims))

    return RuleJudge(say=say)


def answer(text: str, *contexts: str, **parts: Any) -> Sample:
    return sample(answer=text, contexts=contexts, **parts)
