"""The text of a first spec, with a comment on everything that a reader may want to change."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rageval_spec.commands.first_spec.inspection import Findings
from rageval_spec.commands.first_spec.metrics import JUDGED, LACKS, NAMES, OFFERS, Offer
from rageval_spec.wording import count_noun

PLACEHOLDER = "answer.py"
_RETRIEVERS = """\
  bm25:
    use: bm25             # built-in keyword search over the dataset's documents: a baseline to beat
  # dense: {use: dense, model: minilm}                     # vectors of a small model; install rageval-spec[minilm]
  # hybrid: {use: hybrid, systems: [bm25, dense]}
  # live: {use: http, url: "${SEARCH_URL}", retrieves: "$.hits[*].id"}      # your own retriever
"""
_ANSWERING = """\
  # live: {use: http, url: "${RAG_URL}", answer: $.answer, contexts: "$.sources[*].text"}      # your service
"""
_MODEL = """\
# A language model judges better than shared words. Remove the number signs, and name the model:
# models:
#   gpt: {use: chat, model: gpt-4o-mini, api_key: "${secret:OPENAI_API_KEY}"}
# judges:
#   strict: {use: claims, model: gpt}
"""


def write_text(findings: Findings, name: str, spec: str, tool: str | None) -> str:
    """The YAML of a spec.

    Args:
        findings: what the files hold.
        name: the name of the evaluation.
        spec: the file's name.
        tool: where the files come from: a key of `NAMES`, "beir" or None.
    """
    has = {*findings.has, *_derive(findings)}
    active = [offer for offer in OFFERS if offer.needs <= has]
    others = [] if is_retrieval(findings) else [offer for offer in OFFERS if not offer.needs <= has]
    judged = [] if findings.system is None else [offer for offer in JUDGED if offer.needs <= has]
    parts = (
        _write_head(name, spec, tool),
        _write_dataset(findings),
        _write_systems(findings),
        _MODEL if judged else "",
        _write_metrics(active, others, judged, has),
        _write_slices(findings.slices),
        _write_gates(active),
        "reports: [terminal, json, html]\n",
    )
    return "\n".join(part for part in parts if part)


def is_retrieval(findings: Findings) -> bool:
    """Whether the files are a collection of documents, queries and judgements, which built-in systems can search."""
    return {"corpus", "relevant"} <= findings.has and "reference" not in findings.has and findings.system is None


def _derive(findings: Findings) -> Iterator[str]:
    """What systems of the spec add to the parts of the files."""
    if "context_ids" in findings.has or is_retrieval(findings):
        yield "ranking"
    if not is_retrieval(findings):
        yield "system"
        if findings.system is None:
            yield "answer"
            yield "seconds"


def _write_head(name: str, spec: str, tool: str | None) -> str:
    import yaml

    told = [
        "# yaml-language-server: $schema=spec.schema.json",
        f"# Run it with `rageval-spec run {spec}`. It needs no model and no network.",
        "# Paths are relative to this file. ${VAR} anywhere is replaced from the environment.",
    ]
    names = NAMES.get(tool or "", {})
    told += [f"# What {tool} calls its metrics, and what they are called here:"] if names else []
    told += [f"#   {theirs:<26} {ours}" for theirs, ours in names.items()]
    dumped = yaml.safe_dump({"name": name}, allow_unicode=True, width=10**6)
    return "\n".join((*told, "", "version: 1", dumped))


def _write_dataset(findings: Findings) -> str:
    count = count_noun(findings.questions, "question")
    comment = f"# {count}. Columns that are not recognised are named here: columns: {{text: Frage, reference: Antwort}}"
    if is_retrieval(findings):
        comment = f"# The documents, {findings.questions:,} queries, and which documents answer them."
    return f"{comment}\ndatasets:\n  golden:\n{_indent(findings.dataset)}"


def _write_systems(findings: Findings) -> str:
    if is_retrieval(findings):
        return f"# What to evaluate. Each system is compared with the first.\nsystems:\n{_RETRIEVERS}"
    if findings.system is not None:
        comment, block = "The answers in the file. Each further system is compared with the first.", findings.system
    else:
        comment = f"The function in {PLACEHOLDER}, which is a placeholder: call your system there."
        block = {"use": "python", "function": f"{PLACEHOLDER.removesuffix('.py')}:answer"}
    return f"# {comment}\nsystems:\n  current:\n{_indent(block)}{_ANSWERING}"


def _write_metrics(active: Sequence[Offer], others: Sequence[Offer], judged: Sequence[Offer], has: set[str]) -> str:
    width = max(len(offer.line) for offer in (*active, *others, *judged)) + 4
    lines = [f"  - {offer.line:<{width}}# {offer.meaning}" for offer in active]
    if judged:
        lines.append("  # with a language model as judge:")
        lines += [f"  # - {offer.line:<{width - 2}}# {offer.meaning}" for offer in judged]
    lines += [f"  # - {offer.line:<{width - 2}}# needs {_name_lack(offer, has)}" for offer in others]
    return "\n".join(("# `rageval-spec metrics` lists all of them.", "metrics:", *lines, ""))


def _name_lack(offer: Offer, has: set[str]) -> str:
    return " and ".join(LACKS[part] for part in sorted(offer.needs - has))


def _write_slices(slices: Sequence[str]) -> str:
    if not slices:
        return ""
    import yaml

    names = yaml.safe_dump(list(slices), default_flow_style=True, allow_unicode=True, width=10**6).strip()
    return f"# Each value of these columns gets numbers of its own.\nslices: {names}\n"


def _write_gates(active: Sequence[Offer]) -> str:
    names = [offer.line for offer in active if not offer.line.startswith("{")]
    metric = names[0] if names else "error_rate"
    bound = "max: 0.05" if metric in ("error_rate", "cost") or metric.startswith("latency") else "min: 0.5"
    return (
        "# Bounds that an evaluation must clear, for a pipeline: exit code 1 if one fails.\n"
        f"# gates:\n#   - {{metric: {metric}, {bound}}}\n"
    )


def _indent(block: Mapping[str, Any]) -> str:
    import yaml

    lines = []
    for key, value in block.items():
        is_flow = isinstance(value, dict)
        text = yaml.safe_dump(
            {key: value}, default_flow_style=None if is_flow else False, allow_unicode=True, width=10**6
        )
        lines += [f"    {line}\n" for line in text.strip().splitlines()]
    return "".join(lines)
