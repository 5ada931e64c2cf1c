#!/usr/bin/env python3
"""Writes a GGUF of a Llama-like shape with seeded random weights: for measuring, where the real model is not at hand.

    tools/random_gguf.py build/llama8b-random.gguf                # Llama-3.1-8B's shape, Q4_K_M, 4.9 GB
    tools/random_gguf.py --shape small --type q8_0 build/small.gguf

Weights have a mean of 0 and a deviation of 1/sqrt(columns), so activations stay finite through all layers. A tensor's
blocks are cut from a pool of random blocks, at an offset of its own: writing is as fast as the disk. The vocabulary is
a byte-level BPE of all bytes, pairs of them and as many triples as are left. Needs nothing but Python.
"""

import argparse
import math
import random
import struct
import sys
from pathlib import Path

ALIGNMENT = 32
POOL_BLOCKS = 8191  # a prime: rows do not line up with the pool
COPY_BYTES = 16 << 20
NORMAL, CONTROL = 1, 3  # token types
SPECIAL_TOKENS = 256

SHAPES = {
    #         layers width   ffn heads kv  head  vocabulary context  theta
    "8b": (32, 4096, 14336, 32, 8, 128, 128256, 131072, 500000.0),
    "1b": (16, 2048, 8192, 32, 8, 64, 128256, 131072, 500000.0),
    "small": (8, 1024, 2816, 16, 4, 64, 32000, 8192, 10000.0),
    "tiny": (2, 256, 512, 4, 2, 64, 1024, 2048, 10000.0),
}
SHAPE_FIELDS = ("layers", "width", "ffn", "heads", "kv-heads", "head-dim", "vocabulary", "context", "theta")


def half(value):
    return struct.pack("<e", value)


# ---- random blocks of one format: (ggml type, values, bytes, maker of one block)


def q4_0_block(rng, deviation):  # w = d * (q - 8)
    return half(deviation / 4.61) + rng.randbytes(16)


def q8_0_block(rng, deviation):  # w = d * q
    return half(deviation / 73.9) + rng.randbytes(32)


def q4_k_block(rng, deviation):  # w = d * scale * q - dmin * min, with min = scale and dmin = 7.5 d: mean 0
    d = deviation / (4.61 * 32)
    scale = [rng.randrange(16, 48) for _ in range(8)]
    low = [scale[i] | (scale[i + 4] >> 4) << 6 for i in range(4)]
    rest = [(scale[i + 4] & 15) * 17 for i in range(4)]
    return half(d) + half(7.5 * d) + bytes(low + low + rest) + rng.randbytes(128)


def q6_k_block(rng, deviation):  # w = d * scale * (q - 32)
    scales = [rng.choice((-1, 1)) * rng.randrange(32, 64) for _ in range(16)]
    return rng.randbytes(192) + struct.pack("<16b", *scales) + half(deviation / (18.5 * 48))


def f16_block(rng, deviation):
    return half(rng.gauss(0, deviation))


FORMATS = {
    "f16": (1, 1, 2, f16_block),
    "q4_0": (2, 32, 18, q4_0_block),
    "q8_0": (8, 32, 34, q8_0_block),
    "q4_k": (12, 256, 144, q4_k_block),
    "q6_k": (14, 256, 210, q6_k_block),
}
FILE_TYPES = {"f16": 1, "q4_0": 2, "q8_0": 7, "q4_k_m": 15}


class BlockPools:
    """Random blocks by format and row length, made once each."""

    def __init__(self, seed):
        self.seed = seed
        self.pools = {}

    def blocks(self, kind, columns):
        key = (kind, columns)
        if key not in self.pools:
            _, _, block_bytes, maker = FORMATS[kind]
            rng = random.Random(f"{self.seed} {kind} {columns}")
            pool = b"".join(maker(rng, 1 / math.sqrt(columns)) for _ in range(POOL_BLOCKS))
            self.pools[key] = pool * max(1, COPY_BYTES // len(pool))
        return self.pools[key]


class Tensor:
    def __init__(self, name, shape, kind):
        self.name, self.shape, self.kind = name, shape, kind  # shape: columns first; kind "f32": `values`
        self.values = None

    @classmethod
    def vector(cls, name, values):
        tensor = cls(name, (len(values),), "f32")
        tensor.values = values
        return tensor

    @property
    def ggml_type(self):
        return 0 if self.kind == "f32" else FORMATS[self.kind][0]

    @property
    def byte_count(self):
        count = math.prod(self.shape)
        if self.kind == "f32":
            return 4 * count
        _, values, block_bytes, _ = FORMATS[self.kind]
        if self.shape[0] % values:
            sys.exit(f"{self.name}: {self.shape[0]} columns are not a multiple of {self.kind}'s {values}")
        return count // values * block_bytes

    def write(self, out, pools):
        if self.kind == "f32":
            out.write(struct.pack(f"<{len(self.values)}f", *self.values))
            return
        pool = pools.blocks(self.kind, self.shape[0])
        block_bytes = FORMATS[self.kind][2]
        offset = random.Random(f"{pools.seed} {self.name}").randrange(len(pool) // block_bytes) * block_bytes
        left = self.byte_count
        while left:
            piece = pool[offset : offset + left]
            out.write(piece)
            left -= len(piece)
            offset = 0


# ---- the model


def rope_factors(head_dim, theta):
    """Llama 3.1's rotary scaling: 8x longer, low and high frequency factors 1 and 4 of a context of 8,192."""
    factors = []
    for pair in range(head_dim // 2):
        wavelength = 2 * math.pi * theta ** (2 * pair / head_dim)
        if wavelength < 8192 / 4:
            factors.append(1.0)
        elif wavelength > 8192:
            factors.append(8.0)
        else:
            smooth = (8192 / wavelength - 1) / 3
            factors.append(1 / ((1 - smooth) / 8 + smooth))
    return factors


def more_bits(layer, layers):
    """The layers whose V and down matrices Q4_K_M keeps in Q6_K."""
    return layer < layers // 8 or layer >= 7 * layers // 8 or (layer - layers // 8) % 3 == 2


def tensors_of(shape, kind, seed):
    mixed = kind == "q4_k_m"
    plain, rich = ("q4_k", "q6_k") if mixed else (kind, kind)
    rng = random.Random(f"{seed} norms")

    def norm(name):
        return Tensor.vector(name, [rng.uniform(0.8, 1.2) for _ in range(shape["width"])])

    width, ffn = shape["width"], shape["ffn"]
    q_width, kv_width = shape["heads"] * shape["head-dim"], shape["kv-heads"] * shape["head-dim"]
    yield Tensor("token_embd.weight", (width, shape["vocabulary"]), plain)
    if shape["theta"] == 500000.0:
        yield Tensor.vector("rope_freqs.weight", rope_factors(shape["head-dim"], shape["theta"]))
    for layer in range(shape["layers"]):
        name = f"blk.{layer}."
        special = rich if more_bits(layer, shape["layers"]) else plain
        yield norm(name + "attn_norm.weight")
        yield Tensor(name + "attn_q.weight", (width, q_width), plain)
        yield Tensor(name + "attn_k.weight", (width, kv_width), plain)
        yield Tensor(name + "attn_v.weight", (width, kv_width), special)
        yield Tensor(name + "attn_output.weight", (q_width, width), plain)
        yield norm(name + "ffn_norm.weight")
        yield Tensor(name + "ffn_gate.weight", (width, ffn), plain)
        yield Tensor(name + "ffn_up.weight", (width, ffn), plain)
        yield Tensor(name + "ffn_down.weight", (ffn, width), special)
    yield norm("output_norm.weight")
    yield Tensor("output.weight", (width, shape["vocabulary"]), rich)


def byte_letters():
    """The letter by which byte-level BPE writes each byte."""
    shown = [*range(33, 127), *range(161, 173), *range(174, 256)]
    letters, spare = [], 256
    for byte in range(256):
        if byte in shown:
            letters.append(chr(byte))
        else:
            letters.append(chr(spare))
            spare += 1
    return letters


def vocabulary(size):
    """(tokens, types, merges): bytes, pairs, triples, then the special tokens."""
    letters = byte_letters()
    plain = size - SPECIAL_TOKENS
    if plain < len(letters):
        sys.exit(f"--vocabulary must be at least {len(letters) + SPECIAL_TOKENS}")
    tokens, merges = list(letters), []
    parents = letters
    while len(tokens) < plain:
        grown = []
        for left in parents:
            for right in letters:
                if len(tokens) == plain:
                    break
                grown.append(left + right)
                tokens.append(left + right)
                merges.append(f"{left} {right}")
        parents = grown
    tokens += ["<|begin_of_text|>", "<|end_of_text|>"]
    tokens += [f"<|reserved_{i}|>" for i in range(SPECIAL_TOKENS - 2)]
    return tokens, [NORMAL] * plain + [CONTROL] * SPECIAL_TOKENS, merges


# ---- the container

U32, I32, F32, BOOL, STRING, ARRAY = 4, 5, 6, 7, 8, 9


def text(value):
    raw = value.encode()
    return struct.pack("<Q", len(raw)) + raw


def entry(key, kind, value):
    if kind == STRING:
        body = text(value)
    elif kind == ARRAY:
        element, items = value
        packed = b"".join(map(text, items)) if element == STRING else struct.pack(f"<{len(items)}i", *items)
        body = struct.pack("<IQ", element, len(items)) + packed
    else:
        body = struct.pack({U32: "<I", F32: "<f", BOOL: "<?"}[kind], value)
    return text(key) + struct.pack("<I", kind) + body


def metadata_of(shape, kind):
    tokens, types, merges = vocabulary(shape["vocabulary"])
    begin = len(tokens) - SPECIAL_TOKENS
    return [
        entry("general.architecture", STRING, "llama"),
        entry("general.name", STRING, f"random weights, {shape['layers']} layers of {shape['width']}"),
        entry("general.file_type", U32, FILE_TYPES[kind]),
        entry("general.quantization_version", U32, 2),
        entry("llama.block_count", U32, shape["layers"]),
        entry("llama.context_length", U32, shape["context"]),
        entry("llama.embedding_length", U32, shape["width"]),
        entry("llama.feed_forward_length", U32, shape["ffn"]),
        entry("llama.attention.head_count", U32, shape["heads"]),
        entry("llama.attention.head_count_kv", U32, shape["kv-heads"]),
        entry("llama.attention.key_length", U32, shape["head-dim"]),
        entry("llama.attention.value_length", U32, shape["head-dim"]),
        entry("llama.attention.layer_norm_rms_epsilon", F32, 1e-5),
        entry("llama.rope.freq_base", F32, shape["theta"]),
        entry("llama.rope.dimension_count", U32, shape["head-dim"]),
        entry("llama.vocab_size", U32, shape["vocabulary"]),
        entry("tokenizer.ggml.model", STRING, "gpt2"),
        entry("tokenizer.ggml.pre", STRING, "llama-bpe"),
        entry("tokenizer.ggml.tokens", ARRAY, (STRING, tokens)),
        entry("tokenizer.ggml.token_type", ARRAY, (I32, types)),
        entry("tokenizer.ggml.merges", ARRAY, (STRING, merges)),
        entry("tokenizer.ggml.bos_token_id", U32, begin),
        entry("tokenizer.ggml.eos_token_id", U32, begin + 1),
        entry("tokenizer.ggml.add_bos_token", BOOL, True),
    ]


def padding(position):
    return b"\0" * (-position % ALIGNMENT)


def write_gguf(path, shape, kind, seed):
    metadata = metadata_of(shape, kind)
    tensors = list(tensors_of(shape, kind, seed))
    head = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(metadata)) + b"".join(metadata)
    offset = 0
    for tensor in tensors:
        head += text(tensor.name) + struct.pack("<I", len(tensor.shape))
        head += struct.pack(f"<{len(tensor.shape)}QIQ", *tensor.shape, tensor.ggml_type, offset)
        offset += tensor.byte_count + len(padding(tensor.byte_count))
    pools = BlockPools(seed)
    unfinished = path.with_name(path.name + ".part")
    with unfinished.open("wb") as out:
        out.write(head + padding(len(head)))
        for tensor in tensors:
            tensor.write(out, pools)
            out.write(padding(tensor.byte_count))
    unfinished.replace(path)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("path", type=Path)
    parser.add_argument("--shape", choices=SHAPES, default="8b")
    for field in SHAPE_FIELDS:
        parser.add_argument(f"--{field}", type=float if field == "theta" else int, help="in the place of the shape's")
    parser.add_argument("--type", choices=FILE_TYPES, default="q4_k_m")
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    shape = dict(zip(SHAPE_FIELDS, SHAPES[arguments.shape]))
    for field in SHAPE_FIELDS:
        given = getattr(arguments, field.replace("-", "_"))
        if given is not None:
            shape[field] = given
    write_gguf(arguments.path, shape, arguments.type, arguments.seed)
    print(f"{arguments.path}: {arguments.path.stat().st_size / 1e9:.2f} GB")


if __name__ == "__main__":
    main()
