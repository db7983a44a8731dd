//! The rows of the op table of what depends on the elements' order: medians, quantiles, the element of a rank and their positions,
//! which are reductions; and sorting, along a dim.
//!
//! Guarantees: they follow the rows of `lines`, and are written as those of `table` are. In all of them a NaN is larger than
//! all numbers, both zeros are equal, and complex numbers order by the real part, then the imaginary part.

/// Calls `$callback!` with the rows, these and those of `departures`.
macro_rules! with_order {
    ($callback:ident $($rows:tt)*) => {
        $crate::ops::departures::with_departures! { $callback
            $($rows)*

            /// Median of the elements: the one in the middle of their order; of an even number, what `interpolation` says: the lower or the higher of the two in the middle, or their mean. NaN if an element is NaN. For no elements NaN, or an error in integers.
            Median { method: median, operands: (x), output: Fold, name: "median",
                gradients: by([wide(|d| ordered::middle(d, "median_indices", false))]),
                choice: Some(MIDDLE), integers: IntRange::First,
                promotion: IntToFloat, accepts: NUMBERS,
                numpy: NUMPY.promotes(IntToDouble).accepts(ANY).choice(Choice::Midpoint),
                paddle: PADDLE.promotes(SingleOrDouble).accepts(REALS).choice(Choice::Midpoint),
                jax: JAX.accepts(REALS_NO_F8).choice(Choice::Midpoint).strong() }
            { searches; }

            /// Median of the elements that are not NaN, as `median`; NaN if there are none.
            Nanmedian { method: nanmedian, operands: (x), output: Fold, name: "nanmedian",
                gradients: by([wide(|d| ordered::middle(d, "nanmedian_indices", true))]),
                choice: Some(MIDDLE),
                integers: IntRange::First, promotion: IntToFloat, accepts: NUMBERS,
                numpy: NUMPY.promotes(IntToDouble).accepts(ANY).choice(Choice::Midpoint),
                paddle: PADDLE.promotes(SingleOrDouble).accepts(REALS).choice(Choice::Midpoint),
                jax: JAX.accepts(REALS_NO_F8).choice(Choice::Midpoint).strong() }
            { searches; }

            /// Quantile q of the elements: with rank q · (n - 1), counted from 0, the element of that rank in their order, or, between two ranks, what `interpolation` says: the lower, the higher or the nearest element (`nearest`: of two that are as near the one with the even rank; `nearest_down`, and `nearest` under JAX's rules: the lower one), the midpoint of both, or a value in proportion. NaN if an element is NaN; what is computed from an infinity may be NaN too. Under NumPy's rules the element after that of a whole rank takes part, with the weight 0; under JAX's the rank has the default float dtype, both elements have weights, and the midpoint is their mean. An empty reduction is an error.
            Quantile { method: quantile, operands: (x), output: Fold, name: "quantile",
                gradients: by([wide(|d| ordered::quantile(d, false))]),
                number: Some(PART), choice: Some(BETWEEN),
                integers: IntRange::First, promotion: IntToFloat, accepts: SINGLE_DOUBLE, torch: TORCH.rounds_parameter(),
                numpy: NUMPY.promotes(IntToDouble).accepts(REALS), jax: JAX.floats_elements().accepts(REALS_NO_F8).strong() }
            { searches; }

            /// Quantile q of the elements that are not NaN, as `quantile`; NaN if there are none.
            Nanquantile { method: nanquantile, operands: (x), output: Fold, name: "nanquantile",
                gradients: by([wide(|d| ordered::quantile(d, true))]),
                number: Some(PART),
                choice: Some(BETWEEN), integers: IntRange::First, promotion: IntToFloat, accepts: SINGLE_DOUBLE,
                torch: TORCH.rounds_parameter(), numpy: NUMPY.promotes(IntToDouble).accepts(REALS),
                jax: JAX.floats_elements().accepts(REALS_NO_F8).strong() }
            { searches; }

            /// The k-th smallest element, counted from 1; NaNs are the largest. An empty reduction is an error.
            Kthvalue { method: kthvalue, operands: (x), output: Fold, name: "kthvalue",
                gradients: by([once(|d| ordered::chosen(d, "kthvalue_indices"))]),
                number: Some(RANK), exactness: Exact,
                integers: IntRange::First, accepts: NUMBERS, numpy: NUMPY.accepts(ANY), jax: JAX.accepts(REALS).strong() }
            { searches; }

            /// Position of the median, the lower one of two, along a dim, or in row-major order; of the first NaN, if there is one. Of equal elements it is the one that a stable sort puts there. An empty reduction is an error.
            MedianIndices { method: median_indices, operands: (x), output: FoldLong, name: "median_indices", aliases: &["argmedian"],
                exactness: Exact, integers: IntRange::Position, accepts: NUMBERS, numpy: NUMPY.accepts(ANY),
                jax: JAX.accepts(REALS).strong() }
            { searches; }

            /// Position of the median of the elements that are not NaN, as `median_indices`; 0 if all are NaN.
            NanmedianIndices { method: nanmedian_indices, operands: (x), output: FoldLong, name: "nanmedian_indices",
                aliases: &["argnanmedian"], exactness: Exact, integers: IntRange::Position, accepts: NUMBERS,
                numpy: NUMPY.accepts(ANY), jax: JAX.accepts(REALS).strong() }
            { searches; }

            /// Position of the k-th smallest element, as `kthvalue`. Of equal elements it is the one that a stable sort puts there.
            KthvalueIndices { method: kthvalue_indices, operands: (x), output: FoldLong, name: "kthvalue_indices",
                aliases: &["argkthvalue"], number: Some(RANK), exactness: Exact, integers: IntRange::Position, accepts: NUMBERS,
                numpy: NUMPY.accepts(ANY), jax: JAX.accepts(REALS).strong() }
            { searches; }

            /// The elements along a dim from the smallest to the largest, or from the largest if `descending`; NaNs are the largest. Equal elements keep their order.
            Sort { method: sort, operands: (x), output: Line, name: "sort",
                gradients: by([once(|d| ordered::moved(d, "argsort"))]),
                choice: Some(DESCENDING), default_dim: Some(-1),
                exactness: Exact, integers: IntRange::First, accepts: REALS, numpy: NUMPY.accepts(ANY),
                jax: JAX.accepts(NO_C32).strong() }
            { orders; }

            /// The positions of the elements along a dim in the order of `sort`. The rank of each element is `argsort(argsort(x))`.
            Argsort { method: argsort, operands: (x), output: LineLong, name: "argsort", choice: Some(DESCENDING),
                default_dim: Some(-1), exactness: Exact, integers: IntRange::Position, accepts: REALS, numpy: NUMPY.accepts(ANY),
                jax: JAX.accepts(NO_C32).strong() }
            { orders; }

            /// The k largest elements along a dim, the largest first, or the k smallest, the smallest first, if not `largest`; NaNs are the largest. Equal elements keep their order.
            Topk { method: topk, operands: (x), output: Line, name: "topk",
                gradients: by([once(|d| ordered::moved(d, "topk_indices"))]),
                number: Some(COUNT), choice: Some(LARGEST),
                default_dim: Some(-1), exactness: Exact, integers: IntRange::First, accepts: NUMBERS, jax: JAX.accepts(REALS).strong() }
            { orders; }

            /// The positions along a dim of the elements of `topk`.
            TopkIndices { method: topk_indices, operands: (x), output: LineLong, name: "topk_indices", aliases: &["argtopk"],
                number: Some(COUNT), choice: Some(LARGEST), default_dim: Some(-1), exactness: Exact,
                integers: IntRange::Position, accepts: NUMBERS, jax: JAX.short_positions().accepts(REALS).strong() }
            { orders; }
        }
    };
}
pub(crate) use with_order;
