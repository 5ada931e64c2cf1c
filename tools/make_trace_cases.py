#!/usr/bin/env python3
"""Writes small traces of every format into tests/data/traces, and the seeds of the trace fuzzers into fuzz/corpus.

usage: make_trace_cases.py     the records of Azure and BurstGPT are in their published columns; the values are made up, or
                               written down from documentation, not copied from the files
"""
import base64
import json
import pathlib
import struct

ROOT = pathlib.Path(__file__).resolve().parent.parent
GAMMA, MASK = 0x9E3779B97F4A7C15, (1 << 64) - 1


def mix(state, token):
    z = (state * GAMMA + token + 1) & MASK
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
    return z ^ (z >> 31)


def tags(tokens, state=12345):
    out = []
    for token in tokens:
        state = mix(state, token)
        out.append(state & 0xFFFFFFFF)
    return out, state


def encoded(values):
    return base64.b64encode(struct.pack(f"<{len(values)}I", *values)).decode()


def record_line(milliseconds, prompt, answers, session=None, outcome="stop", block_tokens=16):
    prompt_tags, state = tags(prompt)
    line = {"timestamp": milliseconds, "input_length": len(prompt),
            "output_length": max((len(a) for a in answers), default=0),
            "hash_ids": [prompt_tags[min(i + block_tokens, len(prompt)) - 1] for i in range(0, len(prompt), block_tokens)],
            "tags": encoded(prompt_tags), "output_tags": [encoded(tags(a, state)[0]) for a in answers]}
    if session is not None:
        line["session"] = session
    return line | {"tenant": 77, "outcome": outcome, "cached_tokens": 0, "max_tokens": 64, "n": max(1, len(answers))}


def record():
    """Two conversations of which one goes on: its second prompt holds the first answer. Lines in order of ending."""
    system = list(range(1000, 1040))
    first, answer = system + list(range(40)), [5000 + i for i in range(20)]
    second = first + answer + [7, 8, 9]
    lines = [{"cachalot_record": 1, "block_tokens": 16, "tag_bits": 32},
             record_line(1500, system + [3, 4], [[6000 + i for i in range(5)], [6100 + i for i in range(9)]], session=9),
             record_line(1000, first, [answer], session=8),
             record_line(1700, system, [], outcome="queue_full"),
             record_line(1800, [1], [], outcome="invalid"),
             record_line(4000, second, [[1, 2, 3]], session=8, outcome="length")]
    return "".join(json.dumps(line, separators=(",", ":")) + "\n" for line in lines)


MOONCAKE = """\
{"timestamp": 0, "input_length": 6758, "output_length": 500, "hash_ids": [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13]}
{"timestamp": 0, "input_length": 2290, "output_length": 316, "hash_ids": [0, 42, 43, 44, 45]}
{"timestamp": 3000, "input_length": 2400, "output_length": 10, "hash_ids": [0, 42, 43, 44, 46]}
"""

AZURE = """\
TIMESTAMP,ContextTokens,GeneratedTokens
2023-11-16 18:17:03.9799600,4808,10
2023-11-16 18:17:04.0319600,3180,8
2023-11-16 18:17:05,5000,12
2024-05-10 00:00:00+00:00,20,3
"""

BURSTGPT = """\
Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type
5,ChatGPT,472,18,490,Conversation log
45,ChatGPT,1087,230,1317,Conversation log
118,GPT-4,417,276,693,Conversation log
"""

BURSTGPT_SESSIONS = """\
Timestamp,Session ID,Elapsed time,Model,Request tokens,Response tokens,Total tokens,Log Type
19440110.0,1722ac82-0a46-4bf0-aa08-89794e7a2b3f,43,GPT-4,906,446,1352,Conversation log
19440161.0,d5983bf9-4b48-497b-892b-a58995247443,2,ChatGPT,36,29,65,Conversation log
19440192.0,1722ac82-0a46-4bf0-aa08-89794e7a2b3f,5,GPT-4,1400,100,1500,Conversation log
19440200.0,,1,ChatGPT,100,0,100,API log
"""


def requests_vllm():
    """Token ids, as a gateway logs what vLLM was asked and answered."""
    system = list(range(100))
    lines = [{"timestamp": 1700000000.5, "prompt_token_ids": system + [1], "output_token_ids": [2, 3], "user": "ann"},
             {"timestamp": 1700000002, "prompt_token_ids": system + [1, 2, 3, 4], "usage": {"completion_tokens": 7}},
             {"timestamp": 1700000001, "prompt_token_ids": system, "sampling_params": {"max_tokens": 9}}]
    return "".join(json.dumps(line) + "\n" for line in lines)


def requests_sglang():
    """What --log-requests --log-requests-format json writes at level 3."""
    def line(event, second, text, answer=None):
        data = {"timestamp": f"2026-01-05T10:00:{second:02d}.250000", "event": event, "rid": f"r{second}",
                "obj": {"text": text, "sampling_params": {"max_new_tokens": 32}}}
        if answer is not None:
            data["out"] = {"text": answer, "meta_info": {"prompt_tokens": 12, "completion_tokens": 6, "e2e_latency": 0.25}}
        return json.dumps(data) + "\n"
    first = "You are a helpful assistant. What is a whale?"
    return (line("request.received", 1, first) + line("request.finished", 2, first, " A large animal of the sea.") +
            line("request.finished", 9, first + " A large animal of the sea. And a cachalot?", " A toothed whale."))


def requests_chat():
    """OpenAI chat requests and answers."""
    system = {"role": "system", "content": "You answer in one short sentence, and politely."}
    first = {"role": "user", "content": "Where do whales sleep?"}
    answer = {"role": "assistant", "content": "Near the surface, one half of the brain at a time."}
    lines = [{"time": "2026-01-05T10:00:00Z", "session_id": "a", "body": {"model": "m", "messages": [system, first],
              "max_tokens": 99}, "response": {"choices": [{"index": 0, "message": answer}],
              "usage": {"prompt_tokens": 30, "completion_tokens": 12}}},
             {"time": "2026-01-05T10:00:30Z", "session_id": "a", "body": {"model": "m", "messages": [
              system, first, answer, {"role": "user", "content": [{"type": "text", "text": "For how long?"}]}],
              "max_tokens": 99}, "response": {"choices": [{"index": 0, "message": {"role": "assistant", "content":
              "About two hours."}}]}}]
    return "".join(json.dumps(line) + "\n" for line in lines)


FILES = {"mooncake.jsonl": MOONCAKE, "record.jsonl": record(), "azure.csv": AZURE, "burstgpt.csv": BURSTGPT,
         "burstgpt_sessions.csv": BURSTGPT_SESSIONS, "requests_vllm.jsonl": requests_vllm(),
         "requests_sglang.jsonl": requests_sglang(), "requests_chat.jsonl": requests_chat()}

for name, text in FILES.items():
    folder = ROOT / "tests/data/traces"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(text)
    seeds = ROOT / "fuzz/corpus" / f"trace_{name.split('.')[0].split('_')[0]}"
    seeds.mkdir(parents=True, exist_ok=True)
    (seeds / name.split(".")[0]).write_text(text)
