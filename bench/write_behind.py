#!/usr/bin/env python3
"""Measures what writing KV to disk costs those who decode meanwhile, in Markdown.

    bench/write_behind.py smollm2:2000        # model:tokens of each prompt whose KV is written
    bench/write_behind.py --rounds 15 --threads 1 smollm2:2000

Two servers that run at once and are asked by turns, one with a disk tier and one without: each is asked a prompt that
is new, whose KV is then written behind, and at once something short, whose tokens are counted until its last. Of each
round the ratio counts; aimed at is a median of at least 0.97. Needs nothing but Python.
"""

import argparse
import http.client
import json
import os
import random
import statistics
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


def measure(options, model, tokens):
    rng = random.Random(options.seed)
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        with serve(options, model, on_disk(folder + "/kv")) as disk, serve(options, model, []) as plain:
            rates, moved = {disk: [], plain: []}, []
            for _ in range(options.rounds):
                prompt = " ".join(rng.choice(WORDS) for _ in range(tokens))
                before = stored(disk)
                for server in rng.sample([disk, plain], 2):
                    ask(server, prompt)
                    rates[server].append(decode_rate(server, options.decode))
                moved.append((stored(disk) - before) / 2**20)
    ratios = [a / b for a, b in zip(rates[disk], rates[plain])]
    print(f"\n### {model}: {options.rounds} rounds, {statistics.median(moved):.0f} MiB written in each, "
          f"{options.threads} thread(s)\n")
    print("| tokens/s with a disk tier, median | without | ratio, median | quartiles |")
    print("| ---: | ---: | ---: | ---: |")
    low, middle, high = statistics.quantiles(ratios, n=4)
    print(f"| {statistics.median(rates[disk]):.1f} | {statistics.median(rates[plain]):.1f} | {middle:.3f} "
          f"| {low:.3f} to {high:.3f} |", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", default=["smollm2:2000"])
    parser.add_argument("--cachalot", default=str(ROOT / "build/release/cachalot"))
    parser.add_argument("--rounds", type=int, default=11)
    parser.add_argument("--decode", type=int, default=160, help="tokens that are counted")
    parser.add_argument("--threads", type=int, default=os.cpu_count())
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
