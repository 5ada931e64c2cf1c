#!/usr/bin/env python3
"""Fails on files and functions that have grown too large. Usage: tools/check_sizes.py [TREE]

Limits: .h 400 lines, .cc 600, tests and benches 800; functions 80 lines and 6 parameters. Functions are found by their
braces, without a full parser; generated .inc files and the lines of raw strings do not count.
"""
import re

import source_tree

LINES = {"header": 400, "source": 600, "test": 800}
FUNCTION_LINES = 80
PARAMETERS = 6

TYPE = re.compile(r"\b(namespace|class|struct|union|enum|extern)\b")
CONTROL = re.compile(r"^\s*(else\s+)?(if|for|while|switch|do|try|catch|else)\b")


def line_limit(path):
    if source_tree.is_test(path):
        return LINES["test"]
    return LINES["header" if path.suffix == ".h" else "source"]


def parameter_list(head):
    """The text of the first balanced (...) that follows a name, or None."""
    start = re.search(r"[\w>\]]\s*\(|operator\(\)\s*\(", head)
    if not start:
        return None
    depth, begin = 0, start.end()
    for i in range(begin - 1, len(head)):
        depth += (head[i] == "(") - (head[i] == ")")
        if depth == 0:
            return head[begin:i]
    return None


def count_parameters(text):
    """Commas outside of any bracket, plus one."""
    depth, commas = 0, 0
    for c in text:
        depth += (c in "([{<") - (c in ")]}>")
        commas += c == "," and depth == 0
    return commas + 1 if text.strip() else 0


def opens_function(head):
    """Whether the `{` after this text (from the last ; { or }) begins a function's body."""
    if parameter_list(head) is None or CONTROL.match(head) or re.search(r"=\s*$", head):
        return False
    before_parameters = head[:head.index("(")]
    if TYPE.search(before_parameters) and not re.search(r"\boperator\b", head) and ")" not in head:
        return False
    # In `: member_{1}` the brace belongs to an initializer.
    initializers = re.search(r"\)[^():]*:(?!:)(.*)$", head, re.DOTALL)
    return not (initializers and re.search(r"[\w>]\s*$", initializers.group(1)))


def functions(code):
    """(line, name, lines, parameters) of each outermost function body."""
    stack, head_begin, inside = [], 0, None
    for i, c in enumerate(code):
        if c == "{":
            head = re.sub(r"^\s*#[^\n]*$", "", code[head_begin:i], flags=re.MULTILINE)
            body = inside is None and opens_function(head)
            if body:
                text = head.lstrip()
                inside = (len(stack), i - len(text) if text else i, text)
            stack.append(c)
            head_begin = i + 1 if inside is None else head_begin
        elif c == "}" and stack:
            stack.pop()
            if inside is not None and inside[0] == len(stack):
                _, begin, text = inside
                first = code.count("\n", 0, max(begin, 0)) + 1
                last = code.count("\n", 0, i) + 1 - code.count(source_tree.RAW_LINE, begin, i)
                name = re.search(r"([~\w:]+|operator\S+)\s*\(", text)
                yield first, name.group(1) if name else "?", last - first + 1, count_parameters(parameter_list(text))
                inside = None
            if inside is None:
                head_begin = i + 1
        elif c == ";" and inside is None:
            head_begin = i + 1


def problems(root):
    for path in source_tree.files(root):
        text = source_tree.read(root, path)
        lines = text.count("\n")
        if lines > line_limit(path):
            yield f"src/{path}:1: {lines} lines; at most {line_limit(path)}"
        for line, name, length, parameters in functions(source_tree.code_only(text)):
            if length > FUNCTION_LINES:
                yield f"src/{path}:{line}: {name} has {length} lines; at most {FUNCTION_LINES}"
            if parameters > PARAMETERS and not source_tree.is_test(path):
                yield f"src/{path}:{line}: {name} has {parameters} parameters; at most {PARAMETERS}"


if __name__ == "__main__":
    source_tree.report(list(problems(source_tree.root_from_arguments())))
