"""`qrels`: people's grades of pairs of a query and a document."""

from __future__ import annotations

from functools import cached_property

from pydantic import Field

from rageval_spec import kernels
from rageval_spec.data.labels import Label
from rageval_spec.errors import DataError
from rageval_spec.labels.shared.label_file import FileLabels, FileLabelsNode
from rageval_spec.reading.formats.text_files import format_of
from rageval_spec.reading.label_files import SETTING, read_label_file, refuse_duplicates

_ROWS = frozenset({"csv", "tsv", "json", "jsonl", "ndjson", "parquet"})
"""The formats with named columns; files with other names are TREC qrels."""


class QrelsLabelsNode(FileLabelsNode):
    """People's grades of some pairs of a query and a document, which correct ranking metrics."""

    path: str = Field(
        description="TREC qrels, or a CSV, TSV, JSON or Parquet file with a row for each judgement: `query_id`, "
        "`doc_id`, `relevance`, and if known `probability`, `annotator` and `dataset`."
    )
    each_query_has_relevant: bool = Field(
        default=False,
        description="Whether people find at least one judged document relevant to each query. It makes intervals "
        "narrower, and keeps the numbers right where queries have one or two relevant documents. Only say so if it is "
        "true.",
    )


class QrelsLabels(FileLabels[QrelsLabelsNode]):
    """Reads a grade for each pair and person. Grades are whole numbers, those of the dataset's qrels."""

    known_as = ("trec",)
    of_pairs = True
    form = "csv"

    def check(self) -> str | None:
        """Refuse a scale: grades are compared with the judge's as they are."""
        return "labels of pairs are grades and have no scale; remove 'scale'" if self.node.scale != (0.0, 1.0) else None

    @cached_property
    def _labels(self) -> tuple[Label, ...]:
        path = self.context.resolve(self.node.path)
        if format_of(path) not in _ROWS:
            rows = kernels.read_qrels(path).select("query_id", "doc_id", "relevance").iter_rows()
            return tuple(
                Label(query_id, "", float(grade), "", document=doc_id, place=f"{path}: {query_id} {doc_id}")
                for query_id, doc_id, grade in rows
            )
        labels = tuple(read_label_file(path, self.columns, setting=SETTING))
        for one in labels:
            if not one.document:
                raise DataError(f"{one.place}: the label does not name its document; add a column 'doc_id'")
            if isinstance(one.value, str) or one.value % 1:
                raise DataError(f"{one.place}: the grade is {one.value}; write a whole number, such as 0, 1 or 2")
        refuse_duplicates(labels)
        return labels


PLUGIN = QrelsLabels
