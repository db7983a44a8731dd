//! What views and bits are in f64, element by element.

use castwise::prelude::*;

use super::*;

fn run(mirror: &Mirror<'_>, fetches: &[&Var]) -> Vec<Tensor> {
    let x = Tensor::from([[0.1, 0.7, -3.3], [1.9, 100.0, 0.3]].map(|row| row.map(f16::from_f32)));
    let row = Tensor::from([0.3, 1.7].map(bf16::from_f32));
    Executor::new().run(&mirror.program, feeds! { "x" => x, "row" => row }, fetches.iter().copied()).unwrap()
}

/// Operands that are placed at an axis, dims that are not told, and bits.
#[test]
fn views_have_counterparts() {
    let p = Program::new(Rules::Torch);
    let (x, row) = (p.data("x", DType::F16, ["n", "m"]), p.data("row", DType::BF16, ["n"]));
    let product = row.at_axis(0).mul(&x);
    let bits = product.view_as(DType::I32);
    let narrow = product.cast(DType::F16).view_as(DType::I16);
    let typed = p.infer().unwrap();
    assert!(typed.nodes().any(|n| matches!(n.kind, NodeKind::View { .. })));
    let mirror = Mirror::new(&typed).unwrap();
    let exact = mirror.exact_after(0).unwrap();
    let at = |v: &Var| typed.position(v).unwrap();
    let of = [&x, &row, &product, &bits, &narrow].map(|v| &exact[at(v)]);
    let [x, row, product, bits, narrow] = &run(&mirror, &of).try_into().unwrap();
    assert_eq!([product, bits, narrow].map(Tensor::shape), [[2, 3]; 3]);
    let [x, row, product, bits, narrow] = [x, row, product, bits, narrow].map(|t| t.to_vec::<f64>().unwrap());
    for i in 0..6 {
        // A product of 11 and 8 digits is exact in f32.
        let v = x[i] * row[i / 3];
        let expected = [v, f64::from((v as f32).to_bits() as i32), f64::from(f16::from_f32(v as f32).to_bits() as i16)];
        assert_eq!([product[i], bits[i], narrow[i]], expected, "element {i}");
    }
    // What computes nothing new has no error of its own.
    let own = mirror.own_errors().unwrap();
    assert_eq!(own.len(), typed.len() - 2);
    let errors = run(&mirror, &own.iter().map(|(_, [e, _])| e).collect::<Vec<_>>());
    for ((node, _), e) in own.iter().zip(&errors) {
        let rounds = match &typed.nodes().nth(*node).unwrap().kind {
            NodeKind::Apply { .. } => false,
            NodeKind::Cast { note, .. } => note.to == DType::F16,
            _ => false,
        };
        assert_eq!(e.to_vec::<f64>().unwrap().iter().any(|e| *e != 0.0), rounds, "node {node}: {e}");
    }
}

/// Bits of what is taken as it was computed are the computed ones.
#[test]
fn bits_follow_what_they_are_of() {
    let p = Program::new(Rules::Torch);
    let (x, row) = (p.data("x", DType::F16, [2, 3]), p.data("row", DType::BF16, [2]));
    let rounded = (&x + 1000.0 - 1000.0).cast(DType::BF16);
    let bits = rounded.view_as(DType::I16).at_axis(0).add(row.cast(DType::I16));
    let typed = p.infer().unwrap();
    let mirror = Mirror::new(&typed).unwrap();
    let at = typed.position(&bits).unwrap();
    let all: Vec<Var> = (0..=typed.len()).map(|n| mirror.exact_after(n).unwrap().swap_remove(at)).collect();
    let values = run(&mirror, &all.iter().collect::<Vec<_>>());
    let values: Vec<Vec<f64>> = values.iter().map(|t| t.to_vec().unwrap()).collect();
    let first = values[0].clone();
    let computed = run(&mirror, &[&mirror.widened(at)])[0].to_vec::<f64>().unwrap();
    assert!(first != computed && values.last() == Some(&computed));
    // The last node that changes anything is the cast.
    let cast = typed.position(&rounded).unwrap();
    assert!(values[cast + 1..].iter().all(|v| *v == computed));
}
