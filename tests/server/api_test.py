"""The API as any HTTP client sees it; standard library only. See live_server.py for the arguments."""

import concurrent.futures
import json
import random
import socket
import time
import unittest

import live_server
from live_server import ServerTestCase, main

MESSAGES = [{"role": "user", "content": "Count from one to five, then stop."}]
GREEDY = {"temperature": 0, "max_tokens": 24}


class Answers(ServerTestCase):
    def test_chat(self):
        answer = self.chat(messages=MESSAGES, **GREEDY)
        self.assertEqual(answer["object"], "chat.completion")
        self.assertTrue(answer["id"].startswith("chatcmpl-"))
        self.assertEqual(answer["choices"][0]["message"]["role"], "assistant")
        self.assertIn(answer["choices"][0]["finish_reason"], ("stop", "length"))
        usage = answer["usage"]
        self.assertGreater(usage["prompt_tokens"], 0)
        self.assertEqual(usage["total_tokens"], usage["prompt_tokens"] + usage["completion_tokens"])
        self.assertIn("cached_tokens", usage["prompt_tokens_details"])

    def test_a_stream_gives_the_same_text(self):
        whole = self.chat(messages=MESSAGES, **GREEDY)["choices"][0]
        events = self.stream("/v1/chat/completions",
                             dict(GREEDY, messages=MESSAGES, stream_options={"include_usage": True}))
        self.assertEqual(events[0]["choices"][0]["delta"], {"role": "assistant", "content": ""})
        text = "".join(event["choices"][0]["delta"].get("content", "") for event in events[:-1])
        self.assertEqual(text, whole["message"]["content"])
        self.assertEqual(events[-2]["choices"][0]["finish_reason"], whole["finish_reason"])
        self.assertEqual(events[-1]["choices"], [])
        self.assertGreater(events[-1]["usage"]["completion_tokens"], 0)

    def test_completions_take_text_and_tokens(self):
        answer = self.completion(prompt=["The sky is", "Grass is"], **GREEDY)
        self.assertEqual([choice["index"] for choice in answer["choices"]], [0, 1])
        self.assertEqual(answer["choices"][0]["text"], self.completion(prompt="The sky is", **GREEDY)["choices"][0]["text"])
        by_id = self.completion(prompt=[[5, 6, 7], [8, 9]], max_tokens=3, temperature=0)
        self.assertEqual(by_id["usage"]["prompt_tokens"], 5)
        self.assertEqual(by_id["choices"][0]["text"],
                         self.completion(prompt=[5, 6, 7], max_tokens=3, temperature=0)["choices"][0]["text"])

    def test_a_seed_repeats_and_choices_differ(self):
        ask = dict(prompt="Once upon a time", max_tokens=16, temperature=1.5, seed=7, n=3)
        first, second = self.completion(**ask), self.completion(**ask)
        texts = [choice["text"] for choice in first["choices"]]
        self.assertEqual(texts, [choice["text"] for choice in second["choices"]])
        self.assertGreater(len(set(texts)), 1)

    def test_stop_strings_cut_the_text(self):
        free = self.completion(prompt="one two three four", temperature=0, max_tokens=16)["choices"][0]["text"]
        if len(free.strip()) < 4:
            self.skipTest("the model says nothing that could be cut")
        stop = free[len(free) // 2:len(free) // 2 + 2]
        cut = self.completion(prompt="one two three four", temperature=0, max_tokens=16, stop=[stop, "\u0001"])
        self.assertEqual(cut["choices"][0]["text"], free[:free.index(stop)])
        self.assertEqual(cut["choices"][0]["finish_reason"], "stop")

    def test_logprobs(self):
        choice = self.chat(messages=MESSAGES, logprobs=True, top_logprobs=3, **GREEDY)["choices"][0]
        content = choice["logprobs"]["content"]
        text = b"".join(bytes(entry["bytes"]) for entry in content).decode("utf-8", "replace")
        self.assertIn(choice["message"]["content"].strip()[:5], text)
        for entry in content:
            self.assertEqual(len(entry["top_logprobs"]), 3)
            self.assertLessEqual(entry["logprob"], 0)
            self.assertEqual(entry["logprob"], entry["top_logprobs"][0]["logprob"])

    def test_echo_scores_the_prompt(self):
        choice = self.completion(prompt="The quick brown fox", max_tokens=0, echo=True, logprobs=1)["choices"][0]
        self.assertEqual(choice["text"], "The quick brown fox")
        logprobs = choice["logprobs"]
        self.assertIsNone(logprobs["token_logprobs"][0])
        self.assertTrue(all(value <= 0 for value in logprobs["token_logprobs"][1:]))
        lengths = {len(logprobs[key]) for key in ("tokens", "token_logprobs", "top_logprobs", "text_offset")}
        self.assertEqual(len(lengths), 1)

    def test_ignore_eos_runs_to_the_end(self):
        answer = self.chat(messages=MESSAGES, temperature=0, max_tokens=64, ignore_eos=True)
        self.assertEqual(answer["usage"]["completion_tokens"], 64)
        self.assertEqual(answer["choices"][0]["finish_reason"], "length")

    def test_many_at_once_get_what_each_gets_alone(self):
        asks = [dict(prompt=f"{i} plus {i} is", temperature=0, max_tokens=12) for i in range(16)]
        alone = [self.completion(**ask)["choices"][0]["text"] for ask in asks]
        with concurrent.futures.ThreadPoolExecutor(16) as pool:
            together = list(pool.map(lambda ask: self.completion(**ask)["choices"][0]["text"], asks))
        self.assertEqual(alone, together)


class CachedTokens(ServerTestCase):
    def prompt(self, words=60):
        """One that no server has seen."""
        return " ".join(f"{random.randrange(10**9)}" for _ in range(words))

    def usage_of(self, answer):
        usage = answer["usage"]
        return usage["prompt_tokens"], usage["prompt_tokens_details"]["cached_tokens"]

    def test_a_second_request_computes_the_last_token_only(self):
        ask = dict(prompt=self.prompt(), temperature=0, max_tokens=8)
        first, second = self.completion(**ask), self.completion(**ask)
        tokens, cached = self.usage_of(second)
        self.assertLess(self.usage_of(first)[1], 16)
        self.assertEqual(cached, tokens - 1)
        self.assertEqual(first["choices"][0]["text"], second["choices"][0]["text"])
        self.assertEqual(self.usage_of(self.completion(n=3, **ask)), (tokens, tokens - 1))
        events = self.stream("/v1/completions", dict(ask, stream_options={"include_usage": True}))
        self.assertEqual(self.usage_of(events[-1]), (tokens, tokens - 1))

    def test_equal_prompts_of_one_request_are_computed_once(self):
        prompt = self.prompt()
        before = self.metric("cachalot_prompt_tokens_computed_total")
        tokens, cached = self.usage_of(self.completion(prompt=[prompt] * 4, n=2, temperature=0, max_tokens=4))
        computed = self.metric("cachalot_prompt_tokens_computed_total") - before
        self.assertGreaterEqual(cached, 3 * (tokens // 4 - 1))
        self.assertEqual(computed + cached, tokens)

    def test_a_chat_too(self):
        messages = [{"role": "user", "content": self.prompt()}]
        self.chat(messages=messages, **GREEDY)
        tokens, cached = self.usage_of(self.chat(messages=messages, **GREEDY))
        self.assertEqual(cached, tokens - 1)

    def test_scored_prompts_are_computed_whole_and_answer_the_same(self):
        ask = dict(prompt=self.prompt(), max_tokens=0, echo=True, logprobs=1)
        first, second = self.completion(**ask), self.completion(**ask)
        self.assertEqual(self.usage_of(second)[1], 0)
        self.assertEqual(first["choices"], second["choices"])

    def test_a_cache_salt_keeps_others_out(self):
        ask = dict(prompt=self.prompt(), temperature=0, max_tokens=4)
        texts = set()
        for salt, found in (("a", False), ("b", False), ("a", True), (None, False), ("b", True)):
            answer = self.completion(cache_salt=salt, **ask)
            tokens, cached = self.usage_of(answer)
            if found:
                self.assertEqual(cached, tokens - 1, salt)
            else:
                self.assertLess(cached, 16, salt)  # other prompts may begin alike
            texts.add(answer["choices"][0]["text"])
        self.assertEqual(len(texts), 1)


class Pages(ServerTestCase):
    def test_models(self):
        models = json.loads(self.get("/v1/models")[1])["data"]
        self.assertEqual(models[0]["object"], "model")
        self.assertEqual(json.loads(self.get("/v1/models/" + models[0]["id"])[1])["id"], models[0]["id"])
        self.assertEqual(self.get("/v1/models/none")[0], 404)

    def test_health_and_metrics(self):
        self.assertEqual(self.get("/health"), (200, '{"status":"ok"}'))
        before = self.metric("cachalot_generated_tokens_total")
        self.completion(prompt="x", max_tokens=5, ignore_eos=True)
        self.assertEqual(self.metric("cachalot_generated_tokens_total") - before, 5)

    def test_wrong_paths_and_methods(self):
        self.assertEqual(self.get("/nothing")[0], 404)
        self.assertEqual(self.get("/v1/completions")[0], 405)
        self.assertEqual(self.request("DELETE", "/v1/models")[0], 405)


class BadRequests(ServerTestCase):
    def refuse(self, body, status, param=None, code=None, path="/v1/completions"):
        got, _, text = self.request("POST", path, body)
        self.assertEqual(got, status, text)
        error = json.loads(text)["error"]
        self.assertEqual(set(error), {"message", "type", "param", "code"})
        self.assertEqual(error["param"], param, text)
        if code:
            self.assertEqual(error["code"], code)
        return error["message"]

    def test_every_one_has_its_status(self):
        self.refuse("{", 400)
        self.refuse(b'{"prompt":"\xff\xfe"}', 400)
        self.refuse('{"prompt":"x","temperature":NaN}', 400)
        self.refuse({"prompt": ""}, 400, "prompt")
        self.refuse({"prompt": 7}, 400, "prompt")
        self.refuse({"prompt": "x", "temperature": -1}, 400, "temperature")
        self.refuse({"prompt": "x", "top_p": 0}, 400, "top_p")
        self.refuse({"prompt": "x", "max_tokens": -5}, 400, "max_tokens")
        self.refuse({"prompt": "x", "stop": ["s"] * 5000}, 400, "stop")
        self.refuse({"prompt": "x", "model": "nobody"}, 404, "model", "model_not_found")
        self.refuse({"prompt": [[1], [10**8]]}, 400, "prompt[1][0]")
        chat = "/v1/chat/completions"
        self.refuse({}, 400, "messages", path=chat)
        self.refuse({"messages": [{"role": "user", "content": "a"}, {"role": "user", "content": 3}]}, 400,
                    "messages[1].content", path=chat)
        self.refuse({"messages": MESSAGES, "response_format": {"type": "json_object"}}, 400, "response_format.type",
                    path=chat)

    def test_longer_than_the_context(self):
        length = json.loads(self.get("/v1/models")[1])["data"][0]["max_model_len"]
        message = self.refuse({"prompt": [5] * (length + 1)}, 400, code="context_length_exceeded")
        self.assertIn(str(length), message)
        self.refuse({"prompt": [5], "max_tokens": length}, 400, code="context_length_exceeded")

    def test_a_hundred_megabytes(self):
        self.refuse("x" * (100 << 20), 413, code="request_too_large")


class RudeClients(ServerTestCase):
    def connect(self):
        return socket.create_connection((live_server.SERVER.host, live_server.SERVER.port), timeout=60)

    def unused_slots(self):
        return self.metric("cachalot_kv_free_slots") + self.metric("cachalot_kv_idle_slots")

    def wait_until_idle(self):
        deadline = time.monotonic() + 60
        while self.metric("cachalot_running_sequences") > 0:
            self.assertLess(time.monotonic(), deadline, "sequences still run that nobody waits for")
            time.sleep(0.05)

    def test_a_client_that_goes_away_frees_its_blocks(self):
        self.completion(prompt="x", max_tokens=1)
        free = self.unused_slots()
        body = json.dumps(dict(prompt="Tell me everything.", max_tokens=1000, ignore_eos=True, stream=True)).encode()
        for _ in range(4):
            with self.connect() as client:
                client.sendall(b"POST /v1/completions HTTP/1.1\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
                self.assertTrue(client.recv(4096).startswith(b"HTTP/1.1 200"))
        self.wait_until_idle()
        self.assertEqual(self.unused_slots(), free)

    def test_slow_and_silent_connections_hurt_nobody(self):
        silent = [self.connect() for _ in range(50)]
        slow = [self.connect() for _ in range(10)]
        try:
            for i, byte in enumerate(b"POST /v1/comp"):
                for client in slow:
                    client.sendall(bytes([byte]))
                if i % 4 == 0:
                    self.completion(prompt="x", max_tokens=2)
        finally:
            for client in silent + slow:
                client.close()


if __name__ == "__main__":
    main()
