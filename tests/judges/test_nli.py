from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import exp
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pydantic import ValidationError

from rageval_spec import registry
from rageval_spec.data.samples import Sample
from rageval_spec.errors import UsageError
from rageval_spec.judges.nli import Nli, NliNode
from rageval_spec.models.onnx import OnnxModel, OnnxNode
from rageval_spec.plugin import Context, ModelNode, PairModel, PairScores
from tests.judges.fakes import FAITHFULNESS, PRECISION, WordModel, context_of, finding_of, scores_of
from tests.onnx_from_checkpoints.folders import CROSS_ENCODER, write_cross_encoder, write_encoder
from tests.onnx_from_checkpoints.t5_models import write_hhem, write_t5

THREE = ("contradiction", "entailment", "neutral")


class Classifier(PairModel[ModelNode]):
    """Gives pairs the logits that a test writes for (a word of the window, a word of the claim)."""

    fills_templates = True

    def __init__(
        self,
        labels: Sequence[str],
        logits: Mapping[tuple[str, str], tuple[float, ...]],
        name: str | None = None,
        room: int | None = None,
    ) -> None:
        super().__init__(ModelNode(use="onnx"), Context("small"))
        self._labels, self.logits = tuple(labels), logits
        self._name, self._room = name, room
        self.calls: list[list[tuple[str, str]]] = []

    @property
    def named_labels(self) -> tuple[str, ...] | None:
        return self._labels

    @property
    def published_name(self) -> str | None:
        return self._name

    @property
    def room(self) -> int | None:
        return self._room

    def count_tokens(self, texts: Sequence[str]) -> Sequence[int] | None:
        """A word is a token."""
        return None if self._room is None else [len(text.split()) for text in texts]

    @property
    def labels(self) -> tuple[str, ...]:
        return self._labels

    def score(self, pairs: Sequence[tuple[str, str]]) -> PairScores:
        self.calls.append(list(pairs))
        rows = [self._find(window, claim) for window, claim in pairs]
        return PairScores(np.array(rows, np.float32), np.array([len(window) > 60 for window, _ in pairs]))

    def _find(self, window: str, claim: str) -> tuple[float, ...]:
        known = (row for (a, b), row in self.logits.items() if a in window and b in claim)
        return next(known, (0.0,) * len(self._labels))


def build(model: Any, **keys: Any) -> Nli:
    return Nli(NliNode(use="nli", model="small", **keys), context_of(model))


def sample(answer: str, *contexts: str, question: str = "Why?") -> Sample:
    return Sample("q", question, answer=answer, contexts=contexts)


def softmax(*logits: float) -> list[float]:
    powers = [exp(logit) for logit in logits]
    return [power / sum(powers) for power in powers]


ANSWER = "The cat sat on the mat. The dog ran on the lawn. The owl flew to the tree."
CONTEXTS = ("A feline rested there. It was noon.", "No canine moved at all.")


def test_the_likeliest_window_decides_each_claim() -> None:
    logits = {
        ("feline", "cat"): (0.0, 3.0, 1.0),
        ("canine", "cat"): (2.0, 1.0, 0.0),
        ("canine", "dog"): (4.0, 0.0, 1.0),
        ("feline", "dog"): (0.0, 0.5, 1.0),
    }
    model = Classifier(THREE, logits)
    found = finding_of(build(model).assess(FAITHFULNESS, [sample(ANSWER, *CONTEXTS)]))
    cat, dog, owl = found.claims
    assert (cat.verdict, cat.source, cat.evidence) == ("supported", 0, CONTEXTS[0])
    assert cat.score == pytest.approx(softmax(0, 3, 1)[1])
    assert (dog.verdict, dog.source, dog.evidence) == ("contradicted", 1, CONTEXTS[1])
    assert dog.score == pytest.approx(softmax(0, 0.5, 1)[1])
    assert owl.verdict == "not_enough_info"
    assert owl.score == pytest.approx(1 / 3)
    assert found.score == pytest.approx((cat.score + dog.score + owl.score) / 3)
    assert [ANSWER[claim.start : claim.end] for claim in found.claims] == [claim.text for claim in found.claims]
    (pairs,) = model.calls
    assert len(pairs) == 6
    assert pairs[0] == (CONTEXTS[0], "The cat sat on the mat.")


def test_the_order_of_the_labels_is_read_from_the_model() -> None:
    row = {"contradiction": 0.0, "entailment": 3.0, "neutral": 1.0}
    for labels in (THREE, ("entailment", "neutral", "contradiction"), ("neutral", "contradiction", "entailment")):
        model = Classifier(labels, {("feline", "cat"): tuple(row[label] for label in labels)})
        found = finding_of(build(model).assess(FAITHFULNESS, [sample("The cat sat on mats.", CONTEXTS[0])]))
        assert found.score == pytest.approx(softmax(3, 0, 1)[0])


@pytest.mark.parametrize(
    "labels",
    [
        ("ENTAILMENT", "not_entailment"),
        ("Supported", "unsupported"),
        ("consistent", "hallucinated"),
        ("entailment", "Not-Entailment"),
        ("SUPPORTS", "REFUTES", "NOT ENOUGH INFO"),
    ],
)
def test_labels_are_recognised_in_several_spellings(labels: tuple[str, ...]) -> None:
    model = Classifier(labels, {("", ""): (2.0, *[0.0] * (len(labels) - 1))})
    found = finding_of(build(model).assess(FAITHFULNESS, [sample("The cat sat on mats.", "No.")]))
    assert found.score == pytest.approx(exp(2) / (exp(2) + len(labels) - 1))


def test_two_labels_never_contradict() -> None:
    model = Classifier(("not_entailment", "entailment"), {("", ""): (5.0, 0.0)})
    found = finding_of(build(model).assess(FAITHFULNESS, [sample("The cat sat on mats.", "No.")]))
    assert found.claims[0].verdict == "not_enough_info"


def test_one_logit_is_a_probability_if_the_spec_says_what_it_stands_for() -> None:
    model = Classifier(("LABEL_0",), {("", ""): (2.0,)})
    with pytest.raises(UsageError, match=r"judges.tested.model: 'small' calls its labels LABEL_0, .*labels: \[...\]"):
        build(model).assess(FAITHFULNESS, [sample("The cat sat on mats.", "No.")])
    found = finding_of(build(model, labels=("entailment",)).assess(FAITHFULNESS, [sample("The cat sat.", "No.")]))
    assert found.score == pytest.approx(1 / (1 + exp(-2)))
    extreme = Classifier(("consistent",), {("", ""): (-1000.0,)})
    assert scores_of(build(extreme).assess(FAITHFULNESS, [sample("The cat sat.", "No.")])) == [0.0]


@pytest.mark.parametrize(
    ("names", "stated", "message"),
    [
        (("LABEL_0", "LABEL_1"), None, "calls its labels LABEL_0, LABEL_1"),
        (("positive", "negative"), None, "calls its labels positive, negative"),
        (("entailment", "supported"), None, "calls its labels entailment, supported"),
        (("contradiction", "neutral"), None, "calls its labels contradiction, neutral"),
        (("LABEL_0", "LABEL_1"), ("entailment",), r"tested.labels: 1 label for the 2 of 'small' \(LABEL_0, LABEL_1\)"),
    ],
)
def test_labels_of_unknown_meaning_are_refused(names: Any, stated: Any, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        build(Classifier(names, {}), labels=stated).assess(FAITHFULNESS, [sample("The cat sat.", "No.")])


@pytest.mark.parametrize(
    ("names", "stated", "key"),
    [
        (("LABEL_0", "LABEL_1"), None, "model"),
        (("LABEL_0", "LABEL_1"), ("entailment",), "labels"),
        (("LABEL_0", "LABEL_1"), ("entailment", "neutral"), None),
        (THREE, None, None),
    ],
)
def test_labels_are_checked_before_anything_runs(names: Any, stated: Any, key: str | None) -> None:
    faults = list(build(Classifier(names, {}), labels=stated).check_files())
    assert [fault.key for fault in faults] == ([] if key is None else [(key,)])
    assert all("judges.tested" not in fault.message for fault in faults)  # the place in the spec is shown already


def test_a_model_that_is_no_classifier_is_found_before_anything_runs(tmp_path: Path) -> None:
    model = OnnxModel(OnnxNode(use="onnx", model=str(write_encoder(tmp_path / "small"))), Context("small"))
    (fault,) = build(model).check_files()
    assert (fault.key, "is an embedding model" in fault.message) == (("model",), True)
    later = OnnxModel(OnnxNode(use="onnx", model="owner/not-here"), Context("small"))
    assert list(build(later).check_files()) == []
    assert list(build(WordModel("small")).check_files()) == []  # `check` says so


def test_the_specs_labels_override_the_models() -> None:
    model = Classifier(("LABEL_0", "LABEL_1", "LABEL_2"), {("", ""): (0.0, 1.0, 4.0)})
    judge = build(model, labels=("neutral", "contradiction", "entailment"))
    assert finding_of(judge.assess(FAITHFULNESS, [sample("The cat sat.", "No.")])).claims[0].verdict == "supported"
    with pytest.raises(ValidationError, match="exactly one of the labels must be 'entailment', not 0"):
        NliNode(use="nli", model="small", labels=("neutral", "contradiction"))


def test_long_contexts_are_read_in_windows_of_whole_sentences_that_overlap() -> None:
    context = " ".join(f"Here stands sentence number {number}." for number in "abcdefg")
    model = Classifier(("entailment", "neutral"), {("number f", "cat"): (3.0, 0.0)})
    found = finding_of(build(model, window=100).assess(FAITHFULNESS, [sample("The cat sat on mats.", context)]))
    windows = [window for window, _ in model.calls[0]]
    assert [[word for word in "abcdefg" if f"number {word}." in window] for window in windows] == [
        ["a", "b", "c"],
        ["c", "d", "e"],
        ["e", "f", "g"],
    ]
    assert found.claims[0].evidence == windows[2]
    apart = build(model, window=100, overlap=0)
    apart.assess(FAITHFULNESS, [sample("The cat sat on mats.", context)])
    assert [len(window.split(". ")) for window, _ in model.calls[1]] == [3, 3, 1]


def test_a_threshold_counts_claims_and_moves_verdicts() -> None:
    model = Classifier(("entailment", "neutral"), {("", "cat"): (1.0, 0.0), ("", "dog"): (3.0, 0.0)})
    asked = [sample("The cat sat on mats. The dog ran on lawns.", "Context.")]
    strict = finding_of(build(model, threshold=0.9).assess(FAITHFULNESS, asked))
    assert strict.score == 0.5
    assert [claim.verdict for claim in strict.claims] == ["not_enough_info", "supported"]


def test_a_bound_on_contradiction_outweighs_entailment_elsewhere() -> None:
    """By hand: of (contradiction, entailment, neutral), (2, 0, 0) contradicts with e^2 / (e^2 + 2) = 0.787."""
    logits = {
        ("feline", "cat"): (0.0, 9.0, 0.0),
        ("canine", "cat"): (2.0, 0.0, 0.0),
        ("canine", "dog"): (2.0, 0.0, 0.0),
        ("feline", "owl"): (0.0, 9.0, 0.0),
    }
    model = Classifier(THREE, logits)
    usual = finding_of(build(model).assess(FAITHFULNESS, [sample(ANSWER, *CONTEXTS)]))
    assert [claim.verdict for claim in usual.claims] == ["supported", "contradicted", "supported"]
    found = finding_of(build(model, contradiction=0.78).assess(FAITHFULNESS, [sample(ANSWER, *CONTEXTS)]))
    cat, dog, owl = found.claims
    assert (cat.verdict, cat.score, cat.evidence) == ("contradicted", 0, CONTEXTS[1])
    assert (dog.verdict, dog.score) == ("contradicted", 0)
    assert (owl.verdict, owl.score) == ("supported", usual.claims[2].score)
    assert found.score == pytest.approx(owl.score / 3)
    share = build(model, contradiction=0.78, threshold=0.5).assess(FAITHFULNESS, [sample(ANSWER, *CONTEXTS)])
    assert finding_of(share).score == pytest.approx(1 / 3)
    higher = finding_of(build(model, contradiction=0.79).assess(FAITHFULNESS, [sample(ANSWER, *CONTEXTS)]))
    assert [claim.verdict for claim in higher.claims] == ["supported", "not_enough_info", "supported"]


def test_a_bound_on_contradiction_needs_a_label_for_it() -> None:
    judge = build(Classifier(("not_entailment", "entailment"), {}), contradiction=0.5)
    (fault,) = judge.check_files()
    assert (fault.key, fault.message) == (
        ("contradiction",),
        "'small' has no label for contradiction (not_entailment, entailment); remove 'contradiction', or name a model "
        "that has one",
    )
    assert [*build(Classifier(THREE, {}), contradiction=0.5).check_files()] == []
    with pytest.raises(ValidationError):
        build(Classifier(THREE, {}), contradiction=0)


def test_without_a_bound_on_contradiction_the_judge_keeps_its_key() -> None:
    model = Classifier(THREE, {})
    assert "contradiction" not in build(model).content()["node"]
    assert build(model, contradiction=0.5).content()["node"]["contradiction"] == 0.5


def test_blank_answers_have_no_score_and_blank_contexts_support_nothing() -> None:
    model = Classifier(THREE, {})
    asked = [sample(" ", "A."), sample("The cat sat."), sample("The cat sat.", "A.")]
    assessment = build(model).assess(FAITHFULNESS, asked)
    assert scores_of(assessment) == [None, 0.0, pytest.approx(1 / 3)]
    reasons = [finding_of(assessment, place).reason for place in range(3)]
    assert reasons == ["the answer has no text", "the contexts have no text", None]
    assert list(build(model).assess(FAITHFULNESS, []).findings) == []


def test_cut_pairs_are_counted() -> None:
    model = Classifier(THREE, {})
    (note,) = build(model).assess(FAITHFULNESS, [sample("The cat sat.", "word " * 20)]).written_notes
    assert note.message.startswith("1 of 1 pair of context and claim is longer than small reads and was cut")


MINICHECK = "lytang/MiniCheck-RoBERTa-Large"


def write_context(words: int) -> str:
    """Sentences of ten words each."""
    return " ".join(f"Sentence {number} has ten words with those of its end." for number in range(words // 10))


def test_the_labels_of_a_known_model_are_those_of_its_card_if_its_configuration_has_none() -> None:
    model = Classifier(("0", "1"), {("", ""): (1.0, 3.0)}, MINICHECK)
    assessment = build(model).assess(FAITHFULNESS, [sample("The cat sat on mats.", "No.")])
    assert scores_of(assessment) == [pytest.approx(exp(3) / (exp(1) + exp(3)))]
    (note,) = assessment.written_notes
    assert note.message == (
        f"'tested' reads {MINICHECK} as its authors do (card and code of 2026-11-22): labels not_entailment, "
        "entailment; document and claim in one text; windows of 400 tokens; supported from 0.5"
    )
    turned = Classifier(("consistent", "hallucinated"), {("", ""): (1.0, 3.0)}, MINICHECK)
    assert scores_of(build(turned).assess(FAITHFULNESS, [sample("The cat sat on mats.", "No.")])) == [
        pytest.approx(exp(1) / (exp(1) + exp(3)))
    ]


def test_the_specs_keys_take_precedence_over_what_is_known() -> None:
    model = Classifier(("0", "1"), {("", ""): (1.0, 3.0)}, MINICHECK, room=500)
    judge = build(model, labels=("entailment", "not_entailment"), window=50, threshold=0.1)
    assessment = judge.assess(FAITHFULNESS, [sample("The cat sat on mats.", write_context(20))])
    assert finding_of(assessment).claims[0].score == pytest.approx(exp(1) / (exp(1) + exp(3)))
    assert len(model.calls[0]) == 2
    assert [note.message for note in assessment.written_notes if note.code == "known_verifier"] == [
        f"'tested' reads {MINICHECK} as its authors do (card and code of 2026-11-22): document and claim in one text"
    ]


def test_a_model_with_another_number_of_labels_than_the_known_one_is_refused() -> None:
    old = Classifier(("LABEL_0",), {}, "vectara/hallucination_evaluation_model")
    message = r"tested.model: 'small' calls its labels LABEL_0, .* Write .* 'labels: \[...\]'"
    with pytest.raises(UsageError, match=message):
        build(old).assess(FAITHFULNESS, [sample("The cat sat on mats.", "No.")])


def test_one_logit_of_a_known_model_is_a_probability() -> None:
    model = Classifier(("LABEL_0",), {("", ""): (2.0,)}, "vectara/hallucination_evaluation_model@hhem-1.0-open")
    found = build(model).assess(FAITHFULNESS, [sample("The cat sat on mats.", "No.")])
    assert scores_of(found) == [pytest.approx(1 / (1 + exp(-2)))]


@pytest.mark.parametrize(
    ("name", "room", "sentences"),
    [
        (MINICHECK, 600, 40),  # 400 tokens, as its authors cut
        (MINICHECK, 205, 20),  # no more than the model has room for beside the claim of five words
        ("yaxili96/FactCG-DeBERTa-v3-Large", 2000, 50),  # 550 tokens, of which a full stop is one
        ("yaxili96/FactCG-DeBERTa-v3-Large", None, 50),
        ("tasksource/deberta-base-long-nli", 1000, 99),
        ("cross-encoder/nli-deberta-v3-base", 500, 20),  # 1000 characters
        ("cross-encoder/nli-deberta-v3-base", 55, 5),
        (None, 55, 20),
    ],
)
def test_windows_are_as_long_as_a_known_model_reads(name: str | None, room: int | None, sentences: int) -> None:
    model = Classifier(THREE, {}, name, room)
    build(model).assess(FAITHFULNESS, [sample("The cat sat on mats.", write_context(2000))])
    windows = [window for window, _ in model.calls[0]]
    assert windows[0].count("Sentence") == sentences
    assert windows[1].startswith(f"Sentence {sentences - 1} ")  # one sentence belongs to both
    assert windows[-1].endswith("Sentence 199 has ten words with those of its end.")


def test_a_model_that_counts_no_tokens_gets_windows_by_the_average_of_english() -> None:
    model = Classifier(("0", "1"), {}, MINICHECK)
    build(model).assess(FAITHFULNESS, [sample("The cat sat on mats.", write_context(2000))])
    assert 1550 < len(model.calls[0][0][0]) < 1650  # four characters a token, sentence by sentence


def test_a_claim_that_fills_the_model_leaves_a_sentence_for_each_window() -> None:
    model = Classifier(("0", "1"), {}, MINICHECK, room=30)
    build(model).assess(FAITHFULNESS, [sample("word " * 60, write_context(50))])
    assert [window.count("Sentence") for window, _ in model.calls[0]] == [1] * 5


def test_a_known_model_that_cannot_be_run_is_refused_before_anything_runs() -> None:
    unreadable = build(Classifier(THREE, {}, "yzha/AlignScore")).check()
    assert unreadable is not None
    assert unreadable.startswith("yzha/AlignScore cannot be run: its weights are PyTorch Lightning checkpoints")
    model = Classifier(("0", "1"), {}, MINICHECK)
    assert build(model).check() is None
    model.fills_templates = False  # type: ignore[misc]
    assert build(model).check() == (
        f"{MINICHECK} reads the document and the claim in one text, which `use: onnx` does not write; "
        "write `use: onnx` in models.small"
    )


def test_validate_shows_what_is_known_of_the_model() -> None:
    (shown,) = build(Classifier(("0", "1"), {}, MINICHECK), window=500).describe_files()
    assert shown.file == MINICHECK
    assert shown.details == (
        "card and code of 2026-11-22", "labels not_entailment, entailment", "document and claim in one text",
        "supported from 0.5",
    )  # fmt: skip
    assert list(build(Classifier(THREE, {})).describe_files()) == []


def test_a_model_that_is_not_known_keeps_the_key_of_earlier_tables() -> None:
    content = build(Classifier(THREE, {})).content()
    assert content == {
        "word": "nli",
        "version": "1",
        "node": {"use": "nli", "model": "small", "labels": None, "threshold": None, "window": 1000, "overlap": 1},
    }
    known = build(Classifier(THREE, {}, MINICHECK)).content()
    assert known["verifier"] == [MINICHECK, ("not_entailment", "entailment"), 0.5, "400 tokens"]


def test_a_folder_with_the_name_of_a_known_model_is_pointed_at_published_as() -> None:
    model = Classifier(("0", "1"), {}, "models/minicheck-roberta-large")
    message = r"write `published_as` in models.small: did you mean 'lytang/MiniCheck-RoBERTa-Large'\?"
    with pytest.raises(UsageError, match=message):
        build(model).assess(FAITHFULNESS, [sample("The cat sat on mats.", "No.")])


def test_missing_models_and_other_criteria_are_refused() -> None:
    assert registry.load("judges", "nli") is Nli
    judge = build(Classifier(THREE, {}))
    assert judge.abilities == {"support", "claims"}
    assert judge.claims([("", "One. Two.")]) == [("One.", "Two.")]
    with pytest.raises(UsageError, match="cannot assess usefulness"):
        judge.assess(PRECISION, [sample("a", "b")])
    message = r"the model 'small' \(use: onnx\) is not a model that reads two texts together"
    with pytest.raises(UsageError, match=message):
        build(WordModel("small")).check()


def test_a_classifier_with_random_weights_judges_end_to_end(tmp_path: Path) -> None:
    labels = {"0": "entailment", "1": "neutral", "2": "contradiction"}
    folder = write_cross_encoder(tmp_path / "nli", config={**CROSS_ENCODER, "id2label": labels})
    model = OnnxModel(OnnxNode(use="onnx", model=str(folder)), Context("small"))
    claims, windows = ("the cat sat on a mat.", "the dog ran on the mat."), ("a dog ran on a mat.", "the owl sat.")
    found = finding_of(build(model).assess(FAITHFULNESS, [sample(" ".join(claims), *windows)]))
    for claim, text in zip(found.claims, claims, strict=True):
        logits = model.score([(window, text) for window in windows]).logits.tolist()
        shares = [softmax(*row) for row in logits]
        best = max(range(2), key=lambda place: shares[place][0])
        assert claim.score == pytest.approx(shares[best][0], rel=1e-5)
        worst = max(share[2] for share in shares)
        expected = "supported" if claim.score >= 0.5 else "contradicted" if worst >= 0.5 else "not_enough_info"
        assert claim.verdict == expected
        assert claim.text == text


def test_a_known_model_in_a_folder_judges_with_one_more_key(tmp_path: Path) -> None:
    labels = {"0": "0", "1": "1"}
    folder = write_cross_encoder(tmp_path / "verifier", config={**CROSS_ENCODER, "id2label": labels})
    known = OnnxModel(OnnxNode(use="onnx", model=str(folder), published_as=MINICHECK), Context("small"))
    template = "{document}</s>{claim}"
    stated = OnnxModel(OnnxNode(use="onnx", model=str(folder), pair_template=template), Context("small"))
    asked = [sample("the cat sat on a mat.", "a dog ran on a mat.")]
    found = finding_of(build(known).assess(FAITHFULNESS, asked))
    same = finding_of(build(stated, labels=("not_entailment", "entailment")).assess(FAITHFULNESS, asked))
    assert found.score == same.score
    logits = stated.score([("a dog ran on a mat.", "the cat sat on a mat.")]).logits[0].tolist()
    assert found.score == pytest.approx(softmax(*logits)[1], rel=1e-5)


def test_a_model_that_writes_its_verdict_judges_by_the_first_word(tmp_path: Path) -> None:
    node = OnnxNode(use="onnx", model=str(write_t5(tmp_path / "t5")), published_as="lytang/MiniCheck-Flan-T5-Large")
    model = OnnxModel(node, Context("small"))
    found = build(model).assess(FAITHFULNESS, [sample("the cat sat on a mat", "the dog sat on the mat")])
    unsupported, supported = model.score([("the dog sat on the mat", "the cat sat on a mat")]).logits[0].tolist()
    assert scores_of(found) == [pytest.approx(softmax(unsupported, supported)[1], rel=1e-5)]
    assert model.labels == ("unsupported", "supported")


def test_hhem_judges_by_the_prompt_and_the_labels_of_its_configuration(tmp_path: Path) -> None:
    model = OnnxModel(OnnxNode(use="onnx", model=str(write_hhem(tmp_path / "hhem"))), Context("small"))
    judge = build(model)
    assert list(judge.check_files()) == []
    found = judge.assess(FAITHFULNESS, [sample("the cat sat on a mat", "the dog sat on the mat")])
    hallucinated, consistent = model.score([("the dog sat on the mat", "the cat sat on a mat")]).logits[0].tolist()
    assert scores_of(found) == [pytest.approx(softmax(hallucinated, consistent)[1], rel=1e-5)]


def test_a_claim_has_the_probability_of_transformers_pipeline(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch", reason="transformers' pipeline is the reference, and needs torch")
    transformers = pytest.importorskip("transformers", reason="its pipeline is the reference")
    labels = {0: "contradiction", 1: "entailment", 2: "neutral"}
    folder = write_cross_encoder(
        tmp_path / "nli", config={**CROSS_ENCODER, "id2label": {str(one): name for one, name in labels.items()}}
    )
    with torch.no_grad():
        classifier = transformers.pipeline(
            "text-classification",
            model=transformers.BertForSequenceClassification.from_pretrained(folder, id2label=labels),
            tokenizer=transformers.PreTrainedTokenizerFast(
                tokenizer_file=str(folder / "tokenizer.json"),
                model_input_names=["input_ids", "token_type_ids", "attention_mask"],
            ),
            top_k=None,
        )
        said = classifier({"text": "a dog ran on a mat.", "text_pair": "the cat sat on a mat."})
    (expected,) = [one["score"] for one in said if one["label"] == "entailment"]
    model = OnnxModel(OnnxNode(use="onnx", model=str(folder)), Context("small"))
    found = build(model).assess(FAITHFULNESS, [sample("the cat sat on a mat.", "a dog ran on a mat.")])
    assert scores_of(found) == [pytest.approx(expected, abs=1e-5)]


def test_the_estimate_counts_the_pairs_that_are_read(tmp_path: Path) -> None:
    model = Classifier(THREE, {})
    judge, samples = build(model), [sample(ANSWER, *CONTEXTS), sample("", *CONTEXTS), sample(ANSWER)]
    [(reader, pairs)] = judge.estimate(FAITHFULNESS, samples).reads.items()
    judge.assess(FAITHFULNESS, samples)
    assert (reader.name, reader.unit, len(pairs)) == ("small", "pair", len({*model.calls[0]}))
    assert judge.estimate(PRECISION, samples).reads == {}
