#!/usr/bin/env python3
"""Times whole models: castwise beside mergekit 0.1.5, a plain PyTorch script, and `cp` followed by `sync`.

    python -m venv peers && peers/bin/pip install mergekit==0.1.5
    peers/bin/python benches/peers/merges.py --castwise target/release/castwise --mib 1024 --shards 10 --repeat 5

Makes three checkpoints in bf16 (a base and two with small changes) and one in FP8 with scales of 128 x 128 blocks, in the folder `--work`, runs each
tool in turns with a warm cache, and prints the median of wall times, user times and peak memory. Each command is a process of its own, its start included.
`--only` selects workloads by a part of their names. Without mergekit, its columns are empty.
"""
import argparse
import json
import math
import multiprocessing
import os
import shutil
import statistics
import subprocess
import sys
import time

HIDDEN, FFN = 1024, 2816


def layers(mib):
    layer = 2 * (4 * HIDDEN * HIDDEN + 3 * HIDDEN * FFN + 2 * HIDDEN)
    vocabulary = 8192
    rest = 2 * (2 * vocabulary * HIDDEN + HIDDEN)
    return max(1, round((mib * 2**20 - rest) / layer)), vocabulary


def shapes(mib):
    count, vocabulary = layers(mib)
    yield "model.embed_tokens.weight", (vocabulary, HIDDEN)
    for i in range(count):
        p = f"model.layers.{i}."
        for name in ("q", "k", "v", "o"):
            yield f"{p}self_attn.{name}_proj.weight", (HIDDEN, HIDDEN)
        yield p + "mlp.gate_proj.weight", (FFN, HIDDEN)
        yield p + "mlp.up_proj.weight", (FFN, HIDDEN)
        yield p + "mlp.down_proj.weight", (HIDDEN, FFN)
        yield p + "input_layernorm.weight", (HIDDEN,)
        yield p + "post_attention_layernorm.weight", (HIDDEN,)
    yield "model.norm.weight", (HIDDEN,)
    yield "lm_head.weight", (vocabulary, HIDDEN)


def write(folder, mib, shards, tensor):
    """Writes a model of shards, whose tensors `tensor(name, shape)` makes."""
    if os.path.exists(folder + "/config.json"):
        return
    os.makedirs(folder, exist_ok=True)
    names = list(shapes(mib))
    from safetensors.torch import save_file

    total = sum(math.prod(s) for _, s in names)
    index, shard, used, number = {}, {}, 0, 1
    for at, (name, shape) in enumerate(names):
        shard.update(tensor(name, shape))
        used += math.prod(shape)
        if used * shards >= total * number or at == len(names) - 1:
            file = f"model-{number:05}-of-{shards:05}.safetensors"
            save_file(shard, f"{folder}/{file}", metadata={"format": "pt"})
            index.update({n: file for n in shard})
            shard, number = {}, number + 1
    with open(folder + "/model.safetensors.index.json", "w") as f:
        json.dump({"metadata": {}, "weight_map": index}, f)
    count, vocabulary = layers(mib)
    config = dict(architectures=["LlamaForCausalLM"], model_type="llama", hidden_size=HIDDEN, intermediate_size=FFN, num_hidden_layers=count,
                  num_attention_heads=8, num_key_value_heads=8, vocab_size=vocabulary, tie_word_embeddings=False, torch_dtype="bfloat16",
                  rms_norm_eps=1e-5, max_position_embeddings=128)
    with open(folder + "/config.json", "w") as f:
        json.dump(config, f)


def models(work, mib, shards):
    import torch

    def base(name, shape):
        generator = torch.Generator().manual_seed(hash_of(name))
        return {name: (torch.randn(shape, generator=generator) * 0.02).to(torch.bfloat16)}

    def changed(seed):
        def make(name, shape):
            generator = torch.Generator().manual_seed(hash_of(name) + seed)
            delta = torch.randn(shape, generator=generator) * 0.001
            return {name: (base(name, shape)[name].float() + delta).to(torch.bfloat16)}
        return make

    def fp8(name, shape):
        made = base(name, shape)
        if len(shape) < 2 or "proj" not in name:
            return made
        blocks = tuple(-(-n // 128) for n in shape)
        return {name: (made[name].float() * 100).to(torch.float8_e4m3fn), name + "_scale_inv": torch.full(blocks, 0.01)}

    write(work + "/base", mib, shards, base)
    write(work + "/a", mib, shards, changed(1))
    write(work + "/b", mib, shards, changed(2))
    write(work + "/fp8", mib, shards, fp8)


def hash_of(name):
    return sum((i + 1) * ord(c) for i, c in enumerate(name)) % 2**31


PLAIN = """
import sys, json, os, torch
from safetensors import safe_open
from safetensors.torch import save_file
what, out, *folders = sys.argv[1:]
os.makedirs(out)
maps = [json.load(open(f + '/model.safetensors.index.json'))['weight_map'] for f in folders]
files = {}
def get(m, name):
    key = folders[m] + '/' + maps[m][name]
    if key not in files: files[key] = safe_open(key, 'pt')
    return files[key].get_tensor(name)
def linear(x, y): return (0.7 * x.float() + 0.3 * y.float()).to(torch.bfloat16)
def slerp(x, y, t=0.3):
    x, y = x.float(), y.float()
    c = ((x / x.norm()) * (y / y.norm())).sum().clamp(-1, 1)
    if c.abs() > 0.9995: return ((1 - t) * x + t * y).to(torch.bfloat16)
    th = torch.acos(c)
    return ((torch.sin((1 - t) * th) * x + torch.sin(t * th) * y) / torch.sin(th)).to(torch.bfloat16)
def trim(d, k):
    mask = torch.zeros(d.numel(), dtype=torch.bool)
    mask[d.abs().flatten().topk(k, sorted=False).indices] = True
    return d * mask.view(d.shape)
def consensus(base, ds):
    s = torch.stack(ds)
    keep = s.sign() == torch.where(s.sum(0) >= 0, 1, -1)
    n = keep.sum(0).clamp(min=1)
    return base + (s * keep).sum(0) / n
def ties(base, a, b): return consensus(base, [trim(x - base, max(1, base.numel() // 2)) for x in (a, b)])
def dare(base, a, b):
    return consensus(base, [(x - base) * (torch.rand(base.shape) < 0.5) / 0.5 for x in (a, b)]).to(torch.bfloat16)
def convert(x): return x.to(torch.float16)
def fp8(w, s=None):
    if s is None: return w
    big = s.repeat_interleave(128, 0).repeat_interleave(128, 1)[: w.shape[0], : w.shape[1]]
    return (w.float() * big).to(torch.bfloat16)
run = dict(linear=linear, slerp=slerp, ties=ties, dare_ties=dare, convert=convert, fp8_dequant=fp8)[what]
for file in sorted(set(maps[0].values())):
    made = {}
    for name in [n for n, f in maps[0].items() if f == file]:
        if name.endswith('_scale_inv'): continue
        if what == 'fp8_dequant':
            scale = name + '_scale_inv'
            made[name] = run(get(0, name), get(0, scale) if scale in maps[0] else None)
        else:
            made[name] = run(*(get(m, name) for m in range(len(folders))))
    save_file(made, out + '/' + file, metadata={'format': 'pt'})
"""


def config(work, method):
    path = f"{work}/{method}.yml"
    entry = lambda m, **p: {"model": f"{work}/{m}", "parameters": p} if p else {"model": f"{work}/{m}"}
    made = dict(merge_method=method, dtype="bfloat16")
    if method == "linear":
        made["models"] = [entry("a", weight=0.7), entry("b", weight=0.3)]
    elif method == "slerp":
        made.update(models=[entry("a"), entry("b")], base_model=f"{work}/a", parameters=dict(t=0.3))
    else:
        made.update(models=[entry(m, weight=0.5, density=0.5) for m in "ab"], base_model=f"{work}/base")
    with open(path, "w") as f:
        json.dump(made, f)
    return path


def workloads(work, castwise, mergekit, threads):
    inputs = {"linear": "ab", "slerp": "ab", "ties": ["base", "a", "b"], "dare_ties": ["base", "a", "b"]}
    more = ["--threads", str(threads)] if threads else []
    for method, folders in inputs.items():
        yml = config(work, method)
        yield method, {
            "castwise": [castwise, "merge", yml, "-o", "OUT/", "-q"] + more,
            "mergekit": [mergekit, yml, "OUT", "--random-seed", "1"] if mergekit else None,
            "plain": [sys.executable, "-c", PLAIN, method, "OUT"] + [f"{work}/{f}" for f in folders],
            "cp": ["sh", "-c", f"cp -r {work}/a OUT && sync OUT/*"] if method == "linear" else None,
        }
    yield "convert", {
        "castwise": [castwise, "eval", "@convert", "-i", f"a={work}/a/", "-p", "dtype=f16", "-o", "OUT/", "-q"] + more,
        "plain": [sys.executable, "-c", PLAIN, "convert", "OUT", f"{work}/a"],
        "cp": ["sh", "-c", f"cp -r {work}/a OUT && sync OUT/*"],
    }
    yield "fp8_dequant", {
        "castwise": [castwise, "eval", "@fp8_dequant", "-i", f"w={work}/fp8/", "-o", "OUT/", "-q"] + more,
        "plain": [sys.executable, "-c", PLAIN, "fp8_dequant", "OUT", f"{work}/fp8"],
    }
    yield "stats", {"castwise": [castwise, "stats", f"{work}/a/"]}
    yield "diff", {"castwise": [castwise, "diff", f"{work}/a/", f"{work}/b/"]}


def run(command, out):
    shutil.rmtree(out, ignore_errors=True)
    command = [c.replace("OUT", out) if len(c) < 1000 else c for c in command]
    start = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    text = process.stderr.read()
    _, status, usage = os.wait4(process.pid, 0)
    wall = time.perf_counter() - start
    shutil.rmtree(out, ignore_errors=True)
    code = os.waitstatus_to_exitcode(status)
    if code not in (0, 1) or (code == 1 and "diff" not in command):
        sys.exit(f"{command[:4]}: status {code}: {text.decode()[-2000:]}")
    return wall, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


def main():
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--castwise", default="target/release/castwise")
    arguments.add_argument("--mergekit", default=os.path.join(os.path.dirname(sys.executable), "mergekit-yaml"))
    arguments.add_argument("--work", default="target/merges")
    arguments.add_argument("--mib", type=int, default=1024)
    arguments.add_argument("--shards", type=int, default=10)
    arguments.add_argument("--repeat", type=int, default=5)
    arguments.add_argument("--threads", type=int)
    arguments.add_argument("--only", default="")
    a = arguments.parse_args()
    mergekit = a.mergekit if os.path.exists(a.mergekit) else None
    work = f"{os.path.abspath(a.work)}/{a.mib}"
    # In a process of its own: the peak memory of a child begins with that of this one.
    making = multiprocessing.get_context("spawn").Process(target=models, args=(work, a.mib, a.shards))
    making.start()
    making.join()
    if making.exitcode:
        sys.exit("the models could not be made")
    print(f"{a.mib} MiB a model, {a.shards} shards; median of {a.repeat}: seconds (seconds of CPU, MiB of memory)")
    ratios = []
    for name, tools in workloads(work, os.path.abspath(a.castwise), mergekit, a.threads):
        if a.only not in name:
            continue
        results = {tool: [] for tool, command in tools.items() if command}
        for _ in range(a.repeat):
            for tool, command in tools.items():
                if command:
                    results[tool].append(run(command, work + "/out-" + tool))
        medians = {t: [statistics.median(column) for column in zip(*all)] for t, all in results.items()}
        cells = [f"{t} {m[0]:.2f} ({m[1]:.2f}, {m[2]:.0f})" for t, m in medians.items()]
        if "mergekit" in medians:
            ratios.append(medians["mergekit"][0] / medians["castwise"][0])
            cells.append(f"mergekit/castwise {ratios[-1]:.1f}")
        if "cp" in medians:
            cells.append(f"castwise/cp {medians['castwise'][0] / medians['cp'][0]:.2f}")
        print(f"{name:12}", "; ".join(cells), flush=True)
    if ratios:
        print(f"geometric mean of mergekit/castwise: {statistics.geometric_mean(ratios):.1f}, least {min(ratios):.1f}")


if __name__ == "__main__":
    main()
