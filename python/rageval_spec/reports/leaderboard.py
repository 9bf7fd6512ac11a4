"""`leaderboard`: the value of each system for each topic, and its mean, as tools for leaderboards of TREC read them.

| form | a line | files |
|---|---|---|
| `autojudge` | `{"run_id": ..., "topic_id": ..., "measure": ..., "value": ...}` | one |
| `ir_measures` | `system topic measure value`, with tabs: AutoJudge's `ir_measures` | one |
| `trec_eval` | `measure topic value`, with tabs, as `trec_eval -q` | one for each system, called like it |

The topic `all` has the mean that the other reports show: of the topics with a value. With `repeat:`, a topic has its
repeats' mean. What has no number has no line; stderr names the first. With several datasets, each has its own files.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from typing import ClassVar, Literal

from pydantic import Field

from rageval_spec.data.evaluation import Evaluation
from rageval_spec.errors import DataError
from rageval_spec.libraries import pl
from rageval_spec.plugin import Report, ReportNode
from rageval_spec.reading.leaderboards import ALL
from rageval_spec.wording import count_noun


class LeaderboardNode(ReportNode):
    """Settings of the report `leaderboard`: the value of each system for each topic, and its mean."""

    form: Literal["autojudge", "ir_measures", "trec_eval"] = Field(
        default="autojudge",
        description="autojudge: JSON Lines; ir_measures: lines of system, topic, measure and value; trec_eval: a file "
        "for each system, with lines of measure, topic and value, in a folder named like the file without its suffix.",
    )


class LeaderboardReport(Report[LeaderboardNode]):
    """Renders values and means of systems, for `calibrate --leaderboards`, AutoJudge and scripts for TREC."""

    known_as = ("leaderboards", "autojudge", "trec_eval")
    filename: ClassVar[str | None] = "leaderboard.txt"

    def render(self, evaluation: Evaluation) -> bytes:
        """All systems on the only dataset, in a form with one file."""
        return b"".join(content for _, content in self.render_files(evaluation))

    def render_files(self, evaluation: Evaluation) -> Iterator[tuple[str, bytes]]:
        """The files. Raises DataError: a name has white space, which two of the forms cannot hold."""
        self._tell_left_out(evaluation.values)
        form, write = self.node.form, _WRITERS[self.node.form]
        for dataset in evaluation.datasets:
            rows = [*_list_rows(evaluation, dataset)]
            if form != "autojudge":
                _refuse_blanks(rows, form)
            folder = f"{dataset}/" if len(evaluation.datasets) > 1 else ""
            lines = [(row["run_id"], f"{write(row)}\n") for row in rows]
            if form == "trec_eval":
                for system in evaluation.systems:
                    yield f"{folder}{system}", "".join(line for name, line in lines if name == system).encode()
            else:
                yield f"{dataset}.txt" if folder else "", "".join(line for _, line in lines).encode()

    def _tell_left_out(self, values: pl.DataFrame) -> None:
        without = values.filter(pl.col("value").is_null()).select("metric", "system", "query_id", "reason")
        if without.height:
            metric, system, topic, why = without.row(0)
            count, first = count_noun(without.height, "value"), f"first {metric} of {system} for {topic}: {why}"
            self.context.tell(f"the leaderboard leaves out {count} without a number, {first}")


Row = Mapping[str, str | float]
_WRITERS: Mapping[str, Callable[[Row], str]] = {
    "autojudge": json.dumps,
    "ir_measures": "{run_id}\t{topic_id}\t{measure}\t{value}".format_map,
    "trec_eval": "{measure}\t{topic_id}\t{value}".format_map,
}


def _list_rows(evaluation: Evaluation, dataset: str) -> Iterator[Row]:
    """The values of a dataset, then the means."""
    found = evaluation.question_values.filter(dataset=dataset)
    for _, system, measure, topic, value in found.iter_rows():
        if topic == ALL:
            raise DataError(f"a query of '{dataset}' is called {ALL!r}, which names the mean in a leaderboard")
        yield {"run_id": system, "topic_id": topic, "measure": measure, "value": value}
    for one in evaluation.aggregates:
        if one.dataset == dataset and one.slice is None and one.mean is not None:
            yield {"run_id": one.system, "topic_id": ALL, "measure": one.metric, "value": one.mean}


def _refuse_blanks(rows: list[Row], form: str) -> None:
    names = dict.fromkeys(str(row[part]) for row in rows for part in ("run_id", "topic_id", "measure"))
    blank = next((name for name in names if len(name.split()) != 1), None)
    if blank is not None:
        advice = "write 'form: autojudge', or another name"
        raise DataError(f"the name {blank!r} has white space, which the form '{form}' cannot hold; {advice}")


PLUGIN = LeaderboardReport
