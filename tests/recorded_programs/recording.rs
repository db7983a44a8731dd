//! Reads `tests/golden/programs.jsonl`, and compares tensors with the recorded results.

use std::collections::{BTreeSet, HashMap};
use std::path::Path;

use castwise::io::read_npy;
use castwise::prelude::*;
use castwise::{Attrs, Op};
use serde_json::Value;

use crate::common;

/// The programs of the file, with their line numbers.
pub struct Recording {
    pub programs: Vec<(usize, Recorded)>,
}

/// One program: its operands, its steps, and their results.
pub struct Recorded {
    pub by: String,
    /// The kinds of the operands: layouts, and `npy`.
    pub kinds: BTreeSet<String>,
    pub leaves: Vec<Tensor>,
    pub steps: Vec<Step>,
    pub results: Vec<Wanted>,
}

pub struct Step {
    pub text: String,
    pub op: Op,
    pub operands: Vec<Source>,
    pub attrs: Attrs,
}

pub enum Source {
    Value(usize),
    Scalar(Scalar),
}

/// A result: the checksum of its bytes, the bytes themselves for some results, and its tolerance in ulps.
pub struct Wanted {
    dtype: DType,
    shape: Vec<usize>,
    sum: Option<u32>,
    bytes: Option<Vec<u8>>,
    ulps: Option<u64>,
}

impl Recording {
    pub fn read() -> Recording {
        let ours = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/programs.jsonl");
        let path = std::env::var_os("CASTWISE_RECORDING").map_or(ours, Into::into);
        let text = std::fs::read_to_string(path).unwrap();
        let (mut pools, mut files, mut programs) = (HashMap::new(), vec![], vec![]);
        for (i, line) in text.lines().enumerate() {
            let line: Value = serde_json::from_str(line).unwrap();
            if let Some(dtype) = line["pool"].as_str() {
                pools.insert(dtype.to_string(), hex(&line["bits"]));
            } else if let Some(wanted) = line["is"].as_str() {
                files.push(file(&hex(&line["npy"]), &Wanted::of(wanted)));
            } else {
                programs.push((i + 1, Recorded::of(&line, &pools, &files)));
            }
        }
        Recording { programs }
    }
}

fn hex(v: &Value) -> Vec<u8> {
    let digits = v.as_str().unwrap().as_bytes().chunks(2);
    digits.map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap()).collect()
}

/// Reads the tensor in a `.npy` file with these bytes.
fn file(bytes: &[u8], wanted: &Wanted) -> Tensor {
    let name = format!("recorded-{}-{:?}.npy", std::process::id(), std::thread::current().id());
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::write(&path, bytes).unwrap();
    let t = read_npy(&path).unwrap();
    std::fs::remove_file(path).unwrap();
    wanted.check(&t).unwrap();
    t
}

fn shape(text: &str) -> Vec<usize> {
    if text == "-" { vec![] } else { text.split(',').map(|n| n.parse().unwrap()).collect() }
}

/// Reads an operand: `f32 5,13 stepped 17` or `npy 3`.
fn leaf(text: &str, pools: &HashMap<String, Vec<u8>>, files: &[Tensor]) -> Tensor {
    let words: Vec<&str> = text.split(' ').collect();
    if let ["npy", n] = words[..] {
        return files[n.parse::<usize>().unwrap()].clone();
    }
    let [dtype, dims, layout, start] = words[..] else { panic!("{text} is no operand") };
    let (d, shape, start): (DType, _, usize) = (dtype.parse().unwrap(), shape(dims), start.parse().unwrap());
    let half = pools[dtype].len() / d.size() / 2;
    let first = start - start % half;
    let count = if layout == "row" { *shape.last().unwrap() } else { shape.iter().product() };
    let places = (0..count).map(|i| first + (start % half + i) % half);
    let elements: Vec<&[u8]> = places.map(|i| &pools[dtype][i * d.size()..][..d.size()]).collect();
    lay(d, &shape, layout, &elements)
}

/// A tensor of this layout, from its elements in row-major order.
fn lay(d: DType, shape: &[usize], layout: &str, elements: &[&[u8]]) -> Tensor {
    let of = |shape: &[usize], elements: &[&[u8]]| Tensor::from_bytes(d, shape, &elements.concat()).unwrap();
    let backwards: Vec<usize> = (0..shape.len()).rev().collect();
    match layout {
        "plain" => of(shape, elements),
        "fortran" => {
            of(shape, elements).permute(&backwards).unwrap().contiguous().unwrap().permute(&backwards).unwrap()
        }
        "stepped" => {
            let (last, twice): (usize, Vec<&[u8]>) = (shape.len() - 1, elements.iter().flat_map(|e| [*e; 2]).collect());
            let mut wide = shape.to_vec();
            wide[last] *= 2;
            of(&wide, &twice).slice(last, 0, wide[last], 2).unwrap()
        }
        "backwards" => {
            let turned: Vec<&[u8]> = elements.iter().rev().copied().collect();
            backwards.iter().fold(of(shape, &turned), |t, axis| t.flip(*axis).unwrap())
        }
        // The tensor begins at the second element of its memory.
        "odd" => {
            let more = [&elements[..1], elements].concat();
            of(&[more.len()], &more).slice(0, 1, more.len(), 1).unwrap().reshape(shape).unwrap()
        }
        "row" => of(&[elements.len()], elements).broadcast_to(shape).unwrap(),
        other => panic!("no layout {other}"),
    }
}

impl Recorded {
    fn of(line: &Value, pools: &HashMap<String, Vec<u8>>, files: &[Tensor]) -> Recorded {
        let texts =
            |key: &str| -> Vec<&str> { line[key].as_array().unwrap().iter().map(|v| v.as_str().unwrap()).collect() };
        let operands = texts("in");
        let kind =
            |t: &&str| if t.starts_with("npy") { "npy".into() } else { t.split(' ').nth(2).unwrap().to_string() };
        let mut results: Vec<Wanted> = texts("is").into_iter().map(Wanted::of).collect();
        for (i, r) in results.iter_mut().enumerate() {
            let key = (operands.len() + i).to_string();
            r.bytes = line["out"].get(&key).map(hex);
            r.ulps = line.get("ulp").and_then(|all| all.get(&key)).map(|n| n.as_u64().unwrap());
            assert!(r.sum.is_some() || r.bytes.is_some() && r.ulps.is_some());
        }
        Recorded {
            by: line["by"].as_str().unwrap().to_string(),
            kinds: operands.iter().map(kind).collect(),
            leaves: operands.iter().map(|text| leaf(text, pools, files)).collect(),
            steps: texts("do").into_iter().map(Step::of).collect(),
            results,
        }
    }

    /// Whether a step uses a value.
    pub fn uses(&self, value: usize) -> bool {
        self.steps.iter().flat_map(|s| &s.operands).any(|o| matches!(o, Source::Value(i) if *i == value))
    }

    /// Whether a value has one element.
    pub fn value_is_single(&self, value: usize) -> bool {
        match value.checked_sub(self.leaves.len()) {
            None => self.leaves[value].numel() == 1,
            Some(step) => self.results[step].shape.iter().all(|n| *n == 1),
        }
    }
}

impl Step {
    /// Reads `where 3 0 ~0.5`, `cast 2 {i32}`, `amax 4 {0,1 keepdim}`.
    fn of(text: &str) -> Step {
        let (call, attrs) = text.trim_end_matches('}').split_once(" {").unwrap_or((text, ""));
        let mut words = call.split(' ');
        let op = Op::from_name(words.next().unwrap()).unwrap_or_else(|| panic!("no op in {text}"));
        let operands = words.map(|w| match w.strip_prefix('~') {
            Some(number) => Source::Scalar(scalar(number)),
            None => Source::Value(w.parse().unwrap()),
        });
        let operands = operands.collect();
        let attrs = match attrs.split(' ').next().unwrap() {
            "" => Attrs::default(),
            axes if op.is_reduction() => {
                let dims: Vec<i64> = axes.split(',').map(|a| a.parse().unwrap()).collect();
                Attrs::dims(&dims[..]).with_keepdim(attrs.ends_with("keepdim"))
            }
            dtype => Attrs::cast(dtype.parse().unwrap()),
        };
        Step { text: text.to_string(), op, operands, attrs }
    }
}

fn scalar(text: &str) -> Scalar {
    match text.parse::<i64>() {
        Ok(whole) => Scalar::from(whole),
        Err(_) => Scalar::Float(text.parse().unwrap()),
    }
}

impl Wanted {
    /// Reads `f32 5,13 0a1b2c3d`. The checksum is `-` if only the bytes are compared.
    fn of(text: &str) -> Wanted {
        let words: Vec<&str> = text.split(' ').collect();
        let [dtype, dims, sum] = words[..] else { panic!("{text} is no result") };
        let sum = (sum != "-").then(|| u32::from_str_radix(sum, 16).unwrap());
        Wanted { dtype: dtype.parse().unwrap(), shape: shape(dims), sum, bytes: None, ulps: None }
    }

    pub fn check(&self, t: &Tensor) -> Result<(), String> {
        if (t.dtype(), t.shape()) != (self.dtype, &self.shape[..]) {
            return Err(format!("{}{:?} is not {}{:?}", t.dtype(), t.shape(), self.dtype, self.shape));
        }
        if common::levels::only_memory_counts() {
            return Ok(());
        }
        let got = bytes(t);
        let size = t.dtype().size();
        for (i, (want, got)) in self.bytes.iter().flat_map(|b| b.chunks(size)).zip(got.chunks(size)).enumerate() {
            let away = self.ulps.map_or(u64::from(want != got), |_| ulps(t.dtype(), want, got));
            if away > self.ulps.unwrap_or(0) {
                return Err(format!("element {i} is {got:02x?}, not {want:02x?}: {away} ulps away"));
            }
        }
        match self.sum {
            Some(sum) if sum != checksum(&got) => Err(format!("the sum {:08x} is not {sum:08x}", checksum(&got))),
            _ => Ok(()),
        }
    }
}

/// FNV-1a.
fn checksum(bytes: &[u8]) -> u32 {
    bytes.iter().fold(0x811c_9dc5, |h: u32, b| (h ^ u32::from(*b)).wrapping_mul(0x0100_0193))
}

/// The bytes in row-major order, with each NaN replaced by the positive quiet one without payload.
fn bytes(t: &Tensor) -> Vec<u8> {
    let mut bytes = t.contiguous().unwrap().as_bytes().unwrap().to_vec();
    let part = t.dtype().real();
    let nan = match part {
        DType::F16 => f16::NAN.to_le_bytes().to_vec(),
        DType::BF16 => bf16::NAN.to_le_bytes().to_vec(),
        DType::F32 => f32::NAN.to_le_bytes().to_vec(),
        DType::F64 => f64::NAN.to_le_bytes().to_vec(),
        _ => return bytes,
    };
    for element in bytes.chunks_mut(part.size()).filter(|e| common::is_nan(part, e)) {
        element.copy_from_slice(&nan);
    }
    bytes
}

/// The distance of two numbers of a float dtype in ulps. NaN and zeros of different signs are far from everything.
fn ulps(d: DType, a: &[u8], b: &[u8]) -> u64 {
    if a == b {
        return 0;
    }
    let sign = 1u64 << (8 * d.size() - 1);
    let place = |e: &[u8]| {
        let bits = e.iter().rev().fold(0u64, |bits, byte| bits << 8 | u64::from(*byte));
        if bits & sign == 0 { i128::from(bits) } else { -i128::from(bits & !sign) }
    };
    if common::is_nan(d, a) || common::is_nan(d, b) || place(a) == place(b) {
        return u64::MAX;
    }
    place(a).abs_diff(place(b)) as u64
}
