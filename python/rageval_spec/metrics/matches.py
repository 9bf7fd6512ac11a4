import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

from pydantic import Field

from rageval_spec.data.samples import Sample
from rageval_spec.diagnostics import FileFault
from rageval_spec.libraries import compile_later
from rageval_spec.metrics.shared import answer_metrics
from rageval_spec.plugin import Measured, Measurement, MetricInfo

_SYNTAX = "a pattern has Rust's syntax, without look-around and back-references, so that it takes linear time"
_ERROR = compile_later(r"^error: (.+)$", re.MULTILINE)


class MatchesNode(answer_metrics.ColumnNode):
    pattern: str | None = Field(
        default=None,
        min_length=1,
        description="The regular expression, in Rust's syntax: no look-around and no back-references. It can match "
        "anywhere; `^` and `$` are the ends of the answer, `(?m)` makes them those of a line.",
    )
    ignore_case: bool = Field(default=False, description="Whether upper and lower case are the same.")


class Matches(answer_metrics.ExpectationMetric[MatchesNode]):
    known_as = ("regex", "regexp", "matches_regex", "pattern")
    key = "pattern"
    hidden = ("pattern",)
    info = MetricInfo(
        summary="Whether a regular expression matches somewhere in the answer; its mean is the share of such answers.",
        formula="matches = 1 if the pattern matches in the answer, else 0",
        edge_cases=(
            f"syntax: {_SYNTAX}",
            "invalid pattern: an error of the spec; in a column, status error for that question",
            "empty answer: depends on the pattern; `^$` matches it",
        ),
        source="rageval-spec: a search with the Rust crate regex, as polars calls it, since 2026",
    )

    def check_files(self) -> Iterator[FileFault]:
        if self.node.pattern is not None and (fault := self._find_fault(self.node.pattern)):
            yield FileFault(("pattern",), fault, _SYNTAX, "wrong-value")

    def prepare(self) -> None:
        import polars as pl

        del pl

    def compute(self, samples: Sequence[Sample]) -> Measured:
        """Check each answer; the answers with one pattern are searched at once."""
        if self.node.pattern is not None:
            self._known[self.node.pattern] = self._search(self.node.pattern, {one.answer or "" for one in samples})
        return super().compute(samples)

    def read(self, expected: Any) -> str:
        texts = answer_metrics.read_texts(expected)
        if len(texts) != 1:
            raise ValueError("must hold one pattern")
        if fault := self._find_fault(texts[0]):
            raise ValueError(f"holds an invalid pattern: {fault}")
        return texts[0]

    def judge(self, answer: str, expected: str) -> Measurement:
        found = self._known.get(expected, {}).get(answer)
        holds = self._search(expected, {answer})[answer] if found is None else found
        return Measurement.scored(holds, None if holds else f"{expected!r} does not match")

    @cached_property
    def _known(self) -> dict[str, Mapping[str, bool]]:
        return {}

    def _search(self, pattern: str, answers: set[str]) -> dict[str, bool]:
        import polars as pl

        texts = pl.Series("answer", sorted(answers), dtype=pl.String)
        found = texts.str.contains(f"(?i){pattern}" if self.node.ignore_case else pattern)
        return dict(zip(texts, found, strict=True))

    def _find_fault(self, pattern: str) -> str | None:
        """What is wrong with a pattern, in a sentence; None if it is valid."""
        import polars as pl

        try:
            self._search(pattern, {""})
        except pl.exceptions.ComputeError as error:
            text = str(error)
            told = _ERROR.search(text)
            return told[1] if told else text.partition("\n")[0].removeprefix("regex error: ")
        return None


PLUGIN = Matches
