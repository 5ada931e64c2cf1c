"""Sessions over a real model: begun, continued, suspended, brought back over restarts and crashes, forked, saved, deleted.
See live_server.py for the arguments; each test starts its own servers, so --url does not apply."""

import argparse
import hashlib
import json
import pathlib
import random
import sys
import tempfile
import unittest
import urllib.parse

import live_server
from live_server import LiveServer, ServerTestCase

ARGUMENTS = None


class Sessions(ServerTestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.server = None
        self.key = None
        self.addCleanup(lambda: self.server and self.server.stop())

    def start(self, *flags, disk=True):
        if disk:
            flags = ["--disk-path", str(self.folder / "kv"), "--disk-size", "128MiB", "--disk-min-free", "0", *flags]
        self.server = live_server.SERVER = LiveServer(
            None, ARGUMENTS.cachalot, ARGUMENTS.model,
            ["--context", "2048", "--kv-memory", "192MiB", "--admin-key", "root", *flags],
        )

    def restart(self, *flags, kill=False):
        if kill:
            self.server.process.kill()
            self.server.process.wait()
            self.server.process.stdout.close()
        else:
            self.server.stop()
        self.server = None
        self.start(*flags)

    def call(self, method, path, body=None, expect=200, key=None):
        key = key or self.key
        headers = {"Authorization": f"Bearer {key}"} if key else {}
        status, _, text = self.request(method, path, body, headers)
        self.assertEqual(status, expect, text)
        return json.loads(text) if text else None

    def path(self, session, verb=""):
        return "/v1/kv/sessions/" + urllib.parse.quote(session, safe="") + (f"/{verb}" if verb else "")

    def verb(self, session, verb, body=None, expect=200, key=None):
        return self.call("POST", self.path(session, verb), body or {}, expect, key)

    def show(self, session, expect=200, key=None):
        return self.call("GET", self.path(session), expect=expect, key=key)

    def ids(self, key=None):
        return [entry["id"] for entry in self.call("GET", "/v1/kv/sessions", key=key)["data"]]

    def complete(self, prompt, key=None, **more):
        """(text and logprobs, usage)"""
        body = dict(prompt=prompt, max_tokens=6, temperature=0, logprobs=2, **more)
        answer = self.call("POST", "/v1/completions", body, key=key)
        return answer["choices"][0], answer["usage"]

    def say(self, session, prompt, key=None):
        return self.complete(prompt, key, kv={"session": session})

    def cold(self, prompt):
        """The answer of one whose KV nobody shares."""
        choice, usage = self.complete(prompt, cache_salt=str(random.random()))
        self.assertEqual(usage["prompt_tokens_details"]["cached_tokens"], 0)
        return choice

    def cached(self, usage):
        return usage["prompt_tokens_details"]["cached_tokens"]

    def text(self, seed, words=60):
        generator = random.Random(seed)
        return " ".join(str(generator.randrange(10**6)) for _ in range(words))

    def begin(self, session, seed=1):
        """Begins it, and gives the prompt with which it goes on, and the tokens that it has."""
        prompt = self.text(seed)
        choice, usage = self.say(session, prompt)
        report = usage["kv"]["session"]
        self.assertEqual((report["id"], report["history_tokens"], report["kept"]), (session, 0, True))
        # The last token was sampled and never went through the model, yet it belongs to the history.
        return prompt + choice["text"] + " And", usage["prompt_tokens"] + usage["completion_tokens"]

    def go_on(self, session, prompt, at_least):
        """Goes on with it; it is as if it were computed afresh, and so many tokens were not."""
        choice, usage = self.say(session, prompt)
        self.assertEqual(choice, self.cold(prompt))
        self.assertGreaterEqual(self.cached(usage), at_least)
        return usage

    def test_suspended_it_survives_a_restart_and_a_crash_and_deleted_it_stays_away(self):
        self.start()
        prompt, tokens = self.begin("talk")
        shown = self.show("talk")
        self.assertEqual((shown["state"], shown["tokens"], shown["in_use"]), ("hot", tokens, False))
        self.assertGreater(shown["tiers"]["hot"]["bytes"], 0)
        self.assertGreaterEqual(shown["reusable_tokens"], tokens - 2)
        self.assertEqual(self.ids(), ["talk"])

        suspended = self.verb("talk", "suspend")
        self.assertTrue(suspended["durable"])
        self.assertEqual((suspended["state"], suspended["tiers"]["hot"]["tokens"]), ("warm", 0))
        self.assertGreaterEqual(suspended["tiers"]["disk"]["tokens"], tokens - 1)
        self.assertGreater(suspended["cost"]["recompute_seconds"], 0)
        self.restart(kill=True)
        shown = self.show("talk")
        self.assertEqual((shown["state"], shown["tokens"]), ("warm", tokens))
        usage = self.go_on("talk", prompt, tokens - 2)
        report = usage["kv"]["session"]
        self.assertEqual(report["history_tokens"], tokens)
        self.assertGreaterEqual(report["extended_tokens"], tokens - 2)

        tokens = usage["prompt_tokens"] + usage["completion_tokens"]
        self.restart()
        self.assertEqual(self.show("talk")["tokens"], tokens)
        resumed = self.verb("talk", "resume")
        self.assertGreaterEqual(resumed["loaded_tokens"], tokens // 16 * 16)
        self.assertEqual(resumed["state"], "hot")
        self.go_on("talk", prompt, tokens - 8)

        self.assertTrue(self.call("DELETE", self.path("talk"))["durable"])
        self.restart(kill=True)
        self.show("talk", expect=404)
        self.assertEqual(self.ids(), [])
        self.assertLess(self.cached(self.complete(prompt)[1]), 16)

    def test_deleted_while_it_is_being_written_it_stays_away_too(self):
        self.start()
        prompt, _ = self.begin("talk", seed=7)
        self.call("DELETE", self.path("talk"))
        self.restart(kill=True)
        probe = self.call("POST", "/v1/kv/probe", {"prompt": prompt}, key="root")["prompts"][0]
        self.assertEqual((probe["hit_tokens"], probe["disk_tokens"]), (0, 0))

    def test_forks_pins_and_files(self):
        saved = ["--session-files", str(self.folder / "saved"), "--pin-budget", "0.3"]
        self.start(*saved)
        prompt, tokens = self.begin("one/two é", seed=2)
        self.verb("one/two é", "fork", {"id": "fork"})
        self.assertEqual(self.show("fork")["tokens"], tokens)
        self.verb("one/two é", "fork", {"id": "fork"}, expect=409)
        self.go_on("fork", prompt, tokens - 2)
        self.assertEqual(self.show("one/two é")["tokens"], tokens)
        self.assertTrue(self.verb("fork", "pin")["pinned"])
        self.assertFalse(self.verb("fork", "unpin")["pinned"])

        file = self.verb("one/two é", "save", {"file": "talk.kv"})
        path = self.folder / "saved" / "talk.kv"
        self.assertEqual(file["file_bytes"], path.stat().st_size)
        self.assertEqual(path.stat().st_mode & 0o777, 0o600)
        self.verb("one/two é", "restore", {"file": "talk.kv"}, expect=409)
        self.verb("back", "restore", {"file": "nothing"}, expect=404)
        for session in ("one/two é", "fork"):
            self.call("DELETE", self.path(session))
        restored = self.verb("back", "restore", {"file": "talk.kv"})
        self.assertEqual((restored["id"], restored["tokens"]), ("back", tokens))
        self.go_on("back", prompt, tokens - 2)

        with open(path, "r+b") as contents:
            contents.seek(path.stat().st_size // 2)
            byte = contents.read(1)
            contents.seek(-1, 1)
            contents.write(bytes([byte[0] ^ 1]))
        self.verb("damaged", "restore", {"file": "talk.kv"}, expect=422)
        self.show("damaged", expect=404)
        self.assertEqual(self.complete("x")[1]["completion_tokens"], 6)

    def test_what_is_wrongly_asked_is_refused(self):
        self.start(disk=False)
        self.begin("talk", seed=3)
        self.show("nobody", expect=404)
        self.verb("nobody", "suspend", expect=404)
        self.call("DELETE", self.path("nobody"), expect=404)
        self.verb("talk", "dance", expect=404)
        self.call("GET", self.path("talk", "suspend"), expect=405)
        for verb, body in (("fork", {}), ("fork", {"id": ""}), ("fork", {"id": "a\nb"}), ("resume", {"in": "soon"}),
                           ("save", {"file": "../x"}), ("suspend", {"what": 1})):
            self.verb("talk", verb, body, expect=400)
        for kv in ({"session": ""}, {"session": 5}, {"session": "x" * 129}, {"sessions": "x"}, {"session_ttl": 5},
                   {"session": "x", "returns": False, "returns_in": 3}):
            self.call("POST", "/v1/completions", {"prompt": "x", "kv": kv}, expect=400)
        self.call("POST", "/v1/completions", {"prompt": ["x", "y"], "kv": {"session": "x"}}, expect=400)
        self.call("POST", "/v1/kv/prefetch", {}, expect=400)
        self.call("POST", "/v1/kv/prefetch", {"session": "nobody"}, expect=404)
        self.assertEqual(self.ids(), ["talk"])

    def test_a_session_has_its_time_and_its_stream_tells_of_it(self):
        self.start(disk=False)
        body = {"prompt": self.text(4), "max_tokens": 2, "kv": {"session": "s", "session_ttl": 3600, "returns": False},
                "stream_options": {"include_usage": True}}
        report = self.stream("/v1/completions", body)[-1]["usage"]["kv"]["session"]
        self.assertEqual((report["id"], report["history_tokens"]), ("s", 0))
        self.assertEqual(self.show("s")["ttl"], 3600)
        decisions = self.call("GET", "/v1/kv/decisions", key="root")["decisions"]
        self.assertIsInstance(decisions, list)
        self.assertEqual(self.metric("cachalot_sessions_begun_total"), 1)

    def test_a_prompt_is_fetched_before_it_is_asked(self):
        self.start()
        choice, usage = self.complete(self.text(6))
        self.restart()
        whole = usage["prompt_tokens"] // 16 * 16
        prefetched = self.call("POST", "/v1/kv/prefetch", {"prompt": self.text(6)})
        self.assertGreaterEqual(prefetched["loaded_tokens"], whole - 16)
        probe = self.call("POST", "/v1/kv/probe", {"prompt": self.text(6)}, key="root")["prompts"][0]
        self.assertGreaterEqual(probe["hit_tokens"], whole - 16)
        self.assertEqual(self.complete(self.text(6))[0], choice)
        self.assertGreater(self.metric("cachalot_prefetched_tokens_total"), 0)

    def keys(self):
        keys = self.folder / "keys"
        keys.write_text("".join(f"{name} {hashlib.sha256(f'key of {name}'.encode()).hexdigest()}\n"
                                for name in ("alice", "bob")), encoding="utf-8")
        return str(keys)

    def test_tenants_have_files_of_their_own(self):
        saved = ["--api-keys", self.keys(), "--session-files", str(self.folder / "saved")]
        self.start(*saved)
        alice, bob = "key of alice", "key of bob"
        self.key = alice
        prompt, tokens = self.begin("talk", seed=8)
        self.verb("talk", "save", {"file": "f"})
        missing = self.verb("mine", "restore", {"file": "f"}, key=bob, expect=404)
        never = self.verb("mine", "restore", {"file": "g"}, key=bob, expect=404)
        self.assertEqual(missing["error"]["message"].replace("'f'", "'g'"), never["error"]["message"])
        self.show("mine", key=bob, expect=404)
        self.verb("mine", "restore", {"file": "f"}, key="root", expect=404)
        other = self.say("his", self.text(9, words=20), key=bob)[1]
        self.verb("his", "save", {"file": "f"}, key=bob)
        self.restart(*saved)
        back = self.verb("back", "restore", {"file": "f"})
        self.assertEqual((back["tokens"], back["loaded_tokens"]), (tokens, tokens - 1))
        self.go_on("back", prompt, tokens - 2)
        his = self.verb("back", "restore", {"file": "f"}, key=bob)
        self.assertEqual(his["tokens"], other["prompt_tokens"] + other["completion_tokens"])
        self.call("POST", self.path("again", "restore") + "?tenant=alice", {"file": "f"}, key="root")
        self.assertEqual(self.show("again")["tokens"], tokens)

    def test_a_save_leaves_others_their_room_on_the_disk(self):
        self.start("--session-files", str(self.folder / "saved"), "--disk-min-free", "1000TiB", disk=False)
        self.begin("talk", seed=10)
        refused = self.verb("talk", "save", {"file": "f"}, expect=503)["error"]
        self.assertEqual(refused["code"], "overloaded")
        self.assertIn("the disk is full", refused["message"])
        self.assertEqual(list((self.folder / "saved").iterdir()), [])

    def test_tenants_have_sessions_of_their_own(self):
        keys = self.keys()
        self.start("--api-keys", keys)
        alice, bob = "key of alice", "key of bob"
        self.key = alice
        prompt, tokens = self.begin("talk", seed=5)
        self.show("talk", key=bob, expect=404)
        self.verb("talk", "suspend", key=bob, expect=404)
        self.call("DELETE", self.path("talk"), key=bob, expect=404)
        self.assertEqual((self.ids(key=alice), self.ids(key=bob)), (["talk"], []))
        self.call("GET", "/v1/kv/sessions?tenant=alice", key=bob, expect=403)
        self.call("GET", "/v1/kv/sessions", key="nobody", expect=401)
        usage = self.say("talk", prompt, key=bob)[1]
        self.assertEqual((usage["kv"]["session"]["history_tokens"], self.cached(usage) < 16), (0, True))
        listed = self.call("GET", "/v1/kv/sessions", key="root")["data"]
        self.assertEqual([(entry["tenant"], entry["id"]) for entry in listed], [("alice", "talk"), ("bob", "talk")])
        self.verb("talk", "suspend")
        self.restart("--api-keys", keys)
        self.go_on("talk", prompt, tokens - 2)
        self.call("DELETE", self.path("talk") + "?tenant=bob", key="root")
        self.assertEqual((self.ids(key=alice), self.ids(key=bob)), (["talk"], []))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cachalot", required=True, help="path of the program")
    parser.add_argument("--model", help="path or catalogue name")
    ARGUMENTS, rest = parser.parse_known_args()
    unittest.main(argv=[sys.argv[0]] + rest)
