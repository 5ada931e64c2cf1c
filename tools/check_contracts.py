#!/usr/bin/env python3
"""Fails on a header that does not begin with its contract, a line or more each. Usage: tools/check_contracts.py [TREE]

A formatter joins lines of a comment when one of them is too long: the contract is then there, and can't be read."""
import source_tree

KEYS = ("Threads:   ", "Ownership: ", "Invariant: ", "Cost:      ")


def problems(root):
    for path in source_tree.files(root, {".h"}):
        contract = "\n" + source_tree.read(root, path).partition("#pragma once")[0]
        for key in KEYS:
            if f"\n// {key}" not in contract:
                yield f'src/{path}:1: no line before #pragma once begins with "// {key}"'


if __name__ == "__main__":
    source_tree.report(list(problems(source_tree.root_from_arguments())))
