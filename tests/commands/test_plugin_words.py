""""""

from __future__ import annotations

import json
import re
from datetime import date
from pathlib import Path

import pytest

from rageval_spec import __version__, kernels, registry
from rageval_spec.commands.plugin_words import (
    METRIC_GROUPS,
    describe,
    describe_known_model,
    describe_plugin,
    describe_plugin_as_json,
    list_plugins,
    tabulate,
    to_json,
)
from rageval_spec.errors import UsageError
from rageval_spec.plugin import MetricInfo
from rageval_spec.plugin.plugin import KnownModel
from tests.command_line import invoke


@pytest.mark.parametrize("section", registry.SECTIONS)
def test_every_section_is_listed_and_each_of_its_words_explained(section: registry.Section) -> None:
    word = registry.words(section)[0]
    assert invoke("list", section).stdout == invoke("explain", section).stdout == list_plugins(section)
    assert invoke("explain", f"{section}.{word}").stdout == describe_plugin(section, word)
    assert invoke("explain", f"{section}.nothing").exit_code == 2
    assert list(json.loads(invoke("list", section, "--format", "json").stdout)) == list(registry.words(section))
    assert json.loads(invoke("explain", f"{section}.{word}", "--format", "json").stdout)["word"] == word


def test_without_a_section_the_words_of_all_are_listed() -> None:
    shown = re.sub(r"\s+", " ", invoke("list").stdout)
    for section in registry.SECTIONS:
        assert f"{section} {', '.join(registry.words(section))}" in shown
    assert [*json.loads(invoke("list", "--format", "json").stdout)] == list(registry.SECTIONS)


def test_a_word_of_several_sections_names_each_and_a_section_chooses() -> None:
    shown = invoke("explain", "csv")
    assert shown.exit_code == 0
    assert re.findall(r"^(\w+\.csv)  +\S", shown.stdout, re.MULTILINE) == ["datasets.csv", "labels.csv", "reports.csv"]
    assert "rageval-spec explain datasets.csv" in shown.stdout
    assert invoke("explain", "labels.csv").stdout.startswith("csv: What people judged")
    assert [*json.loads(invoke("explain", "csv", "--format", "json").stdout)] == [
        "datasets.csv", "labels.csv", "reports.csv"
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("bianry", "did you mean 'binary'?"),
        ("hallucination", "did you mean 'faithfulness'?"),
        ("ndgc@10", "did you mean 'ndcg@10'?"),
        ("zzz", "to list all words, run: rageval-spec list"),
        ("ndcg@p95", "did you mean 'ndcg'?"),
        ("judges.zzz", "the words of 'judges:' are assignment, "),
        ("", "to list all words, run: rageval-spec list"),
        (".csv", "did you mean 'csv'?"),
        ("datasets.", "there is no word 'datasets.'"),
    ],
)
def test_an_unknown_name_is_refused_with_what_to_write(name: str, hint: str) -> None:
    refused = invoke("explain", name)
    assert (refused.exit_code, refused.stdout) == (2, "")
    assert hint in refused.stderr


@pytest.mark.parametrize("section", ["datasets", "systems", "judges", "labels", "metrics", "reports"])
def test_the_commands_of_earlier_releases_say_what_to_run(section: str) -> None:
    for arguments in ((section,), (section, "show", "ndcg")):
        refused = invoke(*arguments)
        assert refused.exit_code == 2
        assert f"rageval-spec list {section}, or: rageval-spec explain WORD" in refused.stderr


def test_only_judges_know_models() -> None:
    shown = invoke("explain", "nli", "--model", "minicheck-flan-t5-large")
    assert (shown.exit_code, shown.stdout.splitlines()[0]) == (0, "lytang/MiniCheck-Flan-T5-Large")
    as_json = invoke("explain", "nli", "--model", "lytang/MiniCheck-Flan-T5-Large", "--format", "json")
    assert json.loads(as_json.stdout)["windows"] == "500 words"
    assert "knows no models" in invoke("explain", "html", "--model", "x").stderr


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
    assert "\nCan\n  - decide which claims of a text are supported\n" in describe_plugin("judges", "nli")
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
    known = ", ".join(registry.words("reports"))
    with pytest.raises(UsageError, match=f"there is no report 'pdf'; the words of 'reports:' are {known}"):
        describe_plugin("reports", "pdf")


def test_a_judge_shows_the_models_that_it_knows() -> None:
    shown = describe_plugin("judges", "nli")
    table = shown.partition("\nKnown models\n")[2].partition("\n\n")[0].splitlines()
    assert table[0].split() == ["Model", "License", "Tokens", "Language"]
    assert any(line.split() == ["lytang/MiniCheck-RoBERTa-Large", "MIT", "512", "English"] for line in table)
    assert "rageval-spec explain nli --model NAME" in shown
    assert "Known models" not in describe_plugin("judges", "overlap")


def test_one_known_model_is_found_by_its_id_or_its_name_in_any_case() -> None:
    for name in ("lytang/MiniCheck-RoBERTa-Large", "minicheck-roberta-large"):
        shown = describe_known_model("judges", "nli", name, "text")
        assert shown.startswith("lytang/MiniCheck-RoBERTa-Large\n")
        assert "models: {verifier: {use: onnx, model: lytang/MiniCheck-RoBERTa-Large}}" in shown
    facts = json.loads(describe_known_model("judges", "hhem", "vectara/hallucination_evaluation_model", "json"))
    assert (facts["license"], facts["threshold"]) == ("Apache-2.0", "none stated; 0.5 is used")


def test_an_unknown_model_is_refused_with_a_suggestion() -> None:
    with pytest.raises(UsageError, match="'nli' does not know the model 'MiniCheck-Roberta'; did you mean"):
        describe_known_model("judges", "nli", "MiniCheck-Roberta", "text")
    with pytest.raises(UsageError, match="'zzz'; list the known models with: rageval-spec explain nli"):
        describe_known_model("judges", "nli", "zzz", "text")
    with pytest.raises(UsageError, match="'overlap' knows no models by their names; leave out --model"):
        describe_known_model("judges", "overlap", "minilm", "text")


def test_json_holds_what_the_text_says() -> None:
    shown = json.loads(describe_plugin_as_json("judges", "minicheck"))
    assert shown["word"] == "nli"
    assert shown["keys"]["model"]["required"] is True
    assert shown["keys"]["overlap"]["default"] == 1
    assert shown["can"] == ["decide which claims of a text are supported", "split a text into claims"]
    assert "lytang/MiniCheck-RoBERTa-Large" in [model["name"] for model in shown["models"]]
    metric = json.loads(invoke("explain", "ndcg_cut_10", "--format", "json").stdout)
    assert (metric["word"], metric["range"], metric["keys"]["gain"]["default"]) == ("ndcg", [0.0, 1.0], "linear")


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
    section = list_plugins("metrics").partition(f"{heading}:\n")[2].partition("\n\n")[0]
    return re.findall(r"^(\w+)  ", section, re.MULTILINE)


def test_every_metric_is_listed_once() -> None:
    listed = [word for heading in METRIC_GROUPS.values() for word in words_below(heading)]
    assert sorted(listed) == sorted(METRIC_WORDS)


def test_metrics_are_grouped_by_what_they_measure() -> None:
    assert {"ndcg", "target_rank"} <= set(words_below(METRIC_GROUPS["ranking"]))
    text = {"bleu", "chrf", "exact_match", "rouge_l", "semantic_similarity", "token_f1"}
    assert text <= set(words_below(METRIC_GROUPS["text"]))
    assert {"cost", "error_rate", "latency", "tokens"} <= set(words_below(METRIC_GROUPS["operation"]))
    assert "Others" not in list_plugins("metrics")


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
    assert describe_plugin("metrics", name).startswith(f"{word}: ")


@pytest.mark.parametrize(("name", "near"), [("latencyy", "latency"), ("tokenf1", "token_f1"), ("ndgc@10", "ndcg@10")])
def test_an_unknown_metric(name: str, near: str) -> None:
    with pytest.raises(UsageError, match=f"did you mean '{near}'"):
        describe_plugin("metrics", name)


def test_a_metric_is_suggested_for_what_other_tools_measure() -> None:
    with pytest.raises(UsageError, match="there is no metric 'hallucination'; did you mean 'faithfulness'"):
        describe_plugin("metrics", "hallucination")


def test_a_measure_with_unknown_parameters_is_refused() -> None:
    with pytest.raises(UsageError, match="there is no metric"):
        describe_plugin("metrics", "ndcg@p95")


def test_the_unit_and_what_a_query_needs_are_shown() -> None:
    assert "\nNeeds\n  answer, reference\n" in describe_plugin("metrics", "token_f1")
    assert "Needs" not in describe_plugin("metrics", "latency")
    assert "\n  0 or more seconds; lower is better" in describe_plugin("metrics", "latency")


def test_no_two_metrics_share_a_name() -> None:
    names = [alias for word in METRIC_WORDS for alias in {word, *registry.load("metrics", word).info.aliases}]
    assert len(names) == len(set(names))
    assert not {alias for alias, word in kernels.measure_aliases().items() if alias in METRIC_WORDS and alias != word}


@pytest.mark.parametrize("word", [word for word in METRIC_WORDS if registry.load("metrics", word).group != "ranking"])
def test_documentation_is_complete(word: str) -> None:
    metric = registry.load("metrics", word)
    info: MetricInfo = metric.info
    cases = metric.list_edge_cases()
    assert info.summary.endswith(".")
    assert word in info.formula
    assert all(": " in case for case in cases)
    assert info.edge_cases
    assert re.search(r"\b(19|20)\d\d\b", info.source)


def test_the_list_of_metrics_has_every_metric_with_what_it_measures() -> None:
    result = invoke("list", "metrics")
    assert result.exit_code == 0
    for word in registry.words("metrics"):
        assert re.search(rf"^{word}  +\S", result.stdout, re.MULTILINE)


@pytest.mark.parametrize("name", ["ndcg", "ndcg_cut", "ndcg_cut_10", "NDCG@10"])
def test_explain_knows_every_name_of_a_metric(name: str) -> None:
    result = invoke("explain", name)
    assert result.exit_code == 0
    assert result.stdout.startswith("ndcg: ")
    for heading in ("Formula", "Edge cases", "Keys", "Range", "Source"):
        assert f"\n{heading}\n" in result.stdout


def test_explain_of_an_unknown_metric() -> None:
    result = invoke("explain", "ncdg")
    assert result.exit_code == 2
    assert "did you mean 'ndcg'?" in result.stderr


@pytest.mark.parametrize(
    ("name", "meant"),
    [("success_rate", "did you mean 'error_rate'?"), ("latency_p95", "write latency@p95,")],
)
def test_explain_knows_the_synonyms_that_specs_know(name: str, meant: str) -> None:
    result = invoke("explain", name)
    assert result.exit_code == 2
    assert meant in result.stderr


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("gates", "- gates.min_scored: Fail if a smaller share of the queries could be scored."),
        ("limits", "- limits.max_calls: Stop before making more calls"),
        ("resume", "- resume: How long after its beginning"),
        ("min_scored", "- gates.min_scored: Fail if"),
        ("stopping.confidence", "- stopping.confidence: The probability that all gates"),
    ],
)
def test_keys_of_the_spec_itself_are_explained(name: str, said: str) -> None:
    result = invoke("explain", name)
    assert result.exit_code == 0
    assert said in result.stdout
    keys = json.loads(invoke("explain", name, "--format", "json").stdout)
    assert all(key.startswith(f"{name}.") or key == name or key.endswith(f".{name}") for key in keys)


def test_every_key_of_a_spec_can_be_explained() -> None:
    from rageval_spec.spec.blocks.spec_node import SpecNode

    for name, field in SpecNode.model_fields.items():
        assert invoke("explain", field.alias or name).exit_code == 0, name


def test_an_unknown_command_names_those_that_there_are() -> None:
    result = invoke("models", "list")
    assert result.exit_code == 2
    assert "there is no command 'list'; the commands are bench, export, fetch, show" in result.stderr


def test_a_word_that_0_1_0_did_not_have_says_which_release_brought_it() -> None:
    """When 0.1.0 is out, a new word needs `since`; until then, the list of its words grows with the package."""
    first = json.loads((Path(__file__).parent / "words_of_0.1.0.json").read_text(encoding="utf-8"))
    found = {
        (section, word): registry.load(section, word).since
        for section in registry.SECTIONS
        for word in registry.builtin_words(section)
    }
    assert {one for one, since in found.items() if since == "0.1.0"} >= {(s, w) for s in first for w in first[s]}
    later = {one for one in found if one[1] not in first[one[0]]}
    assert later == set() or __version__ == "0.1.0" or all(found[one] != "0.1.0" for one in later)
    assert "\nSince\n  0.1.0\n" in invoke("explain", "ndcg").stdout


@pytest.mark.parametrize("one", ["gate", "limit", "report"])
def test_one_of_a_section_is_explained_as_the_section(one: str) -> None:
    assert invoke("explain", one).stdout == invoke("explain", f"{one}s").stdout != ""
