//! Generators: methods of [`Var`], in both modes.
//!
//! Guarantees: both modes have the same bits; a mistake is remembered as that of an op is. Does not: compute.

use crate::base::blocks::BlockSize;
use crate::base::dtype::DType;
use crate::base::generator::{Generator, Key};
use crate::base::location::here;
use crate::base::scalar::Scalar;
use crate::graph::var::{Mode, Var};

/// Generators: values that have this one's shape and follow from the index of each element. Nothing else of the value is used,
/// and a program does not compute it for them. Indices are those of the row-major order of the shape, so that neither layouts
/// nor threads nor what a program fuses matter.
impl<M: Mode> Var<M> {
    /// This generator, in the value's shape.
    ///
    /// ```
    /// use castwise::{Generator, prelude::*};
    /// let x = Eager::new(Rules::Torch).tensor(&Tensor::zeros(DType::F32, [2, 2])?);
    /// assert_eq!(x.generate(Generator::Index { dim: None }).result()?.to_vec::<i64>()?, [0, 1, 2, 3]);
    /// # Ok::<(), castwise::Error>(())
    /// ```
    #[track_caller]
    pub fn generate(&self, generator: Generator) -> Var<M> {
        M::generate(&self.0, generator, here())
    }

    /// The index along a dim; negative ones count from the last. i64.
    ///
    /// ```
    /// use castwise::prelude::*;
    /// let p = Program::new(Rules::Torch);
    /// let x = p.data("x", DType::F32, [None, Some(3)]);
    /// let masked = x.index_along(1).le(x.index_along(0)).where_(&x, 0.0);            // a lower triangle
    /// let out = Executor::new().run(&p, feeds! { "x" => Tensor::full([2, 3], 1.0f32)? }, [&masked])?;
    /// assert_eq!(out[0].to_vec::<f32>()?, [1.0, 0.0, 0.0, 1.0, 1.0, 0.0]);
    /// # Ok::<(), castwise::Error>(())
    /// ```
    #[track_caller]
    pub fn index_along(&self, dim: i64) -> Var<M> {
        self.generate(Generator::Index { dim: Some(dim) })
    }

    /// `start + step * index`, in row-major order; integers if both are, which wrap, else in the default float dtype.
    ///
    /// ```
    /// use castwise::prelude::*;
    /// let x = Eager::new(Rules::Torch).tensor(&Tensor::zeros(DType::F32, [2, 2])?);
    /// assert_eq!(x.arange_like(10, -2).result()?.to_vec::<i64>()?, [10, 8, 6, 4]);
    /// assert_eq!(x.arange_like(0, 0.5).result()?.to_vec::<f32>()?, [0.0, 0.5, 1.0, 1.5]);
    /// # Ok::<(), castwise::Error>(())
    /// ```
    #[track_caller]
    pub fn arange_like(&self, start: impl Into<Scalar>, step: impl Into<Scalar>) -> Var<M> {
        self.generate(Generator::Arange { start: start.into(), step: step.into(), dim: None, dtype: None })
    }

    /// Evenly spaced values from `start` to `end` along a dim, in the default float dtype.
    ///
    /// ```
    /// use castwise::prelude::*;
    /// let x = Eager::new(Rules::Torch).tensor(&Tensor::zeros(DType::F32, [2, 3])?);
    /// assert_eq!(x.linspace(-1.0, 1.0, 1).result()?.to_vec::<f32>()?, [-1.0, 0.0, 1.0, -1.0, 0.0, 1.0]);
    /// # Ok::<(), castwise::Error>(())
    /// ```
    #[track_caller]
    pub fn linspace(&self, start: f64, end: f64, dim: i64) -> Var<M> {
        self.generate(Generator::Linspace { start, end, dim: Some(dim), dtype: None })
    }

    /// Uniform random numbers in [0, 1), in this dtype or the default float dtype.
    ///
    /// ```
    /// use castwise::prelude::*;
    /// let x = Eager::new(Rules::Torch).tensor(&Tensor::zeros(DType::F32, [1000])?);
    /// let noise = x.uniform((7, 1), None).result()?.to_vec::<f32>()?;      // seed 7, stream 1
    /// assert!(noise.iter().all(|u| (0.0..1.0).contains(u)));
    /// # Ok::<(), castwise::Error>(())
    /// ```
    #[track_caller]
    pub fn uniform(&self, key: impl Into<Key>, dtype: impl Into<Option<DType>>) -> Var<M> {
        self.generate(Generator::Uniform { key: key.into(), dtype: dtype.into() })
    }

    /// Normally distributed random numbers with mean 0 and standard deviation 1, in this dtype or the default float dtype.
    ///
    /// ```
    /// use castwise::prelude::*;
    /// let x = Eager::new(Rules::Torch).tensor(&Tensor::zeros(DType::F32, [10_000])?);
    /// let noise = x.normal(7, None) * 0.1 + 3.0;                          // mean 3, standard deviation 0.1
    /// assert!((noise.mean().result()?.item::<f32>()? - 3.0).abs() < 0.01);
    /// # Ok::<(), castwise::Error>(())
    /// ```
    #[track_caller]
    pub fn normal(&self, key: impl Into<Key>, dtype: impl Into<Option<DType>>) -> Var<M> {
        self.generate(Generator::Normal { key: key.into(), dtype: dtype.into() })
    }

    /// True with the probability `p`. A `p` that is not from 0 to 1 is a mistake.
    ///
    /// ```
    /// use castwise::prelude::*;
    /// let p = Program::new(Rules::Torch);
    /// let x = p.data("x", DType::F32, [None]);
    /// let dropped = x.bernoulli(0.9, 7).where_(&x / 0.9, 0.0);
    /// let out = Executor::new().run(&p, feeds! { "x" => Tensor::full([1000], 0.9f32)? }, [&dropped.sum()])?;
    /// assert!((850.0..950.0).contains(&out[0].item::<f32>()?));
    /// # Ok::<(), castwise::Error>(())
    /// ```
    #[track_caller]
    pub fn bernoulli(&self, p: f64, key: impl Into<Key>) -> Var<M> {
        self.generate(Generator::Bernoulli { p, key: key.into() })
    }

    /// Random integers from `low` to `high - 1`, in this dtype or the default integer dtype.
    ///
    /// ```
    /// use castwise::prelude::*;
    /// let x = Eager::new(Rules::Torch).tensor(&Tensor::zeros(DType::F32, [1000])?);
    /// let dice = x.randint(1, 7, 7, DType::U8).result()?.to_vec::<u8>()?;
    /// assert!((1..7).all(|n| dice.contains(&n)) && dice.iter().all(|n| (1..7).contains(n)));
    /// # Ok::<(), castwise::Error>(())
    /// ```
    #[track_caller]
    pub fn randint(
        &self,
        low: impl Into<i128>,
        high: impl Into<i128>,
        key: impl Into<Key>,
        dtype: impl Into<Option<DType>>,
    ) -> Var<M> {
        self.generate(Generator::Randint { low: low.into(), high: high.into(), key: key.into(), dtype: dtype.into() })
    }

    /// Each element of this scale for all elements of a block, in the shape of another value: element `i` is the scale's at
    /// `i / size`, along each dim. The last blocks may be smaller. Nothing is materialized: the loop that uses it reads the scale.
    /// The scale has the dims of `like`, and an element for each block; other shapes are refused.
    ///
    /// ```
    /// use castwise::prelude::*;
    /// let p = Program::new(Rules::Torch);
    /// let w = p.data("w", DType::F8E4M3FN, [3, 5]);
    /// let scale = p.data("scale", DType::F32, [2, 3]);
    /// let y = w.cast(DType::F32) * scale.blocks(&w, 2);
    /// let w = Tensor::ones(DType::F8E4M3FN, [3, 5])?;
    /// let scale = Tensor::from_slice(&[1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0], [2, 3])?;
    /// let out = Executor::new().run(&p, feeds! { "w" => w, "scale" => scale }, [&y])?;
    /// assert_eq!(out[0].to_vec::<f32>()?, [1.0, 1.0, 2.0, 2.0, 3.0, 1.0, 1.0, 2.0, 2.0, 3.0, 4.0, 4.0, 5.0, 5.0, 6.0]);
    /// # Ok::<(), castwise::Error>(())
    /// ```
    #[track_caller]
    pub fn blocks(&self, like: &Var<M>, size: impl Into<BlockSize>) -> Var<M> {
        M::blocks(&self.0, &like.0, size.into(), here())
    }
}
