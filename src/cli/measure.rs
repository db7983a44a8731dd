//! The programs that `stats` and `diff` run over tensors: counts, ranges, moments, errors.
//!
//! Guarantees: NaNs and infinities are counted and take no part in ranges and moments; means, deviations and errors are
//! computed in f64. Each program reads its tensors once or twice and makes no copy of them; in parts it has the same results. Does not:
//! open files.

use std::collections::HashMap;

use castwise::shape::{Dim, Dims};
use castwise::{Category, DType, Error, Executor, Feeds, Program, Rules, Tensor, Var};

use super::stream::{Budget, Parts, Tiles};

/// The exponents whose elements are counted: each of these and the one after it together.
pub(super) const EXPONENTS: std::ops::RangeInclusive<i32> = -40..=24;
const STEP: usize = 2;

/// What is known of a tensor's elements. Of complex numbers, the magnitudes are measured.
#[derive(Default)]
pub(super) struct Stats {
    /// The smallest and the largest finite element, as text in their dtype and as a number.
    pub(super) range: Option<[(String, f64); 2]>,
    /// The mean and the standard deviation (of the population) of the finite elements.
    pub(super) moments: Option<[f64; 2]>,
    pub(super) nan: i64,
    pub(super) inf: i64,
    pub(super) zeros: i64,
    pub(super) subnormals: i64,
    /// Finite elements that are beyond the range of the target dtype.
    pub(super) outside: Option<i64>,
    /// How many elements have at least each of the exponents.
    pub(super) exponents: Vec<i64>,
}

/// A value that ops compute with: 8-bit floats are only stored.
fn computed(v: &Var, dtype: DType) -> Var {
    match dtype.category() {
        Category::Float if dtype.is_byte_float() => v.cast(DType::F32),
        Category::Complex if dtype == DType::C32 => v.cast(DType::C64),
        Category::Bool => v.cast(DType::U8),
        _ => v.clone(),
    }
}

/// The number of elements that are true.
fn count(v: &Var) -> Var {
    v.cast(DType::I64).sum()
}

/// Whether elements are beyond the range of a dtype that they would be cast to.
fn beyond(value: &Var, wide: &Var, target: DType) -> Var {
    if target == DType::F8E4M3FN {
        // It has no infinities: a cast saturates. A tie between 448 and what would follow is rounded to 448, which is even.
        return wide.abs().gt(464.0);
    }
    if target.is_float() {
        return value.cast(target).cast(DType::F64).isfinite().logical_not();
    }
    let bits = 8 * target.size() as i32;
    let (low, high) = match target {
        DType::Bool => (0.0, 2.0),
        t if t.is_unsigned() => (0.0, 2f64.powi(bits)),
        _ => (-2f64.powi(bits - 1), 2f64.powi(bits - 1)),
    };
    // Casts truncate. Beside large bounds f64 has no number between them and the next integer.
    let low = if low > -(2f64.powi(53)) { wide.le(low - 1.0) } else { wide.lt(low) };
    low.logical_or(wide.ge(high))
}

/// One-dimensional, so that tensors of all shapes share a program.
fn flat(t: &Tensor) -> Result<Tensor, Error> {
    t.reshape([t.numel()])
}

/// A program over vectors that makes numbers.
struct Measure {
    program: Program,
    fetches: Vec<Var>,
}

impl Measure {
    /// Runs it on whole tensors.
    fn whole(&self, executor: &Executor, feeds: Vec<(String, Tensor)>) -> Result<Vec<Tensor>, Error> {
        executor.run(&self.program, Feeds::from(feeds), &self.fetches)
    }

    /// Runs it on parts of tensors, one after the other. `Err`: the reason why that is not possible.
    fn in_parts(
        &self,
        executor: &Executor,
        parts: &mut impl Parts,
        budget: Budget,
    ) -> Result<Result<Vec<Tensor>, String>, Error> {
        let typed = self.program.infer()?;
        let nodes: Option<Vec<usize>> = self.fetches.iter().map(|v| typed.position(v)).collect();
        let nodes = nodes.ok_or_else(|| Error::Internal("a result has no place".into()))?;
        let tiles = match Tiles::new(&typed, nodes, &*parts, false, budget) {
            Ok(tiles) => tiles,
            Err(why) => return Ok(Err(why)),
        };
        let mut all = tiles.run(parts, executor)?;
        all.sort_by_key(|(i, _)| *i);
        Ok(Ok(all.into_iter().map(|(_, t)| t).collect()))
    }
}

/// An executor, and the programs that it has run on whole tensors: a file may have a million of these, of few dtypes.
pub(super) struct Meter {
    executor: Executor,
    stats: HashMap<(DType, Option<DType>, bool), Measure>,
    /// Of one tolerance.
    differences: HashMap<[DType; 2], Measure>,
    within: Tolerance,
}

impl Meter {
    /// Differences are compared with this tolerance.
    pub(super) fn new(executor: Executor, within: Tolerance) -> Meter {
        Meter { executor, stats: HashMap::new(), differences: HashMap::new(), within }
    }

    /// Measures a tensor.
    pub(super) fn stats(&mut self, t: &Tensor, target: Option<DType>, exponents: bool) -> Result<Stats, Error> {
        if t.numel() == 0 {
            return Ok(Stats { outside: target.map(|_| 0), ..Stats::default() });
        }
        let new = || stats_program(t.dtype(), Dim::Dynamic, target, exponents);
        let measure = self.stats.entry((t.dtype(), target, exponents)).or_insert_with(new);
        Stats::read(&measure.whole(&self.executor, vec![("x".to_string(), flat(t)?)])?, target)
    }

    /// Compares two tensors of one shape, which has elements.
    pub(super) fn difference(&mut self, a: &Tensor, b: &Tensor) -> Result<Difference, Error> {
        let (dtypes, within) = ([a.dtype(), b.dtype()], self.within);
        let new = || difference_program(dtypes, Dim::Dynamic, within);
        let measure = self.differences.entry(dtypes).or_insert_with(new);
        let feeds = vec![("a".to_string(), flat(a)?), ("b".to_string(), flat(b)?)];
        Difference::read(&measure.whole(&self.executor, feeds)?, dtypes)
    }
}

/// Measures a tensor of so many elements, at least one, that is read in parts.
pub(super) fn stats_in_parts(
    meter: &Meter,
    (dtype, elements): (DType, usize),
    parts: &mut impl Parts,
    budget: Budget,
    target: Option<DType>,
    exponents: bool,
) -> Result<Result<Stats, String>, Error> {
    let measure = stats_program(dtype, Dim::Fixed(elements), target, exponents);
    measure
        .in_parts(&meter.executor, parts, budget)?
        .map(|all| Stats::read(&all, target))
        .map_or_else(|why| Ok(Err(why)), |s| s.map(Ok))
}

fn stats_program(dtype: DType, elements: Dim, target: Option<DType>, exponents: bool) -> Measure {
    let p = Program::new(Rules::Torch);
    let given = computed(&p.data("x", dtype, Dims(vec![elements])), dtype);
    let value = if dtype.is_complex() { given.abs() } else { given.clone() };
    let wide = value.cast(DType::F64);
    let finite = wide.isfinite();
    let (low, high) = if dtype.is_integral() {
        (value.amin(), value.amax())
    } else {
        (finite.where_(&value, f64::INFINITY).amin(), finite.where_(&value, f64::NEG_INFINITY).amax())
    };
    let n = count(&finite);
    let mean = finite.where_(&wide, 0.0).sum() / n.cast(DType::F64);
    let from_mean = finite.where_(&wide - &mean, 0.0);
    let deviation = ((&from_mean * &from_mean).sum() / n.cast(DType::F64)).sqrt();
    let mut fetches = vec![low, high, mean, deviation, n];
    let none = || count(&value.ne(&value));
    let whole = dtype.is_integral();
    fetches.push(if whole { none() } else { count(&given.isnan()) });
    fetches.push(if whole { none() } else { count(&given.isinf()) });
    fetches.push(count(&given.eq(0)));
    // Integers have no subnormals.
    let subnormals = |[.., normal]: [f64; 3]| count(&value.abs().lt(normal).logical_and(value.ne(0.0)));
    fetches.push(dtype.float_limits().map_or_else(none, subnormals));
    fetches.extend(target.map(|to| count(&beyond(&value, &wide, to).logical_and(&finite))));
    if exponents {
        // f32 has these exponents of all floats but f64, whose lanes are twice as wide.
        let small = !whole && dtype.real() != DType::F64;
        let size = if small { value.cast(DType::F32).abs() } else { wide.abs() };
        let least = EXPONENTS.step_by(STEP).map(|e| count(&size.ge(2f64.powi(e))));
        fetches.extend(least);
    }
    Measure { program: p, fetches }
}

impl Stats {
    /// The results of the program.
    fn read(results: &[Tensor], target: Option<DType>) -> Result<Stats, Error> {
        let number = |i: usize| results.get(i).map_or(Ok(0), Tensor::item::<i64>);
        let real = |i: usize| results.get(i).map_or(Ok(f64::NAN), Tensor::item::<f64>);
        let some = number(4)? > 0;
        let text = |i: usize| -> Result<(String, f64), Error> {
            let t = results.get(i).ok_or_else(|| Error::Internal("a run without results".into()))?;
            let text = t.to_string();
            let value = text.parse().unwrap_or(f64::NAN);
            Ok((text, value))
        };
        let from = 9 + usize::from(target.is_some());
        Ok(Stats {
            range: if some { Some([text(0)?, text(1)?]) } else { None },
            moments: if some { Some([real(2)?, real(3)?]) } else { None },
            nan: number(5)?,
            inf: number(6)?,
            zeros: number(7)?,
            subnormals: number(8)?,
            outside: target.map(|_| number(9)).transpose()?,
            // Infinities are above all thresholds.
            exponents: (from..results.len()).map(|i| Ok(number(i)? - number(6)?)).collect::<Result<_, Error>>()?,
        })
    }
}

/// The accepted differences.
#[derive(Clone, Copy, Default)]
pub(super) struct Tolerance {
    pub(super) absolute: f64,
    /// Relative to the first tensor's element.
    pub(super) relative: f64,
    pub(super) ulps: i64,
}

/// How two tensors of one shape differ.
pub(super) struct Difference {
    /// Elements that differ. NaNs are equal to NaNs.
    pub(super) differ: i64,
    /// Elements that differ by more than the tolerance.
    pub(super) beyond: i64,
    /// Elements that are NaN in one of the tensors only.
    pub(super) nan: i64,
    /// The largest difference, and the largest one relative to the first tensor's element.
    pub(super) absolute: f64,
    pub(super) relative: f64,
    /// The largest number of steps between floats of one dtype.
    pub(super) ulps: Option<i64>,
    /// The cosine of the angle between the tensors as vectors of their finite elements.
    pub(super) cosine: Option<f64>,
}

impl Difference {
    /// That of tensors with the same bytes.
    pub(super) fn none(dtype: DType) -> Difference {
        let ulps = dtype.is_float().then_some(0);
        Difference { differ: 0, beyond: 0, nan: 0, absolute: 0.0, relative: 0.0, ulps, cosine: Some(1.0) }
    }
}

/// The position of floats in the order of their dtype, from 0 for both zeros.
fn position(v: &Var, dtype: DType) -> Var {
    let (of, least) = match dtype.size() {
        1 => (DType::I8, i64::from(i8::MIN)),
        2 => (DType::I16, i64::from(i16::MIN)),
        4 => (DType::I32, i64::from(i32::MIN)),
        _ => (DType::I64, i64::MIN),
    };
    let bits = v.view_as(of).cast(DType::I64);
    // The bits of negative floats grow with the magnitude.
    bits.lt(0).where_(least - &bits, &bits)
}

/// The number of floats between two positions, which is no more than i64 has.
fn steps(a: &Var, b: &Var) -> Var {
    let opposite = a.lt(0).ne(b.lt(0));
    let half = 1i64 << 62;
    let sum = a.abs().minimum(half - 1) + b.abs().minimum(half - 1);
    opposite.where_(&sum, (a - b).abs())
}

/// The distance of integers, from that of their values in f64, which can be 0 although they differ. What is less than 2^62 is
/// exact before it is rounded to f64: the difference of two values that wrap in i64 does not.
fn whole_distance(x: &Var, y: &Var, wide: &Var) -> Var {
    let exact = (x.cast(DType::I64) - y.cast(DType::I64)).abs().cast(DType::F64);
    wide.lt(2f64.powi(62)).where_(exact, wide)
}

/// Compares two tensors of so many elements, at least one, that are read in parts.
pub(super) fn difference_in_parts(
    meter: &Meter,
    (dtypes, elements): ([DType; 2], usize),
    parts: &mut impl Parts,
    budget: Budget,
) -> Result<Result<Difference, String>, Error> {
    let measure = difference_program(dtypes, Dim::Fixed(elements), meter.within);
    measure
        .in_parts(&meter.executor, parts, budget)?
        .map(|all| Difference::read(&all, dtypes))
        .map_or_else(|why| Ok(Err(why)), |d| d.map(Ok))
}

fn difference_program([of_a, of_b]: [DType; 2], elements: Dim, within: Tolerance) -> Measure {
    let p = Program::new(Rules::Torch);
    let dims = Dims(vec![elements]);
    let (x, y) = (p.data("a", of_a, dims.clone()), p.data("b", of_b, dims));
    let (low_x, low_y) = (computed(&x, of_a), computed(&y, of_b));
    let complex = of_a.is_complex() || of_b.is_complex();
    let wide = if complex { DType::C128 } else { DType::F64 };
    let (wide_x, wide_y) = (low_x.cast(wide), low_y.cast(wide));
    let (nan_x, nan_y) = (wide_x.isnan(), wide_y.isnan());
    let (both, one) = (nan_x.logical_and(&nan_y), nan_x.ne(&nan_y));
    let wide_d = (&wide_x - &wide_y).abs();
    let whole = of_a.is_integral() && of_b.is_integral();
    let d = if whole {
        whole_distance(&low_x, &low_y, &wide_d)
    } else {
        wide_x.eq(&wide_y).logical_or(&both).logical_or(&one).where_(0.0, &wide_d)
    };
    let unequal = if whole {
        d.gt(0.0)
    } else if of_a == of_b {
        low_x.ne(&low_y)
    } else {
        wide_x.ne(&wide_y)
    };
    let differ = unequal.logical_and(both.logical_not());
    let size = wide_x.abs();
    let relative = d.gt(0.0).where_(d.isinf().where_(f64::INFINITY, &d / &size), 0.0);
    let near = d.le(&size * within.relative + within.absolute).logical_and(d.isfinite()).logical_and(one.logical_not());
    // Without a tolerance nothing that differs is near, also if it is equal in f64.
    let tolerant = within.absolute > 0.0 || within.relative > 0.0;
    let mut accepted = tolerant.then_some(near);
    let mut fetches = vec![count(&differ), count(&one), d.amax(), relative.amax()];
    let floats = of_a == of_b && of_a.is_float();
    if floats {
        let apart = one.logical_or(&both).where_(0, steps(&position(&x, of_a), &position(&y, of_b)));
        let close = apart.le(within.ulps).logical_and(one.logical_not());
        accepted = Some(accepted.map_or(close.clone(), |near| near.logical_or(close)));
        fetches.push(apart.amax());
    }
    let beyond = accepted.map_or(differ.clone(), |accepted| differ.logical_and(accepted.logical_not()));
    fetches.push(count(&beyond));
    if !complex {
        let finite = wide_x.isfinite().logical_and(wide_y.isfinite());
        let sum = |v: Var| finite.where_(v, 0.0).sum();
        fetches.extend([sum(&wide_x * &wide_y), sum(&wide_x * &wide_x), sum(&wide_y * &wide_y)]);
    }
    Measure { program: p, fetches }
}

impl Difference {
    /// The results of the program.
    fn read(results: &[Tensor], [of_a, of_b]: [DType; 2]) -> Result<Difference, Error> {
        let (floats, complex) = (of_a == of_b && of_a.is_float(), of_a.is_complex() || of_b.is_complex());
        let number = |i: usize| results.get(i).map_or(Ok(0), Tensor::item::<i64>);
        let real = |i: usize| results.get(i).map_or(Ok(f64::NAN), Tensor::item::<f64>);
        let at = 4 + usize::from(floats);
        let cosine = match complex {
            true => None,
            false => Some(real(at + 1)? / (real(at + 2)?.sqrt() * real(at + 3)?.sqrt())).filter(|c| c.is_finite()),
        };
        Ok(Difference {
            differ: number(0)?,
            beyond: number(at)?,
            nan: number(1)?,
            absolute: real(2)?,
            relative: real(3)?,
            ulps: if floats { Some(number(4)?) } else { None },
            cosine: cosine.map(|c| c.clamp(-1.0, 1.0)),
        })
    }
}
