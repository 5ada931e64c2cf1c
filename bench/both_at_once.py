#!/usr/bin/env python3
"""Measures what loading and computing at once are worth to `cachalot serve` whose disk is slow, in Markdown.

    bench/both_at_once.py smollm2:2000 --rates 1MB crossover --turns 3

One server computes a prompt, and shorter ones, and leaves their KV in a folder. Then, by turns: a fresh server without
that folder computes the prompt; and a fresh one with it, which reads no faster than the rate says and has measured that
with the shorter prompts, answers it as it thinks best. `crossover` is the rate at which reading all of the prompt's KV
(all layers', so of a model without windows) takes as long as computing it did in the median of three times. The ratio is
to the better single way: computing, or reading all at that rate. Answers must be equal. Needs nothing but Python.
"""

import argparse
import statistics
import sys
import tempfile
from pathlib import Path

from resume import ROOT, ask, on_disk, prompt_of, serve

SHORT = 3  # prompts that show how fast the disk is
SHORT_TOKENS = 300


def ask_short(server, short):
    for text in short:
        ask(server, text)


def computed(options, model, short, prompt):
    """(seconds, answer) of a server that has nothing"""
    with serve(options, model, []) as server:
        ask_short(server, short)
        return ask(server, prompt)[:2]


def resumed(options, model, folder, rate, short, prompt):
    """(seconds, answer, tokens loaded, way) of one that has the prompt's KV on a disk of that rate"""
    with serve(options, model, [*on_disk(folder), "--disk-read-rate", f"{rate:.0f}"]) as server:
        ask_short(server, short)
        seconds, answer, _, cached = ask(server, prompt)
        decisions = server.get("/v1/kv/decisions")["decisions"]
        return seconds, answer, cached, decisions[-1]["way"]


def by_turns(options, model, folder, rate, short, prompt):
    """Rows of (computed seconds, resumed seconds, tokens loaded, way)"""
    rows = []
    for _ in range(options.turns):
        seconds, answer = computed(options, model, short, prompt)
        other, same, cached, way = resumed(options, model, folder, rate, short, prompt)
        if answer != same:
            sys.exit(f"{model}: the answer from a disk of {rate:.0f} bytes/s is another: {same} and not {answer}")
        rows.append((seconds, other, cached, way))
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="+", metavar="MODEL:TOKENS")
    parser.add_argument("--rates", nargs="+", default=["1MB", "crossover"], metavar="MB|crossover")
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--cachalot", default=ROOT / "build" / "release" / "cachalot")
    parser.add_argument("--folder", type=Path, help="in which the disk tier's folder is made")
    parser.add_argument("--flags", default="", help="more for all servers")
    options = parser.parse_args()
    print("| model | tokens | KV MiB | disk MB/s | computed s | resumed s | ratio, median (least to most) | loaded | way |")
    print("| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | --- |")
    for argument in options.models:
        model, tokens = argument.rsplit(":", 1)
        with tempfile.TemporaryDirectory(dir=options.folder) as parent:
            folder = Path(parent) / "kv"
            with serve(options, model, on_disk(folder)) as server:
                text = prompt_of(options, model, int(tokens) + SHORT * SHORT_TOKENS)
                part = len(text) * SHORT_TOKENS // (int(tokens) + SHORT * SHORT_TOKENS)
                short = [text[i * part : (i + 1) * part] for i in range(SHORT)]
                prompt = text[SHORT * part :]
                ask_short(server, short)
                length = ask(server, prompt)[2]
                kv = server.get("/v1/kv")
                per_token = kv["bytes"]["total"] / kv["slots"]["total"] * kv["layer_groups"] / kv["block_tokens"]
            usual = statistics.median(computed(options, model, short, prompt)[0] for _ in range(3))
            for name in options.rates:
                rate = length * per_token / usual if name == "crossover" else float(name.removesuffix("MB")) * 1e6
                rows = by_turns(options, model, folder, rate, short, prompt)
                ratios = [other / min(seconds, length * per_token / rate) for seconds, other, _, _ in rows]
                seconds, other, cached, _ = (statistics.median(column) for column in list(zip(*rows))[:3] + [[0]])
                print(f"| {model} | {length} | {length * per_token / (1 << 20):.1f} | {rate / 1e6:.1f} | {seconds:.2f} "
                      f"| {other:.2f} | {statistics.median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f}) "
                      f"| {cached:.0f} | {', '.join(sorted({row[3] for row in rows}))} |", flush=True)


if __name__ == "__main__":
    main()
