"""The backend of ``torch.compile``: results, strides and effects are those of ``backend="aot_eager"``."""

import pathlib
import re

import pytest

torch = pytest.importorskip("torch")
pytestmark = [
    pytest.mark.filterwarnings("ignore:ComplexHalf support"),
    # Of PyTorch itself, while it traces.
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::FutureWarning"),
    pytest.mark.filterwarnings("ignore::UserWarning:torch"),
]

import castwise  # noqa: E402
import castwise.torch as backend_module  # noqa: E402
from castwise.torch import _graph, _lower, _text  # noqa: E402


def test_blocks_of_the_page_run():
    page = pathlib.Path(__file__).parents[2] / "docs" / "torch-backend.md"
    blocks = re.findall(r"^```python\n(.*?)^```$", page.read_text(), re.M | re.S)
    names = {}
    for block in blocks:
        exec(compile(block, page.name, "exec"), names)  # noqa: S102
    assert names["y"].dtype == torch.bfloat16 and names["y"].shape == (1 << 20,)


@pytest.fixture
def calls(monkeypatch):
    """The programs that are compiled during a test."""
    found = []
    monkeypatch.setattr(
        backend_module,
        "compile_graph",
        lambda gm, examples=(), relaxed=False: _graph.compile_graph(gm, examples, found, relaxed),
    )
    torch._dynamo.reset()
    yield found
    torch._dynamo.reset()


def copied(value):
    if isinstance(value, torch.Tensor):
        copy = torch.empty_strided(value.shape, value.stride(), dtype=value.dtype)
        return copy.copy_(value.detach()).requires_grad_(value.requires_grad)
    return value


def leaves(value):
    return [value] if isinstance(value, torch.Tensor) else [t for v in value for t in leaves(v)] if value is not None else []


def both(f, *args, dynamic=False, exact=True):
    """Runs a function under both backends, and compares results, strides, arguments and gradients."""
    outcomes = []
    for name in ("aot_eager", "castwise"):
        torch._dynamo.reset()
        given = [copied(a) for a in args]
        results = leaves(torch.compile(f, backend=name, dynamic=dynamic)(*given))
        differentiable = [r for r in results if r.requires_grad]
        if differentiable:
            sum((r * (r.detach() + 1)).sum() for r in differentiable).backward()
        gradients = [g.grad for g in given if isinstance(g, torch.Tensor) and g.grad is not None]
        outcomes.append([t.detach() for t in (*results, *leaves(given), *gradients)])
    want, got = outcomes
    assert len(want) == len(got)
    for w, g in zip(want, got):
        assert (w.dtype, w.shape) == (g.dtype, g.shape)
        assert w.stride() == g.stride() or w.numel() == 0
        tolerance = {"rtol": 0, "atol": 0} if exact else {}
        torch.testing.assert_close(g, w, equal_nan=True, **tolerance)
        if exact and w.is_floating_point():
            assert torch.equal(torch.signbit(g)[~g.isnan()], torch.signbit(w)[~w.isnan()])
    return got


def random(*shape, dtype=torch.float32, seed=0, grad=False):
    generator = torch.Generator().manual_seed(seed)
    if dtype.is_floating_point or dtype.is_complex:
        return torch.randn(shape, generator=generator).to(dtype).requires_grad_(grad)
    return torch.randint(0, 2 if dtype == torch.bool else 9, shape, generator=generator).to(dtype)


def test_the_capability_of_the_cpu(capsys):
    with capsys.disabled():
        print(f"\nPyTorch {torch.__version__}, CPU capability {torch.backends.cpu.get_cpu_capability()}")
    assert ("contraction" in _text.settings()) == (torch.backends.cpu.get_cpu_capability() in ("AVX2", "AVX512"))


def test_the_backend_satisfies_a_strict_type_checker(tmp_path):
    api = pytest.importorskip("mypy.api")
    # The sources: beside an installed package are those of others.
    folder = pathlib.Path(__file__).parents[1] / "castwise" / "torch"
    out, _, status = api.run(["--strict", "--cache-dir", str(tmp_path), *map(str, folder.glob("*.py"))])
    assert status == 0, out


def test_the_backend_is_registered_by_name(calls):
    assert "castwise" in torch._dynamo.list_backends()
    x = random(5)
    assert torch.equal(torch.compile(lambda x: x * 2 + 1, backend="castwise")(x), x * 2 + 1)
    assert len(calls) == 1 and "mul %a0, ~2" in calls[0].text


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64], ids=str)
def test_arithmetic_has_the_bits_of_eager_execution(calls, dtype):
    def f(x, m, r, w, b):
        return ((x - m) * r * w + b, x**3 / (x * x + 1.5), torch.where(x > m, x, -w), x.clamp(-1, 0.5))

    both(f, *(random(8, 32, dtype=dtype), random(8, 1, dtype=dtype, seed=1), random(8, 1, dtype=dtype, seed=2)),
         *(random(32, dtype=dtype, seed=3), random(32, dtype=dtype, seed=4)))  # fmt: skip
    assert len(calls) == 1


@pytest.mark.parametrize("dtype", [torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64], ids=str)
def test_integers_and_bools(calls, dtype):
    def f(x, y):
        return x & y, x + 2 * y, (x == y).to(torch.float16), x.sum(), (x > 1).any(), y.to(torch.int64) + x

    both(f, random(4, 6, dtype=dtype), random(6, dtype=dtype, seed=1))
    assert len(calls) == 1


@pytest.mark.parametrize("dtype", [torch.complex64, torch.complex128], ids=str)
def test_complex(calls, dtype):
    both(lambda x, y: (x + y * 2, (x - y).conj() + 1, x.to(torch.complex128)), random(4, 6, dtype=dtype), random(6, dtype=dtype, seed=1))
    assert calls


def test_mixed_dtypes_scalars_and_0d(calls):
    def f(a, b, zero, i):
        return a + b, a * zero, i + 0.5, i * 2, zero + i, a.double() + b, a - 1

    both(f, random(4, dtype=torch.bfloat16), random(4, dtype=torch.float16, seed=1),
         torch.tensor(1.25, dtype=torch.float64), random(4, dtype=torch.int32))  # fmt: skip
    assert len(calls) == 1


LAYOUTS = {
    "transposed": lambda: random(5, 4).t(),
    "channels-last": lambda: random(2, 3, 4, 5).to(memory_format=torch.channels_last),
    "stepped": lambda: random(8, 9)[::2, 1::3],
    "expanded": lambda: random(1, 5).expand(4, 5),
    "empty": lambda: random(0, 5),
    "0-d": lambda: random(),
    "extents of 1": lambda: random(1, 4, 1),
}


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_layouts(calls, layout, dynamic):
    x = LAYOUTS[layout]()
    # A copy of an expanded tensor can't be filled.
    outcomes = []
    for name in ("aot_eager", "castwise"):
        torch._dynamo.reset()
        given = x.detach().requires_grad_()
        y = torch.compile(lambda x: (x * 2 + 1) * x, backend=name, dynamic=dynamic)(given)
        y.backward(torch.ones_like(y))
        outcomes.append((y.detach(), given.grad))
    for want, got in zip(*outcomes):
        assert torch.equal(want, got) and want.stride() == got.stride()
    assert len(calls) == 2


def test_views_in_and_around_programs(calls):
    def f(x, y):
        a = (x.view(2, 3, 4).permute(2, 0, 1) * 2).reshape(4, 6)
        b = x.t()[:, 1:4].unsqueeze(0).expand(2, 4, 3) + 1
        c = y.flip(0).squeeze() - x[-1, 2]
        return a, b, c, (a + 1).t(), x.view(-1)[3:]

    both(f, random(6, 4), random(5, 1))
    assert calls


def test_results_alias_as_those_of_pytorch(calls):
    def f(x):
        y = x * 2
        return x.t(), y, y.t(), y.view(-1)

    x = random(3, 4)
    alias, y, transposed, flat = torch.compile(f, backend="castwise")(x)
    assert alias.data_ptr() == x.data_ptr() and len(calls) == 1
    assert y.data_ptr() == transposed.data_ptr() == flat.data_ptr() != x.data_ptr()


def test_reductions(calls):
    def f(x):
        return x.sum(), x.mean(1), x.amax((0, 2), keepdim=True), x.prod(0), x.min(), (x > 0).any(1), (x < 9).all()

    both(f, random(3, 4, 5, dtype=torch.float64), exact=False)
    assert len(calls) == 1


def ties(dtype, *shape, seed=0):
    """Few values, zeros of both signs, infinities and NaNs among them."""
    generator = torch.Generator().manual_seed(seed)
    values = [0, 1, 2, 3] if dtype != torch.bool else [0, 1]
    if dtype.is_floating_point:
        values = [-1.5, -0.0, 0.0, 1.0, 2.0, float("inf"), float("-inf"), float("nan")]
    return torch.tensor(values, dtype=dtype)[torch.randint(0, len(values), shape, generator=generator)]


SORTED = [torch.float16, torch.bfloat16, torch.float32, torch.float64, torch.int64, torch.int32, torch.uint8, torch.bool]


@pytest.mark.parametrize("dtype", SORTED, ids=str)
def test_stable_sorts_have_the_bits_of_pytorch(calls, dtype):
    def f(x):
        return (*torch.sort(x, stable=True), *torch.sort(x, dim=0, descending=True, stable=True), torch.argsort(x, stable=True))

    both(f, ties(dtype, 7, 40))
    assert len(calls) == 1 and "argsort" in calls[0].text


@pytest.mark.parametrize("dtype", SORTED, ids=str)
def test_scans_have_the_bits_of_pytorch(calls, dtype):
    def f(x):
        y = x.cumsum(-1), x.cumprod(0), x.cumsum(1, dtype=torch.float64)
        return y if dtype == torch.bool else (*y, *torch.cummax(x, 1), *torch.cummin(x, 0))

    both(f, random(7, 500, dtype=dtype))
    both(f, ties(dtype, 9, 40))
    assert all("cumsum" in call.text for call in calls)


@pytest.mark.parametrize("dtype", SORTED[:-1], ids=str)
def test_positions_have_the_bits_of_pytorch(calls, dtype):
    def f(x):
        return x.argmax(), x.argmin(1), x.argmax(0, keepdim=True), torch.count_nonzero(x), torch.count_nonzero(x, 1)

    both(f, ties(dtype, 9, 40))
    assert len(calls) == 1


@pytest.mark.parametrize("dynamic", [False, True])
def test_moments_norms_and_logarithms_of_sums(calls, dynamic):
    def f(x):
        norms = [torch.linalg.vector_norm(x, p, dim=1) for p in (0, 1, 2, 3, float("inf"))]
        return x.var(), x.std(1, keepdim=True), *torch.var_mean(x, 0, correction=0), x.logsumexp(1), x.logcumsumexp(0), *norms, x.nansum()

    both(f, random(9, 40), dynamic=dynamic, exact=False)
    assert len(calls) == 1


def test_one_of_several_results(calls):
    both(lambda x: (torch.sort(x * 2, stable=True)[1] + 1, x.cummax(0)[0] * 3), random(6, 5))
    assert len(calls) == 1


def test_the_order_of_equal_elements_is_left_to_pytorch(calls):
    def f(x):
        return x.sort()[1], x.topk(3)[0], x.median(), x.nanmedian(), x.median(1)[1], x.kthvalue(2, 1)[0], x.max(1)[0]

    both(f, ties(torch.float32, 9, 40))
    assert not calls


def test_order_cuts_no_gradient(calls):
    both(lambda x: (x * 2).cumsum(1) * torch.sort(x, stable=True)[0] + x.logsumexp(0), random(6, 5, grad=True), exact=False)
    assert calls


def test_constants(calls):
    def f(x):
        return torch.full_like(x, 2.5) * x, torch.zeros_like(x) + 1, x + torch.ones(4), x * torch.tensor(3.0)

    both(f, random(3, 4))
    both(f, random(3, 4, dtype=torch.bfloat16), dynamic=True)
    assert calls


def test_backward_is_compiled(calls):
    def f(x, w, b):
        return torch.relu((x - 0.5) * w + b) * x

    both(f, random(6, 4, grad=True), random(4, seed=1, grad=True), random(4, seed=2, grad=True))
    assert len(calls) == 2


@pytest.mark.parametrize(
    "f", [torch.sigmoid, torch.tanh, torch.nn.functional.silu, torch.nn.functional.gelu, torch.nn.functional.softplus]
)
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32, torch.float64], ids=str)
def test_activations_and_their_gradients(calls, f, dtype):
    both(lambda x: f(x * 2), random(64, dtype=dtype, grad=True), exact=False)
    assert len(calls) >= 1


def test_cross_entropy(calls):
    def loss(x, y):
        return -(torch.log_softmax(x, -1) * torch.softmax(y, -1)).sum(-1).mean()

    both(loss, random(8, 16, grad=True), random(8, 16, seed=1), exact=False)
    assert len(calls) == 2


def test_a_module_with_matrix_products_is_cut(calls):
    layer = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.SiLU(), torch.nn.Linear(16, 4))
    x, gradients = random(5, 8), []
    for name in ("aot_eager", "castwise"):
        torch._dynamo.reset()
        layer.zero_grad()
        (torch.compile(layer, backend=name)(x) * 2).sum().backward()
        gradients.append([p.grad.clone() for p in layer.parameters()])
    for want, got in zip(*gradients):
        torch.testing.assert_close(got, want)
    assert calls


def test_cuts_by_unsupported_ops(calls):
    def f(x):
        return (torch.cumsum(x * 2 + 1, 0) * 3 + 1).t(), torch.sort(x + 1)[0] * 2

    both(f, random(4, 5))
    assert len(calls) >= 2


def test_several_graphs(calls):
    def f(x):
        y = x * 2 + 1
        torch._dynamo.graph_break()
        return y * y - x

    both(f, random(7))
    assert len(calls) == 2


def test_dynamic_shapes_compile_once(calls):
    f = torch.compile(lambda x, y: (x * y + 1).sum(-1) * x.shape[0], backend="castwise", dynamic=True)
    for n, m in [(3, 4), (5, 2), (64, 33), (2, 7)]:
        x, y = random(n, m, dtype=torch.float64), random(m, seed=1, dtype=torch.float64)
        torch.testing.assert_close(f(x, y), (x * y + 1).sum(-1) * n)
    assert len({call.text for call in calls}) == len(calls) <= 2


def test_dynamic_backward(calls):
    both(lambda x, w: (torch.tanh(x) * w).sum() * 2, random(5, 4, grad=True), random(4, grad=True, seed=1), dynamic=True, exact=False)
    assert len(calls) >= 1


def test_in_place(calls):
    def f(x, y):
        x.mul_(y).add_(1)
        return x + 1

    def only(x, y):
        x.mul_(0.5).add_(y, alpha=2)
        y.sub_(x)

    def swap(x, y):
        old = x.clone()
        x.copy_(y)
        y.copy_(old)

    def read_after(x, y):
        z = x * y
        x.add_(1)
        return z + x, x.t()

    for body in (f, only, swap, read_after):
        both(body, random(4, 4), random(4, 4, seed=1))
    both(only, random(4, 6).t(), random(6, 4, seed=1))
    both(only, random(4, 4), random(4, 4, seed=1), dynamic=True)
    assert calls


@pytest.mark.parametrize("transposed", [False, True])
def test_what_is_written_alone_is_written_by_the_program(calls, monkeypatch, transposed):
    """Without other memory, if one loop computes it: the executor has none, and `copy_` is not called."""
    small, options = castwise.Executor(max_bytes=1000), castwise._core.Options
    monkeypatch.setattr(_graph._core, "Options", lambda: options(executor=small))

    def f(p, g, m, v):
        m.lerp_(g, 0.1)
        v.mul_(0.999).addcmul_(g, g, value=0.001)
        p.addcdiv_(m, v.sqrt() + 1e-8, value=-0.1)

    given = [random(40, 300, seed=i).abs().t() if transposed else random(300, 40, seed=i).abs() for i in range(4)]
    want, got = ([copied(a) for a in given] for _ in range(2))
    f(*want)
    versions = [g._version for g in got]
    torch.compile(f, backend="castwise")(*got)
    for w, g in zip(want, got):
        torch.testing.assert_close(g, w)
    assert [g._version > v for g, v in zip(got, versions)] == [True, False, True, True]
    monkeypatch.undo()
    both(f, *given, exact=False)


#: Ops of which the sign of a zero may be another than PyTorch's, and functions that apply them.
ZERO_TIES = {
    "maximum": torch.maximum, "minimum": torch.minimum, "fmax": torch.fmax, "fmin": torch.fmin,
    "clamp": lambda x, y: x.clamp(0.0, 1.0), "clamp_min": lambda x, y: x.clamp_min(0.0), "relu": lambda x, y: torch.relu(x),
    "amax": lambda x, y: (x * 1).amax(0), "amin": lambda x, y: (x * 1).amin(0), "max": lambda x, y: (x * 1).max(),
}  # fmt: skip
ZEROS_ARE_EQUAL = {
    "cummax": lambda x, y: torch.cummax(x * 1, 0)[0], "cummin": lambda x, y: torch.cummin(x * 1, 0)[0],
    "sort": lambda x, y: torch.sort(x * 1, stable=True)[0], "where": lambda x, y: torch.where(x > y, x, y),
    "sum": lambda x, y: (x * 1).sum(), "add": lambda x, y: x + y, "sub": lambda x, y: x - y, "round": lambda x, y: torch.round(x),
    "remainder": lambda x, y: torch.remainder(x, 1.0), "sign": lambda x, y: torch.sign(x), "hardshrink": lambda x, y: torch.nn.functional.hardshrink(x),
}  # fmt: skip


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16, torch.float16], ids=str)
def test_zeros_of_both_signs(calls, dtype):
    functions = {**ZERO_TIES, **ZEROS_ARE_EQUAL}
    for n in (2, 17, 65):
        x, y = (torch.where(random(n, seed=s) > 0, 0.0, -0.0).to(dtype) for s in (0, 1))
        outcomes = []
        for name in ("aot_eager", "castwise"):
            torch._dynamo.reset()
            outcomes.append(torch.compile(lambda x, y: [f(x, y) for f in functions.values()], backend=name)(x, y))
        for name, want, got in zip(functions, *outcomes):
            assert torch.equal(want, got), name
            assert name in ZERO_TIES or torch.equal(torch.signbit(want), torch.signbit(got)), name
        # The signs of castwise do not depend on the length.
        assert torch.equal(torch.signbit(outcomes[1][0]), torch.signbit(x) & torch.signbit(y))


def test_dims_in_another_order_than_memory(calls):
    """Elementwise programs of tensors of one order have their dims in that of memory; others keep theirs."""
    like = lambda i: random(3, 4, 5, seed=i).permute(2, 0, 1)  # noqa: E731

    def f(x, y, s):
        return x * y + s, (x > y).to(torch.float16), x.sum(0)

    def elementwise(x, y, s):
        return x * y + s, (x > y).to(torch.float16)

    for dynamic in (False, True):
        both(elementwise, like(0), like(1), torch.tensor(2.0), dynamic=dynamic)
        both(elementwise, like(0), random(5, 3, 4), torch.tensor(2.0), dynamic=dynamic)
        both(elementwise, like(0), like(1)[:, :, :1], torch.tensor(2.0), dynamic=dynamic)
        both(f, like(0), like(1), torch.tensor(2.0), dynamic=dynamic, exact=False)
    assert "[3, 4, 5]" in calls[0].text and "permute" not in calls[0].text


def test_what_is_written_and_returned_is_apart(calls):
    def f(x, y):
        z = x * 2 + 1
        x.copy_(z)
        y.add_(x)
        return z

    both(f, random(4, 5), random(4, 5, seed=1))
    x, y = random(4), random(4, seed=1)
    z = torch.compile(f, backend="castwise")(x, y)
    assert z.data_ptr() != x.data_ptr()


def test_arguments_that_share_memory(calls):
    def f(x, y):
        x.mul_(2)
        y.add_(1)
        return x + y

    outcomes = []
    for name in ("aot_eager", "castwise"):
        torch._dynamo.reset()
        whole = random(8)
        outcomes.append((torch.compile(f, backend=name)(whole[:6], whole[2:]), whole))
    for want, got in zip(*outcomes):
        assert torch.equal(want, got)


def test_written_arguments_are_seen_by_autograd(calls):
    x = random(4)
    w = random(4, seed=1, grad=True)
    y = w * x
    torch.compile(lambda x: x.mul_(2), backend="castwise")(x)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()


def test_random_ops_keep_their_order(calls):
    def f(x):
        a = torch.rand_like(x) * x
        b = torch.randn_like(x) + a
        return a, b, torch.nn.functional.dropout(x * 2, 0.5)

    results = []
    for name in ("aot_eager", "castwise"):
        torch._dynamo.reset()
        torch.manual_seed(3)
        results.append(torch.compile(f, backend=name)(random(6, 4)))
    assert all(torch.equal(w, g) for w, g in zip(*results))


def adamw(p, g, m, v, step, lr=1e-3, b1=0.9, b2=0.999, eps=1e-8, decay=0.01):
    """One step of AdamW on moments of f32, as `torch.optim.AdamW` writes it."""
    p.mul_(1 - lr * decay)
    m.lerp_(g.to(m.dtype), 1 - b1)
    v.mul_(b2).addcmul_(g, g, value=1 - b2)
    denominator = (v.sqrt() / (1 - b2**step) ** 0.5).add_(eps)
    p.addcdiv_(m.to(p.dtype), denominator.to(p.dtype), value=-(lr / (1 - b1**step)))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
def test_a_step_of_adamw_is_one_program(calls, dtype):
    p, g = random(33, 7, dtype=dtype), random(33, 7, dtype=dtype, seed=1)
    m, v = random(33, 7, seed=2), random(33, 7, seed=3).square()
    both(lambda p, g, m, v: adamw(p, g, m, v, 3), p, g, m, v, exact=False)
    assert len(calls) == 1 and calls[0].text.count("fetch %") == 1


def test_the_optimizer_of_pytorch(calls):
    outcomes = []
    for name in ("aot_eager", "castwise"):
        torch._dynamo.reset()
        calls.clear()
        parameters = [torch.nn.Parameter(random(9, 4, seed=i)) for i in range(3)]
        optimizer = torch.optim.AdamW(parameters, lr=torch.tensor(1e-2), foreach=False, capturable=False)
        step = torch.compile(optimizer.step, backend=name)
        for i in range(3):
            for p in parameters:
                p.grad = random(9, 4, seed=10 + i)
            step()
        outcomes.append([p.detach().clone() for p in parameters])
    for want, got in zip(*outcomes):
        torch.testing.assert_close(got, want)
    assert calls


def test_fma_of_dynamo_rounds_twice(calls):
    a, b, c = (random(4096, seed=i) for i in range(3))
    assert torch.equal(torch.ops.prims.fma(a, b, c), a * b + c)
    both(lambda x, a, b: x.addcmul_(a, b, value=0.5), c, a, b)
    assert len(calls) == 1


def test_errors_are_those_of_python(calls):
    f = torch.compile(lambda x, y: x // y + 1, backend="castwise")
    with pytest.raises(ZeroDivisionError):
        f(torch.ones(3, dtype=torch.int32), torch.zeros(3, dtype=torch.int32))
    for options, of in [({"speed": 1}, "the option 'rounding', not 'speed'"), ({"rounding": "fast"}, "not 'fast'")]:
        with pytest.raises(Exception, match=of):
            torch.compile(lambda x: x + 1, backend="castwise", options=options)(torch.ones(3))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_relaxed_rounding(calls, dtype):
    """A chain in f32 whose result is rounded, forward and backward; in parts of a graph as well."""

    def chain(x, m, w, b):
        return (x - m) * w + b

    x, m, w, b = (torch.randn(8, 33, dtype=torch.float32).to(dtype).requires_grad_() for _ in range(4))
    y = torch.compile(chain, backend="castwise", options={"rounding": "relaxed"})(x, m, w, b)
    wide = [t.detach().float().requires_grad_() for t in (x, m, w, b)]
    expected = chain(*wide)
    assert torch.equal(y, expected.to(dtype)) and not torch.equal(y, chain(x, m, w, b))
    cotangent = torch.randn_like(y)
    y.backward(cotangent)
    expected.backward(cotangent.float())
    assert all(torch.equal(t.grad, u.grad.to(dtype)) for t, u in zip((x, m, b), (wide[0], wide[1], wide[3])))
    # What the forward graph saves is a tensor of the dtype.
    assert torch.equal(w.grad, cotangent * (x - m))
    assert len(calls) == 2 and all("rounding = relaxed" in c.text for c in calls)
    torch._dynamo.reset()
    calls.clear()
    parts = torch.compile(
        lambda x, m, w, b: chain(chain(x, m, w, b) @ w.T, *(t[:, :8] for t in (m, w, b))),
        backend="castwise",
        options={"rounding": "relaxed"},
    )
    assert parts(x, m, w, b).dtype == dtype and all("rounding = relaxed" in c.text for c in calls) and len(calls) == 2


@pytest.mark.parametrize("limits", [{"max_bytes": 8}, {"time_limit": 0.0}], ids=str)
def test_errors_in_the_backward_graph(calls, monkeypatch, limits):
    """They come out of `backward()`, leave no gradient, and the next step works again."""
    kept, small, options = castwise.Executor(), castwise.Executor(**limits), castwise._core.Options
    # The second graph is the backward one.
    monkeypatch.setattr(_graph._core, "Options", lambda: options(executor=small if len(calls) == 1 else kept))
    x = random(64, grad=True)
    f = torch.compile(lambda x: torch.relu(x * 2 + 1) * x, backend="castwise")
    for _ in range(2):
        y = f(x)
        with pytest.raises(castwise.LimitError):
            y.sum().backward()
        assert x.grad is None and len(calls) == 2
    torch._dynamo.reset()
    calls.clear()
    monkeypatch.undo()
    torch.compile(lambda x: torch.relu(x * 2 + 1) * x, backend="castwise")(x).sum().backward()
    want = random(64, grad=True)
    (torch.relu(want * 2 + 1) * want).sum().backward()
    assert torch.equal(x.grad, want.grad)


def test_what_castwise_lacks_runs_in_pytorch(calls):
    both(lambda x: (torch.flip(x.topk(2)[0], [0]), torch.sort(x)[0]), random(5))
    assert not any("topk" in call.text or "sort" in call.text for call in calls)


def test_inference_and_no_grad(calls):
    w = random(4, grad=True)
    with torch.no_grad():
        y = torch.compile(lambda x: x * w + 1, backend="castwise")(random(3, 4))
    assert not y.requires_grad
    with torch.inference_mode():
        torch.testing.assert_close(torch.compile(lambda x: x * 2 + 1, backend="castwise")(random(3)), random(3) * 2 + 1)


def test_lazy_bits(calls):
    both(lambda x: x.conj() * 2 + 1, random(4, dtype=torch.complex64))
    both(lambda x, y: (x * y, x.conj()), random(4, dtype=torch.complex64), random(4, dtype=torch.complex64, seed=1))


def test_every_row_of_the_table_is_an_overload():
    assert _text.VIEWS <= {*_text.TABLE, torch.ops.aten._conj.default}
    for overload in _text.TABLE:
        assert isinstance(overload, torch._ops.OpOverload)
    derived = {o: _lower._derived(o) for o in (torch.ops.aten.mul.Tensor, torch.ops.aten.erf.default, torch.ops.aten.where.self)}
    assert list(derived.values()) == ["mul", "erf", "where"]
    assert _lower._derived(torch.ops.aten.add.Tensor) is None and _lower._derived(torch.ops.aten.mm.default) is None
