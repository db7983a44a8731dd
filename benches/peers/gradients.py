"""Values with gradients, steps of AdamW and clipping, in turns with PyTorch and JAX.

README.md says how to install the peers. castwise is the Python package; PyTorch computes eagerly with autograd, with `torch.compile`, and steps with
`fused=True`; JAX with `jit(value_and_grad)`. Prints milliseconds a call for one thread and for two, how many times as fast as the best peer
castwise is, the geometric mean, and the bytes that a call takes at its peak beside what it returns; `--only REGEX` takes some rows. Values,
gradients and clipped gradients are compared with each other's; steps of AdamW are not, because PyTorch's first call is step 1, and castwise's and
JAX's are step 5.
"""

import math

from dtypes import in_turns, measured, options, turn_of
from rows import conclude, digest, each_row, table

PEERS = {"castwise": "torch", "torch": "torch", "torch.compile": "torch", "fused": "torch", "jax": "jax"}


def rows(small):
    """Each row: its name, and the shapes of its operands."""
    n, wide, rows = (1 << 12, 1 << 14, 16) if small else (1 << 20, 1 << 24, 4096)
    yield "mse gelu 2^20", [(n,)] * 4
    yield "mse gelu 2^24", [(wide,)] * 4
    yield "huber normalization", [(rows, 1024), (1024,), (1024,), (1024,), (1024,), (rows, 1024)]
    yield "adamw f32", [(wide,)] * 4
    yield "adamw bf16", [(wide,)] * 4
    yield "clip", [(wide,)]


def operands(name, shapes):
    import numpy as np

    rng = np.random.default_rng(1)
    all = [rng.normal(0.0, 1.0, shape).astype(np.float32) for shape in shapes]
    if name.startswith("huber"):
        all[2] = np.abs(all[2]) + np.float32(0.5)
    if name.startswith("adamw"):
        all[2:] = [np.zeros_like(all[0]), np.zeros_like(all[0])]
    return all


def peak(call):
    """Bytes that a call takes at its peak beside those that were there."""
    call()
    with open("/proc/self/clear_refs", "w") as f:
        f.write("5")

    def bytes_of(key):
        with open("/proc/self/status") as f:
            return next(int(line.split()[1]) * 1024 for line in f if line.startswith(key))

    before = bytes_of("VmRSS")
    kept = call()
    most = bytes_of("VmHWM")
    del kept
    return most - before


# ---- A peer's process -----------------------------------------------------------------------------------------------


def castwise_call(name, args, threads):
    import ml_dtypes
    import numpy as np

    import castwise

    p = castwise.Program("torch")
    executor = castwise.Executor(threads=threads)
    kind = name.split()[0]
    if kind in ("mse", "huber"):
        v = [p.data(f"x{i}", "float32", list(a.shape)) for i, a in enumerate(args)]
        if kind == "mse":
            x, w, b, y = v
            h = castwise.gelu(castwise.gelu(x * w + b) * w + b)
            loss, wrt = castwise.square(h - y).mean(), [x, w, b]
        else:
            x, mean, scale, weight, bias, y = v
            d = (x - mean) / scale * weight + bias - y
            size = castwise.abs(d)
            loss, wrt = castwise.where(size < 1, 0.5 * d * d, size - 0.5).mean(), [x, weight, bias]
        p.fetch(*p.value_and_gradients(loss, wrt))
        f = castwise.compile(p, executor=executor)
        return lambda: f(*args)
    if kind == "clip":
        g = p.data("g", "float32", list(args[0].shape))
        p.fetch(*castwise.clip_by_norm([g], 1.0)[0])
        f = castwise.compile(p, executor=executor)
        out = np.empty_like(args[0])
        return lambda: f(args[0], out=out)
    step = castwise.Optimizer("adamw", weight_decay=0.01)
    values = [np.float32(v) for v in step.values(1e-3, 5)]
    narrow = ml_dtypes.bfloat16 if "bf16" in name else None
    w, m, v = args[0], args[2], args[3]
    g = args[1].astype(narrow) if narrow else args[1]
    of = lambda name, dtype="float32": p.data(name, dtype, list(w.shape))
    numbers = lambda: [p.data(name, "float32", []) for name in step.numbers]
    if narrow:
        x = w.astype(narrow)
        vars = of("x", "bfloat16"), of("w"), of("g", "bfloat16"), [of("m"), of("v")], numbers()
        p.fetch(*step.update_master(*vars))
        f, feeds, out = castwise.compile(p, executor=executor), [x, w, g, m, v], [x, w, m, v]
    else:
        p.fetch(*step.update(of("w"), of("g"), [of("m"), of("v")], numbers()))
        f, feeds, out = castwise.compile(p, executor=executor), [w, g, m, v], [w, m, v]

    def call():
        f(*feeds, *values, out=out)
        return out[0]

    return call


def torch_call(name, args, threads, peer):
    import torch
    import torch.nn.functional as F

    torch.set_num_threads(threads)
    kind = name.split()[0]
    args = [torch.from_numpy(a).clone() for a in args]
    if kind in ("mse", "huber"):
        if peer == "fused":
            raise ValueError("there is no fused optimizer")
        at = [0, 1, 2] if kind == "mse" else [0, 3, 4]
        for i in at:
            args[i].requires_grad_()

        def loss(*v):
            if kind == "mse":
                x, w, b, y = v
                return F.mse_loss(F.gelu(F.gelu(x * w + b) * w + b), y)
            x, mean, scale, weight, bias, y = v
            return F.huber_loss((x - mean) / scale * weight + bias, y)

        f = torch.compile(loss) if peer == "torch.compile" else loss

        def call():
            value = f(*args)
            return [value, *torch.autograd.grad(value, [args[i] for i in at])]

        return call
    if kind == "clip":
        if peer == "fused":
            raise ValueError("there is no fused optimizer")

        def clip(g):
            scale = (1.0 / (torch.linalg.vector_norm(g) + 1e-6)).clamp(max=1.0)
            return g * scale

        f = torch.compile(clip) if peer == "torch.compile" else clip
        return lambda: [f(args[0])]
    narrow = torch.bfloat16 if "bf16" in name else None
    w = torch.nn.Parameter(args[0])
    w.grad = args[1]
    if narrow:
        w.grad, g, x = None, args[1].to(narrow), args[0].to(narrow)
    optimizer = torch.optim.AdamW([w], lr=1e-3, weight_decay=0.01, fused=peer == "fused")

    def step():
        if narrow:
            w.grad = g.float()
        optimizer.step()
        if narrow:
            with torch.no_grad():
                x.copy_(w)

    f = torch.compile(step) if peer == "torch.compile" else step

    def call():
        f()
        return [x if narrow else w]

    return call


def jax_call(name, args, threads):
    import jax
    import jax.numpy as jnp

    kind = name.split()[0]
    args = [jnp.array(a) for a in args]
    if kind in ("mse", "huber"):

        def loss(*v):
            if kind == "mse":
                x, w, b, y = v
                gelu = lambda x: jax.nn.gelu(x, approximate=False)
                return ((gelu(gelu(x * w + b) * w + b) - y) ** 2).mean()
            x, mean, scale, weight, bias, y = v
            d = (x - mean) / scale * weight + bias - y
            size = jnp.abs(d)
            return jnp.where(size < 1, 0.5 * d * d, size - 0.5).mean()

        f = jax.jit(jax.value_and_grad(loss, (0, 1, 2) if kind == "mse" else (0, 3, 4)))

        def call():
            value, gradients = jax.block_until_ready(f(*args))
            return [value, *gradients]

        return call
    if kind == "clip":
        f = jax.jit(lambda g: g * jnp.minimum(1.0 / (jnp.sqrt((g * g).sum()) + 1e-6), 1.0))
        return lambda: [f(args[0]).block_until_ready()]
    narrow = jnp.bfloat16 if "bf16" in name else None
    w, g, m, v = args
    g = g.astype(narrow) if narrow else g
    rate, root = 1e-3 / (1 - 0.9**5), math.sqrt(1 - 0.999**5)

    def step(w, m, v, g):
        g = g.astype(jnp.float32)
        m, v = m + (g - m) * 0.1, v * 0.999 + g * g * 0.001
        w = w * (1 - 1e-5) - rate * (m / (jnp.sqrt(v) / root + 1e-8))
        return (w, m, v, w.astype(narrow)) if narrow else (w, m, v)

    f, state = jax.jit(step, donate_argnums=(0, 1, 2)), [w, m, v]

    def call():
        made = jax.block_until_ready(f(*state, g))
        state[:] = made[:3]
        return [made[-1] if narrow else made[0]]

    return call


def peer_process(o):
    makers = {"castwise": castwise_call, "jax": jax_call}
    make = makers.get(o.peer) or (lambda *a: torch_call(*a, o.peer))

    def fill(row, name, shapes):
        call = make(name, operands(name, shapes), o.threads)
        result = call()
        if not name.startswith("adamw"):
            row["digest"] = [x for r in (result if isinstance(result, (list, tuple)) else [result]) for x in digest(r)]
        del result
        row["median_s"] = measured(call, 0.02 if o.small else 0.5)
        row["peak"] = peak(call)

    each_row(o, rows(o.small), fill)


# ---- All peers in turns ---------------------------------------------------------------------------------------------


def report(made):
    ratios = []
    for threads in sorted({r["threads"] for r in made}):
        ratios += table(PEERS, made, threads, "median_s", "ms", 1e3)
        table(PEERS, made, threads, "peak", "MiB at the peak", 2**-20)
    conclude(made, ratios)


def main():
    p = options(__doc__)
    p.add_argument("--only", default="", help="only rows whose names match this regular expression")
    o = p.parse_args()
    if o.peer:
        return peer_process(o)
    report(in_turns(o, turn_of(PEERS, __file__)))


if __name__ == "__main__":
    main()
