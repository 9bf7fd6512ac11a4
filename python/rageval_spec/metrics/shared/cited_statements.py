"""Metrics that ask a judge whether an answer's statements are supported by the passages that they cite.

A metric says for each sample what it wants to know (`question`): a generator that yields lists of `Pair`, a statement
and the contexts to judge it by, gets all findings so far, and returns the measurement. So a metric can ask about a
passage by itself only where an earlier finding makes it worth its price.
"""

from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from typing import Any, ClassVar, NamedTuple, TypeAlias, TypeVar

from rageval_spec.data.evidence.citations import Citation, Statement, list_statements
from rageval_spec.data.evidence.nuggets import Assignment
from rageval_spec.data.findings import Assessment, Claim, Criterion, Estimate, Failed, Finding, Verdict
from rageval_spec.data.outcomes import AnyNote
from rageval_spec.data.samples import Sample
from rageval_spec.dataclass import replace
from rageval_spec.metrics.shared import answer_metrics, judged_metrics
from rageval_spec.plugin import Judge, Measured, Measurement
from rageval_spec.recorded.citations import find_citations

STATEMENT_IN_CITED = Criterion(
    "citation_support", "support", "Is the statement supported by what it cites?", shown=("answer", "contexts")
)
CITES_NOTHING = "the answer cites nothing"
NAMES_NOTHING = "it names no context of the answer"
STATES_NOTHING = "the answer states nothing"
FULL = 1.0
_WEIGHTS: Mapping[Assignment, float] = {"support": FULL, "partial_support": 0.5, "not_support": 0.0}


class Pair(NamedTuple):
    """A statement, by its number, and the contexts that it is judged by, joined into one text."""

    statement: int
    contexts: tuple[int, ...]


Statements: TypeAlias = Sequence[Statement]
Found: TypeAlias = Mapping[Pair, Finding]
Question: TypeAlias = Generator[list[Pair], Found, Measurement]
J = TypeVar("J", bound=judged_metrics.JudgeMetricNode)


def citations_of(sample: Sample) -> tuple[Citation, ...]:
    """The citations of a sample's answer, also where nobody looked for them when it was read."""
    if sample.citations is not None:
        return sample.citations
    return find_citations(sample.answer or "", sample.contexts, sample.context_ids)


class CitedMetric(judged_metrics.JudgedMetric[J]):
    """A metric of the statements of an answer and what they cite."""

    needs = frozenset({"answer", "contexts"})
    asked = (STATEMENT_IN_CITED,)
    always: ClassVar[Sequence[str]] = (
        "statement: a sentence without its markers, or all sentences that one citation covers; an answer without one: "
        "no value",
        "statement in which the judge finds no claim, such as a greeting: as if it were not supported",
        "statement that the judge leaves undecided: no value",
        *judged_metrics.JudgedMetric.always,
    )

    def question(self, statements: Sequence[Statement]) -> Question:
        """What to ask about the statements of one answer, of which there is at least one; by default all pairs."""
        return self.measure_pairs(statements, (yield [*self.list_pairs(statements)]))

    def measure_pairs(self, statements: Sequence[Statement], found: Found) -> Measurement:
        """The measurement of an answer, if all pairs are asked about at once."""
        raise NotImplementedError

    def list_pairs(self, statements: Sequence[Statement]) -> Iterator[Pair]:
        """All pairs that `question` can ask about."""
        raise NotImplementedError

    def settle(self, sample: Sample) -> Measurement | None:
        if answer_metrics.is_blank(sample.answer):
            return Measurement.unscorable(answer_metrics.EMPTY_ANSWER)
        return None if _list_statements(sample) else Measurement.unscorable(STATES_NOTHING)

    def ask(self, samples: Sequence[Sample]) -> Measured:
        """Put the questions of all samples, round by round."""
        stated = [_list_statements(sample) for sample in samples]
        questions = {number: self.question(statements) for number, statements in enumerate(stated)}
        known: dict[int, dict[Pair, Any]] = {}
        done: dict[int, Measurement] = {}
        notes: list[AnyNote] = []
        while questions:
            wanted: dict[int, list[Pair]] = {}
            for number, question in questions.items():
                try:
                    pairs = dict.fromkeys(question.send(known.get(number)))  # type: ignore[arg-type]  # None begins it
                    told = known.setdefault(number, {})
                    wanted[number] = [pair for pair in pairs if pair not in told]
                except StopIteration as end:
                    done[number] = end.value
            findings, given = _assess_pairs(self.judge, samples, stated, wanted)
            notes += [note for note in given if note not in notes]
            for (number, pair), finding in findings.items():
                known[number][pair] = finding
            failures = ((number, _find_failure(known[number])) for number in wanted)
            done |= {number: failure for number, failure in failures if failure is not None}
            questions = {number: question for number, question in questions.items() if number not in done}
        return Measured([done[number] for number in range(len(samples))], tuple(notes))

    def estimate_asking(self, samples: Sequence[Sample]) -> Estimate:
        return estimate_pairs(self.judge, samples, self.list_pairs)


def estimate_pairs(
    judge: Judge[Any], samples: Sequence[Sample], list_pairs: Callable[[Sequence[Statement]], Iterable[Pair]]
) -> Estimate:
    """The calls for the pairs that are listed of each sample's statements."""
    stated = [_list_statements(sample) for sample in samples]
    asked = [
        _ask_about(sample, statements, pair)
        for sample, statements in zip(samples, stated, strict=True)
        for pair in dict.fromkeys(list_pairs(statements))
    ]
    return judge.estimate(STATEMENT_IN_CITED, asked) if asked else Estimate()


def _assess_pairs(
    judge: Judge[Any], samples: Sequence[Sample], stated: Sequence[Statements], wanted: Mapping[int, Sequence[Pair]]
) -> tuple[dict[tuple[int, Pair], Finding | Failed], Sequence[AnyNote]]:
    """What the judge finds for the wanted pairs of each sample, by the sample's number."""
    flat = [(number, pair) for number, pairs in wanted.items() for pair in pairs]
    asked = [_ask_about(samples[number], stated[number], pair) for number, pair in flat]
    assessment = judge.assess(STATEMENT_IN_CITED, asked) if asked else Assessment(())
    return dict(zip(flat, assessment.findings, strict=True)), assessment.notes


def _list_statements(sample: Sample) -> list[Statement]:
    return list_statements(sample.answer or "", citations_of(sample))


def _ask_about(sample: Sample, statements: Sequence[Statement], pair: Pair) -> Sample:
    """The sample in which the statement is the answer, and what it cites the only context."""
    passage = "\n".join(text for place in pair.contexts for text in (sample.contexts or ())[place : place + 1])
    ids = None if sample.context_ids is None else (", ".join(sample.context_ids[place] for place in pair.contexts),)
    text = statements[pair.statement].text
    return replace(sample, answer=text, contexts=(passage,), context_ids=ids, scores=None, citations=None)


def list_cited(statements: Sequence[Statement]) -> Iterator[Pair]:
    """Each statement beside each context that it cites; those that cite something unknown are left out."""
    for number, one in enumerate(statements):
        yield from (Pair(number, (place,)) for place in dict.fromkeys(list_places(one.citations) or ()))


def join_statements(sample: Sample, kept: Iterable[Statement] | None = None) -> str:
    """The text of an answer's statements, without markers; of all of them by default."""
    return "\n".join(one.text for one in (_list_statements(sample) if kept is None else kept))


def keep_supported(judge: Judge[Any], samples: Sequence[Sample]) -> tuple[list[Sample | Failed], Sequence[AnyNote]]:
    """The samples with only those statements in their answers that every passage they cite supports in full.

    A sample fails if the judge fails, or leaves one of its statements undecided.
    """
    stated = [_list_statements(sample) for sample in samples]
    wanted = {number: [*list_cited(statements)] for number, statements in enumerate(stated)}
    told, notes = _assess_pairs(judge, samples, stated, wanted)
    kept: list[Sample | Failed] = []
    for number, sample in enumerate(samples):
        found = {pair: told[number, pair] for pair in wanted[number]}
        weak = {pair.statement for pair, one in found.items() if not isinstance(one, Finding) or weigh(one) < FULL}
        supported = dict.fromkeys(pair.statement for pair in found if pair.statement not in weak)
        answer = join_statements(sample, (stated[number][place] for place in supported))
        kept.append(_fail([*found.values()]) or replace(sample, answer=answer, citations=None))
    return kept, notes


def _fail(findings: Sequence[Finding | Failed]) -> Failed | None:
    reason = _find_undecided(findings)
    return judged_metrics.first_failure(findings) or (None if reason is None else Failed(reason))


def _find_failure(told: Mapping[Pair, Finding | Failed]) -> Measurement | None:
    if (failed := judged_metrics.first_failure([*told.values()])) is not None:
        return judged_metrics.measure_failure(failed)
    reason = _find_undecided(told.values())
    return None if reason is None else Measurement.unscorable(reason)


def _find_undecided(findings: Iterable[Finding | Failed]) -> str | None:
    """Why the judge left a statement undecided; None if it left none."""
    undecided = (one for one in findings if isinstance(one, Finding) and one.score is None and not one.claimless)
    return next((one.reason or answer_metrics.UNDECIDED for one in undecided), None)


def weigh(finding: Finding) -> float:
    """How far a statement is supported: in full if all its claims are, in part if some are, else not."""
    if not finding.claims:
        return FULL if (finding.score or 0.0) >= FULL else 0.0
    return _WEIGHTS[judged_metrics.label_support(finding.claims)]


def list_places(citations: Sequence[Citation]) -> tuple[int, ...] | None:
    """The contexts that citations name, in order; None if one names none."""
    places = [one.context for one in citations]
    return None if None in places else tuple(place for place in places if place is not None)


def describe_citation(statement: Statement, citation: Citation, found: Found, number: int) -> dict[str, Any]:
    """What was found about the context that a citation of the statement with this number names, if it names one."""
    finding = None if citation.context is None else found.get(Pair(number, (citation.context,)))
    reason = NAMES_NOTHING if finding is None else None
    return describe_claim(statement, citation, finding, 0.0 if finding is None else weigh(finding), reason)


def describe_claim(
    statement: Statement, citation: Citation | None, finding: Finding | None, weight: float, reason: str | None = None
) -> dict[str, Any]:
    """A statement and what was found about one of its citations, or about all, as a claim in a value's details."""
    claims = finding.claims if finding is not None else ()
    weak = [one for one in claims if not judged_metrics.is_met(one)]
    shown = next(iter(weak or claims), None)
    places = {one.context for one in statement.citations}
    is_denied = any(one.verdict == "contradicted" for one in weak)
    verdict: Verdict = "supported" if weight == FULL else "contradicted" if is_denied else "not_enough_info"
    source = citation.context if citation else places.pop() if len(places) == 1 else None
    said = shown or finding
    reason, evidence = reason or (None if said is None else said.reason), None if shown is None else shown.evidence
    one = Claim(statement.text, weight, verdict, statement.start, statement.end, source, evidence, reason)
    (told,) = judged_metrics.describe_claims([one])
    if citation is not None:
        told |= {"citation": citation.document} | ({"marker": [*citation.marker]} if citation.marker else {})
    return told
