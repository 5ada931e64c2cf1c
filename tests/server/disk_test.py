"""KV on disk over restarts, crashes, damage and another model's folder. See live_server.py for the arguments; each test
starts its own servers, so --url does not apply."""

import argparse
import json
import os
import pathlib
import random
import subprocess
import sys
import tempfile
import time
import unittest

import live_server
from live_server import LiveServer, ServerTestCase

ARGUMENTS = None


class Disk(ServerTestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name) / "kv"
        self.server = None
        self.addCleanup(lambda: self.server and self.server.stop())

    def start(self, *flags, disk=True):
        if disk:
            flags = ["--disk-path", str(self.folder), "--disk-size", "96MiB", "--disk-min-free", "0", *flags]
        self.server = live_server.SERVER = LiveServer(
            None, ARGUMENTS.cachalot, ARGUMENTS.model, ["--context", "2048", "--admin-key", "root", *flags]
        )

    def end(self):
        self.server.stop()
        self.server = None

    def kill(self):
        self.server.process.kill()
        self.server.process.wait()
        self.server.process.stdout.close()
        self.server = None

    def ask(self, prompt):
        """(the answer with its logprobs, prompt tokens, those that were cached)"""
        answer = self.completion(prompt=prompt, max_tokens=6, temperature=0, logprobs=2)
        usage = answer["usage"]
        return answer["choices"], usage["prompt_tokens"], usage["prompt_tokens_details"]["cached_tokens"]

    def wait_until_written(self):
        deadline = time.monotonic() + 20
        before = -1
        while time.monotonic() < deadline:
            status, _, text = self.request("GET", "/v1/kv", headers={"Authorization": "Bearer root"})
            self.assertEqual(status, 200)
            disk = json.loads(text)["disk"]
            if disk["blocks"] > 0 and disk["stored_bytes"] == before:
                return
            before = disk["stored_bytes"]
            time.sleep(0.3)
            self.completion(prompt="x", max_tokens=1)  # figures are those of the last step
        self.fail("nothing is written")

    def prompt(self, words=150, seed=1):
        generator = random.Random(seed)
        return " ".join(str(generator.randrange(10**6)) for _ in range(words))

    def test_a_restart_finds_all_whole_blocks(self):
        self.start()
        choices, tokens, cached = self.ask(self.prompt())
        self.assertEqual(cached, 0)
        self.end()
        self.start()
        probe = self.request(
            "POST", "/v1/kv/probe", {"prompt": self.prompt()}, {"Authorization": "Bearer root"}
        )[2]
        self.assertEqual(json.loads(probe)["prompts"][0]["disk_tokens"], (tokens - 1) // 16 * 16)
        self.assertEqual(self.ask(self.prompt()), (choices, tokens, (tokens - 1) // 16 * 16))

    def test_what_was_written_survives_kill_9(self):
        self.start()
        choices, tokens, _ = self.ask(self.prompt())
        self.wait_until_written()
        self.kill()
        self.start()
        self.assertEqual(self.ask(self.prompt()), (choices, tokens, (tokens - 1) // 16 * 16))

    def test_chats_that_begin_with_the_same_words_of_a_template_are_found(self):
        def ask(seed):
            answer = self.chat(messages=[{"role": "user", "content": self.prompt(80, seed)}], max_tokens=2, temperature=0)
            return answer["choices"], answer["usage"]["prompt_tokens_details"]["cached_tokens"]

        self.start()
        answers = [ask(seed)[0] for seed in range(3)]
        self.end()
        self.start()
        for seed in range(3):
            choices, cached = ask(seed)
            self.assertEqual(choices, answers[seed])
            self.assertGreater(cached, 300)

    def test_a_kill_at_any_moment_changes_no_answer(self):
        self.start("--no-prefix-cache", disk=False)
        prompts = [self.prompt(60 + 30 * i, i) for i in range(4)]
        alone = [self.ask(prompt)[0] for prompt in prompts]
        self.end()
        for seed in range(4):
            self.start()
            for prompt, choices in zip(prompts, alone):
                self.assertEqual(self.ask(prompt)[0], choices)
            time.sleep(random.Random(seed).random() * 0.05)
            self.kill()

    def test_damage_is_a_miss(self):
        self.start()
        choices, tokens, _ = self.ask(self.prompt())
        self.end()
        for file in self.folder.glob("*.seg"):
            with open(file, "r+b") as contents:
                contents.seek(os.path.getsize(file) // 2)
                contents.write(b"\xaa" * 64)
        self.start()
        found = self.ask(self.prompt())
        self.assertEqual(found[0], choices)
        self.assertLess(found[2], tokens - 16)

    def test_kv_of_another_type_is_not_found(self):
        self.start()
        self.ask(self.prompt())
        self.end()
        self.start("--kv-type", "bf16")
        self.assertEqual(self.ask(self.prompt())[2], 0)
        self.end()
        self.start()
        self.assertGreater(self.ask(self.prompt())[2], 0)

    def test_clear_holds_over_a_restart(self):
        self.start()
        self.ask(self.prompt())
        status, _, text = self.request("POST", "/v1/kv/clear", "", {"Authorization": "Bearer root"})
        self.assertEqual(status, 200, text)
        self.kill()
        self.start()
        self.assertEqual(self.ask(self.prompt())[2], 0)

    def test_one_process_at_a_time(self):
        self.start()
        second = subprocess.run(
            [ARGUMENTS.cachalot, "serve"] + ([ARGUMENTS.model] if ARGUMENTS.model else [])
            + ["--port", "0", "--disk-path", str(self.folder), "--disk-size", "64MiB"],
            capture_output=True, text=True, timeout=120, check=False,
        )
        self.assertNotEqual(second.returncode, 0)
        self.assertIn(str(self.folder), second.stderr)

    def test_settings_that_make_no_sense_are_refused(self):
        for flags in (["--disk-path", str(self.folder)], ["--disk-path", "/dev/null/kv", "--disk-size", "64MiB"],
                      ["--disk-path", str(self.folder), "--disk-size", "64MiB", "--no-prefix-cache"]):
            ended = subprocess.run(
                [ARGUMENTS.cachalot, "serve"] + ([ARGUMENTS.model] if ARGUMENTS.model else []) + ["--port", "0"] + flags,
                capture_output=True, text=True, timeout=120, check=False,
            )
            self.assertNotEqual(ended.returncode, 0, flags)
            self.assertIn("--disk-path", ended.stderr)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cachalot", required=True, help="path of the program")
    parser.add_argument("--model", help="path or catalogue name")
    ARGUMENTS, rest = parser.parse_known_args()
    unittest.main(argv=[sys.argv[0]] + rest)
