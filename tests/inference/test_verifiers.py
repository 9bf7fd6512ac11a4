""""""

from __future__ import annotations

import re
from datetime import date

import pytest

from onnx_from_checkpoints.configuration import Configuration, parse_template
from rageval_spec.errors import DataError, UsageError
from rageval_spec.inference.verifiers import (
    VERIFIERS,
    Verifier,
    Window,
    check_pair_keys,
    choose_reading,
    find_reading,
    find_verifier,
    read_label,
)

PROMPT = "<pad> Determine if the hypothesis is true given the premise?\n\nPremise: {text1}\n\nHypothesis: {text2}"
EVERY = pytest.mark.parametrize("verifier", VERIFIERS.values(), ids=lambda verifier: verifier.key)


@EVERY
def test_every_entry_says_what_it_stands_on(verifier: Verifier) -> None:
    assert re.fullmatch(r"[\w-]+/[\w.-]+", verifier.name)
    assert VERIFIERS[verifier.key] is verifier
    assert verifier.license in ("MIT", "Apache-2.0")
    assert verifier.language
    assert verifier.sources
    assert all(source.startswith("https://") for source in verifier.sources)
    assert date(2026, 1, 1) < verifier.read <= date.today()


@EVERY
def test_every_entry_can_be_computed_with(verifier: Verifier) -> None:
    assert not verifier.labels or verifier.labels.count("entailment") == 1
    assert verifier.max_length is None or verifier.max_length >= 512
    assert verifier.threshold is None or 0 < verifier.threshold < 1
    if verifier.template is not None:
        assert str(parse_template(verifier.template)) == verifier.template
    if verifier.window is not None and verifier.max_length is not None:
        assert verifier.window.unit != "tokens" or verifier.window.size <= verifier.max_length


def test_a_verifier_is_found_by_its_id_in_any_case_and_by_its_branch() -> None:
    new, old = VERIFIERS["vectara/hallucination_evaluation_model"], "vectara/hallucination_evaluation_model"
    assert find_verifier(old.upper()) is new
    assert find_verifier(f"{old}@0a1b2c") is new
    assert find_verifier(f"{old}@hhem-1.0-open") is VERIFIERS[f"{old}@hhem-1.0-open"]
    assert find_verifier("roberta-large-mnli") is VERIFIERS["FacebookAI/roberta-large-mnli"]
    assert find_verifier("MiniCheck-RoBERTa-Large") is None  # a name without an owner can be anybody's model
    assert find_verifier("") is None


def test_a_window_is_written_with_its_unit() -> None:
    assert str(Window(400, "tokens")) == "400 tokens"


@pytest.mark.parametrize("model_type", ["HHEMv2", "HHEMv2Config"])
def test_hhem_is_read_through_the_prompt_in_its_configuration(model_type: str) -> None:
    found = find_reading("./folder", {"model_type": model_type, "prompt": PROMPT})
    assert found is not None
    assert found.template is not None
    assert parse_template(found.template).fill("D", "C").text == PROMPT.format(text1="D", text2="C")


def test_known_models_are_found_by_their_name_in_any_case() -> None:
    found = find_reading("lytang/MiniCheck-RoBERTa-Large", {"model_type": "roberta"})
    assert found is not None
    assert (found.template, found.max_length) == ("{document}</s>{claim}", 512)
    assert find_reading("lytang/minicheck-roberta-large", {}) == found


def test_a_known_model_without_a_template_reads_pairs_as_two_sequences() -> None:
    found = find_reading("tasksource/deberta-base-long-nli", {"model_type": "deberta-v2"})
    assert found is not None
    assert (found.template, found.max_length) == (None, 1280)
    assert find_reading("owner/unknown", {"model_type": "deberta-v2"}) is None
    assert find_reading(None, {"model_type": "deberta-v2"}) is None


@pytest.mark.parametrize(
    ("config", "message"), [({}, "'prompt' is missing"), ({"prompt": "{text1}"}, r"'prompt' must have .*\{text2\}")]
)
def test_a_prompt_of_hhem_that_cannot_be_used_is_refused(config: dict[str, str], message: str) -> None:
    with pytest.raises(DataError, match=message):
        find_reading("./folder", {"model_type": "HHEMv2", **config})


@pytest.mark.parametrize(
    ("name", "meaning"),
    [
        ("ENTAILMENT", "entailment"),
        ("Supported", "entailment"),
        ("consistent", "entailment"),
        ("not-entailment", "not_entailment"),
        ("UNSUPPORTED", "not_entailment"),
        ("hallucinated", "not_entailment"),
        ("NOT ENOUGH INFO", "neutral"),
        ("Refutes", "contradiction"),
        ("LABEL_0", None),
        ("0", None),
        ("positive", None),
        ("", None),
    ],
)
def test_a_label_is_read_in_any_spelling(name: str, meaning: str | None) -> None:
    assert read_label(name) == meaning


MINICHECK = "lytang/MiniCheck-Flan-T5-Large"
WRITER = Configuration(task="embedding", encoder={"architectures": ["T5ForConditionalGeneration"]})
ENCODER = Configuration(task="embedding", encoder={"architectures": ["BertModel"]})
CLASSIFIER = Configuration(task="classification", encoder={"architectures": ["RobertaForSequenceClassification"]})


def fail() -> str:
    raise AssertionError("the name of an embedding model is not looked up")


def test_the_name_of_an_embedding_model_is_not_looked_up() -> None:
    assert choose_reading(ENCODER, fail, None, None) == {}


def test_a_known_model_is_read_as_it_was_trained() -> None:
    chosen = choose_reading(WRITER, lambda: MINICHECK, None, None)
    assert chosen["task"] == "classification"
    assert chosen["replies"] == {"unsupported": "0", "supported": "1"}
    assert "{document}" in str(chosen["pair_format"])
    assert chosen["max_length"] == 2048


def test_the_spec_comes_before_the_table() -> None:
    chosen = choose_reading(WRITER, lambda: MINICHECK, "{claim} of {document}", {"no": "No", "yes": "Yes"})
    assert chosen["pair_format"] == parse_template("{claim} of {document}")
    assert chosen["labels"] == ("no", "yes")
    assert "max_length" not in chosen


def test_an_unknown_classifier_is_read_as_its_files_say() -> None:
    assert choose_reading(CLASSIFIER, lambda: None, None, None) == {}


@pytest.mark.parametrize(
    ("configuration", "replies", "template", "message"),
    [
        (CLASSIFIER, {"no": "0"}, None, "replies: is only for models that write text"),
        (WRITER, None, "{document}{claim}", "pair_template: mine writes text; to classify pairs"),
    ],
)
def test_keys_that_do_not_fit_the_files_are_refused(
    configuration: Configuration, replies: dict[str, str] | None, template: str | None, message: str
) -> None:
    with pytest.raises(UsageError, match=message):
        check_pair_keys("mine", replies, template, configuration)
