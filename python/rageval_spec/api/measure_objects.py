"""Translates the measures that callers pass: names, and measure objects of ir_measures.

An object is translated by its name and parameters, not by its text, because the two libraries use some words
differently: `Accuracy` is another measure there, and `RBP` without `rel` has graded gains.
"""

from __future__ import annotations

from typing import Any

from rageval_spec.errors import UsageError

_WORDS = {
    "AP": "map",
    "Bpref": "bpref",
    "ERR": "err",
    "IPrec": "iprec",
    "Judged": "judged",
    "NumQ": "num_q",
    "NumRel": "num_rel",
    "NumRet": "num_ret",
    "P": "precision",
    "R": "recall",
    "RBP": "rbp",
    "RR": "rr",
    "Rprec": "rprec",
    "SetAP": "set_map",
    "SetF": "set_f",
    "SetP": "set_precision",
    "SetR": "set_recall",
    "Success": "success",
    "infAP": "infap",
    "nDCG": "ndcg",
}


def measure_name(measure: object) -> str:
    """Return the name of a measure in results: the caller's text, or the text of an ir_measures object.

    Raises:
        UsageError: the measure is an object of another kind.
    """
    if isinstance(measure, str):
        return measure
    if is_object(measure):
        return str(measure)
    raise UsageError(f"measure {measure!r} is of type {type(measure).__name__}; write a name like 'ndcg@10'")


def measure_text(measure: object) -> str:
    """Return the name of a measure for the kernel.

    Raises:
        UsageError: the measure is an object of another kind, or the kernel does not compute it.
    """
    return measure if isinstance(measure, str) else _translate(measure, measure_name(measure))


def is_object(measure: object) -> bool:
    """Whether `measure` is an object of ir_measures, which need not be installed."""
    return any(kind.__module__ == "ir_measures.measures.base" for kind in type(measure).__mro__[:-1])


def _translate(measure: Any, name: str) -> str:
    given = {
        key: measure[key] for key in measure.SUPPORTED_PARAMS if isinstance(measure[key], str | int | float | dict)
    }
    word, parameters = _WORDS.get(measure.NAME), {key: given[key] for key in ("rel", "judged_only") if key in given}
    if word is None or "gains" in given or (word == "rbp" and "rel" not in given):
        raise UsageError(f"rageval-spec does not compute the ir_measures measure '{name}'{_advice(word)}")
    if word == "ndcg" and given["dcg"] == "exp-log2":
        parameters["gain"] = "exp"
    elif word == "set_precision" and given["relative"]:
        word = "set_relative_precision"
    elif word == "num_ret" and "rel" in parameters:
        word = "num_rel_ret"
    elif word in ("rbp", "set_f"):
        own = "p" if word == "rbp" else "beta"
        parameters[own] = given[own]
    at = given.get(measure.AT_PARAM)
    texts = [f"{key}={_as_text(value)}" for key, value in parameters.items() if value is not False]
    return word + (f"({', '.join(texts)})" if texts else "") + ("" if at is None else f"@{at}")


def _as_text(value: object) -> str:
    return "true" if value is True else str(value)


def _advice(word: str | None) -> str:
    if word == "ndcg":
        return ": gains can only be linear or exponential; map the relevance values of the qrels instead"
    return "; name the lowest relevance that counts as relevant: RBP(rel=1)" if word == "rbp" else ""
