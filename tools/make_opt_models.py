"""Small ONNX decoders with random weights and their logits, for tests/unit/opt_models_test.c.

usage: make_opt_models.py OUT      (needs torch, transformers, onnx, onnxscript,
       onnxruntime, onnxruntime-genai)
Writes OUT/NAME.onnx (weights inside) and OUT/NAME.logits (float32 [20, 64], tokens i * 7 % 64),
computed by ONNX Runtime with float activations. The models are built by onnxruntime-genai's own
builder and by PyTorch's exporters, so that they are spelled as published folders are.
"""
import os
import runpy
import sys
import tempfile

os.environ['HF_HUB_OFFLINE'] = '1'
import numpy as np
import onnx
import onnxruntime as ort
import torch
import transformers as tf

VOCAB, ROWS = 64, 20
BASE = dict(hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=2,
            num_key_value_heads=1, vocab_size=VOCAB, max_position_embeddings=32, bos_token_id=1,
            eos_token_id=2, pad_token_id=0, rms_norm_eps=1e-6)


def rope(theta=1e4, **more):
    return dict(rope_type='default', rope_theta=theta, **more)


LONG = dict(rope_type='longrope', type='longrope', rope_theta=1e4, original_max_position_embeddings=16,
            short_factor=[1 + i / 10 for i in range(8)], long_factor=[2 + i / 3 for i in range(8)], factor=2.0)
SHAPES = {
    'plain': (tf.LlamaConfig, dict(tie_word_embeddings=False, rope_parameters=rope())),
    'biased': (tf.Qwen2Config, dict(tie_word_embeddings=True, rope_parameters=rope(1e6))),
    'headnorm': (tf.Qwen3Config, dict(head_dim=16, tie_word_embeddings=True, rope_parameters=rope(1e6))),
    'softcap': (tf.Gemma2Config, dict(head_dim=16, sliding_window=8, query_pre_attn_scalar=16,
                                      tie_word_embeddings=True)),
    'long': (tf.Phi3Config, dict(sliding_window=None, original_max_position_embeddings=16,
                                 rope_parameters=LONG, tie_word_embeddings=False)),
    'layernorm': (tf.PhiConfig, dict(num_attention_heads=1, num_key_value_heads=1, tie_word_embeddings=False,
                                     rope_parameters=rope(partial_rotary_factor=0.5))),
    'scaled': (tf.GraniteConfig, dict(tie_word_embeddings=True, rope_parameters=rope(), embedding_multiplier=12.0,
                                      logits_scaling=8.0, residual_multiplier=0.22, attention_multiplier=0.1)),
}
MODELS = [  # name, shape, execution provider, precision, options
    ('plain-fp32', 'plain', 'cpu', 'fp32', []),
    ('plain-int4-fp16', 'plain', 'cuda', 'int4', []),
    ('plain-qdq', 'plain', 'cpu', 'int4', ['use_qdq=1', 'is_symmetric=false']),
    ('plain-gateup', 'plain', 'cpu', 'int4', ['fuse_mlp_gate_up=1', 'prune_lm_head=1']),
    ('biased-int4', 'biased', 'cpu', 'int4', ['block_size=16']),
    ('biased-fp16', 'biased', 'cuda', 'fp16', []),
    ('biased-nodes', 'biased', 'dml', 'fp16', []),
    ('biased-split', 'biased', 'cpu', 'int4', ['shared_embeddings=false', 'is_symmetric=false',
                                               'disable_qkv_fusion=1']),
    ('headnorm-int8', 'headnorm', 'cpu', 'int8', []),
    ('softcap-int4', 'softcap', 'cpu', 'int4', []),
    ('long-int4', 'long', 'cpu', 'int4', []),
    ('layernorm-int4', 'layernorm', 'cpu', 'int4', []),
    ('scaled-int4', 'scaled', 'cpu', 'int4', []),
]
EXPORTS = [  # name, shape, attention, opset: by PyTorch's exporters (below 18 the older one)
    ('export-eager-17', 'softcap', 'eager', 17),
    ('export-partial-18', 'layernorm', 'sdpa', 18),
    ('export-attention-23', 'headnorm', 'sdpa', 23),
]
TOKENIZER = ('{"version":"1.0","added_tokens":[],"model":{"type":"WordLevel","vocab":{"a":0,"b":1,"c":2},'
             '"unk_token":"a"}}')


def make_hf(shape, folder):
    kind, more = SHAPES[shape]
    torch.manual_seed(1)
    config = kind(**dict(BASE, **more))
    config.architectures = [kind.__name__.replace('Config', 'ForCausalLM')]
    model = tf.AutoModelForCausalLM.from_config(config).float()
    with torch.no_grad():
        for name, p in model.named_parameters():
            centre = p.dim() == 1 and 'bias' not in name and shape != 'softcap'
            p.copy_(torch.randn_like(p) * 0.25 + centre)
    model.save_pretrained(folder)
    with open(folder + '/tokenizer.json', 'w') as f:
        f.write(TOKENIZER)
    with open(folder + '/tokenizer_config.json', 'w') as f:
        f.write('{"tokenizer_class":"PreTrainedTokenizerFast","bos_token":"b","eos_token":"c"}')


def build(hf, out, provider, precision, options):
    argv = sys.argv
    sys.argv = ['builder', '-m', hf, '-i', hf, '-o', out, '-p', precision, '-e', provider, '-c', out + '.cache',
                '--extra_options', 'hf_token=false'] + options
    runpy.run_module('onnxruntime_genai.models.builder', run_name='__main__')
    sys.argv = argv


class Decoder(torch.nn.Module):
    """Past keys and values as plain tensors in and out."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, input_ids, attention_mask, position_ids, *past):
        cache = tf.DynamicCache(list(zip(past[::2], past[1::2])))
        out = self.model(input_ids=input_ids, attention_mask=attention_mask, position_ids=position_ids,
                         past_key_values=cache, use_cache=True)
        return (out.logits, *(t for layer in out.past_key_values.layers for t in (layer.keys, layer.values)))


def export(hf, out, attention, opset, head):
    model = tf.AutoModelForCausalLM.from_pretrained(hf, dtype=torch.float32, attn_implementation=attention).eval()
    layers, kv, rows, past = model.config.num_hidden_layers, model.config.num_key_value_heads, 3, 5
    args = (torch.arange(rows)[None] + 3, torch.ones(1, rows + past, dtype=torch.int64),
            torch.arange(past, past + rows)[None]) + tuple(torch.randn(1, kv, past, head) for _ in range(2 * layers))
    names = ['input_ids', 'attention_mask', 'position_ids'] + [
        f'past_key_values.{i}.{k}' for i in range(layers) for k in ('key', 'value')]
    results = ['logits'] + [f'present.{i}.{k}' for i in range(layers) for k in ('key', 'value')]
    if opset < 18:
        axes = {n: {0: 'batch', 1: 'rows'} for n in names[:3]} | {n: {0: 'batch', 2: 'past'} for n in names[3:]}
        axes['attention_mask'] = {0: 'batch', 1: 'total'}
        torch.onnx.export(Decoder(model), args, out, input_names=names, output_names=results, dynamic_axes=axes,
                          opset_version=opset, dynamo=False)
    else:
        any_size = torch.export.Dim.DYNAMIC
        shapes = ({0: any_size, 1: any_size},) * 3 + (tuple({0: any_size, 2: any_size} for _ in names[3:]),)
        torch.onnx.export(Decoder(model), args, out, input_names=names, output_names=results,
                          dynamic_shapes=shapes, opset_version=opset, dynamo=True, external_data=False)
    model = onnx.load(out)
    for node in model.graph.node:  # stack traces of this machine
        del node.metadata_props[:]
        node.doc_string = ''
    for value in model.graph.value_info:
        del value.metadata_props[:]
    onnx.save(model, out)
    return model


def logits_of(model, head):
    model = onnx.ModelProto.FromString(model.SerializeToString())
    for node in model.graph.node:
        for a in node.attribute:
            if a.name in ('accuracy_level', 'sliding_window_cache'):
                a.i = 0
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = ort.InferenceSession(model.SerializeToString(), options, providers=['CPUExecutionProvider'])
    feed = {}
    for i in session.get_inputs():
        if i.name == 'input_ids':
            feed[i.name] = (np.arange(ROWS) * 7 % VOCAB)[None].astype(np.int64)
        elif i.name == 'attention_mask':
            feed[i.name] = np.ones((1, ROWS), np.int64)
        elif i.name == 'position_ids':
            feed[i.name] = np.arange(ROWS)[None].astype(np.int64)
        else:
            kind = np.float16 if 'float16' in i.type else np.float32
            feed[i.name] = np.zeros((1, i.shape[1], 0, head), kind)
    y = session.run(['logits'], feed)[0][0].astype(np.float32)
    if y.shape[0] == 1:  # the file drops all rows but the last
        y = np.concatenate([np.full((ROWS - 1, VOCAB), np.nan, np.float32), y])
    return y


def main():
    out = sys.argv[1]
    os.makedirs(out, exist_ok=True)
    with tempfile.TemporaryDirectory() as tmp:
        for name, shape, provider, precision, options in MODELS:
            hf = f'{tmp}/{shape}'
            if not os.path.isdir(hf):
                make_hf(shape, hf)
            build(hf, f'{tmp}/{name}', provider, precision, options)
            model = onnx.load(f'{tmp}/{name}/model.onnx')
            onnx.save(model, f'{out}/{name}.onnx')
            logits_of(model, 32 if shape == 'layernorm' else 16).tofile(f'{out}/{name}.logits')
        for name, shape, attention, opset in EXPORTS:
            head = 32 if shape == 'layernorm' else 16
            model = export(f'{tmp}/{shape}', f'{out}/{name}.onnx', attention, opset, head)
            logits_of(model, head).tofile(f'{out}/{name}.logits')


main()
