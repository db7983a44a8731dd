//! Interprets bytes as a program over small tensors, which is computed in three ways: in eager mode, with compiled
//! loops, and with block kernels only. All give the same bits and the same errors.

use castwise::prelude::*;

use super::{Bytes, EXECUTORS, application, contents};

const SHAPES: [&[usize]; 10] = [&[], &[1], &[7], &[3, 7], &[3, 1], &[0], &[2, 1, 7], &[33], &[2, 65], &[5, 3, 2]];

pub fn three_ways(data: &[u8]) {
    let b = &mut Bytes(data);
    let rules = b.pick(Rules::ALL);
    let dynamic = b.byte() % 4 == 1;
    let (p, cx) = (Program::new(rules), Eager::new(rules));
    let (mut lazy, mut eager, mut feeds) = (Vec::new(), Vec::new(), Vec::new());
    for i in 0..1 + b.byte() % 4 {
        let d = b.dtype();
        let lacking = match rules {
            Rules::Torch => false,
            Rules::Paddle => d == DType::C32 || d.is_unsigned() && d.size() > 1,
            _ => d == DType::C32,
        };
        let d = if lacking { DType::F32 } else { d };
        let shape = b.pick(&SHAPES);
        let t = b.tensor(d, shape);
        let t = if shape.len() > 1 && b.byte() % 3 == 0 { t.transpose(0, 1).expect("two dims") } else { t };
        let name = format!("x{i}");
        let dims: Vec<Option<usize>> = t.shape().iter().map(|n| (!dynamic).then_some(*n)).collect();
        lazy.push(p.data(&name, d, dims));
        eager.push(cx.tensor(&t));
        feeds.push((name, t));
    }
    let leaves = lazy.len();
    for _ in 0..16 {
        if b.0.is_empty() {
            break;
        }
        // The same bytes are used twice, so that both modes have the same application.
        let again = b.0;
        let value = application(b, &eager);
        let Ok(t) = value.result() else { continue };
        let known_late = |v: &Var<Eager>| v.result().is_ok_and(|t| t.numel() > 100_000);
        if t.numel() > 100_000 || known_late(&value) {
            continue;
        }
        let node = application(&mut Bytes(again), &lazy);
        // With dynamic extents, a program refuses some applications that eager mode accepts, because it does not know
        // the extents.
        if dynamic && p.check().is_err() {
            return;
        }
        eager.push(value);
        lazy.push(node);
    }
    let fetches = &lazy[leaves..];
    EXECUTORS.with(|both| {
        for exe in both {
            let made = exe.run(&p, feeds.clone(), fetches).unwrap_or_else(|e| panic!("{e}\n{p}\nfeeds: {feeds:?}"));
            for (i, (e, f)) in eager[leaves..].iter().zip(&made).enumerate() {
                let e = e.result().expect("what was kept has a result");
                assert_eq!(contents(&e), contents(f), "result {i} of\n{p}\nfeeds: {feeds:?}");
            }
        }
    });
}
