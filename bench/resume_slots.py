#!/usr/bin/env python3
"""Measures how soon `cachalot serve` and llama-server go on with a conversation after a restart, in Markdown.

    bench/resume_slots.py smollm2:6000 gemma3-270m:12000     # model:tokens of the prompt
    bench/resume_slots.py --llama-bin FOLDER --threads 1 smollm2:6000

Both read the same model file, and answer the same prompt with one token, greedily: computed at first, then each time by
a fresh process with the page cache dropped (root only). Cachalot finds what it left in its --disk-path by itself.
llama-server's slot was saved by name and has to be restored by name: both requests count, as nothing less gives the
token. Needs nothing but Python; llama-server as bench/compare_llama.py obtains it.
"""

import argparse
import contextlib
import json
import os
import statistics
import sys
import tempfile
import time
import urllib.error
import urllib.request
from pathlib import Path

from compare_llama import install_llama, path_of
from compare_servers import free_port, running
from resume import ask, drop_page_cache, on_disk, prompt_of, serve
from server import ROOT

MIB = 1 << 20
SLOT = "resumed.bin"


def read_mib():
    """What all disks have given so far, so that a resume from some cache is told from one from the disk."""
    disks = [line.split() for line in Path("/proc/diskstats").read_text().splitlines()]
    return sum(int(disk[5]) for disk in disks if Path("/sys/block", disk[2]).exists()) * 512 / MIB


class LlamaServer:
    """With one slot that has room for the whole prompt."""

    def __init__(self, options, model, context, folder):
        self.options, self.model, self.context, self.folder = options, model, context, folder

    @contextlib.contextmanager
    def running(self):
        port = free_port()
        self.url = f"http://127.0.0.1:{port}"
        command = [self.options.llama_bin / "llama-server", "-m", self.model, "--port", port, "-np", 1, "-fa", "on",
                   "-c", self.context, "-t", self.options.threads, "--slot-save-path", self.folder]
        environment = dict(os.environ, LD_LIBRARY_PATH=str(self.options.llama_bin))
        with running(command, self.url, environment, f"{self.folder}/llama.log"):
            yield

    def post(self, path, body):
        """(seconds, answer)"""
        kind = {"Content-Type": "application/json"}
        request = urllib.request.Request(self.url + path, json.dumps(body).encode(), kind)
        begin = time.perf_counter()
        with urllib.request.urlopen(request, timeout=self.options.timeout) as response:
            answer = json.load(response)
        return time.perf_counter() - begin, answer

    def ask(self, prompt):
        body = {"prompt": prompt, "n_predict": 1, "temperature": 0, "cache_prompt": True, "id_slot": 0}
        return self.post("/completion", body)


def slots_of_llama(llama, prompt, times):
    """(seconds computed, bytes saved, seconds of each resume, its tokens computed, MiB read in each), or why not."""
    try:
        with llama.running():
            computed, _ = llama.ask(prompt)
            saved = llama.post("/slots/0?action=save", {"filename": SLOT})[1]["n_written"]
        seconds, left, read = [], 0, []
        for _ in range(times):
            with llama.running():
                llama.ask("Once upon a time")
                drop_page_cache()
                before = read_mib()
                restored, _ = llama.post("/slots/0?action=restore", {"filename": SLOT})
                answered, answer = llama.ask(prompt)
                left = answer["timings"]["prompt_n"]
                seconds.append(restored + answered)
                read.append(read_mib() - before)
        return computed, saved, seconds, left, read
    except urllib.error.HTTPError as error:
        return f"{error} {error.read().decode()[:200]}"


def resume_of_cachalot(options, model, prompt, times):
    """(seconds computed, bytes loaded, seconds of each resume, its tokens computed, MiB read in each)"""
    with tempfile.TemporaryDirectory(dir=options.folder) as parent:
        folder = Path(parent) / "kv"
        with serve(options, model, on_disk(folder)) as server:
            computed, wanted, tokens, _ = ask(server, prompt)
        seconds, read = [], []
        for _ in range(times):
            with serve(options, model, on_disk(folder)) as server:
                ask(server, "Once upon a time")
                drop_page_cache()
                before = read_mib()
                taken, answer, _, cached = ask(server, prompt)
                if answer != wanted:
                    sys.exit(f"{model}: another answer from disk: {answer}, computed {wanted}")
                seconds.append(taken)
                read.append(read_mib() - before)
                loaded = server.get("/v1/kv")["disk"]["loaded_bytes"]
        return computed, loaded, seconds, tokens - cached, read


def row(name, figures):
    if isinstance(figures, str):
        return f"| {name} | fails: {figures} | | | | | |"
    computed, size, seconds, left, read = figures
    median = statistics.median(seconds)
    return (f"| {name} | {computed:.2f} | {size / MIB:.1f} | {median:.3f} ({min(seconds):.3f} to {max(seconds):.3f}) "
            f"| {min(read):.0f} to {max(read):.0f} | {left} | {computed / median:.0f} |")


def measure(options, model, tokens):
    prompt = prompt_of(options, model, tokens)
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        ours = resume_of_cachalot(options, model, prompt, options.times)
        llama = LlamaServer(options, path_of(model, options.cachalot), tokens + 1024, folder)
        theirs = slots_of_llama(llama, prompt, options.times)
    print(f"\n### {model}, about {tokens} tokens, {options.threads} thread(s)\n")
    print("| server | computed s | MiB of KV | resumed s, median (least to most) | MiB read | computed then | sooner |")
    print("| --- | ---: | ---: | ---: | ---: | ---: | ---: |")
    print(row("Cachalot", ours))
    print(row("llama-server", theirs), flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", default=["smollm2:6000", "gemma3-270m:12000"])
    parser.add_argument("--cachalot", default=str(ROOT / "build/release/cachalot"))
    parser.add_argument("--llama-bin", type=Path, help="folder of llama.cpp's tools and libraries")
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--times", type=int, default=5)
    parser.add_argument("--timeout", type=float, default=1200, help="seconds that llama-server may take")
    parser.add_argument("--folder", help="on the disk that is to be measured; default: the usual for temporary files")
    parser.add_argument("--flags", default="", help="further flags of cachalot serve, separated by spaces")
    options = parser.parse_args()
    options.flags += f" --threads {options.threads}"
    options.llama_bin = options.llama_bin or install_llama()
    for model in options.models:
        name, _, tokens = model.partition(":")
        measure(options, name, int(tokens or 6000))


if __name__ == "__main__":
    main()
