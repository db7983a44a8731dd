//! Ops on the lines along a dim: scans.
//!
//! Guarantees: values are those of loops over elements, whose order is the documented one; results do not depend on threads, strides
//! or what is fused. Does not: compare with frameworks; `conformance` does.

use castwise::prelude::*;

/// Elements of a block, whose sums begin anew.
const BLOCK: usize = 512;

/// The sums of a line as they are documented: blocks are summed from 0, and joined with the total of those before.
fn sums(line: &[f64]) -> Vec<f64> {
    let (mut all, mut total) = (Vec::new(), None);
    for block in line.chunks(BLOCK) {
        let mut sum = 0.0;
        for x in block {
            sum += x;
            all.push(total.map_or(sum, |t| t + sum));
        }
        total = all.last().copied();
    }
    all
}

fn values(n: usize) -> Vec<f32> {
    (0..n).map(|i| ((i * 7919 + 13) % 1000) as f32 * 0.37 - 150.0).collect()
}

/// The sums along the middle one of three dims.
fn expected(x: &[f32], [outer, length, width]: [usize; 3]) -> Vec<f32> {
    let mut all = vec![0.0; x.len()];
    for o in 0..outer {
        for w in 0..width {
            let at = |i: usize| (o * length + i) * width + w;
            let line: Vec<f64> = (0..length).map(|i| f64::from(x[at(i)])).collect();
            sums(&line).iter().enumerate().for_each(|(i, s)| all[at(i)] = *s as f32);
        }
    }
    all
}

fn cumsum(x: &Tensor, dim: i64, threads: usize) -> Result<Tensor, castwise::Error> {
    let p = Program::new(Rules::Torch);
    let dims = vec![None; x.shape().len()];
    let y = p.data("x", x.dtype(), dims).over([dim]).cumsum();
    Ok(Executor::builder().threads(threads).build().run(&p, feeds! { "x" => x.clone() }, [&y])?.remove(0))
}

#[test]
fn sums_of_every_shape() -> Result<(), castwise::Error> {
    for shape in [
        [1, 1, 1],
        [1, 7, 1],
        [5, 3, 1],
        [700, 5, 1],
        [3, 511, 1],
        [3, 513, 1],
        [2, 5000, 1],
        [1, 100_003, 1],
        [1, 9, 2],
        [3, 5, 4],
        [2, 600, 3],
        [1, 40, 511],
        [1, 600, 513],
        [2, 1030, 1030],
        [1, 50_000, 5],
    ] {
        let x = values(shape.iter().product());
        let want = expected(&x, shape);
        let t = Tensor::from_slice(&x, shape)?;
        let eager = Eager::new(Rules::Torch).tensor(&t).over([1]).cumsum().result()?;
        assert_eq!(eager.shape(), shape);
        assert_eq!(eager.to_vec::<f32>()?, want, "{shape:?}");
        for threads in [1, 2, 3] {
            assert_eq!(cumsum(&t, 1, threads)?.to_vec::<f32>()?, want, "{shape:?}, {threads} threads");
        }
    }
    Ok(())
}
