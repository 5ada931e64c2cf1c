#!/usr/bin/env python3
"""Shows that the checks of this folder find what they are for: each runs on a small tree with one fault in it."""
import pathlib
import subprocess
import tempfile
import unittest

import check_contracts
import check_forbidden
import check_layers
import check_sizes

LAYERS = """
cachalot_library(base LINK fmt::fmt)
cachalot_library(kv NEEDS base)
cachalot_library(exec NEEDS base kv)   # a comment with cachalot_library(tier NEEDS all)
cachalot_library(engine NEEDS base exec LINK x::y)
cachalot_library(cli NEEDS base kv exec engine)
"""


class CheckTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.root = pathlib.Path(self.folder.name)
        self.put("cmake/layers.cmake", LAYERS)

    def put(self, path, text):
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")

    def found(self, check):
        return list(check.problems(self.root))

    def expect_one(self, check, start):
        found = self.found(check)
        self.assertEqual(len(found), 1, found)
        self.assertTrue(found[0].startswith(start), found)


class Layers(CheckTest):
    def test_allowed_includes_pass(self):
        self.put("src/base/a.h", '#include <vector>\n#include "base/b.h"\n')
        self.put("src/kv/pool.cc", '#include "kv/pool.h"\n#include "base/a.h"\n')
        self.put("src/exec/run.cc", '#include "kv/pool.h"\n')
        self.assertEqual(self.found(check_layers), [])

    def test_an_upward_include_is_found(self):
        self.put("src/kv/pool.cc", '// pool\n  #  include "exec/run.h"\n')
        self.expect_one(check_layers, "src/kv/pool.cc:2: kv may not include exec")

    def test_words_after_link_are_no_folders(self):
        self.put("src/base/a.cc", '#include "fmt::fmt/x.h"\n')
        self.expect_one(check_layers, "src/base/a.cc:1: base may not include")

    def test_an_unlisted_folder_is_found(self):
        self.put("src/extra/a.cc", "\n")
        self.expect_one(check_layers, "src/extra/a.cc:1: folder extra")

    def test_an_include_without_folder_is_found(self):
        self.put("src/kv/pool.cc", '#include "pool.h"\n')
        self.expect_one(check_layers, "src/kv/pool.cc:1:")

    def test_a_public_header_may_not_show_another_folder(self):
        self.put("src/exec/run.h", '#include "exec/detail.h"\n')
        self.put("src/exec/detail.h", '#include "kv/pool.h"\n')
        self.put("src/engine/step.cc", '#include "exec/run.h"\n')
        self.expect_one(check_layers, "src/exec/detail.h:1: a public header")

    def test_a_private_header_may(self):
        self.put("src/exec/detail.h", '#include "kv/pool.h"\n')
        self.put("src/exec/run.cc", '#include "exec/detail.h"\n')
        self.put("src/cli/main.cc", '#include "exec/detail.h"\n')
        self.assertEqual(self.found(check_layers), [])


class Sizes(CheckTest):
    def test_small_files_pass(self):
        self.put("src/kv/a.cc", "namespace n {\nint F(int a) {\n  return a;\n}\n}\n")
        self.assertEqual(self.found(check_sizes), [])

    def test_long_files_are_found_by_kind(self):
        self.put("src/kv/a.h", "\n" * 401)
        self.put("src/kv/b.h", "\n" * 400)
        self.put("src/kv/a.cc", "\n" * 601)
        self.put("src/kv/a_test.cc", "\n" * 800)
        self.put("src/kv/b_test.cc", "\n" * 801)
        self.assertEqual([p.split(":")[0] for p in self.found(check_sizes)],
                         ["src/kv/a.cc", "src/kv/a.h", "src/kv/b_test.cc"])

    def test_a_long_function_is_found_whatever_surrounds_it(self):
        body = "  if (x) {\n    y();\n  }\n" * 27  # 81 lines
        for head in ["void F() {", "A::A(int x) : x_{x}, y_(2) {", "class C {\n public:\n  int f() const override {",
                     "template <class T>\nauto G(T t) -> std::vector<int> {", "bool operator()(int a) const noexcept {"]:
            with self.subTest(head):
                self.put("src/kv/a.cc", "namespace n {\n" + head + "\n" + body + "}\n" + "}\n")
                found = self.found(check_sizes)
                self.assertEqual(len(found), 1, found)
                self.assertIn("lines; at most 80", found[0])

    def test_lines_of_raw_strings_and_tables_do_not_count(self):
        self.put("src/kv/a.cc", 'void F() {\n  g(R"(' + "{\n" * 100 + ')");\n}\nint kTable[] = {\n' + "1,\n" * 100 + "};\n")
        self.assertEqual(self.found(check_sizes), [])

    def test_too_many_parameters_are_found(self):
        self.put("src/kv/a.cc", "int F(int a, std::map<int, int> b, int c, int d, int e, int f) {\n}\n"
                 "int G(int a, int b, int c, int d, int e, int f, int g) {\n}\n")
        self.expect_one(check_sizes, "src/kv/a.cc:3: G has 7 parameters")


class Forbidden(CheckTest):
    def test_each_forbidden_name_is_found(self):
        for line in ["auto x = getenv(\"A\");", "int f = ::open(path, 0);", "FILE* f = fopen(p, m);", "int r = rand();",
                     "auto t = std::chrono::steady_clock::now();", "co_await x;", "#include <regex>", "throw 1;",
                     "std::this_thread::sleep_for(d);", "std::mutex m;", "std::ifstream in(path);",
                     "friend class PoolTest;", "#include <gtest/gtest.h>", "t = time(nullptr);"]:
            with self.subTest(line):
                self.put("src/kv/a.cc", "\n" + line + "\n")
                self.expect_one(check_forbidden, "src/kv/a.cc:2: ")

    def test_comments_strings_and_other_words_pass(self):
        self.put("src/kv/a.cc", '// getenv("A")\nauto s = "rand()"; file.open(); Reopen(); '
                 "runtime(0); /* throw */\n")
        self.assertEqual(self.found(check_forbidden), [])

    def test_base_may_in_the_one_file(self):
        self.put("src/base/file.cc", "int f = ::open(path, 0);\n")
        self.assertEqual(self.found(check_forbidden), [])
        self.put("src/base/json.cc", "int f = ::open(path, 0);\n")
        self.expect_one(check_forbidden, "src/base/json.cc:1: ")

    def test_tests_may_use_test_libraries(self):
        self.put("src/kv/a_test.cc", "#include <gtest/gtest.h>\n")
        self.assertEqual(self.found(check_forbidden), [])

    def test_heavy_headers_stay_out_of_headers(self):
        self.put("src/kv/a.h", "#include <iostream>\n")
        self.expect_one(check_forbidden, "src/kv/a.h:1: ")

    def test_build_files_may_not_tie_the_build_to_one_machine(self):
        self.put("CMakeLists.txt", "add_compile_options(-march=native)\n")
        self.expect_one(check_forbidden, "CMakeLists.txt:1: -march=native")


class Contracts(CheckTest):
    LINES = ["// A is a.", "// Threads:   one.", "// Ownership: none.", "// Invariant: none.", "// Cost:      none."]

    def test_a_contract_passes(self):
        self.put("src/kv/a.h", "\n".join([*self.LINES, "#pragma once", ""]))
        self.assertEqual(self.found(check_contracts), [])

    def test_lines_that_were_joined_are_found(self):
        self.put("src/kv/a.h", "\n".join([*self.LINES[:3], self.LINES[3] + self.LINES[4][2:], "#pragma once", ""]))
        self.expect_one(check_contracts, 'src/kv/a.h:1: no line before #pragma once begins with "// Cost:')


class KernelSymbols(CheckTest):
    def run_on(self, code):
        self.put("x_avx2.cc", code)
        subprocess.run(["c++", "-O0", "-c", "x_avx2.cc", "-o", "x_avx2.cc.o"], cwd=self.root, check=True)
        script = pathlib.Path(__file__).resolve().parent / "check_kernel_symbols.sh"
        return subprocess.run([script, self.root], capture_output=True, text=True, check=False)

    def test_static_functions_pass(self):
        self.assertEqual(self.run_on("static int f() { return 1; }\nint g() { return f(); }\n").returncode, 0)

    def test_an_inline_function_is_found(self):
        result = self.run_on("inline int f() { return 1; }\nint g() { return f(); }\n")
        self.assertEqual(result.returncode, 1)
        self.assertIn("W f()", result.stdout)


if __name__ == "__main__":
    unittest.main()
