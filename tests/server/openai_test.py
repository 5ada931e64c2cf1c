"""The API as the `openai` package (PyPI) sees it. See live_server.py for the arguments.

Ends with 77, which ctest takes for "skipped", where this Python does not have the package.
"""

import asyncio
import sys
import unittest

try:
    import openai
except ImportError:
    print(f"{sys.executable} has no package openai: pip install openai")
    sys.exit(77)

import live_server
from live_server import main

MESSAGES = [{"role": "system", "content": "You are brief."}, {"role": "user", "content": "Name a colour."}]


class OpenAiClient(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.settings = dict(base_url=live_server.SERVER.url + "/v1", api_key="none", max_retries=0, timeout=300)
        cls.client = openai.OpenAI(**cls.settings)
        cls.model = cls.client.models.list().data[0].id

    @classmethod
    def tearDownClass(cls):
        cls.client.close()

    def chat(self, **fields):
        """The answer; a base model, which says that it has no chat template, skips the test."""
        fields = dict(dict(model=self.model, messages=MESSAGES, temperature=0, max_completion_tokens=16), **fields)
        try:
            return self.client.chat.completions.create(**fields)
        except openai.BadRequestError as error:
            if error.code == "no_chat_template":
                self.skipTest(str(error))
            raise

    def complete(self, **fields):
        return self.client.completions.create(model=self.model, **dict(dict(temperature=0, max_tokens=8), **fields))

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
        whole = self.chat().choices[0].message.content
        with self.client.chat.completions.stream(model=self.model, messages=MESSAGES, temperature=0,
                                                 max_completion_tokens=16) as stream:
            text = "".join(event.delta for event in stream if event.type == "content.delta")
        self.assertEqual(text, whole)

    def test_content_in_parts_from_a_developer(self):
        parts = [{"role": "developer", "content": [{"type": "text", "text": MESSAGES[0]["content"]}]},
                 {"role": "user", "content": [{"type": "text", "text": MESSAGES[1]["content"]}]}]
        self.assertEqual(self.chat(messages=parts).choices[0].message.content, self.chat().choices[0].message.content)

    def test_a_tool_call_and_its_result_in_the_history(self):
        call = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{\"x\": 1}"}}
        history = MESSAGES + [{"role": "assistant", "content": "", "tool_calls": [call]},
                              {"role": "tool", "tool_call_id": "c1", "content": "red"}]
        self.assertEqual(self.chat(messages=history).choices[0].message.role, "assistant")

    def test_logprobs(self):
        content = self.chat(logprobs=True, top_logprobs=2).choices[0].logprobs.content
        self.assertEqual(len(content[0].top_logprobs), 2)
        self.assertEqual(bytes(content[0].bytes).decode("utf-8", "replace"), content[0].token)

    def test_completions(self):
        answer = self.client.completions.create(model=self.model, prompt=["One", "Two"], max_tokens=4, n=2, logprobs=1)
        self.assertEqual([choice.index for choice in answer.choices], [0, 1, 2, 3])
        self.assertEqual(len(answer.choices[0].logprobs.tokens), len(answer.choices[0].logprobs.text_offset))
        streamed = self.complete(prompt="One", stream=True)
        whole = self.complete(prompt="One")
        self.assertEqual("".join(chunk.choices[0].text for chunk in streamed), whole.choices[0].text)

    def test_a_stop_string_ends_the_text(self):
        whole = self.complete(prompt="One, two, three,").choices[0].text
        stop = whole[4:7]
        choice = self.complete(prompt="One, two, three,", stop=[stop]).choices[0]
        self.assertEqual((choice.text, choice.finish_reason), (whole[:whole.index(stop)], "stop"))

    def test_a_seed_repeats_an_answer(self):
        texts = {self.complete(prompt="Once", temperature=1.5, seed=7).choices[0].text for _ in range(3)}
        self.assertEqual(len(texts), 1)

    def test_closing_a_stream_early(self):
        with self.complete(prompt="One", max_tokens=1000, stream=True, extra_body={"ignore_eos": True}) as stream:
            next(iter(stream))
        self.assertTrue(self.complete(prompt="One").choices[0].text)

    def test_many_at_once_answer_as_one_alone(self):
        prompts = [f"{number} is a number and" for number in range(16)]
        alone = [self.complete(prompt=prompt).choices[0].text for prompt in prompts]

        async def ask_all():
            async with openai.AsyncOpenAI(**self.settings) as client:
                answers = await asyncio.gather(*(client.completions.create(
                    model=self.model, prompt=prompt, temperature=0, max_tokens=8) for prompt in prompts))
            return [answer.choices[0].text for answer in answers]

        self.assertEqual(asyncio.run(ask_all()), alone)

    def test_tools_are_accepted(self):
        tool = {"type": "function", "function": {"name": "f", "description": "d", "parameters": {"type": "object"}}}
        self.assertIsInstance(self.chat(tools=[tool], tool_choice="auto").choices[0].message.content, str)

    def test_models(self):
        self.assertEqual(self.client.models.retrieve(self.model).id, self.model)
        with self.assertRaises(openai.NotFoundError):
            self.client.models.retrieve("nobody/nothing")

    def test_errors_are_the_packages_own(self):
        with self.assertRaises(openai.NotFoundError) as caught:
            self.client.completions.create(model="nobody", prompt="One")
        self.assertEqual(caught.exception.code, "model_not_found")
        with self.assertRaises(openai.BadRequestError) as caught:
            self.complete(prompt="One", temperature=-3)
        self.assertEqual(caught.exception.param, "temperature")
        with self.assertRaises(openai.BadRequestError) as caught:
            self.complete(prompt="One", max_tokens=10**9)
        self.assertEqual(caught.exception.code, "context_length_exceeded")


if __name__ == "__main__":
    main()
