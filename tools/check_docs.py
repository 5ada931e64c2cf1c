"""Checks that the functions that docs/one_request.md names exist in the sources.

usage: check_docs.py [ROOT]      a name counts when it stands in backquotes with (), as in `Step()`
"""
import pathlib
import re
import sys


def missing_functions(root):
    text = (root / "docs" / "one_request.md").read_text(encoding="utf-8")
    names = set(re.findall(r"`(\w+)\(\)`", text))
    sources = "\n".join(p.read_text(encoding="utf-8") for p in (root / "src").rglob("*.h"))
    return names, sorted(n for n in names if not re.search(rf"\b{n}\(", sources))


def main():
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ".")
    names, missing = missing_functions(root)
    for name in missing:
        print(f"docs/one_request.md names {name}(), which no header declares")
    if len(names) < 10:
        print("docs/one_request.md names hardly any function: is the pattern still right?")
        return 1
    return 1 if missing else 0


if __name__ == "__main__":
    sys.exit(main())
