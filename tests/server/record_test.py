"""The record, the input log and the decision log of a server under mixed traffic. See live_server.py for the arguments;
each test starts its own servers, so --url does not apply."""

import argparse
import base64
import concurrent.futures
import http.client
import json
import pathlib
import random
import re
import stat
import struct
import subprocess
import sys
import tempfile
import unittest

import live_server
from live_server import LiveServer, ServerTestCase

ARGUMENTS = None


class Record(ServerTestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.server = None
        self.addCleanup(lambda: self.server and self.server.stop())

    def start(self, *flags):
        self.server = live_server.SERVER = LiveServer(
            None, ARGUMENTS.cachalot, ARGUMENTS.model,
            ["--context", "1024", "--kv-memory", "48MiB", "--max-sequences", "8", "--max-queue", "9",
             "--admin-key", "root", *flags],
        )

    def end(self):
        server, self.server = self.server, None
        server.stop()

    def run_cachalot(self, *arguments):
        return subprocess.run([ARGUMENTS.cachalot, *arguments], capture_output=True, text=True, timeout=300)

    def text(self, seed, words):
        generator = random.Random(seed)
        return " ".join(generator.choice(["one", "two", "red", "blue", "sea", "whale", "Paris"]) for _ in range(words))

    def hang_up(self, prompt):
        """A stream whose client goes away in its middle."""
        connection = http.client.HTTPConnection(self.server.host, self.server.port, timeout=300)
        body = json.dumps(dict(prompt=prompt, max_tokens=400, stream=True, temperature=0))
        connection.request("POST", "/v1/completions", body, {"Content-Type": "application/json"})
        connection.getresponse().read(100)
        connection.close()

    def ask(self, number):
        """One of many kinds of requests; says which."""
        shared = self.text(number % 12, 120)
        prompt = shared + " " + self.text(1000 + number, 20)
        kind = ["plain", "stop", "two", "session", "hang up", "sampled", "scored"][number % 7]
        if kind == "hang up":
            self.hang_up(prompt)
        else:
            more = {
                "plain": dict(temperature=0),
                "stop": dict(temperature=0, stop=[" the", "e", "."]),
                "two": dict(n=2, seed=number),
                "session": dict(temperature=0, kv={"session": f"talk {number % 3}"}),
                "sampled": dict(temperature=1.2, seed=number),
                "scored": dict(echo=True, logprobs=1, temperature=0),
            }[kind]
            body = dict(prompt=prompt, max_tokens=8 + number % 9, **more)
            status, _, text = self.request("POST", "/v1/completions", body)
            self.assertIn(status, [200, 429], text)
            if status == 429:
                return "refused"
        return kind

    def traffic(self, count=120):
        with concurrent.futures.ThreadPoolExecutor(18) as pool:
            kinds = list(pool.map(self.ask, range(count)))
        for verb in ["suspend", "fork", "resume"]:
            self.request("POST", f"/v1/kv/sessions/talk%200/{verb}", dict(id="other"))
        self.request("GET", "/v1/kv", headers={"Authorization": "Bearer root"})
        return kinds

    def replayed(self, *flags, rounds=1, name="", then=lambda: None):
        """A server's logs under rounds of the same traffic, after a replay that made the same decisions."""
        inputs, decisions, again = (self.folder / (kind + name) for kind in ["inputs", "decisions", "again"])
        self.start("--input-log", str(inputs), "--decision-log", str(decisions), *flags)
        for _ in range(rounds):
            self.traffic()
        then()
        self.end()
        replay = self.run_cachalot("replay", "--input-log", str(inputs), "--decision-log", str(again), "--json")
        self.assertEqual(replay.returncode, 0, replay.stderr)
        self.assertTrue(again.read_bytes() == decisions.read_bytes())
        self.assertEqual(json.loads(replay.stdout)["tokens_not_in_the_log"], 0)
        return inputs, decisions

    def test_a_replay_with_host_memory_behind_a_link_makes_the_same_decisions(self):
        _, decisions = self.replayed(
            "--device", "simlink", "--host-memory", "256MiB", "--kv-memory", "24MiB", "--admission", "expected",
            rounds=3)
        self.assertTrue("resume " in decisions.read_text())

    def test_a_replay_with_a_disk_that_another_server_has_filled_makes_the_same_decisions(self):
        disk = ["--kv-memory", "24MiB", "--disk-path", str(self.folder / "kv"), "--disk-size", "192MiB"]
        link = ["--device", "simlink", "--host-memory", "64MiB", "--admission", "expected"]
        for name, flags in [("first", disk), ("second", disk + link)]:
            _, decisions = self.replayed(*flags, rounds=2, name=name)
            made = decisions.read_text()
            self.assertGreater(made.count("resume "), 5, name)
        self.assertLess(made.index("resume "), made.index("finish "), "what another server had written was not found")

    def test_a_replay_of_what_entered_makes_the_same_decisions(self):
        inputs, decisions = self.replayed()
        for path in [inputs, decisions]:
            self.assertEqual(stat.S_IMODE(path.stat().st_mode), 0o600)
        made = decisions.read_text()
        for word in ["admit ", "run ", "evict ", "refuse ", " stop ", " length ", " cancelled "]:
            self.assertTrue(word in made, word)

        others = self.folder / "others"
        replay = self.run_cachalot(
            "replay", "--input-log", str(inputs), "--decision-log", str(others), "--with-eviction", "length")
        self.assertEqual(replay.returncode, 0, replay.stderr)
        self.assertTrue(others.read_bytes() != decisions.read_bytes())

        # One that was cut off is replayed as far as it goes, and says so.
        cut, part = self.folder / "cut", self.folder / "part"
        cut.write_bytes(inputs.read_bytes()[: inputs.stat().st_size * 2 // 3])
        replay = self.run_cachalot("replay", "--input-log", str(cut), "--decision-log", str(part))
        self.assertEqual(replay.returncode, 1)
        self.assertRegex(replay.stderr, r"cut.*offset \d+")
        self.assertTrue(made.startswith(part.read_text()))
        self.assertGreater(part.stat().st_size, len(made) // 4)

    def save_and_restore(self):
        """A session goes into a file, comes back under another name, and is gone on with."""
        def command(verb, session, file):
            return self.request("POST", f"/v1/kv/sessions/{session}/{verb}", dict(file=file))

        self.completion(prompt=self.text(7, 200), max_tokens=4, temperature=0, kv={"session": "saved"})
        status, _, text = command("save", "saved", "file")
        self.assertEqual(status, 200, text)
        self.assertEqual(command("restore", "saved", "file")[0], 409)
        self.assertEqual(command("restore", "another", "none")[0], 404)
        status, _, text = command("restore", "restored", "file")
        self.assertEqual(status, 200, text)
        self.completion(prompt=self.text(7, 200), max_tokens=4, temperature=0, kv={"session": "restored"})

    def test_a_replay_of_saved_sessions_makes_the_same_decisions(self):
        files = ["--session-files", str(self.folder / "saved")]
        _, decisions = self.replayed(*files, then=self.save_and_restore)
        self.assertGreaterEqual(len(re.findall("session command .* done moved [1-9]", decisions.read_text())), 2)

    def test_a_replay_of_hits_that_were_verified_makes_the_same_decisions(self):
        self.replayed("--verify-hits", "0.5")

    def tags(self, text):
        data = base64.b64decode(text, validate=True)
        return struct.unpack(f"<{len(data) // 4}I", data)

    def test_a_record_says_what_was_shared_and_nothing_of_what_was_said(self):
        record = self.folder / "record"
        self.start("--record", str(record))
        kinds = self.traffic()
        prompt = self.text(1, 60)
        first = self.completion(prompt=prompt, max_tokens=20, temperature=0)
        continued = prompt + first["choices"][0]["text"]
        second = self.completion(prompt=continued, max_tokens=4, temperature=0)
        self.assertEqual(self.metric("cachalot_records_lost_total"), 0)
        self.end()
        self.assertEqual(stat.S_IMODE(record.stat().st_mode), 0o600)
        text = record.read_text()
        for word in ["whale", "Paris", "talk"]:
            self.assertNotIn(word, text)
        header, *lines = [json.loads(line) for line in text.splitlines()]
        self.assertEqual(header, {"cachalot_record": 1, "block_tokens": 16, "tag_bits": 32})
        self.assertEqual(len(lines), len(kinds) + 2)
        cancelled = [line for line in lines if line["outcome"] == "cancelled"]
        self.assertGreater(len(cancelled), 0)
        self.assertLessEqual(len(cancelled), kinds.count("hang up"))
        refused = [line for line in lines if line["outcome"] == "queue_full"]
        self.assertGreaterEqual(len(refused), kinds.count("refused"))
        self.assertEqual(sum(line["n"] == 2 for line in lines if line not in refused), kinds.count("two"))
        self.assertEqual(len({line["session"] for line in lines if "session" in line}), 3)
        for line in lines:
            self.assertEqual(len(self.tags(line["tags"])), line["input_length"])
            self.assertEqual(len(line["hash_ids"]), -(-line["input_length"] // 16))
            self.assertEqual(max([len(self.tags(t)) for t in line["output_tags"]] or [0]), line["output_length"])

        one, other = sorted(lines, key=lambda line: line["timestamp"])[-2:]
        self.assertEqual(one["cached_tokens"], first["usage"]["prompt_tokens_details"]["cached_tokens"])
        self.assertEqual(other["cached_tokens"], second["usage"]["prompt_tokens_details"]["cached_tokens"])
        known = self.tags(one["tags"]) + self.tags(one["output_tags"][0])
        common = 0
        while common < min(len(known), other["input_length"]) and known[common] == self.tags(other["tags"])[common]:
            common += 1
        self.assertGreater(common, one["input_length"])
        self.assertLessEqual(one["ttft_seconds"], one["e2e_seconds"])

        again = self.run_cachalot("serve", "--port", "0", "--record", str(record))
        self.assertNotEqual(again.returncode, 0)
        self.assertIn(str(record), again.stderr)
        self.assertEqual(record.read_text(), text)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument("--cachalot", default="build/release/cachalot")
    parser.add_argument("--model", default="smollm2")
    ARGUMENTS, rest = parser.parse_known_args()
    unittest.main(argv=sys.argv[:1] + rest)
