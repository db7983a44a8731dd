"""From an FX graph of AOTAutograd to calls of compiled programs.

Guarantees: what castwise can't compute runs as PyTorch runs it, and the order of random ops stays; results have the
strides that the graph was traced with; what is written to arguments is computed from what they had before, and where it is
not returned as well, it is written by the program itself.
Does not: lower ops.
"""

from __future__ import annotations

import operator
from typing import Any, Callable, Sequence

import torch
from torch.fx import GraphModule, Node
from torch.fx.passes.infra.partitioner import CapabilityBasedPartitioner, Partition
from torch.fx.passes.operator_support import OperatorSupport

from .. import _core
from .._errors import FeedError
from ._lower import check, dense, lower, memory_order
from ._text import VIEWS, Lowered, Text, Unsupported, tensor_of

#: A program: a function of the list of its tensors, and for each result of the tensor that it is written to or None. Gives those that are new.
Execute = Callable[[list[Any], tuple[Any, ...]], list[Any]]
#: A function of the list of arguments, which it may empty, that gives the list of results.
Boxed = Callable[[list[Any]], Any]


class Call:
    """A compiled partition: called with tensors, gives a list of tensors.

    Attributes:
        text: The text of the program.
    """

    def __init__(self, text: str, orders: Sequence[list[int] | None], read: list[int] | None = None) -> None:
        self.text = text
        #: The order in which the program has the dims of its arguments, if that is another one.
        self._read = read
        self._run = _core.compile_text(text, _core.Options())._run
        self._new = (None,) * len(orders)
        #: For each result whose memory is in another order of dims: how to get the dims back.
        self._orders = [(i, order) for i, order in enumerate(orders) if order is not None]

    def _arguments(self, tensors: Sequence[torch.Tensor]) -> list[torch.Tensor]:
        read = self._read
        return list(tensors) if read is None else [x.permute(read) if x.ndim else x for x in tensors]

    def __call__(self, *tensors: torch.Tensor) -> list[torch.Tensor]:
        results = self._run(self._arguments(tensors), self._new)
        for i, order in self._orders:
            results[i] = results[i].permute(order)
        return results

    def plain(self) -> Execute | None:
        """The program as it is, if all dims are in the order that it has them in."""
        return None if self._read is not None or self._orders else self._run

    def into(self, tensors: list[torch.Tensor], out: tuple[torch.Tensor | None, ...]) -> list[torch.Tensor]:
        """Writes results to tensors, whose dims are in the order of memory, and returns those that have none, in order."""
        results = self._run(self._arguments(tensors), out)
        for i, order in self._orders:
            if out[i] is None:
                at = sum(t is None for t in out[:i])
                results[at] = results[at].permute(order)
        return results


#: Elementwise ops that PyTorch does not mark so.
_ELEMENTWISE = (
    torch.ops.prims.convert_element_type.default,
    torch.ops.aten._to_copy.default,
    torch.ops.aten.copy.default,
    torch.ops.aten.clone.default,
)


def _shared_order(nodes: Sequence[Node], inputs: Sequence[Node]) -> list[int] | None:
    """The order of dims in memory that all tensors of elementwise nodes have, if it is not row-major.

    With the dims in this order the program computes the same, and reads and writes memory in its order: what it writes to an
    argument needs no other memory.
    """
    for n in nodes:
        marked = torch.Tag.pointwise in getattr(n.target, "tags", ()) or n.target in _ELEMENTWISE
        if not n.all_input_nodes:
            if tensor_of(n).ndim:
                return None
        elif not marked or str(n.target).split(".")[1].endswith("_like"):
            # What is made like a tensor is written with its dims.
            return None
    values = [v for v in (tensor_of(n) for n in (*inputs, *nodes)) if v.ndim]
    if not values or not all(dense(v) and [str(e) for e in v.shape] == [str(e) for e in values[0].shape] for v in values):
        return None
    order = memory_order(values[0])
    return order if order != sorted(order) and all(memory_order(v) == order for v in values) else None


def _program(
    nodes: Sequence[Node],
    inputs: Sequence[Node],
    outputs: Sequence[Node],
    relaxed: bool,
    targets: dict[Node, Node] | None = None,
) -> Call:
    """The program of nodes, with relaxed rounding or without. A result with a target has the order of dims of that argument's memory."""
    targets = targets or {}
    t = Text()
    shared = _shared_order(nodes, inputs)

    def read(value: torch.Tensor) -> torch.Tensor:
        return value if shared is None or not value.ndim else value.permute(shared)

    names: dict[Node, Lowered] = {n: t.feed(read(tensor_of(n))) for n in inputs}
    for n in nodes:
        names[n] = lower(t, n, names)
    results: list[str] = []
    orders: list[list[int] | None] = []
    for n in outputs:
        name, back = names[n], None
        assert isinstance(name, str)
        value = tensor_of(targets.get(n, n))
        if shared is not None:
            results.append(name)
            orders.append([shared.index(d) for d in range(value.ndim)] if value.ndim else None)
            continue
        order = memory_order(value)
        if order != sorted(order) and not value.is_contiguous():
            name, back = t.view("permute", name, f"dims = {order}"), [order.index(d) for d in range(value.ndim)]
        results.append(name)
        orders.append(back)
    return Call(t.program(results, relaxed), orders, shared)


class _Support(OperatorSupport):
    def __init__(self, nodes: set[Node]) -> None:
        super().__init__()
        self.nodes = nodes

    def is_node_supported(self, submodules: Any, node: Node) -> bool:
        return node in self.nodes


def _split_views(gm: GraphModule, supported: set[Node]) -> None:
    """Leaves views to PyTorch where something else than castwise uses them, so that they alias what they did.

    Views that both use are copied, because a program reads them from its own values.
    """
    for n in reversed(list(gm.graph.nodes)):
        if n not in supported or n.target not in VIEWS:
            continue
        inner = [u for u in n.users if u in supported]
        if len(inner) == len(n.users):
            continue
        supported.discard(n)
        if inner:
            with gm.graph.inserting_after(n):
                twin = gm.graph.node_copy(n)
            for user in inner:
                user.replace_input_with(n, twin)
            supported.add(twin)


def _supported(gm: GraphModule) -> set[Node]:
    found = set()
    for n in gm.graph.nodes:
        if n.op == "call_function" and n.target is operator.getitem:
            # A result of an op, which was checked with it.
            if n.args[0] in found:
                found.add(n)
        elif n.op == "call_function":
            try:
                check(n)
            except Unsupported:
                continue
            found.add(n)
    return found


def _worthwhile(p: Partition) -> bool:
    """Whether a partition reads a tensor and computes something."""
    nodes = list(p.nodes)
    reads = any(i not in p.nodes for n in nodes for i in n.all_input_nodes)
    computes = any(n.target not in VIEWS and n.all_input_nodes for n in nodes)
    return reads and computes and not all(n.target is torch.ops.aten.clone.default or n.target in VIEWS for n in nodes)


def _take_writes(gm: GraphModule) -> list[tuple[int, Node]]:
    """Removes the final ``copy_`` nodes: the position of each argument that is written to, and its new value."""
    places = {n: i for i, n in enumerate(n for n in gm.graph.nodes if n.op == "placeholder")}
    writes = []
    for n in list(gm.graph.nodes):
        if n.target is torch.ops.aten.copy_.default and n.args[0] in places and len(n.args) == 2:
            target, value = n.args
            writes.append((places[target], value))
            n.replace_all_uses_with(target)
            gm.graph.erase_node(n)
    return writes


def _effects(gm: GraphModule) -> list[str]:
    """The names of the nodes whose order matters, in order."""
    names = []
    for n in gm.graph.nodes:
        if n.op == "call_function" and isinstance(n.target, torch._ops.OpOverload):
            if n.target._schema.is_mutable or torch.Tag.nondeterministic_seeded in n.target.tags:
                names.append(n.name)
    return names


def _unchanged(gm: GraphModule) -> Boxed:
    def call(args: list[Any]) -> Any:
        given = list(args)
        args.clear()
        return gm.forward(*given)

    return call


def compile_graph(
    gm: GraphModule, _examples: Sequence[Any] = (), calls: list[Call] | None = None, relaxed: bool = False
) -> Boxed:
    """Compiles a graph of AOTAutograd. ``calls`` collects the programs, for tests; ``relaxed`` sets their rounding."""
    calls = [] if calls is None else calls
    original = torch.fx.GraphModule(gm, _copied(gm))
    writes = _take_writes(gm)
    effects = _effects(gm)
    if any(_mutates(n) for n in gm.graph.nodes):
        return _boxed(_unchanged(original))
    supported = _supported(gm)
    _split_views(gm, supported)
    partitioner = CapabilityBasedPartitioner(gm, _Support(supported), allows_single_node_partition=True)
    partitions = [p for p in partitioner.propose_partitions() if _worthwhile(p)]
    if not partitions:
        return _boxed(_unchanged(original))
    output = next(n for n in reversed(gm.graph.nodes) if n.op == "output")
    results = list(output.args[0]) if isinstance(output.args[0], (list, tuple)) else [output.args[0]]
    whole = _whole(gm, partitions, results, writes, relaxed)
    if whole is not None:
        call, boxed = whole
        calls.append(call)
        return _boxed(boxed)
    gm.graph.output((tuple(results), tuple(value for _, value in writes)))
    gm.graph.erase_node(output)
    fused = partitioner.fuse_partitions(partitions)
    if _effects(fused) != effects:
        return _boxed(_unchanged(original))
    for name, part in list(fused.named_children()):
        if name.startswith("fused_") and isinstance(part, GraphModule):
            calls.append(_replace(fused, name, part, relaxed))
    fused.recompile()
    targets = [at for at, _ in writes]

    def run(args: list[Any]) -> list[Any]:
        given = list(args)
        args.clear()
        made, values = fused.forward(*given)
        for at, value in zip(targets, values):
            given[at].copy_(value)
        return list(made)

    return _boxed(run)


def _copied(gm: GraphModule) -> torch.fx.Graph:
    graph = torch.fx.Graph()
    result = graph.graph_copy(gm.graph, val_map={}, return_output_node=True)
    assert isinstance(result, tuple)
    graph.output(result[0])
    return graph


def _mutates(n: Node) -> bool:
    return isinstance(n.target, torch._ops.OpOverload) and n.target._schema.is_mutable


def _boxed(f: Boxed) -> Boxed:
    f._boxed_call = True  # type: ignore[attr-defined]
    return f


def _replace(fused: GraphModule, name: str, part: GraphModule, relaxed: bool) -> Call:
    """Replaces a fused partition by a compiled program."""
    nodes = [n for n in part.graph.nodes if n.op == "call_function"]
    inputs = [n for n in part.graph.nodes if n.op == "placeholder"]
    (output,) = (n for n in part.graph.nodes if n.op == "output")
    single = isinstance(output.args[0], Node)
    outputs = [output.args[0]] if single else list(output.args[0])
    call = _program(nodes, inputs, outputs, relaxed)
    delattr(fused, name)
    module = _Module(call, single, part)
    setattr(fused, name, module)
    return call


class _Module(torch.nn.Module):
    """A program in place of a part of a graph."""

    def __init__(self, call: Call, single: bool, part: GraphModule) -> None:
        super().__init__()
        self.call, self.single, self.run_part = call, single, part.forward
        # The call itself, without the checks of hooks.
        self._call_impl = self.forward  # type: ignore[method-assign]

    def forward(self, *tensors: torch.Tensor) -> Any:
        try:
            made = self.call(*tensors)
        except FeedError:
            # An op before this part gave another dtype or shape than its meta kernel (batch norm of f16 does).
            return self.run_part(*tensors)
        return made[0] if self.single else made


def _whole(
    gm: GraphModule,
    partitions: Sequence[Partition],
    results: Sequence[Any],
    writes: Sequence[tuple[int, Node]],
    relaxed: bool,
) -> tuple[Call, Boxed] | None:
    """The call of a graph that is one partition: without FX around it."""
    placeholders = {n: i for i, n in enumerate(n for n in gm.graph.nodes if n.op == "placeholder")}
    computed = [n for n in gm.graph.nodes if n.op not in ("placeholder", "output")]
    if len(partitions) != 1 or any(n not in partitions[0].nodes for n in computed):
        return None
    feeds = [n for n in placeholders if any(u in partitions[0].nodes for u in n.users)]
    outputs: list[Node] = []
    for n in [*results, *(value for _, value in writes)]:
        if isinstance(n, Node) and n not in placeholders and n not in outputs:
            outputs.append(n)
    targets = _targets(list(placeholders), results, writes)
    call = _program(computed, feeds, outputs, relaxed, targets)
    at = [placeholders[n] for n in feeds]
    # Results that are not written to an argument by the program are new tensors.
    new = [n for n in outputs if n not in targets]
    # Where each result is: a new tensor, an argument, or a constant of the graph.
    where: list[tuple[bool, Any]] = []
    for n in results:
        computed_here = isinstance(n, Node) and n not in placeholders
        where.append((True, new.index(n)) if computed_here else (False, placeholders.get(n)))
    # Where each other written argument's value is: a new tensor, or an argument.
    stored = [
        (i, None if n in placeholders else new.index(n), placeholders.get(n)) for i, n in writes if n not in targets
    ]
    direct: list[tuple[int, list[int] | None] | None] = [None] * len(outputs)
    for n, placeholder in targets.items():
        value = tensor_of(placeholder)
        order = memory_order(value)
        direct[outputs.index(n)] = (placeholders[placeholder], None if value.is_contiguous() else order)
    return call, _reading(call, (at, len(placeholders)), where, stored, direct)


def _fresh(execute: Execute, feeds: list[int] | None, count: int) -> Boxed:
    """The function of a graph whose results are new tensors; ``feeds`` is None if it reads all arguments in their order."""
    new = (None,) * count
    if feeds is None:
        return lambda args: execute(args, new)
    return lambda args: execute([args[i] for i in feeds], new)


def _picking(at: list[int]) -> Callable[[list[Any]], tuple[Any, ...]]:
    """The function that gives the elements of a list at these positions."""
    return operator.itemgetter(*at) if len(at) > 1 else lambda args: tuple(args[i] for i in at)


def _in_place(execute: Execute, feeds: list[int] | None, written: list[int]) -> Boxed:
    """The function of a graph all of whose results are written to arguments, in their order of dims; ``feeds`` as for `_fresh`."""

    targets = _picking(written)
    increment = torch.autograd.graph.increment_version

    def run(args: list[Any]) -> list[Any]:
        out = targets(args)
        made = execute(args if feeds is None else [args[i] for i in feeds], out)
        # As every op in place does it, so that autograd notices.
        increment(out)
        return made

    return run


def _targets(
    placeholders: list[Node], results: Sequence[Any], writes: Sequence[tuple[int, Node]]
) -> dict[Node, Node]:
    """The results that the program writes to arguments itself, with the arguments.

    A value that is returned as well, or stored twice, is a tensor of its own. An argument that is the value of another one
    must not change before that is copied.
    """
    values = [n for _, n in writes]
    if any(n in placeholders for n in values):
        return {}
    found = {}
    for i, n in writes:
        target, value = tensor_of(placeholders[i]), tensor_of(n)
        alike = target.dtype == value.dtype and [str(e) for e in target.shape] == [str(e) for e in value.shape]
        if alike and dense(target) and n not in results and values.count(n) == 1:
            found[n] = placeholders[i]
    return found


def _reading(
    call: Call,
    read: tuple[list[int], int],
    where: list[tuple[bool, Any]],
    stored: list[tuple[int, Any, Any]],
    direct: list[tuple[int, list[int] | None] | None],
) -> Boxed:
    """The function of a graph's arguments: ``read`` has the positions of those that the program reads, and how many there are."""
    feeds, count = read
    execute = None if stored else call.plain()
    picked = None if feeds == list(range(count)) else feeds
    if execute is not None and not any(direct) and where == [(True, i) for i in range(len(direct))]:
        return _fresh(execute, picked, len(direct))
    if execute is not None and not where and all(d is not None and d[1] is None for d in direct):
        return _in_place(execute, picked, [d[0] for d in direct if d is not None])
    written = [d[0] for d in direct if d is not None]

    def run_and_store(args: list[Any]) -> list[Any]:
        tensors = [args[i] for i in feeds]
        if written:
            out = [d if d is None else args[d[0]] if d[1] is None else args[d[0]].permute(d[1]) for d in direct]
            made = call.into(tensors, tuple(out))
            # As every op in place does it, so that autograd notices.
            torch.autograd.graph.increment_version([args[i] for i in written])
        else:
            made = call(*tensors)
        results = [made[i] if computed else None if i is None else args[i] for computed, i in where]
        values = [made[i] if i is not None else args[place] for _, i, place in stored]
        for (at, _, _), value in zip(stored, values):
            args[at].copy_(value)
        args.clear()
        return results

    return run_and_store
