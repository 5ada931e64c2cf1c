"""Whose KV a folder holds: that of another model, tokenizer or arithmetic is not found, however alike they look; and
`cachalot inspect` says what is there, for whom. Needs no model: it writes small ones with random weights.

    python3 tests/server/identity_test.py --cachalot build/release/cachalot [unittest arguments]
"""

import argparse
import json
import os
import pathlib
import random
import shutil
import subprocess
import sys
import tempfile
import unittest

import live_server
from live_server import LiveServer, ServerTestCase

ARGUMENTS = None
ROOT = pathlib.Path(__file__).resolve().parents[2]
SHAPE = ["--shape", "tiny", "--layers", "6", "--ffn", "1024", "--kv-heads", "1"]
ADMIN = {"Authorization": "Bearer root"}
DAMAGED, WRONGLY_ASKED = 1, 2  # exit codes


class TinyModelTestCase(ServerTestCase):
    @classmethod
    def setUpClass(cls):
        models = tempfile.TemporaryDirectory()
        cls.addClassCleanup(models.cleanup)
        cls.models = [pathlib.Path(models.name) / f"{seed}.gguf" for seed in (1, 2)]
        for path in cls.models:
            subprocess.run([sys.executable, str(ROOT / "tools/random_gguf.py"), *SHAPE, "--seed", path.stem, str(path)],
                           check=True, stdout=subprocess.DEVNULL)

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.kv = pathlib.Path(folder.name) / "kv"
        self.model = pathlib.Path(folder.name) / "model.gguf"
        shutil.copy(self.models[0], self.model)
        self.prompt = " ".join(str(random.Random(1).randrange(10**6)) for _ in range(60))

    def ask(self, *flags, model=None, disk=True):
        """Of a server that runs for this alone: (the answer with its logprobs, prompt tokens, those on disk before)"""
        if disk:
            flags = ["--disk-path", str(self.kv), "--disk-size", "64MiB", "--disk-min-free", "0", *flags]
        server = live_server.SERVER = LiveServer(None, ARGUMENTS.cachalot, str(model or self.model),
                                                 ["--kv-memory", "32MiB", "--admin-key", "root", *flags])
        try:
            probe = json.loads(self.request("POST", "/v1/kv/probe", {"prompt": self.prompt}, ADMIN)[2])["prompts"][0]
            answer = self.completion(prompt=self.prompt, max_tokens=6, temperature=0, logprobs=2)
            usage = answer["usage"]
            if probe["disk_tokens"] == 0:
                self.assertEqual(usage["prompt_tokens_details"]["cached_tokens"], 0)
            return answer["choices"], usage["prompt_tokens"], probe["disk_tokens"]
        finally:
            server.stop()

    def fill(self):
        """The folder holds KV of the prompt, and a server of this model finds it. The answer."""
        choices, tokens, found = self.ask()
        self.assertEqual(found, 0)
        self.assertEqual(self.ask(), (choices, tokens, (tokens - 1) // 16 * 16))
        return choices

    def change(self, offset, to=None):
        """Another byte at that place of the model's file, whose name, size and dates stay; what it was."""
        stat = os.stat(self.model)
        with open(self.model, "r+b") as file:
            file.seek(offset)
            old = file.read(1)
            file.seek(offset)
            file.write(to or bytes([old[0] ^ 0x40]))
        os.utime(self.model, ns=(stat.st_atime_ns, stat.st_mtime_ns))
        now = os.stat(self.model)
        self.assertEqual((now.st_size, now.st_mtime_ns), (stat.st_size, stat.st_mtime_ns))
        return old


class Identity(TinyModelTestCase):
    def test_one_other_byte_of_the_weights_under_the_same_name_size_and_date(self):
        before = self.fill()
        place = os.path.getsize(self.model) // 2
        old = self.change(place)
        cold = self.ask(disk=False)[0]
        self.assertNotEqual(cold, before, "the byte makes no difference, and the test proves nothing")
        choices, tokens, found = self.ask()
        self.assertEqual((choices, found), (cold, 0))
        self.assertEqual(self.ask(), (cold, tokens, (tokens - 1) // 16 * 16))
        self.change(place, old)
        self.assertEqual(self.ask(), (before, tokens, (tokens - 1) // 16 * 16))

    def test_another_arithmetic(self):
        before = self.fill()
        cold = self.ask("--reference", disk=False)[0]
        choices, tokens, found = self.ask("--reference")
        self.assertEqual((choices, found), (cold, 0))
        self.assertEqual(self.ask(), (before, tokens, (tokens - 1) // 16 * 16))

    def test_another_tokenizer(self):
        self.fill()
        name = b"<|reserved_7|>"
        contents = self.model.read_bytes()
        self.assertEqual(contents.count(name), 1)
        self.change(contents.index(name) + name.index(b"7"), b"x")
        cold = self.ask(disk=False)[0]
        self.assertEqual(self.ask()[::2], (cold, 0))


class Inspect(TinyModelTestCase):
    def inspect(self, *arguments, code=0):
        """(standard output, standard error)"""
        ended = subprocess.run([ARGUMENTS.cachalot, "inspect", *map(str, arguments)], capture_output=True, text=True,
                               timeout=120, check=False)
        self.assertEqual(ended.returncode, code, ended.stderr)
        return ended.stdout, ended.stderr

    def identity(self, model):
        lines = [line for line in self.inspect(model)[0].splitlines() if line.startswith("identity ")]
        self.assertEqual(len(lines), 1)
        return lines[0].split()[1]

    def test_a_folder_tells_what_each_model_could_reuse(self):
        _, tokens, _ = self.ask()
        self.ask(model=self.models[1])
        ours, theirs = self.identity(self.model), self.identity(self.models[1])
        self.assertNotEqual(ours, theirs)
        for model, reusable in ((None, None), (self.model, ours), (self.models[1], theirs)):
            flags = ["--model", model] if model else []
            text = self.inspect(self.kv, *flags)[0]
            told = {line.split()[1].rstrip(":"): line for line in text.splitlines() if line.startswith("identity ")}
            self.assertEqual(set(told), {ours, theirs})
            for identity, line in told.items():
                self.assertEqual("reusable by this model" in line, identity == reusable, line)
            report = json.loads(self.inspect(self.kv, "--json", *flags)[0])
            found = {entry["identity"]: entry for entry in report["identities"]}
            self.assertEqual(set(found), {ours, theirs})
            for identity, entry in found.items():
                self.assertEqual(entry.get("reusable"), None if model is None else identity == reusable)
                self.assertGreaterEqual(entry["tokens"], (tokens - 1) // 16 * 16)
        self.change(os.path.getsize(self.model) // 2)
        self.assertNotIn("reusable", self.inspect(self.kv, "--model", self.model)[0])

    def test_its_figures_add_up(self):
        self.ask()
        text = self.inspect(self.kv, "--check")[0]
        self.assertIn("all payloads agree with their checksums", text)
        self.assertIn("--check reads payloads too", self.inspect(self.kv)[0])
        report = json.loads(self.inspect(self.kv, "--json", "--check")[0])
        self.assertTrue(report["payloads_checked"])
        files = {path.name: path.stat().st_size for path in self.kv.iterdir() if path.suffix in (".seg", ".open")}
        self.assertEqual({s["name"]: s["file_bytes"] for s in report["segments"]}, files)
        for name in files:
            self.assertIn(name, text)
        self.assertEqual(sum(s["live_blocks"] for s in report["segments"]),
                         sum(entry["blocks"] for entry in report["identities"]))
        self.assertEqual(report["foreign_files"], [])
        (self.kv / "notes.txt").write_text("not ours", encoding="utf-8")
        self.assertEqual(json.loads(self.inspect(self.kv, "--json")[0])["foreign_files"], ["notes.txt"])
        self.assertIn("notes.txt", self.inspect(self.kv)[0])

    def test_damage_is_an_exit_code_and_is_printed(self):
        self.ask()
        segment = next(self.kv.glob("*.seg"))
        with open(segment, "r+b") as file:
            file.seek(os.path.getsize(segment) // 2)
            file.write(b"\xaa" * 64)
        text, problem = self.inspect(self.kv, "--check", code=DAMAGED)
        self.assertIn("segments with damage", text)
        self.assertIn("segments with damage", problem)
        report = json.loads(self.inspect(self.kv, "--check", "--json", code=DAMAGED)[0])
        self.assertGreater(sum(s["damaged_blocks"] for s in report["segments"]), 0)

    def test_what_is_no_folder_of_the_tier_is_refused(self):
        self.kv.mkdir()
        self.assertIn("no folder of the disk tier", self.inspect(self.kv, code=WRONGLY_ASKED)[1])
        (self.kv / "notes.txt").write_text("not ours", encoding="utf-8")
        self.assertIn("no folder of the disk tier", self.inspect(self.kv, code=WRONGLY_ASKED)[1])
        self.ask()
        self.inspect(self.kv, "--what", code=WRONGLY_ASKED)
        problem = self.inspect(self.kv, "--model", self.kv / "notes.txt", code=WRONGLY_ASKED)[1]
        self.assertIn("notes.txt", problem)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cachalot", required=True, help="path of the program")
    ARGUMENTS, rest = parser.parse_known_args()
    unittest.main(argv=[sys.argv[0]] + rest)
