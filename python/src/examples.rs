//! Examples in the texts of functions, made from castwise's tables.
//!
//! Guarantees: the operands of an op's example have a dtype that `signature` accepts, and the dtype that the example shows is that
//! of `signature`; tests run them all. Does not: show values.

use castwise::promotion::{OperandType, signature};
use castwise::{Attrs, DType, Op, Rules, Scalar, Settings};

use crate::dtypes::numpy_name;
use crate::functions::Applied;

/// The dtypes that an example's operands may have, in order of preference.
const TRIED: [DType; 5] = [DType::F32, DType::I64, DType::Bool, DType::C64, DType::F64];

/// The text of a function: what it is called with, what it gives, and an example.
pub fn text(what: &Applied) -> String {
    let example = match what {
        Applied::Op(op, _) => of_op(*op),
        _ => of_composite(what),
    };
    format!("{}\n\n{}\n\n{example}", what.signature(), what.doc())
}

/// A line that makes an array of a dtype.
fn array(name: &str, dtype: DType) -> String {
    let dtype = numpy_name(dtype).map_or("float32", |(name, _)| name);
    format!(">>> {name} = np.array([1, 2, 3, 4], np.{dtype})\n")
}

const IMPORTS: &str = ">>> import castwise, numpy as np\n";

fn of_op(op: Op) -> String {
    let def = op.def();
    let settings = Settings::new(Rules::NumPy);
    // The last operand of some ops is a number.
    let arrays = &def.operands[..def.operands.len() - usize::from(def.parameter.is_some())];
    let of_array = |i: usize, d: DType| if op == Op::Where && i == 0 { DType::Bool } else { d };
    let mut attrs = Attrs::default();
    let mut more = String::new();
    if matches!(op, Op::Cast | Op::ViewAs) {
        attrs.dtype = Some(DType::I32);
        more = ", dtype=\"i32\"".into();
    }
    if let Some(number) = def.number.filter(|n| n.default.is_none()) {
        attrs.number = Some(1.0.into());
        more += &format!(", {}=1", number.name);
    }
    let of = |d: DType| {
        let mut operands: Vec<OperandType> = (0..arrays.len()).map(|i| OperandType::dim(of_array(i, d))).collect();
        operands.extend(def.parameter.map(|_| OperandType::Scalar(Scalar::Int(2))));
        signature(&settings, op, &operands, &attrs).ok().map(|s| (d, s.result))
    };
    let Some((dtype, result)) = TRIED.into_iter().find_map(of) else { return String::new() };
    let made: String = arrays.iter().enumerate().map(|(i, name)| array(name, of_array(i, dtype))).collect();
    let given = [arrays.join(", "), def.parameter.map_or(String::new(), |_| ", 2".into()), more].concat();
    let result = numpy_name(result).map_or("", |(name, _)| name);
    format!("{IMPORTS}{made}>>> castwise.{}({given}).dtype\ndtype('{result}')", def.name)
}

fn of_composite(what: &Applied) -> String {
    let (operands, required) = what.operands();
    let operands = &operands[..required];
    let one = |name: &&'static str| match *name {
        "index" => ">>> index = np.array([3, 0, 0, 1])\n".to_string(),
        name => array(name, DType::F32),
    };
    let mut made: String = operands.iter().map(one).collect();
    let given = match (what, what.name()) {
        (Applied::Generator(_), "bernoulli") => ", p=0.5, seed=7",
        (Applied::Generator(_), "randint") => ", low=0, high=6, seed=7",
        (Applied::Generator(g), _) if g.numbers().contains(&"seed") => ", seed=7",
        (Applied::Blocks(_), _) => {
            made = format!("{}>>> like = np.ones(8, np.float32)\n", array("scale", DType::F32));
            ", size=2"
        }
        (Applied::Composite(c), _) if c.parameters().any(|p| p == "dims") => ", axis=-1",
        _ => "",
    };
    format!("{IMPORTS}{made}>>> result = castwise.{}({}{given})", what.name(), operands.join(", "))
}
