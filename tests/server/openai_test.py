"""The API as the `openai` package (PyPI) sees it. See live_server.py for the arguments."""

import unittest

import openai

import live_server
from live_server import main

MESSAGES = [{"role": "system", "content": "You are brief."}, {"role": "user", "content": "Name a colour."}]


class OpenAiClient(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.client = openai.OpenAI(base_url=live_server.SERVER.url + "/v1", api_key="none", max_retries=0, timeout=300)
        cls.model = cls.client.models.list().data[0].id

    @classmethod
    def tearDownClass(cls):
        cls.client.close()

    def chat(self, **fields):
        fields = dict(dict(model=self.model, messages=MESSAGES, temperature=0, max_completion_tokens=16), **fields)
        return self.client.chat.completions.create(**fields)

    def test_chat(self):
        answer = self.chat()
        self.assertEqual(answer.object, "chat.completion")
        self.assertEqual(answer.choices[0].message.role, "assistant")
        self.assertIsInstance(answer.choices[0].message.content, str)
        self.assertGreater(answer.usage.completion_tokens, 0)
        self.assertIsNotNone(answer.usage.prompt_tokens_details.cached_tokens)
        self.assertTrue(answer.system_fingerprint)

    def test_chat_stream(self):
        whole = self.chat().choices[0].message.content
        text, usage, reason = "", None, None
        for chunk in self.chat(stream=True, stream_options={"include_usage": True}):
            if chunk.usage is not None:
                usage = chunk.usage
            for choice in chunk.choices:
                text += choice.delta.content or ""
                reason = choice.finish_reason or reason
        self.assertEqual(text, whole)
        self.assertIn(reason, ("stop", "length"))
        self.assertGreater(usage.total_tokens, usage.prompt_tokens)

    def test_stream_helper(self):
        with self.client.chat.completions.stream(model=self.model, messages=MESSAGES, temperature=0,
                                                 max_completion_tokens=16) as stream:
            text = "".join(event.delta for event in stream if event.type == "content.delta")
        self.assertEqual(text, self.chat().choices[0].message.content)

    def test_logprobs(self):
        content = self.chat(logprobs=True, top_logprobs=2).choices[0].logprobs.content
        self.assertEqual(len(content[0].top_logprobs), 2)
        self.assertEqual(bytes(content[0].bytes).decode("utf-8", "replace"), content[0].token)

    def test_completions(self):
        answer = self.client.completions.create(model=self.model, prompt=["One", "Two"], max_tokens=4, n=2, logprobs=1)
        self.assertEqual([choice.index for choice in answer.choices], [0, 1, 2, 3])
        self.assertEqual(len(answer.choices[0].logprobs.tokens), len(answer.choices[0].logprobs.text_offset))
        streamed = self.client.completions.create(model=self.model, prompt="One", max_tokens=4, temperature=0,
                                                  stream=True)
        whole = self.client.completions.create(model=self.model, prompt="One", max_tokens=4, temperature=0)
        self.assertEqual("".join(chunk.choices[0].text for chunk in streamed), whole.choices[0].text)

    def test_tools_are_accepted(self):
        tool = {"type": "function", "function": {"name": "f", "description": "d", "parameters": {"type": "object"}}}
        self.assertIsInstance(self.chat(tools=[tool], tool_choice="auto").choices[0].message.content, str)

    def test_models(self):
        self.assertEqual(self.client.models.retrieve(self.model).id, self.model)
        with self.assertRaises(openai.NotFoundError):
            self.client.models.retrieve("nobody/nothing")

    def test_errors_are_the_packages_own(self):
        with self.assertRaises(openai.NotFoundError) as caught:
            self.chat(model="nobody")
        self.assertEqual(caught.exception.code, "model_not_found")
        with self.assertRaises(openai.BadRequestError) as caught:
            self.chat(temperature=-3)
        self.assertEqual(caught.exception.param, "temperature")
        with self.assertRaises(openai.BadRequestError) as caught:
            self.chat(max_completion_tokens=10**9)
        self.assertEqual(caught.exception.code, "context_length_exceeded")


if __name__ == "__main__":
    main()
