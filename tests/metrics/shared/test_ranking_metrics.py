"""Holds for every measure of the kernel: its file, its documentation and its names agree."""

import re
from typing import Any

import pytest

from rageval_spec import kernels, registry
from rageval_spec.metrics.shared.ranking_metrics import Cutoff, JudgedOnly, KernelMetric, OptionalCutoff, RelevanceLevel
from rageval_spec.plugin import MetricInfo, RankingMetric
from rageval_spec.plugin.metric import LABEL_KEYS
from tests.metrics.scoring import plugin

WORDS = [word for word in registry.words("metrics") if issubclass(registry.load("metrics", word), RankingMetric)]


def required(word: str) -> dict[str, Any]:
    """The required keys of a measure's node."""
    known = {"cutoff": 10, "recall": 0.1}
    fields = registry.load("metrics", word).node_type.model_fields
    return {name: known[name] for name, field in fields.items() if field.is_required() and name != "use"}


def every_key(word: str) -> dict[str, Any]:
    """A value for every key of a measure, each different from its default; labels are for metrics of answers.

    How values are shown is no part of the measure.
    """
    known = {
        "cutoff": 7,
        "recall": 0.3,
        "rel": 2,
        "judged_only": True,
        "gain": "exp",
        "p": 0.5,
        "max_grade": 3,
        "beta": 2.5,
    }
    fields = registry.load("metrics", word).node_type.model_fields
    return {name: known[name] for name in fields if name not in ("use", "as_", "show_as", *LABEL_KEYS)}


def test_every_measure_of_the_kernel_has_a_file_and_vice_versa() -> None:
    assert sorted(WORDS) == sorted(kernels.measure_names())


@pytest.mark.parametrize("word", WORDS)
def test_documentation_is_complete(word: str) -> None:
    metric = registry.load("metrics", word)
    info: MetricInfo = metric.info
    cases = metric.list_edge_cases()
    assert info.summary.endswith(".")
    assert info.formula.startswith(word)
    every = " ".join(cases)
    assert "not in the run: " in every
    assert "no relevant document" in every or "no document with a positive relevance" in every or word == "judged"
    assert all(": " in case for case in cases)
    assert re.search(r"\b(19|20)\d\d\b|trec_eval v9\.0\.8", info.source)
    low, high = info.bounds
    assert high is None or low < high


@pytest.mark.parametrize("word", WORDS)
@pytest.mark.parametrize("keys", [required, every_key])
def test_the_kernel_reads_the_measure_back(word: str, keys: Any) -> None:
    metric = plugin(word, **keys(word))
    assert isinstance(metric, KernelMetric)
    parsed = kernels.parse_measure(metric.measure())
    assert (parsed.text, parsed.name) == (metric.measure(), word)
    given = {**keys(word)}
    assert parsed.cutoff == given.pop("cutoff", None)
    assert parsed.parameters == given
    assert metric.name == metric.measure()


@pytest.mark.parametrize("word", WORDS)
def test_a_parsed_measure_is_the_node_again(word: str) -> None:
    """Reads a bare string such as `ndcg@10` as the loader does."""
    metric = plugin(word, **every_key(word))
    parsed = kernels.parse_measure(metric.name)
    cutoff = {} if parsed.cutoff is None else {"cutoff": parsed.cutoff}
    assert plugin(parsed.name, **cutoff, **parsed.parameters).node == metric.node


@pytest.mark.parametrize("word", WORDS)
def test_aliases_match_the_kernels(word: str) -> None:
    aliases = {alias for alias, name in kernels.measure_aliases().items() if name == word}
    assert set(registry.load("metrics", word).info.aliases) == aliases
    at = "@10" if issubclass(registry.load("metrics", word).node_type, Cutoff | OptionalCutoff) else ""
    at = "@0.1" if word == "iprec" else at
    for alias in aliases:
        assert kernels.parse_measure(alias + at).name == word


@pytest.mark.parametrize(
    ("spelling", "word"),
    [
        ("nDCG@10", "ndcg"),
        ("ndcg_cut_10", "ndcg"),
        ("NDCG@10", "ndcg"),
        ("P@5", "precision"),
        ("P_5", "precision"),
        ("R@100", "recall"),
        ("Recall@100", "recall"),
        ("recall.100", "recall"),
        ("R_cap@10", "capped_recall"),
        ("Success@1", "success"),
        ("success_5", "success"),
        ("RR@10", "rr"),
        ("MRR@10", "rr"),
        ("recip_rank", "rr"),
        ("AP", "map"),
        ("MAP@100", "map"),
        ("map_cut_100", "map"),
        ("Rprec", "rprec"),
        ("Bpref", "bpref"),
        ("infAP", "infap"),
        ("RBP(p=0.9)", "rbp"),
        ("ERR@20", "err"),
        ("IPrec@0.1", "iprec"),
        ("iprec_at_recall_0.10", "iprec"),
        ("gm_map", "gm_map"),
        ("Judged@10", "judged"),
        ("NumRet", "num_ret"),
        ("NumRel", "num_rel"),
        ("num_rel_ret", "num_rel_ret"),
        ("set_P", "set_precision"),
        ("SetP", "set_precision"),
        ("set_recall", "set_recall"),
        ("SetR", "set_recall"),
        ("set_F", "set_f"),
        ("SetF", "set_f"),
    ],
)
def test_names_of_other_tools(spelling: str, word: str) -> None:
    assert kernels.parse_measure(spelling).name == word


def test_keys_without_effect_are_not_offered() -> None:
    for word in ("ndcg", "dcg", "err", "judged", "num_ret"):
        assert not issubclass(registry.load("metrics", word).node_type, RelevanceLevel)
    for word in ("judged", "num_rel", "num_rel_ret", "set_recall", "bpref"):
        assert not issubclass(registry.load("metrics", word).node_type, JudgedOnly)
