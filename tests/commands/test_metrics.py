from __future__ import annotations

import re

import pytest

from rageval_spec import kernels, registry
from rageval_spec.commands.metrics import GROUPS, describe_metric, list_metrics
from rageval_spec.errors import UsageError
from rageval_spec.plugin import MetricInfo
from tests.command_line import invoke

WORDS = registry.words("metrics")


def words_below(heading: str) -> list[str]:
    """The words listed under a heading."""
    section = list_metrics().partition(f"{heading}:\n")[2].partition("\n\n")[0]
    return re.findall(r"^(\w+)  ", section, re.MULTILINE)


def test_every_metric_is_listed_once() -> None:
    listed = [word for heading in GROUPS.values() for word in words_below(heading)]
    assert sorted(listed) == sorted(WORDS)


def test_metrics_are_grouped_by_what_they_measure() -> None:
    assert {"ndcg", "target_rank"} <= set(words_below(GROUPS["ranking"]))
    text = {"bleu", "chrf", "exact_match", "rouge_l", "semantic_similarity", "token_f1"}
    assert text <= set(words_below(GROUPS["text"]))
    assert {"cost", "error_rate", "latency", "tokens"} <= set(words_below(GROUPS["operation"]))
    assert "Others" not in list_metrics()


@pytest.mark.parametrize(
    ("name", "word"),
    [
        ("ndcg_cut_10", "ndcg"),
        ("em", "exact_match"),
        ("rougeL", "rouge_l"),
        ("ROUGE-L", "rouge_l"),
        ("chrF", "chrf"),
        ("BLEU", "bleu"),
        ("bleu(tokenize=char)", "bleu"),
        ("latency@p95", "latency"),
        ("answer_similarity", "semantic_similarity"),
    ],
)
def test_a_metric_is_found_by_every_name(name: str, word: str) -> None:
    assert describe_metric(name).startswith(f"{word}: ")


@pytest.mark.parametrize(("name", "near"), [("latencyy", "latency"), ("tokenf1", "token_f1"), ("ndgc@10", "ndcg@10")])
def test_an_unknown_metric(name: str, near: str) -> None:
    with pytest.raises(UsageError, match=f"did you mean '{near}'"):
        describe_metric(name)


def test_a_metric_is_suggested_for_what_other_tools_measure() -> None:
    with pytest.raises(UsageError, match="there is no metric 'hallucination'; did you mean 'faithfulness'"):
        describe_metric("hallucination")


def test_a_measure_with_unknown_parameters_is_refused() -> None:
    with pytest.raises(UsageError, match="there is no metric"):
        describe_metric("ndcg@p95")


def test_the_unit_and_what_a_query_needs_are_shown() -> None:
    assert "\nNeeds\n  answer, reference\n" in describe_metric("token_f1")
    assert "Needs" not in describe_metric("latency")
    assert "\n  0 or more seconds; lower is better" in describe_metric("latency")


def test_no_two_metrics_share_a_name() -> None:
    names = [alias for word in WORDS for alias in {word, *registry.load("metrics", word).info.aliases}]
    assert len(names) == len(set(names))
    assert not {alias for alias, word in kernels.measure_aliases().items() if alias in WORDS and alias != word}


@pytest.mark.parametrize("word", [word for word in WORDS if registry.load("metrics", word).group != "ranking"])
def test_documentation_is_complete(word: str) -> None:
    info: MetricInfo = registry.load("metrics", word).info
    assert info.summary.endswith(".")
    assert word in info.formula
    assert all(": " in case for case in info.edge_cases)
    assert info.edge_cases
    assert re.search(r"\b(19|20)\d\d\b", info.source)


def test_metrics_lists_every_metric_with_what_it_measures() -> None:
    result = invoke("metrics")
    assert result.exit_code == 0
    for word in registry.words("metrics"):
        assert re.search(rf"^{word}  +\S", result.stdout, re.MULTILINE)


@pytest.mark.parametrize("name", ["ndcg", "ndcg_cut", "ndcg_cut_10", "NDCG@10"])
def test_metrics_show_knows_every_name_of_a_metric(name: str) -> None:
    result = invoke("metrics", "show", name)
    assert result.exit_code == 0
    assert result.stdout.startswith("ndcg: ")
    for heading in ("Formula", "Edge cases", "Keys", "Range", "Source"):
        assert f"\n{heading}\n" in result.stdout


def test_metrics_show_of_an_unknown_name() -> None:
    result = invoke("metrics", "show", "ncdg")
    assert result.exit_code == 2
    assert "did you mean 'ndcg'?" in result.stderr
