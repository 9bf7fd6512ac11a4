"""Metrics that ask a judge whether an answer's statements are supported by the passages that they cite.

A metric says for each sample what it wants to know (`question`): a generator that yields lists of `Pair`, a statement
and the contexts to judge it by, gets all findings so far, and returns the measurement. So a metric can ask about a
passage by itself only where an earlier finding makes it worth its price.
"""

from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from typing import Any, ClassVar, NamedTuple, TypeAlias, TypeVar

from rageval_spec.data.evidence.citations import Citation, Statement, list_statements
from rageval_spec.data.findings import Assessment, Criterion, Estimate, Failed, Finding
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
FULL, PARTIAL = 1.0, 0.5


class Pair(NamedTuple):
    """A statement, by its number, and the contexts that it is judged by, joined into one text."""

    statement: int
    contexts: tuple[int, ...]


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
        """What to ask about the statements of one answer, of which there is at least one."""
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
        open_questions = {number: self.question(statements) for number, statements in enumerate(stated)}
        known: dict[int, dict[Pair, Finding]] = {}
        done: dict[int, Measurement] = {}
        notes: list[Any] = []
        while open_questions:
            wanted: dict[int, list[Pair]] = {}
            for number, question in [*open_questions.items()]:
                try:
                    pairs = question.send(known[number]) if number in known else next(question)
                    told = known.setdefault(number, {})
                    wanted[number] = [pair for pair in dict.fromkeys(pairs) if pair not in told]
                except StopIteration as end:
                    done[number] = end.value
                    del open_questions[number]
            flat = [(number, pair) for number, pairs in wanted.items() for pair in pairs]
            asked = [_ask_about(samples[number], stated[number], pair) for number, pair in flat]
            findings = self._assess(asked, notes) if asked else []
            by_pair = dict(zip(flat, findings, strict=True))
            for number, pairs in wanted.items():
                found = {pair: by_pair[number, pair] for pair in pairs}
                if (failure := _find_failure(found)) is not None:
                    done[number] = failure
                    del open_questions[number]
                known[number].update((pair, one) for pair, one in found.items() if isinstance(one, Finding))
        return Measured([done[number] for number in range(len(samples))], tuple(notes))

    def _assess(self, samples: Sequence[Sample], notes: list[Any]) -> Sequence[Finding | Failed]:
        assessment = self.judge.assess(STATEMENT_IN_CITED, samples)
        notes += [note for note in assessment.notes if note not in notes]
        return assessment.findings

    def estimate_asking(self, samples: Sequence[Sample]) -> Estimate:
        asked = [
            _ask_about(sample, statements, pair)
            for sample in samples
            for statements in [_list_statements(sample)]
            for pair in dict.fromkeys(self.list_pairs(statements))
        ]
        return super().estimate_asking(asked) if asked else Estimate()


def _list_statements(sample: Sample) -> list[Statement]:
    return list_statements(sample.answer or "", citations_of(sample))


def _ask_about(sample: Sample, statements: Sequence[Statement], pair: Pair) -> Sample:
    """The sample in which the statement is the answer, and what it cites the only context."""
    passage = "\n".join(text for place in pair.contexts for text in (sample.contexts or ())[place : place + 1])
    ids = None if sample.context_ids is None else (", ".join(sample.context_ids[place] for place in pair.contexts),)
    text = statements[pair.statement].text
    return replace(sample, answer=text, contexts=(passage,), context_ids=ids, scores=None, citations=None)


def list_cited(sample: Sample) -> list[Sample]:
    """The samples to ask about: each statement beside each passage that it cites."""
    return [one for pairs in _pair_statements(sample) for one in pairs[1]]


def join_statements(sample: Sample, kept: Sequence[Statement] | None = None) -> str:
    """The text of an answer's statements, without markers; of all of them by default."""
    return "\n".join(one.text for one in (_list_statements(sample) if kept is None else kept))


def _pair_statements(sample: Sample) -> list[tuple[Statement, list[Sample]]]:
    """Each statement with the samples to ask about; none if it cites nothing, or something that is not there."""
    stated, found = _list_statements(sample), []
    for number, one in enumerate(stated):
        places = dict.fromkeys(list_places(one.citations) or ())
        found.append((one, [_ask_about(sample, stated, Pair(number, (place,))) for place in places]))
    return found


def keep_supported(judge: Judge[Any], samples: Sequence[Sample]) -> tuple[list[Sample | Failed], tuple[AnyNote, ...]]:
    """The samples with only those statements in their answers that every passage they cite supports in full.

    A sample fails if the judge fails, or leaves one of its statements undecided.
    """
    paired = [_pair_statements(sample) for sample in samples]
    asked = [one for pairs in paired for _, each in pairs for one in each]
    assessment = judge.assess(STATEMENT_IN_CITED, asked) if asked else Assessment(())
    told = iter(assessment.findings)
    kept: list[Sample | Failed] = []
    for sample, pairs in zip(samples, paired, strict=True):
        found = [(one, [next(told) for _ in each]) for one, each in pairs if each]
        failure = next((failed for _, each in found if (failed := _fail(each)) is not None), None)
        supported = [one for one, each in found if all(isinstance(x, Finding) and weigh(x) == FULL for x in each)]
        kept.append(failure or replace(sample, answer=join_statements(sample, supported), citations=None))
    return kept, tuple(assessment.notes)


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
    met = [judged_metrics.is_met(claim) for claim in finding.claims]
    if not met:
        return FULL if (finding.score or 0.0) >= FULL else 0.0
    return FULL if all(met) else PARTIAL if any(met) else 0.0


def list_places(citations: Sequence[Citation]) -> tuple[int, ...] | None:
    """The contexts that citations name, in order; None if one names none."""
    places = [one.context for one in citations]
    return None if None in places else tuple(place for place in places if place is not None)


def describe_claim(
    statement: Statement, citation: Citation | None, finding: Finding | None, weight: float, reason: str | None = None
) -> dict[str, Any]:
    """A statement and what was found about one of its citations, or about all, as a claim in a value's details."""
    claims = finding.claims if finding is not None else ()
    weak = [one for one in claims if not judged_metrics.is_met(one)]
    shown = next(iter(weak or claims), None)
    places = {one.context for one in statement.citations}
    is_denied = any(one.verdict == "contradicted" for one in weak)
    told = {
        "text": statement.text,
        "verdict": "supported" if weight == FULL else "contradicted" if is_denied else "not_enough_info",
        "score": weight,
        "start": statement.start,
        "end": statement.end,
        "source": (citation or next(iter(statement.citations))).context if citation or len(places) == 1 else None,
        "evidence": None if shown is None else shown.evidence,
        "reason": reason or (shown.reason if shown is not None else finding.reason if finding is not None else None),
        "citation": None if citation is None else citation.document,
        "marker": None if citation is None or citation.marker is None else list(citation.marker),
    }
    return {key: value for key, value in told.items() if value is not None}
