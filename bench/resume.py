#!/usr/bin/env python3
"""Measures how soon `cachalot serve` answers from KV on disk, beside the disk's own rate and computing again, in Markdown.

    bench/resume.py smollm2:6000 gemma3-270m:12000    # model:tokens of the prompt
    bench/resume.py --restarts 5 --flags "--disk-compression zstd" smollm2:6000

For each model one server computes a prompt, answers it again from the pool, and ends; then fresh ones answer it from the
folder that it left, with the page cache dropped (root only), and fio reads the folder's files as they do, directly, by
1 MiB, four at once. Bytes are those that the server says it loaded; what its process really read is beside them. A decode
step is that of the resident request: aimed at is 1.25 x bytes / fio's rate + one decode step. Another server, whose pool is behind a
simulated link, is told to suspend the prompt's session into host memory; aimed at is 2 x bytes / the rate of a plain
copy + one decode step. Needs nothing but Python and fio.
"""

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from server import ROOT, Server

MIB = 1 << 20


def serve(options, model, tiers):
    return Server(options.cachalot, model, [*tiers, *options.flags.split()])


def ask(server, prompt, kv=None):
    """(seconds, answer, prompt tokens, cached tokens) of one token"""
    begin = time.perf_counter()
    body = {"prompt": prompt, "max_tokens": 1, "temperature": 0, "logprobs": 1, "kv": kv or {}}
    answer = server.get("/v1/completions", json.dumps(body).encode())
    seconds = time.perf_counter() - begin
    usage = answer["usage"]
    return seconds, answer["choices"], usage["prompt_tokens"], usage["prompt_tokens_details"]["cached_tokens"]


def tokens_of(options, model, text):
    command = [options.cachalot, "tokenize", "--ids", "--bos", model]
    return len(json.loads(subprocess.run(command, input=text, capture_output=True, text=True, check=True).stdout))


def prompt_of(options, model, tokens):
    """Text of about so many tokens, of which the last begins a block of the default size: all else is loaded, and one
    is computed, as where a suspended conversation goes on."""
    text = "\n".join(path.read_text() for path in sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/*.md")]))
    end = int(tokens * 8000 / tokens_of(options, model, text[:8000]))
    while tokens_of(options, model, text[:end]) % 16 != 1:
        end -= 1
    return text[:end]


def drop_page_cache():
    subprocess.run(["sync"], check=True)
    Path("/proc/sys/vm/drop_caches").write_text("3")


def fio_rate(folder):
    """Bytes a second, of all segments."""
    files = ":".join(str(path) for path in sorted(folder.glob("*.seg")))
    command = ["fio", "--name=segments", f"--filename={files}", "--readonly", "--rw=read", "--direct=1", "--bs=1m",
               "--ioengine=io_uring", "--iodepth=4", "--output-format=json"]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return json.loads(done.stdout)["jobs"][0]["read"]["bw_bytes"]


def copy_rate():
    """Bytes a second of a plain copy of 128 MiB by one thread, the best of several."""
    source, target = memoryview(bytearray(128 * MIB)), memoryview(bytearray(128 * MIB))
    seconds = []
    for _ in range(7):
        begin = time.perf_counter()
        target[:] = source
        seconds.append(time.perf_counter() - begin)
    return len(source) / min(seconds)


def on_disk(folder):
    return ["--disk-path", str(folder), "--disk-size", "4GiB"]


def resume_from_disk(options, model, folder, prompt):
    """(seconds, answer, tokens cached, bytes loaded, bytes that the process read, fio's rate) after a restart"""
    with serve(options, model, on_disk(folder)) as server:
        ask(server, "Once upon a time")
        drop_page_cache()
        rates = [fio_rate(folder)]
        drop_page_cache()
        before = server.proc("io", "read_bytes")
        seconds, answer, _, cached = ask(server, prompt)
        really_read = server.proc("io", "read_bytes") - before
        ask(server, "figures are those of the last step")
        rates.append(fio_rate(folder))
        return seconds, answer, cached, server.get("/v1/kv")["disk"]["loaded_bytes"], really_read, statistics.mean(rates)


def measure_disk(options, model, folder, prompt, wanted, resident, computed):
    print("| from disk s | fio MB/s | bytes at that rate s | aim s | over aim | process read MiB | times sooner |")
    print("| ---: | ---: | ---: | ---: | ---: | ---: | ---: |")
    for _ in range(options.restarts):
        seconds, answer, _, loaded, really_read, rate = resume_from_disk(options, model, folder, prompt)
        check(model, "disk", answer, wanted)
        ideal = loaded / rate
        aim = 1.25 * ideal + resident
        print(f"| {seconds:.3f} | {rate / 1e6:.0f} | {ideal:.3f} | {aim:.3f} | {seconds / aim:.2f} "
              f"| {really_read / MIB:.1f} | {computed / seconds:.0f} |", flush=True)


def measure_host(options, model, prompt, wanted, computed):
    print("\n| from host memory s | resident s | copy GB/s | bytes at that rate s | aim s | over aim | MiB | times sooner |")
    print("| ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |")
    session = {"session": "resumed"}
    with serve(options, model, ["--device", "simlink", "--host-memory", "1GiB"]) as server:
        check(model, "simlink", ask(server, prompt, session)[1], wanted)
        for _ in range(options.restarts):
            resident = statistics.median(ask(server, prompt, session)[0] for _ in range(3))
            server.get("/v1/kv/sessions/resumed/suspend", b"{}")
            view = server.get("/v1/kv/sessions/resumed")
            if view["tiers"]["hot"]["bytes"] > 0:
                sys.exit(f"{model}: the suspended session is still hot: {view}")
            seconds, answer, _, _ = ask(server, prompt, session)
            check(model, "host memory", answer, wanted)
            loaded, rate = view["tiers"]["host"]["bytes"], copy_rate()
            aim = 2 * loaded / rate + resident
            print(f"| {seconds:.3f} | {resident:.3f} | {rate / 1e9:.1f} | {loaded / rate:.3f} | {aim:.3f} | {seconds / aim:.2f} "
                  f"| {loaded / MIB:.0f} | {computed / seconds:.0f} |", flush=True)


def check(model, tier, answer, wanted):
    if answer != wanted:
        sys.exit(f"{model}: another answer from {tier}: {answer}, computed {wanted}")


def measure(options, model, tokens):
    with tempfile.TemporaryDirectory(dir=options.folder) as parent:
        folder = Path(parent) / "kv"
        with serve(options, model, on_disk(folder)) as server:
            prompt = prompt_of(options, model, tokens)
            computed, wanted, prompt_tokens, _ = ask(server, prompt)
            resident = statistics.median(ask(server, prompt)[0] for _ in range(3))
        print(f"\n### {model}: {prompt_tokens} tokens, computed {computed:.3f} s, resident {resident:.3f} s\n")
        if "disk" in options.tiers:
            measure_disk(options, model, folder, prompt, wanted, resident, computed)
    if "host" in options.tiers:
        measure_host(options, model, prompt, wanted, computed)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", default=["smollm2:6000", "gemma3-270m:12000"])
    parser.add_argument("--cachalot", default=str(ROOT / "build/release/cachalot"))
    parser.add_argument("--restarts", type=int, default=3)
    parser.add_argument("--tiers", default="disk,host", type=lambda text: text.split(","), help="which of disk and host")
    parser.add_argument("--flags", default="", help="further flags of cachalot serve, separated by spaces")
    parser.add_argument("--folder", help="on the disk that is to be measured; default: the usual for temporary files")
    options = parser.parse_args()
    for model in options.models:
        name, _, tokens = model.partition(":")
        measure(options, name, int(tokens or 6000))


if __name__ == "__main__":
    main()
