#!/usr/bin/env python3
"""Records what the `gguf` package (0.19.0 used, with numpy) dequantises from random and extreme blocks.

Run:  python3 tools/make_dequantize_cases.py > tests/data/kernels/dequantize_cases.json

Per type: `blocks`, the source bytes in hex, and `values`, the f32 results as big-endian hex words. Blocks are random
bytes, then the same with scales that are zero, denormal, the largest finite, infinite and NaN.
"""
import json
import sys

import numpy as np
from gguf import GGMLQuantizationType as Type
from gguf.quants import dequantize
from gguf.constants import GGML_QUANT_SIZES

# Byte offsets of the f16 scales in a block.
SCALES = {
    Type.Q4_0: [0], Type.Q4_1: [0, 2], Type.Q5_0: [0], Type.Q5_1: [0, 2], Type.Q8_0: [0],
    Type.Q4_K: [0, 2], Type.Q5_K: [0, 2], Type.Q6_K: [208],
}
# one, its negative, zeros, the smallest and largest denormals, the smallest normal, the largest, infinities, NaNs
EXTREMES = [0x3C00, 0xBC00, 0x0000, 0x8000, 0x0001, 0x83FF, 0x0400, 0x7BFF, 0x7C00, 0xFC00, 0x7E00, 0xFD01]


def quantised(rng, kind, count):
    block = GGML_QUANT_SIZES[kind][1]
    data = rng.integers(0, 256, size=(count, block), dtype=np.uint8)
    for row in range(count):
        for offset in SCALES[kind]:
            # most models' scales: 2^-12 to 2^-4
            value = np.float16(rng.choice([-1, 1]) * 2.0 ** rng.uniform(-12, -4))
            data[row, offset:offset + 2] = np.frombuffer(value.tobytes(), dtype=np.uint8)
    return data


def with_extremes(rng, kind, data):
    rows = []
    for i, bits in enumerate(EXTREMES):
        row = quantised(rng, kind, 1)[0]
        offset = SCALES[kind][i % len(SCALES[kind])]
        row[offset:offset + 2] = np.frombuffer(np.uint16(bits).tobytes(), dtype=np.uint8)
        rows.append(row)
    # all weights at their least and greatest
    for fill in (0x00, 0xFF):
        row = np.full(data.shape[1], fill, dtype=np.uint8)
        for offset in SCALES[kind]:
            row[offset:offset + 2] = [0x66, 0x2E]
        rows.append(row)
    return np.concatenate([data, np.stack(rows)])


def floats(rng, kind):
    if kind == Type.F32:
        return rng.integers(0, 2**32, size=64, dtype=np.uint32).view(np.uint8)
    edge = np.array(EXTREMES + [0x3BFF, 0x7BFE, 0x7F80, 0xFF80, 0x7FC1, 0x0080, 0x8001], dtype=np.uint16)
    return np.concatenate([edge, rng.integers(0, 2**16, size=109, dtype=np.uint16)]).view(np.uint8)


def main():
    rng = np.random.default_rng(20240917)
    cases = {}
    with np.errstate(all="ignore"):
        for kind in [Type.F32, Type.F16, Type.BF16] + list(SCALES):
            if kind in SCALES:
                count = 2 if GGML_QUANT_SIZES[kind][0] == 256 else 16
                data = with_extremes(rng, kind, quantised(rng, kind, count)).reshape(1, -1)
            else:
                data = floats(rng, kind).reshape(1, -1)
            values = dequantize(data, kind).astype(np.float32).reshape(-1)
            cases[kind.name] = {"blocks": data.tobytes().hex(), "values": values.view(np.uint32).astype(">u4").tobytes().hex()}
    json.dump({"made_by": "tools/make_dequantize_cases.py", "types": cases}, sys.stdout, indent=1)
    print()


main()
