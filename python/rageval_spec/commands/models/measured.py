"""The results of `rageval-spec models bench`, as text and as JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from textwrap import wrap
from typing import Any, Literal

from rageval_spec.commands.models.listing import format_bytes

REFERENCE = "fp32"
MEASURE = "ndcg@10"
_MEMORY = (
    "memory: the peak of the process that runs the model, above what it had before it loaded the model and its "
    "libraries (resident set size)"
)
DIGITS = 4
"""Quantisation changes a measure in the fourth digit."""


@dataclass(frozen=True, slots=True)
class Agreement:
    """Cosines between the vectors that two forms of a model give the same texts."""

    mean: float
    lowest: float


@dataclass(frozen=True, slots=True)
class Difference:
    """How far the probabilities of two forms of a classifier are apart, over all pairs (or tokens) and labels."""

    mean: float
    largest: float


@dataclass(frozen=True, slots=True)
class Measured:
    """What one form of the model took.

    Attributes:
        seconds: those of each round.
        peak_bytes: the peak memory of its process.
        start_bytes: what of it the process had before it loaded the model and its libraries.
        agreement: how well its vectors agree with those of fp32; None for fp32 and for classifiers.
        difference: how far its probabilities are from those of fp32; None for fp32 and for embedding models.
    """

    name: str
    seconds: tuple[float, ...]
    peak_bytes: int
    start_bytes: int = 0
    agreement: Agreement | None = None
    difference: Difference | None = None

    @property
    def median(self) -> float:
        """The median over the rounds, in seconds."""
        from statistics import median

        return median(self.seconds)


@dataclass(frozen=True)
class Bench:
    """The results of a measurement.

    Attributes:
        texts: how many texts, or pairs of texts, were read.
        unit: what was read.
        tokens: how many tokens the model read, over all of them.
        truncated: how many of them were truncated.
        quality: each form's mean nDCG@10 on the BEIR folder; empty without one.
        remarks: forms that could not be measured, and why.
    """

    model: str
    texts: int
    tokens: int
    truncated: int
    threads: int
    rounds: int
    measured: tuple[Measured, ...]
    dataset: str | None = None
    quality: Mapping[str, float] = field(default_factory=dict)
    remarks: tuple[str, ...] = ()
    unit: Literal["text", "pair"] = "text"

    def to_text(self) -> str:
        """A table of the forms with their speed, memory, agreement and retrieval quality."""
        from rageval_spec.wording import count_noun

        cut = f" ({self.truncated} of them truncated)" if self.truncated else ""
        rounds = "one round" if self.rounds == 1 else f"the median of {self.rounds} interleaved rounds"
        head = (
            f"{self.model}: {count_noun(self.texts, self.unit)}{cut}, {self.tokens:,} tokens, "
            f"{count_noun(self.threads, 'thread')}, {rounds}"
        )
        remarks = [f"! {remark}" for remark in self.remarks]
        return "\n".join([head, "", *self._table(), "", *wrap(_MEMORY, 100), *remarks]) + "\n"

    def _table(self) -> Iterator[str]:
        with_quality = bool(self.quality)
        width = max(len(form.name) for form in self.measured)
        compared = "cosine with fp32" if self.unit == "text" else "probabilities off fp32"
        per_second = f"{self.unit}s/s"
        head = f"{'':<{width}}  {per_second:>8}  {'tokens/s':>9}  {'speed':>6}  {'memory':>8}  {compared:>22}"
        yield head + (f"  {MEASURE + ' on ' + str(self.dataset):>24}" if with_quality else "")
        for form in self.measured:
            speed = self.measured[0].median / form.median
            line = (
                f"{form.name:<{width}}  {self.texts / form.median:>8.1f}  {self.tokens / form.median:>9,.0f}  "
                f"{f'{speed:.2f}x':>6}  {format_bytes(form.peak_bytes - form.start_bytes):>8}  {_describe(form):>22}"
            )
            yield (line + (f"  {self._describe_quality(form.name):>24}" if with_quality else "")).rstrip()

    def _describe_quality(self, name: str) -> str:
        from rageval_spec.wording import format_number

        if name not in self.quality:
            return ""
        difference = self.quality[name] - self.quality[REFERENCE]
        change = "" if name == REFERENCE else f" ({difference:+.4f})"
        return f"{format_number(self.quality[name], DIGITS)}{change}"

    def to_json(self) -> str:
        """The results as JSON, with the seconds of every round."""
        forms = [self._describe_form(form) for form in self.measured]
        names = ("model", "unit", "texts", "tokens", "truncated", "threads", "rounds", "dataset")
        content = {name: getattr(self, name) for name in names}
        return json.dumps({**content, "forms": forms, "remarks": self.remarks}, indent=2, ensure_ascii=False) + "\n"

    def _describe_form(self, form: Measured) -> dict[str, Any]:
        """One form in JSON's types."""
        compared: dict[str, Any] = {"cosine_with_fp32": None, MEASURE: self.quality.get(form.name)}
        if self.unit == "pair":
            compared = {"probability_difference_from_fp32": None}
        if form.agreement:
            compared["cosine_with_fp32"] = {"mean": form.agreement.mean, "lowest": form.agreement.lowest}
        if form.difference:
            told = {"mean": form.difference.mean, "largest": form.difference.largest}
            compared["probability_difference_from_fp32"] = told
        return {
            "name": form.name,
            f"{self.unit}s_per_second": self.texts / form.median,
            "tokens_per_second": self.tokens / form.median,
            "seconds": list(form.seconds),
            "peak_memory_bytes": form.peak_bytes,
            "start_memory_bytes": form.start_bytes,
            **compared,
        }


def _describe(form: Measured) -> str:
    if form.agreement is not None:
        return f"{form.agreement.mean:.4f}, lowest {form.agreement.lowest:.4f}"
    if form.difference is not None:
        return f"{form.difference.mean:.4f}, at most {form.difference.largest:.4f}"
    return ""
