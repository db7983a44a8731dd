//! `docs/promotion.html`: the promotion of every op under every rule set, as one self-contained page.
//!
//! Guarantees: `cells` decides every cell of the page. The page uses neither network nor storage. Does not: know any op
//! by name.

use std::collections::HashMap;
use std::hash::Hash;

use castwise::{Op, Rules, Settings};
use serde_json::{Value, json};

use super::cells::{cell, is_given, promoted, template, tiers};

const PAGE: &str = include_str!("page.html");

/// Deduplicated items with their indices.
struct Pool<T>(Vec<T>, HashMap<T, usize>);

impl<T: Clone + Eq + Hash> Pool<T> {
    fn id(&mut self, item: T) -> usize {
        if let Some(known) = self.1.get(&item) {
            return *known;
        }
        self.0.push(item.clone());
        self.1.insert(item, self.0.len() - 1);
        self.0.len() - 1
    }
}

/// The HTML page.
pub(super) fn page() -> String {
    let mut outcomes: Pool<(String, String)> = Pool(Vec::new(), HashMap::new());
    let mut tables: Pool<Vec<usize>> = Pool(Vec::new(), HashMap::new());
    let mut shapes: Pool<String> = Pool(Vec::new(), HashMap::new());
    let mut ops: Vec<Value> = Vec::new();
    for op in Op::ALL {
        let mut of_op: Vec<Value> = Vec::new();
        for tier in tiers(*op) {
            let names = |side: &[super::cells::Side]| side.iter().map(|s| s.0).collect::<Vec<_>>();
            let shape = json!([tier.title, names(&tier.rows), names(&tier.columns)]).to_string();
            let mut ids = Vec::new();
            for rules in Rules::ALL.iter().copied() {
                let mut table = Vec::new();
                for row in &tier.rows {
                    for column in &tier.columns {
                        let found = cell(&Settings::new(rules), *op, row.1, column.1);
                        let help = if found.help.is_empty() { String::new() } else { format!("; {}", found.help) };
                        let why = template(&(found.why + &help), *op, row.0, column.0);
                        let shown = template(&found.shown, *op, row.0, column.0);
                        table.push(outcomes.id((shown, why)));
                    }
                }
                ids.push(tables.id(table));
            }
            of_op.push(json!([shapes.id(shape), ids]));
        }
        let def = op.def();
        ops.push(json!([
            def.name,
            def.aliases.join(" "),
            def.doc.trim(),
            if is_given(*op) { vec!["from", "to"] } else { promoted(*op).to_vec() },
            of_op
        ]));
    }
    let shapes: Vec<Value> = shapes.0.iter().filter_map(|s| serde_json::from_str(s).ok()).collect();
    let tables: Vec<String> = tables.0.iter().map(|t| packed(t)).collect();
    let data = json!({ "outcomes": outcomes.0, "shapes": shapes, "tables": tables, "ops": ops });
    // `</` would end the script element.
    let data = data.to_string().replace("</", "<\\/");
    let strings = |of: &dyn Fn(Rules) -> String| {
        let all: Vec<String> = Rules::ALL.iter().map(|r| Value::from(of(*r)).to_string()).collect();
        all.join(", ")
    };
    let titles = strings(&|r| format!("{}'s rules", r.title()));
    PAGE.replace("{{RULES}}", &strings(&|r| r.name().into())).replace("{{TITLES}}", &titles).replace("{{DATA}}", &data)
}

/// Run-length encodes numbers as text: `n*count` for a repeated number.
fn packed(table: &[usize]) -> String {
    let mut parts: Vec<(usize, usize)> = Vec::new();
    for n in table {
        match parts.last_mut() {
            Some((last, count)) if last == n => *count += 1,
            _ => parts.push((*n, 1)),
        }
    }
    let part = |(n, count): &(usize, usize)| if *count == 1 { n.to_string() } else { format!("{n}*{count}") };
    parts.iter().map(part).collect::<Vec<_>>().join(" ")
}
