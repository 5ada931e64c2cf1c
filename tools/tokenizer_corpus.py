"""The text that tools/compare_tokenizers.py compares tokenizers on.

Everything synthetic is drawn from seeded generators, so it is the same on every machine; the system's own text (source
code, headers, licences, manual pages in many languages) differs between machines and is only compared, never recorded.
"""

import gzip
import pathlib
import random

import unicodedata2 as ud

# Ranges of the letters, digits and marks of the scripts that words are made of.
SCRIPTS = {
    "latin": [(0x41, 0x5A), (0x61, 0x7A)], "latin-extended": [(0xC0, 0x24F), (0x1E00, 0x1EFF)],
    "greek": [(0x370, 0x3FF), (0x1F00, 0x1FFF)], "cyrillic": [(0x400, 0x52F)], "armenian": [(0x531, 0x587)],
    "hebrew": [(0x591, 0x5F4), (0xFB1D, 0xFB4F)], "arabic": [(0x600, 0x6FF), (0x750, 0x77F), (0xFE70, 0xFEFC)],
    "syriac": [(0x700, 0x74F)], "devanagari": [(0x900, 0x97F)], "bengali": [(0x980, 0x9FE)],
    "gurmukhi": [(0xA01, 0xA76)], "gujarati": [(0xA81, 0xAFF)], "tamil": [(0xB82, 0xBFA)], "telugu": [(0xC00, 0xC7F)],
    "kannada": [(0xC80, 0xCF3)], "malayalam": [(0xD00, 0xD7F)], "sinhala": [(0xD81, 0xDF4)], "thai": [(0xE01, 0xE5B)],
    "lao": [(0xE81, 0xEDF)], "tibetan": [(0xF00, 0xFDA)], "myanmar": [(0x1000, 0x109F)], "georgian": [(0x10A0, 0x10FF)],
    "hangul-jamo": [(0x1100, 0x11FF)], "ethiopic": [(0x1200, 0x139F)], "cherokee": [(0x13A0, 0x13FD)],
    "canadian": [(0x1400, 0x167F)], "khmer": [(0x1780, 0x17F9)], "mongolian": [(0x1800, 0x18AA)],
    "hiragana": [(0x3041, 0x309F)], "katakana": [(0x30A0, 0x30FF)], "han": [(0x4E00, 0x9FFF), (0x3400, 0x4DBF)],
    "han-compatibility": [(0xF900, 0xFAD9), (0x2F800, 0x2FA1D)], "hangul": [(0xAC00, 0xD7A3)],
    "linear-b": [(0x10000, 0x100FA)], "gothic": [(0x10330, 0x1034A)], "cuneiform": [(0x12000, 0x12399)],
    "egyptian": [(0x13000, 0x1342F)], "mathematical": [(0x1D400, 0x1D7FF)], "adlam": [(0x1E900, 0x1E959)],
    "han-b": [(0x20000, 0x2A6DF)], "numbers": [(0xB2, 0xBE), (0x2150, 0x218B), (0x2460, 0x249B), (0x3220, 0x3229)],
}
EMOJI = [(0x1F300, 0x1F64F), (0x1F680, 0x1F6FF), (0x1F900, 0x1F9FF), (0x2600, 0x27BF), (0x1F1E6, 0x1F1FF)]
JOINERS = ["\u200d", "\ufe0f", "\U0001f3fb", "\U0001f3ff", "\u20e3"]
SPACES = [" "] * 8 + ["  ", "   ", "    ", "\t", "\n", "\n\n", "\r\n", "\r", "\u00a0", "\u3000", "\u2003", "\u200b",
          "\u0085", "\u2028", "\u1680", "\u180e", "\v", "\f", " \n ", "\n  ", "  \n\n  "]
PUNCTUATION = list(".,;:!?-_()[]{}<>/\\|@#$%^&*+=~`\"'") + ["...", "->", "//", "/*", "!=", "::", "'s", "'LL", "'\u017f",
               "n't", "\u2019s", "\u2014", "\u3002", "\uff0c", "\u00bf", "\u20ac", "\u2581", "\ufffd"]
SPECIALS = ["<|im_start|>", "<|im_end|>", "<|endoftext|>", "<bos>", "<eos>", "<start_of_turn>", "<end_of_turn>", "<s>",
            "</s>", "<unk>", "<pad>", "<0x0A>", "<0xE2>", "<table>", "<unused7>", "<|im_start", "im_end|>", "<<s>>",
            "<file_sep>", "<|eot_id|>"]


def assigned(ranges):
    return [chr(cp) for low, high in ranges for cp in range(low, high + 1) if ud.category(chr(cp)) not in ("Cn", "Cs")]


ALPHABETS = {name: assigned(ranges) for name, ranges in SCRIPTS.items()}
EMOJI_CHARS = assigned(EMOJI)
CONTROLS = [chr(cp) for cp in list(range(0x20)) + list(range(0x7F, 0xA0)) + [0xAD, 0x200E, 0x202E, 0x2066, 0xFEFF, 0xFFFE]]


def script_text(rng, name, size):
    alphabet = ALPHABETS[name]
    parts = []
    length = 0
    while length < size:
        word = "".join(rng.choices(alphabet, k=rng.randint(1, 9)))
        gap = rng.choice(SPACES) if rng.random() < 0.85 else rng.choice(PUNCTUATION) + rng.choice(("", " "))
        if rng.random() < 0.08:
            gap += str(rng.randint(0, 10 ** rng.randint(1, 9)))
        parts += [word, gap]
        length += len(word) + len(gap)
    return "".join(parts)


def random_string(rng):
    """A short string that mixes everything."""
    parts = []
    for _ in range(rng.randint(1, 12)):
        kind = rng.random()
        if kind < 0.35:
            parts.append("".join(rng.choices(ALPHABETS[rng.choice(list(ALPHABETS))], k=rng.randint(1, 6))))
        elif kind < 0.5:
            parts.append(rng.choice(SPACES) * rng.randint(1, 4))
        elif kind < 0.65:
            parts.append("".join(rng.choices(PUNCTUATION, k=rng.randint(1, 3))))
        elif kind < 0.72:
            parts.append(str(rng.randint(0, 10 ** rng.randint(1, 6))))
        elif kind < 0.8:
            parts.append(rng.choice(EMOJI_CHARS) + rng.choice(["", *JOINERS]))
        elif kind < 0.86:
            parts.append(rng.choice(CONTROLS))
        elif kind < 0.9:
            parts.append(rng.choice(SPECIALS))
        elif kind < 0.95:
            parts.append("".join(rng.choices("abcdefghijklmnopqrstuvwxyz'", k=rng.randint(1, 10))))
        else:
            cp = rng.randrange(0x110000)
            parts.append(chr(cp) if not 0xD800 <= cp < 0xE000 else "?")
    return "".join(parts)


def random_strings(count, seed=2):
    rng = random.Random(seed)
    return [random_string(rng) for _ in range(count)]


def synthetic_documents(total_bytes, seed=1):
    rng = random.Random(seed)
    documents = []
    per_script = total_bytes * 3 // 4 // len(ALPHABETS)
    for name in ALPHABETS:
        documents.append(script_text(rng, name, per_script // len(ALPHABETS[name][0].encode())))
    rest = total_bytes // 4
    while rest > 0:
        emoji = "".join(rng.choice(EMOJI_CHARS) + rng.choice([*JOINERS, "", "", " ", "\n"]) for _ in range(4000))
        controls = "".join(rng.choice(CONTROLS) + rng.choice(["", "a", " ", "1", "\n"]) for _ in range(2000))
        runs = "".join(rng.choice([" ", "\n", "a", "!", "0", "\t", "'", "\u4e2d", "\u00e9", "="]) * rng.randint(1, 90)
                       for _ in range(200))
        documents += [emoji, controls, runs]
        rest -= sum(len(d.encode()) for d in (emoji, controls, runs))
    return documents


def invalid_documents(count, seed=3):
    """Byte strings that are not valid UTF-8 in every way there is."""
    rng = random.Random(seed)
    broken = [b"\x80", b"\xbf", b"\xc0\x80", b"\xc1\xbf", b"\xc3", b"\xe2\x82", b"\xe2", b"\xf0\x9f\x98", b"\xf0\x9f",
              b"\xed\xa0\x80", b"\xed\xbf\xbf", b"\xe0\x80\xa0", b"\xf0\x80\x80\xa0", b"\xff", b"\xfe", b"\xf8\x88\x80\x80",
              b"\xc0\xa0", b"\xe2 ", b"\xe2\xe2\x96\x81", b"\xf0a", b"\xc1\xa1"]
    documents = []
    for _ in range(count):
        parts = []
        for _ in range(rng.randint(20, 200)):
            if rng.random() < 0.4:
                parts.append(rng.choice(broken))
            elif rng.random() < 0.2:
                # No bytes F5 to F7: llama.cpp stops at code points past 10FFFF.
                parts.append(bytes(b for b in rng.randbytes(rng.randint(1, 8)) if not 0xF4 <= b <= 0xF7))
            else:
                parts.append(random_string(rng).encode("utf-8", "ignore"))
        documents.append(b"".join(parts))
    return documents


def system_documents(total_bytes):
    """Source code, headers, licences and manual pages of this machine, in a fixed order."""
    documents = []
    left = {"man": total_bytes * 4 // 10, "code": total_bytes * 4 // 10, "prose": total_bytes * 2 // 10}
    roots = [("man", "/usr/share/man", "**/*.gz"), ("code", "/usr/lib/python3", "**/*.py"),
             ("code", "/usr/include", "**/*.h"), ("prose", "/usr/share/common-licenses", "*"),
             ("prose", "/usr/share/doc", "**/copyright"), ("prose", "/usr/share/perl", "**/*.pod")]
    for kind, root, pattern in roots:
        paths = sorted(pathlib.Path(root).glob(pattern))
        random.Random(root).shuffle(paths)
        for path in paths:
            if left[kind] <= 0:
                break
            if not path.is_file() or path.is_symlink():
                continue
            data = path.read_bytes()
            if path.suffix == ".gz":
                data = gzip.decompress(data)
            text = data[:200_000].decode("utf-8", "ignore")
            documents.append(text)
            left[kind] -= len(text)
    return documents


def in_pieces(text, limit):
    """Cuts a long text so that a piece has at most about `limit` characters."""
    return [text[i : i + limit] for i in range(0, len(text), limit)]
