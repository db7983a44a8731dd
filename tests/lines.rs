//! Ops on the lines along a dim: scans.
//!
//! Guarantees: values are those of loops over elements, whose order is the documented one; results do not depend on threads, strides
//! or what is fused. Does not: compare with frameworks; `conformance` does.

use castwise::{Over, prelude::*};

/// Elements of a block, each of which is summed from zero.
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
        // What threads share.
        [1, 300_007, 1],
        [3, 100_352, 1],
        [1, 70_001, 5],
    ] {
        let x = values(shape.iter().product());
        let want = expected(&x, shape);
        let t = Tensor::from_slice(&x, shape)?;
        let eager = Eager::new(Rules::Torch).tensor(&t).over([1]).cumsum().result()?;
        assert_eq!(eager.shape(), shape);
        assert_eq!(eager.to_vec::<f32>()?, want, "{shape:?}");
        for threads in [1, 2, 3, 8] {
            assert_eq!(cumsum(&t, 1, threads)?.to_vec::<f32>()?, want, "{shape:?}, {threads} threads");
        }
    }
    Ok(())
}

/// Compares eager mode with programs on 1 to 3 threads, and returns the tensor.
fn both(
    t: &Tensor,
    rules: Rules,
    f: impl Fn(&Over) -> Var,
    g: impl Fn(&Over<Eager>) -> Var<Eager>,
    dim: i64,
) -> Tensor {
    let eager = g(&Eager::new(rules).tensor(t).over([dim])).result().unwrap();
    let p = Program::new(rules);
    let y = f(&p.data("x", t.dtype(), vec![None; t.shape().len()]).over([dim]));
    for threads in 1..=3 {
        let made =
            Executor::builder().threads(threads).build().run(&p, feeds! { "x" => t.clone() }, [&y]).unwrap().remove(0);
        assert_eq!((made.dtype(), made.shape()), (eager.dtype(), eager.shape()));
        assert_eq!(format!("{made:?}"), format!("{eager:?}"));
        let bits = |t: &Tensor| t.contiguous().unwrap().as_bytes().unwrap().to_vec();
        assert_eq!(bits(&made), bits(&eager));
    }
    eager
}

macro_rules! both {
    ($t:expr, $dim:expr, $method:ident) => {
        both($t, Rules::Torch, |x| x.$method(), |x| x.$method(), $dim)
    };
}

#[test]
fn halves_are_summed_in_f32_and_each_sum_is_rounded_once() -> Result<(), castwise::Error> {
    let t = Tensor::from([2048.0f32, 1.0, 1.0, 1.0].map(f16::from_f32));
    let sums = both!(&t, 0, cumsum).to_vec::<f16>()?;
    assert_eq!(sums.map_to(), [2048.0, 2048.0, 2050.0, 2052.0]);
    let t = Tensor::from([1e20f32, 1e20, 1e-30]);
    assert_eq!(both!(&t, -1, cumprod).to_vec::<f32>()?, [1e20, f32::INFINITY, 1e10]);
    Ok(())
}

/// The elements in f64.
trait MapTo {
    fn map_to(&self) -> Vec<f64>;
}

impl MapTo for Vec<f16> {
    fn map_to(&self) -> Vec<f64> {
        self.iter().map(|v| v.to_f64()).collect()
    }
}

#[test]
fn integers_wrap_and_bools_count() -> Result<(), castwise::Error> {
    let t = Tensor::from([200u8, 100, 7]);
    assert_eq!(both!(&t, 0, cumsum).to_vec::<i64>()?, [200, 300, 307]);
    let t = Tensor::from([i64::MAX, 1, 1]);
    assert_eq!(both!(&t, 0, cumsum).to_vec::<i64>()?, [i64::MAX, i64::MIN, i64::MIN + 1]);
    let t = Tensor::from([true, false, true]);
    assert_eq!(both!(&t, 0, cumsum).to_vec::<i64>()?, [1, 1, 2]);
    assert_eq!(both!(&t, 0, cumprod).to_vec::<i64>()?, [1, 0, 0]);
    assert_eq!(both!(&t, 0, cummin).to_vec::<bool>()?, [true, false, false]);
    let narrow = Eager::new(Rules::Jax).tensor(&Tensor::from([100i8, 100])).cumsum().result()?;
    assert_eq!(narrow.to_vec::<i8>()?, [100, -56]);
    let asked = Eager::new(Rules::Torch).tensor(&Tensor::from([1.5f32, 1.5])).over([0]).dtype(DType::I32).cumsum();
    assert_eq!(asked.result()?.to_vec::<i32>()?, [1, 2]);
    Ok(())
}

#[test]
fn integers_are_widened_by_the_scan() -> Result<(), castwise::Error> {
    for d in DType::ALL.into_iter().filter(|d| d.is_integral()) {
        let p = Program::new(Rules::Torch);
        let x = p.data("x", d, [3]);
        let (sum, twice) = (x.cumsum(), x.cast(DType::I64).cumsum() + x.cast(DType::I64));
        let t = Eager::new(Rules::Torch).tensor(&Tensor::from([1i64, 0, 1])).cast(d).result()?;
        let made = Executor::new().run(&p, feeds! { "x" => t }, [&sum, &twice])?;
        assert_eq!(made[0].to_vec::<i64>()?, [1, 1, 2], "{d}");
        assert_eq!(made[1].to_vec::<i64>()?, [2, 1, 3], "{d}");
    }
    Ok(())
}

#[test]
fn running_extremes_take_the_last_of_equals_and_keep_nans() -> Result<(), castwise::Error> {
    let nan = f32::NAN;
    let t = Tensor::from([1.0f32, -3.0, 1.0, 2.0, nan, 5.0, nan, 1.0]);
    let max = both!(&t, 0, cummax).to_vec::<f32>()?;
    assert_eq!(max[..4], [1.0, 1.0, 1.0, 2.0]);
    assert!(max[4..].iter().all(|v| v.is_nan()));
    assert_eq!(both!(&t, 0, cummax_indices).to_vec::<i64>()?, [0, 0, 2, 3, 4, 4, 6, 6]);
    assert_eq!(both!(&t, 0, cummin_indices).to_vec::<i64>()?, [0, 1, 1, 1, 4, 4, 6, 6]);
    let zeros = both!(&Tensor::from([0.0f32, -0.0]), 0, cummax).to_vec::<f32>()?;
    assert!(zeros[1].is_sign_negative());
    let narrow = Eager::new(Rules::Jax).tensor(&t).cummax_indices().result()?;
    assert_eq!(narrow.dtype(), DType::I32);
    Ok(())
}

#[test]
fn extremes_of_every_shape() -> Result<(), castwise::Error> {
    for shape in [[1, 70_000, 1], [3, 700, 1], [2, 600, 5], [1, 5000, 530], [40, 3, 2], [2, 1, 3]] {
        let [outer, length, width] = shape;
        let x: Vec<i32> = (0..shape.iter().product()).map(|i: usize| (i * 7919 % 1009) as i32).collect();
        let (mut most, mut at) = (vec![0; x.len()], vec![0i64; x.len()]);
        for o in 0..outer {
            for w in 0..width {
                let place = |i: usize| (o * length + i) * width + w;
                for i in 0..length {
                    let before = i.checked_sub(1).map(|b| (most[place(b)], at[place(b)]));
                    let own = (x[place(i)], i as i64);
                    (most[place(i)], at[place(i)]) = before.filter(|(b, _)| *b > own.0).unwrap_or(own);
                }
            }
        }
        let t = Tensor::from_slice(&x, shape)?;
        assert_eq!(both!(&t, 1, cummax).to_vec::<i32>()?, most, "{shape:?}");
        assert_eq!(both!(&t, 1, cummax_indices).to_vec::<i64>()?, at, "{shape:?}");
    }
    Ok(())
}

#[test]
fn logarithms_of_sums_do_not_overflow() -> Result<(), castwise::Error> {
    let t = Tensor::from([f32::NEG_INFINITY, 1000.0, 1000.0, -2000.0]);
    let want = [f32::NEG_INFINITY, 1000.0, 1000.0 + 2f32.ln(), 1000.0 + 2f32.ln()];
    assert_eq!(both!(&t, 0, logcumsumexp).to_vec::<f32>()?, want);
    Ok(())
}

#[test]
fn logarithms_of_long_lines_are_those_of_f64() -> Result<(), castwise::Error> {
    for shape in [[2, 1300, 1], [1, 1300, 3], [700, 2, 1]] {
        let [outer, length, width] = shape;
        let x: Vec<f32> = values(shape.iter().product()).iter().map(|v| v / 10.0).collect();
        let mut want = vec![0.0; x.len()];
        for line in 0..outer * width {
            let mut log = f64::NEG_INFINITY;
            for i in 0..length {
                let at = (line / width * length + i) * width + line % width;
                let (most, least) = (log.max(x[at].into()), log.min(x[at].into()));
                log = most + (least - most).exp().ln_1p();
                want[at] = log as f32;
            }
        }
        let made = both!(&Tensor::from_slice(&x, shape)?, 1, logcumsumexp).to_vec::<f32>()?;
        assert!(made.iter().zip(&want).all(|(a, b)| (a - b).abs() <= f32::EPSILON * b.abs().max(1.0)), "{shape:?}");
    }
    Ok(())
}

#[test]
fn empty_values_and_values_without_dims() -> Result<(), castwise::Error> {
    for shape in [[0, 3], [3, 0], [0, 0]] {
        assert_eq!(both!(&Tensor::zeros(DType::F32, shape)?, 0, cumsum).shape(), shape);
        assert_eq!(both!(&Tensor::zeros(DType::F32, shape)?, 1, cummax_indices).shape(), shape);
    }
    for dim in [0, -1] {
        let one = both!(&Tensor::scalar(3i32), dim, cumsum);
        assert_eq!((one.shape(), one.item::<i64>()?), (&[][..], 3));
    }
    Ok(())
}

#[test]
fn what_feeds_a_scan_and_what_uses_it_may_be_any_program() -> Result<(), castwise::Error> {
    let x = Tensor::from_slice(&values(600 * 7), [600, 7])?;
    let p = Program::new(Rules::Torch);
    let v = p.data("x", DType::F32, [None, Some(7)]);
    let scanned = ((&v * 2.0).transpose(0, 1).over([1]).cumsum() + 1.0).over([0]).cumsum();
    let (mean, plain) = (scanned.over([1]).mean(), &scanned - v.transpose(0, 1));
    let made = Executor::builder().threads(2).build().run(&p, feeds! { "x" => x.clone() }, [&mean, &plain])?;
    let e = Eager::new(Rules::Torch).tensor(&x);
    let scanned = ((&e * 2.0).transpose(0, 1).over([1]).cumsum() + 1.0).over([0]).cumsum();
    assert_eq!(made[0].to_vec::<f32>()?, scanned.over([1]).mean().result()?.to_vec::<f32>()?);
    assert_eq!(
        made[1].contiguous()?.to_vec::<f32>()?,
        (&scanned - e.transpose(0, 1)).result()?.contiguous()?.to_vec::<f32>()?
    );
    Ok(())
}

#[test]
fn text_and_expressions_name_the_dim() -> Result<(), castwise::Error> {
    let p = Program::new(Rules::Torch);
    p.data("x", DType::F16, [2, 3]);
    for text in ["cumsum(x, dim=1)", "cumsum(x, axis=-1)", "cumsum(x, dims=1, dtype=f32)", "cummax_indices(x, dim=0)"] {
        p.expression(text)?;
    }
    let typed = p.infer()?.to_string();
    assert!(typed.contains("f16[2, 3] = cumsum %x {dims = [1]}"), "{typed}");
    assert!(typed.contains("i64[2, 3] = cummax_indices %x {dims = [0]}"), "{typed}");
    assert_eq!(Program::parse(&p.to_string())?.to_string(), p.to_string());
    Ok(())
}

#[test]
fn mistakes_are_told() {
    let refused = |text: &str| {
        let p = Program::new(Rules::Torch);
        p.data("x", DType::F32, [2, 3]);
        p.data("c", DType::C64, [2]);
        p.expression(text).and_then(|_| p.check()).unwrap_err().to_string()
    };
    for (text, want) in [
        ("cumsum(x)", "`cumsum` of [2, 3] works along one dim, which is missing"),
        ("cumsum(x, dim=(0, 1))", "it takes one dim"),
        ("cumsum(x, dim=2)", "2"),
        ("cumsum(x, dim=0, keepdim=true)", "keepdim"),
        ("cummax(c, dim=0)", "does not take c64"),
        ("cumsum(x, 1)", "cumsum"),
    ] {
        let told = refused(text);
        assert!(told.contains(want), "{text}: {told}");
    }
    let p = Program::new(Rules::Torch);
    p.data("x", DType::F32, [2, 3]).cumsum();
    assert!(p.check().unwrap_err().to_string().contains("tests/lines.rs"));
}
