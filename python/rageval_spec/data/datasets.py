"""Where a dataset comes from, how its questions were chosen, and fingerprints of what it holds.

The origin is its version, how it was made, and how many of its questions people reviewed. The design says which
questions belong together, and what share of production each stands for. The name is that of survey statistics: a
sampling design. Means, intervals and tests take it into account.

Fingerprints are of the questions, gold answers and judgements from which values were computed. A saved evaluation
keeps them, at a few bytes for each query. A later evaluation uses them to tell a system that got worse from
references that were edited.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import NamedTuple, TypeVar

from rageval_spec.data import tables
from rageval_spec.data.tables import Collection
from rageval_spec.dataclass import dataclass, field
from rageval_spec.libraries import pl


@dataclass(frozen=True, slots=True)
class DatasetOrigin:
    """What a dataset, or the spec, says about itself. What neither says is None.

    Attributes:
        made: how the questions were made: `model gpt-4o, seed 1 (180 questions) and by hand (20 questions)`.
        reviewed, questions: the number of questions that people reviewed, and of all questions of the dataset.
        documents: the version of each source document, by id; of many, the first `MOST_DOCUMENTS` by id.
        documents_digest: the sha256 of the versions of all source documents.
    """

    version: str | None = None
    created: str | None = None
    made: str | None = None
    audited: str | None = None
    reviewed: int | None = None
    questions: int | None = None
    documents: dict[str, str] = field(default_factory=dict)
    documents_digest: str | None = None

    def describe(self) -> str:
        """`version 2.1; created 2026-05-01; 180 of 200 questions reviewed by people`; "" if nothing is known."""
        plain = (("version ", self.version), ("created ", self.created), ("made: ", self.made))
        facts = [f"{what}{value}" for what, value in plain if value is not None]
        if self.audited is not None:
            facts.append(f"audited {self.audited}" if self.audited != "true" else "audited")
        if self.reviewed is not None:
            of = "" if self.questions is None else f" of {self.questions:,}"
            facts.append(f"{self.reviewed:,}{of} questions reviewed by people")
        if self.documents:
            shown = [f"{name} {version}" for name, version in list(self.documents.items())[:_MOST_SHOWN]]
            more = " and others" if len(self.documents) > _MOST_SHOWN else ""
            facts.append(f"source documents {', '.join(shown)}{more}")
        return "; ".join(facts)


MOST_DOCUMENTS = 100
_MOST_SHOWN = 3


DESIGN_KEY = "rageval-spec:designs"
"""The key of the designs in the metadata of a Parquet file of values."""


@dataclass(frozen=True, slots=True)
class Stratum:
    """Questions that one row of the production mix describes.

    Attributes:
        name: what they have in common: `difficulty=hard`, or `difficulty=hard, language=de`.
        share: its share in production; the shares of a dataset add up to 1.
    """

    name: str
    share: float
    questions: int


@dataclass(frozen=True, slots=True)
class DesignSummary:
    """What reports say of a design.

    Attributes:
        questions: the number of the dataset's evaluated questions.
        cluster: the column whose values say which questions belong together; None if each is on its own.
        clusters: the number of clusters; a question without a value in that column is one of its own.
        weights, weight: the file of the production mix, or the column with the weight of each question.
        strata: the rows of the production mix.
        unlisted: the number of questions that the production mix does not list. They do not count in means.
    """

    questions: int
    cluster: str | None = None
    clusters: int | None = None
    without_cluster: int = 0
    weights: str | None = None
    weight: str | None = None
    strata: tuple[Stratum, ...] = ()
    unlisted: int = 0

    @property
    def is_weighted(self) -> bool:
        """Whether means are weighted."""
        return self.weights is not None or self.weight is not None

    @property
    def source(self) -> str:
        """Where the weights come from: the file, or the column."""
        return self.weights or self.weight or ""


@dataclass(frozen=True, slots=True)
class CellDesign:
    """What the design means for one aggregate or one comparison.

    Attributes:
        plain: the number if every question counted the same; None if means are not weighted.
        effective: how many questions of equal weight are worth as much (Kish: the square of the sum of the weights over
            the sum of their squares); None if means are not weighted.
        clusters: the number of clusters of its scored questions; None if each question is on its own.
        uncovered: the share of production whose questions all have no value. The mean is of the rest.
    """

    plain: float | None = None
    effective: float | None = None
    clusters: int | None = None
    uncovered: float = 0.0


@dataclass(frozen=True)
class Design:
    """The design of one dataset.

    Attributes:
        clusters: the number of each question's cluster, by query id. A question that is absent is on its own.
        weights: the weight of each question, by query id; None if all count the same. One that is absent does not
            count.
        strata: the number of each question's stratum, by query id. The weights of a stratum's questions are equal, and
            those of the scored ones stand for the others too. Absent questions are in stratum 0.
    """

    clusters: Mapping[str, int] = field(default_factory=dict)
    weights: Mapping[str, float] | None = None
    strata: Mapping[str, int] = field(default_factory=dict)
    summary: DesignSummary = field(default_factory=lambda: DesignSummary(0))

    @property
    def is_clustered(self) -> bool:
        """Whether the spec says which questions belong together."""
        return self.summary.cluster is not None

    def list_clusters(self, query_ids: Sequence[str]) -> list[int | str] | None:
        """The cluster of each question; a question without one has its own id. None if all are on their own."""
        return [self.clusters.get(query_id, query_id) for query_id in query_ids] if self.is_clustered else None

    def list_weights(self, query_ids: Sequence[str]) -> list[float] | None:
        """The weight of each question, not scaled; None if all count the same."""
        weights = self.weights
        return None if weights is None else [weights.get(query_id, 0.0) for query_id in query_ids]


def dump_designs(designs: Mapping[str, Design]) -> str:
    """The designs as JSON text, which `parse_designs` reads. Their summaries are kept elsewhere."""
    content = {name: [dict(of.clusters), of.weights, dict(of.strata)] for name, of in designs.items()}
    return json.dumps(content, separators=(",", ":"), ensure_ascii=True, sort_keys=True)


def parse_designs(text: str | None, summaries: Mapping[str, DesignSummary]) -> dict[str, Design]:
    """Read the text that `dump_designs` wrote. None, and any other text (from another version), give no designs."""
    try:
        content = json.loads(text or "{}")
        return {
            name: Design(clusters, weights, strata, summaries[name])
            for name, (clusters, weights, strata) in content.items()
        }
    except (ValueError, TypeError, AttributeError, KeyError, RecursionError):
        return {}


FINGERPRINTS_KEY = "rageval-spec:fingerprints"
"""The key of the fingerprints in the metadata of a Parquet file of values."""
_DIGEST_SIZE = 6


class Fingerprint(NamedTuple):
    """Digests, in hex, of the data that one query was evaluated with; None for a part that the query does not have.

    Attributes:
        reference: of the gold answers, the reference contexts and the other columns of `tables.REFERENCES`.
        judgements: of the judged documents and their relevance; their order does not matter.
    """

    question: str | None = None
    reference: str | None = None
    judgements: str | None = None


_FINGERPRINT_COLUMNS = ("query_id", *Fingerprint._fields)


@dataclass(frozen=True)
class Fingerprints:
    """The fingerprint of each query, by dataset and query id. Datasets without recorded fingerprints are absent."""

    datasets: Mapping[str, Mapping[str, Fingerprint]] = field(default_factory=dict)

    def dump(self) -> str:
        """The fingerprints as JSON text, which `parse` reads."""
        return f"{{{','.join(f'{json.dumps(name)}:{_dump_each(of)}' for name, of in self.datasets.items())}}}"

    @property
    def count(self) -> int:
        """The number of queries of all datasets."""
        return sum(map(len, self.datasets.values()))

    def tabulate(self) -> pl.DataFrame:
        """The fingerprints as a table: `dataset, query_id` and the columns of `Fingerprint`; `read` reads it."""
        schema = dict.fromkeys(_FINGERPRINT_COLUMNS, pl.String)
        frames = [pl.DataFrame(schema={"dataset": pl.String, **schema})]
        for name, of in self.datasets.items():
            table = of.table if isinstance(of, FingerprintTable) else None
            if table is None:
                table = pl.DataFrame([(key, *one) for key, one in of.items()], schema=schema, orient="row")
            frames.append(table.select(pl.lit(name).alias("dataset"), pl.all()))
        return pl.concat(frames)

    @classmethod
    def read(cls, table: pl.DataFrame) -> Fingerprints:
        """The fingerprints of a table that `tabulate` made. Raises a Polars error if a column is absent."""
        known = table.select(pl.col("dataset", *_FINGERPRINT_COLUMNS).cast(pl.String))
        parts = known.sort("query_id").partition_by("dataset", as_dict=True, include_key=False)
        return cls({str(name): FingerprintTable(part) for (name,), part in parts.items()})

    @classmethod
    def parse(cls, text: str | None) -> Fingerprints:
        """Read the text that `dump` wrote. None, and any other text (from another version), give no fingerprints."""
        try:
            datasets = json.loads(text or "{}")
            return cls({name: {key: Fingerprint(*parts) for key, parts in of.items()} for name, of in datasets.items()})
        except (ValueError, TypeError, AttributeError, RecursionError):
            return cls()


def _dump_each(fingerprints: Mapping[str, Fingerprint]) -> str:
    """The JSON object of one dataset, made a part at a time: dicts of all would take several times its memory."""
    each, parts = iter(fingerprints.items()), []
    while part := dict(islice(each, 10_000)):
        parts.append(json.dumps(part, separators=(",", ":"), ensure_ascii=True)[1:-1])
    return f"{{{','.join(parts)}}}"


class FingerprintTable(Mapping[str, Fingerprint]):
    """The fingerprints of the queries of one dataset, in a table that takes a sixth of the memory of a dict."""

    def __init__(self, table: pl.DataFrame) -> None:
        """Take columns `query_id`, sorted, and those of `Fingerprint`."""
        self.table = table

    def __getitem__(self, query_id: str) -> Fingerprint:
        """The fingerprint of a query."""
        place = self.table["query_id"].search_sorted(query_id)
        if place == self.table.height or self.table["query_id"][place] != query_id:
            raise KeyError(query_id)
        return Fingerprint(*self.table.row(place)[1:])

    def __iter__(self) -> Iterator[str]:
        """The ids of the queries, in order."""
        return iter(self.table["query_id"])

    def items(self) -> Iterator[tuple[str, Fingerprint]]:  # type: ignore[override]
        """Each query with its fingerprint, in order."""
        return ((query_id, Fingerprint(*parts)) for query_id, *parts in self.table.iter_rows())

    def __len__(self) -> int:
        """The number of queries."""
        return self.table.height


@dataclass(frozen=True)
class EvaluatedQueries:
    """The queries of one dataset that were evaluated, with their judgements, questions and references.

    `reads_questions` and `reads_references` say whether a system or a metric uses them; if not, they are not read.
    """

    collection: Collection
    query_ids: pl.Series
    reads_questions: bool = True
    reads_references: bool = True


def take_fingerprints(evaluated: EvaluatedQueries) -> Mapping[str, Fingerprint]:
    """The fingerprints of a dataset's evaluated queries, sorted by query id."""
    collection = evaluated.collection
    parts: dict[str, pl.DataFrame] = {}
    if evaluated.reads_questions and (table := collection.queries) is not None:
        parts["question"] = _digest_rows(table["query_id"], table["text"], _digest)
    if evaluated.reads_references and (table := collection.references) is not None:
        columns = [column for column in tables.REFERENCES if column != "query_id" and column in table.columns]
        rows = table.select(columns).iter_rows()
        parts["reference"] = _digest_rows(
            table["query_id"], rows, lambda row: _digest(json.dumps([*row], ensure_ascii=True))
        )
    table = collection.qrels
    if table is not None and (passages := collection.passages) is not None:
        table = tables.only_queries(passages.tabulate_passages(), table)  # the same for all chunks
    if table is not None:
        # Polars joins the rows of each query, because there can be hundreds for each.
        row = pl.concat_str("doc_id", pl.lit("\t"), pl.col("relevance").cast(pl.String)).str.join("\n")
        of_query = table.sort("query_id", "doc_id").group_by("query_id").agg(row.alias("rows"))
        parts["judgements"] = _digest_rows(of_query["query_id"], of_query["rows"], _digest)
    found = evaluated.query_ids.unique().sort().to_frame("query_id")
    is_unique, order = found.height == len(evaluated.query_ids), evaluated.query_ids.arg_sort()
    for name in Fingerprint._fields:
        digests = parts.pop(name, None)
        if digests is None:
            found = found.with_columns(pl.lit(None, pl.String).alias(name))
        elif is_unique and digests["query_id"].equals(evaluated.query_ids):  # a join needs several times the memory
            found = found.with_columns(digests["digest"].gather(order).alias(name))
        else:
            digests = digests.unique("query_id", keep="last").rename({"digest": name})
            found = found.join(digests, on="query_id", how="left", maintain_order="left")
    return FingerprintTable(tables.share_repeats(found))


T = TypeVar("T")


def _digest_rows(query_ids: pl.Series, rows: Iterable[T], digest: Callable[[T], str]) -> pl.DataFrame:
    """`query_id, digest`. The digests are gathered a part at a time: as Python's texts, all take much memory."""
    each, frames = iter(rows), [pl.Series(dtype=pl.String)]
    while part := [digest(row) for row in islice(each, 10_000)]:
        frames.append(pl.Series(part, dtype=pl.String))
    return pl.DataFrame({"query_id": query_ids, "digest": pl.concat(frames)})


def _digest(text: str | None) -> str:
    content = (text or "").encode("utf-8", "backslashreplace")
    return hashlib.blake2b(content, digest_size=_DIGEST_SIZE).hexdigest()
