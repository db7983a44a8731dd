//! `docs/promotion.html`: the promotion of every op under every rule set, as one self-contained page.
//!
//! Guarantees: `cells` decides every cell of the page. The page uses neither network nor storage. Does not: know any op
//! by name.
//!
//! The page has each text once: an outcome is a result with its reasons, a row a list of outcomes, a table a list of
//! rows. Rows and columns, the op and its operands are placeholders in these texts, so that ops share tables.

use std::collections::HashMap;
use std::hash::Hash;

use castwise::{CastLoss, Diagnostic, Op, Rules, Settings};
use serde_json::{Value, json};

use super::cells::{Cell, Side, Tier, cell, is_given, promoted, template, tiers};

const PAGE: &str = include_str!("page.html");
const SCRIPT: &str = include_str!("page.js");

/// Stands before and after a setting's value in a message.
const MARK: char = '\u{4}';

/// Deduplicated items with their indices.
struct Pool<T>(Vec<T>, HashMap<T, usize>);

impl<T: Clone + Eq + Hash> Pool<T> {
    fn new() -> Pool<T> {
        Pool(Vec::new(), HashMap::new())
    }

    fn id(&mut self, item: T) -> usize {
        if let Some(known) = self.1.get(&item) {
            return *known;
        }
        self.0.push(item.clone());
        self.1.insert(item, self.0.len() - 1);
        self.0.len() - 1
    }
}

/// What the cells of the page have in common.
struct Texts {
    /// Parts of reasons.
    parts: Pool<String>,
    /// The result, its class, the compute dtype, and the reasons.
    outcomes: Pool<(String, char, String, Vec<usize>)>,
    rows: Pool<Vec<usize>>,
    tables: Pool<Vec<usize>>,
    /// Titles of a tier, its rows and its columns, as JSON.
    shapes: Pool<String>,
}

/// The HTML page.
pub(super) fn page() -> String {
    let mut texts = Texts {
        parts: Pool::new(),
        outcomes: Pool::new(),
        rows: Pool::new(),
        tables: Pool::new(),
        shapes: Pool::new(),
    };
    let ops: Vec<Value> = Op::ALL.iter().map(|op| texts.of_op(*op)).collect();
    let sets: Vec<Value> = sets().iter().map(|s| json!([s.named(), label(*s), s.rules.has_weak()])).collect();
    let shapes: Vec<Value> = texts.shapes.0.iter().filter_map(|s| serde_json::from_str(s).ok()).collect();
    let outcomes = texts.outcomes.0.iter().map(|(shown, class, compute, why)| {
        let why: Vec<String> = why.iter().map(ToString::to_string).collect();
        format!("{shown}|{class}|{compute}|{}", why.join(" "))
    });
    let data = json!({
        "sets": sets,
        "parts": texts.parts.0,
        "outcomes": outcomes.collect::<Vec<_>>(),
        "rows": packed(&texts.rows.0),
        "tables": packed(&texts.tables.0),
        "shapes": shapes,
        "ops": ops,
    });
    // `</` would end the script element.
    PAGE.replace("{{SCRIPT}}\n", SCRIPT).replace("{{DATA}}", &data.to_string().replace("</", "<\\/"))
}

/// The rule sets in their usual settings, and with default dtypes of 64 bits those that have this setting.
fn sets() -> Vec<Settings> {
    let both = |rules: &Rules| [false, true].map(|x64| Settings::new(*rules).with_x64(x64));
    let mut sets: Vec<Settings> = Rules::ALL.iter().flat_map(both).collect();
    sets.dedup_by_key(|s| s.named());
    sets
}

fn label(settings: Settings) -> String {
    let flags = settings.named().replacen(settings.rules.name(), "", 1);
    format!("{}{}", settings.rules.framework(), flags.replace(',', " "))
}

impl Texts {
    fn of_op(&mut self, op: Op) -> Value {
        let def = op.def();
        let tiers: Vec<Value> = tiers(op, true).iter().map(|t| self.of_tier(op, t)).collect();
        let operands = if is_given(op) { vec!["from", "to"] } else { promoted(op).to_vec() };
        json!([def.name, def.aliases.join(" "), def.doc.trim(), operands, tiers])
    }

    /// The tier's shape, and a table for each rule set.
    fn of_tier(&mut self, op: Op, tier: &Tier) -> Value {
        let names = |side: &[Side]| side.iter().map(|s| s.0).collect::<Vec<_>>();
        let shape = json!([tier.title, names(&tier.rows), names(&tier.columns)]).to_string();
        let mut tables = Vec::new();
        for settings in sets() {
            let rows = tier.rows.iter().map(|row| {
                let cells: Vec<usize> =
                    tier.columns.iter().map(|column| self.of_cell(&settings, op, row, column)).collect();
                self.rows.id(cells)
            });
            let rows = rows.collect();
            tables.push(self.tables.id(rows));
        }
        json!([self.shapes.id(shape), tables])
    }

    fn of_cell(&mut self, settings: &Settings, op: Op, row: &Side, column: &Side) -> usize {
        let found = cell(settings, op, row.1, column.1);
        let (shown, class, compute, why) = match found {
            Ok(Cell { shown, loss, compute, why }) => (shown, class_of(loss), compute.to_string(), why),
            Err(d) => (String::new(), 'x', String::new(), refusal(settings.rules, &d)),
        };
        let filled = |text: &str| template(text, op, row.0, column.0);
        let why = why.iter().map(|part| self.parts.id(filled(part))).collect();
        self.outcomes.id((filled(&shown), class, filled(&compute), why))
    }
}

/// The letter of a class in the data.
fn class_of(loss: CastLoss) -> char {
    match loss {
        CastLoss::Exact => 'e',
        CastLoss::Rounds => 'r',
        CastLoss::Range => 'l',
    }
}

/// The message and the help of a refusal. What other rule sets would do is left out, because the page shows it for
/// every cell.
fn refusal(own: Rules, d: &Diagnostic) -> Vec<String> {
    let d = d.worded(|_, value| format!("{MARK}{value}{MARK}"));
    let other =
        |part: &&str| part.split(MARK).skip(1).step_by(2).any(|v| v != own.name() && v.parse::<Rules>().is_ok());
    let help = d.help.unwrap_or_default();
    let help: Vec<&str> = help.split("; ").filter(|part| !part.is_empty() && !other(part)).collect();
    let mut parts = vec![spelled(&d.message)];
    parts.extend((!help.is_empty()).then(|| spelled(&help.join("; "))));
    parts
}

/// The text with the frameworks' names for those of rule sets.
fn spelled(text: &str) -> String {
    let name = |(i, part): (usize, &str)| match part.parse::<Rules>() {
        Ok(rules) if i % 2 == 1 => rules.framework().to_string(),
        _ => part.to_string(),
    };
    text.split(MARK).enumerate().map(name).collect()
}

/// Lists of numbers as text: `n*count` for a repeated number, a comma between lists.
fn packed(lists: &[Vec<usize>]) -> String {
    let lists: Vec<String> = lists.iter().map(|list| run_lengths(list)).collect();
    lists.join(",")
}

fn run_lengths(list: &[usize]) -> String {
    let mut parts: Vec<(usize, usize)> = Vec::new();
    for n in list {
        match parts.last_mut() {
            Some((last, count)) if last == n => *count += 1,
            _ => parts.push((*n, 1)),
        }
    }
    let part = |(n, count): &(usize, usize)| if *count == 1 { n.to_string() } else { format!("{n}*{count}") };
    parts.iter().map(part).collect::<Vec<_>>().join(" ")
}
