from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from math import sqrt
from pathlib import Path
from typing import Any

import pytest

from rageval_spec import registry
from rageval_spec.data.findings import Criterion, Finding
from rageval_spec.data.samples import Sample
from rageval_spec.errors import DataError, UsageError
from rageval_spec.judges.embedding import EmbeddingJudge, EmbeddingNode
from rageval_spec.judges.hybrid import HybridJudge, HybridJudgeNode
from rageval_spec.models.onnx import OnnxModel, OnnxNode
from rageval_spec.plugin import Context
from tests.judges.fakes import FAITHFULNESS, PRECISION, RUBRIC, Scripted, WordModel, context_of, finding_of, scores_of
from tests.onnx_from_checkpoints.folders import write_encoder


def build(model: WordModel | None = None, **keys: Any) -> EmbeddingJudge:
    return EmbeddingJudge(EmbeddingNode(use="embedding", model="words", **keys), context_of(model or WordModel()))


def sample(answer: str, *contexts: str, question: str = "Why?") -> Sample:
    return Sample("q", question, answer=answer, contexts=contexts)


def test_no_key_is_required() -> None:
    assert registry.load("judges", "embedding") is EmbeddingJudge
    assert EmbeddingNode(use="embedding").model == "minilm"
    assert build().abilities == {"support", "usefulness", "claims"}


def test_each_sentence_is_scored_by_the_most_similar_sentence_of_the_contexts() -> None:
    answer = "red cats eat green fish. old dogs never bark loudly."
    found = finding_of(
        build(window=1).assess(FAITHFULNESS, [sample(answer, "snow falls. red cats eat fish.", "old dogs bark.")])
    )
    first, second = found.claims
    assert first.score == pytest.approx(4 / sqrt(5 * 4))
    assert second.score == pytest.approx(3 / sqrt(5 * 3))
    assert found.score == pytest.approx((first.score + second.score) / 2)
    assert (first.text, answer[first.start : first.end]) == ("red cats eat green fish.",) * 2
    assert (first.source, first.evidence, first.verdict) == (0, "red cats eat fish.", "supported")
    assert (second.source, second.evidence) == (1, "old dogs bark.")
    assert answer[second.start : second.end] == "old dogs never bark loudly."


def test_with_a_threshold_the_score_is_the_share_of_claims_that_reach_it() -> None:
    asked = [sample("red cats eat green fish. old dogs never bark loudly.", "red cats eat fish.", "old dogs bark.")]
    found = finding_of(build(threshold=0.8).assess(FAITHFULNESS, asked))
    assert found.score == 0.5
    assert [claim.verdict for claim in found.claims] == ["supported", "not_enough_info"]


def test_evidence_can_be_several_neighbouring_sentences_of_one_context() -> None:
    asked = [sample("red cats eat green fish.", "red cats eat. green fish.", "other words.")]
    one, two = (finding_of(build(window=window).assess(FAITHFULNESS, asked)).claims[0] for window in (1, 2))
    assert one.score == pytest.approx(3 / sqrt(5 * 3))
    assert two.score == pytest.approx(1)
    assert two.evidence == "red cats eat. green fish."


def test_a_fragment_is_read_after_its_question() -> None:
    asked = [sample("Berlin.", "the capital is Berlin.", question="what is the capital?")]
    found = finding_of(build(window=1).assess(FAITHFULNESS, asked))
    assert found.claims[0].score == pytest.approx(4 / sqrt(5 * 4))
    assert found.claims[0].text == "Berlin."


@pytest.mark.parametrize("text", ["Yes.", "Mark Twain", "1945", "red cats eat green fish.", "柏林是首都。"])
def test_identical_texts_are_fully_supported(text: str) -> None:
    asked = [sample(text, "old dogs bark.", text, question="what is it, and since when?")]
    found = finding_of(build().assess(FAITHFULNESS, asked))
    assert [found.score, found.claims[0].verdict, found.claims[0].source] == [1.0, "supported", 1]
    assert found.claims[0].evidence == text


def test_a_claim_is_found_word_for_word_despite_case_punctuation_and_white_space() -> None:
    contexts = ("snow falls.", "As \u201cRed  cats eat\ngreen fish\u201d, old dogs bark.")
    found = finding_of(build(threshold=1).assess(FAITHFULNESS, [sample("red cats eat green fish.", *contexts)]))
    assert [found.score, found.claims[0].verdict, found.claims[0].source] == [1.0, "supported", 1]


def test_a_fragment_within_a_sentence_is_only_similar() -> None:
    asked = [sample("No.", "No, the sun is hot.", question="is ice hot?")]
    found = finding_of(build().assess(FAITHFULNESS, asked))
    assert found.score == pytest.approx(3 / sqrt(4 * 5))


def test_a_claim_from_a_source_is_not_filtered_out() -> None:
    filtering, strict = build(), Scripted("strict", {"q": 1.0})
    hybrid = HybridJudge(HybridJudgeNode(use="hybrid", filter="tested", judge="strict"), context_of(filtering, strict))
    answers = [sample("Yes.", "Yes.", question="is it that the sun is very hot all day long?")]
    assert scores_of(hybrid.assess(FAITHFULNESS, answers)) == [1.0]
    assert strict.asked == [["q"]]


def test_values_scored_by_an_older_rule_are_not_reused() -> None:
    assert build().content()["version"] == "4"


def test_opposite_vectors_count_as_0() -> None:
    class Opposite(WordModel):
        def embed(self, texts: Any, role: Any = "document") -> Any:
            found = super().embed(texts, role)
            found.vectors[:] = [[1.0] * 200 if "cats" in text else [-1.0] * 200 for text in texts]
            return found

    found = finding_of(build(Opposite()).assess(FAITHFULNESS, [sample("red cats eat green fish.", "old dogs.")]))
    assert found.score == 0.0


def test_an_empty_answer_has_no_score_and_empty_contexts_support_nothing() -> None:
    blank, lonely, empty = (
        build().assess(FAITHFULNESS, [sample(" ", "a b."), sample("a b."), sample("a b.", " ")]).findings
    )
    assert (finding_score(blank), blank.reason) == (None, "the answer has no text")
    for found in (lonely, empty):
        assert (finding_score(found), found.reason) == (0.0, "the contexts have no text")


def finding_score(found: Any) -> Any:
    return found.score


def test_all_texts_of_all_samples_are_embedded_at_once() -> None:
    model = WordModel()
    build(model).assess(FAITHFULNESS, [sample("a b c d e.", "x y."), sample("a b c d e.", "x y.", "z.")])
    ((texts, role),) = model.calls
    assert sorted(texts) == ["a b c d e.", "x y.", "z."]
    assert role == "document"


def test_each_context_is_scored_by_its_usefulness_for_the_question() -> None:
    model = WordModel()
    asked = Sample("q", "where are red cats?", contexts=("red cats are here. rain falls.", "", "snow"))
    found = finding_of(build(model).assess(PRECISION, [asked]))
    assert [claim.score for claim in found.claims] == pytest.approx([3 / 4, 0, 0])
    assert [claim.verdict for claim in found.claims] == ["supported", "not_enough_info", "not_enough_info"]
    assert found.score == pytest.approx(1 / 4)
    text = PRECISION.text_of(asked)
    assert [text[claim.start : claim.end] for claim in found.claims] == list(asked.contexts or ())
    assert [role for _, role in model.calls] == ["document", "query"]


def test_nothing_is_useful_for_a_question_without_text() -> None:
    found = finding_of(build().assess(PRECISION, [Sample("q", " ", contexts=("a",))]))
    assert (found.score, found.reason) == (None, "the question has no text")


def test_claims_are_sentences() -> None:
    assert build().claims([("q", "One. Two."), ("", "")]) == [("One.", "Two."), ()]


def test_texts_that_are_cut_are_counted() -> None:
    assessment = build(WordModel(longest=5)).assess(FAITHFULNESS, [sample("a b c d e f g.", "a b.")])
    assert [note.message for note in assessment.written_notes] == [
        "1 of 2 texts is longer than words reads and was cut"
    ]


def test_grades_and_unsuitable_models_are_refused() -> None:
    with pytest.raises(UsageError, match=r"judges.tested \(use: embedding\) cannot grade"):
        build().assess(RUBRIC, [sample("a", "b")])
    with pytest.raises(UsageError, match="there is no model 'words'"):
        EmbeddingJudge(EmbeddingNode(use="embedding", model="words"), Context("e")).check()


def test_a_vector_of_zeros_is_an_error_that_names_the_text() -> None:
    with pytest.raises(DataError, match=r"models.words: the vector of '\*' is all zeros"):
        build().assess(
            Criterion("c", "usefulness", "", text="contexts", against="question"), [Sample("q", "*", contexts=("a",))]
        )


def test_a_real_graph_gives_the_same_from_several_threads(tmp_path: Path) -> None:
    model = OnnxModel(OnnxNode(use="onnx", model=str(write_encoder(tmp_path / "small"))), Context("small"))
    judge = EmbeddingJudge(EmbeddingNode(use="embedding", model="small"), context_of(model))
    asked = [
        sample(f"the cat sat on a {word}.", "the dog ran. the cat sat on a mat.") for word in ("mat", "dog", "owl")
    ]
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda _: scores_of(judge.assess(FAITHFULNESS, asked)), range(8)))
    assert all(scores == found[0] for scores in found)
    assert found[0][0] == pytest.approx(1, abs=1e-6)
    assert all(isinstance(score, float) and score < 1 for score in found[0][1:])


def test_the_estimate_counts_the_texts_that_are_embedded() -> None:
    model = WordModel()
    judge = EmbeddingJudge(EmbeddingNode(use="embedding", model="words"), context_of(model))
    samples = [
        Sample("q", "Where did it sit?", answer="The cat sat on the mat. It ran.", contexts=("A cat sat. It ran.",))
    ]
    [(reader, texts)] = judge.estimate(FAITHFULNESS, samples).reads.items()
    judge.assess(FAITHFULNESS, samples)
    assert (reader.name, reader.unit) == ("words", "text")
    assert len(texts) == len({text for asked, _ in model.calls for text in asked}) == 4
    assert judge.estimate(RUBRIC, samples).reads == {}


POPULATION = "As of the census, the city had a population of 1,345,596 people in 2010."


@pytest.mark.parametrize(
    ("answer", "missing"),
    [
        ("As of the census, the city had a population of 8,352,603 people in 2017.", "8,352,603, 2017"),
        ("As of the census, the city had a population of 1,345,596 people in 2017.", "2017"),
        ("As of the census, the city of Lyon had a population of 1,345,596 people in 2010.", "Lyon"),
    ],
)
def test_a_claim_with_another_number_or_name_is_not_supported(answer: str, missing: str) -> None:
    """The cosine is far above the cut of 0.63."""
    (found,) = build().assess(FAITHFULNESS, [sample(answer, POPULATION)]).findings
    assert isinstance(found, Finding)
    [claim] = found.claims
    assert (claim.verdict, claim.reason) == ("not_enough_info", f"not in the contexts: {missing}")
    assert claim.score == found.score == pytest.approx(0.62)
    (share,) = build(threshold=0.5).assess(FAITHFULNESS, [sample(answer, POPULATION)]).findings
    assert isinstance(share, Finding)
    assert share.score == 0


def test_the_same_numbers_in_other_words_are_supported() -> None:
    answer = "In 2010, as of the census, the city had a population of 1345596 people."
    (found,) = build().assess(FAITHFULNESS, [sample(answer, POPULATION)]).findings
    assert isinstance(found, Finding)
    assert [claim.verdict for claim in found.claims] == ["supported"]
