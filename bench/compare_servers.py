#!/usr/bin/env python3
"""Measures `cachalot serve` beside llama-server, and any other server that runs, under the same load, in Markdown.

    bench/compare_servers.py smollm2                       # all mixes, Cachalot and llama-server
    bench/compare_servers.py --mixes chat,rag --repetitions 1 smollm2
    bench/compare_servers.py --other vllm=http://127.0.0.1:8000 smollm2    # a third one, started by you
    bench/compare_servers.py --list                        # the mixes that there are

The load is `cachalot bench serve`, a function of its seed; runs of the servers alternate, each with a fresh server and
another seed per repetition, and medians are compared. Cachalot and llama-server get the same model file, threads and KV
for the same number of tokens. Needs nothing but Python; llama-server as bench/compare_llama.py obtains it.
"""

import argparse
import contextlib
import json
import os
import signal
import socket
import statistics
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

from compare_llama import install_llama, path_of, print_machine

ROOT = Path(__file__).resolve().parent.parent
SLOTS = 8  # requests at once; llama-server divides its KV among as many
CONTEXT = 4096  # tokens of the longest request
USUAL = ["--max-sequences", SLOTS, "--context", CONTEXT]

# What each mix stands for, the arguments of `cachalot bench serve`, and those of `cachalot serve` if they aren't the
# usual ones: a mix that has any is for Cachalot and its variants alone.
COMMON = ["--tokens-per-word", 1]
MIXES = {
    "chat": (
        "8 users, 4 turns each with 1 s of thought, one system prompt of 512 tokens, messages of 64, answers of 48",
        ["--clients", SLOTS, "--requests", 96, "--turns", 4, "--think-time", 1, "--prefixes", 1, "--ignore-eos"]
        + ["--prefix-tokens", 512, "--prompt-tokens", 64, "--max-tokens", 48],
        [],
    ),
    "rag": (
        "8 users, 6 documents of 1,024 tokens, questions of 48, answers of 32",
        ["--clients", SLOTS, "--requests", 64, "--prefixes", 6, "--prefix-tokens", 1024, "--ignore-eos"]
        + ["--prompt-tokens", 48, "--max-tokens", 32],
        [],
    ),
    "agent": (
        "8 agents, 8 turns each without a pause, one system prompt of 1,024 tokens, results of 96, answers of 24",
        ["--clients", SLOTS, "--requests", 128, "--turns", 8, "--prefixes", 1, "--prefix-tokens", 1024]
        + ["--ignore-eos", "--prompt-tokens", 96, "--max-tokens", 24],
        [],
    ),
    "unique": (
        "8 users, prompts of 512 tokens that share nothing, answers of 32",
        ["--clients", SLOTS, "--requests", 48, "--ignore-eos", "--prompt-tokens", 512, "--max-tokens", 32],
        [],
    ),
    "shared": (
        "one user, 32 requests on one prefix of 2,048 tokens: the first is computed (p99), the others hit (p50)",
        ["--clients", 1, "--requests", 32, "--prefixes", 1, "--prefix-tokens", 2048, "--ignore-eos"]
        + ["--prompt-tokens", 8, "--max-tokens", 4],
        [],
    ),
    "early": (
        "24 users that allow 1,024 tokens and get what the model wants to say, prompts of 128, 180 MiB of KV (Cachalot only)",
        ["--clients", 24, "--requests", 96, "--prompt-tokens", 128, "--max-tokens", 1024],
        ["--max-sequences", 24, "--context", 2048, "--kv-memory", "180MiB"],
    ),
}


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def answers(url):
    try:
        with urllib.request.urlopen(f"{url}/health", timeout=2) as answer:
            return answer.status == 200
    except OSError:
        return False


@contextlib.contextmanager
def running(command, url, environment, log):
    with open(log, "ab") as output:
        process = subprocess.Popen([str(word) for word in command], stdout=output, stderr=output, env=environment)
        try:
            for _ in range(600):
                if process.poll() is not None:
                    sys.exit(f"{command[0]} ended with {process.returncode}; see {log}")
                if answers(url):
                    break
                time.sleep(0.2)
            else:
                sys.exit(f"{command[0]} did not answer within two minutes; see {log}")
            yield
        finally:
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(30)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


class Cachalot:
    def __init__(self, name, path, model, threads, flags):
        self.name, self.path, self.model, self.threads, self.flags = name, path, model, threads, flags

    @contextlib.contextmanager
    def server(self, mix):
        port = free_port()
        url = f"http://127.0.0.1:{port}"
        command = [self.path, "serve", self.model, "--port", port, "--threads", self.threads]
        command += (MIXES[mix][2] or USUAL) + self.flags
        with running(command, url, dict(os.environ), "compare-servers-cachalot.log"):
            yield url


class LlamaServer:
    name = "llama-server"

    def __init__(self, folder, model, threads):
        self.folder, self.model, self.threads = folder, model, threads

    @contextlib.contextmanager
    def server(self, mix):
        port = free_port()
        url = f"http://127.0.0.1:{port}"
        command = [self.folder / "llama-server", "-m", self.model, "--port", port, "-t", self.threads, "-fa", "on"]
        command += ["-np", SLOTS, "-c", SLOTS * CONTEXT]
        environment = dict(os.environ, LD_LIBRARY_PATH=str(self.folder))
        with running(command, url, environment, "compare-servers-llama.log"):
            yield url


class Other:
    """A server that the caller started: it keeps its cache from run to run, so each gets another seed."""

    def __init__(self, text):
        self.name, _, self.url = text.partition("=")

    @contextlib.contextmanager
    def server(self, mix):
        yield self.url


def load(cachalot, url, mix, seed):
    command = [cachalot, "bench", "serve", "--url", url, "--seed", seed, "--json"] + COMMON + MIXES[mix][1]
    done = subprocess.run([str(word) for word in command], stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(done.stdout)


def figures_of(report):
    ttft, tokens = report["ttft_ms"], report["tokens"]
    return {
        "seconds": report["seconds"],
        "TTFT p50, ms": ttft["p50"],
        "TTFT p99, ms": ttft["p99"],
        "cached": (tokens["cached"] or 0) / max(tokens["prompt"], 1),
        "tokens/s": tokens["output"] / report["seconds"],
        "failed": report["requests"]["failed"],
    }


def print_mix(cachalot, servers, mix, repetitions):
    print(f"\n### {mix}: {MIXES[mix][0]}\n")
    if MIXES[mix][2]:
        servers = [server for server in servers if isinstance(server, Cachalot)]
    results = {server.name: [] for server in servers}
    for repetition in range(repetitions):
        for server in servers:
            with server.server(mix) as url:
                results[server.name].append(figures_of(load(cachalot, url, mix, 1 + repetition)))
    names = list(next(iter(results.values()))[0])
    print("| server | " + " | ".join(names) + " | time, TTFT p99 beside the first |")
    print("| --- |" + " ---: |" * (len(names) + 1))
    median = {
        name: {key: statistics.median(run[key] for run in runs) for key in names} for name, runs in results.items()
    }
    first = median[servers[0].name]
    for name, figures in median.items():
        cells = [f"{100 * figures[key]:.0f} %" if key == "cached" else f"{figures[key]:.4g}" for key in names]
        times = figures["seconds"] / first["seconds"], figures["TTFT p99, ms"] / first["TTFT p99, ms"]
        print(f"| {name} | " + " | ".join(cells) + f" | {times[0]:.2f}×, {times[1]:.2f}× |", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("model", nargs="?", default="smollm2", help="path or catalogue name")
    parser.add_argument("--cachalot", type=Path, default=ROOT / "build" / "release" / "cachalot")
    parser.add_argument("--llama-bin", type=Path, help="folder of llama.cpp's tools and libraries")
    parser.add_argument("--without-llama", action="store_true")
    parser.add_argument("--other", action="append", default=[], help="NAME=URL of a server that runs already")
    parser.add_argument("--variant", action="append", default=[], help="NAME=FLAGS: Cachalot once more, with flags")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--repetitions", type=int, default=3)
    parser.add_argument("--mixes", default=",".join(MIXES))
    parser.add_argument("--list", action="store_true", help="name the mixes and end")
    arguments = parser.parse_args()
    if arguments.list:
        for name, (text, *_) in MIXES.items():
            print(f"{name:8} {text}")
        return
    mixes = arguments.mixes.split(",")
    if unknown := set(mixes) - set(MIXES):
        parser.error(f"--mixes: unknown {', '.join(sorted(unknown))}; there are {', '.join(MIXES)}")
    model = path_of(arguments.model, arguments.cachalot)
    servers = [Cachalot("Cachalot", arguments.cachalot, model, arguments.threads, [])]
    for variant in arguments.variant:
        name, _, flags = variant.partition("=")
        servers.append(Cachalot(name, arguments.cachalot, model, arguments.threads, flags.split()))
    if not arguments.without_llama:
        servers.append(LlamaServer(arguments.llama_bin or install_llama(), model, arguments.threads))
    servers += [Other(text) for text in arguments.other]
    print_machine()
    for mix in mixes:
        print_mix(arguments.cachalot, servers, mix, arguments.repetitions)


if __name__ == "__main__":
    main()
