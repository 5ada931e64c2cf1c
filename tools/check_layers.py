#!/usr/bin/env python3
"""Fails on an #include that the layers forbid. Usage: tools/check_layers.py [TREE]

A file of src/<folder> may include its own folder and those that cmake/layers.cmake lists for it. A header that another
folder (other than cli, which wires everything) includes, directly or through a header of the same folder, is public:
it may include base and its own folder only.
"""
import pathlib
import re

import source_tree


def allowed_folders(root):
    """{folder: folders it may include}, from cmake/layers.cmake."""
    text = re.sub(r"#[^\n]*", "", pathlib.Path(root, "cmake/layers.cmake").read_text(encoding="utf-8"))
    allowed = {}
    for arguments in re.findall(r"cachalot_library\(([^)]*)\)", text):
        words = arguments.split()
        needs = words[words.index("NEEDS") + 1:] if "NEEDS" in words else []
        if "LINK" in needs:
            needs = needs[:needs.index("LINK")]
        allowed[words[0]] = {words[0], *needs}
    return allowed


def public_headers(include_lists):
    """The headers that a folder other than their own and cli reaches."""
    public = {path for path_from, found in include_lists.items() for _, path in found
              if path_from.parts[0] not in ("cli", pathlib.Path(path).parts[0])}
    waiting = list(public)
    while waiting:
        header = pathlib.Path(waiting.pop())
        for _, path in include_lists.get(header, []):
            if pathlib.Path(path).parts[0] == header.parts[0] and path not in public:
                public.add(path)
                waiting.append(path)
    return public


def problems(root):
    allowed = allowed_folders(root)
    include_lists = {path: source_tree.includes(source_tree.read(root, path))
                     for path in source_tree.files(root, {".h", ".cc", ".inc"})}
    public = public_headers(include_lists)
    for path, found in include_lists.items():
        folder = path.parts[0]
        if folder not in allowed:
            yield f"src/{path}:1: folder {folder} is not in cmake/layers.cmake"
            continue
        for line, included in found:
            target = pathlib.Path(included).parts[0]
            if len(pathlib.Path(included).parts) < 2:
                yield f'src/{path}:{line}: "{included}" must be named from src/, with its folder'
            elif target not in allowed[folder]:
                yield f"src/{path}:{line}: {folder} may not include {target}"
            elif str(path) in public and folder != "cli" and target not in ("base", folder):
                yield f"src/{path}:{line}: a public header may include base and {folder} only, not {target}"


if __name__ == "__main__":
    source_tree.report(list(problems(source_tree.root_from_arguments())))
