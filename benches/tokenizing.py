"""Compare the tokenizers that rageval-spec builds from vocabularies with those of transformers and SentencePiece.

    python benches/tokenizing.py --trainer A/bin/python --oracle A/bin/python [--oracle B/bin/python] [--texts 5000]
        [--data BEIR_FOLDER ...] [--write FOLDER]

`--trainer` is a Python interpreter with sentencepiece, which trains small models; each `--oracle` is one with
transformers and sentencepiece. For the published figures they were transformers 5.23, and 4.57, which still has the
slow tokenizers. Texts are made from words and Unicode blocks of 30 scripts, hostile strings, and the documents and
queries of the BEIR folders. Each text is read alone, in a pair with the next one, and cut to a few tokens. The output
has, for each model and oracle, how many texts differ, and some of them.

`--write` writes the small models for the tests and what the oracles say about a few hundred of the texts.
"""

from __future__ import annotations

import argparse
import gzip
import json
import random
import shutil
import subprocess
import tempfile
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

MOST = 24
"""The number of tokens that texts are cut to in the part with truncation."""

WORDS = {
    "Latin": "the quick brown fox naïve café Zürich Straße łódź čeština İstanbul ﬁne ﬂow Ⅷ ½ ①",
    "Greek": "γλώσσα καλημέρα κόσμε φιλοσοφία ἀρχή ΟΔΟΣ Άγγελος",
    "Cyrillic": "язык привет мир ёжик Київ българия җырлау ЙОГУРТ",
    "Armenian": "հայերեն բարեւ աշխարհ եւ և Երևան",
    "Hebrew": "שלום עולם עִבְרִית ירושלים תל־אביב",
    "Arabic": "مرحبا بالعالم اللغة العربيّة كتاب ﷺ لا ـــ ٣٤٥",
    "Syriac": "ܠܫܢܐ ܣܘܪܝܝܐ ܫܠܡܐ",
    "Thaana": "ދިވެހި ބަސް ރާއްޖެ",
    "Devanagari": "नमस्ते दुनिया हिन्दी भाषा क़लम ज्ञान ४५",
    "Bengali": "বাংলা ভাষা নমস্কার ড়য় ৫৬",
    "Gurmukhi": "ਪੰਜਾਬੀ ਸਤਿ ਸ੍ਰੀ ਅਕਾਲ",
    "Gujarati": "ગુજરાતી નમસ્તે દુનિયા",
    "Tamil": "தமிழ் வணக்கம் உலகம் கொ",
    "Telugu": "తెలుగు నమస్కారం ప్రపంచం",
    "Kannada": "ಕನ್ನಡ ನಮಸ್ಕಾರ ಪ್ರಪಂಚ",
    "Malayalam": "മലയാളം നമസ്കാരം ലോകം",
    "Sinhala": "සිංහල ආයුබෝවන් ලෝකය",
    "Thai": "สวัสดีชาวโลก ภาษาไทย น้ำ ๑๒๓",
    "Lao": "ສະບາຍດີ ພາສາລາວ",
    "Tibetan": "བོད་སྐད་ བཀྲ་ཤིས་བདེ་ལེགས།",
    "Myanmar": "မြန်မာဘာသာ မင်္ဂလာပါ",
    "Georgian": "ქართული გამარჯობა მსოფლიო ᲥᲐᲠᲗᲣᲚᲘ",
    "Hangul": "안녕하세요 세계 한국어 한글 ㈜ ㄱㄴㄷ",
    "Ethiopic": "ሰላም ዓለም አማርኛ",
    "Cherokee": "ᏣᎳᎩ ᎦᏬᏂᎯᏍᏗ ꮳꮃꭹ",
    "Khmer": "ភាសាខ្មែរ សួស្តី",
    "Mongolian": "ᠮᠣᠩᠭᠣᠯ ᠬᠡᠯᠡ",
    "Hiragana": "こんにちは せかい がぎぐ",
    "Katakana": "カタカナ ﾊﾝｶｸ ガ ㌔ ー",
    "Han": "你好世界 語言 機器學習 豈 𠀋 〇",
    "Symbols": "∑ ∞ ≠ → ℃ ™ € 𝒳 ２０２６ ＡＢＣ 👍 🏽 ♥",
}
"""Words of each script; among them ligatures, compatibility forms, combining marks and digits."""
BLOCKS = ((0x20, 0x24F), (0x250, 0x5FF), (0x600, 0xDFF), (0xE00, 0x1FFF), (0x2000, 0x2BFF), (0x3000, 0x30FF),
          (0x3100, 0x33FF), (0x4E00, 0x9FFF), (0xA000, 0xABFF), (0xAC00, 0xD7A3), (0xF900, 0xFFFD),
          (0x10000, 0x10FFF), (0x1D400, 0x1D7FF), (0x1F300, 0x1FAFF), (0x20000, 0x20FFF))  # fmt: skip
HOSTILE = (
    "", " ", "   ", "\t", "\n", "\r\n", "\u00a0", "\u3000", "\u200b", "\u200d", "\ufeff", "\x00", "a\x00b", "\x07[0m",
    "\u0085", "\u2028\u2029", "\u00ad", "\u2581", "\u2581a", "a\u2581b", "\u2581\u2581", " \u2581 ", "a  b", "a   b",
    " a", "  a", "a ", "a\tb", "a\nb", "a\n\nb", "\na", "a\u00a0b", "a\u3000b", "a\u200bb", "x" * 90, "x" * 101,
    "ab" * 300, "\u4f60" * 120, "e\u0301", "e\u0301\u0302\u0303", "A\u030a", "\u1100\u1161\u11a8", "\u212b", "\ufb01",
    "\u0130", "\u0131", "\u00df", "\u1e9e", "\u03c3\u03c2", "\U0001f469\u200d\U0001f469\u200d\U0001f467",
    "\U0001f44d\U0001f3fd", "\U0001f1e9\U0001f1ea", "1\ufe0f\u20e3", "\u202eabc\u202c", "\ufffd", "\ue000",
    "\U000e0041",
    "\uffff", "\U0010ffff", "[CLS]", "[SEP]", "a [SEP] b", "a[SEP]b", "[MASK]", "a [MASK] b", "[UNK]", "[PAD]", "<s>",
    "</s>", "a </s> b", "a</s>b", "<mask>", "a <mask> b", "<unk>", "<pad>", "<extra_id_0>", "a <extra_id_5> b",
    "<0x41>", "[ SEP ]", "[sep]", "##ing", "'", "don't", "it's \"quoted\"", "a-b-c", "3.14", "1,000,000", "C++",
    "@user",
    "https://example.org/a?b=c&d=%20", "a.b@c.de", "$5", "50%", "...", "\u2026", "---", "\u2014", "()[]{}", "\\n",
    "#", "#version",
    "\u0915\u094d\u0937", "\u0e19\u0e49\u0e33", "ﷺ", "\u05e9\u05b8\u05c1", "ﾊﾟ", "\u30cf\u309a", "<0xF0>", "user_symbol",
    "a user_symbol b",
)  # fmt: skip
SPECIAL = (
    "[CLS]",
    "[SEP]",
    "[MASK]",
    "[UNK]",
    "[PAD]",
    "<s>",
    "</s>",
    "<mask>",
    "<unk>",
    "<pad>",
    "<extra_id_",
    "user_symbol",
)
"""What transformers reads as a token of its own in a text, and SentencePiece does not."""

OLDER = ("deberta-v2", "roberta")
"""Types whose published tokenizer.json files are as transformers 4 reads them, not as version 5 does."""

ORACLE = r"""
import json, sys, warnings, os
warnings.filterwarnings("ignore"); os.environ["HF_HUB_OFFLINE"] = "1"
folder, texts, most, kind = sys.argv[1], json.load(open(sys.argv[2])), int(sys.argv[3]), sys.argv[4]
if kind == "sentencepiece":
    import sentencepiece
    processor = sentencepiece.SentencePieceProcessor(model_file=folder)
    print(json.dumps({"single": [processor.encode(text) for text in texts]})); sys.exit()
import transformers
transformers.utils.logging.set_verbosity(50)
made = transformers.AutoTokenizer.from_pretrained(folder, use_fast=kind != "slow")
def read(*parts, **options):
    found = made(*parts, **options)
    ids = found["input_ids"]
    return [ids, found.get("token_type_ids", [[0] * len(one) for one in ids])]
seconds = texts[1:] + texts[:1]
out = {"version": transformers.__version__, "class": type(made).__name__}
out["single"], _ = read(texts)
out["cut"], _ = read(texts, truncation=True, max_length=most)
if kind != "slow":
    out["pair"], out["types"] = read(texts, seconds)
    out["pair_cut"], _ = read(texts, seconds, truncation="longest_first", max_length=most)
print(json.dumps(out))
"""

TRAINER = r"""
import json, sys, sentencepiece
corpus, target, options = sys.argv[1], sys.argv[2], json.loads(sys.argv[3])
sentencepiece.SentencePieceTrainer.train(input=corpus, model_prefix=target.removesuffix(".model"), minloglevel=2,
    hard_vocab_limit=False, character_coverage=options.pop("coverage", 0.98), num_threads=1, **options)
"""

DEBERTA = {"pad_id": 0, "bos_id": 1, "eos_id": 2, "unk_id": 3, "pad_piece": "[PAD]", "bos_piece": "[CLS]",
           "eos_piece": "[SEP]", "unk_piece": "[UNK]"}  # fmt: skip
FAIRSEQ = {"unk_id": 0, "bos_id": 1, "eos_id": 2, "pad_id": -1}
T5 = {"pad_id": 0, "eos_id": 1, "unk_id": 2, "bos_id": -1, "add_dummy_prefix": True}
NFKC = {"normalization_rule_name": "nmt_nfkc"}
PLAIN = {"normalization_rule_name": "identity"}


class Case(NamedTuple):
    """A small model.

    Attributes:
        file: its vocabulary.
        model_type: what its config.json says.
        train: options of SentencePiece's trainer, or of the trainers of `tokenizers`.
        config: its tokenizer_config.json; None for no such file.
        others: further JSON files, by name.
        shift: what fairseq's order adds to the ids of SentencePiece; the unknown piece becomes 3.
        kept: whether it is written for the tests.
    """

    file: str
    model_type: str
    train: Mapping[str, Any]
    config: Mapping[str, Any] | None = None
    others: Mapping[str, Any] = {}
    shift: int = 0
    kept: bool = False


def token(content: str, **flags: bool) -> dict[str, Any]:
    """A token as in `added_tokens_decoder`."""
    names = ("lstrip", "rstrip", "normalized", "single_word")
    return {"content": content, "special": True, **dict.fromkeys(names, False), **flags}


CASES = {
    "deberta": Case("spm.model", "deberta-v2", {**DEBERTA, **NFKC}, {"do_lower_case": False, "vocab_type": "spm"},
                    kept=True),
    "deberta_bytes": Case("spm.model", "deberta-v2", {**DEBERTA, **NFKC, "byte_fallback": True}),
    "deberta_lower": Case("spm.model", "deberta-v2", {**DEBERTA, **PLAIN},
                          {"do_lower_case": True, "split_by_punct": True, "tokenizer_class": "DebertaV2Tokenizer"},
                          {"special_tokens_map.json": {"cls_token": "[CLS]", "sep_token": "[SEP]", "unk_token": "[UNK]",
                                                       "pad_token": "[PAD]", "mask_token": "[MASK]"}}, kept=True),
    "deberta_bpe": Case("spm.model", "deberta-v2", {**DEBERTA, **NFKC, "model_type": "bpe"}),
    "deberta_user": Case("spm.model", "deberta-v2", {**DEBERTA, **NFKC, "user_defined_symbols": "user_symbol"}),
    "xlm_roberta": Case("sentencepiece.bpe.model", "xlm-roberta", {**FAIRSEQ, **NFKC}, shift=1, kept=True),
    "xlm_roberta_plain": Case("sentencepiece.bpe.model", "bert", {**FAIRSEQ, **PLAIN},
                              {"tokenizer_class": "XLMRobertaTokenizerFast"}, shift=1),
    "camembert": Case("sentencepiece.bpe.model", "camembert", {**FAIRSEQ, **NFKC}, shift=4),
    "t5": Case("spiece.model", "t5", {**T5, **NFKC}, {"extra_ids": 100, "model_max_length": 512}, kept=True),
    "t5_plain": Case("spiece.model", "t5", {**T5, **PLAIN}, {"extra_ids": 10}),
    "bert": Case("vocab.txt", "bert", {"lowercase": True}, {"do_lower_case": True}, kept=True),
    "bert_cased": Case("vocab.txt", "bert", {"lowercase": False},
                       {"do_lower_case": False, "strip_accents": False, "tokenize_chinese_chars": False,
                        "tokenizer_class": "BertTokenizer"}, kept=True),
    "bert_accents": Case("vocab.txt", "bert", {"lowercase": True}, {"do_lower_case": True, "strip_accents": False}),
    "electra": Case("vocab.txt", "electra", {"lowercase": True}),
    "distilbert": Case("vocab.txt", "distilbert", {"lowercase": True}, {"tokenizer_class": "DistilBertTokenizer"},
                       {"added_tokens.json": {"user_symbol": -1}}),
    "mpnet": Case("vocab.txt", "mpnet", {"lowercase": True, "roberta": True}, {"do_lower_case": True}, kept=True),
    "roberta": Case("vocab.json", "roberta", {}, kept=True),
    "roberta_spaced": Case("vocab.json", "roberta", {},
                           {"add_prefix_space": True, "tokenizer_class": "RobertaTokenizer",
                            "mask_token": {"__type": "AddedToken", **token("<mask>", lstrip=True)}}),
}  # fmt: skip


def main() -> None:
    """Train, ask the oracles, compare."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trainer", type=Path, required=True)
    parser.add_argument("--oracle", type=Path, action="append", default=[])
    parser.add_argument("--texts", type=int, default=5000)
    parser.add_argument("--data", type=Path, action="append", default=[])
    parser.add_argument("--only", action="append", choices=list(CASES))
    parser.add_argument("--write", type=Path)
    options = parser.parse_args()
    if options.write:
        write_golden(options.write, options.trainer, options.oracle)
        return
    texts = make_texts(options.texts, list(read_texts(options.data)))
    with tempfile.TemporaryDirectory() as scratch:
        for name in options.only or CASES:
            folder = make_model(Path(scratch) / name, name, options.trainer, texts)
            compare(name, folder, options.oracle, texts)


def read_texts(folders: Iterable[Path]) -> Iterator[str]:
    """Documents and queries of BEIR folders."""
    for folder in folders:
        for path in sorted(folder.glob("*.jsonl*")):
            content = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
            yield from (json.loads(line)["text"][:400] for line in content.decode().splitlines())


def make_texts(count: int, real: Sequence[str]) -> list[str]:
    """Texts in all scripts of `WORDS`, of random characters, hostile and real ones; always the same."""
    chance = random.Random(15)
    words = {script: text.split() for script, text in WORDS.items()}
    everything = [word for some in words.values() for word in some]
    texts = [*HOSTILE, *WORDS.values()]
    while len(texts) < count:
        kind = chance.randrange(8)
        if kind < 3:
            some = words[chance.choice(list(words))]
            texts.append(" ".join(chance.choices(some, k=chance.randint(1, 15))) + chance.choice(("", ".", "?!", " …")))
        elif kind == 3:
            texts.append(" ".join(chance.choices(everything, k=chance.randint(2, 12))))
        elif kind == 4:
            first, last = chance.choice(BLOCKS)
            texts.append("".join(chr(chance.randint(first, last)) for _ in range(chance.randint(1, 20))))
        elif kind == 5:
            inner = chance.choices(everything, k=4)
            inner.insert(chance.randrange(5), chance.choice(HOSTILE))
            texts.append(chance.choice(("", " ")).join(inner))
        elif real:
            texts.append(chance.choice(real))
        else:
            texts.append(" ".join(chance.choices(everything, k=8)).upper())
    return texts[:count]


def make_model(folder: Path, name: str, trainer: Path, texts: Sequence[str], size: int = 3000) -> Path:
    """Train the case's vocabulary on the texts and write its folder."""
    case = CASES[name]
    folder.mkdir(parents=True)
    clean = [text for text in texts if text.isprintable() and not any(word in text for word in SPECIAL)]
    if case.file.endswith(".model"):
        corpus = folder.parent / f"{name}.txt"
        corpus.write_text("\n".join(clean[: len(clean) * 2 // 3]), "utf-8")
        settings = {"vocab_size": size, **case.train}
        # A model keeps the paths that it was trained with, so these are relative.
        command: list[str | Path] = [trainer, "-c", TRAINER, corpus.name, f"{name}/{case.file}", json.dumps(settings)]
        subprocess.run(command, check=True, cwd=folder.parent)
        (folder / case.file).with_suffix(".vocab").unlink()
    else:
        train_words(folder, case, clean, size)
    shape = {"model_type": case.model_type}
    write_json(folder / "config.json", shape)
    if case.config is not None:
        write_json(folder / "tokenizer_config.json", case.config)
    for file, content in case.others.items():
        lines = len((folder / case.file).read_text("utf-8").splitlines()) if -1 in content.values() else 0
        write_json(folder / file, {key: lines if value == -1 else value for key, value in content.items()})
    return folder


def train_words(folder: Path, case: Case, texts: Sequence[str], size: int) -> None:
    """A WordPiece or byte-level BPE vocabulary."""
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, trainers

    if case.file == "vocab.json":
        tokenizer = Tokenizer(models.BPE())
        tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
        tokenizer.train_from_iterator(texts, trainers.BpeTrainer(
            vocab_size=size, special_tokens=["<s>", "<pad>", "</s>", "<unk>", "<mask>"], show_progress=False,
            initial_alphabet=pre_tokenizers.ByteLevel.alphabet()))  # fmt: skip
        tokenizer.model.save(str(folder))
        return
    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=case.train["lowercase"])
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    if case.train.get("roberta"):
        special = ["<s>", "<pad>", "</s>", "[UNK]", "<mask>"]
    tokenizer.train_from_iterator(
        texts, trainers.WordPieceTrainer(vocab_size=size, special_tokens=special, show_progress=False)
    )
    tokenizer.model.save(str(folder))


def write_json(path: Path, content: object) -> None:
    path.write_text(json.dumps(content, ensure_ascii=False, indent=1), "utf-8")


def ask(oracle: Path, path: Path, texts: Sequence[str], kind: str) -> dict[str, Any] | None:
    """What an oracle makes of the texts; None if it cannot read the model."""
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        json.dump(texts, file)
        file.flush()
        command: list[str | Path] = [oracle, "-c", ORACLE, path, file.name, str(MOST), kind]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        print(f"  {oracle} ({kind}): {done.stderr.strip().splitlines()[-1][:200]}")
        return None
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def read_ours(folder: Path, texts: Sequence[str]) -> dict[str, Any]:
    """What rageval-spec makes of the texts."""
    from rageval_spec.inference.model_files import TOKENIZER_FILES, VOCABULARY_FILES
    from rageval_spec.inference.tokens import load_tokenizer

    names = [name for name in (*TOKENIZER_FILES, *VOCABULARY_FILES) if (folder / name).is_file()]
    whole, cut = (load_tokenizer(folder, names, max_length=most) for most in (None, MOST))
    pairs = list(zip(texts, [*texts[1:], *texts[:1]], strict=True))
    read = {"single": whole.read(texts), "cut": cut.read(texts), "pair": whole.read(pairs), "pair_cut": cut.read(pairs)}
    found: dict[str, Any] = {key: [one.tolist() for one in tokens.ids] for key, tokens in read.items()}
    found["types"] = [one.tolist() for one in read["pair"].type_ids]
    return found


def compare(name: str, folder: Path, oracles: Sequence[Path], texts: Sequence[str]) -> None:
    """Print how many texts differ from what each oracle says."""
    ours, case = read_ours(folder, texts), CASES[name]
    print(f"{name}: {len(texts)} texts, {sum(map(len, ours['single']))} tokens")
    for number, oracle in enumerate(oracles):
        for kind in ("fast", "slow") if number else ("fast",):
            theirs = ask(oracle, folder, texts, kind)
            if theirs is None:
                continue
            label = f"{theirs['version']} {theirs['class']}"
            for part in ("single", "cut", "pair", "types", "pair_cut"):
                if part in theirs:
                    report(f"{label} {part}", texts, ours[part], theirs[part], shown=part == "single")
    if case.file.endswith(".model") and oracles:
        theirs = ask(oracles[0], folder / case.file, texts, "sentencepiece") or {}
        bare = [place for place, text in enumerate(texts) if not any(word in text for word in SPECIAL)]
        first = 1 if case.model_type != "t5" else 0
        mine = [ours["single"][place][first:-1] for place in bare]
        expected = [[shift(one, case.shift) for one in theirs["single"][place]] for place in bare]
        report("sentencepiece", [texts[place] for place in bare], mine, expected, shown=True)


def shift(number: int, by: int) -> int:
    return number if not by else number + by if number else 3


def report(label: str, texts: Sequence[str], ours: Sequence[Any], theirs: Sequence[Any], *, shown: bool) -> None:
    different = [place for place, (one, other) in enumerate(zip(ours, theirs, strict=True)) if one != other]
    print(f"  {label}: {len(different)} of {len(texts)} differ")
    for place in sorted(different, key=lambda place: len(texts[place]))[:6] if shown else ():
        print(f"    {ascii(texts[place])[:70]}: {ours[place][:14]} but {theirs[place][:14]}")


def write_golden(target: Path, trainer: Path, oracles: Sequence[Path]) -> None:
    """Write the kept cases with the ids that the first oracle gives, for `OLDER` the second one.

    The models are smaller, and their rules of normalisation are only those that the texts need.
    """
    texts = [text for text in make_texts(230, []) if len(text) <= 40]
    kept = {name: case for name, case in CASES.items() if case.kept}
    with tempfile.TemporaryDirectory() as scratch:
        rules = Path(scratch) / "rules.tsv"
        rules.write_text("\n".join(make_rules(make_texts(2000, []))) + "\n", "utf-8")
        for name, case in kept.items():
            train = dict(case.train)
            if train.get("normalization_rule_name") == "nmt_nfkc":
                train = {**train, "normalization_rule_name": "", "normalization_rule_tsv": rules.name}
            CASES[name] = case._replace(train=train)
            folder = make_model(Path(scratch) / name, name, trainer, make_texts(2000, []), size=580)
            oracle = oracles[1 if case.model_type in OLDER else 0]
            theirs, ours = ask(oracle, folder, texts, "fast"), read_ours(folder, texts)
            assert theirs is not None
            parts = {"single": len(texts), "cut": 20, "pair": 20, "types": 20}
            for part in parts:
                assert ours[part] == theirs[part], f"{name}: {part} differs"
            said = {"oracle": f"transformers {theirs['version']} {theirs['class']}", "most": MOST}
            said |= {part: theirs[part][-size:] for part, size in parts.items()}
            shutil.copytree(folder, target / name, dirs_exist_ok=True)
            (target / name / "expected.json").write_text(json.dumps(said, separators=(",", ":")), "ascii")
    (target / "texts.json").write_text(json.dumps(texts, indent=0), "ascii")


def make_rules(texts: Iterable[str]) -> list[str]:
    """Rules of normalisation as nmt_nfkc has them, for the characters of the texts."""
    found: dict[str, str] = {}
    for character in sorted({character for text in texts for character in text if character not in "\x00\ufffd"}):
        if character.isspace() or unicodedata.category(character) in ("Zl", "Zp"):
            found[character] = " "
        elif unicodedata.category(character) == "Cc":
            found[character] = ""
        elif (changed := unicodedata.normalize("NFKC", character)) != character and character < "\uac00":
            found[character] = changed
        apart = unicodedata.normalize("NFD", character)
        if apart != character and character < "\uac00" and unicodedata.normalize("NFC", apart) == character:
            found[apart] = unicodedata.normalize("NFKC", character)
    found.pop(" ", None)
    return [f"{spell(source)}\t{spell(result)}" for source, result in found.items()]


def spell(text: str) -> str:
    """The code points of a text, as SentencePiece's rules have them."""
    return " ".join(f"{ord(character):X}" for character in text)


if __name__ == "__main__":
    main()
