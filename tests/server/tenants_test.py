"""Tenants, public prefixes and the administration of the KV, over a real model. See live_server.py for the arguments;
the server is started with keys of its own, so --url does not apply."""

import atexit
import hashlib
import json
import random
import sys
import tempfile

from live_server import ServerTestCase, main

SYSTEM = "You are the librarian of a small town by the sea. You answer in one short sentence, and you never guess."
FOLDER = tempfile.TemporaryDirectory()


def setup_flags():
    """The flags of the server: two tenants, an admin, a public system message."""
    keys, public = f"{FOLDER.name}/keys", f"{FOLDER.name}/public.txt"
    with open(keys, "w", encoding="utf-8") as file:
        file.write("# two tenants\n")
        for name in ("alice", "bob"):
            file.write(f"{name} {hashlib.sha256(f'key of {name}'.encode()).hexdigest()}\n")
    with open(public, "w", encoding="utf-8") as file:
        file.write(SYSTEM + "\n")
    return f"--api-keys {keys} --admin-key root --public-prefix {public}"


class Tenants(ServerTestCase):
    def call(self, who, method, path, body=None, expect=200):
        key = "root" if who == "root" else f"key of {who}"
        status, _, text = self.request(method, path, body, {"Authorization": f"Bearer {key}"})
        self.assertEqual(status, expect, text)
        return json.loads(text)

    def usage(self, who, path, body):
        usage = self.call(who, "POST", path, body)["usage"]
        return usage["prompt_tokens"], usage["prompt_tokens_details"]["cached_tokens"]

    def probe(self, body, tenant):
        return self.call("root", "POST", "/v1/kv/probe", dict(body, tenant=tenant))["prompts"][0]

    def text(self, words=60):
        return " ".join(str(random.randrange(10**9)) for _ in range(words))

    def test_tenants_do_not_find_each_others_kv(self):
        body = dict(prompt=self.text(), max_tokens=2, temperature=0)
        tokens, cached = self.usage("alice", "/v1/completions", body)
        # An earlier prompt of the same tenant may begin with the same digits.
        self.assertLess(cached, 16)
        probe = self.probe(body, "bob")
        self.assertLess(probe["hit_tokens"], 16)
        self.assertEqual(probe["limit"], "not_resident")
        self.assertLess(self.usage("bob", "/v1/completions", body)[1], 16)
        for who in ("alice", "bob"):
            probe = self.probe(body, who)
            self.assertEqual((probe["hit_tokens"], probe["limit"]), (tokens - 1, "last_token"))
            self.assertEqual(self.usage(who, "/v1/completions", body), (tokens, tokens - 1))

    def test_the_public_system_message_is_shared_in_whole_blocks(self):
        def chat(system, user):
            return dict(messages=[{"role": "system", "content": system}, {"role": "user", "content": user}],
                        max_tokens=2, temperature=0)
        block = self.call("root", "GET", "/v1/kv")["block_tokens"]
        self.usage("alice", "/v1/chat/completions", chat(SYSTEM, self.text()))
        asked = chat(SYSTEM, self.text())
        probe = self.probe(asked, "bob")
        public = probe["public_tokens"]
        self.assertGreater(public, block)
        self.assertEqual(probe["hit_tokens"], public // block * block)
        self.assertEqual(self.usage("bob", "/v1/chat/completions", asked)[1], public // block * block)
        other = chat("I am not public. " + SYSTEM, self.text())
        self.usage("alice", "/v1/chat/completions", other)
        self.assertLess(self.probe(other, "bob")["hit_tokens"], block)

    def test_clear_lets_go_of_what_nobody_uses(self):
        body = dict(prompt=self.text(), max_tokens=2, temperature=0)
        self.usage("alice", "/v1/completions", body)
        before = self.call("root", "GET", "/v1/kv")
        self.assertEqual(sum(before["slots"][key] for key in ("free", "idle", "in_use")), before["slots"]["total"])
        self.assertGreater(before["slots"]["idle"], 0)
        self.assertEqual(sum(before["bytes"][key] for key in ("live", "idle", "waste", "padding", "free")),
                         before["bytes"]["total"])
        self.assertGreater(before["tokens"]["indexed"], 60)
        self.assertEqual(self.call("root", "POST", "/v1/kv/clear")["evicted_slots"], before["slots"]["idle"])
        after = self.call("root", "GET", "/v1/kv")
        self.assertEqual((after["slots"]["free"], after["tokens"]["indexed"]), (after["slots"]["total"], 0))
        self.assertEqual(after["index_nodes"], 1)
        self.assertEqual(self.usage("alice", "/v1/completions", body)[1], 0)

    def test_keys_open_what_they_are_for(self):
        for who in ("alice", "nobody"):
            self.call(who, "GET", "/v1/kv", expect=401)
        for who in ("root", "nobody"):
            self.call(who, "GET", "/v1/models", expect=401)
        self.call("alice", "GET", "/v1/models")


if __name__ == "__main__":
    atexit.register(FOLDER.cleanup)
    sys.argv.append(f"--flags={setup_flags()}")
    main()
