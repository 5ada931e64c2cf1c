"""`cachalot bench serve` and `bench resume` against a server. See live_server.py for the arguments; --url needs --cachalot too."""

import argparse
import json
import os
import subprocess
import tempfile

import live_server
from live_server import ServerTestCase, main

PROGRAM = argparse.ArgumentParser(add_help=False)
PROGRAM.add_argument("--cachalot", default="build/release/cachalot")
CACHALOT = PROGRAM.parse_known_args()[0].cachalot


class BenchServe(ServerTestCase):
    def bench(self, *flags, code=0, kind="serve"):
        command = [CACHALOT, "bench", kind, "--url", live_server.SERVER.url, "--json", *flags]
        run = subprocess.run(command, capture_output=True, text=True, timeout=600)
        self.assertEqual(run.returncode, code, run.stderr)
        return json.loads(run.stdout) if code == 0 else run.stderr

    def check(self, report, requests, output_tokens):
        self.assertEqual(report["requests"], {"sent": requests, "ok": requests, "failed": 0, "aborted": 0}, report["errors"])
        self.assertEqual(report["tokens"]["output"], requests * output_tokens)
        self.assertEqual(report["ttft_ms"]["count"], requests)
        self.assertLessEqual(report["ttft_ms"]["p50"], report["ttft_ms"]["p99"])
        self.assertLessEqual(report["ttft_ms"]["p99"], report["e2e_ms"]["max"])

    def test_closed_loop_with_prompts_of_the_asked_length(self):
        for endpoint in ("chat", "completions"):
            report = self.bench("--endpoint", endpoint, "--requests", "8", "--clients", "4", "--prompt-tokens", "100",
                                "--max-tokens", "8", "--ignore-eos")
            self.check(report, 8, 8)
            self.assertAlmostEqual(report["tokens"]["prompt"] / 8, 100, delta=6)
            self.assertEqual(report["in_flight"]["peak"], 4)

    def test_poisson_with_shared_prefixes(self):
        report = self.bench("--rate", "20", "--requests", "8", "--prefixes", "2", "--prefix-tokens", "64",
                            "--prompt-tokens", "16", "--max-tokens", "4", "--ignore-eos")
        self.check(report, 8, 4)
        self.assertIsNotNone(report["tokens"]["cached"])

    def test_turns_send_their_history(self):
        one = self.bench("--requests", "2", "--clients", "1", "--turns", "1", "--prompt-tokens", "32",
                         "--max-tokens", "8", "--ignore-eos")
        two = self.bench("--requests", "2", "--clients", "1", "--turns", "2", "--prompt-tokens", "32",
                         "--max-tokens", "8", "--ignore-eos")
        self.assertGreater(two["tokens"]["prompt"], one["tokens"]["prompt"] + 30)

    def test_a_trace(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "trace.jsonl")
            with open(path, "w", encoding="utf-8") as file:
                for i in range(4):
                    row = {"timestamp": 100 * i, "input_length": 1024, "output_length": 3, "hash_ids": [0, i + 1]}
                    file.write(json.dumps(row) + "\n")
            report = self.bench("--trace", path, "--trace-block-tokens", "32", "--trace-speed", "10", "--ignore-eos")
        self.check(report, 4, 3)
        self.assertAlmostEqual(report["tokens"]["prompt"] / 4, 64, delta=40)

    def test_conversations_come_back_hot(self):
        report = self.bench("--rests", "hot", "--conversations", "2", "--prompt-tokens", "100", "--turn-tokens", "8",
                            "--max-tokens", "4", kind="resume")
        cold, hot = report["rests"]
        self.assertEqual((cold["rest"], cold["count"], hot["rest"], hot["count"]), ("cold", 2, "hot", 2))
        self.assertLess(cold["cached_tokens"], 32)
        self.assertGreaterEqual(hot["cached_tokens"], 96)
        self.assertEqual(hot["places"], {"hot": 2})
        self.assertLessEqual(hot["ttft_ms"]["p50"], hot["ttft_ms"]["p99"])

    def test_refusals_are_counted(self):
        message = self.bench("--model", "nobody", code=1)
        self.assertIn("HTTP 404", message)
        message = self.bench("--model", "nobody", "--tokens-per-word", "1", "--requests", "3", code=1)
        self.assertIn("none of 3 requests was answered", message)


if __name__ == "__main__":
    main()
