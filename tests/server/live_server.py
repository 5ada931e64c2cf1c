"""A server to test: one that runs already (--url), or one that is started for the test (--cachalot, --model).

Every test program of this folder takes the same arguments:
    python3 tests/server/api_test.py --cachalot build/release/cachalot [--model smollm2] [unittest arguments]
    python3 tests/server/api_test.py --url http://127.0.0.1:8080 [unittest arguments]
"""

import argparse
import http.client
import json
import re
import signal
import subprocess
import sys
import unittest
import urllib.parse


class LiveServer:
    """Starts and stops `cachalot serve`, unless a URL is given."""

    def __init__(self, url, cachalot, model, flags):
        self.process = None
        self.url = url
        if url is None:
            command = [cachalot, "serve"] + ([model] if model else []) + ["--port", "0"] + flags
            self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
            for line in self.process.stdout:
                found = re.search(r"listening on (http://\S+)", line)
                if found:
                    self.url = found.group(1)
                    break
            else:
                raise RuntimeError(f"{' '.join(command)} ended without listening")
        address = urllib.parse.urlsplit(self.url)
        self.host, self.port = address.hostname, address.port

    def stop(self):
        """Drains the server that was started; it must end by itself and well."""
        if self.process is None:
            return
        self.process.send_signal(signal.SIGINT)
        self.process.stdout.read()
        self.process.stdout.close()
        code = self.process.wait(timeout=60)
        if code != 0:
            raise RuntimeError(f"the server ended with code {code}")


SERVER = None


class ServerTestCase(unittest.TestCase):
    """Requests over the standard library's client."""

    def request(self, method, path, body=None, headers=None):
        """(status, headers, body as text)"""
        connection = http.client.HTTPConnection(SERVER.host, SERVER.port, timeout=300)
        try:
            if body is not None and not isinstance(body, (str, bytes)):
                body = json.dumps(body)
            connection.request(method, path, body, headers or {"Content-Type": "application/json"})
            response = connection.getresponse()
            return response.status, dict(response.getheaders()), response.read().decode("utf-8")
        finally:
            connection.close()

    def get(self, path):
        status, _, body = self.request("GET", path)
        return status, body

    def post(self, path, body, expect=200):
        status, _, text = self.request("POST", path, body)
        self.assertEqual(status, expect, text)
        return json.loads(text)

    def completion(self, **fields):
        return self.post("/v1/completions", fields)

    def chat(self, **fields):
        """The answer; a base model, which says that it has no chat template, skips the test."""
        status, _, text = self.request("POST", "/v1/chat/completions", fields)
        answer = json.loads(text)
        if status == 400 and answer["error"]["code"] == "no_chat_template":
            self.skipTest(answer["error"]["message"])
        self.assertEqual(status, 200, text)
        return answer

    def stream(self, path, body):
        """The events of a stream, parsed; the [DONE] at the end is checked and left out."""
        status, headers, text = self.request("POST", path, dict(body, stream=True))
        self.assertEqual(status, 200, text)
        self.assertTrue(headers["Content-Type"].startswith("text/event-stream"))
        lines = [line for line in text.split("\n\n") if line and not line.startswith(":")]
        self.assertTrue(all(line.startswith("data: ") for line in lines), text[:200])
        self.assertEqual(lines[-1], "data: [DONE]")
        return [json.loads(line[len("data: "):]) for line in lines[:-1]]

    def metric(self, name):
        _, text = self.get("/metrics")
        return float(re.search(rf"^{re.escape(name)} (\S+)$", text, re.MULTILINE).group(1))


def main():
    """Runs the tests of the calling program against the server that its arguments name."""
    global SERVER
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument("--url")
    parser.add_argument("--cachalot", default="build/release/cachalot")
    parser.add_argument("--model")
    parser.add_argument("--flags", default="", help="further flags of cachalot serve, separated by spaces")
    options, rest = parser.parse_known_args()
    SERVER = LiveServer(options.url, options.cachalot, options.model, options.flags.split())
    try:
        program = unittest.main(module="__main__", argv=sys.argv[:1] + rest, exit=False)
    finally:
        SERVER.stop()
    sys.exit(not program.result.wasSuccessful())
