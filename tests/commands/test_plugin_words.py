""""""

from __future__ import annotations

import json
import re
from datetime import date

import pytest

from rageval_spec import kernels, registry
from rageval_spec.commands.plugin_words import (
    GROUPS,
    describe,
    describe_known_model,
    describe_metric,
    describe_plugin,
    describe_plugin_as_json,
    list_metrics,
    list_plugins,
    list_plugins_as_json,
    tabulate,
    to_json,
)
from rageval_spec.errors import UsageError
from rageval_spec.plugin import MetricInfo
from rageval_spec.plugin.plugin import KnownModel
from tests.command_line import invoke

SECTIONS: tuple[registry.Section, ...] = ("datasets", "systems", "judges", "labels", "reports")


@pytest.mark.parametrize("section", SECTIONS)
def test_every_section_lists_and_shows_its_words(section: registry.Section) -> None:
    word = registry.words(section)[0]
    assert invoke(section).stdout == invoke(section, "list").stdout == list_plugins(section)
    assert invoke(section, "show", word).stdout == describe_plugin(section, word)
    assert invoke(section, "show", "nothing").exit_code == 2
    assert list(json.loads(invoke(section, "list", "--format", "json").stdout)) == list(registry.words(section))
    assert json.loads(invoke(section, "show", word, "--format", "json").stdout)["word"] == word


def test_only_judges_show_models() -> None:
    shown = invoke("judges", "show", "nli", "--model", "minicheck-flan-t5-large")
    assert (shown.exit_code, shown.stdout.splitlines()[0]) == (0, "lytang/MiniCheck-Flan-T5-Large")
    as_json = invoke("judges", "show", "nli", "--model", "lytang/MiniCheck-Flan-T5-Large", "--format", "json")
    assert json.loads(as_json.stdout)["windows"] == "500 words"
    assert invoke("reports", "show", "html", "--model", "x").exit_code == 2


ALL_SECTIONS: tuple[registry.Section, ...] = ("datasets", "systems", "models", "judges", "labels", "reports")
WORDS = [(section, word) for section in ALL_SECTIONS for word in registry.words(section)]


@pytest.mark.parametrize("section", ALL_SECTIONS)
def test_every_word_is_listed_once_with_its_summary(section: registry.Section) -> None:
    listed = re.findall(r"^(\w+)  +[A-Z]", list_plugins(section), re.MULTILINE)
    assert listed == list(registry.words(section))


@pytest.mark.parametrize(("section", "word"), WORDS)
def test_every_plugin_shows_all_its_keys_and_how_to_write_it(section: registry.Section, word: str) -> None:
    shown = describe_plugin(section, word)
    assert shown.startswith(f"{word}: ")
    assert "\nHow it works\n  " in shown
    fields = registry.load(section, word).node_type.model_fields
    keys = re.findall(r"^  - (\w+): \S", shown.partition("\nKeys\n")[2], re.MULTILINE)
    assert {*keys} == {field.alias or name for name, field in fields.items()} - {"use"}
    example = shown.partition("\nWrite\n")[2].splitlines()[0]
    assert all(f"{name}: ..." in example for name, field in fields.items() if field.is_required() and name != "use")


def test_required_keys_come_first_and_choices_and_defaults_are_shown_as_yaml() -> None:
    shown = describe_plugin("judges", "binary")
    keys = shown.partition("\nKeys\n")[2]
    assert keys.lstrip().startswith("- model: ") and "(required)" in keys.partition("\n  - ")[0]
    assert "(default false)" in keys
    assert "one of auto, cosine, dot" in re.sub(r"\s+", " ", describe_plugin("models", "onnx"))


def test_a_block_without_defaults_shows_its_keys() -> None:
    shown = re.sub(r"\s+", " ", describe_plugin("labels", "csv"))
    assert "(keys: query_id, value, annotator, metric," in shown
    assert "null" not in shown


def test_a_judge_shows_what_it_can_do() -> None:
    assert "\nCan\n  - say which claims of a text are supported\n" in describe_plugin("judges", "nli")
    assert "\nCan\n" not in describe_plugin("judges", "panel")  # that depends on its members


@pytest.mark.parametrize(
    ("section", "name", "word"),
    [("models", "openai", "chat"), ("systems", "LangChain", "python"), ("judges", "g-eval", "grade")],
)
def test_a_plugin_is_found_by_its_name_in_other_tools(section: registry.Section, name: str, word: str) -> None:
    assert describe_plugin(section, name).startswith(f"{word}: ")


def test_an_unknown_word_suggests_the_nearest_or_lists_all() -> None:
    with pytest.raises(UsageError, match="there is no judge 'bianry'; did you mean 'binary'"):
        describe_plugin("judges", "bianry")
    with pytest.raises(UsageError, match=r"there is no judge 'openai'; it is a model; .* with 'use: chat'"):
        describe_plugin("judges", "openai")
    with pytest.raises(
        UsageError, match="there is no report 'pdf'; the words of 'reports:' are braintrust, codequality, csv, html, "
    ):
        describe_plugin("reports", "pdf")


def test_a_judge_shows_the_models_that_it_knows() -> None:
    shown = describe_plugin("judges", "nli")
    table = shown.partition("\nKnown models\n")[2].partition("\n\n")[0].splitlines()
    assert table[0].split() == ["Model", "License", "Tokens", "Language"]
    assert any(line.split() == ["lytang/MiniCheck-RoBERTa-Large", "MIT", "512", "English"] for line in table)
    assert "rageval-spec judges show nli --model NAME" in shown
    assert "Known models" not in describe_plugin("judges", "overlap")


def test_one_known_model_is_found_by_its_id_or_its_name_in_any_case() -> None:
    for name in ("lytang/MiniCheck-RoBERTa-Large", "minicheck-roberta-large"):
        shown = describe_known_model("judges", "nli", name, "text")
        assert shown.startswith("lytang/MiniCheck-RoBERTa-Large\n")
        assert "models: {verifier: {use: onnx, model: lytang/MiniCheck-RoBERTa-Large}}" in shown
    facts = json.loads(describe_known_model("judges", "hhem", "vectara/hallucination_evaluation_model", "json"))
    assert (facts["license"], facts["threshold"]) == ("Apache-2.0", "none stated; 0.5 is used")


def test_an_unknown_model_is_refused_with_a_suggestion() -> None:
    with pytest.raises(UsageError, match="the judge 'nli' does not know the model 'MiniCheck-Roberta'; did you mean"):
        describe_known_model("judges", "nli", "MiniCheck-Roberta", "text")
    with pytest.raises(UsageError, match="'zzz'; list the known models with: rageval-spec judges show nli"):
        describe_known_model("judges", "nli", "zzz", "text")
    with pytest.raises(UsageError, match="the judge 'overlap' knows no models by their names; leave out --model"):
        describe_known_model("judges", "overlap", "minilm", "text")


def test_json_holds_what_the_text_says() -> None:
    shown = json.loads(describe_plugin_as_json("judges", "minicheck"))
    assert shown["word"] == "nli"
    assert shown["keys"]["model"]["required"] is True
    assert shown["keys"]["overlap"]["default"] == 1
    assert shown["can"] == ["say which claims of a text are supported", "split a text into claims"]
    assert "lytang/MiniCheck-RoBERTa-Large" in [model["name"] for model in shown["models"]]
    listed = json.loads(list_plugins_as_json("judges"))
    assert [*listed] == list(registry.words("judges"))


def test_models_show_lists_the_words_and_shows_one() -> None:
    assert invoke("models", "show").stdout == list_plugins("models")
    assert invoke("models", "show", "chat").stdout == describe_plugin("models", "chat")


def make(name: str, license: str, example: str = "models: {}\njudges: {}") -> KnownModel:
    columns = {"License": license, "Tokens": "512"}
    return KnownModel(name, columns, {"Threshold": "0.5", "Remark": ""}, ("https://x.org",), date(2026, 5, 4), example)


def test_the_table_has_a_line_for_each_model() -> None:
    assert tabulate([make("a/b", "MIT"), make("a/longer", "Apache-2.0")]) == (
        "  Model     License     Tokens\n  a/b       MIT         512\n  a/longer  Apache-2.0  512"
    )


def test_one_model_shows_its_facts_its_sources_and_the_yaml() -> None:
    assert describe(make("a/b", "MIT")) == (
        "a/b\n  License    MIT\n  Tokens     512\n  Threshold  0.5\n  Read       2026-05-04\n\n"
        "Sources\n  https://x.org\n\nWrite\n  models: {}\n  judges: {}\n"
    )
    assert "Write" not in describe(make("a/b", "MIT", example=""))


def test_json_has_all_facts() -> None:
    found = to_json(make("a/b", "MIT"))
    assert found == {
        "name": "a/b", "license": "MIT", "tokens": "512", "threshold": "0.5", "remark": "",
        "sources": ["https://x.org"], "read": "2026-05-04", "example": "models: {}\njudges: {}",
    }  # fmt: skip


METRIC_WORDS = registry.words("metrics")


def words_below(heading: str) -> list[str]:
    """The words listed under a heading."""
    section = list_metrics().partition(f"{heading}:\n")[2].partition("\n\n")[0]
    return re.findall(r"^(\w+)  ", section, re.MULTILINE)


def test_every_metric_is_listed_once() -> None:
    listed = [word for heading in GROUPS.values() for word in words_below(heading)]
    assert sorted(listed) == sorted(METRIC_WORDS)


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
    names = [alias for word in METRIC_WORDS for alias in {word, *registry.load("metrics", word).info.aliases}]
    assert len(names) == len(set(names))
    assert not {alias for alias, word in kernels.measure_aliases().items() if alias in METRIC_WORDS and alias != word}


@pytest.mark.parametrize("word", [word for word in METRIC_WORDS if registry.load("metrics", word).group != "ranking"])
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
