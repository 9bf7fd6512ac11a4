from __future__ import annotations

import sys

import pytest

from onnx_from_checkpoints.configuration import Configuration, parse_template
from rageval_spec.errors import UsageError
from rageval_spec.inference.pair_keys import check_pair_keys, choose_reading

MINICHECK = "lytang/MiniCheck-Flan-T5-Large"
WRITER = Configuration(task="embedding", encoder={"architectures": ["T5ForConditionalGeneration"]})
ENCODER = Configuration(task="embedding", encoder={"architectures": ["BertModel"]})
CLASSIFIER = Configuration(task="classification", encoder={"architectures": ["RobertaForSequenceClassification"]})


def fail() -> str:
    raise AssertionError("the name of an embedding model is not looked up")


def test_an_embedding_model_needs_no_table(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "rageval_spec.inference.verifiers", None)
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
