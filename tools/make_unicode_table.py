#!/usr/bin/env python3
"""Writes src/text/unicode_class.inc and src/text/nfc.inc from the Unicode character database.

Needs:  pip install unicodedata2==16.0.0
Run:    python3 tools/make_unicode_table.py
        python3 tools/make_unicode_table.py --check   # fails when the files in the tree differ
"""

import argparse
import pathlib
import sys

import unicodedata2 as ud

ROOT = pathlib.Path(__file__).resolve().parent.parent
VERSION = "16.0.0"
LAST = 0x10FFFF
HANGUL = range(0xAC00, 0xD7A4)
LETTER, NUMBER, SPACE, NFC, NEWER_NUMBER = 1, 2, 3, 4, 8
# Numbers of Unicode 17.0, which the Digits rule of Hugging Face tokenizers 0.23.3 knows and its regular expressions do not.
NUMBERS_SINCE_17 = {*range(0x11DE0, 0x11DEA), *range(0x16FF4, 0x16FF7)}
# What the regular expressions of published tokenizers call \s: the White_Space property.
WHITE_SPACE = {*range(0x09, 0x0E), 0x20, 0x85, 0xA0, 0x1680, *range(0x2000, 0x200B), 0x2028, 0x2029, 0x202F, 0x205F, 0x3000}
# Canonical composition in Hugging Face tokenizers 0.23.3 knows Unicode 9.0. These are the code points with canonical
# data that came later; it leaves them alone, and so do we. (The classes above are of Unicode 16.0 there too.)
NEWER_THAN_COMPOSITION = """
    7FD 897-89F 8CA-8D3 9FE C3C D3B-D3C EBA 1715 1ABF-1ACE 1DF6-1DFA A82C 105C9 105E4 10D24-10D27 10D69-10D6D
    10EAB-10EAC 10EFD-10EFF 10F46-10F50 10F82-10F85 11070 1133B 11383 11385 1138E 11391 113C5 113C7-113C8 113CE-113D0
    1145E 11839-1183A 11938 1193D-1193E 11943 119E0 11A34 11A47 11A99 11D42 11D44-11D45 11D97 11F41-11F42 16121-16128
    1612F 16D68-16D6A 16FF0-16FF1 1E08F 1E130-1E136 1E2AE 1E2EC-1E2EF 1E4EC-1E4EF 1E5EE-1E5EF"""
COMMAND = "// Made by tools/make_unicode_table.py from Unicode %s; do not edit.\n" % VERSION


def code_points(ranges):
    out = set()
    for part in ranges.split():
        first, _, last = part.partition("-")
        out.update(range(int(first, 16), int(last or first, 16) + 1))
    return out


NEWER = code_points(NEWER_THAN_COMPOSITION)


def combining(cp):
    return 0 if cp in NEWER or 0xD800 <= cp < 0xE000 else ud.combining(chr(cp))


def canonical(cp):
    """The one-step canonical decomposition as a list of code points; empty when there is none."""
    text = "" if cp in NEWER else ud.decomposition(chr(cp))
    return [] if not text or text.startswith("<") else [int(part, 16) for part in text.split()]


def composes(cp, parts):
    """Whether canonical composition makes `cp` out of its two parts (it is not excluded)."""
    return len(parts) == 2 and ud.normalize("NFC", "".join(map(chr, parts))) == chr(cp)


def char_class(cp, second_parts):
    char = chr(cp)
    category = ud.category(char)
    kind = SPACE if cp in WHITE_SPACE else LETTER if category[0] == "L" else NUMBER if category[0] == "N" else 0
    changes = combining(cp) != 0 or cp in second_parts or (canonical(cp) and ud.normalize("NFC", char) != char)
    return kind | (NFC if changes else 0) | (NEWER_NUMBER if cp in NUMBERS_SINCE_17 else 0)


def runs(values):
    """(first code point, value) of each run of equal values."""
    out = []
    for cp, value in enumerate(values):
        if not out or out[-1][1] != value:
            out.append((cp, value))
    return out


def rows(items, per_line):
    lines = []
    for i in range(0, len(items), per_line):
        lines.append("    " + ", ".join(items[i : i + per_line]) + ",\n")
    return "".join(lines)


def class_file(decompositions):
    second_parts = {parts[1] for cp, parts in decompositions if composes(cp, parts)}
    second_parts |= set(range(0x1161, 0x1176)) | set(range(0x11A8, 0x11C3))  # Hangul vowels and trailing consonants
    table = runs([char_class(cp, second_parts) for cp in range(LAST + 1)])
    return (
        COMMAND
        + "// {first code point, class of it and of all up to the next row}: 0 other, 1 letter, 2 number, 3 white space,\n"
        + "// +4 when canonical composition may change the character or its neighbours; +8 for a number since Unicode 17.0.\n"
        + "constexpr ClassRun kClassRuns[] = {\n"
        + rows(["{0x%X, %d}" % row for row in table], 8)
        + "};\n"
    )


def nfc_file(decompositions):
    entries = []
    for cp, parts in decompositions:
        second = parts[1] if len(parts) == 2 else 0
        entries.append("{0x%X, 0x%X, 0x%X, %d}" % (cp, parts[0], second, composes(cp, parts)))
    marks = runs([combining(cp) for cp in range(LAST + 1)])
    return (
        COMMAND
        + "// {code point, first, second or 0, whether the two compose to it again}, ascending; without Hangul syllables.\n"
        + "constexpr Decomposition kDecompositions[] = {\n"
        + rows(entries, 4)
        + "};\n"
        + "// {first code point, canonical combining class of it and of all up to the next row}.\n"
        + "constexpr CombiningRun kCombiningRuns[] = {\n"
        + rows(["{0x%X, %d}" % row for row in marks], 8)
        + "};\n"
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true")
    check = parser.parse_args().check
    if ud.unidata_version != VERSION:
        sys.exit("unicodedata2 carries Unicode %s, expected %s" % (ud.unidata_version, VERSION))
    decompositions = [(cp, canonical(cp)) for cp in range(LAST + 1) if cp not in HANGUL and canonical(cp)]
    for name, text in (("unicode_class.inc", class_file(decompositions)), ("nfc.inc", nfc_file(decompositions))):
        path = ROOT / "src" / "text" / name
        if not check:
            path.write_text(text)
        elif path.read_text() != text:
            sys.exit("%s differs from what Unicode %s gives" % (path, VERSION))
        print(name, len(text), "bytes")


if __name__ == "__main__":
    main()
