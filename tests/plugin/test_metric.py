from __future__ import annotations

from typing import Any

import pytest

from rageval_spec.plugin.metric import name_metric
from tests.metrics.judges import RuleJudge, metric


def test_names_contain_the_keys_that_differ_from_their_defaults() -> None:
    judge = RuleJudge("recall")
    assert name_metric(metric("faithfulness", judge).node) == "faithfulness"
    # the judge's name is left out, but not a key's value that looks like it
    assert name_metric(metric("factual_correctness", judge, mode="recall").node) == "factual_correctness(mode=recall)"
    assert name_metric(metric("factual_correctness", judge, beta=0.5).node) == "factual_correctness(beta=0.5)"
    assert name_metric(metric("context_precision", judge, with_="answer").node) == "context_precision(with=answer)"
    assert name_metric(metric("context_recall", by="ids", rel=2).node) == "context_recall(by=ids,rel=2)"
    built = metric("answer_correctness", judge, weights=[1, 3.5], model="other")
    assert name_metric(built.node) == "answer_correctness(weights=1+3.5)"
    assert name_metric(built.node, hidden=("weights",)) == "answer_correctness"
    assert built.name == "answer_correctness(weights=1+3.5)"


@pytest.mark.parametrize(
    ("word", "keys", "name"),
    [
        ("ndcg", {"gain": "exp", "cutoff": 10, "judged_only": True}, "ndcg(gain=exp,judged_only=true)@10"),
        ("iprec", {"recall": 1.0}, "iprec@1"),
        ("iprec", {"recall": 0.123456789}, "iprec@0.123456789"),
        ("bleu", {"tokenize": "char", "lowercase": True}, "bleu(lowercase=true,tokenize=char)"),
        ("semantic_similarity", {"model": "other"}, "semantic_similarity"),
        ("tokens", {"of": "input"}, "tokens(of=input)"),
        ("cost", {"price": {"input": 1, "output": 2}}, "cost"),
        ("error_rate", {"as_": "broken"}, "error_rate"),
        ("latency", {"percentile": 95}, "latency@p95"),
        ("answerability", {"by": "phrases", "phrases": ["no"]}, "answerability(by=phrases)"),
    ],
)
def test_every_kind_of_metric_is_named_by_the_same_rule(word: str, keys: dict[str, Any], name: str) -> None:
    assert metric(word, **keys).name == name


def test_how_a_metric_is_shown_changes_neither_its_name_nor_what_is_stored() -> None:
    plain, shown = metric("recall", cutoff=5), metric("recall", cutoff=5, show_as="percent")
    assert (plain.name, plain.content()) == (shown.name, shown.content())
    assert "show_as" not in plain.node.model_dump(mode="json"), "digests of older specs stay"
    assert not plain.is_percent
    assert shown.is_percent
