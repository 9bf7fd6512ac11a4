"""What the code at the end of a diagnostic means, such as `[unknown-key]`; `explain` and the reference show it.

A code has a hyphen, which no word of a spec and no key has. A test gets each code from its example.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from textwrap import fill, indent
from typing import NamedTuple


class Explanation(NamedTuple):
    """What a code means, a part of a spec (or a command, after `$`) that causes it, and what to write instead.

    A line `# FILE: TEXT` of an example says what a file has, with `|` between its lines.
    """

    meaning: str
    example: str
    instead: str


# fmt: off
CODES: Mapping[str, Explanation] = {name: Explanation(*told) for name, told in {
    "ambiguous-value": ("Parsers of YAML 1.1 and 1.2 read this value differently.", "name: 010", 'name: "010"'),
    "broken-plugin": ("A plugin cannot be loaded, or a plugin refuses the settings of its block.",
        "metrics: [{use: tone}]  # of a package whose plugin cannot be imported",
        "metrics: [ndcg@10]  # until the package is repaired"),
    "circular-reference": ("Blocks name one another in a circle.",
        "systems:\n  a: {use: hybrid, systems: [b, c]}\n  b: {use: hybrid, systems: [a, c]}\n  c: {use: bm25}",
        "systems:\n  a: {use: hybrid, systems: [b, c]}\n  b: {use: dense}\n  c: {use: bm25}"),
    "duplicate-key": ("A block has the same key twice.", "systems: {bm25: {use: bm25, k1: 1, k1: 2}}",
        "systems: {bm25: {use: bm25, k1: 2}}"),
    "duplicate-metric": ("Two metrics have the same name.", "metrics: [ndcg@10, {use: ndcg, cutoff: 10}]",
        "metrics: [ndcg@10, {use: ndcg, cutoff: 10, as: again}]"),
    "duplicate-path": ("Two reports write the same file, or a report writes a file of the results.",
        "reports: [{use: csv, path: out.csv}, {use: markdown, path: out.csv}]",
        "reports: [{use: csv, path: out.csv}, {use: markdown, path: out.md}]"),
    "empty-spec": ("The spec, or a section that it needs, has nothing in it.", "datasets: {}",
        "datasets: {golden: {use: golden, path: golden.xlsx}}"),
    "environment-variable": ("A `${VARIABLE}` is not set or not written correctly.",
        "systems: {live: {use: http, url: '${NO_SUCH_URL}'}}",
        "systems: {live: {use: http, url: '${NO_SUCH_URL:-http://localhost:8000}'}}"),
    "former-key": ("A key has another name or place since an earlier release; the old one is still read.",
        "datasets: {d: {use: jsonl, path: data/support/golden.jsonl, fields: {query_id: query_id}}}",
        "datasets: {d: {use: jsonl, path: data/support/golden.jsonl, columns: {query_id: query_id}}}"),
    "idle-stopping": ("`stopping:` cannot save questions here.",
        "systems: {bm25: {use: bm25}}\nstopping: {when: decided}\ngates: [{metric: ndcg@10, min: 0.5}]",
        "gates: [{metric: ndcg@10, min: 0.5}]  # without 'stopping:'"),
    "incompatible-parts": ("Two parts of the spec do not fit together.",
        "systems: {bm25: {use: bm25}}\nmetrics: [token_f1]",
        "systems: {answers: {use: file, path: answers.jsonl}}\nmetrics: [token_f1]"),
    "invalid-argument": ("An argument of the command line has another form than the command reads.",
        "$ rageval-spec validate spec.yaml --set systems.bm25",
        "$ rageval-spec validate spec.yaml --set systems.bm25.k1=1.2"),
    "invalid-name": ("A name has a character that names cannot have, because files are called after them.",
        "systems: {a/b: {use: bm25}}", "systems: {a-b: {use: bm25}}"),
    "invalid-yaml": ("The file is not YAML, or it uses a feature of YAML that specs cannot use, such as a tag.",
        "metrics: [ndcg@10", "metrics: [ndcg@10]"),
    "misplaced-secret": ("A secret stands where reports or stored keys would show it.", "name: '${secret:TOKEN}'",
        "name: '${RELEASE:-today}'"),
    "missing-file": ("There is no such file, or the file cannot be read.",
        "systems: {ours: {use: file, path: runs/none.run}}",
        "systems: {ours: {use: file, path: data/support/runs/keyword.run}}"),
    "missing-key": ("A block lacks a key that it needs.", "systems: {ours: {use: file}}",
        "systems: {ours: {use: file, path: runs/ours.run}}"),
    "missing-part": ("A dataset lacks what a system needs of it, such as the documents.",
        "datasets: {d: {use: jsonl, path: data/support/golden.jsonl}}",
        "datasets: {d: {use: jsonl, path: data/support/golden.jsonl, corpus: corpus.jsonl}}"),
    "more-errors": ("There are more errors than are shown; correct these first.", "gates: [GATES]",
        "gates: [{metric: ndcg@10, min: 0.5}]"),
    "no-range": ("A gate decides by an interval, which needs the lowest and highest value of its metric.",
        "# answers.jsonl: {'query_id': 'q02', 'answer': 'Yes.', 'rating': 4}\n"
        "systems: {answers: {use: file, path: answers.jsonl}}\nmetrics: [{use: column, column: rating}]\n"
        "gates: [{metric: rating, min: 3, on: lower}]", "metrics: [{use: column, column: rating, range: [1, 5]}]"),
    "not-utf8": ("The spec has bytes that are not UTF-8.", "name: LATIN1", "name: café  # saved as UTF-8"),
    "out-of-bounds": ("A value is outside the bounds of its key.", "systems: {bm25: {use: bm25, k1: -1}}",
        "systems: {bm25: {use: bm25, k1: 1.2}}"),
    "plain-credential": ("What looks like a key or a token is written in plain text, where results can show it.",
        "models: {gpt: {use: chat, model: m, headers: {x-api-key: sk-4f9aB2c7D1e8F6a3B5c9d0E2}}}",
        "models: {gpt: {use: chat, model: m, headers: {x-api-key: '${secret:KEY}'}}}"),
    "self-judging": ("A judge asks the model that wrote the answers, and models favour their own.",
        "systems: {live: {use: http, url: 'http://localhost:1', generator: gpt-4o}}\n"
        "models: {gpt: {use: chat, model: gpt-4o, base_url: 'http://localhost:1'}}\n"
        "judges: {strict: {use: claims, model: gpt}}\nmetrics: [{use: faithfulness, judge: strict}]",
        "models: {other: {use: chat, model: mistral-large, base_url: 'http://localhost:1'}}"),
    "shared-model": ("A metric measures with the model by which a system retrieves.",
        "systems: {dense: {use: dense}, answers: {use: file, path: data/support/answers.jsonl}}\n"
        "metrics: [{use: context_relevance, judge: embedding}]", "metrics: [ndcg@10, recall@20]"),
    "too-large": ("The spec is larger or nested more deeply than any spec needs to be.", "name: [[[[DEEP]]]]",
        "name: short"),
    "unclear-columns": ("A file has no column for what is needed, or several that could be meant.",
        "# g.csv: a,b|1,2\ndatasets: {d: {use: golden, path: g.csv}}\n"
        "systems: {answers: {use: file, path: data/support/answers.jsonl}}\nmetrics: [token_f1]",
        "datasets: {d: {use: golden, path: g.csv, columns: {question: a, reference: b}}}"),
    "unknown-baseline": ("A gate's baseline is no system of the spec, and looks much like one.",
        "gates: [{metric: ndcg@10, baseline: bm52, max_drop: 0.02}]",
        "gates: [{metric: ndcg@10, system: assistant, baseline: bm25, max_drop: 0.02}]"),
    "unknown-key": ("A block has a key that it does not know.", "systems: {bm25: {use: bm25, k: 1.2}}",
        "systems: {bm25: {use: bm25, k1: 1.2}}"),
    "unknown-metric": ("There is no metric with this name, or not with these parameters, such as a cutoff. "
        "`rageval-spec list metrics` lists all. Here, `ngcd` should be `ndcg`.", "metrics: [ngcd@10]",
        "metrics: [ndcg@10]"),
    "unknown-name": ("A block names another block that the spec does not have.",
        "gates: [{metric: recall@20, min: 0.5}]",
        "metrics: [ndcg@10, recall@20]\ngates: [{metric: recall@20, min: 0.5}]"),
    "unknown-variable": ("A template has a variable that no dataset has a column for.",
        "systems: {live: {use: http, url: 'http://localhost:1', params: {q: '{{ question }}', t: '{{ topik }}'}}}",
        "systems: {live: {use: http, url: 'http://localhost:1', params: {q: '{{ question }}', t: '{{ topic }}'}}}"),
    "unknown-word": ("The section has no such word for `use:`.", "systems: {ours: {use: bm52}}",
        "systems: {ours: {use: bm25}}"),
    "unreadable-data": ("A file of the dataset, the system or the model cannot be read as what it is.",
        "# broken.jsonl: {'question': \ndatasets: {d: {use: golden, path: broken.jsonl}}\n"
        "systems: {answers: {use: file, path: data/support/answers.jsonl}}",
        "datasets: {d: {use: golden, path: data/support/golden.jsonl}}"),
    "unusable-calibration": ("A calibration was made for another judge, model, prompt or metric.",
        "# c.json: {}\njudges: {o: {use: overlap, calibration: c.json}}\n"
        "systems: {answers: {use: file, path: data/support/answers.jsonl}}\nmetrics: [{use: faithfulness, judge: o}]",
        "judges: {o: {use: overlap}}"),
    "unusable-labels": ("Labels, of people or of a model, cannot be read or do not fit.",
        "# l.csv: a,b|1,2\nlabels: {people: {use: csv, path: l.csv}}\nmetrics: [{use: token_f1, labels: people}]",
        "labels: {people: {use: csv, path: data/support/labels.csv}}"),
    "unusable-path": ("A path cannot be followed, or a model cannot be found.",
        "datasets: {d: {use: golden, path: ~nobody-here/golden.jsonl}}",
        "datasets: {d: {use: golden, path: data/support/golden.jsonl}}"),
    "unusable-prompt": ("A prompt has a fault, such as a variable that it does not know.",
        "models: {m: {use: chat, model: m, base_url: 'http://localhost:1'}}\n"
        "judges: {own: {use: prompt, model: m, template: 'Is {{ anser }} right?', value: yes_no}}\n"
        "systems: {answers: {use: file, path: data/support/answers.jsonl}}\nmetrics: [{use: rubric, judge: own}]",
        "judges: {own: {use: prompt, model: m, template: 'Is {{ answer }} right?', value: yes_no}}"),
    "unused-block": ("No metric or system uses this block.", "judges: {spare: {use: overlap}}",
        "metrics: [{use: faithfulness, judge: overlap}]"),
    "wrong-axis": ("An axis does not give a key of a block several values that can be compared.",
        "axes: {systems.bn25.k1: [0.9, 1.2]}", "axes: {systems.bm25.k1: [0.9, 1.2]}"),
    "wrong-gate": ("The keys of a gate contradict one another, or the gate cannot hold for its metric.",
        "gates: [{metric: ndcg@10, min: 0.8, target: 0.5}]", "gates: [{metric: ndcg@10, min: 0.5, target: 0.8}]"),
    "wrong-history": ("The keys of `history:` do not fit its `use`.",
        "history: {use: sqlite, url: 'postgresql://localhost/x'}",
        "history: {use: postgres, url: 'postgresql://localhost/x'}"),
    "wrong-monitor": ("The block `monitor:` does not fit the rest of the spec.",
        "systems: {live: {use: file, path: data/support/live.jsonl}}\nmetrics: [latency]\nmonitor: {}",
        "systems: {live: {use: file, path: data/support/live.jsonl, follow: true}}\nmetrics: [latency]\nmonitor: {}"),
    "wrong-shard": ("The spec cannot be evaluated in parts.",
        "stopping: {when: decided}\ngates: [{metric: ndcg@10, min: 0.5}]\n$ rageval-spec run spec.yaml --shard 1/2",
        "$ rageval-spec run spec.yaml"),
    "wrong-slice": ("A slice contradicts itself or another slice.",
        "slices: [{name: long, where: {column: question, min: 9, max: 3}}]",
        "slices: [{name: long, where: {column: question, words: {min: 12}}}]"),
    "wrong-type": ("A value is of another type than its key takes.", "systems: [bm25]", "systems: {bm25: {use: bm25}}"),
    "wrong-value": ("A value has the right type, but cannot be used.", "statistics: {seed: .nan}",
        "statistics: {seed: 7}"),
    "wrong-weights": ("Clusters or weights of questions do not fit the data, or a file of weights cannot be read.",
        "# mix.csv: topic,share|billing,many\nweights: mix.csv", "weights: data/support/production.csv"),
}.items()}
# fmt: on


def explain_code(code: str, form: str) -> str:
    """What `explain` prints for a code."""
    if form == "json":
        return json.dumps({"code": code, **CODES[code]._asdict()}, indent=2, ensure_ascii=False) + "\n"
    meaning, example, instead = CODES[code]
    return f"{fill(f'{code}: {meaning}', 100)}\n\nExample\n{indent(example, '  ')}\n\nWrite\n{indent(instead, '  ')}\n"
