"""kill -9 at random moments of a server under load, with a disk tier that is too small for all, over and over: no wrong
token, the files' room as promised and as told, healthy after every restart, and what was acknowledged still there.

    python3 tests/server/kill_test.py --cachalot build/release/cachalot [--kills 200] [--seed 1] [--model MODEL]

Without --model it writes a small one with random weights, which starts and computes in milliseconds. Half of the
requests belong to sessions; one whose suspension was acknowledged, and that was not used since, must be listed after the
next start, with as many tokens as it had; one whose deletion was acknowledged must not. Half of the kills are of a server whose sessions have a folder of their own, and room for all; in the other
half they lie in the folder of the disk tier, in a share that does not hold all, and no more than eight of sixteen are
remembered: those that are not suspended go, and suspends are refused before one that was acknowledged does.
"""

import argparse
import collections
import http.client
import json
import os
import pathlib
import random
import subprocess
import sys
import tempfile
import threading
import time

from live_server import LiveServer

ROOT = pathlib.Path(__file__).resolve().parents[2]
ADMIN = {"Authorization": "Bearer root", "Content-Type": "application/json"}
LIMIT = 6 << 20
CLIENTS = 4
# Much KV that costs little to compute would never be worth loading: so few values per token, and many layers' work.
SHAPE = ["--shape", "tiny", "--layers", "6", "--width", "256", "--ffn", "1024", "--kv-heads", "1", "--context", "2048"]


class Gone(Exception):
    """The server was killed meanwhile."""


def call(server, method, path, body=None):
    """(status, the answer)"""
    connection = http.client.HTTPConnection(server.host, server.port, timeout=60)
    try:
        connection.request(method, path, None if body is None else json.dumps(body), ADMIN)
        response = connection.getresponse()
        text = response.read().decode()
        return response.status, json.loads(text) if text else None
    except (OSError, http.client.HTTPException, ValueError) as error:
        raise Gone() from error
    finally:
        connection.close()


class Prompts:
    """Conversations of several turns, so that prompts begin alike, and what each is answered."""

    def __init__(self, seed, count=16):
        generator = random.Random(seed)
        words = lambda n: " ".join(str(generator.randrange(10**4)) for _ in range(n))
        common = words(30)
        self.texts = []
        for i in range(count):
            begin = common + words(20) if i % 3 else words(40)
            self.texts += [begin, begin + words(60), begin + words(60) + words(90)]
        self.answers = {}

    def ask(self, server, index, session=None):
        body = {"prompt": self.texts[index], "max_tokens": 5, "temperature": 0, "logprobs": 1}
        if session:
            body["kv"] = {"session": session}
        status, answer = call(server, "POST", "/v1/completions", body)
        if status != 200:
            if status in (409, 429, 503):
                return None
            raise AssertionError(f"{status}: {answer}")
        return answer["choices"], answer["usage"]["prompt_tokens_details"]["cached_tokens"]


class KillTest:
    def __init__(self, options, folder, model, sessions, crowded):
        self.options, self.folder, self.model, self.crowded = options, folder, model, crowded
        self.disk = ["--disk-path", str(folder / "kv"), "--disk-size", str(LIMIT), "--disk-min-free", "0",
                     "--session-path", str(sessions), "--max-sessions", "8" if crowded else "100"]
        self.random = random.Random(options.seed)
        self.prompts = Prompts(options.seed)
        self.problems = []
        self.counts = collections.Counter()
        self.suspended = {}  # acknowledged, and must be there; with so many tokens, where that is known
        self.deleted = set()  # acknowledged, and must not be there
        self.uses = collections.Counter()  # by session
        self.in_use = collections.Counter()  # likewise, by requests that are not answered yet
        self.own = [[f"own{i}-0", f"own{i}-1"] for i in range(CLIENTS)]  # by client, whom nobody disturbs there
        self.lock = threading.Lock()

    def start(self, *flags):
        return LiveServer(None, self.options.cachalot, self.model,
                          ["--admin-key", "root", "--kv-memory", self.options.kv_memory, *flags])

    def start_with_disk(self):
        return self.start(*self.disk)

    def learn(self):
        server = self.start("--no-prefix-cache")
        for index in range(len(self.prompts.texts)):
            self.prompts.answers[index] = self.prompts.ask(server, index)[0]
        server.stop()

    def note_use(self, session):
        """From now on others may take the room of the session, where there is not enough for all."""
        with self.lock:
            self.uses[session] += 1
            self.in_use[session] += 1
            self.deleted.discard(session)
            if self.crowded:
                self.suspended.pop(session, None)
            elif session in self.suspended:
                self.suspended[session] = None

    def note_answer(self, session):
        with self.lock:
            self.in_use[session] -= 1

    def suspend(self, server, session):
        with self.lock:
            uses = self.uses[session]
        status, answer = call(server, "POST", f"/v1/kv/sessions/{session}/suspend", {})
        with self.lock:
            self.counts[f"suspend {status}"] += 1
            alone = uses == self.uses[session] and self.in_use[session] == 0
            if status == 200 and (uses == self.uses[session] or not self.crowded):
                self.suspended[session] = answer["tokens"] if alone else None
            if status == 503 and answer["error"]["code"] == "overloaded" and not self.crowded:
                self.problems.append(f"suspend: {answer}")

    def delete(self, server, session):
        """Of one that nobody else uses. Whether it is deleted."""
        with self.lock:
            self.suspended.pop(session, None)
        status, answer = call(server, "DELETE", f"/v1/kv/sessions/{session}")
        with self.lock:
            self.counts[f"delete {status}"] += 1
            if status == 200:
                self.expect(answer["durable"], f"delete: {answer}")
                self.deleted.add(session)
        return status == 200

    def load(self, server, seed):
        """Asks until the server is gone."""
        generator = random.Random(seed)
        own = self.own[seed % CLIENTS]
        try:
            while True:
                index = generator.randrange(len(self.prompts.texts))
                session = generator.choice((None, None, f"s{index // 3}", generator.choice(own)))
                if session:
                    self.note_use(session)
                answer = self.prompts.ask(server, index, session)
                if session:
                    self.note_answer(session)
                with self.lock:
                    self.counts["answers"] += 1
                    self.counts["refused"] += answer is None
                    if answer is None:
                        continue
                    self.counts["cached tokens"] += answer[1]
                    if answer[0] != self.prompts.answers[index]:
                        self.problems.append(f"prompt {index}: {answer[0]}, alone {self.prompts.answers[index]}")
                if session and generator.random() < 0.5:
                    self.suspend(server, session)
                if session in own and generator.random() < 0.4 and self.delete(server, session):
                    own[own.index(session)] = f"{session}x"  # so that the deleted one is looked for from now on
        except Gone:
            pass
        except AssertionError as error:
            self.problems.append(str(error))

    def expect(self, condition, text):
        if not condition:
            self.problems.append(text)

    def occupied(self):
        """(bytes of the folder with all in it, of segments), as du counts them"""
        kv = self.folder / "kv"
        everything = segments = 0
        for path in (kv, *kv.rglob("*")):
            try:
                blocks = os.stat(path).st_blocks * 512
            except FileNotFoundError:
                continue  # removed meanwhile
            everything += blocks
            segments += blocks * (path.suffix in (".seg", ".open"))
        return everything, segments

    def check(self, server):
        """What must hold right after a start."""
        self.expect(call(server, "GET", "/health") == (200, {"status": "ok"}), "not healthy")
        everything, segments = self.occupied()
        self.expect(everything <= LIMIT, f"{everything} bytes occupied")
        told = call(server, "GET", "/v1/kv")[1]["disk"]
        self.expect(told["occupied_bytes"] == segments, f"{segments} bytes of segments, told {told['occupied_bytes']}")
        self.expect(told["failed_stores"] == 0, f"{told['failed_stores']} failed stores")
        listed = {entry["id"]: entry["tokens"] for entry in call(server, "GET", "/v1/kv/sessions")[1]["data"]}
        self.expect(self.suspended.keys() <= listed.keys(), f"lost: {sorted(self.suspended.keys() - listed.keys())}")
        for session, tokens in self.suspended.items():
            self.expect(tokens is None or listed.get(session, tokens) == tokens,
                        f"{session}: {listed.get(session)} tokens, {tokens} when it was suspended")
            self.counts["token counts compared"] += tokens is not None
        self.expect(not self.deleted & listed.keys(), f"back again: {sorted(self.deleted & listed.keys())}")
        self.counts["deleted ones looked for"] += len(self.deleted)
        self.counts["blocks found"] += told["blocks"]

    def one_kill(self, number):
        if self.random.random() < 0.1:  # while it starts
            process = subprocess.Popen(
                [self.options.cachalot, "serve", self.model, "--port", "0", *self.disk],
                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            time.sleep(self.random.random() * 0.2)
            process.kill()
            process.wait()
        server = self.start_with_disk()
        self.in_use.clear()
        self.check(server)
        clients = [threading.Thread(target=self.load, args=(server, number * CLIENTS + i)) for i in range(CLIENTS)]
        for client in clients:
            client.start()
        time.sleep(self.random.random() ** 2 * 2)
        try:
            self.counts["loaded tokens"] += call(server, "GET", "/v1/kv")[1]["disk"]["loaded_tokens"]
        except Gone:
            pass
        server.process.kill()
        server.process.wait()
        server.process.stdout.close()
        for client in clients:
            client.join()
        self.expect(self.occupied()[0] <= LIMIT, f"{self.occupied()[0]} bytes occupied after a kill")

    def run(self, kills):
        self.learn()
        for number in range(kills):
            self.one_kill(number)
            if self.problems:
                print(f"after {number + 1} kills:", *self.problems[:10], sep="\n  ")
                return False
        print(f"{kills} kills:", ", ".join(f"{count} {what}" for what, count in self.counts.items()))
        self.expect(self.counts["loaded tokens"] > 0, "nothing ever came from disk: the test proves nothing")
        for what in ("token counts compared", "deleted ones looked for"):
            self.expect(self.counts[what] > 0, f"{what}: none, the test proves nothing")
        self.expect(self.counts["suspend 503"] > 0 or not self.crowded, "no suspend was refused: there was room for all")
        print(*self.problems, sep="\n")
        return not self.problems


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cachalot", required=True, help="path of the program")
    parser.add_argument("--model", help="path or catalogue name")
    parser.add_argument("--kv-memory", default="4MiB", help="of the hot pool, too small for all")
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as parent:
        folder = pathlib.Path(parent)
        model = options.model
        if model is None:
            model = str(folder / "tiny.gguf")
            subprocess.run([sys.executable, str(ROOT / "tools/random_gguf.py"), *SHAPE, model], check=True,
                           stdout=subprocess.DEVNULL)
        passed = True
        for name, sessions in (("roomy", "sessions"), ("crowded", "kv/sessions")):
            (folder / name).mkdir()
            test = KillTest(options, folder / name, model, folder / name / sessions, name == "crowded")
            passed = test.run(options.kills // 2) and passed
        sys.exit(not passed)


if __name__ == "__main__":
    main()
