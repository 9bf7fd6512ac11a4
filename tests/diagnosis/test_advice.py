from __future__ import annotations

import polars as pl

from rageval_spec.data.evaluation import Aggregate
from rageval_spec.diagnosis.advice import advise


def sentence(*causes: str, refusals: int = 0, **means: float) -> str | None:
    table = pl.DataFrame(
        {
            "dataset": "golden",
            "system": "bot",
            "query_id": [f"q{place}" for place in range(len(causes))],
            "cause": list(causes),
            "is_refusal": [place < refusals for place in range(len(causes))],
        }
    )
    aggregates = [Aggregate("golden", "bot", word, mean, None, 10, 10) for word, mean in means.items()]
    found = list(advise(table, aggregates, {word: word for word in means}))
    return found[0].sentence if found else None


def test_most_wrong_answers_lack_their_documents() -> None:
    said = sentence("retrieval", "retrieval", "both", "generation", "fine")
    assert said is not None
    assert said.startswith("3 of 4 wrong answers did not get what they needed: improve retrieval first")


def test_a_reranker_helps_where_few_contexts_are_useful() -> None:
    said = sentence("retrieval", "retrieval", context_precision=0.2)
    assert said is not None
    assert "reranker" in said


def test_refusals_although_the_answer_was_there_call_for_a_looser_prompt() -> None:
    said = sentence("generation", "generation", "generation", "fine", refusals=2)
    assert said == (
        "3 of 3 wrong answers had what they needed in their contexts, and 2 of them refuse: loosen the prompt first"
    )


def test_complete_but_long_answers_call_for_fewer_documents() -> None:
    said = sentence("generation", completeness=0.9, conciseness=0.3)
    assert said is not None
    assert said.endswith("retrieve fewer documents first")


def test_other_wrong_answers_call_for_a_better_prompt_or_model() -> None:
    said = sentence("generation", "fine")
    assert said is not None
    assert said.startswith("the one wrong answer had what it needed in its contexts: tighten the prompt")


def test_luck_is_told() -> None:
    said = sentence("lucky", "fine", "fine")
    assert said is not None
    assert said.startswith("1 of 3 answers is right although its contexts lack what was needed")


def test_where_all_is_well_there_is_nothing_to_say() -> None:
    assert sentence("fine", "fine", "undecided") is None


def test_one_refusal_is_told_in_the_singular() -> None:
    assert sentence("generation", "fine", refusals=1) == (
        "the one wrong answer had what it needed in its contexts, and it refuses: loosen the prompt first"
    )
