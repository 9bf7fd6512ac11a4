"""Compare the speed, memory and agreement of verifiers and encoders: rageval-spec, and transformers on torch.

All run the same random weights of real sizes on the same token ids, so nothing is downloaded and tokenizers, whose
time is small beside a model's, stay out of the comparison.

    python benches/verifying.py FOLDER --peers PEERS/bin/python [--only NAME] [--tokens 256 512] [--rounds 3] [--table]

FOLDER receives the weights (removed again after each model, unless `--keep`) and `results.json`. `--peers` is a Python
interpreter with torch and transformers. Each model is written by transformers, so files and names are those of
published models. Six features of each normalisation have ten times the scale of the others, like the outlier features
of trained transformers, queries and keys are wide enough for attention to choose, and classifiers' heads are scaled so
that probabilities differ from text to text.

Contenders take turns in fresh processes with the same number of threads, so that load from other programs affects all
of them. Loading is not timed. transformers runs with its default attention, under `torch.inference_mode`, with the
fastest of several batch sizes on texts of equal length, so that it pads nothing either. The table shows medians over
rounds; the ratio is the median of the rounds' ratios. Memory is each process's peak resident set, mapped files
included. `--table` only prints the results so far.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from onnx_from_checkpoints.configuration import Configuration

Tokens = NDArray[np.int64]
Values = NDArray[np.float32]

BATCH_SIZES = (1, 4)
OURS = {"float32": "fp32", "int8": "int8"}
"""Our contenders and their precisions."""
PEER = "transformers"
OUTLIERS, OUTLIER_SCALE, ATTENTION_SCALE, LOGIT_SPREAD = 6, 10.0, 2.0, 2.0
_ATTENDING = re.compile(r"(query|key|query_proj|key_proj|\.q|\.k|q_proj|k_proj|Wqkv|qkv)\.weight$")
AGREEMENT = [(length, 8) for length in (16, 33, 64, 96, 128)]
"""Lengths and numbers of the texts whose outputs are compared."""


class Model(NamedTuple):
    """An architecture at a real size.

    Attributes:
        config: the name of the configuration class in transformers, and its arguments.
        head: the name of the model class in transformers.
        output: how logits or vectors are read from its answer; see `read_answer`.
        start: the first id that is given to texts; smaller ids are special tokens.
    """

    config: tuple[str, dict[str, Any]]
    head: str
    output: str = "logits"
    start: int = 1000

    @property
    def large(self) -> bool:
        """Whether it has twice the layers of a base model."""
        return any(self.config[1].get(key, 0) >= 24 for key in ("num_hidden_layers", "num_layers"))


LARGE = {"hidden_size": 1024, "num_hidden_layers": 24, "num_attention_heads": 16, "intermediate_size": 4096}
_ROBERTA = {"max_position_embeddings": 514, "type_vocab_size": 1, "layer_norm_eps": 1e-5, "num_labels": 3}
_ROBERTA |= {"pad_token_id": 1, "bos_token_id": 0, "eos_token_id": 2}
_ROBERTA_WORDS, _XLM_WORDS = {**_ROBERTA, "vocab_size": 50265}, {**_ROBERTA, "vocab_size": 250002}
_DEBERTA = {
    "vocab_size": 128100, "hidden_size": 768, "num_hidden_layers": 12, "num_attention_heads": 12,
    "intermediate_size": 3072, "relative_attention": True, "position_buckets": 256, "norm_rel_ebd": "layer_norm",
    "share_att_key": True, "pos_att_type": ["p2c", "c2p"], "max_relative_positions": -1, "type_vocab_size": 0,
    "position_biased_input": False, "layer_norm_eps": 1e-7, "num_labels": 3,
}  # fmt: skip
_MODERN_LARGE = {
    "hidden_size": 1024, "num_hidden_layers": 28, "num_attention_heads": 16, "intermediate_size": 2624
}  # fmt: skip
_T5 = {
    "vocab_size": 32128, "d_model": 768, "d_ff": 2048, "num_layers": 12, "num_heads": 12,
    "feed_forward_proj": "gated-gelu", "tie_word_embeddings": False, "decoder_start_token_id": 0, "num_labels": 2,
}  # fmt: skip
_T5_LARGE = {**_T5, "d_model": 1024, "d_ff": 2816, "num_layers": 24, "num_heads": 16}

MODELS = {
    "bert-base": Model(("BertConfig", {"num_labels": 3}), "BertForSequenceClassification"),
    "bert-large": Model(("BertConfig", {**LARGE, "num_labels": 3}), "BertForSequenceClassification"),
    "roberta-base": Model(("RobertaConfig", _ROBERTA_WORDS), "RobertaForSequenceClassification"),
    "roberta-large": Model(("RobertaConfig", {**_ROBERTA_WORDS, **LARGE}), "RobertaForSequenceClassification"),
    "xlm-roberta-base": Model(("XLMRobertaConfig", _XLM_WORDS), "XLMRobertaForSequenceClassification"),
    "xlm-roberta-large": Model(("XLMRobertaConfig", {**_XLM_WORDS, **LARGE}), "XLMRobertaForSequenceClassification"),
    "electra-base": Model(
        ("ElectraConfig", {"embedding_size": 768, "hidden_size": 768, "num_attention_heads": 12,
                           "intermediate_size": 3072, "num_labels": 3}), "ElectraForSequenceClassification"),
    "electra-large": Model(
        ("ElectraConfig", {**LARGE, "embedding_size": 1024, "num_labels": 3}), "ElectraForSequenceClassification"),
    "deberta-v3-base": Model(("DebertaV2Config", _DEBERTA), "DebertaV2ForSequenceClassification"),
    "deberta-v3-large": Model(("DebertaV2Config", {**_DEBERTA, **LARGE}), "DebertaV2ForSequenceClassification"),
    "modernbert-base": Model(("ModernBertConfig", {"num_labels": 2}), "ModernBertForTokenClassification", "tokens"),
    "modernbert-large": Model(
        ("ModernBertConfig", {**_MODERN_LARGE, "num_labels": 2}), "ModernBertForTokenClassification", "tokens"),
    "nomic-bert": Model(("NomicBertConfig", {}), "NomicBertModel", "vectors"),
    "e5-base": Model(("XLMRobertaConfig", _XLM_WORDS), "XLMRobertaModel", "vectors"),
    "hhem-t5-base": Model(("T5Config", _T5), "T5ForTokenClassification", "first"),
    "flan-t5-base": Model(("T5Config", _T5), "T5ForConditionalGeneration", "step"),
    "flan-t5-large": Model(("T5Config", _T5_LARGE), "T5ForConditionalGeneration", "step"),
}  # fmt: skip
"""The sizes are those of the published models, vocabularies included."""
ZERO, ONE = 3, 209
"""The ids of "0" and "1" in T5's vocabulary, whose logits are a MiniCheck's answer."""


def make_texts(name: str, tokens: int, count: int) -> Tokens:
    """Random token ids [texts, tokens]; the first is the same in all, as a model's first special token."""
    model = MODELS[name]
    ids = np.random.default_rng(tokens).integers(model.start, 30000, (count, tokens))
    ids[:, 0], ids[:, -1] = (ids[0, 0], 1) if model.config[0] == "T5Config" else (model.start - 1, model.start - 2)
    return ids


def write_model(name: str, folder: Path) -> None:
    """Draw the weights and save the model as transformers does."""
    import torch
    import transformers

    torch.manual_seed(0)
    kind, arguments = MODELS[name].config
    loaded = getattr(transformers, MODELS[name].head)(getattr(transformers, kind)(**arguments)).eval()
    with torch.inference_mode():
        for key, values in loaded.named_parameters():
            if values.ndim == 1 and "norm" in key.lower() and key.endswith("weight"):
                values[torch.randperm(len(values))[:OUTLIERS]] *= OUTLIER_SCALE
            elif _ATTENDING.search(key):
                values *= ATTENTION_SCALE
        if MODELS[name].output != "vectors":
            _spread_logits(name, loaded)
    loaded.save_pretrained(folder)
    if name.startswith("hhem"):
        _rename_as_hhem(folder)
    if MODELS[name].output == "step":
        write_digits(folder)


def _spread_logits(name: str, loaded: Any) -> None:
    """Scale the last layer so that the logits of different texts differ, as a trained classifier's do."""
    texts = make_texts(name, 64, 32)
    last = next(getattr(loaded, key) for key in ("lm_head", "classifier", "score") if hasattr(loaded, key))
    last = getattr(last, "out_proj", last)
    answers = read_answer(name, loaded, texts)
    answers = answers.reshape(-1, answers.shape[-1])
    last.weight *= LOGIT_SPREAD / float(answers.std(axis=0).mean())
    if last.bias is not None:
        answers = read_answer(name, loaded, texts)
        mean = answers.reshape(-1, answers.shape[-1]).mean(axis=0)
        last.bias -= last.bias.new_tensor(mean.tolist())


def _rename_as_hhem(folder: Path) -> None:
    """Give the tensors and the configuration the names of HHEM-2.1-Open's files."""
    from safetensors.torch import load_file, save_file

    path = folder / "model.safetensors"
    tensors = {f"t5.{key}": values.clone() for key, values in load_file(path).items()}
    save_file(tensors, path, {"format": "pt"})
    config = json.loads((folder / "config.json").read_text())
    config |= {"model_type": "HHEMv2Config", "architectures": ["HHEMv2ForSequenceClassification"]}
    (folder / "config.json").write_text(json.dumps(config | {"foundation": "google/flan-t5-base"}))


def read_answer(name: str, loaded: Any, texts: Tokens) -> Values:
    """Run transformers: logits [texts, labels], logits of tokens [texts, tokens, labels] or vectors [texts, hidden]."""
    import torch

    ids = torch.from_numpy(texts)
    inputs = {"input_ids": ids, "attention_mask": torch.ones_like(ids)}
    output = MODELS[name].output
    if output == "step":
        inputs["decoder_input_ids"] = torch.zeros(len(texts), 1, dtype=torch.int64)
        return np.asarray(loaded(**inputs).logits[:, 0, [ZERO, ONE]])
    found = loaded(**inputs)
    if output == "vectors":
        return np.asarray(found.last_hidden_state.mean(1))
    return np.asarray(found.logits[:, 0] if output == "first" else found.logits)


def open_peer(name: str, folder: Path, threads: int) -> Callable[[Tokens], Values]:
    """transformers, as a function of token ids of equal length."""
    import torch
    import transformers

    torch.set_num_threads(threads)
    transformers.utils.logging.disable_progress_bar()
    if name.startswith("hhem"):
        loaded = _load_hhem(name, folder)
    else:
        loaded = getattr(transformers, MODELS[name].head).from_pretrained(folder)
    loaded.eval()

    def run(texts: Tokens) -> Values:
        with torch.inference_mode():
            return read_answer(name, loaded, texts)

    return run


def _load_hhem(name: str, folder: Path) -> Any:
    """As HHEM's own code: an outer model around transformers' T5ForTokenClassification."""
    import torch
    import transformers
    from safetensors.torch import load_file

    kind, arguments = MODELS[name].config
    with torch.device("meta"):
        loaded = getattr(transformers, MODELS[name].head)(getattr(transformers, kind)(**arguments))
    weights = {key.removeprefix("t5."): values for key, values in load_file(folder / "model.safetensors").items()}
    loaded.load_state_dict(weights, assign=True, strict=False)
    loaded.tie_weights()
    return loaded


def open_ours(folder: Path, precision: Any, threads: int) -> Callable[[Tokens], Values]:
    """rageval-spec, as a function of token ids."""
    from rageval_spec.inference.session import Session

    configuration = read_made(folder)
    session = Session(make_graph(folder, precision), configuration.pooling, task=configuration.task, threads=threads)

    def run(texts: Tokens) -> Values:
        parts = sorted(((int(place), values) for places, found in session.run(list(texts))
                        for place, values in zip(places, found, strict=True)), key=lambda part: part[0])  # fmt: skip
        return np.stack([values for _, values in parts])

    return run


def make_graph(folder: Path, precision: Any) -> Path:
    """The model's graph, from the cache if it is there."""
    from rageval_spec.inference.exports import provide_graph
    from rageval_spec.inference.model_files import Location, ModelFiles

    files = sorted(path.name for path in folder.glob("*.safetensors"))
    tokenizer = tuple(path.name for path in folder.glob("tokenizer.json"))
    place = Location("folder", folder.name, folder)
    source = ModelFiles("safetensors", tuple(files), tokenizer, ("config.json",), location=place, folder=folder)
    return provide_graph(source, read_made(folder), precision, lambda file: str(file.path))


def read_made(folder: Path) -> Configuration:
    """The configuration of a model that was written here, and the replies that it is asked for."""
    from onnx_from_checkpoints.configuration import read_configuration

    found = read_configuration(folder)
    if not (folder / "tokenizer.json").is_file():
        return found
    replies = {"unsupported": "0", "supported": "1"}
    return replace(found, task="classification", labels=tuple(replies), replies=replies)


def write_digits(folder: Path) -> None:
    """A tokenizer that knows only the two replies of a MiniCheck."""
    from tokenizers import Tokenizer, models

    words = {"<pad>": 0, "</s>": 1, "<unk>": 2, "0": ZERO, "1": ONE}
    tokenizer = Tokenizer(models.WordLevel(words, unk_token="<unk>"))
    tokenizer.add_special_tokens(["<pad>", "</s>", "<unk>"])
    tokenizer.save(str(folder / "tokenizer.json"))


def count_megabytes() -> float:
    """The process's highest resident memory so far."""
    found = re.search(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text())
    return int(found[1]) / 1024 if found else 0.0


def work(options: argparse.Namespace) -> dict[str, Any]:
    """What one process does: write a model, make a graph, or load and run it."""
    name, folder = options.only[0], options.folder / options.only[0]
    if options.work == "write":
        write_model(name, folder)
        return {}
    started = time.perf_counter()
    if options.work.startswith("make:"):
        make_graph(folder, OURS[options.work.partition(":")[2]])
        return {"seconds": time.perf_counter() - started, "megabytes": count_megabytes()}
    peer = options.work == PEER
    run = open_peer(name, folder, options.threads) if peer else open_ours(folder, OURS[options.work], options.threads)
    found: dict[str, Any] = {"loaded": count_megabytes(), "seconds": {}}
    texts = make_texts(name, options.tokens[0], options.texts)
    run(texts[:1])
    for size in options.batches if peer else [len(texts)]:
        started = time.perf_counter()
        for start in range(0, len(texts), size):
            run(texts[start : start + size])
        found["seconds"][str(size)] = (time.perf_counter() - started) / len(texts)
    found["megabytes"] = count_megabytes()
    if options.answers:
        answers = [run(make_texts(name, length, count)) for length, count in AGREEMENT]
        np.savez(options.answers, *[values.reshape(-1, values.shape[-1]) for values in answers])
    return found


class Race:
    """Lets the contenders take turns on one model."""

    def __init__(self, options: argparse.Namespace, name: str) -> None:
        self._options = options
        self._name = name
        self._folder = options.folder / name
        self._texts = options.texts or (4 if MODELS[name].large else 8)

    def start(self, task: str, tokens: int = 0, batches: tuple[int, ...] = BATCH_SIZES, answers: str = "") -> Any:
        """Run one task in a process of its own and return what it reports."""
        peer = task in (PEER, "write")
        words = [self._options.peers if peer else sys.executable, __file__, self._options.folder, "--only", self._name]
        words += ["--work", task, "--threads", self._options.threads, "--texts", self._texts, "--tokens", tokens]
        words += ["--batches", *batches, "--answers", answers]
        limits = {"OMP_NUM_THREADS": str(self._options.threads), "RAGEVAL_CACHE": str(self._options.folder / "cache")}
        done = subprocess.run(
            list(map(str, words)), env={**os.environ, **limits}, capture_output=True, text=True, check=False
        )
        if done.returncode:
            raise RuntimeError(f"{self._name}, {task}: {done.stderr[-2000:]}")
        return json.loads(done.stdout.splitlines()[-1])

    def measure(self, lengths: list[int], deadline: float) -> dict[str, Any]:
        """All measurements of the model; rounds end early at the deadline."""
        if not (self._folder / "config.json").is_file():
            self.start("write")
        found: dict[str, Any] = {"made": {name: self.start(f"make:{name}") for name in OURS}, "lengths": {}}
        for tokens in lengths:
            found["lengths"][str(tokens)] = self._take_turns(tokens, deadline)
        found["agreement"] = self._compare()
        return found

    def _take_turns(self, tokens: int, deadline: float) -> list[dict[str, Any]]:
        rounds: list[dict[str, Any]] = []
        batches: tuple[int, ...] = BATCH_SIZES
        while len(rounds) < self._options.rounds and not (rounds and time.monotonic() > deadline):
            one = {}
            for name in (PEER, *OURS):
                wanted = not rounds and tokens == self._options.tokens[0]
                answers = "" if not wanted else str(self._options.folder / f"{self._name}-{name}.npz")
                one[name] = self.start(name, tokens, batches if name == PEER else (1,), answers)
            batches = (int(min(one[PEER]["seconds"], key=one[PEER]["seconds"].get)),)
            rounds.append(one)
            shown = {name: f"{min(found['seconds'].values()):.3f}" for name, found in one.items()}
            print(f"  {self._name}, {tokens} tokens, seconds a text: {shown}", file=sys.stderr, flush=True)
        return rounds

    def _compare(self) -> dict[str, Any]:
        answers = {}
        for name in (PEER, *OURS):
            path = self._options.folder / f"{self._name}-{name}.npz"
            answers[name] = np.concatenate(list(np.load(path).values()))
            path.unlink()
        return {name: compare(answers[name], answers[PEER], MODELS[self._name].output) for name in OURS}


def compare(ours: Values, theirs: Values, output: str) -> dict[str, float]:
    """The largest difference of probabilities (of vectors: of their values), and the share of equal decisions."""
    if output == "vectors":
        cosine = (ours * theirs).sum(1) / np.linalg.norm(ours, axis=1) / np.linalg.norm(theirs, axis=1)
        return {"difference": float(np.abs(ours - theirs).max()), "cosine": float(cosine.min())}
    ours, theirs = (np.exp(logits - logits.max(1, keepdims=True)) for logits in (ours, theirs))
    ours, theirs = (odds / odds.sum(1, keepdims=True) for odds in (ours, theirs))
    return {
        "difference": float(np.abs(ours - theirs).max()),
        "mean": float(np.abs(ours - theirs).mean()),
        "equal": float((ours.argmax(1) == theirs.argmax(1)).mean()),
    }


def describe(results: dict[str, Any]) -> str:
    """The results as a Markdown table."""
    heads = ["model", "tokens", "transformers, texts/s", "float32", "int8", "memory: transformers", "float32", "int8"]
    heads += ["making: transformers loads", "float32", "int8", "difference float32", "int8", "equal decisions"]
    lines = [f"| {' | '.join(heads)} |", f"|---|{'---:|' * (len(heads) - 1)}"]
    for name in (name for name in MODELS if name in results):
        for tokens, rounds in results[name]["lengths"].items():
            lines.append(f"| {' | '.join([name, tokens, *_describe(results[name], rounds)])} |")
    return "\n".join(lines)


def _describe(result: dict[str, Any], rounds: list[dict[str, Any]]) -> list[str]:
    fastest = [{name: min(found["seconds"].values()) for name, found in one.items()} for one in rounds]
    cells = [f"{1 / statistics.median(one[PEER] for one in fastest):.2f}"]
    cells += [f"{statistics.median(one[PEER] / one[name] for one in fastest):.2f}x" for name in OURS]
    cells += [f"{statistics.median(one[name]['megabytes'] for one in rounds):.0f}" for name in (PEER, *OURS)]
    cells += [f"{statistics.median(one[PEER]['loaded'] for one in rounds):.0f}"]
    cells += [f"{made['megabytes']:.0f}" for made in result["made"].values()]
    agreement = result["agreement"]
    cells += [f"{agreement['float32']['difference']:.0e}", f"{agreement['int8']['difference']:.3f}"]
    equal, cosine = (agreement["int8"].get(key) for key in ("equal", "cosine"))
    return [*cells, f"{equal:.1%}" if equal is not None else f"cosine {cosine:.4f}"]


def main() -> None:
    """Read the command line and run the benchmark."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--peers", default=sys.executable)
    parser.add_argument("--only", nargs="*", choices=MODELS, default=list(MODELS))
    parser.add_argument("--tokens", nargs="*", type=int, default=[256, 512])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--texts", type=int, default=0)
    parser.add_argument("--keep", action="store_true")
    parser.add_argument("--table", action="store_true")
    for name in ("work", "answers"):
        parser.add_argument(f"--{name}", default="", help=argparse.SUPPRESS)
    parser.add_argument("--batches", nargs="*", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.work:
        print(json.dumps(work(options)))
        return
    options.folder.mkdir(parents=True, exist_ok=True)
    path = options.folder / "results.json"
    results = json.loads(path.read_text()) if path.is_file() else {}
    deadline = time.monotonic() + 60 * options.minutes
    for name in () if options.table else options.only:
        if time.monotonic() > deadline:
            print(f"no time is left for {name}", file=sys.stderr)
            continue
        try:
            results[name] = Race(options, name).measure(options.tokens, deadline)
            path.write_text(json.dumps(results, indent=1))
        except RuntimeError as error:
            print(error, file=sys.stderr)
        if not options.keep:
            shutil.rmtree(options.folder / name, ignore_errors=True)
        shutil.rmtree(options.folder / "cache", ignore_errors=True)
    print(describe(results))


if __name__ == "__main__":
    main()
