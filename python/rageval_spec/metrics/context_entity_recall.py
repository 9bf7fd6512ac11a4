import unicodedata
from collections.abc import Sequence

from rageval_spec.data.findings import Estimate, Failed
from rageval_spec.data.samples import Sample
from rageval_spec.libraries import compile_later
from rageval_spec.metrics.shared.judged_metrics import WITHOUT_REFERENCE, JudgedMetric, JudgeMetricNode, measure_failure
from rageval_spec.plugin import Measured, Measurement, MetricInfo

_INITIAL = compile_later(r"\b([^\W\d])\.")
"""A letter of an abbreviation such as `U.S.`, and its full stop."""


class ContextEntityRecall(JudgedMetric[JudgeMetricNode]):
    known_as = ("context_entities_recall", "entity_recall")
    needs = frozenset({"contexts", "reference"})
    able = (frozenset({"entities"}),)
    blank = (WITHOUT_REFERENCE,)
    info = MetricInfo(
        summary="The share of the names, places, dates and numbers in the reference that the contexts contain too.",
        formula="context_entity_recall = entities in both the reference and the contexts / entities in the reference",
        edge_cases=(
            "reference without an entity, or empty: no value (RAGAS: 0)",
            "no contexts, or empty ones: 0 with a reason, unless the reference has no entity",
            "spelling: case, punctuation, white space and Unicode form do not matter (RAGAS: entities must be equal to "
            "the letter)",
            "several mentions: an entity counts once",
            "1e-8 in RAGAS's denominator: left out, so that the value is exactly 1 if all entities are found",
            "several references: only the first one counts",
        ),
        source="RAGAS documentation, context entities recall (2024)",
    )

    def ask(self, samples: Sequence[Sample]) -> Measured:
        texts = _list_texts(samples)
        found = dict(zip(texts, self.judge.entities(texts), strict=True)) if texts else {}
        return Measured([_measure(found[sample.reference or ""], found.get(_join(sample), ())) for sample in samples])

    def estimate_asking(self, samples: Sequence[Sample]) -> Estimate:
        return self.judge.estimate_writing("entities", [("", text) for text in _list_texts(samples)])


def _join(sample: Sample) -> str:
    return "\n\n".join(sample.contexts or ())


def _list_texts(samples: Sequence[Sample]) -> list[str]:
    """The distinct references and contexts."""
    texts = (text for sample in samples for text in (sample.reference or "", _join(sample)))
    return list(dict.fromkeys(text for text in texts if text.strip()))


def _measure(wanted: Sequence[str] | Failed, there: Sequence[str] | Failed) -> Measurement:
    if isinstance(wanted, Failed):
        return measure_failure(wanted)
    if isinstance(there, Failed):
        return measure_failure(there)
    names = {key: name for name in reversed(wanted) if (key := normalize_entity(name))}
    if not names:
        return Measurement.unscorable("the reference has no named entity", {"entities": list(wanted)})
    known = {normalize_entity(name) for name in there}
    found = [names[key] for key in reversed(names) if key in known]
    missing = [names[key] for key in reversed(names) if key not in known]
    details = {"found": found, "missing": missing, "entities_of_contexts": list(there)}
    return Measurement.scored(len(found) / len(names), None if there else "the contexts have no named entity", details)


def normalize_entity(name: str) -> str:
    """A name with normalised case, punctuation, white space and Unicode form, for comparison."""
    folded = _INITIAL.sub(r"\1", unicodedata.normalize("NFKC", name).casefold())
    kept = (" " if unicodedata.category(character)[0] in "PZC" else character for character in folded)
    return " ".join("".join(kept).split())


PLUGIN = ContextEntityRecall
