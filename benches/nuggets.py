"""How well judges assign nuggets, compared with people: REALSumm's content units, on which three people voted.

    python benches/nuggets.py [FOLDER] [--answers 400] [--nli MODEL] [--work FOLDER]

FOLDER contains `human/realsumm_scu.jsonl.gz`. Each summary becomes an answer, and the content units of its reference
become nuggets. The script then does what a user does, `rageval-spec run` and `calibrate`, and prints what the judge's
verdict on each nugget is worth (with 95 % intervals that keep the nuggets of an answer together), and how its values
correlate with people's over summaries and systems. `--answers` draws summaries evenly over the file.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from pathlib import Path
from typing import Any

import polars as pl

sys.path.insert(0, str(Path(__file__).resolve().parent))
import labelled_sets as sets
from machine import name_processor


def load(data: Path, answers: int) -> sets.Labelled:
    """Every n-th summary with its units as vital nuggets, and the votes on each."""
    one = sets.Labelled("realsumm_scu", [({"use": "nuggets", "judge": "overlap"}, "present")])
    rows = list(sets.read(data / "human" / "realsumm_scu.jsonl.gz"))
    for row in rows[:: max(1, len(rows) // answers)]:
        units = {" ".join(claim["statement"].split()): claim for claim in row["claims"]}
        query_id = row["id"]
        one.add(query_id, "summaries", row["response"], question="Summarise the article.", nuggets=[*units])
        for number, claim in enumerate(units.values()):
            for worker, vote in enumerate(claim["votes"]):
                one.label(query_id, "summaries", "present", f"w{worker}", int(vote == "p"), claim=number)
    return one


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?", type=Path, default=sets.HERE.parent.parent / "shared" / "data")
    parser.add_argument("--answers", type=int, default=400)
    parser.add_argument("--nli", help="A cross-encoder, by name or folder, to measure `nli` too.")
    parser.add_argument("--work", type=Path)
    options = parser.parse_args()
    print(f"Processor: {name_processor()}")
    one = load(options.folder, options.answers)
    judges: dict[str, dict[str, Any]] = {"overlap": {"use": "overlap"}}
    if options.nli:
        judges["nli"] = {"use": "nli", "model": "nli"}
    with tempfile.TemporaryDirectory() as temporary:
        rows = [measure(one, (options.work or Path(temporary)) / name, name, block, options) for name, block in
                judges.items()]  # fmt: skip
    sets.print_table("Nuggets, and three people's votes on each", COLUMNS, rows)


COLUMNS = (
    "judge",
    "answers",
    "nuggets",
    "AUROC",
    "kappa",
    "precision",
    "recall",
    "summaries: Spearman",
    "systems: Spearman",
)


def measure(
    one: sets.Labelled, folder: Path, name: str, block: dict[str, Any], options: argparse.Namespace
) -> tuple[str, ...]:
    one.metrics = [({"use": "nuggets", "judge": name}, "present")]
    sets.write_spec(one, folder)
    spec = json.loads((folder / "spec.yaml").read_text())
    models = {"nli": {"use": "onnx", "model": options.nli}} if name == "nli" else {}
    (folder / "spec.yaml").write_text(json.dumps(spec | {"judges": {name: block}, "models": models}))
    sets.run(folder, "run", "spec.yaml", "--quiet", "--output", "out", *sets.STORE)
    found = sets.calibrate(one, folder, *one.metrics[0])
    values = pl.read_parquet(folder / "out" / "values.parquet").filter(pl.col("status") == "scored")
    votes = pl.DataFrame(one.labels).group_by("query_id").agg(people=pl.col("value").mean())
    both = values.join(votes, on="query_id").with_columns(system=pl.col("query_id").str.split("/").list.get(1))
    systems = both.group_by("system").agg(pl.col("value", "people").mean())
    decided = [sets.find(found["decisions"], one) for one in ("kappa", "precision", "recall")]
    counts = (name, f"{len(one.questions):,}", f"{found['items']:,}", sets.find(found["discrimination"], "auroc"))
    return (*counts, *decided, correlate(both), correlate(systems))


def correlate(table: pl.DataFrame) -> str:
    return f"{table.select(pl.corr('value', 'people', method='spearman')).item():.3f} (n={table.height})"


if __name__ == "__main__":
    main()
