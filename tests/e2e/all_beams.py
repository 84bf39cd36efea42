"""Beam search against transformers on a random tiny model: ids and scores, over beams, penalties, early stopping, end
ids and the processors that act on log-probabilities; greedy with processors the same way; a generation_config.json and
a genai_config.json that ask for it.

usage: all_beams.py --oxgen BIN [--rounds N]   (needs torch and transformers)
"""
import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile

os.environ['HF_HUB_OFFLINE'] = '1'
os.environ['TRANSFORMERS_VERBOSITY'] = 'error'
try:
    import torch
    import transformers as hf
except ImportError:
    sys.exit('skipped: torch or transformers is not installed')
import random

p = argparse.ArgumentParser()
p.add_argument('--oxgen', required=True)
p.add_argument('--rounds', type=int, default=40)
p.add_argument('--seed', type=int, default=1)
a = p.parse_args()
rng = random.Random(a.seed)
passed = failed = 0


def check(name, ok, detail=''):
    global passed, failed
    passed, failed = passed + bool(ok), failed + (not ok)
    if not ok:
        print(f'FAIL {name}: {detail}', flush=True)


def oxgen(*argv):
    r = subprocess.run([a.oxgen, *map(str, argv)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=120)
    return r.returncode, r.stdout, r.stderr


def make(folder, eos):
    torch.manual_seed(1)
    config = hf.LlamaConfig(hidden_size=64, intermediate_size=96, num_hidden_layers=2, num_attention_heads=4,
                            num_key_value_heads=2, vocab_size=60, max_position_embeddings=256, bos_token_id=1,
                            eos_token_id=eos, pad_token_id=0)
    model = hf.AutoModelForCausalLM.from_config(config)
    for w in model.parameters():
        w.data = w.data * 4 if w.dim() > 1 else w.data
    model.generation_config = hf.GenerationConfig(eos_token_id=eos, bos_token_id=1, pad_token_id=0)
    model.to(torch.float32).save_pretrained(folder)
    return hf.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)


def trimmed(ids, eos):
    out = []
    for i in ids:
        if i in eos:
            break
        out.append(i)
    return out


def compare(name, model, folder, eos, prompt, new, flags, settings):
    want = model.generate(torch.tensor([prompt]), max_new_tokens=new, do_sample=False, return_dict_in_generate=True,
                          output_scores=True, **settings)
    sequences = [trimmed(s[len(prompt):].tolist(), eos) for s in want.sequences]
    code, out, err = oxgen('generate', folder, '--ids', ','.join(map(str, prompt)), '-n', new, '--numerics', 'exact', '--kv', 'f32',
                           '--quant', 'f32', '--json', *flags)
    if code:
        check(name, False, err)
        return
    got = json.loads(out)
    several = got.get('sequences') or [got]
    ids = [s['ids'] for s in several]
    check(name + ' ids', ids == sequences, f'\n  {ids}\n  {sequences}')
    if 'sequences_scores' in want and want.sequences_scores is not None and ids == sequences:
        scores = [s.get('score', 0) for s in several]
        worst = max(abs(x - y) / max(1, abs(y)) for x, y in zip(scores, want.sequences_scores.tolist()))
        check(name + ' scores', worst < 2e-4, (scores, want.sequences_scores.tolist()))


def rounds(folder, model, eos):
    for r in range(a.rounds):
        prompt = [rng.randrange(3, 60) for _ in range(rng.randrange(1, 12))]
        beams = rng.choice((1, 2, 3, 4, 8))
        new = rng.choice((1, 4, 12, 30))
        flags, settings = ['--num-beams', beams], dict(num_beams=beams)
        if beams > 1:
            back = rng.randrange(1, beams + 1)
            penalty = rng.choice((1.0, 0.0, 2.0, -1.0, 0.6))
            early = rng.choice((('no', False), ('yes', True), ('never', 'never')))
            flags += ['--num-return-sequences', back, '--length-penalty', penalty, '--early-stopping', early[0]]
            settings.update(num_return_sequences=back, length_penalty=penalty, early_stopping=early[1])
        if r % 4 == 1:
            flags += ['--repetition-penalty', 1.3]
            settings['repetition_penalty'] = 1.3
        if r % 4 == 2:
            flags += ['--no-repeat-ngram', 2]
            settings['no_repeat_ngram_size'] = 2
        if r % 4 == 3 and new > 4:
            flags += ['--min-new-tokens', 4]
            settings['min_new_tokens'] = 4
        compare(f'round {r} {flags} prompt {prompt} new {new}', model, folder, eos, prompt, new, flags, settings)


def from_files(folder, model, eos):
    path = os.path.join(folder, 'generation_config.json')
    kept = open(path).read()
    for settings in (dict(num_beams=3, num_return_sequences=2, length_penalty=0.5), dict(num_beams=4, early_stopping='never'),
                     dict(num_beams=2, repetition_penalty=1.5), dict(repetition_penalty=1.5, no_repeat_ngram_size=2, min_length=9),
                     dict(suppress_tokens=[5, 6, 7, 8, 9, 10], bad_words_ids=[[11], [12, 13]])):
        open(path, 'w').write(json.dumps(dict(json.loads(kept), **settings)))
        compare(f'generation_config.json {settings}', model, folder, eos, [3, 4, 5], 16, [], settings)
    open(path, 'w').write(kept)
    exported = folder + '-genai'
    shutil.rmtree(exported, ignore_errors=True)
    code, out, err = oxgen('convert', folder, '-o', exported, '--quant', 'f32')
    check('convert', code == 0, err)
    config = os.path.join(exported, 'genai_config.json')
    base = json.load(open(config))
    for settings, flags in ((dict(num_beams=3, num_return_sequences=2, length_penalty=0.5, early_stopping=False), {}),
                            (dict(num_beams=3), dict(early_stopping=True)), (dict(num_beams=1), {})):
        json.dump(dict(base, search=dict(base['search'], **settings)), open(config, 'w'))
        compare(f'genai_config.json {settings}', model, exported, eos, [3, 4, 5], 16, [], dict(settings, **flags))
    code, out, err = oxgen('generate', exported, '--ids', '3,4,5', '-n', 4, '--num-beams', 2, '--temperature', 1)
    check('beams and draws exclude each other', code == 2 and '--greedy' in err, err)


with tempfile.TemporaryDirectory() as tmp:
    for eos in ([2], [2, 7, 9]):
        folder = os.path.join(tmp, f'tiny-{len(eos)}')
        model = make(folder, eos)
        rounds(folder, model, eos)
        from_files(folder, model, eos)
print(f'{passed} passed, {failed} failed')
sys.exit(failed > 0)
