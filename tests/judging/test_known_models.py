""""""

from __future__ import annotations

import pytest

from rageval_spec.inference.verifiers import VERIFIERS, Verifier, Window
from rageval_spec.judging.known_models import (
    DETECTORS,
    KnownDetector,
    describe_detector,
    describe_verifier,
    find_detector,
    list_taken,
    make_rulers,
    suggest_known,
)
from rageval_spec.judging.span_detection import PROMPTS


@pytest.mark.parametrize(
    "name",
    ["lytang/MiniCheck-RoBERTa-Large", "krlabsorg/lettucedect-base-modernbert-en-v1", "yzha/AlignScore@main"],
)
def test_nothing_is_suggested_for_models_that_a_judge_knows(name: str) -> None:
    assert suggest_known(name) is None


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("models/minicheck-roberta-large", "lytang/MiniCheck-RoBERTa-Large"),
        ("lytang/MiniCheck-Roberta", "lytang/MiniCheck-RoBERTa-Large"),
        ("lettucedect-base-modernbert-en-v1", "KRLabsOrg/lettucedect-base-modernbert-en-v1"),
    ],
)
def test_the_model_that_was_probably_meant_is_named(name: str, meant: str) -> None:
    assert suggest_known(name) == f"did you mean '{meant}'?"


def test_other_names_are_pointed_at_the_lists() -> None:
    told = suggest_known("xyz")
    assert told is not None
    assert "explain nli" in told
    assert "explain detector" in told


@pytest.mark.parametrize("detector", DETECTORS.values(), ids=lambda detector: detector.name)
def test_every_entry_shows_the_yaml_that_uses_it(detector: KnownDetector) -> None:
    shown = describe_detector(detector)
    assert f"model: {detector.name}" in shown.example
    assert detector.language in PROMPTS
    assert shown.sources[0].endswith(detector.name)


def test_the_detectors_of_the_guides_are_there() -> None:
    assert {"KRLabsOrg/lettucedect-base-modernbert-en-v1", "KRLabsOrg/lettucedect-large-modernbert-en-v1"} < {
        *DETECTORS
    }


def test_a_detector_is_found_in_any_case_and_at_any_commit() -> None:
    found = find_detector("krlabsorg/lettucedect-210m-eurobert-cn-v1@main")
    assert found is not None
    assert (found.language, found.languages) == ("zh", "Chinese")
    assert find_detector("KRLabsOrg/other") is None


EVERY = pytest.mark.parametrize("verifier", VERIFIERS.values(), ids=lambda verifier: verifier.key)


@EVERY
def test_every_entry_shows_the_yaml_that_uses_it_or_why_it_cannot_run(verifier: Verifier) -> None:
    shown = describe_verifier(verifier)
    assert bool(shown.example) is not bool(verifier.unreadable)
    assert shown.facts["Cannot run"] == verifier.unreadable
    if shown.example:
        assert f"model: {verifier.name}" in shown.example
        assert ("revision:" in shown.example) is (verifier.revision is not None)


def test_only_what_the_spec_and_the_configuration_leave_open_is_taken() -> None:
    verifier = VERIFIERS["lytang/MiniCheck-RoBERTa-Large"]
    labels, text, windows, verdicts = list_taken(verifier, (), reads_labels=False)
    assert (labels, text) == ("labels not_entailment, entailment", "document and claim in one text")
    assert (windows, verdicts) == ("windows of 400 tokens", "supported from 0.5")
    assert list_taken(verifier, ("window", "threshold"), reads_labels=True) == [text]
    assert list_taken(VERIFIERS["cross-encoder/nli-deberta-v3-base"], (), reads_labels=True) == []


@pytest.mark.parametrize(
    ("window", "room", "limits"),
    [
        (Window(1000), None, []),
        (Window(1000), 300, [300]),
        (Window(400, "tokens"), None, [400]),
        (Window(400, "tokens"), 300, [300]),
        (Window(400, "tokens"), -5, [1]),
        (Window(500, "words"), 300, [500, 300]),
    ],
)
def test_the_rulers_are_those_of_the_window_and_of_the_room(
    window: Window, room: int | None, limits: list[int]
) -> None:
    assert [ruler.limit for ruler in make_rulers(window, room, lambda texts: None)] == limits


def test_tokens_are_counted_by_the_model_or_estimated() -> None:
    (counted,) = make_rulers(Window(9, "tokens"), None, lambda texts: [7 for _ in texts])
    (estimated,) = make_rulers(Window(9, "tokens"), None, lambda texts: None)
    assert counted.measure(["a", "b"]) == [7, 7]
    assert estimated.measure(["", "abcd", "abcde"]) == [0, 1, 2]
