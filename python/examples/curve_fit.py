"""Fits a sin(k x + c) to a curve by AdamW, wholly in castwise: one program has the loss, its gradients and the step.

    python examples/curve_fit.py
"""

import castwise
import numpy as np

#: Losses that PyTorch 2.15.0 gave at these steps.
RECORDED = {1: 0.103951, 2: 0.079366, 10: 0.0051127}


def train(steps: int = 10, lr: float = 0.05) -> list[float]:
    """Trains a, k and c, and returns the losses."""
    step = castwise.Optimizer("adamw", weight_decay=0.0)
    p = castwise.Program("torch")
    x, y = p.data("x", "float32", ["n"]), p.data("y", "float32", ["n"])
    weights = [p.data(name, "float32", []) for name in ("a", "k", "c")]
    a, k, c = weights
    distance = a * castwise.sin(k * x + c) - y
    # Huber's loss.
    size = castwise.abs(distance)
    loss = castwise.where(size < 1, 0.5 * distance * distance, size - 0.5).mean()

    loss, *gradients = p.value_and_gradients(loss, weights)
    numbers = [p.data(name, "float32", []) for name in step.numbers]
    names, new = [], []
    for w, g, name in zip(weights, gradients, ("a", "k", "c"), strict=True):
        states = {f"{state} of {name}": p.data(f"{state} of {name}", "float32", []) for state in step.states}
        new += step.update(w, g, states.values(), numbers)
        names += [name, *states]
    p.fetch(loss, *new)

    run = castwise.compile(p)
    xs = np.arange(64, dtype=np.float32) / 16 - 2
    data = {"x": xs, "y": np.float32(1.5) * np.sin(np.float32(1.2) * xs + np.float32(0.3))}
    now = {name: np.float32(1 if name in ("a", "k") else 0) for name in names}
    losses = []
    for t in range(1, steps + 1):
        values = map(np.float32, step.values(lr, t))
        value, *results = run(**data, **now, **dict(zip(step.numbers, values, strict=True)))
        now = dict(zip(names, results, strict=True))
        losses.append(float(value))
    return losses


if __name__ == "__main__":
    for t, value in enumerate(train(), 1):
        print(f"step {t:3}: loss {value:.6f}", f"PyTorch {RECORDED[t]:.6f}" if t in RECORDED else "")
