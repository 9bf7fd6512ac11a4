"""`qrels`: people's grades of pairs of a query and a document."""

from functools import cached_property

from pydantic import Field

from rageval_spec import kernels
from rageval_spec.data.labels import Label
from rageval_spec.errors import DataError
from rageval_spec.labels.shared.label_file import FileLabels, FileLabelsNode
from rageval_spec.reading.formats.records import PEOPLE, find_judges
from rageval_spec.reading.label_files import SETTING, make_labels, read_label_rows, refuse_duplicates
from rageval_spec.wording import agree, count_noun

_ROWS = (".csv", ".tsv", ".json", ".jsonl", ".ndjson", ".parquet")


class QrelsLabelsNode(FileLabelsNode):
    """People's grades of some pairs of a query and a document, which correct metrics of rankings."""

    path: str = Field(description="TREC qrels, or CSV, TSV, JSON or Parquet with `query_id, doc_id, relevance`.")
    each_query_has_relevant: bool = Field(
        default=False,
        description="Whether people find a document relevant to each query. Where that is one or two, say so if true.",
    )


class QrelsLabels(FileLabels[QrelsLabelsNode]):
    """Reads a whole number for each pair and person, a grade as in the dataset's qrels."""

    known_as = ("trec",)
    of_pairs = True

    def check(self) -> str | None:
        return None if self.node.scale == (0.0, 1.0) else "labels of pairs are grades, without a scale; remove 'scale'"

    @cached_property
    def _labels(self) -> tuple[Label, ...]:
        path = self.context.resolve(self.node.path)
        is_trec = not any(suffix.lower() in _ROWS for suffix in path.suffixes)
        rows = [] if is_trec else read_label_rows(path)
        told = find_judges(path).values() if is_trec else (row.get("judged_by") for _, row in rows)
        if judges := [one for one in told if one not in (None, "", PEOPLE)]:
            what = f"{count_noun(len(judges), 'grade')} {agree(len(judges), 'is')} of a judge, '{judges[0]}'"
            raise DataError(f"{path}: {what}, and labels are people's; leave these rows out")
        if is_trec:
            pairs = kernels.read_qrels(path).select("query_id", "doc_id", "relevance").iter_rows()
            return tuple(Label(query_id, "", float(grade), "", document=doc_id) for query_id, doc_id, grade in pairs)
        labels = tuple(make_labels(rows, path, self.columns, SETTING))
        for one in labels:
            if not one.document or isinstance(one.value, str) or one.is_yes_no or one.value % 1:
                raise DataError(f"{one.place}: a label needs a 'doc_id' and a grade that is a whole number")
        lacking = [one for one in labels if one.probability is None]
        if 0 < len(lacking) < len(labels):
            raise DataError(f"{lacking[0].place}: the label has no probability, but others do; give all one, or none")
        refuse_duplicates(labels)
        return labels


PLUGIN = QrelsLabels
