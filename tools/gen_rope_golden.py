"""Frequencies and magnitudes of rotary rules as transformers has them, for src/convert/rope_test.c.

usage: python tools/gen_rope_golden.py   (needs transformers; prints C rows)
"""
import os

os.environ['HF_HUB_OFFLINE'] = '1'
from transformers import LlamaConfig, Phi3Config
from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS as F

RULES = [
    ('linear', dict(rope_theta=10000.0, factor=4.0), LlamaConfig, 1),
    ('llama3', dict(rope_theta=500000.0, factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0,
                    original_max_position_embeddings=8192), LlamaConfig, 1),
    ('yarn', dict(rope_theta=1000000.0, factor=4.0, original_max_position_embeddings=32768),
     LlamaConfig, 1),
    ('longrope', dict(rope_theta=10000.0, short_factor=[1.0 + 0.25 * i for i in range(32)],
                      long_factor=[1.0 + 2.0 * i for i in range(32)],
                      original_max_position_embeddings=4096), Phi3Config, 1),
    ('longrope', dict(rope_theta=10000.0, short_factor=[1.0 + 0.25 * i for i in range(32)],
                      long_factor=[1.0 + 2.0 * i for i in range(32)],
                      original_max_position_embeddings=4096), Phi3Config, 5000),
]
for kind, p, config, length in RULES:
    c = config(hidden_size=256, num_attention_heads=4, max_position_embeddings=131072,
               rope_parameters=dict(p, rope_type=kind))
    f, magnitude = F[kind](c, 'cpu', seq_len=length)
    picked = ', '.join(f'{f[i].item():.9g}' for i in (0, 7, 15, 16, 17, 20, 31))
    print(f'{{"{kind}", {str(length > 4096).lower()}, {magnitude:.9g}, {{{picked}}}}},')
