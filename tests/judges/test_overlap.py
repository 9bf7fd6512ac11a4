from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rageval_spec.data.findings import Criterion, Finding
from rageval_spec.data.samples import Sample
from rageval_spec.errors import UsageError
from rageval_spec.judges.overlap import OverlapJudge, OverlapNode
from rageval_spec.metrics.shared.judged_metrics import REFERENCE_IN_ANSWER
from rageval_spec.plugin import Context
from tests.judges.fakes import FAITHFULNESS, PRECISION, RUBRIC

TOWER = "The tower opened in 1889."
"""26 points: the 1, tower 5, opened 5, in 1, 1889 10, and 1 for each of four pairs of neighbours."""


def make_judge(threshold: float | None = None) -> OverlapJudge:
    return OverlapJudge(OverlapNode(use="overlap", threshold=threshold), Context("overlap"))


def judge(answer: str, *contexts: str, threshold: float | None = None) -> Finding:
    sample = Sample("q1", "When did it open?", answer=answer, contexts=contexts)
    return find(make_judge(threshold), FAITHFULNESS, sample)


def find(overlap: OverlapJudge, criterion: Criterion, sample: Sample) -> Finding:
    [finding] = overlap.assess(criterion, [sample]).findings
    assert isinstance(finding, Finding)
    return finding


def test_a_claim_scores_halfway_between_the_best_source_and_all() -> None:
    # "the tower" and "opened" give 12 points in the first context, "in 1889" 12 in the second; together 24.
    [claim] = judge(TOWER, "It rained. The opening of the tower was late.", "Born in 1,889.").claims
    assert claim.score == pytest.approx((12 / 26 + 24 / 26) / 2)
    assert (claim.text, claim.start, claim.end) == (TOWER, 0, len(TOWER))
    assert (claim.source, claim.evidence) == (0, "The opening of the tower was late.")
    assert claim.verdict == "supported"


def test_the_score_is_the_mean_over_sentences() -> None:
    answer = f"{TOWER} Whales sing."
    finding = judge(answer, "Built early. The tower opened in 1889, they say.")
    assert [claim.score for claim in finding.claims] == [1, 0]
    assert finding.score == 0.5
    assert [answer[claim.start : claim.end] for claim in finding.claims] == [TOWER, "Whales sing."]
    assert [claim.verdict for claim in finding.claims] == ["supported", "not_enough_info"]
    assert (finding.claims[1].source, finding.claims[1].evidence) == (None, None)


def test_with_a_threshold_the_score_is_the_share_of_claims_that_reach_it() -> None:
    answer = f"{TOWER} Whales sing. Dogs bark."
    finding = judge(answer, TOWER, "Dogs run.", threshold=0.4)
    assert finding.score == pytest.approx(2 / 3)
    assert [claim.verdict for claim in finding.claims] == ["supported", "not_enough_info", "supported"]


def test_a_wrong_number_costs_more_than_a_wrong_word() -> None:
    number = judge("The tower opened in 1888.", TOWER).score
    word = judge("The tower closed in 1889.", TOWER).score
    assert number is not None and word is not None and number < word < 1


def test_sentences_without_content_words_claim_nothing() -> None:
    finding = judge(f"It is so. {TOWER}", TOWER)
    assert [claim.text for claim in finding.claims] == [TOWER]
    assert finding.score == 1


@pytest.mark.parametrize(
    ("answer", "reason"), [("", "the answer has no text"), ("No.", "the answer has no content word")]
)
def test_without_claims_there_is_no_score(answer: str, reason: str) -> None:
    assert judge(answer, TOWER) == Finding(None, reason=reason)


@pytest.mark.parametrize("contexts", [(), ("",), (" ", "\n")])
def test_without_contexts_nothing_is_supported(contexts: tuple[str, ...]) -> None:
    finding = judge(TOWER, *contexts)
    assert (finding.score, finding.reason) == (0, "the contexts have no text")
    assert [(claim.text, claim.score) for claim in finding.claims] == [(TOWER, 0)]


def test_in_scripts_without_spaces_pairs_of_characters_support_claims() -> None:
    # Three pairs of characters are 15 points, their neighbours 2; the context has the first two, side by side.
    assert judge("東京都庁", "東京都の人口").score == 11 / 17
    assert judge("東京都庁", "Tokyo").score == 0


def test_findings_are_in_the_order_of_the_samples() -> None:
    samples = [
        Sample("q1", "?", answer=TOWER, contexts=(TOWER,)),
        Sample("q2", "?", answer="", contexts=(TOWER,)),
        Sample("q3", "?", answer="Whales sing. Dogs bark.", contexts=("dogs bark", "whales sing")),
    ]
    assessment = make_judge().assess(FAITHFULNESS, samples)
    assert assessment.findings == [find(make_judge(), FAITHFULNESS, sample) for sample in samples]
    assert [claim.source for claim in find(make_judge(), FAITHFULNESS, samples[2]).claims] == [1, 0]


def test_a_contexts_usefulness_is_the_share_of_the_questions_words_that_it_has() -> None:
    # When 1, did 1, the 1, tower 5, open 5, and four pairs: 17; "tower" and "opened" are 10 of them.
    sample = Sample("q1", "When did the tower open?", contexts=("The tower opened.", "Dogs", ""))
    finding = find(make_judge(), PRECISION, sample)
    assert [claim.score for claim in finding.claims] == [(1 + 5 + 5 + 1 + 1) / 17, 0, 0]
    assert [claim.verdict for claim in finding.claims] == ["supported", "not_enough_info", "not_enough_info"]
    assert finding.claims[2].reason == "it has no text"
    assert finding.score == pytest.approx(13 / 17 / 3)


def test_usefulness_that_cannot_be_scored_has_a_reason() -> None:
    overlap = make_judge()
    blank = find(overlap, PRECISION, Sample("q1", "What is it?", contexts=(TOWER,)))
    assert blank == Finding(None, reason="the question has no content word")
    assert find(overlap, PRECISION, Sample("q1", "Tower?", contexts=())).reason == "the contexts have no text"


def test_claims_are_sentences_and_entities_are_names() -> None:
    overlap = make_judge()
    assert overlap.abilities == {"support", "usefulness", "claims", "entities"}
    assert overlap.claims([("Why?", "One. Two."), ("", "")]) == [("One.", "Two."), ()]
    assert overlap.entities(["Paris had 1,200 bridges.", ""]) == [("Paris", "1200"), ()]


def test_grades_are_refused() -> None:
    with pytest.raises(UsageError, match=r"judges.overlap \(use: overlap\) cannot grade"):
        make_judge().assess(RUBRIC, [])


def test_it_agrees_with_people_more_often_than_chance(shared_data: Path) -> None:
    with gzip.open(shared_data / "faithfulness" / "begin.jsonl.gz", "rt", encoding="utf-8") as lines:
        rows = [row for row in map(json.loads, lines) if row["label"] is not None]
    samples = [Sample(row["id"], "", answer=row["response"], contexts=tuple(row["contexts"])) for row in rows]
    findings = make_judge().assess(FAITHFULNESS, samples).findings
    scored = [
        (finding.score, row["label"])
        for finding, row in zip(findings, rows, strict=True)
        if isinstance(finding, Finding) and finding.score is not None
    ]
    assert len(scored) > 0.99 * len(rows)
    assert area_under_curve(scored) > 0.94


def area_under_curve(scored: list[tuple[float, int]]) -> float:
    """The probability that a row of label 1 has a higher score than one of label 0; ties count half."""
    right = [score for score, label in scored if label == 1]
    wrong = [score for score, label in scored if label == 0]
    wins = sum((first > second) + (first == second) / 2 for first in right for second in wrong)
    return wins / len(right) / len(wrong)


# --- Numbers and names ---


def judge_worst(answer: str, *contexts: str, threshold: float | None = None) -> Finding:
    overlap = OverlapJudge(OverlapNode(use="overlap", threshold=threshold, combine="worst"), Context("overlap"))
    return find(overlap, FAITHFULNESS, Sample("q1", "When did it open?", answer=answer, contexts=contexts))


def test_the_reason_names_numbers_and_names_that_no_context_contains() -> None:
    finding = judge(f"{TOWER} In 1,999, Marie Curie met Ada for $5. Dogs bark.", TOWER, "Marie paid 5 dollars in 2000.")
    assert [claim.reason for claim in finding.claims] == [None, "not in the contexts: 1,999, Marie Curie, Ada", None]
    assert finding.reason == "not in the contexts: 1,999, Marie Curie, Ada"


def test_the_reason_of_the_answer_names_each_number_and_name_once() -> None:
    assert judge("He met Ada and Bob. He met Ada in 2020.", TOWER).reason == "not in the contexts: Ada, Bob, 2020"
    assert judge(TOWER, TOWER).reason is None


def test_the_reason_says_where_the_numbers_and_names_were_looked_up() -> None:
    sample = Sample("q1", "?", answer="It opened late.", references=("The tower opened in 1889.",))
    [claim] = find(make_judge(), REFERENCE_IN_ANSWER, sample).claims
    assert claim.reason == "not in the answer: 1889"


def test_a_missing_number_changes_no_score_below_that_of_a_supported_claim() -> None:
    # The tower opened in: 13 of 26 points, and three of four pairs; 1888 is in no source.
    [claim] = judge("The tower opened in 1888.", TOWER).claims
    assert claim.score == 15 / 26


POPULATION = "As of the census, the capital city of the province had a population of 1,345,596 people in 2010."


@pytest.mark.parametrize(
    ("answer", "missing"),
    [
        (POPULATION.replace("1,345,596", "8,352,603").replace("2010", "2017"), "8,352,603, 2017"),
        (POPULATION.replace("1,345,596", "8,352,603"), "8,352,603"),
        (POPULATION.replace("1,345,596", "1,345,595"), "1,345,595"),
        (POPULATION.replace("2010", "2011"), "2011"),
        (POPULATION.replace("2010", "May 2010"), "May 2010"),
        (POPULATION.replace("province", "province of Quebec"), "Quebec"),
        (POPULATION.replace("1,345,596 people", "15% of all people"), "15%"),
    ],
)
@pytest.mark.parametrize("combine", ["mean", "worst"])
def test_a_claim_with_another_number_date_or_name_is_not_supported(answer: str, missing: str, combine: str) -> None:
    """Its words alone would give it 0.68 and more."""
    for threshold, highest in ((None, 0.82), (0.3, 0)):
        node = OverlapNode.model_validate({"use": "overlap", "combine": combine, "threshold": threshold})
        found = find(OverlapJudge(node, Context("overlap")), FAITHFULNESS, as_sample(answer))
        [claim] = found.claims
        assert (claim.verdict, claim.reason) == ("not_enough_info", f"not in the contexts: {missing}")
        assert found.score is not None
        assert found.score <= highest
    assert judge(answer, POPULATION).score == pytest.approx(min(0.64, judge(answer, POPULATION).score or 1))


def as_sample(answer: str) -> Sample:
    return Sample("q1", "How many people?", answer=answer, contexts=(POPULATION,))


@pytest.mark.parametrize(
    "answer",
    [
        *[POPULATION, POPULATION.replace("1,345,596", "1345596"), POPULATION.replace("1,345,596", "1.345.596")],
        POPULATION.replace("As of the census, the", "The [1]"),
        POPULATION.replace("1,345,596", "1.345596 million"),
    ],
)
def test_the_same_numbers_in_other_forms_are_supported(answer: str) -> None:
    assert [claim.verdict for claim in judge(answer, POPULATION).claims] == ["supported"]


@given(
    st.integers(2, 10**7).filter(lambda mine: mine != 2010),  # the text has this number too: its year
    st.integers(2, 10**7),
    st.sampled_from(["{:,}", "{}", "{} million", "{}%", "${:,}", "{}.5"]),
)
def test_no_altered_number_is_supported(mine: int, theirs: int, form: str) -> None:
    said, meant = (POPULATION.replace("1,345,596", form.format(number)) for number in (mine, theirs))
    [claim] = judge(said, meant).claims
    assert (claim.verdict == "supported") == (mine == theirs)


def test_worst_is_the_lowest_sentence_with_its_share_of_numbers_and_names() -> None:
    answer = f"{TOWER} The tower opened in 1888 with Ada."
    finding = judge_worst(answer, TOWER)
    # 15 of 26 + with 1 + ada 5 + two pairs; neither of "1888" and "Ada" is there.
    assert [claim.score for claim in finding.claims] == pytest.approx([1, (15 / 34 + 0) / 2])
    assert finding.score == finding.claims[1].score
    assert [claim.verdict for claim in finding.claims] == ["supported", "not_enough_info"]
    assert judge(answer, TOWER).score == pytest.approx((1 + 15 / 34) / 2)


def test_worst_gives_a_sentence_without_numbers_and_names_the_verdict_that_it_has_otherwise() -> None:
    # The 1, tower 5, opened 5, early 5 and three pairs: 19; early and its pair are missing.
    answer = "The tower opened early."
    assert judge_worst(answer, TOWER).score == pytest.approx((13 / 19 + 1) / 2)
    for context in (TOWER, "The tower.", "Opened towers.", "Tower early opened the.", ""):
        assert [one.verdict for one in judge(answer, context, " x").claims] == [
            one.verdict for one in judge_worst(answer, context, " x").claims
        ]


def test_worst_with_a_threshold_is_one_only_if_every_sentence_reaches_it() -> None:
    assert judge_worst(f"{TOWER} Dogs bark.", TOWER, "Dogs bark.", threshold=0.9).score == 1
    assert judge_worst(f"{TOWER} Dogs bark.", TOWER, threshold=0.9).score == 0


def test_combine_does_not_change_usefulness_or_the_identity_of_the_default() -> None:
    worst = OverlapJudge(OverlapNode(use="overlap", combine="worst"), Context("overlap"))
    sample = Sample("q1", "When did the tower open?", contexts=("The tower opened.", "Dogs", ""))
    assert find(worst, PRECISION, sample) == find(make_judge(), PRECISION, sample)
    assert "combine" not in make_judge().content()["node"]
    assert worst.content()["node"]["combine"] == "worst"


SENTENCES = (
    "The tower opened in 1889.",
    "Dogs bark.",
    "Ada met Marie Curie in 1,200 BC.",
    "It was so.",
    "Cats sing 7 songs.",
)


@given(st.lists(st.sampled_from(SENTENCES), max_size=4), st.lists(st.sampled_from(SENTENCES), max_size=2))
def test_worst_is_what_sentences_by_themselves_give(answer: list[str], contexts: list[str]) -> None:
    """Each sentence by itself, its names found by looking for their words in the contexts' text."""
    finding = judge_worst(" ".join(answer), *contexts)
    words = {word.strip(".").replace(",", "") for context in contexts for word in context.split()}
    scores = []
    for sentence in answer:
        alone = judge(sentence, *contexts).score
        if alone is not None:
            names = {"The": ["1889"], "Ada": ["Marie Curie", "1200"], "Cats": ["7"]}.get(sentence.split()[0], [])
            known = [name for name in names if words.issuperset(name.split())]
            scores.append((alone + (len(known) / len(names) if names else 1)) / 2)
    if not contexts:
        assert finding.score == (0 if scores else None)
    else:
        assert finding.score == (pytest.approx(min(scores)) if scores else None)


def test_the_estimate_counts_the_samples_that_are_looked_up() -> None:
    samples = [Sample(name, "?", answer=TOWER, contexts=(TOWER * 4,)) for name in ("q1", "q2")]
    overlap = make_judge()
    [(reader, reads)] = overlap.estimate(
        FAITHFULNESS, [*samples, Sample("q3", "?", answer="No.", contexts=())]
    ).reads.items()
    assert (reader.name, reader.unit) == ("overlap", "sample")
    assert sorted(reads.values()) == [3, 5 * len(TOWER) // 4 + 3]  # equal texts are looked up once
    assert overlap.estimate(RUBRIC, samples).reads == {}
