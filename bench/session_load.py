#!/usr/bin/env python3
"""Lets many conversations return at random to `cachalot serve`, whose hot pool has room for few of them, in Markdown.

    tools/random_gguf.py --shape tiny build/tiny.gguf
    bench/session_load.py --sessions 2000 --minutes 20 build/tiny.gguf -- --device simlink --kv-memory 40MiB \\
        --host-memory 160MiB --disk-path /tmp/kv --disk-size 8GiB
    bench/session_load.py --sessions 30 --minutes 20 --chat smollm2 -- ...

What follows `--` goes to the server. Each turn sends the conversation so far and some new tokens, and takes a short
answer, greedily. A share of the answers is asked for again afterwards, of a server that keeps nothing: a difference
is an error. Reported are the time to the first token of those that returned, where their tokens came from, and the
server's memory over time. Needs nothing but Python.
"""

import argparse
import http.client
import json
import random
import sys
import threading
import time

from server import ROOT, Server

WORDS = "sea whale net salt harbour storm anchor rope crew deck wave gull mast tide keel fog bell chart".split()


class StreamingServer(Server):
    def ask(self, path, body):
        """(seconds to the first token, the answer as (token, logprob) pairs, usage)"""
        connection = http.client.HTTPConnection(self.url.removeprefix("http://"), timeout=600)
        body = {**body, "stream": True, "stream_options": {"include_usage": True}, "temperature": 0}
        begun = time.monotonic()
        connection.request("POST", path, json.dumps(body), {"Content-Type": "application/json"})
        response = connection.getresponse()
        if response.status != 200:
            raise RuntimeError(f"{response.status}: {response.read().decode()}")
        first, answer, usage = None, [], None
        for line in response:
            if not line.startswith(b"data: ") or line.startswith(b"data: [DONE]"):
                continue
            event = json.loads(line[6:])
            if "error" in event:
                raise RuntimeError(str(event["error"]))
            usage = event.get("usage") or usage
            for choice in event["choices"]:
                tokens = tokens_of(choice)
                if first is None and (tokens or choice.get("finish_reason")):
                    first = time.monotonic() - begun
                answer += tokens
        return first, answer, usage


def tokens_of(choice):
    logprobs = choice.get("logprobs")
    if not logprobs:
        return []
    if "content" in logprobs:
        return [(entry["token"], entry["logprob"]) for entry in logprobs["content"]]
    return list(zip(logprobs["tokens"], logprobs["token_logprobs"]))


class Conversation:
    """As token ids, or as a chat."""

    def __init__(self, index, options, rng):
        self.index, self.options, self.rng = index, options, rng
        self.turns = 0
        self.restart()

    def restart(self):
        self.history = []
        self.turns = 0

    def next_body(self):
        options = self.options
        if self.turns >= options.turns:
            self.restart()
        if options.chat:
            text = " ".join(self.rng.choice(WORDS) for _ in range(options.turn_tokens))
            self.history.append({"role": "user", "content": f"{self.index}: {text}"})
            body = {"messages": list(self.history), "max_tokens": options.answer_tokens, "logprobs": True}
        else:
            self.history += [self.rng.randrange(1, options.vocabulary) for _ in range(options.turn_tokens)]
            body = {"prompt": list(self.history), "max_tokens": options.answer_tokens, "logprobs": 1, "ignore_eos": True}
        if options.name_sessions:
            body["kv"] = {"session": f"s{self.index}"}
        return body

    def take(self, answer):
        self.turns += 1
        if self.options.chat:
            self.history.append({"role": "assistant", "content": "".join(token for token, _ in answer)})


class Load:
    def __init__(self, options, server):
        self.options, self.server = options, server
        self.rng = random.Random(options.seed)
        self.lock = threading.Lock()
        self.idle = [Conversation(i, options, random.Random(options.seed * 1_000_003 + i)) for i in range(options.sessions)]
        self.times = {"first": [], "returned": []}
        self.returned_tokens = self.cached_tokens = 0
        self.samples, self.errors = [], []
        self.path = "/v1/chat/completions" if options.chat else "/v1/completions"

    def take_idle(self):
        with self.lock:
            at = self.rng.randrange(len(self.idle))
            self.idle[at], self.idle[-1] = self.idle[-1], self.idle[at]
            return self.idle.pop()

    def client(self, end):
        while time.monotonic() < end:
            conversation = self.take_idle()
            returning = 0 < conversation.turns < self.options.turns
            body = conversation.next_body()
            try:
                first, answer, usage = self.server.ask(self.path, body)
            except (RuntimeError, OSError, http.client.HTTPException) as error:
                with self.lock:
                    self.errors.append(f"{conversation.index}: {error}")
                    conversation.restart()
                    self.idle.append(conversation)
                continue
            conversation.take(answer)
            self.note(conversation, returning, body, first, answer, usage)

    def note(self, conversation, returning, body, first, answer, usage):
        with self.lock:
            self.idle.append(conversation)
            self.times["returned" if returning else "first"].append(first)
            if returning:
                self.returned_tokens += usage["prompt_tokens"]
                self.cached_tokens += usage["prompt_tokens_details"]["cached_tokens"]
            if self.rng.random() < self.options.checked:
                self.samples.append((body, answer))


def percentile(values, share):
    values = sorted(values)
    return values[min(len(values) - 1, int(share * len(values)))] if values else float("nan")


def run_load(options, server):
    load = Load(options, server)
    before = server.get("/v1/kv")
    begun = time.monotonic()
    end = begun + 60 * options.minutes
    threads = [threading.Thread(target=load.client, args=(end,)) for _ in range(options.clients)]
    for thread in threads:
        thread.start()
    memory = []
    while any(thread.is_alive() for thread in threads):
        memory.append(((time.monotonic() - begun) / 60, server.proc("status", "VmRSS") / 1024))
        time.sleep(2)
    for thread in threads:
        thread.join()
    return load, memory, before, server.get("/v1/kv")


def print_load(load, memory, before, after):
    print(f"{len(load.times['first'])} conversations begun, {len(load.times['returned'])} returns, {len(load.errors)} errors\n")
    print("| | p50 | p90 | p99 |\n| --- | ---: | ---: | ---: |")
    for name, text in (("first", "first turn"), ("returned", "return")):
        row = [f"{1000 * percentile(load.times[name], share):.1f}" for share in (0.5, 0.9, 0.99)]
        print(f"| time to first token of a {text}, ms | {' | '.join(row)} |")
    loaded = {tier: after[tier]["loaded_tokens"] - before[tier]["loaded_tokens"]
              for tier in ("host", "disk") if "loaded_tokens" in after.get(tier, {})}
    total = max(1, load.returned_tokens)
    print(f"\n{load.returned_tokens} prompt tokens of returns: {100 * load.cached_tokens / total:.1f} % were not computed")
    for tier, tokens in loaded.items():
        print(f"  from {tier}: {tokens} tokens ({100 * tokens / total:.1f} %)")
    quarters = [memory[min(len(memory) - 1, int(share * len(memory)))] for share in (0.05, 0.25, 0.5, 0.75, 1)]
    print("memory: " + ", ".join(f"{mib:.1f} MiB at {minute:.1f} min" for minute, mib in quarters))
    for error in load.errors[:10]:
        print(f"error: {error}")


def check(options, load):
    """How many sampled answers differ from those of a server that keeps nothing."""
    samples = load.samples[: options.most_checked]
    server = StreamingServer(options.cachalot, options.model, ["--prefix-cache=false", "--context", str(options.context)])
    different = 0
    for body, answer in samples:
        body = {key: value for key, value in body.items() if key != "kv"}
        _, expected, _ = server.ask(load.path, body)
        if expected != answer:
            different += 1
            print(f"differs: {answer} instead of {expected}")
    server.stop()
    print(f"{len(samples)} answers asked for again: {different} differ")
    return different


def main():
    arguments, server_flags = sys.argv[1:], []
    if "--" in arguments:
        at = arguments.index("--")
        arguments, server_flags = arguments[:at], arguments[at + 1 :]
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("--cachalot", default=ROOT / "build/release/cachalot")
    parser.add_argument("--sessions", type=int, default=200)
    parser.add_argument("--minutes", type=float, default=1)
    parser.add_argument("--clients", type=int, default=4, help="requests at once")
    parser.add_argument("--turns", type=int, default=8, help="then a conversation begins anew")
    parser.add_argument("--turn-tokens", type=int, default=48)
    parser.add_argument("--answer-tokens", type=int, default=4)
    parser.add_argument("--vocabulary", type=int, default=700, help="token ids are below")
    parser.add_argument("--context", type=int, default=2048)
    parser.add_argument("--chat", action="store_true", help="send chats instead of token ids")
    parser.add_argument("--name-sessions", action="store_true", help='name them in "kv.session"')
    parser.add_argument("--checked", type=float, default=0.05, help="share of the answers that is asked for again")
    parser.add_argument("--most-checked", type=int, default=500)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args(arguments)

    server = StreamingServer(options.cachalot, options.model, ["--context", str(options.context), *server_flags])
    load, memory, before, after = run_load(options, server)
    code = server.stop()
    print_load(load, memory, before, after)
    different = check(options, load)
    if code != 0:
        print(f"the server ended with code {code}")
    sys.exit(1 if different or load.errors or code != 0 else 0)


if __name__ == "__main__":
    main()
