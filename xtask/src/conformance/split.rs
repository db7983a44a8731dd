//! Recorded cases of functions that castwise has several ops or applications for, as a case of each.

use std::borrow::Cow;

use serde_json::{Map, Value};

/// Functions of two results, and the op of each of them.
const TWO: &[(&str, [&str; 2])] = &[
    ("aminmax", ["amin", "amax"]),
    ("cummax", ["cummax", "cummax_indices"]),
    ("cummin", ["cummin", "cummin_indices"]),
    ("median", ["median", "median_indices"]),
    ("nanmedian", ["nanmedian", "nanmedian_indices"]),
    ("kthvalue", ["kthvalue", "kthvalue_indices"]),
    ("sort", ["sort", "argsort"]),
    ("topk", ["topk", "topk_indices"]),
];

/// The line, or a line for each result that castwise computes apart.
pub fn single(line: &str) -> Vec<Cow<'_, str>> {
    let listed = line.contains("\"q\":[");
    let known = TWO.iter().find(|(name, _)| line.contains(&format!("\"op\":\"{name}\"")));
    if known.is_none() && !listed {
        return vec![line.into()];
    }
    let Ok(Value::Object(case)) = serde_json::from_str(line) else { return vec![line.into()] };
    match known {
        // Only some of the calls give positions too.
        Some((_, ops)) if !case.contains_key("out") => of_two(&case, ops),
        _ if listed => of_list(&case),
        _ => vec![line.into()],
    }
}

fn of_two(case: &Map<String, Value>, ops: &[&str; 2]) -> Vec<Cow<'static, str>> {
    let of = |(i, op): (usize, &&str)| {
        let mut one = case.clone();
        one.insert("op".into(), (*op).into());
        if let Some(Value::Object(attrs)) = one.get_mut("attrs").filter(|_| i == 1) {
            attrs.remove("mode");
        }
        for (all, its) in [("outs", "out"), ("cmps", "cmp")] {
            if let Some(v) = case.get(all).and_then(|v| v.get(i)) {
                one.insert(its.into(), v.clone());
            }
        }
        Value::Object(one).to_string().into()
    };
    ops.iter().enumerate().map(of).collect()
}

/// A list of quantiles: the first dim of the result is that of the list.
fn of_list(case: &Map<String, Value>) -> Vec<Cow<'static, str>> {
    let list = case.get("attrs").and_then(|a| a.get("q")).and_then(Value::as_array).cloned().unwrap_or_default();
    let count = list.len();
    let of = |(i, q): (usize, Value)| {
        let mut one = case.clone();
        if let Some(Value::Object(attrs)) = one.get_mut("attrs") {
            attrs.insert("q".into(), q);
        }
        if let Some(Value::Object(out)) = one.get_mut("out") {
            if let Some(Value::Array(shape)) = out.get_mut("shape") {
                shape.remove(0);
            }
            if let Some(Value::Array(bits)) = out.get_mut("bits") {
                let each = bits.len() / count;
                *bits = bits[i * each..(i + 1) * each].to_vec();
            }
            out.insert("listed".into(), true.into());
        }
        Value::Object(one).to_string().into()
    };
    list.into_iter().enumerate().map(of).collect()
}
