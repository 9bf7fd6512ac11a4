"""Suggestions for misspelt words and keys of the package's own plugins."""

from __future__ import annotations

import re

import pytest

from rageval_spec import registry
from rageval_spec.diagnostics import SpecError
from rageval_spec.spec import loads

SPEC = """\
version: 1
datasets: {golden: {use: jsonl, path: gold.jsonl%s}}
systems: {made: {use: file, path: answers.jsonl%s}}
metrics: [%s]
%s
"""


def diagnose(*, dataset: str = "", system: str = "", metric: str = "exact_match", more: str = "") -> list[str]:
    try:
        loads(SPEC % (dataset, system, metric, more), check_files=False)
    except SpecError as error:
        return [f"{one.message}; {one.hint}" if one.hint else one.message for one in error.diagnostics]
    return []


def test_keys_of_other_tools_suggest_the_key_here() -> None:
    assert diagnose(system=", fields: {answer: x}") == ["unknown key 'fields'; did you mean 'columns'?"]


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("groundedness", "faithfulness"),
        ("Response-Relevancy", "answer_relevancy"),
        ("negative_rejection", "answerability"),
        ("success_rate", "error_rate"),
        ("hallucination", "faithfulness"),
        ("answer_similarity", "semantic_similarity"),
        ("contextual_precision", "context_precision"),
        ("context-faithfulness", "faithfulness"),
        ("llm-rubric", "rubric"),
        ("ROUGE", "rouge_l"),
    ],
)
def test_metrics_are_found_by_their_names_in_other_tools(written: str, meant: str) -> None:
    assert diagnose(metric=f"'{written}'") == [f"unknown measure '{written}'; did you mean '{meant}'?"]
    assert diagnose(metric=f"{{use: '{written}'}}") == [f"unknown metric '{written}'; did you mean '{meant}'?"]


@pytest.mark.parametrize("written", ["latency@95", "latency_p95", "p95_latency", "Latency-p95", "latency@p95"])
def test_percentiles_are_found_however_they_are_written(written: str) -> None:
    hint = "write latency@p95, or as a block {use: latency, percentile: 95}"
    assert diagnose(metric=f"{{use: '{written}'}}") == [f"unknown metric '{written}'; {hint}"]
    if written != "latency@p95":
        assert diagnose(metric=f"'{written}'") == [f"unknown measure '{written}'; {hint}"]


@pytest.mark.parametrize("written", ["12", "true", "1.5", "[12h]", "'12'", "soon"])
def test_a_duration_that_is_none_is_told_how_to_be_written(written: str) -> None:
    told = "'resume': must be a duration such as 12h, 90m or 2d, or the word never"
    assert diagnose(more=f"resume: {written}") == [told]


def test_a_range_with_one_end_says_that_it_needs_two() -> None:
    (found,) = diagnose(metric="{use: column, column: rating, range: [1]}")
    assert found.startswith("'range' has only 1 entry; the lowest and the highest possible value, such as [1, 5]")


def test_a_metric_without_its_judge_lists_the_judges() -> None:
    (found,) = diagnose(metric="faithfulness")
    assert found == (
        "the metric 'faithfulness' needs 'judge'; write {use: faithfulness, judge: overlap}; "
        "there are overlap, embedding, waterfall and those under 'judges:'"
    )


@pytest.mark.parametrize("share", ["101%", "150%", "100.1%", "999 %"])
def test_a_share_of_errors_is_at_most_100_percent(share: str) -> None:
    (found,) = diagnose(more=f"limits: {{max_errors: {share}}}")
    assert "or a share of them from 0% to 100%, such as 1%" in found


@pytest.mark.parametrize("share", ["0%", "1%", "99.5 %", "100%", "100.0%"])
def test_shares_up_to_100_percent_are_accepted(share: str) -> None:
    assert diagnose(more=f"limits: {{max_errors: {share}}}") == []


@pytest.mark.parametrize("word", ["openai", "gpt4", "gpt-4o", "anthropic", "ollama", "azure"])
def test_providers_of_models_suggest_chat(word: str) -> None:
    assert diagnose(more=f"models: {{m: {{use: {word}}}}}") == [f"unknown model '{word}'; did you mean 'chat'?"]
    assert diagnose(more=f"judges: {{j: {{use: {word}}}}}") == [
        f"unknown judge '{word}'; it is a model; declare it under 'models:' with 'use: chat', "
        "and write {use: claims, model: NAME} here"
    ]


@pytest.mark.parametrize("section", ["datasets", "systems", "models", "judges", "metrics", "reports"])
def test_no_two_plugins_of_a_section_claim_one_word(section: registry.Section) -> None:
    words = registry.words(section)
    claimed = [other for word in words for other in registry.load(section, word).known_as]
    assert len(claimed) == len({*claimed} - {*words})
    assert all(re.fullmatch(r"[a-z0-9_]+", other) for other in claimed)


def test_a_misspelt_word_does_not_hide_the_other_errors_of_its_block() -> None:
    found = diagnose(
        dataset="",
        metric="{use: faithfullness, judge: nope, treshold: 1}",
        more="judges: {strict: {use: clams, modle: m, max_steps: x}}\nreports: [{use: jsonn, nothing: 1}]",
    )
    assert [one.partition(";")[0] for one in found] == [
        "unknown metric 'faithfullness'",
        "the spec has no judge 'nope'",
        "unknown key 'treshold'",
        "unknown judge 'clams'",
        "unknown key 'modle'",
        "unknown key 'max_steps'",
        "unknown report 'jsonn'",
        "unknown key 'nothing'",
    ]


def test_the_keys_of_a_block_whose_word_is_like_no_other_are_not_guessed() -> None:
    found = diagnose(more="judges: {strict: {use: something, modle: m}}")
    assert len(found) == 1 and found[0].startswith("unknown judge 'something'")
