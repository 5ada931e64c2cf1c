#!/usr/bin/env python3
"""Writes src/text/jinja_unicode_tables.inc: the character classes and case mappings of Python's str.

Run: python3 tools/make_jinja_unicode_tables.py > src/text/jinja_unicode_tables.inc
The Unicode version is that of the Python which runs it (3.11: Unicode 14) and is noted in the file.
"""
import unicodedata

CHARS = [chr(i) for i in range(0x110000)]


def is_scalar(c):
    return not 0xD800 <= ord(c) <= 0xDFFF


def runs(points, key=lambda p: None):
    """Greedy runs (first, last, stride) of stride 1 or 2 in which key is constant."""
    out, i = [], 0
    while i < len(points):
        best = (i, 1)
        for stride in (1, 2):
            k = i
            while (k + 1 < len(points) and points[k + 1] - points[k] == stride
                   and key(points[k + 1]) == key(points[i])):
                k += 1
            if k > best[0]:
                best = (k, stride)
        out.append((points[i], points[best[0]], best[1]))
        i = best[0] + 1
    return out


def emit(kind, name, items):
    print(f"constexpr {kind} {name}[] = {{")
    line = "   "
    for item in items:
        if len(line) + len(item) + 2 > 118:
            print(line)
            line = "   "
        line += " " + item + ","
    print(line)
    print("};")


def emit_class(name, predicate):
    points = [ord(c) for c in CHARS if predicate(c)]
    emit("CodeRun", name, ["{0x%x,0x%x,%d}" % r for r in runs(points)])


def emit_mapping(name, function):
    simple, full = {}, []
    for c in CHARS:
        mapped = function(c)
        if mapped == c:
            continue
        if len(mapped) == 1:
            simple[ord(c)] = ord(mapped) - ord(c)
        else:
            full.append((ord(c), [ord(m) for m in mapped]))
    items = [(*r, simple[r[0]]) for r in runs(sorted(simple), simple.get)]
    emit("CaseRun", f"k{name}Runs", ["{0x%x,0x%x,%d,%d}" % i for i in items])
    emit("CaseFull", f"k{name}Full",
         ["{0x%x,{%s}}" % (c, ",".join("0x%x" % m for m in (ms + [0])[:3])) for c, ms in full])


def is_case_ignorable(c):
    # Python shows the property only through its rule for a final capital sigma.
    return is_scalar(c) and ("A" + c + "\u03a3").lower()[-1] == "\u03c2" and ("1" + c + "\u03a3").lower()[-1] == "\u03c3"


def main():
    print("// Made by tools/make_jinja_unicode_tables.py with Unicode", unicodedata.unidata_version)
    emit_class("kAlpha", str.isalpha)
    emit_class("kDecimal", str.isdecimal)
    emit_class("kDigitNotDecimal", lambda c: c.isdigit() and not c.isdecimal())
    emit_class("kNumericNotDigit", lambda c: c.isnumeric() and not c.isdigit())
    emit_class("kLower", str.islower)
    emit_class("kUpper", str.isupper)
    emit_class("kTitle", lambda c: unicodedata.category(c) == "Lt")
    emit_class("kNotPrintable", lambda c: is_scalar(c) and not c.isprintable())
    emit_class("kCaseIgnorable", is_case_ignorable)
    emit_class("kIdStartDiffersFromAlpha", lambda c: c.isidentifier() != c.isalpha())
    emit_class("kIdContinueDiffersFromAlnum", lambda c: ("a" + c).isidentifier() != c.isalnum())
    emit_mapping("ToUpper", str.upper)
    emit_mapping("ToLower", str.lower)
    emit_mapping("ToTitle", str.title)
    emit_mapping("FoldCase", str.casefold)


if __name__ == "__main__":
    main()
