"""The results of `rageval-spec models bench`, as text and as JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from statistics import median

from rageval_spec.commands.models.listing import format_bytes
from rageval_spec.wording import count_noun, format_number

REFERENCE = "fp32"
MEASURE = "ndcg@10"
DIGITS = 4
"""Quantisation changes a measure in the fourth digit."""


@dataclass(frozen=True, slots=True)
class Agreement:
    """Cosines between the vectors that two forms of a model give the same texts."""

    mean: float
    lowest: float


@dataclass(frozen=True, slots=True)
class Measured:
    """What one form of the model took: the seconds of each round, and the peak memory of its process."""

    name: str
    seconds: tuple[float, ...]
    peak_bytes: int
    agreement: Agreement | None = None

    @property
    def median(self) -> float:
        """The median over the rounds, in seconds."""
        return median(self.seconds)


@dataclass(frozen=True)
class Bench:
    """The results of a measurement.

    Attributes:
        tokens: how many tokens the model read, over all texts.
        truncated: how many texts were truncated.
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

    def to_text(self) -> str:
        """A table of the forms with their speed, memory, agreement and retrieval quality."""
        cut = f" ({self.truncated} of them truncated)" if self.truncated else ""
        rounds = "one round" if self.rounds == 1 else f"the median of {self.rounds} interleaved rounds"
        head = (
            f"{self.model}: {count_noun(self.texts, 'text')}{cut}, {self.tokens:,} tokens, "
            f"{count_noun(self.threads, 'thread')}, {rounds}"
        )
        return "\n".join([head, "", *self._table(), *(f"! {remark}" for remark in self.remarks)]) + "\n"

    def _table(self) -> Iterator[str]:
        with_quality = bool(self.quality)
        width = max(len(form.name) for form in self.measured)
        head = f"{'':<{width}}  {'texts/s':>8}  {'tokens/s':>9}  {'speed':>6}  {'memory':>8}  {'cosine with fp32':>22}"
        yield head + (f"  {MEASURE + ' on ' + str(self.dataset):>24}" if with_quality else "")
        for form in self.measured:
            speed = self.measured[0].median / form.median
            line = (
                f"{form.name:<{width}}  {self.texts / form.median:>8.1f}  {self.tokens / form.median:>9,.0f}  "
                f"{f'{speed:.2f}x':>6}  {format_bytes(form.peak_bytes):>8}  {_describe(form.agreement):>22}"
            )
            yield (line + (f"  {self._describe_quality(form.name):>24}" if with_quality else "")).rstrip()

    def _describe_quality(self, name: str) -> str:
        if name not in self.quality:
            return ""
        difference = self.quality[name] - self.quality[REFERENCE]
        change = "" if name == REFERENCE else f" ({difference:+.4f})"
        return f"{format_number(self.quality[name], DIGITS)}{change}"

    def to_json(self) -> str:
        """The results as JSON, with the seconds of every round."""
        forms = [
            {
                "name": form.name,
                "texts_per_second": self.texts / form.median,
                "tokens_per_second": self.tokens / form.median,
                "seconds": list(form.seconds),
                "peak_memory_bytes": form.peak_bytes,
                "cosine_with_fp32": {"mean": form.agreement.mean, "lowest": form.agreement.lowest}
                if form.agreement
                else None,
                MEASURE: self.quality.get(form.name),
            }
            for form in self.measured
        ]
        names = ("model", "texts", "tokens", "truncated", "threads", "rounds", "dataset")
        content = {name: getattr(self, name) for name in names}
        return json.dumps({**content, "forms": forms, "remarks": self.remarks}, indent=2, ensure_ascii=False) + "\n"


def _describe(agreement: Agreement | None) -> str:
    return "" if agreement is None else f"{agreement.mean:.4f}, lowest {agreement.lowest:.4f}"
