"""What the checks share: the files of src/, their includes, their text without comments and strings, and reporting."""
import pathlib
import re
import sys

SUFFIXES = {".h", ".cc"}
# Comments, raw strings, strings, characters. A digit separator (1'000) is no character.
LEXEMES = re.compile(
    r'//[^\n]*|/\*.*?\*/|R"(?P<d>[^\s()\\]{0,16})\(.*?\)(?P=d)"|"(?:\\.|[^"\\\n])*"|(?<![0-9a-fA-F])\'(?:\\.|[^\'\\\n])+\'',
    re.DOTALL)
INCLUDE = re.compile(r'^\s*#\s*include\s*"([^"]+)"', re.MULTILINE)


def files(root, suffixes=frozenset(SUFFIXES)):
    """The files under root/src with these suffixes, sorted, as paths relative to root/src."""
    src = pathlib.Path(root, "src")
    return sorted(p.relative_to(src) for p in src.rglob("*") if p.suffix in suffixes and p.is_file())


def read(root, path):
    return pathlib.Path(root, "src", path).read_text(encoding="utf-8")


def includes(text):
    """(line, path) of each quoted include."""
    return [(text.count("\n", 0, m.start(1)) + 1, m.group(1)) for m in INCLUDE.finditer(text)]


RAW_LINE = "\v"  # stands on each line that a raw string continues on


def code_only(text):
    """The text with comments, strings and characters blanked; line breaks stay."""
    def blank(match):
        lexeme = match.group()
        line_breaks = lexeme.count("\n")
        if lexeme[0] == "/":
            return " " + "\n" * line_breaks
        return '""' + ("\n" + RAW_LINE) * line_breaks
    return LEXEMES.sub(blank, text)


def is_test(path):
    name = path.name
    return name.endswith(("_test.cc", "_bench.cc")) or "testing" in path.parts


def root_from_arguments():
    """The tree to check: the first argument, or the one that this file is in."""
    return pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else pathlib.Path(__file__).resolve().parent.parent


def report(problems):
    for problem in problems:
        print(problem)
    sys.exit(1 if problems else 0)
