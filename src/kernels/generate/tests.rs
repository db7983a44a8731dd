//! Random numbers against recorded ones (`tests/golden/philox.jsonl`, made by integers of Python from the definition), and chunks.

use serde_json::Value;

use super::*;

const LEVELS: [CpuLevel; 3] = [CpuLevel::Baseline, CpuLevel::Avx2, CpuLevel::Avx512];

/// The bytes of `n` elements.
fn made(g: Generator, dtype: DType, shape: &[usize], first: u64, n: usize, level: CpuLevel) -> Vec<u8> {
    let mut out = vec![0u64; n + 1];
    let filler = Filler::new(&g, dtype, shape, level);
    // SAFETY: room for so many elements of at most eight bytes.
    unsafe { filler.fill(first, n, out.as_mut_ptr().cast()) };
    bytemuck::cast_slice::<u64, u8>(&out)[..n * dtype.size()].to_vec()
}

fn hex(v: &Value) -> Vec<u8> {
    let text = v.as_str().unwrap();
    (0..text.len() / 2).map(|i| u8::from_str_radix(&text[2 * i..2 * i + 2], 16).unwrap()).collect()
}

fn levels() -> impl Iterator<Item = CpuLevel> {
    LEVELS.into_iter().filter(|l| *l <= CpuLevel::get())
}

#[test]
fn random_numbers_are_the_recorded_ones() {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/philox.jsonl");
    let text = std::fs::read_to_string(path).unwrap();
    let mut count = 0;
    for line in text.lines().map(|l| serde_json::from_str::<Value>(l).unwrap()).filter(|v| v["kat"].is_null()) {
        let number = |name: &str| -> u64 { line[name].as_str().unwrap().parse().unwrap() };
        let (key, index) = (Key { seed: number("seed"), stream: number("stream") }, number("index"));
        for level in levels() {
            let of = |g, dtype| made(g, dtype, &[usize::MAX], index, 1, level);
            for (name, want) in line["uniform"].as_object().unwrap() {
                let dtype: DType = name.parse().unwrap();
                assert_eq!(of(Generator::Uniform { key, dtype: None }, dtype), hex(want), "{name} {level:?}: {line}");
            }
            check_others(&line, key, of);
        }
        count += 1;
    }
    assert_eq!(count, 200);
}

/// Normally distributed numbers within the bars of the definition, the others exactly.
fn check_others(line: &Value, key: Key, of: impl Fn(Generator, DType) -> Vec<u8>) {
    let normal = |dtype| of(Generator::Normal { key, dtype: None }, dtype);
    let want = |name: &str| line["normal"][name]["z"].as_str().unwrap().parse::<f64>().unwrap();
    let z = f32::from_ne_bytes(normal(DType::F32).try_into().unwrap());
    assert!((f64::from(z) - want("f32")).abs() <= 2e-6, "{z}: {line}");
    assert_eq!(normal(DType::F16), half::f16::from_f32(z).to_ne_bytes());
    assert_eq!(normal(DType::BF16), half::bf16::from_f32(z).to_ne_bytes());
    let z = f64::from_ne_bytes(normal(DType::F64).try_into().unwrap());
    assert!((z - want("f64")).abs() <= 1e-14, "{z}: {line}");
    for (p, want) in line["bernoulli"].as_object().unwrap() {
        let p = p.parse().unwrap();
        assert_eq!(
            of(Generator::Bernoulli { p, key }, DType::Bool),
            [u8::from(want.as_bool().unwrap())],
            "{p}: {line}"
        );
    }
    for (bounds, want) in line["randint"].as_object().unwrap() {
        let (low, high) = bounds.split_once(',').unwrap();
        let (low, high) = (low.parse().unwrap(), high.parse().unwrap());
        let want: i64 = want.as_str().unwrap().parse().unwrap();
        let randint = Generator::Randint { low, high, key, dtype: None };
        assert_eq!(of(randint, DType::I64), want.to_ne_bytes(), "{bounds}: {line}");
    }
}

#[test]
fn an_element_does_not_depend_on_those_made_with_it() {
    let key = Key { seed: 5, stream: 1 << 40 };
    let (dim, dtype) = (Some(-2), None);
    let all = [
        (Generator::Index { dim }, DType::I64),
        (Generator::Index { dim: None }, DType::I64),
        (Generator::Arange { start: Scalar::Int(3), step: Scalar::Int(-7), dim, dtype }, DType::I16),
        (Generator::Arange { start: Scalar::Float(0.1), step: Scalar::Int(2), dim: None, dtype }, DType::F32),
        (Generator::Linspace { start: -1.0, end: 3.0, dim: Some(2), dtype }, DType::BF16),
        (Generator::Uniform { key, dtype }, DType::F16),
        (Generator::Uniform { key, dtype }, DType::F32),
        (Generator::Uniform { key, dtype }, DType::F64),
        (Generator::Normal { key, dtype }, DType::F16),
        (Generator::Normal { key, dtype }, DType::F32),
        (Generator::Normal { key, dtype }, DType::F64),
        (Generator::Bernoulli { p: 0.25, key }, DType::Bool),
        (Generator::Randint { low: 0, high: u64::MAX.into(), key, dtype }, DType::U64),
        (Generator::Randint { low: -3, high: 4, key, dtype }, DType::I8),
    ];
    let (shape, n) = ([7, 11, 13], 1001);
    for (g, dtype) in all {
        let whole = made(g, dtype, &shape, 0, n, CpuLevel::Baseline);
        for level in levels() {
            for (first, count) in [(0, 1001), (1, 1000), (3, 7), (254, 5), (255, 600), (512, 256), (997, 4), (1000, 1)]
            {
                let (from, to) = (first * dtype.size(), (first + count) * dtype.size());
                assert_eq!(
                    made(g, dtype, &shape, first as u64, count, level),
                    whole[from..to],
                    "{g:?} {first} {count}"
                );
            }
        }
    }
}

#[test]
fn ranges_have_their_values() {
    let floats = |g, shape: &[usize], n| -> Vec<f64> {
        bytemuck::pod_collect_to_vec(&made(g, DType::F64, shape, 0, n, CpuLevel::get()))
    };
    let line = |start, end| Generator::Linspace { start, end, dim: None, dtype: None };
    assert_eq!(floats(line(-1.0, 1.0), &[5], 5), [-1.0, -0.5, 0.0, 0.5, 1.0]);
    assert_eq!(floats(line(2.0, 9.0), &[1], 1), [2.0]);
    assert_eq!(floats(line(0.1, 0.7), &[4], 4).last(), Some(&0.7));
    let along = Generator::Arange { start: Scalar::Float(0.5), step: Scalar::Float(2.0), dim: Some(0), dtype: None };
    assert_eq!(floats(along, &[2, 3], 6), [0.5, 0.5, 0.5, 2.5, 2.5, 2.5]);
}
