"""What a type checker must accept: code of a user. Checked by `test_package.py`, not run."""

import numpy as np
import castwise

f = castwise.compile("(a - b) / (a + b)")
r = f(np.ones(2), np.ones(2))

@castwise.compile(rules="torch")
def g(x: castwise.Var, y: castwise.Var) -> castwise.Var:
    return castwise.exp(x).clamp(min=0) * 0.5 + y.to("f32").mean(-1)

p = castwise.Program("numpy")
x = p.data("x", "f32", ["n"])
p.fetch(y=x * 2 + 1)
text: str = p.explain()
try:
    p.check()
except castwise.ProgramError as e:
    print(e.diagnostics[0].help)
ex = castwise.Executor(threads=2, max_bytes=1 << 30, time_limit=1.5)
ex.threads = 1
h = castwise.compile("a - b", deny="wrap", executor=ex)
counts: dict[str, int | float] = h.stats
kernels: str = h.kernels(np.float32, "bf16[3, n]")
own: castwise.Executor = h.executor

@castwise.compile
def v(x: castwise.Var) -> dict[str, castwise.Var]:
    return {"t": x.T[None, ..., ::2].reshape(1, -1), "s": x.sum(dim=0), "n": x.unsqueeze(0).expand(3, -1)}

before: int = castwise.set_num_threads(castwise.get_num_threads())
print(castwise.evaluate("a + b", {"a": np.ones(2), "b": 1}), castwise.result_type("i32", 2.5, rules="torch"))

xp = castwise.xp("torch")
a: castwise.Array = xp.asarray([1, 2, 3], dtype=xp.float32)
b: castwise.Array = (a / 2 + 1)[1:].reshape(-1, 1)
total: float = float(xp.sum(castwise.exp(a), axis=0))
shape: tuple[int, ...] = xp.concat([a, xp.ones(2)]).shape
explanation: str = castwise.explain("a * 0.5", rules="torch", numeric=True, a="bf16[8]")
for op, place, outcomes in castwise.compare("a + b", a="i64", b="f32"):
    print(op, place, outcomes["torch"])
