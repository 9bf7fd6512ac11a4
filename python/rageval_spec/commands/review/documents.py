"""`review qrels`: writes pairs of a query and a document for people to grade as a page."""

from __future__ import annotations

from pathlib import Path

from rageval_spec.commands.generate import narrowed_spec
from rageval_spec.commands.review.forms import write_page
from rageval_spec.dataclass import replace
from rageval_spec.errors import DataError
from rageval_spec.libraries import pl
from rageval_spec.progress import ProgressDisplay
from rageval_spec.review.document_grades import build_document_sheet, draw_pairs, pool_pairs
from rageval_spec.wording import count_noun


def write_document_page(
    spec: Path, output: Path, annotator: str, count: int, dataset: str | None, systems: tuple[str, ...], depth: int,
    qrels: Path | None, scale: str, seed: int, overrides: tuple[str, ...], *, force: bool,
) -> bytes:  # fmt: skip
    """Draw pairs from what systems find and from what is judged, and write the page on which people grade them.

    Raises DataError: a document has no text, or there is no pair.
    """
    from rageval_spec import kernels
    from rageval_spec.data.tables import document_texts
    from rageval_spec.pipeline.planning.question_selection import has_judgements, judged_queries
    from rageval_spec.spec import load

    whole = load(spec, overrides=overrides)
    named = narrowed_spec.choose(whole, "datasets", dataset, "--dataset")
    pooled = [narrowed_spec.choose(whole, "systems", one, "--system") for one in systems] or [*whole.systems]
    narrowed = narrowed_spec.narrow(whole, {named: whole.datasets[named]}, pooled, {}, {})
    with ProgressDisplay() as display, narrowed_spec.open_parts(narrowed, display, None, no_store=False) as parts:
        collection = parts.datasets[named].open()
        if qrels is not None:
            collection = replace(collection, load_qrels=lambda: kernels.read_qrels(qrels))
        if has_judgements(collection):  # rankings of other queries have no value
            collection = judged_queries(collection)
        ranked = narrowed_spec.rank_documents(narrowed, parts, collection, depth)
        queries = collection.require("queries", "review qrels")
        pool = pool_pairs(ranked.values(), collection.qrels, depth)
        pool = pool.join(queries.select("query_id"), on="query_id", how="semi")
        documents = collection.find_documents(pool["doc_id"], "review qrels")
    texts = dict(zip(documents["doc_id"], document_texts(documents), strict=True))
    readable = pool.filter(pl.col("doc_id").is_in([doc_id for doc_id, text in texts.items() if text]))
    if pool.height and not readable.height:
        raise DataError(f"no document of the pool is in the corpus of '{named}' with a text; compare the ids")
    pairs = draw_pairs(readable, count, seed)
    asked = dict(queries.select("query_id", "text").iter_rows())
    sheet = build_document_sheet(named, pairs, texts, asked, scale, annotator)
    told = write_page(sheet, output, force=force, then="review import SAVED.json -o people.csv")
    of_queries = count_noun(readable["query_id"].n_unique(), "query", "queries")
    lines = f"drew {pairs.height:,} of {count_noun(readable.height, 'pair')} of {of_queries}\n"
    if left_out := pool.height - readable.height:
        lines += f"! {count_noun(left_out, 'pair')} left out: the corpus has no text of the document\n"
    return lines.encode() + told
