#!/usr/bin/env python3
"""Compares `cachalot replay` with the server that it stands for, under the same requests, in Markdown.

    bench/validate.py smollm2 gemma3-270m                   # ten minutes per workload, three times
    bench/validate.py --minutes 1 --runs 1 --workloads chat smollm2
    bench/validate.py --results validation.jsonl            # keeps each run, and goes on after those that are there
    bench/validate.py --list

A run: `cachalot calibrate` measures the machine, `cachalot serve --record` serves the workload that `cachalot bench serve`
sends, and `cachalot replay --engine` replays what was recorded with the profile just measured and a pool of the same size.
Hit tokens are to be equal to 1 %, throughput within 10 %, p50 and p99 of the time to the first token within 15 and
25 %. Where others took more than 5 % of the processors' time a run is void and repeated; of several the median counts.
The first run of every workload comes before the second of any. Under `taskset -c 0` all of it has one processor.
Needs nothing but Python.
"""

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from server import ROOT, Server

CONTEXT = "4096"

# How busy a server of two cores is kept is up to --load: the rates are those of SmolLM2.
WORKLOADS = {
    "chat": ("conversations of four turns that begin alike", 0.05,
             "--prefixes 2 --prefix-tokens 300 --turns 4 --think-time 8 --prompt-tokens 60 --max-tokens 40"),
    "documents": ("questions about few long documents", 0.15,
                  "--prefixes 12 --prefix-tokens 1200 --turns 1 --prompt-tokens 40 --max-tokens 30"),
    "unique": ("prompts that share nothing", 0.2, "--turns 1 --prompt-tokens 350 --max-tokens 40"),
}
ENDPOINTS = {"gemma3-270m": "completions"}  # it has no chat template
SERVER = ["--kv-memory", "96MiB", "--context", CONTEXT]
LIMITS = {"hit tokens": 0.01, "tokens/s": 0.10, "TTFT p50": 0.15, "TTFT p99": 0.25}


def stolen_and_all():
    """Processor time that other guests took, and all there was, in ticks."""
    fields = [int(word) for word in Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:]]
    return fields[7], sum(fields[:8])


def run(command):
    done = subprocess.run([str(word) for word in command], stdout=subprocess.PIPE, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))} ended with {done.returncode}")
    return done.stdout


def served(record):
    """What the server did, by its record."""
    lines = [json.loads(line) for line in record.read_text().splitlines()]
    requests = [line for line in lines if "timestamp" in line]
    done = [line for line in requests if "ttft_seconds" in line]
    end = max(line["timestamp"] / 1000 + line["e2e_seconds"] for line in done)
    span = end - min(line["timestamp"] / 1000 for line in requests)
    ttft = sorted(line["ttft_seconds"] for line in done)
    return {"requests": len(done), "hit tokens": sum(line["cached_tokens"] for line in done),
            "tokens/s": sum(line["output_length"] for line in done) / span,
            "TTFT p50": quantile(ttft, 0.5), "TTFT p99": quantile(ttft, 0.99)}


def quantile(values, share):
    return values[min(len(values) - 1, int(share * len(values)))]


def replayed(options, model, profile, record, slots):
    out = json.loads(run([options.cachalot, "replay", record, "--engine", "--profile", profile, "--kv-model", model,
                          "--context", CONTEXT, "--kv-blocks", slots, "--json", *options.flags.split()]))
    return {"requests": out["served_requests"], "hit tokens": out["cached_tokens"],
            "tokens/s": out["output_tokens_per_second"], "TTFT p50": out["ttft_p50_seconds"],
            "TTFT p99": out["ttft_p99_seconds"]}


def one_run(options, model, workload, seed):
    """(served, replayed, share of the time that was stolen)"""
    _, rate, flags = WORKLOADS[workload]
    with tempfile.TemporaryDirectory() as folder:
        profile, record = Path(folder) / "profile.json", Path(folder) / "record.jsonl"
        run([options.cachalot, "calibrate", model, "--context", CONTEXT, "--calibration", profile])
        stolen, total = stolen_and_all()
        flags_of_server = ["--calibration", profile, "--record", record, *SERVER, *options.flags.split()]
        with Server(options.cachalot, model, flags_of_server) as server:
            slots = server.get("/v1/kv")["slots"]["total"]
            run([options.cachalot, "bench", "serve", "--url", server.url, "--json", "--seed", seed, "--ignore-eos",
                 "--endpoint", ENDPOINTS.get(model, "chat"), "--rate", rate * options.load,
                 "--duration", 60 * options.minutes, *flags.split()])
        stolen, total = (after - before for after, before in zip(stolen_and_all(), (stolen, total)))
        return served(record), replayed(options, model, profile, record, slots), stolen / total


def difference(real, simulated):
    return abs(simulated - real) / real if real else float(simulated != real)


class Results:
    """Runs that are not void; in a file where one is named, a line each, to which others may add."""

    def __init__(self, path):
        self.path, self.own = path, []

    def of(self, options, model, workload):
        """Of at least as many minutes, and under the same load and flags."""
        runs = self.own
        if self.path:
            # A line that a kill cut short is no run.
            lines = self.path.read_text().splitlines(True) if self.path.exists() else []
            runs = [json.loads(line) for line in lines if line.endswith("\n")]
        wanted = (model, workload, options.load, options.flags)
        return [run for run in runs if (run["model"], run["workload"], run["load"], run["flags"]) == wanted
                and run["minutes"] >= options.minutes]

    def add(self, run):
        self.own.append(run)
        if self.path:
            with self.path.open("a") as file:
                file.write(json.dumps(run) + "\n")


def next_run(options, results, model, workload):
    """Repeats what is void."""
    before = results.of(options, model, workload)
    seed = max([run["seed"] for run in before], default=options.seed - 1)
    void = True
    while void:
        seed += 1
        real, simulated, stolen = one_run(options, model, workload, seed)
        void = stolen > 0.05
        print(f"{model}, {workload}, seed {seed}: {real} served, {simulated} replayed, {100 * stolen:.1f} % stolen"
              f"{', void' if void else ''}", file=sys.stderr, flush=True)
    results.add({"model": model, "workload": workload, "minutes": options.minutes, "load": options.load,
                 "flags": options.flags, "seed": seed, "stolen": stolen, "served": real, "replayed": simulated})


def report(model, workload, runs):
    """Whether the medians are within the limits."""
    print(f"\n### {model}, {workload}: {WORKLOADS[workload][0]}\n")
    print("| run | requests | stolen | " + " | ".join(f"{name}: served, replayed" for name in LIMITS) + " |")
    print("| ---: | ---: | ---: |" + " ---: |" * len(LIMITS))
    for i, run in enumerate(runs):
        real, simulated = run["served"], run["replayed"]
        cells = [f"{real[name]:.4g}, {simulated[name]:.4g} ({100 * difference(real[name], simulated[name]):.1f} %)"
                 for name in LIMITS]
        print(f"| {i + 1} | {real['requests']} | {100 * run['stolen']:.1f} % | {' | '.join(cells)} |")
    medians = {name: statistics.median(difference(run["served"][name], run["replayed"][name]) for run in runs)
               for name in LIMITS}
    verdicts = [f"{100 * medians[name]:.1f} % {'≤' if medians[name] <= limit else '>'} {100 * limit:.0f} %"
                for name, limit in LIMITS.items()]
    print(f"| median | | | {' | '.join(verdicts)} |", flush=True)
    return all(medians[name] <= limit for name, limit in LIMITS.items())


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", default=["smollm2", "gemma3-270m"])
    parser.add_argument("--cachalot", default=str(ROOT / "build/release/cachalot"))
    parser.add_argument("--workloads", default=",".join(WORKLOADS), type=lambda text: text.split(","))
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--load", type=float, default=1, help="requests come so much faster")
    parser.add_argument("--flags", default="", help="further flags of the engine, for both, separated by spaces")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--results", type=Path, help="keeps runs; those of at least as many minutes in it count")
    parser.add_argument("--list", action="store_true")
    options = parser.parse_args()
    if options.list:
        for name, (what, rate, flags) in WORKLOADS.items():
            print(f"{name}: {what}; {rate} conversations a second; {flags}")
        return
    results, kinds = Results(options.results), [(model, name) for model in options.models for name in options.workloads]
    for count in range(options.runs):
        for model, name in kinds:
            if len(results.of(options, model, name)) <= count:
                next_run(options, results, model, name)
    sys.exit(0 if all([report(model, name, results.of(options, model, name)) for model, name in kinds]) else 1)


if __name__ == "__main__":
    main()
