//! The limits of float dtypes, as `finfo` of array libraries has them.
//!
//! Guarantees: they follow from the dtype's number format. Does not: have those of integers, which are its bits.

use super::dtype::DType;

impl DType {
    /// Of a float dtype, or the parts of a complex one: the distance from 1 to the next number, the largest finite number, and
    /// the smallest normal one. `None` for bool and integers.
    ///
    /// ```
    /// use castwise::DType;
    /// assert_eq!(DType::F16.float_limits(), Some([0.0009765625, 65504.0, 6.103515625e-5]));
    /// assert_eq!(DType::F8E4M3FN.float_limits(), Some([0.125, 448.0, 0.015625]));
    /// assert_eq!(DType::C64.float_limits(), DType::F32.float_limits());
    /// assert_eq!(DType::I32.float_limits(), None);
    /// ```
    pub fn float_limits(self) -> Option<[f64; 3]> {
        let d = self.real();
        if !d.is_float() {
            return None;
        }
        // Without infinities the highest exponent is one of numbers.
        let least = if d.has_infinity() { 2 } else { 3 } - d.range_bits() as i32;
        Some([2f64.powi(1 - d.digits() as i32), d.largest(), 2f64.powi(least)])
    }
}
