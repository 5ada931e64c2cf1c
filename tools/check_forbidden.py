#!/usr/bin/env python3
"""Fails on names that the house rules keep out of the sources or in one place. Usage: tools/check_forbidden.py [TREE]"""
import pathlib
import re

import source_tree

# (pattern, files of src/base that may, whether tests may, reason)
RULES = [
    (r"\b(secure_)?getenv\s*\(", {"file.cc"}, False, "read the environment with GetEnv (base/file.h)"),
    (r"(?<![\w.>])(::)?(open|openat|creat)\s*\(|\bf(re|d)?open\s*\(", {"file.cc", "file_lock.cc", "file_system.cc", "subprocess.cc"}, False,
     "open files through base/file.h"),
    (r"\bstd::[io]?fstream\b", set(), True, "open files through base/file.h"),
    (r"(?<![\w.>])(::|std::)?s?rand\s*\(|\brandom_device\b", set(), False, "random numbers are functions: base/random.h"),
    (r"\b(steady|system|high_resolution)_clock::now\b|(?<![\w.>:])(std::|::)?time\s*\(\s*(nullptr|NULL|0|&)|\bclock_gettime\b|\bgettimeofday\b",
     {"clock.cc"}, False, "time comes from a Clock (base/clock.h)"),
    (r"\bsleep_(for|until)\b|\b(u|nano)sleep\s*\(", {"clock.cc", "subprocess.cc"}, False, "nothing sleeps: wait for an event"),
    (r"\bco_(await|yield|return)\b", set(), False, "no coroutines: g++ 12 miscompiles them"),
    (r"#\s*include\s*<regex>", set(), False, "no <regex>"),
    (r"\bthrow\b(?!\s*\()", set(), False, "our code throws nothing: return a Status"),
    (r"\bstd::async\b|\bpthread_cancel\b|\bstd::thread\s*\([^)]*\)\s*\.detach|\.detach\s*\(\)", set(), False,
     "threads are joined by their owner"),
    (r"\bFRIEND_TEST\b|\bfriend\s+class\s+\w*Test\b|\bForTest(ing)?\b", set(), False, "tests use snapshots, not friends"),
    (r"\bstd::mutex\b|\bstd::condition_variable\b|\bstd::lock_guard\b", {"mutex.h"}, True, "use base/mutex.h: it is annotated"),
]
HEADER_RULES = [
    (r"#\s*include\s*<(iostream|regex|gtest/|gmock/|nlohmann/|spdlog/|prometheus/|simdjson|CLI/)", "not in a header"),
    (r"\busing\s+namespace\b", "not in a header"),
]
PRODUCT_RULES = [
    (r"#\s*include\s*<(gtest|gmock|nlohmann|benchmark)/|\btesting::", "test libraries stay in tests"),
]
# Text that must not stand in any build file.
BUILD_RULES = [
    (r"-march=native|-mtune=native|-ffast-math|-Ofast", "one build runs on every machine and gives the same bits"),
]


def matches(path, text, rules):
    for pattern, reason in rules:
        for found in re.finditer(pattern, text):
            yield f"{path}:{text.count(chr(10), 0, found.start()) + 1}: {found.group().strip()}: {reason}"


def source_problems(root, path):
    code = source_tree.code_only(source_tree.read(root, path))
    rules = [(pattern, reason) for pattern, base_files, tests_may, reason in RULES
             if not (path.parts[0] == "base" and path.name in base_files) and not (tests_may and source_tree.is_test(path))]
    if path.suffix == ".h" and not source_tree.is_test(path):
        rules += HEADER_RULES
    if not source_tree.is_test(path):
        rules += PRODUCT_RULES
    return matches(f"src/{path}", code, rules)


def build_problems(root):
    candidates = [root / "CMakeLists.txt", root / "CMakePresets.json", root / "cachalot.sh"]
    candidates += sorted((root / "cmake").glob("*.cmake"))
    for file in candidates:
        if file.exists():
            yield from matches(file.relative_to(root), file.read_text(encoding="utf-8"), BUILD_RULES)


def problems(root):
    for path in source_tree.files(root):
        yield from source_problems(root, path)
    yield from build_problems(pathlib.Path(root))


if __name__ == "__main__":
    source_tree.report(list(problems(source_tree.root_from_arguments())))
