"""Records an evaluation at its end, whatever happens to the history.

A record has the commit at which the evaluation was made, its branch, and the CI run that made it. Records that could
not be written to the history are kept as files beside the results, until they can be sent. A record can be turned
into an evaluation again.
"""

from __future__ import annotations

import base64
import json
import os
import time
import zlib
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, replace
from datetime import UTC, datetime
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from uuid import uuid4

from rageval_spec.data import tables
from rageval_spec.data.datasets import Fingerprints, dump_designs, parse_designs
from rageval_spec.data.results import Record, dump_results, parse_results
from rageval_spec.errors import DataError, RagevalError
from rageval_spec.history import database
from rageval_spec.history.metric_definitions import take_meaning
from rageval_spec.libraries import pl
from rageval_spec.store.checkout import Checkout, start_finding_checkout
from rageval_spec.store.disk import write_atomically

if TYPE_CHECKING:
    from rageval_spec.data.evaluation import Aggregate, Evaluation
    from rageval_spec.plugin.budget import Cost
    from rageval_spec.spec.blocks.spec_node import Spec


ASIDE = Path(".rageval")
"""The folder beside the spec for records that cannot be written, if the evaluation has no results folder."""


class Recorder:
    """Records one evaluation. Make it when the evaluation begins: it notes the time and asks git for the commit."""

    def __init__(self, spec: Spec, output: Path | None, *, is_off: bool = False) -> None:
        """Begin. A record that the history does not take is kept in `output`; `is_off` records nothing."""
        self.id = uuid4().hex
        self._spec = spec
        self._place = None if is_off else database.locate(spec.history, spec.folder)
        beside = spec.folder / ASIDE
        self._aside = list(dict.fromkeys([beside if output is None else output, beside]))
        self._began = time.monotonic()
        self._wait_for_checkout = Checkout if self._place is None else start_finding_checkout(spec.folder)

    def record(self, evaluation: Evaluation, cost: Cost | None, label: str | None = None) -> str | None:
        """Record the evaluation, and send the records that earlier evaluations could not send.

        `cost` is None if no call was made. If a record could not be written to the history, a sentence returns that
        says why and where it is now.
        """
        if self._place is None:
            return None
        try:
            record = self._build(evaluation, cost, label)
        except Exception as error:
            return f"the evaluation was not recorded: {type(error).__name__}: {error}"
        try:
            return self._send(self._place, record)
        except Exception as error:
            return self._keep(record, error)

    def _build(self, evaluation: Evaluation, cost: Cost | None, label: str | None) -> database.StoredRecord:
        return build_record(
            evaluation,
            self.id,
            datetime.now(UTC),
            checkout=self._wait_for_checkout(),
            ci=find_ci_run(),
            cost=cost,
            seconds=round(time.monotonic() - self._began, 3),
            labels=() if label is None else (label,),
            spec=self._spec,
        )

    def _send(self, place: str | Path, record: database.StoredRecord) -> str | None:
        with database.open_history(place) as history:
            history.add([record])
            problems = send(history, self._aside).problems
        return "; ".join(problems) or None

    def _keep(self, record: database.StoredRecord, error: Exception) -> str:
        refusals = []
        for folder in self._aside:
            try:
                path = keep(record, folder)
            except (OSError, ValueError, TypeError) as worse:
                refusals.append(f"nor could its record be kept in {folder}: {worse}")
            else:
                which = "" if folder == self._aside[-1] else " with this results folder"
                return f"{error}; the record is in {path}, and the next evaluation{which} sends it"
        return "; ".join([f"the evaluation was not recorded: {error}", *refusals])


_PATTERN = "record-*.pending.json"
_VERSION = 1


def keep(record: database.StoredRecord, folder: Path) -> Path:
    """Write a record to a file in `folder`, and return its path."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"record-{record.row['id']}.pending.json"
    contents = {part: base64.b64encode(content).decode() for part, content in record.contents.items()}
    kept = {
        "version": _VERSION,
        "row": record.row,
        "aggregates": record.aggregates,
        "contents": contents,
        "labels": record.labels,
    }
    write_atomically(path, json.dumps(kept).encode())
    return path


def read(path: Path) -> database.StoredRecord:
    """Read a file that `keep` wrote."""
    try:
        kept: Any = json.loads(path.read_bytes())
        contents = {part: base64.b64decode(content) for part, content in kept["contents"].items()}
        row = database.complete_row(kept["row"])
        return database.StoredRecord(row, [tuple(one) for one in kept["aggregates"]], contents, tuple(kept["labels"]))
    except OSError as error:
        raise DataError(f"{path}: {error.strerror or error}") from error
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise DataError(f"{path}: not a record that rageval-spec kept: {error}") from error


class Sent(NamedTuple):
    """The number of records that `send` sent, and why the others still wait, a sentence for each."""

    records: int
    problems: tuple[str, ...]


def send(history: database.History, folders: Iterable[Path]) -> Sent:
    """Write the records kept in these folders to the history, and remove their files.

    A file that cannot be read or sent stays, and the others are sent all the same. If the process is killed before a
    file is removed, the record is sent again, and the history keeps one.
    """
    sent, problems = 0, []
    for path in sorted({path for folder in folders for path in folder.glob(_PATTERN)}):
        try:
            history.add([read(path)])
        except RagevalError as error:
            if path.exists():  # otherwise another evaluation sent it meanwhile
                problems.append(f"the record in {path} waits still: {error}")
            continue
        with suppress(OSError):
            path.unlink()
        sent += 1
    return Sent(sent, tuple(problems))


_SYSTEMS: Mapping[str, str] = {
    "GITHUB_ACTIONS": "github",
    "GITLAB_CI": "gitlab",
    "JENKINS_URL": "jenkins",
    "CIRCLECI": "circleci",
    "BUILDKITE": "buildkite",
    "TF_BUILD": "azure",
}
"""The CI systems by the variable that gives each away."""
_FACTS: Mapping[str, str] = {
    "run": "GITHUB_RUN_ID CI_PIPELINE_ID CIRCLE_BUILD_NUM BUILDKITE_BUILD_NUMBER BUILD_BUILDID BUILD_NUMBER",
    "attempt": "GITHUB_RUN_ATTEMPT",
    "job": "CI_JOB_ID JOB_NAME",
    "url": "CI_JOB_URL CIRCLE_BUILD_URL BUILDKITE_BUILD_URL BUILD_URL",
    "request": "CI_MERGE_REQUEST_IID CIRCLE_PULL_REQUEST CHANGE_ID",
    "commit": "GITHUB_SHA CI_COMMIT_SHA CIRCLE_SHA1 BUILDKITE_COMMIT BUILD_SOURCEVERSION GIT_COMMIT",
    "branch": "GITHUB_HEAD_REF GITHUB_REF_NAME CI_MERGE_REQUEST_SOURCE_BRANCH_NAME CI_COMMIT_BRANCH CI_COMMIT_REF_NAME "
    "CIRCLE_BRANCH BUILDKITE_BRANCH SYSTEM_PULLREQUEST_SOURCEBRANCH BUILD_SOURCEBRANCHNAME CHANGE_BRANCH BRANCH_NAME "
    "GIT_BRANCH",
}
"""The variables that tell of a run; the first that is set counts. Those of Jenkins have common names, and are last."""


def find_ci_run(environment: Mapping[str, str] | None = None) -> dict[str, str]:
    """What the CI system tells of its run: "system", and "run", "job", "url", "request", "commit", "branch" if known.

    Empty outside CI. `request` is the number or address of a pull request.
    """
    variables = os.environ if environment is None else environment
    system = next((of for mark, of in _SYSTEMS.items() if variables.get(mark)), None)
    if system is None:
        return {"system": "other"} if variables.get("CI") not in (None, "", "false", "0") else {}
    told = {fact: [variables[name] for name in names.split() if variables.get(name)] for fact, names in _FACTS.items()}
    run = {"system": system} | {fact: found[0] for fact, found in told.items() if found}
    return run | _derive_github(variables) if system == "github" else run


def _derive_github(variables: Mapping[str, str]) -> dict[str, str]:
    """The address of the run and the number of the pull request, which GitHub gives only in parts."""
    derived = {}
    server, repository, run = (variables.get(f"GITHUB_{name}") for name in ("SERVER_URL", "REPOSITORY", "RUN_ID"))
    if server and repository and run:
        derived["url"] = f"{server}/{repository}/actions/runs/{run}"
    reference = variables.get("GITHUB_REF", "").split("/")
    if reference[:2] == ["refs", "pull"] and len(reference) > 2:
        derived["request"] = reference[2]
    return derived


RESULTS = "results.json"
VALUES = "values.parquet"
FINGERPRINTS = "fingerprints.json"
DESIGNS = "designs.json"
_LEFT_OUT = ("details",)
"""Columns of the values that the database does not keep: what judges wrote, which is in the results folder."""
_LEVEL = 1


def build_record(
    evaluation: Evaluation,
    record_id: str,
    ended: datetime,
    *,
    checkout: Checkout | None = None,
    ci: Mapping[str, str] | None = None,
    cost: Cost | None = None,
    seconds: float | None = None,
    labels: Sequence[str] = (),
    spec: Spec | None = None,
) -> database.StoredRecord:
    """The record of an evaluation. Without the `spec`, metrics have the digests of the spec that it recorded.

    `record_id` has 32 hexadecimal digits. Branch and commit of `ci` count where the checkout has none. `cost` is None
    if no call was made.
    """
    checkout, ci = checkout or Checkout(), ci or {}
    row = {
        "id": record_id,
        "time": database.write_time(ended),
        "name": evaluation.name,
        "git_commit": checkout.commit or ci.get("commit"),
        "branch": checkout.branch or ci.get("branch"),
        "is_dirty": None if checkout.is_dirty is None else int(checkout.is_dirty),
        "ci": _to_json(ci),
        "outcome": evaluation.verdict,
        "spec_digest": evaluation.provenance.spec_digest,
        "cost": None if cost is None else cost.dollars,
        "cost_status": None if cost is None else cost.status,
        "seconds": seconds,
        "gates": _to_json(_list_gates(evaluation)),
        "meaning": _to_json(take_meaning(evaluation, spec) | _list_taken_over(evaluation)),
    }
    values = evaluation.values
    kept = values.drop(_LEFT_OUT, strict=False)
    contents = {
        RESULTS: zlib.compress(dump_results(evaluation), _LEVEL),
        VALUES: tables.dump_parquet(kept),
        FINGERPRINTS: zlib.compress(evaluation.fingerprints.dump().encode(), _LEVEL),
    }
    if evaluation.designs:
        contents[DESIGNS] = zlib.compress(dump_designs(evaluation.question_designs).encode(), _LEVEL)
    sliced = [one for part in evaluation.slices for one in part.aggregates]
    aggregates = [_flatten(record_id, one) for one in (*evaluation.aggregates, *sliced)]
    return database.StoredRecord(row, aggregates, contents, tuple(labels))


def _to_json(content: Any) -> str:
    return json.dumps(content, separators=(",", ":"), default=str)


def _list_taken_over(evaluation: Evaluation) -> dict[str, Any]:
    """What `history list` and `history show` tell of answers that were not asked in this evaluation."""
    taken_over = evaluation.provenance.taken_over
    return {"taken_over": [asdict(one) for one in taken_over]} if taken_over else {}


def _list_gates(evaluation: Evaluation) -> list[dict[str, Any]]:
    """The outcome of each gate, with the bounds that a chart can draw."""
    blocks = evaluation.provenance.spec.get("gates") or []
    found = []
    for one in evaluation.gates:
        block = blocks[one.gate] if one.gate < len(blocks) else {}
        outcome = {key: getattr(one, key) for key in ("gate", "dataset", "system", "metric", "slice", "outcome")}
        found.append(outcome | {key: block[key] for key in ("min", "max", "target") if block.get(key) is not None})
    return found


def _flatten(record_id: str, one: Aggregate) -> tuple[Any, ...]:
    low, high = (None, None) if one.interval is None else (one.interval.low, one.interval.high)
    row = {"record_id": record_id, "low": low, "high": high}
    return tuple(row[name] if name in row else getattr(one, name) for name in database.AGGREGATE_COLUMNS)


def holds_results_of(history: database.History, entry: database.RecordSummary, evaluation: Evaluation) -> bool:
    """Whether the results of a record are those of the evaluation, also if an earlier version wrote both."""
    if entry.spec_digest != evaluation.provenance.spec_digest:
        return False
    content = zlib.decompress(history.content(entry.id, RESULTS))
    return dump_results(parse_results(content, f"the record {entry.id}")) == dump_results(evaluation)


def load_stored(history: database.History, record_id: str) -> Record:
    """Read a record of the database. Its evaluation has values, but no samples and no details of judges."""
    entry = history.entry(record_id)
    try:
        content = zlib.decompress(history.content(record_id, RESULTS))
        values = pl.read_parquet(BytesIO(history.content(record_id, VALUES)))
        fingerprints = zlib.decompress(history.content(record_id, FINGERPRINTS)).decode()
        results = parse_results(content, f"the record {record_id}")
        designs = zlib.decompress(history.content(record_id, DESIGNS)).decode() if results.designs else None
    except (zlib.error, pl.exceptions.PolarsError) as error:
        raise DataError(f"the record {record_id} in {history.connection.name} is damaged: {error}") from error
    evaluation = replace(
        results,
        values=values,
        load_fingerprints=lambda: Fingerprints.parse(fingerprints),
        load_question_designs=lambda: parse_designs(designs, results.designs),
    )
    commit = f"{entry.commit}-dirty" if entry.commit and entry.is_dirty else entry.commit
    return Record(record_id, entry.time, commit, next(iter(entry.labels), None), evaluation)
