"""Records logits of seeded random-weight models of odd shapes, computed by Hugging Face transformers in f32.

usage: make_tiny_logit_cases.py OUT.json      needs torch, transformers, numpy

The weights are formed by the rule in src/exec/testing/tiny_model.h, so that no weights have to be stored.
"""
import json
import sys

import numpy as np
import torch
import transformers

SHAPES = [
    dict(architecture="llama", layers=3, width=60, heads=5, kv_heads=1, head_dim=80, ffn_width=132, vocabulary=1003,
         window=0, tied=False, seed=1),
    dict(architecture="llama", layers=2, width=48, heads=6, kv_heads=3, head_dim=10, ffn_width=40, vocabulary=257,
         window=0, tied=True, seed=2),
    dict(architecture="qwen2", layers=3, width=70, heads=7, kv_heads=1, head_dim=10, ffn_width=33, vocabulary=511,
         window=0, tied=True, seed=3),
    dict(architecture="gemma3", layers=7, width=42, heads=3, kv_heads=1, head_dim=24, ffn_width=56, vocabulary=1003,
         window=24, tied=True, seed=4),
    dict(architecture="gemma3", layers=6, width=64, heads=4, kv_heads=4, head_dim=32, ffn_width=90, vocabulary=300,
         window=33, tied=True, seed=5),
]
LENGTHS = [1, 15, 16, 17, 100, 300]
CONTEXT = 2048


def split_mix(seed, count):
    with np.errstate(over="ignore"):
        state = np.uint64(seed) + np.arange(1, count + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
        z = (state ^ (state >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return z ^ (z >> np.uint64(31))


def fnv1a(text):
    value = 0xCBF29CE484222325
    for byte in text.encode():
        value = (value ^ byte) * 0x100000001B3 % 2**64
    return value


def symmetric(seed, name, count):
    bits = split_mix((seed + fnv1a(name)) % 2**64, count)
    return (bits >> np.uint64(40)).astype(np.float32) * np.float32(2**-23) - np.float32(1)


def vector(shape, name, count, center, spread):
    return np.float32(center) + np.float32(spread) * symmetric(shape["seed"], name, count)


def matrix(shape, name, columns, rows, scale):
    return (np.float32(scale) * symmetric(shape["seed"], name, columns * rows)).reshape(rows, columns)


def matrix_scale(columns):
    return np.float32(1.7) / np.sqrt(np.float32(columns))


def unpermute(weight, heads, head_dim):
    """GGUF keeps Q and K of llama with rotated pairs side by side; transformers keeps them half a head apart."""
    return weight.reshape(heads, head_dim // 2, 2, -1).swapaxes(1, 2).reshape(weight.shape)


def state_of(shape):
    width, q, kv = shape["width"], shape["heads"] * shape["head_dim"], shape["kv_heads"] * shape["head_dim"]
    gemma = shape["architecture"] == "gemma3"
    shift = 1.0 if gemma else 0.0  # transformers' Gemma adds 1 to its norm weights, GGUF stores the sum
    norm = lambda name, count: vector(shape, name, count, 1.0, 0.1) - np.float32(shift)
    state = {"model.embed_tokens.weight": matrix(shape, "token_embd.weight", width, shape["vocabulary"], 1.0),
             "model.norm.weight": norm("output_norm.weight", width)}
    for layer in range(shape["layers"]):
        g, h = f"blk.{layer}.", f"model.layers.{layer}."
        for ours, theirs, rows in (("attn_q", "self_attn.q_proj", q), ("attn_k", "self_attn.k_proj", kv),
                                   ("attn_v", "self_attn.v_proj", kv), ("ffn_gate", "mlp.gate_proj", shape["ffn_width"]),
                                   ("ffn_up", "mlp.up_proj", shape["ffn_width"])):
            state[h + theirs + ".weight"] = matrix(shape, g + ours + ".weight", width, rows, matrix_scale(width))
        state[h + "self_attn.o_proj.weight"] = matrix(shape, g + "attn_output.weight", q, width, matrix_scale(q))
        state[h + "mlp.down_proj.weight"] = matrix(shape, g + "ffn_down.weight", shape["ffn_width"], width,
                                                   matrix_scale(shape["ffn_width"]))
        state[h + "input_layernorm.weight"] = norm(g + "attn_norm.weight", width)
        if gemma:
            state[h + "post_attention_layernorm.weight"] = norm(g + "post_attention_norm.weight", width)
            state[h + "pre_feedforward_layernorm.weight"] = norm(g + "ffn_norm.weight", width)
            state[h + "post_feedforward_layernorm.weight"] = norm(g + "post_ffw_norm.weight", width)
            state[h + "self_attn.q_norm.weight"] = norm(g + "attn_q_norm.weight", shape["head_dim"])
            state[h + "self_attn.k_norm.weight"] = norm(g + "attn_k_norm.weight", shape["head_dim"])
        else:
            state[h + "post_attention_layernorm.weight"] = norm(g + "ffn_norm.weight", width)
        if shape["architecture"] == "llama":
            for name, heads in (("q_proj", shape["heads"]), ("k_proj", shape["kv_heads"])):
                key = h + f"self_attn.{name}.weight"
                state[key] = unpermute(state[key], heads, shape["head_dim"])
        if shape["architecture"] == "qwen2":
            for name, count in (("q", q), ("k", kv), ("v", kv)):
                state[h + f"self_attn.{name}_proj.bias"] = vector(shape, g + f"attn_{name}.bias", count, 0.0, 0.1)
    output = state["model.embed_tokens.weight"] if shape["tied"] else matrix(
        shape, "output.weight", width, shape["vocabulary"], matrix_scale(width))
    state["lm_head.weight"] = output
    return {name: torch.from_numpy(np.ascontiguousarray(value)) for name, value in state.items()}


def model_of(shape):
    common = dict(vocab_size=shape["vocabulary"], hidden_size=shape["width"], intermediate_size=shape["ffn_width"],
                  num_hidden_layers=shape["layers"], num_attention_heads=shape["heads"],
                  num_key_value_heads=shape["kv_heads"], head_dim=shape["head_dim"], max_position_embeddings=CONTEXT,
                  rms_norm_eps=1e-6, tie_word_embeddings=shape["tied"])
    if shape["architecture"] == "llama":
        config = transformers.LlamaConfig(**common, rope_theta=1e4)
    elif shape["architecture"] == "qwen2":
        config = transformers.Qwen2Config(**common, rope_theta=1e4, use_sliding_window=False)
    else:
        config = transformers.Gemma3TextConfig(**common, sliding_window=shape["window"],
                                               query_pre_attn_scalar=shape["head_dim"], rope_theta=1e6,
                                               rope_local_base_freq=1e4)
    model = transformers.AutoModelForCausalLM.from_config(config, attn_implementation="eager").float().eval()
    missing = model.load_state_dict(state_of(shape), strict=False)
    assert not missing.unexpected_keys, missing
    assert all("lm_head" in k or "rotary" in k for k in missing.missing_keys), missing
    return model


def main():
    cases = []
    for shape in SHAPES:
        model = model_of(shape)
        for length in LENGTHS:
            ids = [(7 * i * i + 3 * i + length) % shape["vocabulary"] for i in range(length)]
            with torch.no_grad():
                logits = model(torch.tensor([ids])).logits[0, -1].double()
            sample = list(range(0, shape["vocabulary"], 13))
            cases.append({"shape": shape, "length": length, "min": logits.min().item(), "max": logits.max().item(),
                          "argmax": int(logits.argmax()), "sample": [round(logits[i].item(), 6) for i in sample]})
        print(shape["architecture"], shape["seed"], [round(c["max"], 3) for c in cases[-len(LENGTHS):]], flush=True)
    json.dump({"made_by": "tools/make_tiny_logit_cases.py OUT.json", "stride": 13, "cases": cases}, open(sys.argv[1], "w"),
              separators=(",", ":"))


if __name__ == "__main__":
    main()
