"""Writes tests/data/text/*.json: what the oracles of tools/compare_tokenizers.py say of small vocabularies and texts.

Run:  python3 tools/compare_tokenizers.py --record --model smollm2.gguf --model gemma3-270m.gguf \\
          --llama-tokenize PATH/llama-tokenize
"""

import hashlib
import json
import pathlib
import random
import tempfile

import tokenizer_corpus as corpus
import tokenizer_oracles as oracles
from tokenizers import Regex, normalizers, pre_tokenizers

PROSE = """It was the time when the tides of the northern sea run highest, and the whales come close to the shore.
"You'll see," she said, "they're not afraid; we've never done them harm." He didn't answer. I'd say he's right: it's
what WE'RE told, isn't it? In 1851 there were 1,234 boats; by 1900 only 56 (4.5%) were left, costing $9,999.99 each.
    for (int i = 0; i < count; ++i) { total += values[i] * 2; }  // sum
    def main(args):\n        return {"key": [1, 2, 3], "other": None}
Les marées montent; où est-elle? Die Flut kommt über Nacht. Прилив приходит ночью. 潮水在夜里上涨。夜に潮が満ちる。
"""

TEXTS = [
    "", " ", "  ", "   ", "\n", "\n\n", " \n", "\n ", "\r\n", "\t\tx", "a", " a", "a ", "Hello, world!", "The capital of France is",
    "Hello  world", "   leading", "trailing   ", "tabs\tand\nlines\r\n\r\nend", "1234567890 12 3.14159 1,000,000 0x1F",
    "I'm you're he's WE'VE they'LL it'd don't 'S 'tis rock'n'roll ''' 's", "'\u017ftrange s\u017f 'S\u017f", "x''y 'x",
    "CamelCase snake_case kebab-case", "a+b=c; if (x != y) { return -1; } // done", "!!!???...---===", "\u20ac50 \u00a33 \u00bd \u2461 \u216b \u0967\u0968\u0969",
    "na\u00efve caf\u00e9 co\u00f6perate", "nai\u0308ve cafe\u0301 co\u006f\u0308perate", "\u1e0b\u0323 d\u0307\u0323 d\u0323\u0307 \u212b \u2126 \uf900 \u0958 \ufb1d \u1100\u1161\u11a8 \uac00\u11a8",
    "\u041f\u0440\u0438\u0432\u0435\u0442, \u043c\u0438\u0440!", "\u4f60\u597d\uff0c\u4e16\u754c\u3002", "\u3053\u3093\u306b\u3061\u306f\u4e16\u754c \u30ab\u30bf\u30ab\u30ca", "\uc548\ub155\ud558\uc138\uc694 \uc138\uacc4",
    "\u0645\u0631\u062d\u0628\u0627 \u0628\u0627\u0644\u0639\u0627\u0644\u0645 \u0661\u0662\u0663", "\u05e9\u05dc\u05d5\u05dd \u05e2\u05d5\u05dc\u05dd", "\u0928\u092e\u0938\u094d\u0924\u0947 \u0926\u0941\u0928\u093f\u092f\u093e", "\u0e2a\u0e27\u0e31\u0e2a\u0e14\u0e35\u0e0a\u0e32\u0e27\u0e42\u0e25\u0e01",
    "\U0001f600", "\U0001f468\u200d\U0001f469\u200d\U0001f467\u200d\U0001f466 \U0001f1eb\U0001f1f7 \U0001f44d\U0001f3fd", "zero\u200bwidth\u00a0nbsp\u3000ideographic\u2028line\u0085next",
    "\u0000\u0001\u0004\u0007\u001b[0m\u007f\u009f", "!\u0004! a\u0006b \u0013\u0014", "\ufeffBOM \ufffd\ufffe", "\u180e\u1680 \u2003x", "\u2581literal\u2581 blocks",
    "<|im_start|>user\nHi<|im_end|>\n", "<|im_start|>", "<|im_start <|im_end|>x<|endoftext|>", "<think>hm</think><tool>:<tool>x", "<s>a</s> <unk> <0x41><fim> x",
    "a" * 70, " " * 70, "ab" * 50, "\n" * 40, "=" * 90, "\u4e2d" * 60, "\U0001f40b" * 30, "0" * 50, "aA" * 45, "x" + " " * 60 + "y",
]
PRES = ("gpt-2", "smollm", "qwen2", "llama-bpe")
GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
BLOCK = 0x2000


def save(path, content):
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = ["%s: %s" % (json.dumps(k), json.dumps(v, ensure_ascii=True, separators=(",", ":"))) for k, v in content.items()]
    path.write_text("{\n" + ",\n".join(lines) + "\n}\n")
    print(path, path.stat().st_size, "bytes")


def texts():
    rng = random.Random(11)
    scripts = [corpus.script_text(rng, name, 40) for name in corpus.ALPHABETS]
    return TEXTS + scripts + [line for line in PROSE.splitlines() if line] + corpus.random_strings(60, seed=12)


def split_rule(pre):
    """The published splitting without byte encoding, so that pieces can be read."""
    split = pre_tokenizers.Split(Regex(oracles.SPLITS.get(pre, GPT2)), "isolated")
    if pre == "smollm":
        return pre_tokenizers.Sequence([pre_tokenizers.Digits(individual_digits=True), split])
    return split


def piece_ends(rule, text):
    ends, at = [], 0
    for piece, _ in rule.pre_tokenize_str(text):
        at += len(piece.encode())
        ends.append(at)
    return ends


def code_points(block):
    return [cp for cp in range(block * BLOCK, (block + 1) * BLOCK) if not 0xD800 <= cp < 0xE000]


def split_probe(block):
    """A text in which every code point of the block stands beside a letter, digit, space, mark and line break."""
    return "".join("a{0}b {0}{0} '{0}1{0}\n{0}".format(chr(cp)) for cp in code_points(block))


def nfc_probe(block):
    return "".join("{0}\u0301A{0}\u0323\u0345{0}{0}\u1161".format(chr(cp)) for cp in code_points(block))


def digest(data):
    return hashlib.sha256(data).hexdigest()[:16]


def split_digest(rule, block):
    ends = piece_ends(rule, split_probe(block))
    return digest(b"".join(end.to_bytes(4, "little") for end in ends))


def record_splits(folder, command):
    all_texts = texts()
    blocks = range(0x110000 // BLOCK)
    rules = {pre: split_rule(pre) for pre in PRES}
    nfc = normalizers.NFC()
    save(folder / "pretokenizer.json", {
        "made_by": command,
        "texts": all_texts,
        "ends": {pre: [piece_ends(rules[pre], t) for t in all_texts] for pre in PRES},
        "nfc": [nfc.normalize_str(t) for t in all_texts],
        "block": BLOCK,
        "split_digests": {pre: [split_digest(rules[pre], b) for b in blocks] for pre in PRES},
        "nfc_digests": [digest(nfc.normalize_str(nfc_probe(b)).encode()) for b in blocks],
    })


def small_vocabularies():
    rng = random.Random(13)
    lines = PROSE.splitlines() * 4 + [corpus.script_text(rng, name, 60) for name in corpus.ALPHABETS] + corpus.random_strings(200, seed=14)
    byte_level = {}
    for pre in PRES:
        v = oracles.train_byte_level(pre, lines, 800)
        if pre == "smollm":  # as SmolLM2, which lacks tokens for bytes that its training text did not have
            for missing in ("\u0104", "\u0106", "\u0113"):
                i = v.tokens.index(missing)
                v.tokens[i] = "<|missing%d|>" % i
                v.types[i] = oracles.CONTROL
                v.merges = [m for m in v.merges if missing not in m]
        byte_level[pre] = v
    gemma = oracles.train_sentencepiece(lines, 500, add_space_prefix=False)
    for spelling in ("\n", "\n\n", "\n\n\n", "  ", "   ", "    ", "<table>", "</s>x"):
        if spelling not in gemma.tokens:
            gemma.tokens.append(spelling)
            gemma.types.append(oracles.USER_DEFINED)
            gemma.scores.append(-1000.0)
        gemma.types[gemma.tokens.index(spelling)] = oracles.USER_DEFINED
    pieces = {"llama2": oracles.train_sentencepiece(lines, 500), "gemma": gemma,
              "no-bytes": oracles.train_sentencepiece(lines, 400, byte_fallback=False)}
    return byte_level | pieces


def record_vocabulary(folder, command, name, vocabulary, llama):
    """Metadata, then ids of valid text by Hugging Face and of any bytes (in hex) by llama-tokenize."""
    reference = oracles.hugging_face(vocabulary)
    all_texts = texts()
    content = {"made_by": command, "model": vocabulary.model, "pre": vocabulary.pre, "tokens": vocabulary.tokens,
               "types": vocabulary.types, "scores": vocabulary.scores, "merges": vocabulary.merges,
               "add_space_prefix": vocabulary.add_space_prefix, "bos": vocabulary.bos, "eos": vocabulary.eos,
               "unknown": vocabulary.unknown, "texts": all_texts,
               "ids": [reference.encode(t, add_special_tokens=False).ids for t in all_texts], "invalid": [], "invalid_ids": []}
    if name != "no-bytes":  # llama.cpp stops at a character without a token
        invalid = [oracles.llama_filter(vocabulary)(d[:160]) for d in corpus.invalid_documents(12, seed=15)]
        with tempfile.TemporaryDirectory() as temporary:
            path = pathlib.Path(temporary) / "vocabulary.gguf"
            oracles.write_gguf(path, vocabulary)
            content["invalid"] = [d.hex() for d in invalid]
            content["invalid_ids"] = [llama.encode(path, d) for d in invalid]
    save(folder / ("vocabulary_%s.json" % name), content)


def record_model(folder, command, path):
    """Ids of a published model's vocabulary, which is not part of this repository."""
    vocabulary = oracles.read_gguf(path)
    reference = oracles.hugging_face(vocabulary)
    all_texts = texts()
    save(folder / ("model_%s.json" % pathlib.Path(path).stem), {
        "made_by": command, "texts": all_texts,
        "ids": [reference.encode(t, add_special_tokens=False).ids for t in all_texts]})


def record(folder, command, models, llama):
    record_splits(folder, command)
    for name, vocabulary in small_vocabularies().items():
        record_vocabulary(folder, command, name, vocabulary, llama)
    for path in models:
        record_model(folder, command, path)
