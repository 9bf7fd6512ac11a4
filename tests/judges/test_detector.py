from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from math import exp, log
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pydantic import ValidationError

from rageval_spec import registry
from rageval_spec.data.findings import Criterion, Failed
from rageval_spec.data.samples import Sample
from rageval_spec.errors import UsageError
from rageval_spec.judges.detector import Detector, DetectorNode, read_token_labels
from rageval_spec.judging.span_detection import PROMPTS
from rageval_spec.models.onnx import OnnxModel, OnnxNode
from rageval_spec.plugin import Context, ModelNode, TokenModel, TokenTags
from tests.judges.fakes import FAITHFULNESS, PRECISION, RUBRIC, WordModel, context_of, finding_of, scores_of
from tests.onnx_from_checkpoints.folders import DETECTOR, SPECIAL, write_cross_encoder, write_detector, write_encoder

UNNAMED = ("LABEL_0", "LABEL_1")
GERMAN = "KRLabsOrg/lettucedect-210m-eurobert-de-v1"


class Tagger(TokenModel[ModelNode]):
    """Gives words that the prompt lacks a probability of 0.9 of being unsupported, and the others 0.2."""

    def __init__(
        self, labels: Sequence[str] = UNNAMED, room: int | None = None, cuts: bool = False, name: str | None = None
    ) -> None:
        super().__init__(ModelNode(use="onnx"), Context("small"))
        self._labels, self._room, self.cuts, self._name = tuple(labels), room, cuts, name
        self.pairs: list[tuple[str, str]] = []

    @property
    def token_labels(self) -> tuple[str, ...]:
        return self._labels

    @property
    def named_token_labels(self) -> tuple[str, ...]:
        return self._labels

    @property
    def published_name(self) -> str | None:
        return self._name

    @property
    def room(self) -> int | None:
        return self._room

    def count_tokens(self, texts: Sequence[str]) -> Sequence[int]:
        return [len(re.findall(r"\w+|[^\w\s]", text)) for text in texts]

    def tag(self, pairs: Sequence[tuple[str, str]]) -> TokenTags:
        self.pairs = list(pairs)
        found = [[*re.finditer(r"\s*(\w+|[^\w\s])", answer)] for _, answer in pairs]
        offsets = [np.array([one.span() for one in each], np.int64).reshape(-1, 2) for each in found]
        logits = [
            np.array([self._judge(prompt, one[1]) for one in each], np.float32).reshape(-1, len(self._labels))
            for (prompt, _), each in zip(pairs, found, strict=True)
        ]
        return TokenTags(offsets, logits, np.full(len(pairs), self.cuts))

    def _judge(self, prompt: str, word: str) -> list[float]:
        odds = 0.2 if not word.isalnum() or re.search(rf"\b{re.escape(word)}\b", prompt) else 0.9
        return [0.0, log(odds / (1 - odds)), *[-100.0] * (len(self._labels) - 2)][: len(self._labels)]


def build(model: Any, **keys: Any) -> Detector:
    return Detector(DetectorNode(use="detector", model="small", **keys), context_of(model))


def sample(answer: str, *contexts: str, question: str = "What about Paris?") -> Sample:
    return Sample("q", question, answer=answer, contexts=contexts)


CONTEXTS = ("France is in Europe. It has 67 million people.", "Paris is the capital of France.")
ANSWER = "Paris is the capital of France. France has 69 million people, they say."


def test_unsupported_spans_and_the_rest_of_each_sentence_are_claims() -> None:
    model = Tagger()
    found = finding_of(build(model).assess(FAITHFULNESS, [sample(ANSWER, *CONTEXTS)]))
    assert [(claim.text, claim.verdict) for claim in found.claims] == [
        ("Paris is the capital of France.", "supported"),
        ("France has", "supported"),
        ("69", "not_enough_info"),
        ("million people,", "supported"),
        ("they say", "not_enough_info"),
    ]
    assert [ANSWER[claim.start : claim.end] for claim in found.claims] == [claim.text for claim in found.claims]
    assert [claim.score for claim in found.claims] == pytest.approx([0.8, 0.8, 0.1, 0.8, 0.1])
    assert found.score == pytest.approx(10 / 13)
    assert model.pairs == [(PROMPTS["en"].fill(CONTEXTS, "What about Paris?"), ANSWER)]


def test_the_evidence_is_the_sentence_that_shares_most_words_with_the_claims_sentence() -> None:
    found = finding_of(build(Tagger()).assess(FAITHFULNESS, [sample(ANSWER, *CONTEXTS)]))
    assert [(claim.source, claim.evidence) for claim in found.claims[:3]] == [
        (1, "Paris is the capital of France."),
        (0, "It has 67 million people."),
        (0, "It has 67 million people."),
    ]
    (alone,) = finding_of(build(Tagger()).assess(FAITHFULNESS, [sample("Owls fly.", "It rains.")])).claims
    assert (alone.source, alone.evidence) == (None, None)


def test_an_answer_without_unsupported_spans_still_has_claims() -> None:
    found = finding_of(build(Tagger()).assess(FAITHFULNESS, [sample("Paris is in France. It is.", *CONTEXTS)]))
    assert [(claim.text, claim.verdict) for claim in found.claims] == [
        ("Paris is in France.", "supported"),
        ("It is.", "supported"),
    ]
    assert found.score == 1


def test_a_window_that_supports_a_token_outweighs_those_that_cannot_know_it() -> None:
    contexts = tuple(f"{name} " + "rain " * 60 for name in ("Anna", "Bert", "Carl"))
    model = Tagger(room=150)
    found = finding_of(build(model).assess(FAITHFULNESS, [sample("Anna saw Carl.", *contexts)]))
    assert len(model.pairs) == 3
    assert {claim.text: (claim.verdict, claim.source) for claim in found.claims} == {
        "Anna": ("supported", 0),
        "saw": ("not_enough_info", 0),
        "Carl.": ("supported", 2),
    }


def test_windows_follow_the_keys_of_the_judge() -> None:
    asked = [sample("It is so.", "One is here. Two is here. Three is here. " * 2, *CONTEXTS)]
    model = Tagger()
    build(model, window=60).assess(FAITHFULNESS, asked)
    assert len(model.pairs) == 4
    build(model).assess(FAITHFULNESS, asked)
    ((prompt, answer),) = model.pairs
    whole = sum(model.count_tokens([prompt, answer]))
    for limited in (Tagger(room=whole - 1), Tagger(room=10_000)):
        build(limited, max_tokens=whole - 1).assess(FAITHFULNESS, asked)
        assert len(limited.pairs) == 2
        assert all(sum(limited.count_tokens(pair)) < whole for pair in limited.pairs)


def test_the_prompt_is_in_the_models_language() -> None:
    model = Tagger()
    build(model, language="de").assess(FAITHFULNESS, [sample("Es ist so.", "Text.", question="Warum?")])
    assert model.pairs[0][0] == PROMPTS["de"].fill(["Text."], "Warum?")
    build(model).assess(FAITHFULNESS, [sample("It is.", "Text.", question=" ")])
    assert model.pairs[0][0].startswith("Summarize the following text:\npassage 1: Text.")


def test_the_prompt_of_a_known_model_is_in_its_language() -> None:
    asked = [sample("Es ist so.", "Text.", question="Warum?")]
    model = Tagger(name=GERMAN)
    judge = build(model)
    judge.assess(FAITHFULNESS, asked)
    assert model.pairs[0][0] == PROMPTS["de"].fill(["Text."], "Warum?")
    assert judge.content() == build(Tagger(), language="de").content()
    (reading,) = judge.describe_files()
    assert (reading.file, reading.details[-1]) == (GERMAN, "prompt in German")
    stated = build(model, language="fr")
    stated.assess(FAITHFULNESS, asked)
    assert model.pairs[0][0].startswith("Réponds")
    assert [len(one.details) for one in stated.describe_files()] == [1]
    assert list(build(Tagger()).describe_files()) == []


def test_other_texts_than_the_answer_and_the_contexts_can_be_judged() -> None:
    model = Tagger()
    recall = Criterion("recall", "support", "Is it?", text="reference", against="answer")
    found = build(model).assess(recall, [Sample("q", "Why?", answer="It rains.", references=("It snows.",))])
    assert [claim.text for claim in finding_of(found).claims] == ["It", "snows"]
    assert model.pairs[0][0] == PROMPTS["en"].fill(["It rains."], "Why?")


def test_a_threshold_moves_spans_and_the_score() -> None:
    asked = [sample("Paris is old.", *CONTEXTS)]
    assert scores_of(build(Tagger(), threshold=0.95).assess(FAITHFULNESS, asked)) == [1]
    assert scores_of(build(Tagger(), threshold=0.1).assess(FAITHFULNESS, asked)) == [0]
    for wrong in (0, 1.5):
        with pytest.raises(ValidationError, match="threshold"):
            DetectorNode(use="detector", model="m", threshold=wrong)


@pytest.mark.parametrize(
    ("names", "meant"),
    [
        (UNNAMED, ["supported", "unsupported"]),
        (("Hallucinated", "Supported"), ["unsupported", "supported"]),
        (("factual", "hallucination"), ["supported", "unsupported"]),
        (("O", "B-hallucinated", "I-hallucinated"), ["supported", "unsupported", "unsupported"]),
        (("supported", "contradiction", "not_supported"), ["supported", "unsupported", "unsupported"]),
        (("LABEL_0", "LABEL_1", "LABEL_2"), None),
        (("O", "B-PER"), None),
        (("supported", "faithful"), None),
    ],
)
def test_labels_are_read_by_their_names(names: Sequence[str], meant: Any) -> None:
    assert read_token_labels(names) == meant


def test_the_probability_is_that_of_all_unsupported_labels() -> None:
    class Three(Tagger):
        def _judge(self, prompt: str, word: str) -> list[float]:
            return [1.0, 1.0, 0.0]

    judge = build(Three(("made_up", "fine", "wrong")), labels=("unsupported", "supported", "unsupported"))
    (claim,) = finding_of(judge.assess(FAITHFULNESS, [sample("So", "Text.")])).claims
    assert claim.score == pytest.approx(exp(1) / (2 * exp(1) + 1))


@pytest.mark.parametrize(
    ("names", "keys", "message"),
    [
        (("LABEL_0",), {}, r"judges.tested.model: 'small' calls its labels LABEL_0; those of a detector stand for"),
        (("O", "B-PER"), {}, r"calls its labels O, B-PER; .* 'labels: \[...\]', each one of supported"),
        (UNNAMED, {"labels": ("supported", "unsupported", "unsupported")}, r"tested.labels: 3 labels for the 2 of"),
    ],
)
def test_labels_of_unknown_meaning_are_refused(names: Sequence[str], keys: Any, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        build(Tagger(names), **keys).assess(FAITHFULNESS, [sample("It is.", "Text.")])
    (fault,) = build(Tagger(names), **keys).check_files()
    assert re.search(message.partition(" ")[2], fault.message) or re.search(message, fault.message)
    assert fault.key == (("labels",) if keys else ("model",))
    assert list(build(Tagger()).check_files()) == []


def test_labels_that_mean_the_same_are_refused() -> None:
    with pytest.raises(ValidationError, match="must have both 'supported' and 'unsupported', not only 'supported'"):
        DetectorNode(use="detector", model="m", labels=("supported", "supported"))


def test_texts_with_nothing_to_judge_have_no_score() -> None:
    model = Tagger()
    asked = [
        sample(" \n", "Text."),
        sample("It is."),
        sample("It is.", " "),
        sample("😀 …", "Text."),
        sample("It", "It"),
    ]
    assessment = build(model).assess(FAITHFULNESS, asked)
    assert scores_of(assessment) == [None, 0.0, 0.0, None, 1.0]
    assert [finding_of(assessment, place).reason for place in range(5)] == [
        "the answer has no text",
        "the contexts have no text",
        "the contexts have no text",
        "the answer has no token with a letter or a digit",
        None,
    ]
    assert [claim.verdict for claim in finding_of(assessment, 1).claims] == ["not_enough_info"]
    assert build(model).assess(FAITHFULNESS, []).findings == []
    assert scores_of(build(Tagger(("?",))).assess(FAITHFULNESS, asked[:1])) == [None]


def test_nothing_is_cut_without_a_word() -> None:
    asked = [sample("It is.", *CONTEXTS), sample("It is.", "Text. " * 200, question="why " * 300)]
    fine, failed = build(Tagger(room=120)).assess(FAITHFULNESS, asked).findings
    assert not isinstance(fine, Failed)
    assert isinstance(failed, Failed)
    assert failed.reason.startswith("the question is too long")
    (cut,) = build(Tagger(cuts=True)).assess(FAITHFULNESS, asked[:1]).findings
    assert isinstance(cut, Failed)
    assert cut.reason.startswith("the model cut this text or its sources")


def test_other_models_and_criteria_are_refused(tmp_path: Path) -> None:
    assert registry.load("judges", "detector") is Detector
    judge = build(Tagger())
    assert judge.abilities == {"support"}
    for criterion in (PRECISION, RUBRIC):
        with pytest.raises(UsageError, match=f"cannot assess {criterion.kind}"):
            judge.assess(criterion, [sample("a", "b")])
    with pytest.raises(
        UsageError, match=r"the model 'small' \(use: onnx\) is not a token classifier; name one, such as"
    ):
        build(WordModel("small")).check()
    folders: list[tuple[Callable[[Path], Path], str]] = [
        (write_cross_encoder, "is a cross-encoder, for `use: rerank` or `use: nli`; name a token classifier"),
        (write_encoder, "is an embedding model, for `use: dense`; name a token classifier"),
    ]
    for write, message in folders:
        model = OnnxModel(OnnxNode(use="onnx", model=str(write(tmp_path / write.__name__))), Context("small"))
        with pytest.raises(UsageError, match=message):
            build(model).assess(FAITHFULNESS, [sample("a", "b")])
        (fault,) = build(model).check_files()
        assert message in fault.message
    assert list(build(WordModel("small")).check_files()) == []  # `check` says so
    found = OnnxModel(OnnxNode(use="onnx", model=str(write_detector(tmp_path / "detector"))), Context("small"))
    assert list(build(found).check_files()) == []


def test_a_model_on_disk_judges_end_to_end(tmp_path: Path) -> None:
    words = re.findall(r"\w+|[^\w\s]", " ".join((*CONTEXTS, ANSWER, PROMPTS["en"].fill([""], "What about")))).copy()
    vocabulary = {word: number for number, word in enumerate(dict.fromkeys((*SPECIAL, *map(str.lower, words))))}
    config = {**DETECTOR, "vocab_size": len(vocabulary), "max_position_embeddings": 100}
    folder = write_detector(tmp_path / "detector", config=config, vocabulary=vocabulary)
    model = OnnxModel(OnnxNode(use="onnx", model=str(folder)), Context("small"))
    found = finding_of(build(model).assess(FAITHFULNESS, [sample(ANSWER, *CONTEXTS)]))
    unsupported = [claim for claim in found.claims if claim.verdict != "supported"]
    assert [claim.text for claim in unsupported] == ["69", "they say"]
    assert found.score == pytest.approx(10 / 13)
    assert unsupported[0].score == pytest.approx(1 - exp(1) / (exp(1) + exp(-1)))


def test_the_estimate_counts_the_pairs_that_are_read() -> None:
    model = Tagger(room=40)
    judge = Detector(DetectorNode(use="detector", model="small"), context_of(model))
    samples = [
        Sample("a", "Who?", answer="The cat sat.", contexts=("The cat sat on a mat today. " * 3, "A dog ran. " * 4)),
        Sample("b", "Who?", answer="", contexts=("The cat sat.",)),
    ]
    [(reader, pairs)] = judge.estimate(FAITHFULNESS, samples).reads.items()
    judge.assess(FAITHFULNESS, samples)
    assert (reader.name, reader.unit, len(pairs)) == ("small", "pair", len({*model.pairs}))
    assert judge.estimate(PRECISION, samples).reads == {}
