from collections.abc import Iterator, Sequence
from typing import Literal

from pydantic import Field

from rageval_spec.data.evidence.citations import Statement
from rageval_spec.metrics.shared import cited_statements
from rageval_spec.metrics.shared.cited_statements import FULL, NAMES_NOTHING, Pair, Question, weigh
from rageval_spec.metrics.shared.judged_metrics import JudgeMetricNode
from rageval_spec.plugin import Measurement, MetricInfo

_IRRELEVANT = "it supports nothing by itself, and the other citations support the statement without it"


class CitationPrecisionNode(JudgeMetricNode):
    most: int = Field(default=3, ge=1, description="How many citations of a statement count, the first ones.")
    invalid: Literal["skip", "count"] = Field(
        default="skip",
        description="What becomes of statements with a citation that names no context. skip: none of their citations "
        "counts, as in ALCE's code; count: all count as wrong.",
    )


class CitationPrecision(cited_statements.CitedMetric[CitationPrecisionNode]):
    known_as = ("citation_prec", "alce_precision")
    info = MetricInfo(
        summary="The share of an answer's citations that are needed or enough to support their statement, as in ALCE.",
        formula="citation_precision = right citations / citations; right: all that the statement cites supports it "
        "when joined, and the passage supports it alone, or the others do not support it without the passage",
        edge_cases=(
            "support in part: not supported",
            "statement with a citation that names no context: none of its citations counts, so an invented id does not "
            "lower ALCE's precision; `invalid: count` counts them as wrong, and citation_validity shows them",
            "no citation that counts: no value (ALCE's code gives 0)",
            "statement that cites one document twice: each counts",
            "judge: asked once for each statement, and about single passages only where several support it together",
        ),
        source="Gao, Yen, Yu and Chen, Enabling large language models to generate text with citations, EMNLP 2023 "
        "(arXiv:2305.14627); eval.py of princeton-nlp/ALCE, compute_autoais",
    )

    def question(self, statements: Sequence[Statement]) -> Question:
        places = self._list_places(statements)
        found = yield [Pair(number, of) for number, of in places.items()]
        several = {n: of for n, of in places.items() if len(of) > 1 and weigh(found[Pair(n, of)]) == FULL}
        cited = [(number, at, one) for number, of in several.items() for at, one in enumerate(of)]
        found = yield [Pair(number, (one,)) for number, _, one in cited]
        weak = {(number, at) for number, at, one in cited if weigh(found[Pair(number, (one,))]) < FULL}
        found = yield [_leave_out(number, several[number], at) for number, at in sorted(weak)]
        claims = []
        for number, of in places.items():
            whole, stated = found[Pair(number, of)], statements[number]
            for at, one in enumerate(of):
                is_needless = (number, at) in weak and weigh(found[_leave_out(number, of, at)]) == FULL
                weight = FULL if weigh(whole) == FULL and not is_needless else 0.0
                finding, reason = found.get(Pair(number, (one,)), whole), _IRRELEVANT if is_needless else None
                claims.append(cited_statements.describe_claim(stated, stated.citations[at], finding, weight, reason))
        invalid = [one for number, one in enumerate(statements) if number not in places]
        for stated in invalid if self.node.invalid == "count" else ():
            known = stated.citations[: self.node.most]
            claims += [cited_statements.describe_claim(stated, one, None, 0.0, NAMES_NOTHING) for one in known]
        if not claims:
            cited_any = any(one.citations for one in statements)
            reason = "no statement cites only contexts of the answer" if cited_any else cited_statements.CITES_NOTHING
            return Measurement.unscorable(reason)
        right = sum(claim["score"] == FULL for claim in claims)
        return Measurement.scored(right / len(claims), details={"claims": claims})

    def list_pairs(self, statements: Sequence[Statement]) -> Iterator[Pair]:
        for number, of in self._list_places(statements).items():
            yield Pair(number, of)
            if len(of) > 1:
                yield from (Pair(number, (one,)) for one in of)
                yield from (_leave_out(number, of, at) for at in range(len(of)))

    def _list_places(self, statements: Sequence[Statement]) -> dict[int, tuple[int, ...]]:
        """The contexts that count for each statement that cites something and nothing unknown."""
        found = {number: cited_statements.list_places(one.citations) for number, one in enumerate(statements)}
        return {number: of[: self.node.most] for number, of in found.items() if of}


def _leave_out(number: int, places: tuple[int, ...], at: int) -> Pair:
    """The pair without one citation. Of equal ones, the first is left out, as in ALCE's code."""
    first = places.index(places[at])
    return Pair(number, places[:first] + places[first + 1 :])


PLUGIN = CitationPrecision
