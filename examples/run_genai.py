"""Runs a folder that `oxgen convert` wrote, with ONNX Runtime GenAI (pip install onnxruntime-genai).

usage: run_genai.py DIR [QUESTION]
"""
import json, os, sys

if len(sys.argv) not in (2, 3) or not os.path.isdir(sys.argv[1]):
    sys.exit('usage: run_genai.py DIR [QUESTION]   DIR: a folder that oxgen convert wrote')
try:
    import onnxruntime_genai as og
except ImportError:
    sys.exit('run_genai.py needs ONNX Runtime GenAI: pip install onnxruntime-genai')

question = sys.argv[2] if len(sys.argv) > 2 else 'What is the capital of France?'
model = og.Model(sys.argv[1])
tokenizer = og.Tokenizer(model)
messages = json.dumps([{'role': 'user', 'content': question}])
prompt = tokenizer.encode(tokenizer.apply_chat_template(messages, add_generation_prompt=True))
params = og.GeneratorParams(model)
params.set_search_options(max_length=len(prompt) + 64, do_sample=False)
generator = og.Generator(model, params)
generator.append_tokens(prompt)
stream = tokenizer.create_stream()
while not generator.is_done():
    generator.generate_next_token()
    print(stream.decode(generator.get_next_tokens()[0]), end='', flush=True)
print()
