"""Server: a `cachalot serve` of one's own, for the benches beside. Needs nothing but Python."""

import json
import re
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
ADMIN = {"Authorization": "Bearer admin"}


class Server:
    """Listens once it is made; drains at the end of a with block, or of stop()."""

    def __init__(self, cachalot, model, flags):
        command = [str(word) for word in [cachalot, "serve", model, "--port", "0", "--admin-key", "admin", *flags]]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        for line in self.process.stdout:
            if found := re.search(r"listening on (http://\S+)", line):
                self.url = found.group(1)
                return
        sys.exit(f"{' '.join(command)} ended without listening")

    def __enter__(self):
        return self

    def __exit__(self, kind, error, trace):
        if kind:
            self.process.kill()
        self.stop()

    def stop(self):
        """Its exit code."""
        self.process.send_signal(signal.SIGINT)
        self.process.stdout.read()
        return self.process.wait(timeout=120)

    def get(self, path, body=None):
        """What a GET gives, or a POST of `body`."""
        request = urllib.request.Request(self.url + path, body, {**ADMIN, "Content-Type": "application/json"})
        try:
            with urllib.request.urlopen(request, timeout=600) as response:
                return json.load(response)
        except urllib.error.HTTPError as error:
            sys.exit(f"{path}: {error} {error.read().decode()[:500]}")

    def proc(self, name, key):
        """A number of /proc/PID/NAME."""
        return int(re.search(rf"^{key}:\s+(\d+)", Path(f"/proc/{self.process.pid}/{name}").read_text(), re.MULTILINE)[1])
