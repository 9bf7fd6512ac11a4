"""Describes where the numbers of an evaluation come from: the spec, the datasets, the metrics and the judging.

The origin of a dataset is read from its block in the spec, the tops of its files and its rows. Judging is described
by what it cost and the prompts that judges sent.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import chain
from typing import Any

from rageval_spec.data.chat import AskedModel, ReplyCounts
from rageval_spec.data.datasets import MOST_DOCUMENTS, DatasetOrigin, Fingerprints, FingerprintTable
from rageval_spec.data.evaluation import JudgingCost, UsedCalibration
from rageval_spec.data.outcomes import Note, NoteLevel
from rageval_spec.data.tables import Collection
from rageval_spec.diagnostics import make_visible
from rageval_spec.libraries import pl
from rageval_spec.pipeline.planning.plan import EvaluationPlan
from rageval_spec.pipeline.planning.preflight import find_self_judging, list_asked
from rageval_spec.pipeline.planning.spec_plugins import SpecPlugins
from rageval_spec.plugin import ChatModel, DatasetNode, Judge, Metric
from rageval_spec.plugin.secrets import is_credential
from rageval_spec.reading.column_names import spell_alike
from rageval_spec.spec.blocks.question_weights import KEYS
from rageval_spec.spec.blocks.spec_node import Spec
from rageval_spec.wording import count_noun

_HIDDEN = "***"
_SECTIONS = ("datasets", "systems", "models", "judges")
_BLOCKS = ("ranking", "statistics", "diagnosis", "limits")
_OF_MACHINE = ("threads", "concurrency")
"""Limits that fit an evaluation to a machine; equal input must give equal bytes with any of them."""
_PARTS: Mapping[str, str] = {"question": "questions", "reference": "references", "judgements": "qrels"}
"""The parts of a fingerprint, and what they are called in `Evaluation.digests`."""


def describe_spec(spec: Spec, metrics: Mapping[str, Metric[Any]] | None = None) -> dict[str, Any]:
    """The validated spec in JSON types, with its defaults. A secret appears as `${secret:NAME}`.

    Values that look like keys or tokens, although they were written in plain text, are hidden. With the plugins of the
    `metrics`, settings that metrics take from other blocks are written out.
    """
    content: dict[str, Any] = {"version": 1, "name": spec.name}
    for section in _SECTIONS:
        content[section] = {name: _dump(node) for name, node in getattr(spec, section).items()}
    if spec.labels:
        content["labels"] = {name: _dump(node) for name, node in spec.labels.items()}
    recorded = (
        [_dump(one.node) for one in spec.metrics] if metrics is None else [m.recorded() for m in metrics.values()]
    )
    content["metrics"] = recorded
    content["gates"] = [gate.content() for gate in spec.gates]
    content |= {name: _dump(getattr(spec, name)) for name in _BLOCKS}
    content["limits"] = {key: value for key, value in content["limits"].items() if key not in _OF_MACHINE}
    content["slices"] = [_dump(entry) for entry in spec.slices]
    content |= {"samples": spec.samples, "redact": list(spec.redact)}
    designs = [(name, node) for name, node in spec.designs.items() if name in spec.datasets]
    columns = {key: {name: of for name, node in designs if (of := getattr(node, key))} for key in KEYS}
    content |= {key: of for key, of in columns.items() if of}
    if spec.stopping is not None:
        content["stopping"] = _dump(spec.stopping)
    content["reports"] = [_dump(report) for report in spec.reports]
    hidden: dict[str, Any] = _hide(content, "")
    return hidden


def _dump(node: Any) -> Any:
    return node.model_dump(mode="json", by_alias=True)


def _hide(content: Any, key: str) -> Any:
    if isinstance(content, dict):
        return {name: _hide(value, name) for name, value in content.items()}
    if isinstance(content, list):
        return [_hide(value, key) for value in content]
    return _HIDDEN if isinstance(content, str) and is_credential(content, key) else content


def digest_data(fingerprints: Fingerprints, plan: EvaluationPlan | None = None) -> dict[str, dict[str, str]]:
    """The sha256 of each dataset's evaluated questions, references and judgements, and of the files of its
    corpus and nuggets.

    A part that no query has, or that was not read, is left out.
    """
    digests: dict[str, dict[str, str]] = {dataset: {} for dataset in fingerprints.datasets}
    for dataset, queries in fingerprints.datasets.items():
        for field, part in _PARTS.items():
            each = queries.items() if isinstance(queries, FingerprintTable) else sorted(queries.items())
            known = ((query_id, of) for query_id, one in each if (of := getattr(one, field)) is not None)
            if (first := next(known, None)) is not None:
                digests[dataset][part] = _digest_list(chain([first], known))
    for step in () if plan is None else plan.steps:
        files = zip(step.inputs, step.digests, strict=True) if step.kind == "open" else ()
        named = [((*file.key, file.path.stem), digest) for file, digest in files]
        for part in ("corpus", "nuggets"):
            if found := [digest for names, digest in named if part in names]:
                digests.setdefault(str(step.dataset), {})[part] = _digest_list(found)
    return {dataset: dict(sorted(parts.items())) for dataset, parts in digests.items()}


def _digest_list(content: Iterable[Any]) -> str:
    """The sha256 of a JSON list, which is never whole in memory."""
    digest, separator = hashlib.sha256(b"["), b""
    for one in content:
        digest.update(separator + json.dumps(one, ensure_ascii=True).encode())
        separator = b", "
    digest.update(b"]")
    return digest.hexdigest()


def digest_implementations(metrics: Mapping[str, Metric[Any]]) -> dict[str, str]:
    """The sha256 of each metric's version and of the content of its files, by name."""
    contents = {name: metric.content() for name, metric in metrics.items()}
    return {name: _digest_list([of.get("version"), of.get("files", [])]) for name, of in contents.items()}


_VERSION = ("version", "dataset_version", "revision")
_CREATED = ("created", "created_at", "creation_date", "date")
_MADE = ("made", "made_by", "generated_by", "generator", "method")
_AUDITED = ("audited", "audited_at")
_REVIEWED = ("reviewed", "reviewed_by", "human_reviewed", "reviewed_at", "human_reviewed_count")
_DOCUMENTS = ("documents", "source_documents", "sources", "corpus_version")
_OF_ROWS = (*_MADE[:3], *_REVIEWED, "sources")
_OF_ONE_QUESTION = frozenset({"slot", "attempt", "overlap"})
"""Keys of a row's `made` that differ from question to question."""
_NO = frozenset({"", "false", "no", "0", "none", "null"})
_IDS = ("document", "doc_id", "id", "_id", "name", "path")
_LONGEST = 300


def find_dataset_origin(node: DatasetNode, collection: Collection) -> DatasetOrigin | None:
    """What is known about a dataset's origin; None if nothing is.

    What the spec says wins over the file, and counts of rows win over what the file says about them.
    """
    inner = collection.about.get("metadata")
    about = [{"version": node.version}, node.about or {}, collection.about]  # the most important remarks first
    about += [inner] if isinstance(inner, Mapping) else []
    rows = _read_rows(collection)
    documents = {**_read_documents(_first(about, _DOCUMENTS)), **_list_sources(rows)}
    made, reviewed = _count_made(rows), _count_reviewed(rows)
    count = len(rows) if rows else _count_questions(collection)
    if reviewed is None:
        reviewed = _read_reviewed(_first(about, _REVIEWED), count)
    found = DatasetOrigin(
        version=_as_text(_first(about, _VERSION)),
        created=_as_text(_first(about, _CREATED)),
        made=made or _as_text(_first(about, _MADE)),
        audited=_as_text(_first(about, _AUDITED)),
        reviewed=reviewed,
        documents=dict(list(documents.items())[:MOST_DOCUMENTS]),
        documents_digest=_digest_list(sorted(documents.items())) if documents else None,
    )
    return None if found == DatasetOrigin() else replace(found, questions=count)


def _read_rows(collection: Collection) -> list[dict[str, Any]]:
    """The other columns of each question, if any tells about its origin; else none."""
    table = collection.columns
    if table is None or not table.height:
        return []
    anyhow = "|".join(name.replace("_", "[_ -]?") for name in _OF_ROWS)
    named = pl.col("columns").str.contains(f'(?i)"(?:{anyhow})":')
    if not table.select(named.any()).item():
        return []
    return [spell_alike(json.loads(text)) for text in table["columns"]]


def _count_questions(collection: Collection) -> int | None:
    """The number of all questions, also of those that a limit leaves out; None if no table has it."""
    table = collection.references if collection.columns is None else collection.columns
    return None if table is None else int(table.height)


def _first(remarks: Iterable[Mapping[str, Any]], names: Iterable[str]) -> Any:
    """The first value under any of the names."""
    names = tuple(names)
    spelled = map(spell_alike, remarks)
    return next((one[name] for one in spelled for name in names if one.get(name) not in (None, "")), None)


def _count_made(rows: Iterable[Mapping[str, Any]]) -> str | None:
    """How the questions were made, with counts if not all were made alike; None if no row says it."""
    counts: Counter[str | None] = Counter()
    for row in rows:
        made = _first([row], _MADE[:3])
        if isinstance(made, Mapping):
            made = {key: value for key, value in made.items() if key not in _OF_ONE_QUESTION}
        counts[_as_text(made)] += 1
    if len(counts) <= 1:
        return next(iter(counts), None)
    known = sorted(((how or "not known", count) for how, count in counts.items()), key=lambda one: (-one[1], one[0]))
    return " and ".join(f"{how} ({count_noun(count, 'question')})" for how, count in known)


def _count_reviewed(rows: Iterable[Mapping[str, Any]]) -> int | None:
    said = [found for row in rows if (found := [row[name] for name in _REVIEWED if name in row])]
    absent: tuple[Any, ...] = (None, [], {})
    is_told = [[one not in absent and str(one).strip().lower() not in _NO for one in found] for found in said]
    return sum(map(any, is_told)) if said else None


def _read_reviewed(value: Any, count: int | None) -> int | None:
    if isinstance(value, bool):
        return count if value else 0
    if isinstance(value, Mapping):
        return _read_reviewed(_first([value], ("count", "questions", "rows")), count)
    if isinstance(value, (int, float)):
        return int(value)
    text = str(value).strip() if value is not None else ""
    return int(text) if text.isascii() and text.isdigit() else None


def _read_documents(value: Any) -> dict[str, str]:
    """Versions by document: from a map, from a list of objects, or one version of them all."""
    if isinstance(value, Mapping):
        return {str(name): text for name, one in sorted(value.items()) if (text := _read_version(one)) is not None}
    if isinstance(value, list):
        return dict(sorted(pair for one in value if (pair := _read_source(one)) is not None))
    return {} if value is None else {"all": make_visible(str(value))[:_LONGEST]}


def _read_version(value: Any) -> str | None:
    return _as_text(_first([value], _VERSION) if isinstance(value, Mapping) else value)


def _read_source(one: Any) -> tuple[str, str] | None:
    name = _first([one], _IDS) if isinstance(one, Mapping) else None
    version = _read_version(one) if name is not None else None
    return None if version is None else (str(name), version)


def _list_sources(rows: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    """The versions of the documents in the columns `sources`."""
    found: dict[str, str] = {}
    for row in rows:
        sources = row.get("sources")
        found.update(pair for one in (sources if isinstance(sources, list) else ()) if (pair := _read_source(one)))
    return dict(sorted(found.items()))


def _as_text(value: Any) -> str | None:
    """A remark on one line: an object as `model gpt-4o, seed 1`."""
    if value is None:
        return None
    if isinstance(value, Mapping):
        value = ", ".join(f"{key} {_write(inner)}" for key, inner in value.items() if inner is not None)
    text = make_visible(_write(value).strip())
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."


def _write(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)


_MILLION = 1e6


def count_judging(parts: SpecPlugins) -> dict[str, JudgingCost]:
    """What the replies behind the values took, by the model's name in the spec; models that were not asked are absent.

    The cost is at the prices that the models have now.
    """
    chats = {name: model for name, model in parts.asked_models.items() if isinstance(model, ChatModel)}
    costs = {name: _count(name, model) for name, model in chats.items()}
    return {name: cost for name, cost in costs.items() if cost.calls}


def count_replies(parts: SpecPlugins) -> dict[str, ReplyCounts]:
    """How often the replies of each chat model could be read, by its name in the spec."""
    found = {name: model.context.budget.usage.replies_of(name) for name, model in parts.asked_models.items()}
    return {name: counts for name, counts in found.items() if counts.questions}


def list_asked_models(parts: SpecPlugins) -> list[AskedModel]:
    """What was asked of each chat model in this evaluation, without stored replies; for the store to remember."""
    asked: list[AskedModel] = []
    for name, model in parts.asked_models.items():
        now = model.context.budget.usage.asked_now().get(name) if isinstance(model, ChatModel) else None
        if now is not None:
            facts = model.describe()
            called, url = facts.get("model", name), facts.get("url", "")
            asked.append(AskedModel(called, url, now.calls, now.seconds, now.replies))
    return asked


def _count(name: str, model: ChatModel[Any]) -> JudgingCost:
    used, price = model.context.budget.usage.of(name), model.price
    cost = None
    if price is not None and used.input_tokens is not None and used.output_tokens is not None:
        cost = (used.input_tokens * price[0] + used.output_tokens * price[1]) / _MILLION
    return JudgingCost(used.calls, used.input_tokens, used.output_tokens, cost)


def digest_prompts(parts: SpecPlugins) -> dict[str, str]:
    """The sha256 of the prompts of every judge that a metric asks: the keys are `strict.verify`."""
    return {
        f"{name}.{prompt}": digest
        for name, judge in _find_asked(parts).items()
        for prompt, digest in judge.prompt_digests().items()
    }


def describe_calibrations(parts: SpecPlugins) -> dict[str, UsedCalibration]:
    """The calibration of every judge that has one and that a metric asks."""
    asked = {name: judge for name, judge in _find_asked(parts).items() if judge.node.calibrated is not None}
    if not asked:
        return {}
    from rageval_spec.judging.calibrated_judge import CalibratedJudge

    return {name: judge.describe() for name, judge in asked.items() if isinstance(judge, CalibratedJudge)}


def _find_asked(parts: SpecPlugins) -> dict[str, Judge[Any]]:
    """The judges that metrics ask, directly or through other judges, by name."""
    asked = list_asked(judge for metric in parts.answer_metrics.values() for judge in metric.judges())
    return {name: judge for name, judge in parts.judges.items() if name in asked}


def note_models(parts: SpecPlugins) -> Iterator[Note]:
    """Notes on models of which another graph could have been run, or whose code was not, and on judges of their own.

    A judge that judges its own model's answers gets a warning, one that judges those of its family a note.
    """
    for name, model in parts.asked_models.items():
        yield from (Note("model_graph", f"models.{name}: {reading}") for reading in model.describe_files())
    for found in find_self_judging(parts):
        level: NoteLevel = "warning" if found.kinship == "same" else "note"
        yield Note("self_judging", str(found), system=found.system, level=level)
