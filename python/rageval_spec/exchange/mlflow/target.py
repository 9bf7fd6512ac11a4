"""Writes an evaluation to MLflow as runs and as feedback on the traces of its answers.

Each dataset and system gets a run with metrics, a table of values, and reports. A run carries a digest of its values:
the same values write to the same run; others make a new one.

Each feedback has an id made from what it is about, so writing it again changes it and adds none.

MLflow accepts only letters, digits, spaces and `_ - . : /` in the names of metrics, and nothing like a path.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from pydantic import Field

from rageval_spec.endpoints.service import ServiceError, quote_part
from rageval_spec.errors import RagevalError, UsageError
from rageval_spec.exchange.mlflow.source import OURS, TOOL, V2, V3, MlflowConnection, MlflowServer
from rageval_spec.exchange.shared.connections import read_object
from rageval_spec.exchange.shared.contracts import Parcel, TargetNode
from rageval_spec.exchange.shared.delivery import split
from rageval_spec.exchange.shared.scores import EvaluationScores, Judgements, Score, ValueTarget
from rageval_spec.libraries import compile_later
from rageval_spec.wording import count_noun

if TYPE_CHECKING:
    from rageval_spec.data.evaluation import Aggregate, Evaluation


_REPORT = "report.html"


class MlflowTargetNode(MlflowConnection, TargetNode):
    experiment: str | None = Field(
        default=None,
        min_length=1,
        description="The experiment to write runs to, by name; it is created if it is not there. Default: the "
        "evaluation's name.",
    )
    write: Literal["all", "runs", "assessments"] = Field(
        default="all",
        description="runs: a run for each dataset and system. assessments: feedback on the traces that the answers "
        "were read from. all: both, or only runs if no answer was read from MLflow.",
    )
    file: tuple[str, ...] = Field(
        default=(),
        description="Files to write to every run, such as a report. Default: `report.html` of the results folder, if "
        "there is one.",
    )


KIND = "assessment"
_CHANGED = ("feedback", "rationale", "metadata")
"""The parts that are written again if they differ."""
_AT_ONCE = 4


class MlflowTarget(ValueTarget[MlflowTargetNode]):
    """Writes runs and feedback under names of their own, so that sending twice changes nothing."""

    node_type = MlflowTargetNode
    summary = "Write runs with metrics, tables and reports, and feedback on traces, to MLflow."
    examples = (
        "export mlflow rageval-results --experiment support",
        "export mlflow rageval-results --write assessments --dry-run",
    )
    batch = 50
    named = ("experiment",)
    tool = TOOL
    otel_prefix = "tr-"
    monitor_keys: ClassVar[Mapping[str, Any]] = {"write": "assessments"}
    lost = (KIND, "trace", "MLflow")
    api: MlflowServer
    api_type = MlflowServer
    _runs: MlflowRuns | None = None

    def list_parcels(self, evaluation: Evaluation) -> Iterator[Parcel]:
        """The runs with their files, then the feedback."""
        if self.node.write != "assessments":
            self._runs = MlflowRuns(self.api, self.node.experiment or evaluation.name, self._list_files())
            yield from self._runs.list_parcels(evaluation)
        if self.node.write != "runs":
            judgements = Judgements(evaluation)
            try:
                for score in self.open_scores(evaluation):
                    yield _assess(score, judgements, evaluation.name)
            except UsageError:
                if self.node.write == "assessments":
                    raise
                self.scores = None

    def send(self, parcels: Sequence[Parcel]) -> None:
        """Write parcels; each replaces what was written under its key. Feedback on traces that are gone is left out."""
        if self._runs is not None:
            self._runs.send([parcel for parcel in parcels if parcel.kind != KIND])
        if feedback := [parcel.body for parcel in parcels if parcel.kind == KIND]:
            known = self._read_known(list(dict.fromkeys(body["trace_id"] for body in feedback)))
            there = [body for body in feedback if body["trace_id"] in known]
            self.gone.update(body["trace_id"] for body in feedback if body["trace_id"] not in known)
            with ThreadPoolExecutor(_AT_ONCE, thread_name_prefix=TOOL) as executor:
                for _ in executor.map(lambda body: self._write(body, known[body["trace_id"]]), there):
                    pass

    def _list_files(self) -> list[Path]:
        if self.node.file:
            return [self.context.resolve(path) for path in self.node.file]
        report = None if self.context.output is None else self.context.output / _REPORT
        return [report] if report is not None and report.is_file() else []

    def _read_known(self, trace_ids: Sequence[str]) -> dict[str, dict[str, Mapping[str, Any]]]:
        """The feedback that each trace has, by its id, for the traces that are there."""
        content = self.api.service.post(f"{V3}/traces/batchGetInfos", {"trace_ids": list(trace_ids)})
        infos = read_object(content).get("trace_infos", [])
        return {
            str(info.get("trace_id")): {str(one.get("assessment_id")): one for one in info.get("assessments") or ()}
            for info in infos
            if isinstance(info, Mapping)
        }

    def _write(self, body: Mapping[str, Any], known: Mapping[str, Mapping[str, Any]]) -> None:
        path = f"{V3}/traces/{quote_part(body['trace_id'])}/assessments"
        before = known.get(body["assessment_id"])
        if before is None:
            self.api.service.post(path, {"assessment": body}, repeatable=False)
        elif any(before.get(part) != body.get(part) for part in _CHANGED):
            content = json.dumps({"assessment": body, "update_mask": ",".join(_CHANGED)}, allow_nan=False)
            self.api.service.call("PATCH", f"{path}/{quote_part(body['assessment_id'])}", content.encode("ascii"))


def _assess(score: Score, judgements: Judgements, name: str) -> Parcel:
    assert score.link is not None, "only answers with a trace are listed"
    trace_id = score.link.trace_id
    key = f"{trace_id}/{score.link.span_id or ''}/{name}/{score.dataset}/{score.system}/{score.metric}"
    label, reason = judgements.label(score), judgements.explain(score)
    feedback: dict[str, Any] = {"value": score.value}
    if score.value is None:
        feedback["error"] = {"error_code": score.status.upper(), "error_message": reason or score.status}
    metadata = {"evaluation": name, "dataset": score.dataset, "system": score.system, "query_id": score.query_id}
    if label is not None and score.value is not None:
        metadata["label"] = label
    body: dict[str, Any] = {
        "assessment_id": f"a-{hashlib.sha256(key.encode()).hexdigest()[:32]}",
        "assessment_name": score.metric,
        "trace_id": trace_id,
        "source": {"source_type": "LLM_JUDGE" if judgements.is_judged(score.metric) else "CODE", "source_id": OURS},
        "feedback": feedback,
        "metadata": metadata,
    }
    if reason is not None and score.value is not None:
        body["rationale"] = reason
    if score.link.span_id is not None:
        body["span_id"] = score.link.span_id
    return Parcel(key, body, f"{judgements.summarize(score)} -> trace {trace_id}", KIND)


TABLE = "rageval_values.json"
DIGEST, TRUE_NAME = "rageval_spec.values", "rageval_spec.metric"
"""The tags of a run: its values' digest, and the true name of each metric whose name MLflow does not accept."""
RUN, FILE = "run", "file"
_METRICS_AT_ONCE, _TAGS_AT_ONCE = 500, 100
_LONGEST_TAG, _LONGEST_DIGEST = 5000, 36
_PROXY = "mlflow-artifacts:"
_KINDS = {".html": "text/html", ".json": "application/json", ".md": "text/markdown", ".csv": "text/csv"}


class MlflowRuns:
    """Lists and writes the runs of one evaluation."""

    def __init__(self, mlflow: MlflowServer, experiment: str, files: Sequence[Path]) -> None:
        """Write nothing yet; `files` are written to every run as they are."""
        self._mlflow = mlflow
        self._experiment = experiment
        self._files = files
        self._tables: dict[str, dict[str, Any]] = {}
        self._open: dict[str, Mapping[str, Any]] = {}
        self._experiment_id = ""

    def list_parcels(self, evaluation: Evaluation) -> Iterator[Parcel]:
        """For each dataset and system a run, its table of values, and the files."""
        digests = [(path, hashlib.sha256(_read_file(path)).hexdigest()) for path in self._files]
        self._tables = _make_tables(evaluation)
        for dataset in evaluation.datasets:
            for system in evaluation.systems:
                aggregates = [one for one in evaluation.aggregates if (one.dataset, one.system) == (dataset, system)]
                table = self._tables.get(_name_table(dataset, system))
                if not aggregates and table is None:
                    continue
                run = _make_run(evaluation, dataset, system, aggregates, table)
                name = run["run_name"]
                shown = ", ".join(f"{key} {number:.4g}" for key, number in run["metrics"].items() if "/" not in key)
                yield Parcel(f"run/{name}", run, f"{shown} -> run {name}", RUN)
                key = {"run_name": name, "digest": run["digest"]}
                if table is not None:
                    body = {**key, "path": TABLE, "table": _name_table(dataset, system), "sha256": _digest(table)}
                    rows = count_noun(len(table["data"]), "row")
                    yield Parcel(f"file/{name}/{TABLE}", body, f"{TABLE} ({rows}) -> run {name}", FILE)
                for path, digest in digests:
                    body = {**key, "path": path.name, "file": str(path), "sha256": digest}
                    yield Parcel(f"file/{name}/{path.name}", body, f"{path.name} -> run {name}", FILE)

    def send(self, parcels: Sequence[Parcel]) -> None:
        """Write runs and files; a run is created with the first parcel that belongs to it."""
        for parcel in parcels:
            write = self._write_run if parcel.kind == RUN else self._write_file
            write(self._find_run(parcel.body), parcel.body)

    def _find_run(self, body: Mapping[str, Any]) -> Mapping[str, Any]:
        """The information of the run with these values; it is created if it is not there."""
        name, digest = body["run_name"], body["digest"]
        if digest not in self._open:
            self._experiment_id = self._experiment_id or self._mlflow.open_experiment(self._experiment)
            same = f"tags.`{DIGEST}` = '{digest}'"
            search = {"experiment_ids": [self._experiment_id], "filter": same, "max_results": 1}
            found = next(iter(self._mlflow.list_objects(f"{V2}/runs/search", search, "runs", posts=True)), None)
            content = self._create_run(name, digest) if found is None else {"run": found}
            info = self._mlflow.read(self._mlflow.read(content, "run", "run", dict), "info", "run", dict)
            self._mlflow.read(info, "run_id", "run", str)
            self._open[digest] = info
        return self._open[digest]

    def _create_run(self, name: str, digest: str) -> Any:
        content = {
            "experiment_id": self._experiment_id,
            "run_name": name,
            "start_time": int(time.time() * 1000),
            "tags": [{"key": DIGEST, "value": digest}, {"key": "mlflow.source.name", "value": "rageval-spec"}],
        }
        return self._mlflow.service.post(f"{V2}/runs/create", content, repeatable=False)

    def _write_run(self, run: Mapping[str, Any], body: Mapping[str, Any]) -> None:
        """Log metrics, parameters and tags. The time of the values is the run's, so that logging again adds none."""
        begun = run.get("start_time", 0)
        metrics = _list_pairs(body["metrics"], timestamp=begun, step=0)
        parts: list[dict[str, Any]] = [{"metrics": part} for part in split(metrics, _METRICS_AT_ONCE)]
        parts += [{"tags": part} for part in split(_list_pairs(body["tags"]), _TAGS_AT_ONCE)]
        for part in (*parts, {"params": _list_pairs(body["params"])}):
            self._mlflow.service.post(f"{V2}/runs/log-batch", {"run_id": run["run_id"], **part})
        inputs = {"dataset": body["dataset"], "tags": [{"key": "mlflow.data.context", "value": "evaluation"}]}
        self._mlflow.service.post(f"{V2}/runs/log-inputs", {"run_id": run["run_id"], "datasets": [inputs]})
        if run.get("status") != "FINISHED":
            content = {"run_id": run["run_id"], "status": "FINISHED", "end_time": begun}
            self._mlflow.service.post(f"{V2}/runs/update", content)

    def _write_file(self, run: Mapping[str, Any], body: Mapping[str, Any]) -> None:
        table = self._tables[body["table"]] if "table" in body else None
        content = _read_file(Path(body["file"])) if table is None else json.dumps(table).encode()
        uri, path = str(run.get("artifact_uri") or ""), quote_part(body["path"])
        if uri.startswith(_PROXY):
            kind = _KINDS.get(Path(body["path"]).suffix, "application/octet-stream")
            folder = uri.removeprefix(_PROXY).strip("/")
            service = f"/api/2.0/mlflow-artifacts/artifacts/{folder}/{path}"
            self._mlflow.service.call("PUT", service, content, content_type=kind)
            return
        pairs = [("run_uuid", str(run["run_id"])), ("path", body["path"])]
        service, kind = "/ajax-api/2.0/mlflow/upload-artifact", "application/octet-stream"
        try:
            self._mlflow.service.call("POST", service, content, parameters=pairs, content_type=kind)
        except ServiceError as error:
            if error.status != 404:
                raise
            raise ServiceError(f"{error}; the server does not pass files on: start it with --serve-artifacts") from None


def _list_pairs(found: Mapping[str, Any], **others: Any) -> list[dict[str, Any]]:
    return [{"key": key, "value": value, **others} for key, value in found.items()]


def _make_run(
    evaluation: Evaluation, dataset: str, system: str, aggregates: Sequence[Aggregate], table: Mapping[str, Any] | None
) -> dict[str, Any]:
    names = clean_metric_names(evaluation.metrics)
    own = {
        "dataset": dataset,
        "system": system,
        "verdict": evaluation.verdict,
        "spec_digest": evaluation.provenance.spec_digest,
    }
    tags = {f"rageval_spec.{key}": value for key, value in own.items()}
    tags |= {f"{TRUE_NAME}.{name}"[:250]: metric for metric, name in names.items() if name != metric}
    tags["mlflow.loggedArtifacts"] = json.dumps([{"path": TABLE, "type": "table"}])
    metrics = dict(_list_metrics(aggregates, names))
    several = len(evaluation.datasets) > 1, len(evaluation.systems) > 1
    parts = [evaluation.name, *([dataset] if several[0] else ()), *([system] if several[1] else ())]
    name = "/".join(parts)
    questions = evaluation.provenance.digests.get(dataset, {}).get("questions", "")
    run = {
        "run_name": name,
        "metrics": metrics,
        "tags": {key: value[:_LONGEST_TAG] for key, value in tags.items()},
        "params": {
            "dataset": dataset,
            "system": system,
            "rageval_spec": evaluation.provenance.versions.get("rageval-spec", ""),
        },
        "dataset": {
            "name": dataset,
            "digest": (questions or evaluation.provenance.spec_digest)[:_LONGEST_DIGEST],
            "source_type": "rageval-spec",
            "source": "{}",
        },
    }
    return {**run, "digest": _digest([run, None if table is None else table["data"]])}


def _list_metrics(aggregates: Sequence[Aggregate], names: Mapping[str, str]) -> Iterator[tuple[str, float]]:
    """The aggregates over all queries: the mean, its interval, and how many answers were scored."""
    for one in aggregates:
        name = names.get(one.metric)
        if name is None or one.slice is not None:
            continue
        if one.mean is not None:
            yield name, one.mean
        if one.interval is not None:
            yield f"{name}/low", one.interval.low
            yield f"{name}/high", one.interval.high
        yield f"{name}/scored", float(one.scored)


def _make_tables(evaluation: Evaluation) -> dict[str, dict[str, Any]]:
    """For each dataset and system, a row for each answer: its texts, then the value and the reason of each metric."""
    judgements = Judgements(evaluation)
    own = ["query_id", "question", "answer", "reference", "contexts", "context_ids", "error", "trace_id"]
    columns = [*own, *evaluation.metrics, *(f"{metric} reason" for metric in evaluation.metrics)]
    tables: dict[str, dict[str, Any]] = {}
    for scores in EvaluationScores(evaluation, None).answers():
        first = scores[0]
        link = None if first.link is None else first.link.trace_id
        row = {column: first.sample.get(column) for column in own}
        row |= {"reference": next(iter(first.sample.get("references") or ()), None), "trace_id": link}
        for score in scores:
            row |= {score.metric: score.value, f"{score.metric} reason": judgements.explain(score)}
        table = tables.setdefault(_name_table(first.dataset, first.system), {"columns": columns, "data": []})
        table["data"].append([row.get(column) for column in columns])
    return tables


def _name_table(dataset: str, system: str) -> str:
    return json.dumps([dataset, system])


def _digest(content: Any) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def _read_file(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        raise UsageError(f"{path}: there is no such file") from None
    except OSError as error:
        raise RagevalError(f"{path}: cannot be read: {error.strerror or error}") from error


LONGEST = 200
"""Characters of a metric's name; MLflow accepts 250, and endings such as `/low` follow."""
_REFUSED = compile_later(r"[^\w\-. :/]")
_CUTOFF = compile_later(r"@(?=\d)")


def clean_metric_names(metrics: Iterable[str]) -> dict[str, str]:
    """MLflow's name of each metric: `ndcg@10` becomes `ndcg_at_10`. Different metrics have different names."""
    named: dict[str, str] = {}
    taken: set[str] = set()
    ordered = list(dict.fromkeys(metrics))
    # Names that need no change keep theirs, whatever else there is.
    for metric in sorted(ordered, key=lambda metric: _simplify(metric) != metric):
        short = name = _simplify(metric)
        number = 2
        while name in taken:
            name = f"{short}_{number}"
            number += 1
        taken.add(name)
        named[metric] = name
    return {metric: named[metric] for metric in ordered}


def _simplify(metric: str) -> str:
    text = _REFUSED.sub("_", _CUTOFF.sub("_at_", metric))
    parts = [part.strip(" ") for part in text.split("/")]
    kept = [part if part.strip(".") else "_" * len(part) for part in parts if part]
    return "/".join(kept)[:LONGEST].strip("/ ") or "metric"
