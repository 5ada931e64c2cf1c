#!/usr/bin/env python3
"""Records what transformers makes of the planner's catalogue: weights, and KV values and state of one sequence.

usage: make_plan_cases.py [OUT]      default tests/data/plan/models.json; needs torch and transformers, no network

Models are built without memory (device "meta") and run on eight tokens there. What transformers keeps is not always what
a model needs: Falcon's new decoder repeats KV for every query head, and a convolution's state there has one input more.
"""
import json
import pathlib
import re
import sys
import warnings

import torch
import transformers
from transformers import AutoModelForCausalLM
from transformers.models.auto.configuration_auto import CONFIG_MAPPING

ROOT = pathlib.Path(__file__).resolve().parent.parent
ENTRY = re.compile(r'\{"([^"]+)",\s*"[^"]*",\s*"[^"]*",\s*R"\((.*?)\)"\}', re.DOTALL)
TOKENS = 8
# Names that transformers has for the same text model.
SAME = {"minimax_text_01": "minimax", "kimi_k2": "deepseek_v3", "mimo": "qwen2"}
REPEATED_KV = {"falcon-40b"}


def config_of(fields):
    fields = dict(fields)
    kind = fields.pop("model_type")
    fields.pop("quantization_config", None)
    if "attn_type_list" in fields:
        fields["layer_types"] = ["full_attention" if x == 1 else "linear_attention"
                                 for x in fields.pop("attn_type_list")]
    if "linear_attn_config" in fields:
        full = set(fields["linear_attn_config"]["full_attn_layers"])
        fields["linear_attn_config"]["kda_layers"] = [i for i in range(1, fields["num_hidden_layers"] + 1)
                                                      if i not in full]
    if kind == "falcon":
        fields.setdefault("max_position_embeddings", 2048)
    return CONFIG_MAPPING[SAME.get(kind, kind)](**fields)


def values(state):
    parts = state.values() if isinstance(state, dict) else [state]
    return sum(part.numel() for part in parts)


def cached(model):
    """KV values of one token and state values of a sequence; None where the model cannot be run without memory."""
    try:
        with torch.device("meta"), torch.no_grad():
            out = model(input_ids=torch.zeros((1, TOKENS), dtype=torch.long, device="meta"), use_cache=True)
        kv = state = 0
        cache = out.past_key_values if "past_key_values" in out else out.cache_params
        for layer in cache.layers:
            if getattr(layer, "keys", None) is not None:
                kv += values(layer.keys) + values(layer.values)
            if getattr(layer, "recurrent_states", None) is not None:
                state += values(layer.recurrent_states)
        return kv // TOKENS, state
    except (RuntimeError, AttributeError, NotImplementedError):
        return None, None


def main():
    out = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "tests/data/plan/models.json"
    warnings.filterwarnings("ignore")
    transformers.logging.set_verbosity_error()
    torch.set_default_dtype(torch.bfloat16)
    cases = {}
    for name, text in ENTRY.findall((ROOT / "src/plan/models.cc").read_text(encoding="utf-8")):
        with torch.device("meta"):
            model = AutoModelForCausalLM.from_config(config_of(json.loads(text)))
        kv, state = cached(model)
        cases[name] = {"weights": sum(p.numel() for p in model.parameters()),
                       "kv_values": None if name in REPEATED_KV else kv, "state_values": state}
        print(name, cases[name], flush=True)
    lines = [f"{json.dumps(name)}: {json.dumps(case)}" for name, case in cases.items()]
    out.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
