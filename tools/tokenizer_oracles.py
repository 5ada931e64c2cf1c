"""What tools/compare_tokenizers.py compares with: Hugging Face `tokenizers` built from the published rules over the
vocabulary of a GGUF file, and `llama-tokenize`. Also trains the small vocabularies for which no model file is at hand.
"""

import dataclasses
import json
import re
import subprocess
import unicodedata

import gguf
import unicodedata2
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers

from make_unicode_table import NUMBERS_SINCE_17

SPACE = "\u2581"
NORMAL, UNKNOWN, CONTROL, USER_DEFINED, UNUSED, BYTE = range(1, 7)

# The regular expressions of the published tokenizer.json files.
SPLITS = {
    "qwen2": r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
    "llama-bpe": r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
}
OVERLONG = re.compile(rb"[\xc0\xc1][\x80-\xbf]|\xe0[\x80-\x9f][\x80-\xbf]|\xf0[\x80-\x8f][\x80-\xbf]{2}")


@dataclasses.dataclass
class Vocabulary:
    """The tokenizer's part of a GGUF file."""

    model: str
    pre: str
    tokens: list
    types: list
    merges: list = dataclasses.field(default_factory=list)  # "left right"
    scores: list = dataclasses.field(default_factory=list)
    add_space_prefix: bool = False
    bos: int = None
    eos: int = None
    unknown: int = None


def read_gguf(path):
    fields = gguf.GGUFReader(path).fields

    def get(key, default=None):
        field = fields.get("tokenizer.ggml." + key)
        return default if field is None else field.contents()

    model = get("model")
    return Vocabulary(model, get("pre", ""), get("tokens"), get("token_type"), get("merges", []), get("scores", []),
                      get("add_space_prefix", model == "llama"), get("bos_token_id"), get("eos_token_id"),
                      get("unknown_token_id"))


def write_gguf(path, v):
    """A file with a tokenizer and nothing else."""
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_tokenizer_model(v.model)
    writer.add_tokenizer_pre(v.pre)
    writer.add_token_list(v.tokens)
    writer.add_token_types(v.types)
    if v.merges:
        writer.add_token_merges(v.merges)
    if v.scores:
        writer.add_token_scores(v.scores)
    for add, value in ((writer.add_bos_token_id, v.bos), (writer.add_eos_token_id, v.eos),
                       (writer.add_unk_token_id, v.unknown)):
        if value is not None:
            add(value)
    writer.add_add_space_prefix(v.add_space_prefix)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def merges_by_score(v):
    """Every way to cut a piece into two pieces, best score first, longer left part first among equals: how transformers
    makes the merges of a SentencePiece model."""
    ids = {t: i for i, t in enumerate(v.tokens) if v.types[i] in (NORMAL, USER_DEFINED, UNUSED)}
    merges = []
    for piece, i in ids.items():
        for cut in range(1, len(piece)):
            left, right = piece[:cut], piece[cut:]
            if left in ids and right in ids:
                merges.append((-v.scores[i], -len(left), left, right))
    merges.sort(key=lambda m: m[:2])
    return [(left, right) for _, _, left, right in merges]


def pre_tokenizer(pre):
    byte_level = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=pre not in SPLITS)
    if pre == "smollm":
        return pre_tokenizers.Sequence([pre_tokenizers.Digits(individual_digits=True), byte_level])
    if pre in SPLITS:
        return pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(SPLITS[pre]), "isolated"), byte_level])
    assert pre == "gpt-2", pre
    return byte_level


def hugging_face(v):
    ids = {t: i for i, t in enumerate(v.tokens)}
    if v.model == "gpt2":
        merges = [tuple(m.split(" ")) for m in v.merges]
        tokenizer = Tokenizer(models.BPE(ids, merges, ignore_merges=v.pre == "llama-bpe"))
        tokenizer.pre_tokenizer = pre_tokenizer(v.pre)
        tokenizer.decoder = decoders.ByteLevel()
        if v.pre == "qwen2":
            tokenizer.normalizer = normalizers.NFC()
    else:
        tokenizer = Tokenizer(models.BPE(ids, merges_by_score(v), byte_fallback=BYTE in v.types, fuse_unk=True,
                                         unk_token=None if v.unknown is None else v.tokens[v.unknown]))
        steps = [normalizers.Replace(" ", SPACE)]
        tokenizer.normalizer = normalizers.Sequence([normalizers.Prepend(SPACE)] * v.add_space_prefix + steps)
    special = [t for t, kind in zip(v.tokens, v.types) if kind in (CONTROL, UNKNOWN)]
    tokenizer.add_special_tokens([AddedToken(t, normalized=False, special=True) for t in special])
    added = [t for t, kind in zip(v.tokens, v.types) if kind == USER_DEFINED]
    tokenizer.add_tokens([AddedToken(t, normalized=False, special=False) for t in added])
    return tokenizer


def train_byte_level(pre, texts, size=6000):
    """A small byte-level vocabulary; the special tokens come last, as in Qwen2 and Llama 3."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizer(pre)
    trainer = trainers.BpeTrainer(vocab_size=size, initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
                                  show_progress=False)
    tokenizer.train_from_iterator(texts, trainer)
    return from_trained(tokenizer, "gpt2", pre)


def from_trained(tokenizer, model, pre):
    trained = json.loads(tokenizer.to_str())["model"]
    tokens = sorted(trained["vocab"], key=trained["vocab"].get)
    merges = [" ".join(m) if isinstance(m, list) else m for m in trained["merges"]]
    v = Vocabulary(model, pre, tokens, [NORMAL] * len(tokens), merges)
    for spelling, kind in (("<|endoftext|>", CONTROL), ("<|im_start|>", CONTROL), ("<|im_end|>", CONTROL),
                           ("<think>", USER_DEFINED), ("<tool>", USER_DEFINED), ("<tool>:", USER_DEFINED)):
        v.tokens.append(spelling)
        v.types.append(kind)
    v.eos = v.tokens.index("<|im_end|>")
    v.bos = v.tokens.index("<|endoftext|>")
    return v


def train_sentencepiece(texts, size=4000, byte_fallback=True, add_space_prefix=True):
    """A small vocabulary laid out as Llama 2's: <unk>, <s>, </s>, bytes, pieces by rank, single characters last."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.normalizer = normalizers.Replace(" ", SPACE)
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(replacement=SPACE, prepend_scheme="never", split=True)
    trainer = trainers.BpeTrainer(vocab_size=size, show_progress=False, limit_alphabet=1200)
    tokenizer.train_from_iterator([t.replace("\0", "") for t in texts], trainer)  # llama.cpp reads C strings
    trained = json.loads(tokenizer.to_str())["model"]
    pieces = ["".join(m) if isinstance(m, list) else m.replace(" ", "") for m in trained["merges"]]
    pieces = list(dict.fromkeys(pieces))
    singles = sorted((t for t in trained["vocab"] if len(t) == 1), key=trained["vocab"].get)
    v = Vocabulary("llama", "default", ["<unk>", "<s>", "</s>"], [UNKNOWN, CONTROL, CONTROL])
    v.scores = [0.0] * 3
    if byte_fallback:
        v.tokens += ["<0x%02X>" % b for b in range(256)]
        v.types += [BYTE] * 256
        v.scores += [0.0] * 256
    v.tokens += ["<fim>"]
    v.types += [USER_DEFINED]
    v.scores += [0.0]
    v.scores += [-float(i) for i in range(len(pieces) + len(singles))]
    v.tokens += pieces + singles
    v.types += [NORMAL] * (len(pieces) + len(singles))
    v.unknown, v.bos, v.eos, v.add_space_prefix = 0, 1, 2, add_space_prefix
    return v


def missing_bytes(v):
    """The bytes for which a byte-level vocabulary has no token."""
    if v.model != "gpt2":
        return set()
    printable = [b for b in range(256) if 0x21 <= b <= 0x7E or (b >= 0xA1 and b != 0xAD)]
    others = [b for b in range(256) if b not in printable]
    spelled = {b: chr(b) for b in printable} | {b: chr(256 + i) for i, b in enumerate(others)}
    known = set(v.tokens)
    return {b for b, c in spelled.items() if c not in known}


def llama_filter(v):
    """Takes out of a document what llama.cpp does otherwise than the published rules: it composes no characters for
    Qwen2 (we do, overlong ones too), takes U+017F for no s, reads an older Unicode than 16.0 (17.0 for numbers), and
    keeps merging apart what a byte without a token stood between."""
    missing = missing_bytes(v)

    def agreed(c):
        newer = unicodedata.category(c) == "Cn" and (unicodedata2.category(c) != "Cn" or ord(c) in NUMBERS_SINCE_17)
        return c != "\u017f" and not newer and not missing.intersection(c.encode("utf-8", "surrogateescape"))

    def keep(document):
        if v.pre == "qwen2":
            document = OVERLONG.sub(b"?", document)
        text = "".join(filter(agreed, document.decode("utf-8", "surrogateescape")))
        text = unicodedata.normalize("NFC", text) if v.pre == "qwen2" else text
        return text.encode("utf-8", "surrogateescape")

    return keep


class LlamaTokenize:
    """One run of the binary per document: it reads its whole input as one text."""

    def __init__(self, binary, library_folder):
        self.binary = binary
        self.environment = {"LD_LIBRARY_PATH": str(library_folder)}

    def encode(self, model, document, parse_special=True):
        command = [self.binary, "-m", str(model), "--stdin", "--ids", "--no-escape", "--no-bos"]
        if not parse_special:
            command.append("--no-parse-special")
        run = subprocess.run(command, input=document, capture_output=True, env=self.environment, check=False)
        if run.returncode != 0:
            raise RuntimeError("llama-tokenize failed: " + run.stderr.decode("utf-8", "replace")[-400:])
        return [int(i) for i in run.stdout.decode().strip().strip("[]").split(",") if i.strip()]


class Driver:
    """Our tokenizer: `COMMAND MODEL` reads frames, each a decimal length, a line break and that many bytes, from its
    standard input, and writes one line of ids for each."""

    def __init__(self, command):
        self.command = command

    def encode(self, model, documents, parse_special=True):
        command = [*self.command, *([] if parse_special else ["--no-special"]), str(model)]
        frames = b"".join(b"%d\n%s" % (len(d), d) for d in documents)
        run = subprocess.run(command, input=frames, capture_output=True, check=False)
        if run.returncode != 0:
            raise RuntimeError("%s failed: %s" % (command, run.stderr.decode("utf-8", "replace")[-400:]))
        lines = run.stdout.decode().splitlines()
        assert len(lines) == len(documents), (len(lines), len(documents))
        return [[int(i) for i in line.split()] for line in lines]
