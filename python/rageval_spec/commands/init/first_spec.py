"""Writes a first spec for a user's files, after a look at what it can evaluate in them.

The plugins that will read the files also inspect them. The text has a comment on everything that a reader may want to
change. Each metric on offer says what it needs and what other tools call it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any, NamedTuple

from rageval_spec import registry
from rageval_spec.dataclass import dataclass, field
from rageval_spec.errors import DataError, UsageError
from rageval_spec.plugin import Context, Dataset, System
from rageval_spec.reading.column_names import AnswerColumns, QuestionColumns, says_gold
from rageval_spec.reading.formats.text_files import format_of
from rageval_spec.store.stored_tables import load_table
from rageval_spec.wording import count_noun

if TYPE_CHECKING:
    import polars as pl

    from rageval_spec.data.tables import Collection


_WORDS = {
    "csv": "csv", "tsv": "csv", "xlsx": "xlsx", "parquet": "parquet",
    "json": "json", "jsonl": "jsonl", "ndjson": "jsonl", "yaml": "yaml", "yml": "yaml",
}  # fmt: skip
"""The dataset that reads a file, by its suffix."""
_OF_ANSWERS = ("answer", "contexts", "context_ids", "seconds", "input_tokens", "cost")
_MOST_VALUES = 8
"""The most different values of a column that makes slices."""
_LEAST_ROWS = 2
"""The fewest questions with each value, on average, of a column that makes slices."""


@dataclass(frozen=True)
class Findings:
    """What the files hold: the blocks of a spec that read them, and the number of questions.

    `system` is a service if one was named, else None if there are no answers. `has` are the parts of `Sample` that at
    least one question or answer has, and "relevant" and "corpus". `slices` are columns of the questions that have few
    different values, and `unused` the others that no part is read from. `model` is the embedded model for their texts.
    `rankings` are the blocks of systems that read runs, by name; there are no other systems then.
    """

    dataset: Mapping[str, Any]
    system: Mapping[str, Any] | None
    has: frozenset[str]
    questions: int
    slices: tuple[str, ...] = field(default=())
    unused: tuple[str, ...] = field(default=())
    model: str = "minilm"
    rankings: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)


def inspect_recorded(tool: str, path: Path, folder: Path) -> Findings:
    """Open TREC judgements, whose rankings are the `.run` files beside them, or a file of spans of traces.

    Raises UsageError: a file cannot be read, or there are no rankings.
    """
    relative = path_from(path, folder)
    system: dict[str, Any] | None = None
    runs: dict[str, dict[str, Any]] = {}
    if tool == "otel":
        dataset, system = {"use": "otel", "path": relative}, {"use": "otel", "path": relative}
    else:
        has_header = "\t" in (first := _read_first_line(path)) and not re.search(r"\d\s*$", first)
        dataset = {"use": "csv", "path": relative} if has_header else {"use": "trec", "qrels": relative}
        found = sorted(one for one in path.parent.iterdir() if format_of(one) == "run")
        if not found:
            raise UsageError(f"there are no rankings beside {path}; their names must end in .run")
        runs = {_name_run(one): {"use": "file", "path": path_from(one, folder)} for one in found}
    try:
        opened: Dataset[Any] = _build("datasets", "golden", dataset, path)
        collection = opened.open()
        has = {*_list_parts(collection), *({"ranking"} if runs else ())}
        answers = None if system is None else _read_answers(system, collection, path)
    except DataError as error:
        raise UsageError(str(error)) from error
    has |= {name for name in _OF_ANSWERS if answers is not None and answers[name].null_count() < answers.height}
    asked = collection.qrels if collection.queries is None else collection.queries
    count = 0 if asked is None else asked["query_id"].n_unique()
    return Findings(dataset, system, frozenset(has), count, rankings=runs)


def _name_run(path: Path) -> str:
    """The name of a file as a system can have it."""
    return re.sub(r'[\\:*?"<>|$]+', "-", re.sub(r"\.run(\.\w+)?$", "", path.name)).strip(" .") or "run"


def _read_first_line(path: Path) -> str:
    with path.open(encoding="utf-8", errors="replace") as file:
        return file.readline().rstrip("\n")


def inspect_files(
    golden: Path,
    answers: Path | None,
    folder: Path,
    columns: Mapping[str, str],
    url: str | None = None,
    *,
    are_answers: bool = False,
) -> Findings:
    """Open a file of questions, or a BEIR folder, and a file that may have a system's answers; they can be the same.

    `columns` names those that are not recognised, by part; the service at `url` is not called. `are_answers` says that
    the user calls the only file one of answers: a column that may have a system's answers or gold ones then has a
    system's.

    Raises UsageError: a file cannot be read; the message shows its columns and how to name the right ones.
    """
    from rageval_spec.pipeline.planning.default_model import find_model_for

    dataset = _describe_dataset(golden, folder, columns)
    opened: Dataset[Any] = _build("datasets", "golden", dataset, golden)
    try:
        _refuse_faults(opened, are_answers=are_answers)
        collection = opened.open()
        has = {*_list_parts(collection)}
        system = None if answers is None else _write_system(answers, folder, columns)
        found = None if answers is None or system is None else _read_answers(system, collection, answers)
        if answers == golden and system is not None and found is not None and "reference" not in columns:
            shared = _find_shared_column(opened, _build("systems", "current", system, golden))
            if shared is not None and are_answers:
                has.discard("reference")
                system = {**system, "columns": {**system.get("columns", {}), "answer": shared}}
            elif shared is not None:
                found = None
        count = collection.require("queries", "init").height
        slices = tuple(_list_slices(collection))
        unused = tuple(name for reading in opened.describe_files() for name in reading.others if name not in slices)
        model = find_model_for(collection)
    except DataError as error:
        raise UsageError(f"{error}{_advise(str(error), are_answers=are_answers)}") from error
    has |= {name for name in _OF_ANSWERS if found is not None and found[name].null_count() < found.height}
    service = None if url is None else describe_service(url)
    return Findings(dataset, system if found is not None else service, frozenset(has), count, slices, unused, model)


def _find_shared_column(dataset: Dataset[Any], system: System[Any]) -> str | None:
    """The column that has the gold answers of a dataset and the answers of a system; None without one."""
    gold, said = ([one.columns.get(part) for one in plugin.describe_files()]
                  for plugin, part in ((dataset, "reference"), (system, "answer")))  # fmt: skip
    return next((name for name in gold if name is not None and name in said), None)


def describe_service(url: str) -> dict[str, Any]:
    """The block of a system that asks a service. Raises UsageError: the URL is wrong."""
    from pydantic import ValidationError

    block = {"use": "http", "url": url}
    try:
        registry.load("systems", "http").node_type(**block)
    except ValidationError as error:
        raise UsageError(f"--url {url}: {error.errors()[0]['msg'].removeprefix('Value error, ')}") from error
    return block


def _describe_dataset(golden: Path, folder: Path, columns: Mapping[str, str]) -> dict[str, Any]:
    path = path_from(golden, folder)
    if golden.is_dir():
        splits = sorted(path.name.partition(".")[0] for path in golden.glob("qrels/*.tsv*"))
        return {"use": "beir", "path": path, **({} if not splits or "test" in splits else {"split": splits[0]})}
    word = _WORDS.get(format_of(golden))
    if word is None:
        known = ", ".join(f".{suffix}" for suffix in _WORDS)
        raise UsageError(f"{golden}: it is not clear what this file holds; its name must end in one of {known}")
    named = {part: name for part, name in columns.items() if part in {**QuestionColumns.model_fields, "relevant": None}}
    return {"use": word, "path": path, **({"columns": named} if named else {})}


def _write_system(answers: Path, folder: Path, columns: Mapping[str, str]) -> dict[str, Any]:
    renamed = {"question": columns["text"]} if "text" in columns and "query_id" not in columns else {}
    named = {part: name for part, name in columns.items() if part in AnswerColumns.model_fields} | renamed
    return {"use": "file", "path": path_from(answers, folder), **({"columns": named} if named else {})}


def path_from(path: Path, folder: Path) -> str:
    return Path(os.path.relpath(path, folder)).as_posix()


def _build(section: registry.Section, name: str, block: Mapping[str, Any], path: Path) -> Any:
    """The plugin of a block, with the path as the user wrote it, because it is in messages."""
    plugin = registry.load(section, block["use"])
    key = "qrels" if "qrels" in block else "path"
    return plugin(plugin.node_type(**{**block, key: str(path)}), Context(name))


def _refuse_faults(plugin: Dataset[Any], *, are_answers: bool) -> None:
    for file in plugin.inputs():
        if not file.path.exists():
            raise UsageError(f"there is no {file.path}{f'; {file.hint}' if file.hint else ''}")
    for fault in plugin.check_files():
        if fault.severity == "error":
            advice = _advise(fault.hint or "", are_answers=are_answers)
            is_about_gold = are_answers and "gold answers write" in (fault.hint or "")
            hint = f"; {fault.hint}" if fault.hint and not is_about_gold else ""
            raise UsageError(f"{fault.message}{hint}{advice}")


def _advise(told: str, *, are_answers: bool) -> str:
    """How to name columns on the command line, after a message that says how to name them in a spec.

    In a file of answers, the user must say which column has them: what looks like a gold answer can be a system's.
    """
    import yaml

    found = re.findall(r"columns: (\{[^{}]*\})", told)
    if not found:
        advice = "; here: --column PART=NAME, or --golden FILE if the questions are elsewhere"
        return advice if "columns" in told else ""
    choices = list[str]()
    for names in map(yaml.safe_load, found):
        is_text = are_answers and "text" in names
        kept = {part: name for part, name in names.items() if not is_text or part == "text" or says_gold(str(name))}
        told_parts = [f"--column {part}={quote(str(name))}" for part, name in kept.items()]
        choices.append(" ".join([*told_parts, *(["--column answer=NAME"] if is_text else [])]))
    return f"; here: {' or '.join(choices)}"


def _list_parts(collection: Collection) -> Iterator[str]:
    if collection.qrels is not None and collection.qrels.height:
        yield "relevant"
    if collection.load_corpus is not None:
        yield "corpus"
    references = collection.references
    if references is None:
        return
    if references["references"].list.len().sum():
        yield "reference"
    names = ("reference_contexts", "answerable", "group", "condition")
    yield from (name for name in names if references[name].null_count() < references.height)


def _read_answers(system: Mapping[str, Any], collection: Collection, path: Path) -> pl.DataFrame | None:
    """The answers; None if the file has none, so that it has only questions."""
    from rageval_spec.reading.answer_files import NoAnswersError

    plugin: System[Any] = _build("systems", "current", system, path)
    try:
        if not plugin.answers_on(collection.name):
            return None
    except DataError:
        return None
    try:
        answers = load_table(plugin.answer(collection).table)
    except NoAnswersError:
        return None
    return None if answers["error"].null_count() == 0 else answers


def _list_slices(collection: Collection) -> Iterator[str]:
    """The columns in which every question has one of a few words or numbers."""
    import json

    table = collection.columns
    if table is None or not table.height:
        return
    rows: Sequence[dict[str, Any]] = [json.loads(text) for text in table["columns"]]
    for name in dict.fromkeys(name for row in rows for name in row):
        values = [row.get(name) for row in rows]
        is_whole = all(isinstance(value, (str, int)) and str(value).strip() for value in values)
        count = len({str(value) for value in values})
        if is_whole and 2 <= count <= _MOST_VALUES and len(rows) >= _LEAST_ROWS * count:
            yield name


PLACEHOLDER = "answer.py"
_RETRIEVERS = """\
  bm25:
    use: bm25             # built-in keyword search over the dataset's documents: a baseline to beat
  # dense: {use: dense, model: MODEL}                # vectors of a small model; install rageval-spec[MODEL]
  # hybrid: {use: hybrid, systems: [bm25, dense]}
  # live: {use: http, url: "${SEARCH_URL}", retrieves: "$.hits[*].id"}      # your own retriever
"""
_ANSWERING = """\
  # live: {use: http, url: "${RAG_URL}", answer: $.answer, contexts: "$.sources[*].text"}      # your service
"""
_REPLY = """\
    # Replies in a usual layout are recognised. For any other, write the paths of its parts:
    # answer: $.data.text
    # contexts: "$.data.sources[*].text"
    # headers: {Authorization: "Bearer ${secret:RAG_KEY}"}
"""
_MODEL = """\
# A language model judges better than shared words. Remove the number signs, and name the model:
# models:
#   gpt: {use: chat, model: gpt-4o-mini, api_key: "${secret:OPENAI_API_KEY}"}
# judges:
#   strict: {use: claims, model: gpt}
"""


def write_text(findings: Findings, name: str, spec: str, tool: str | None) -> str:
    """The YAML of the spec in the file `spec`, for an evaluation with this name and the files of a tool, if any."""
    has = {*findings.has, *_derive(findings)}
    active = [offer for offer in OFFERS if offer.needs <= has]
    others = [] if is_retrieval(findings) else [offer for offer in OFFERS if not offer.needs <= has]
    judged = [] if findings.system is None else [offer for offer in JUDGED if offer.needs <= has]
    parts = (
        _write_head(name, spec, tool, None if findings.system is None else findings.system.get("url")),
        _write_dataset(findings),
        _write_systems(findings),
        _MODEL if judged else "",
        _write_metrics(active, others, judged, has),
        _write_slices(findings.slices),
        _write_gates(active),
        "reports: [terminal, json, html]\n",
    )
    return "\n".join(part for part in parts if part)


def is_retrieval(findings: Findings) -> bool:
    """Whether the files are a collection of documents, queries and judgements, which built-in systems can search."""
    is_searchable = {"corpus", "relevant"} <= findings.has and "reference" not in findings.has
    return bool(findings.rankings) or (is_searchable and findings.system is None)


def _derive(findings: Findings) -> Iterator[str]:
    """What systems of the spec add to the parts of the files."""
    if "context_ids" in findings.has or is_retrieval(findings):
        yield "ranking"
    if not is_retrieval(findings):
        yield "system"
        if findings.system is None or findings.system["use"] != "file":
            yield "answer"
            yield "seconds"


def _write_head(name: str, spec: str, tool: str | None, url: str | None) -> str:
    import yaml

    needs = "It needs no model and no network." if url is None else f"It asks {url}, and needs no model."
    told = [
        "# yaml-language-server: $schema=spec.schema.json",
        f"# Run it with `rageval-spec run {spec}`. {needs}",
        "# Paths are relative to this file. ${VAR} anywhere is replaced from the environment.",
    ]
    names = NAMES.get(tool or "", {})
    told += [f"# What {tool} calls its metrics, and what they are called here:"] if names else []
    told += [f"#   {theirs:<26} {ours}" for theirs, ours in names.items()]
    dumped = yaml.safe_dump({"name": name}, allow_unicode=True, width=10**6)
    return "\n".join((*told, "", "version: 1", dumped))


def _write_dataset(findings: Findings) -> str:
    count = count_noun(findings.questions, "question")
    comment = f"# {count}. Name columns that are not recognised: columns: {{text: Frage, reference: Musterantwort}}"
    if findings.rankings:
        comment = f"# Which documents are relevant to which of {count_noun(findings.questions, 'query', 'queries')}."
    elif is_retrieval(findings):
        comment = f"# The documents, {findings.questions:,} queries, and which documents answer them."
    return f"{comment}\ndatasets:\n  golden:\n{_indent(findings.dataset)}"


def _write_systems(findings: Findings) -> str:
    if findings.rankings:
        blocks = "".join(f"  {_write_key(name)}:\n{_indent(block)}" for name, block in findings.rankings.items())
        return f"# The rankings to evaluate. Each is compared with the first.\nsystems:\n{blocks}"
    if is_retrieval(findings):
        retrievers = _RETRIEVERS.replace("MODEL", findings.model)
        return f"# What to evaluate. Each system is compared with the first.\nsystems:\n{retrievers}"
    if findings.system is not None and findings.system["use"] == "http":
        comment = 'Your service. It gets {"question": ...} by POST; `body`, `params` and `headers` send something else.'
        return f"# {comment}\nsystems:\n  live:\n{_indent(findings.system)}{_REPLY}"
    if findings.system is not None:
        comment, block = "The answers in the file. Each further system is compared with the first.", findings.system
    else:
        comment = f"The function in {PLACEHOLDER}, which is a placeholder: call your system there."
        block = {"use": "python", "function": f"{PLACEHOLDER.removesuffix('.py')}:answer"}
    return f"# {comment}\nsystems:\n  current:\n{_indent(block)}{_ANSWERING}"


def _write_metrics(active: Sequence[Offer], others: Sequence[Offer], judged: Sequence[Offer], has: set[str]) -> str:
    width = max(len(offer.line) for offer in (*active, *others, *judged)) + 4
    lines = [f"  - {offer.line:<{width}}# {offer.meaning}" for offer in active]
    if judged:
        lines.append("  # with a language model as judge:")
        lines += [f"  # - {offer.line:<{width - 2}}# {offer.meaning}" for offer in judged]
    lines += ["  # what these need is a key of the dataset's `columns:`, or of the system:"] if others else []
    lines += [
        f"  # - {offer.line:<{width - 2}}# needs {' and '.join(LACKS[part] for part in sorted(offer.needs - has))}"
        for offer in others
    ]
    return "\n".join(("# `rageval-spec list metrics` lists all of them.", "metrics:", *lines, ""))


def _write_slices(slices: Sequence[str]) -> str:
    if not slices:
        return ""
    import yaml

    names = yaml.safe_dump(list(slices), default_flow_style=True, allow_unicode=True, width=10**6).strip()
    return f"# Each value of these columns gets numbers of its own.\nslices: {names}\n"


def _write_gates(active: Sequence[Offer]) -> str:
    names = [offer.line for offer in active if not offer.line.startswith("{")]
    metric = names[0] if names else "error_rate"
    bound = "max: 0.05" if metric in ("error_rate", "cost") or metric.startswith("latency") else "min: 0.5"
    return (
        "# Bounds that an evaluation must clear, for a pipeline: exit code 1 if one fails.\n"
        f"# gates:\n#   - {{metric: {metric}, {bound}}}\n"
    )


def _write_key(name: str) -> str:
    import yaml

    return str(yaml.safe_dump(name, allow_unicode=True, width=10**6)).removesuffix("\n...\n").strip()


def _indent(block: Mapping[str, Any]) -> str:
    import yaml

    lines = []
    for key, value in block.items():
        style = None if isinstance(value, dict) else False
        text = yaml.safe_dump({key: value}, default_flow_style=style, allow_unicode=True, width=10**6)
        lines += [f"    {line}\n" for line in text.strip().splitlines()]
    return "".join(lines)


class Offer(NamedTuple):
    """A metric of a first spec, as a spec writes it; it has no value without the parts that it needs."""

    line: str
    meaning: str
    needs: frozenset[str]


def _offer(line: str, meaning: str, *needs: str) -> Offer:
    return Offer(line, meaning, frozenset(needs))


OFFERS = (
    _offer("token_f1", "words shared with the gold answer", "answer", "reference"),
    _offer("rouge_l", "words shared with the gold answer, in the same order", "answer", "reference"),
    _offer("{use: completeness, judge: overlap}", "how much of the gold answer is there", "answer", "reference"),
    _offer("{use: faithfulness, judge: overlap}", "do the contexts support the answer", "answer", "contexts"),
    _offer("{use: context_recall, judge: overlap}", "is the gold answer in the contexts", "contexts", "reference"),
    _offer("{use: answerability, by: phrases, as: answerability}", "does it decline exactly when there is no answer",
           "answer", "answerable"),
    _offer("ndcg@10", "are the relevant documents at the top", "relevant", "ranking"),
    _offer("recall@10", "the share of the relevant documents among the first ten", "relevant", "ranking"),
    _offer("precision@5", "the share of relevant documents among the first five", "relevant", "ranking"),
    _offer("rr", "1 / rank of the first relevant document", "relevant", "ranking"),
    _offer("latency@p95", "seconds that 95% of the answers stay below", "seconds"),
    _offer("cost", "US dollars for each answer", "cost"),
    _offer("error_rate", "how often the system gave no answer", "system"),
)  # fmt: skip
"""Metrics without a model, in the order in which a spec lists them."""
JUDGED = (
    _offer("{use: faithfulness, judge: strict}", "claims that the contexts support", "answer", "contexts"),
    _offer("{use: answer_relevancy, judge: strict}", "does the answer address the question", "answer"),
    _offer(
        "{use: factual_correctness, judge: strict}", "claims that agree with the gold answer", "answer", "reference"
    ),
    _offer("{use: context_precision, judge: strict}", "do the useful contexts come first", "contexts"),
)
"""Metrics that ask a language model."""
LACKS: Mapping[str, str] = {
    "answer": "answers",
    "reference": "`reference`: the gold answer",
    "contexts": "`contexts`",
    "relevant": "`relevant_doc_ids`",
    "ranking": "`context_ids`",
    "answerable": "`answerable`: true or false",
    "seconds": "`seconds`",
    "cost": "`cost`",
    "system": "a system that answers",
}
"""What the rows of a file have to have for a part; names are those of columns."""
NAMES: Mapping[str, Mapping[str, str]] = {
    "ragas": {
        "Faithfulness": "faithfulness",
        "ResponseRelevancy": "answer_relevancy",
        "LLMContextPrecision...": "context_precision",
        "LLMContextRecall": "context_recall",
        "ContextEntityRecall": "context_entity_recall",
        "FactualCorrectness": "factual_correctness",
        "NoiseSensitivity": "noise_sensitivity",
        "SemanticSimilarity": "semantic_similarity",
    },
    "deepeval": {
        "FaithfulnessMetric": "faithfulness",
        "AnswerRelevancyMetric": "answer_relevancy",
        "ContextualPrecisionMetric": "context_precision",
        "ContextualRecallMetric": "context_recall",
        "ContextualRelevancyMetric": "context_relevance",
        "GEval": "rubric",
    },
    "promptfoo": {
        "equals": "exact_match",
        "contains": "contains",
        "is-json": "is_json",
        "similar": "semantic_similarity",
        "factuality": "factual_correctness",
        "llm-rubric": "rubric",
        "context-faithfulness": "faithfulness",
        "context-recall": "context_recall",
        "context-relevance": "context_relevance",
        "answer-relevance": "answer_relevancy",
        "latency": "latency",
        "cost": "cost",
    },
}
"""What other tools call metrics, and what they are called here."""
