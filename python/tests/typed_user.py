"""What a type checker must accept: code of a user. Checked by `test_package.py`, not run."""

import numpy as np
import castwise

f = castwise.compile("(a - b) / (a + b)")
r = f(np.ones(2), np.ones(2))

@castwise.compile(rules="torch")
def g(x: castwise.Var, y: castwise.Var) -> castwise.Var:
    return castwise.exp(x) * 0.5 + y.cast("f32")

p = castwise.Program("numpy")
x = p.data("x", "f32", ["n"])
p.fetch(y=x * 2 + 1)
text: str = p.explain()
try:
    p.check()
except castwise.ProgramError as e:
    print(e.diagnostics[0].help)
print(castwise.evaluate("a + b", {"a": np.ones(2), "b": 1}), castwise.result_type("i32", 2.5, rules="torch"))
