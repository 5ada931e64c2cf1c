#!/usr/bin/env python3
"""Counts the instructions of key kernels under callgrind and compares them with recorded ones.

    bench/check_instructions.py build/release/kernel_cases            # ./cachalot.sh bench-check builds and runs this
    bench/check_instructions.py --record build/release/kernel_cases   # after a change that is meant

Time on a shared machine says little; instructions are the same on every run. Callgrind knows AVX2 but not AVX-512, so the
scalar and the AVX2 kernels are counted. A kernel with over 3 % more instructions than recorded fails, and so does one
that is not recorded; one with fewer is named, so that the record can follow. The figures are those of Debian 12's g++.
"""

import argparse
import re
import subprocess
import sys
import tempfile
from pathlib import Path

RECORD = Path(__file__).resolve().parent / "instruction_counts.txt"
TABLES = ("scalar", "avx2")
TOLERANCE = 0.03
HEADING = "# Instructions of key kernels (bench/kernel_cases.cc): instruction set, kernel, count. Written by\n" \
          "# bench/check_instructions.py --record.\n"


def counted(program, tables):
    """{"isa kernel": instructions}: callgrind writes one file after each case."""
    with tempfile.TemporaryDirectory() as folder:
        command = ["valgrind", "--tool=callgrind", "--zero-before=CachalotCountedCase"]
        command += ["--dump-after=CachalotCountedCase", f"--callgrind-out-file={folder}/out", program, *tables]
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        if done.returncode:
            sys.exit(f"{' '.join(map(str, command))}:\n{done.stderr}")
        names = done.stdout.splitlines()
        counts = {}
        for number, name in enumerate(names, start=1):
            text = Path(folder, f"out.{number}").read_text()
            counts[name] = int(re.search(r"^(?:totals|summary): (\d+)", text, re.MULTILINE).group(1))
        return counts


def recorded():
    lines = RECORD.read_text().splitlines() if RECORD.exists() else []
    pairs = (line.rsplit(" ", 1) for line in lines if line and not line.startswith("#"))
    return {name: int(count) for name, count in pairs}


def tables_here():
    flags = Path("/proc/cpuinfo").read_text()
    return TABLES if " avx2 " in flags else TABLES[:1]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("program", type=Path, help="the built kernel_cases")
    parser.add_argument("--record", action="store_true", help="write the counts instead of comparing them")
    arguments = parser.parse_args()
    tables = tables_here()
    if tables != TABLES:
        print("this processor has no AVX2: only the scalar kernels are counted", file=sys.stderr)
    counts = counted(arguments.program.resolve(), tables)
    if arguments.record:
        RECORD.write_text(HEADING + "".join(f"{name} {count}\n" for name, count in counts.items()))
        print(f"{len(counts)} kernels recorded in {RECORD}")
        return
    known = {name: count for name, count in recorded().items() if name.split()[0] in tables}
    problems = [f"{name}: recorded, but not counted" for name in known if name not in counts]
    fewer = []
    for name, count in counts.items():
        if name not in known:
            problems.append(f"{name}: {count}, not recorded")
        elif count > known[name] * (1 + TOLERANCE):
            problems.append(f"{name}: {count}, {100 * (count / known[name] - 1):.1f} % more than {known[name]}")
        elif count < known[name] * (1 - TOLERANCE):
            fewer.append(f"{name}: {count}, {100 * (1 - count / known[name]):.1f} % fewer than {known[name]}")
    for line in fewer:
        print(f"fewer  {line}")
    for line in problems:
        print(f"MORE   {line}")
    print(f"{len(counts)} kernels counted, {len(problems)} problems, {len(fewer)} with fewer instructions than recorded")
    if problems or fewer:
        print("A change that is meant: bench/check_instructions.py --record, and say why in the commit.")
    sys.exit(1 if problems else 0)


if __name__ == "__main__":
    main()
