//! What programs become: kernels, and the steps, results and reductions of each.

use super::*;
use crate::base::dtype::DType;
use crate::graph::program::Program;
use crate::graph::var::Var;
use crate::plan::domain::pattern;
use crate::plan::kernel::Kernel;
use crate::promotion::Rules;

/// The kernels of a plan: how many steps, stored results and reductions each has.
fn kernels(p: &Program, fetches: &[&Var]) -> Vec<(usize, usize, usize)> {
    kernels_with(p, fetches, Passes::default())
}

fn kernels_with(p: &Program, fetches: &[&Var], passes: Passes) -> Vec<(usize, usize, usize)> {
    let typed = Arc::new(p.infer().unwrap());
    let nodes: Vec<NodeId> = fetches.iter().map(|v| typed.node(v).unwrap()).collect();
    let pattern = pattern(&typed, &[]);
    let made = plan(&typed, &nodes, &HashMap::new(), &pattern, passes).unwrap();
    made.work.iter().map(|k| (k.kernel.steps.len(), k.kernel.outputs.len(), k.folds.len())).collect()
}

#[test]
fn a_reduction_joins_the_kernel_of_what_it_reduces_if_the_loop_can_stay() {
    let p = Program::new(Rules::Torch);
    let x = p.data("x", DType::F32, [4, 5]);
    let y = x.exp();
    let (all, rows, columns, mean) = (y.sum(), y.over([1]).sum(), y.over([0]).sum(), y.over([0]).mean());
    assert_eq!(kernels(&p, &[&all]), [(1, 0, 1)]);
    assert_eq!(kernels(&p, &[&columns]), [(1, 0, 1)]);
    assert_eq!(kernels(&p, &[&columns, &mean]), [(1, 0, 2)]);
    assert_eq!(kernels(&p, &[&y, &all]), [(1, 1, 1)]);
    assert_eq!(kernels(&p, &[&y, &rows]), [(1, 1, 1)]);
    assert_eq!(kernels(&p, &[&y, &columns]), [(1, 1, 0), (0, 0, 1)]);
    assert_eq!(kernels(&p, &[&rows, &columns]), [(1, 1, 1), (0, 0, 1)]);
    // A result that another kernel reads is stored.
    let (column, centred) = (&y - &columns, &y - y.over([1]).keepdim().sum());
    assert_eq!(kernels(&p, &[&column]), [(1, 1, 0), (0, 0, 1), (1, 1, 0)]);
    assert_eq!(kernels(&p, &[&centred]), [(1, 1, 1), (1, 1, 0)]);
    // A reduction of a reduction is a kernel of its own; so is one of a placeholder.
    assert_eq!(kernels(&p, &[&rows.sum()]), [(1, 0, 1), (0, 0, 1)]);
    assert_eq!(kernels(&p, &[&x.sum()]), [(0, 0, 1)]);
}

#[test]
fn one_kernel_a_domain_with_what_the_fetches_need() {
    let p = Program::new(Rules::Torch);
    let (x, row) = (p.data("x", DType::F32, [4, 5]), p.data("row", DType::F32, [5]));
    let wide = row.exp();
    let (sum, product) = (&x + &wide, &x * &wide);
    assert_eq!(kernels(&p, &[&sum]), [(1, 1, 0), (1, 1, 0)]);
    assert_eq!(kernels(&p, &[&sum, &product, &wide]), [(1, 1, 0), (2, 2, 0)]);
    let apart = Passes::default().without(Pass::Fusion);
    assert_eq!(kernels_with(&p, &[&sum, &product], apart), [(1, 1, 0); 3]);
    assert_eq!(kernels_with(&p, &[&product.sum()], apart), [(1, 1, 0), (1, 1, 0), (0, 0, 1)]);
    assert_eq!(kernels(&p, &[&wide]), [(1, 1, 0)]);
    assert_eq!(kernels(&p, &[&x]), []);
    // Equal values are one result.
    assert_eq!(kernels(&p, &[&x.neg(), &-&x]), [(1, 1, 0)]);
}

/// Ones at the end that stick out where an operand is placed are dropped: from [1] through [1, 1] back to [1].
#[test]
fn a_value_of_fewer_dims_may_be_broadcast_back_to_its_domain() {
    let p = Program::new(Rules::Torch);
    let (x, y, z) = (p.data("x", DType::F32, [1]), p.data("y", DType::F32, [1, 1]), p.data("z", DType::F32, [2, 3, 7]));
    let before = x.exp();
    let (wide, placed) = (&before + &y, p.data("x1", DType::F32, [1, 1]));
    let after = z.at_axis(2).add(wide.cast(DType::F16));
    assert_eq!(kernels(&p, &[&after]), [(1, 1, 0), (2, 1, 0), (1, 1, 0), (1, 1, 0)]);
    // A view of a placeholder makes no stage.
    let given = &z.at_axis(2).add(&placed) * &z;
    assert_eq!(kernels(&p, &[&given, &z.exp()]), [(3, 2, 0)]);
}

#[test]
fn a_kernel_that_would_be_cut_takes_no_reductions_across_its_loop() {
    let p = Program::new(Rules::Torch);
    let first = p.data("x", DType::F32, [4, 5]).exp();
    let early = first.over([0]).sum();
    let late = first.sqrt().neg().over([0]).sum();
    let cut = |most| kernels_with(&p, &[&early, &late], Passes { kernel_ops: most, ..Passes::default() });
    // Three ops and two reductions.
    assert_eq!(cut(6), [(3, 0, 2)]);
    assert_eq!(cut(5), [(3, 0, 2)]);
    // The negation is part of the kernel of its reduction, which computes it again, so that no other one has to.
    assert_eq!(cut(2), [(2, 2, 0), (0, 0, 1), (1, 0, 1)]);
    let stored = Passes { kernel_ops: 2, ..Passes::default().without(Pass::Recomputing) };
    assert_eq!(kernels_with(&p, &[&early, &late], stored), [(2, 2, 0), (0, 0, 1), (1, 1, 0), (0, 0, 1)]);
    assert_eq!(cut(1).len(), 5);
}

#[test]
fn a_reduction_is_part_of_a_kernel_or_one_of_its_own() {
    let p = Program::new(Rules::Torch);
    let y = p.data("x", DType::F32, [4, 5]).exp().sqrt();
    let columns = || y.over([0]).sum();
    let (deep, before) = (columns().exp(), (&y + columns()).over([0]).sum());
    assert_eq!(kernels(&p, &[&deep]), [(2, 0, 1), (1, 1, 0)]);
    assert_eq!(kernels(&p, &[&before]), [(2, 1, 0), (0, 0, 1), (1, 0, 1)]);
    // It joins no open group of its shape, but a reduction of the same operand over the same dims.
    let (later, other) = (y.over([0]).amin(), y.over([1]).amin());
    assert_eq!(kernels(&p, &[&y, &deep, &later]), [(2, 1, 0), (0, 0, 2), (1, 1, 0)]);
    assert_eq!(kernels(&p, &[&y, &other, &deep, &later]), [(2, 1, 1), (0, 0, 2), (1, 1, 0)]);
}

#[test]
fn what_nobody_fetches_stores_nothing() {
    let p = Program::new(Rules::Torch);
    let y = p.data("x", DType::F32, [4]).exp();
    let (z, _unused) = (-&y, &y * 2);
    assert_eq!(kernels(&p, &[&z]), [(2, 1, 0)]);
}

#[test]
fn constants_fold_up_to_what_needs_more() {
    let p = Program::new(Rules::Torch);
    let (x, c) = (p.data("x", DType::F32, [3]), p.constant(Tensor::from([1.0f32, 2.0, 3.0])));
    let inner = c.exp();
    let folded = -&inner;
    let same = folded.cast(DType::F32);
    let (mixed, _unused) = (&x * &same, &x + c.sqrt());
    let of = |fetches: &[&Var]| {
        let typed = p.infer().unwrap();
        let nodes: Vec<NodeId> = fetches.iter().map(|v| typed.node(v).unwrap()).collect();
        let id = |v: &Var| typed.node(v).unwrap();
        let names = [(id(&inner), "inner"), (id(&folded), "folded"), (id(&mixed), "mixed"), (id(&c), "c")];
        let name = |n: NodeId| names.iter().find(|(m, _)| *m == n).map_or("another", |(_, name)| name);
        foldable(&typed, &nodes).into_iter().map(name).collect::<Vec<_>>()
    };
    assert_eq!(of(&[&mixed]), ["folded"]);
    assert_eq!(of(&[&mixed, &inner]), ["inner", "folded"]);
    assert!(of(&[&x]).is_empty() && of(&[&c]).is_empty() && of(&[&x.exp()]).is_empty());
    assert_eq!(of(&[&(&c + &x)]), [""; 0]);
}

#[test]
fn a_plan_prints_a_line_for_each_buffer_and_kernel() {
    let p = Program::new(Rules::Torch);
    let y = p.data("an x", DType::F32, [4, 5]).exp();
    let centred = &y - y.over([1]).keepdim().sum();
    let typed = Arc::new(p.infer().unwrap());
    let nodes = [typed.node(&centred).unwrap()];
    let made = plan(&typed, &nodes, &HashMap::new(), &pattern(&typed, &[]), Passes::default()).unwrap();
    let text = "plan {
  b0: [4, 5] = feed %\"an x\"
  b1: [4, 5] = result
  b2: [4, 1] = result
  b3: [4, 5] = result
  kernel 0 over [4, 5]: b0 -> b1; dims [1] -> b2
  kernel 1 over [4, 5]: b1, b2 inner -> b3
  fetch b3
}
";
    assert_eq!(made.to_string(), text);
}

/// For each kernel of a plan, the dtypes that it reads, and those that it stores.
fn moved(p: &Program, fetches: &[&Var], passes: Passes) -> Vec<(Vec<DType>, Vec<DType>)> {
    let typed = Arc::new(p.infer().unwrap());
    let nodes: Vec<NodeId> = fetches.iter().map(|v| typed.node(v).unwrap()).collect();
    let made = plan(&typed, &nodes, &HashMap::new(), &pattern(&typed, &vec![5; typed.dyn_dims.len()]), passes).unwrap();
    let stored = |k: &Kernel| k.outputs.iter().map(|v| k.value(*v).dtype).collect();
    made.work.iter().map(|k| (k.kernel.inputs.clone(), stored(&k.kernel))).collect()
}

/// Fixed and dynamic extents.
fn lengths() -> [Vec<Option<usize>>; 2] {
    [vec![Some(4), Some(5)], vec![None, Some(5)]]
}

#[test]
fn casts_are_computed_again_where_that_is_cheaper() {
    use DType::{BF16, F32, F64};
    for dims in lengths() {
        let p = Program::new(Rules::Torch);
        let x = p.data("x", BF16, dims).cast(F32);
        let y = (&x / (&x * &x).sum()).cast(BF16);
        let again = moved(&p, &[&y], Passes::default());
        assert_eq!(again, [(vec![BF16], vec![]), (vec![BF16, F32], vec![BF16])]);
        let stored = moved(&p, &[&y], Passes::default().without(Pass::Recomputing));
        assert_eq!(stored, [(vec![BF16], vec![F32]), (vec![F32, F32], vec![BF16])]);
        // The reader of a result that is fetched reads the half, which is less.
        assert_eq!(moved(&p, &[&x, &y], Passes::default()), [(vec![BF16], vec![F32]), (vec![BF16, F32], vec![BF16])]);
    }
    // A narrower result than the operand is read if it is fetched, and computed again if it would be stored for one reader alone.
    let p = Program::new(Rules::Torch);
    let x = p.data("x", F64, [5]).cast(F32);
    let y = &x - x.sum();
    assert_eq!(moved(&p, &[&x, &y], Passes::default()), [(vec![F64], vec![F32]), (vec![F32, F32], vec![F32])]);
}

#[test]
fn what_costs_more_than_its_bytes_is_stored() {
    use DType::{F32, I32};
    let p = Program::new(Rules::Torch);
    let (x, i) = (p.data("x", F32, [5]), p.data("i", I32, [5]));
    let kernels = |v: Var| moved(&p, &[&(&v - v.sum())], Passes::default());
    assert_eq!(kernels(x.exp()), [(vec![F32], vec![F32]), (vec![F32, F32], vec![F32])]);
    assert_eq!(kernels(x.neg()), [(vec![F32], vec![]), (vec![F32, F32], vec![F32])]);
    // Data may be refused: once.
    assert_eq!(kernels(i.floor_divide(&i))[0].1, [I32]);
    // The sum of four operands moves more than it does as a value; with a reader that needs them anyway it does not.
    let all: Vec<Var> = (0..4).map(|k| p.data(&format!("y{k}"), F32, [5])).collect();
    let sum = || &(&all[0] + &all[1]) + &(&all[2] + &all[3]);
    assert_eq!(kernels(sum())[0].1, [F32]);
    let v = sum();
    let scaled = all.iter().fold(&v - v.sum(), |y, a| &y * a);
    assert_eq!(moved(&p, &[&scaled], Passes::default())[0].1, []);
}

#[test]
fn operands_that_several_values_need_are_counted_once() {
    use DType::F32;
    let p = Program::new(Rules::Torch);
    let (a, b) = (p.data("a", F32, [5]), p.data("b", F32, [5]));
    let (sum, difference) = (&a + &b, &a - &b);
    // Alone, either of them reads two operands for one value; together they read as much as they would.
    let norm = (&sum * &difference).sum();
    let y = &(&sum / &norm) * &(&difference + &norm);
    assert_eq!(moved(&p, &[&y], Passes::default())[0], (vec![F32, F32], vec![]));
}

#[test]
fn views_lines_and_other_domains_need_values_in_memory() {
    use DType::{BF16, F32};
    let p = Program::new(Rules::Torch);
    let x = p.data("x", BF16, [4, 4]).cast(F32);
    for user in [x.transpose(0, 1) + 1.0, x.over([0]).cumsum() * 1.0, x.over([1]).argmax() * 1] {
        assert_eq!(moved(&p, &[&user], Passes::default())[0].1, [F32], "{p}");
    }
    let row = p.data("row", BF16, [4]).cast(F32);
    assert_eq!(moved(&p, &[&(&x + &row)], Passes::default())[0], (vec![BF16], vec![F32]));
}

/// A chain of kernels, each of which needs the value before: what is computed again stays bounded.
#[test]
fn chains_of_kernels_compute_a_bounded_part_again() {
    let p = Program::new(Rules::Torch);
    let mut v = p.data("x", DType::F32, [5]);
    for _ in 0..300 {
        v = (&v - v.sum()).neg();
    }
    let made = kernels(&p, &[&v]);
    let steps: usize = made.iter().map(|k| k.0).sum();
    assert!(steps <= 2 * 600, "{steps}");
    assert!(made.iter().all(|k| k.0 <= 2 + 16), "{made:?}");
    // A kernel of so many nodes at most.
    for most in [1, 2, 3, 7] {
        let cut = Passes { kernel_ops: most, ..Passes::default() };
        let made = kernels_with(&p, &[&v], cut);
        assert!(made.iter().all(|k| k.0 + k.2 <= most), "{most}: {made:?}");
    }
}
