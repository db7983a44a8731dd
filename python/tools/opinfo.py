"""Compares the backend with PyTorch on PyTorch's own samples of every op (``OpInfo``), and writes docs/torch-backend.md.

    python python/tools/opinfo.py [--write] [--samples 8] [--only add,mul]

Each sample is traced by AOTAutograd twice: once run as traced, which is what ``backend="aot_eager"`` does, and once
compiled by castwise. Needs PyTorch and expecttest. Exits with 1 if a result differs and is not in ``DEVIATIONS``.
"""

from __future__ import annotations

import argparse
import collections
import copy
import functools
import itertools
import multiprocessing
import pathlib
import re
import sys
import warnings

import torch
from torch._functorch.aot_autograd import aot_function
from torch.testing._internal.common_methods_invocations import op_db

from castwise.torch._graph import compile_graph

PAGE = pathlib.Path(__file__).parents[2] / "docs" / "torch-backend.md"
DTYPES = [
    torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.complex64, torch.complex128,
    torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8, torch.bool,
]  # fmt: skip

#: Ulps of the result's dtype within which elementary functions and sums are: castwise's bound and PyTorch's together.
BOUND = {torch.float16: 1, torch.bfloat16: 1, torch.float32: 4, torch.float64: 4}

#: Ops that differ by more, and why.
_CANCELS = "a difference of 1 ulp in a value is amplified where its gradient is a difference of nearly equal numbers"
_NEAR_0 = "near 0 the result is a difference of nearly equal numbers"
_COMPLEX = "PyTorch computes c64 in f32; castwise in f64, and rounds once; its powers of c128 are exp(y log x)"
_QUOTIENT = "PyTorch rounds the quotient to the half dtype before it truncates it; castwise does not"
_BETWEEN = "PyTorch rounds intermediate results to the half dtype; castwise rounds once"
_TAIL = "with an alpha: PyTorch rounds the product of elements after the last whole vectors to the half dtype; castwise rounds once"
DEVIATIONS: dict[str, str] = {
    "add": _TAIL,
    "sub": _TAIL,
    "logaddexp": _NEAR_0,
    "logaddexp2": _NEAR_0,
    "masked.logaddexp": _NEAR_0,
    "nn.functional.cross_entropy": _CANCELS,
    "nn.functional.linear_cross_entropy": _CANCELS,
    "nn.functional.normalize": _CANCELS,
    "nn.functional.binary_cross_entropy_with_logits": _CANCELS,
    "linalg.eig": _CANCELS,
    "nn.functional.gelu": "PyTorch's 1 + erf(x / sqrt 2) cancels for large negative x; castwise is within 2 ulp of the exact number",
    "div.trunc_rounding": _QUOTIENT,
    "fmod": f"its gradient: {_QUOTIENT}",
    "log_softmax": _BETWEEN,
    "masked.log_softmax": _BETWEEN,
    "nn.functional.mse_loss": _BETWEEN,
    "nn.functional.huber_loss": _BETWEEN,
    "pow": _COMPLEX,
    "__rpow__": _COMPLEX,
    "float_power": _COMPLEX,
    "ldexp": _COMPLEX,
    "gradient": _COMPLEX,
    "tan": _COMPLEX,
    "pca_lowrank": "singular values differ by up to 2 ulp, singular vectors by more",
    "special.ndtr": "PyTorch writes it as (1 + erf(x / sqrt 2)) / 2, which cancels for negative x and amplifies an ulp of erf",
}


def real(t: torch.Tensor) -> torch.Tensor:
    return torch.view_as_real(t.resolve_conj()) if t.is_complex() else t


def ulps(got: torch.Tensor, want: torch.Tensor) -> float:
    """The largest distance in ulps of the expected number, or of the modulus of a complex one; inf beside NaN."""
    if want.dtype == torch.complex32:
        got, want = got.to(torch.complex64), want.to(torch.complex64)
    if torch.equal(got, want):
        return 0.0
    if not (got.is_floating_point() or got.is_complex()):
        return float("inf")
    complex_modulus = want.abs() if want.is_complex() else None
    g, w = real(got), real(want)
    same = (g == w) | (g.isnan() & w.isnan())
    if bool(same.all()):
        return 0.0
    size = w.abs() if complex_modulus is None else complex_modulus.unsqueeze(-1).expand_as(w)
    info = torch.finfo(w.dtype)
    ulp = (size.double().log2().floor().exp2() * info.eps).clamp_min(info.smallest_normal * info.eps)
    distance = ((g.double() - w.double()).abs() / ulp)[~same]
    distance = torch.where(distance.isfinite(), distance, float("inf"))
    return float(distance.max())


def close(got: torch.Tensor, want: torch.Tensor) -> bool:
    """Whether sums agree within the tolerances of ``torch.testing.assert_close``: their terms are added in another order."""
    try:
        torch.testing.assert_close(got, want, equal_nan=True)
    except AssertionError:
        return False
    return got.is_floating_point() or got.is_complex()


def tensors(value: object) -> list[torch.Tensor]:
    if isinstance(value, torch.Tensor):
        return [value]
    return [t for v in value for t in tensors(v)] if isinstance(value, (list, tuple)) else []


def copied(value: object) -> object:
    """A copy of a tensor, with its strides."""
    if not isinstance(value, torch.Tensor):
        return value
    if 0 in value.stride():
        return value.detach().clone()
    return torch.empty_strided(value.shape, value.stride(), dtype=value.dtype).copy_(value.detach())


def outcome(op: object, sample: object, differentiate: bool) -> tuple[str, float] | None:
    """``equal``, ``within`` or ``different`` with the ulps, ``fallback``; ``None`` if PyTorch can't trace the sample."""
    leaves, spec = torch.utils._pytree.tree_flatten((sample.input, sample.args, sample.kwargs))
    at = [i for i, leaf in enumerate(leaves) if isinstance(leaf, torch.Tensor)]
    calls: list[object] = []
    pairs: list[tuple[torch.Tensor, torch.Tensor]] = []

    def f(*given: torch.Tensor) -> object:
        filled = list(leaves)
        for i, t in zip(at, given):
            filled[i] = t
        first, args, kwargs = torch.utils._pytree.tree_unflatten(filled, spec)
        return tensors(op.op(first, *args, **kwargs))

    def compiler(gm: torch.fx.GraphModule, examples: object) -> object:
        traced = torch.fx.GraphModule(gm, copy.deepcopy(gm.graph))
        compiled = compile_graph(gm, examples, calls)

        def run(args: list[object]) -> object:
            with torch.no_grad():
                given, own = [copied(a) for a in args], list(args)
                torch.manual_seed(0)
                want = traced.forward(*given)
                torch.manual_seed(0)
                got = compiled(list(own))
            pairs.extend(zip(tensors([*got, *own]), tensors([*want, *given]), strict=True))
            return got

        run._boxed_call = True
        return run

    given = [leaves[i].detach().clone().requires_grad_(differentiate and leaves[i].requires_grad) for i in at]
    try:
        f(*(g.detach().clone() for g in given))
        results = aot_function(f, fw_compiler=compiler, bw_compiler=compiler, keep_inference_input_mutations=True)(*given)
        backward = [r for r in results if r.requires_grad]
        if backward:
            wanted = [g for g in given if g.requires_grad]
            torch.autograd.grad(backward, wanted, [torch.ones_like(r) for r in backward], allow_unused=True)
    except Exception as e:
        # An op that PyTorch can't trace, or whose graph castwise failed to run, which counts as a difference.
        if not calls:
            return None
        print(f"{op.name}: {type(e).__name__}: {e}\n{calls[-1].text}", file=sys.stderr)
        return "different", float("inf")
    if not calls:
        return "fallback", 0.0
    worst, bounded = 0.0, True
    summed = any(re.search(r"= (sum|nansum|mean|prod|var|std|norm|logsumexp|logcumsumexp) ", call.text) for call in calls)
    for g, w in pairs:
        if (g.dtype, g.shape) != (w.dtype, w.shape):
            return "different", float("inf")
        distance = ulps(g.detach(), w.detach())
        worst = max(worst, distance)
        part = real(w).dtype if w.is_complex() else w.dtype
        bounded &= distance <= BOUND.get(part, 0) or (summed and close(g, w))
    return ("equal" if worst == 0 else "within" if bounded else "different"), worst


def row(index: int, samples: int) -> tuple[str, collections.Counter, float, str]:
    """An op's name, counts, the largest distance within the bound, and the dtypes that differ."""
    op = op_db[index]
    name = op.name + (f".{op.variant_test_name}" if op.variant_test_name else "")
    counts, worst, differs = collections.Counter(), 0.0, {}
    for dtype in DTYPES:
        if dtype not in op.supported_dtypes("cpu"):
            continue
        differentiate = dtype in (torch.float32, torch.bfloat16) and dtype in op.supported_backward_dtypes("cpu")
        try:
            some = list(itertools.islice(op.sample_inputs("cpu", dtype, requires_grad=differentiate), samples))
        except Exception:
            continue
        for sample in some:
            result = outcome(op, sample, differentiate)
            if result is None:
                counts["untraced"] += 1
                continue
            kind, distance = result
            counts[kind] += 1
            if kind == "different":
                differs[str(dtype)[6:]] = max(distance, differs.get(str(dtype)[6:], 0))
            elif kind == "within":
                worst = max(worst, distance)
            # What isn't compiled for two samples is not an op of castwise.
            if counts["fallback"] >= 2 and set(counts) <= {"fallback", "untraced"}:
                return name, counts, worst, ""
    return name, counts, worst, ", ".join(f"{d} ({u:.3g} ulp)" for d, u in differs.items())


def prepare() -> None:
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)


def rows(samples: int, only: set[str], jobs: int) -> dict[str, tuple[collections.Counter, float, str]]:
    """What ``row`` gives for each op that is compiled for a sample."""
    found = {}
    wanted = [i for i, op in enumerate(op_db) if not only or op.name in only]
    with multiprocessing.get_context("fork").Pool(jobs, prepare) as pool:
        for name, counts, worst, text in pool.imap_unordered(functools.partial(row, samples=samples), wanted):
            if counts["equal"] + counts["within"] + counts["different"]:
                found[name] = counts, worst, text
                print(f"{name:45} {dict(counts)} {worst:.3g} {text}", flush=True)
    return found


def lines(found: dict) -> dict[str, str]:
    """The line of each op in the table."""
    line = "| {} | {} | {} | {} | {} | {} |"
    return {
        n: line.format(n, c["equal"], c["within"], f"{w:.3g}" if w else "", c["different"] or "", c["fallback"] or "")
        for n, (c, w, _) in found.items()
    }


def write(found: dict, whole: bool) -> None:
    """Writes the table; of some ops only their lines."""
    before, _, rest = PAGE.read_text().partition("<!-- table -->\n")
    old, _, after = rest.partition("<!-- end -->")
    rows = {} if whole else {line.split("|")[1].strip(): line for line in old.splitlines() if line.startswith("| ")}
    for head in ("op", "---"):
        rows.pop(head, None)
    rows |= lines(found)
    numbers = [[int(cell) if cell.strip() else 0 for cell in (line.split("|")[i] for i in (2, 3, 5))] for line in rows.values()]
    equal, within, different = (sum(column) for column in zip(*numbers))
    counts = f"{len(rows)} ops, {equal} samples equal, {within} within the bound, {different} different.\n\n"
    head = "| op | equal | within | largest, ulp | different | PyTorch alone |\n| --- | ---: | ---: | ---: | ---: | ---: |\n"
    body = "".join(rows[name] + "\n" for name in sorted(rows))
    PAGE.write_text(f"{before}<!-- table -->\n{counts}{head}{body}<!-- end -->{after}")


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--write", action="store_true", help="write the table into docs/torch-backend.md")
    options.add_argument("--samples", type=int, default=8, help="samples of an op and dtype")
    options.add_argument("--jobs", type=int, default=2, help="processes")
    options.add_argument("--only", default="", help="names of ops, with commas; --write keeps the lines of the others")
    given = options.parse_args()
    warnings.simplefilter("ignore")
    found = rows(given.samples, set(filter(None, given.only.split(","))), given.jobs)
    total = sum((c for c, _, _ in found.values()), collections.Counter())
    print(f"PyTorch {torch.__version__}, {torch.backends.cpu.get_cpu_capability()}: {len(found)} ops, {dict(total)}")
    if given.write:
        write(found, whole=not given.only)
    unknown = [n for n, (c, _, _) in found.items() if c["different"] and n not in DEVIATIONS]
    if unknown:
        print("different, and not listed:", ", ".join(unknown))
    return bool(unknown)


if __name__ == "__main__":
    sys.exit(main())
