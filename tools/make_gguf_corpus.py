#!/usr/bin/env python3
"""Makes the seed corpus of the GGUF fuzzer: small files of every architecture, value type and tensor type.

usage: tools/make_gguf_corpus.py [OUT_DIR]      (default: fuzz/corpus/gguf; needs Python 3 only)
"""
import os
import struct
import sys

U8, I8, U16, I16, U32, I32, F32, BOOL, STRING, ARRAY, U64, I64, F64 = range(13)
FORMATS = {U8: 'B', I8: 'b', U16: 'H', I16: 'h', U32: 'I', I32: 'i', F32: 'f', BOOL: '?', U64: 'Q', I64: 'q', F64: 'd'}
# ggml number: (values, bytes) of a block
TYPES = {0: (1, 4), 1: (1, 2), 2: (32, 18), 3: (32, 20), 6: (32, 22), 7: (32, 24), 8: (32, 34), 12: (256, 144),
         13: (256, 176), 14: (256, 210), 30: (1, 2)}


def text(s):
    b = s.encode()
    return struct.pack('<Q', len(b)) + b


def scalar(kind, value):
    return text(value) if kind == STRING else struct.pack('<' + FORMATS[kind], value)


def value(kind, v):
    if isinstance(v, list):
        return struct.pack('<IIQ', ARRAY, kind, len(v)) + b''.join(scalar(kind, x) for x in v)
    return struct.pack('<I', kind) + scalar(kind, v)


def gguf(metadata, tensors, version=3, alignment=32):
    """metadata: (key, kind, value); tensors: (name, ggml type, shape with the innermost dimension first)."""
    out = b'GGUF' + struct.pack('<IQQ', version, len(tensors), len(metadata))
    for key, kind, v in metadata:
        out += text(key) + value(kind, v)
    data = b''
    for name, kind, shape in tensors:
        data += bytes(-len(data) % alignment)
        out += text(name) + struct.pack('<I', len(shape)) + struct.pack('<%dQ' % len(shape), *shape)
        out += struct.pack('<IQ', kind, len(data))
        count = 1
        for n in shape:
            count *= n
        values, size = TYPES[kind]
        # 0x3f in every fourth byte: as F32, a number around 1
        data += bytes(0x3f if i % 4 == 3 else (i * 37) & 63 for i in range(count // values * size))
    return out + bytes(-len(out) % alignment) + data if tensors else out


def model(arch, matrix=0, width=8, heads=2, kv_heads=1, head_dim=4, ffn=4, vocabulary=3, extra=(), tied=True):
    metadata = [('general.architecture', STRING, arch), ('general.name', STRING, 'seed')]
    for key, v in [('block_count', 1), ('context_length', 64), ('embedding_length', width), ('feed_forward_length', ffn),
                   ('attention.head_count', heads), ('attention.head_count_kv', kv_heads),
                   ('attention.key_length', head_dim), ('attention.value_length', head_dim)]:
        metadata.append((arch + '.' + key, U32, v))
    metadata.append((arch + '.attention.layer_norm_rms_epsilon', F32, 1e-5))
    metadata.append((arch + '.rope.freq_base', F32, 1e4))
    if arch == 'gemma3':
        metadata.append(('gemma3.attention.sliding_window', U32, 16))
    metadata += extra
    q, kv = heads * head_dim, kv_heads * head_dim
    b = 'blk.0.'
    tensors = [('token_embd.weight', matrix, [width, vocabulary]), ('output_norm.weight', 0, [width]),
               (b + 'attn_norm.weight', 0, [width]), (b + 'attn_q.weight', matrix, [width, q]),
               (b + 'attn_k.weight', matrix, [width, kv]), (b + 'attn_v.weight', matrix, [width, kv]),
               (b + 'attn_output.weight', matrix, [q, width]), (b + 'ffn_norm.weight', 0, [width]),
               (b + 'ffn_gate.weight', matrix, [width, ffn]), (b + 'ffn_up.weight', matrix, [width, ffn]),
               (b + 'ffn_down.weight', matrix, [ffn, width])]
    if not tied:
        tensors.append(('output.weight', matrix, [width, vocabulary]))
    if arch == 'qwen2':
        tensors += [(b + 'attn_q.bias', 0, [q]), (b + 'attn_k.bias', 0, [kv]), (b + 'attn_v.bias', 0, [kv])]
    if arch == 'gemma3':
        tensors += [(b + 'attn_q_norm.weight', 0, [head_dim]), (b + 'attn_k_norm.weight', 0, [head_dim]),
                    (b + 'post_attention_norm.weight', 0, [width]), (b + 'post_ffw_norm.weight', 0, [width])]
    return metadata, tensors


TOKENIZER = [('tokenizer.ggml.model', STRING, 'gpt2'), ('tokenizer.ggml.tokens', STRING, ['a', 'b', '<|x|>']),
             ('tokenizer.ggml.token_type', I32, [1, 1, 3]), ('tokenizer.ggml.scores', F32, [0.0, -1.0, -2.0]),
             ('tokenizer.ggml.merges', STRING, ['a b']), ('tokenizer.ggml.add_bos_token', BOOL, False)]

SEEDS = {
    'empty': b'',
    'header': gguf([], []),
    'version2': gguf([('a', U32, 1)], [], version=2),
    'values': gguf([('k%d' % kind, kind, 1) for kind in FORMATS] + [('text', STRING, 'x')] +
                   [('a%d' % kind, kind, [1, 0]) for kind in FORMATS] + [('texts', STRING, ['', 'yz'])], []),
    'types': gguf([('general.alignment', U32, 64)], [('t%d' % kind, kind, [256]) for kind in TYPES], alignment=64),
    'llama': gguf(*model('llama', extra=TOKENIZER)),
    'llama_untied_linear': gguf(*model('llama', tied=False, extra=[
        ('llama.rope.scaling.type', STRING, 'linear'), ('llama.rope.scaling.factor', F32, 4.0),
        ('llama.attention.sliding_window', U32, 32)])),
    'llama_q8_0': gguf(*model('llama', matrix=8, width=32, heads=1, head_dim=32, ffn=32, vocabulary=2)),
    'qwen2': gguf(*model('qwen2')),
    'gemma3': gguf(*model('gemma3', extra=[('gemma3.attention.sliding_window_pattern', BOOL, [True]),
                                           ('gemma3.rope.freq_base_swa', F32, 1e4)])),
}
metadata, tensors = model('llama')
SEEDS['llama_factors'] = gguf(metadata, tensors + [('rope_freqs.weight', 0, [2])])


def main():
    root = os.path.join(os.path.dirname(os.path.abspath(__file__)), '..')
    out = sys.argv[1] if len(sys.argv) > 1 else os.path.join(root, 'fuzz', 'corpus', 'gguf')
    os.makedirs(out, exist_ok=True)
    for name, seed in SEEDS.items():
        with open(os.path.join(out, name + '.gguf'), 'wb') as f:
            f.write(seed)


if __name__ == '__main__':
    main()
