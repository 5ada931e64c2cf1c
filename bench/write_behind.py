#!/usr/bin/env python3
"""Measures what writing KV to disk costs those who decode meanwhile, in Markdown.

    bench/write_behind.py smollm2:2000        # model:tokens of each prompt whose KV is written
    bench/write_behind.py --restarts 5 --threads 1 smollm2:2000

Two servers that run at once and are asked by turns, one with a disk tier and one without: each is asked a prompt that
is new, whose KV is then written behind, and at once something short, whose tokens are counted until its last. Of each
round the ratio counts, of those tokens and of the whole. Needs nothing but Python.
"""

import argparse
import contextlib
import http.client
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time

from resume import ask, on_disk, serve
from server import ROOT

WORDS = "sea whale net salt harbour storm anchor rope crew deck wave gull mast tide keel fog bell chart".split()


def decode_rate(server, tokens):
    """Tokens a second of one answer, from its first token on."""
    connection = http.client.HTTPConnection(server.url.removeprefix("http://"), timeout=600)
    body = {"prompt": "Once upon a time", "max_tokens": tokens, "temperature": 0, "ignore_eos": True, "stream": True}
    connection.request("POST", "/v1/completions", json.dumps(body), {"Content-Type": "application/json"})
    response = connection.getresponse()
    if response.status != 200:
        sys.exit(f"{response.status}: {response.read().decode()}")
    times = [time.perf_counter() for line in response if line.startswith(b"data: {")]
    return (len(times) - 1) / (times[-1] - times[0])


def stored(server):
    return server.get("/v1/kv")["disk"]["stored_bytes"]


@contextlib.contextmanager
def dd(folder, mib):
    """Writes so much past the page cache meanwhile, and nothing of nothing."""
    if not mib:
        yield
        return
    command = ["dd", "if=/dev/zero", f"of={folder}/dd", "bs=1M", f"count={mib}", "oflag=direct", "status=none"]
    with subprocess.Popen(command):
        yield


def ask_both(options, prompt, server, folder, mib):
    """(tokens a second of the answer, seconds of prompt and answer); whatever is written then has been"""
    begin = time.perf_counter()
    ask(server, prompt)
    with dd(folder, mib):
        rate = decode_rate(server, options.decode)
        seconds = time.perf_counter() - begin
    before = None
    while before != (before := stored(server)):
        time.sleep(0.2)
    return rate, seconds


def some_rounds(options, model, tokens, rng):
    """(what the server with a disk tier did, what the other did, MiB written) of each, by fresh servers"""
    rounds = []
    with tempfile.TemporaryDirectory(dir=options.folder) as folder, contextlib.ExitStack() as stack:
        tiers = rng.sample([on_disk(folder + "/kv"), []], 2)  # which server comes first makes a difference of its own
        servers = {bool(flags): stack.enter_context(serve(options, model, flags)) for flags in tiers}
        for _ in range(options.rounds):
            prompt = " ".join(rng.choice(WORDS) for _ in range(tokens))
            before = stored(servers[True])
            took = {disk: ask_both(options, prompt, servers[disk], folder, 0 if disk else options.beside_dd)
                    for disk in rng.sample([True, False], 2)}
            rounds.append((took[True], took[False], (stored(servers[True]) - before) / 2**20))
    return rounds


def measure(options, model, tokens):
    rng = random.Random(options.seed)
    rounds = [row for _ in range(options.restarts) for row in some_rounds(options, model, tokens, rng)]
    written = statistics.median(row[2] for row in rounds)
    print(f"\n### {model}: {len(rounds)} rounds, {written:.0f} MiB written in each, {options.threads} thread(s)\n")
    print("| | with a disk tier, median | without | ratio, median | quartiles |")
    print("| --- | ---: | ---: | ---: | ---: |")
    for i, what in enumerate([f"tokens/s of {options.decode} right after the prompt", "seconds of prompt and answer"]):
        disk, plain = [row[0][i] for row in rounds], [row[1][i] for row in rounds]
        low, middle, high = statistics.quantiles([a / b for a, b in zip(disk, plain)], n=4)
        print(f"| {what} | {statistics.median(disk):.2f} | {statistics.median(plain):.2f} | {middle:.3f} "
              f"| {low:.3f} to {high:.3f} |", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", default=["smollm2:2000"])
    parser.add_argument("--cachalot", default=str(ROOT / "build/release/cachalot"))
    parser.add_argument("--restarts", type=int, default=3)
    parser.add_argument("--rounds", type=int, default=5, help="between two restarts")
    parser.add_argument("--decode", type=int, default=160, help="tokens that are counted")
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--beside-dd", type=int, default=0, metavar="MIB",
                        help="the server without a disk tier answers while dd writes so much: what the disk itself costs")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--folder", help="on the disk that is written to; default: the usual for temporary files")
    parser.add_argument("--flags", default="", help="further flags of cachalot serve, separated by spaces")
    options = parser.parse_args()
    options.flags += f" --threads {options.threads}"
    for model in options.models:
        name, _, tokens = model.partition(":")
        measure(options, name, int(tokens or 2000))


if __name__ == "__main__":
    main()
