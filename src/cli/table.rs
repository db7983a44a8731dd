//! `castwise table`: prints the promotion of an op as text, Markdown or an HTML page.
//!
//! Guarantees: every refused pair is shown as `-`, and its reason is below the table. Does not: decide dtypes.

use castwise::promotion::OperandType;
use castwise::{Op, Rules, Settings};

use super::args::{Table, TableFormat};
use super::cells::{Tier, cell, is_given, promoted, template, tiers};
use super::failure::{Failure, print};
use super::{page, report};

/// The maximum number of pairs that are listed with a reason.
const PAIRS: usize = 6;

pub(super) fn run(arguments: &Table) -> Result<(), Failure> {
    let page_or_sum = if arguments.format == TableFormat::Html { "all" } else { "add" };
    let given = arguments.op.as_deref().or(arguments.named_op.as_deref()).unwrap_or(page_or_sum);
    let ops = match given {
        "all" => Op::ALL.to_vec(),
        name => vec![Op::from_name(name).ok_or_else(|| unknown(name))?],
    };
    if arguments.format == TableFormat::Html {
        if given != "all" {
            return Err(Failure::usage("the HTML page always has all ops: castwise table --format html"));
        }
        return print(&page::page());
    }
    let settings = arguments.rules.unwrap_or(Settings::new(Rules::default()));
    let text: Vec<String> = ops.into_iter().map(|op| of_op(op, &settings, arguments.format)).collect();
    print(&text.join("\n"))
}

/// The error for an unknown op. Parsing an expression with this op gives the help text.
fn unknown(name: &str) -> Failure {
    let program = castwise::Program::new(Rules::default());
    program.data("x", castwise::DType::F32, ());
    let plain = name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_') && !name.is_empty();
    let asked = program.expression(&format!("{name}(x)")).err().filter(|_| plain);
    let help = asked.as_ref().and_then(|e| e.diagnostics().first()).and_then(|d| d.help.clone());
    let help = help.map_or(String::new(), |h| format!(": {h}"));
    Failure::usage(format!("there is no op `{}`{help}", report::escaped(name)))
}

/// A cell in print: the result, `-` if the operands are refused, and then the reason.
struct Printed {
    shown: String,
    why: String,
    help: String,
}

fn printed(settings: &Settings, op: Op, row: OperandType, column: OperandType) -> Printed {
    match cell(settings, op, row, column) {
        Ok(cell) => Printed { shown: cell.shown, why: String::new(), help: String::new() },
        Err(d) => {
            let d = report::of_command(&d);
            let help = d.help.map_or(String::new(), |h| format!("; {h}"));
            Printed { shown: "-".to_string(), why: d.message, help }
        }
    }
}

fn of_op(op: Op, settings: &Settings, format: TableFormat) -> String {
    let mark = if format == TableFormat::Markdown { "## " } else { "" };
    let mut text = format!("{mark}{op} under the rules of {}\n", settings.named());
    for tier in tiers(op, settings.rules.has_weak()) {
        let of_row = |r: OperandType| tier.columns.iter().map(|c| printed(settings, op, r, c.1)).collect();
        let cells: Vec<Vec<Printed>> = tier.rows.iter().map(|r| of_row(r.1)).collect();
        let title = heading(op, &tier);
        text += &match format {
            TableFormat::Markdown => format!("\n### {title}\n\n{}", markdown(&tier, &cells)),
            _ => format!("\n{title}\n{}", plain(&tier, &cells)),
        };
        text += &reasons(op, &tier, &cells, format);
    }
    text
}

/// Formats `tensor x (rows), 0-d tensor y (columns)`.
fn heading(op: Op, tier: &Tier) -> String {
    let names = promoted(op);
    match (tier.title.split_once(", "), names) {
        _ if is_given(op) => "from (rows) to (columns)".to_string(),
        (Some((row, column)), [x, rest @ ..]) => {
            format!("{row} {x} (rows), {column} {} (columns)", rest.join(" and "))
        }
        _ => format!("{} {}", tier.title, names.join(", ")),
    }
}

fn plain(tier: &Tier, cells: &[Vec<Printed>]) -> String {
    let side = tier.rows.iter().map(|r| r.0.len()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..tier.columns.len())
        .map(|j| cells.iter().map(|row| row[j].shown.len()).chain([tier.columns[j].0.len()]).max().unwrap_or(0))
        .collect();
    let line = |first: &str, rest: Vec<&str>| {
        let rest: Vec<String> = rest.iter().zip(&widths).map(|(c, w)| format!("{c:<w$}")).collect();
        format!("  {first:<side$}  {}", rest.join("  ")).trim_end().to_string() + "\n"
    };
    let mut text = line("", tier.columns.iter().map(|c| c.0).collect());
    for (row, cells) in tier.rows.iter().zip(cells) {
        text += &line(row.0, cells.iter().map(|c| c.shown.as_str()).collect());
    }
    text
}

fn markdown(tier: &Tier, cells: &[Vec<Printed>]) -> String {
    let names: Vec<&str> = tier.columns.iter().map(|c| c.0).collect();
    let mut text = format!("| | {} |\n|{}\n", names.join(" | "), " --- |".repeat(names.len() + 1));
    for (row, cells) in tier.rows.iter().zip(cells) {
        let cells: Vec<&str> = cells.iter().map(|c| c.shown.as_str()).collect();
        let name = if row.0.is_empty() { String::new() } else { format!("**{}**", row.0) };
        text += &format!("| {name} | {} |\n", cells.join(" | "));
    }
    text
}

/// The reasons of refused pairs, each with the first pairs that it applies to.
fn reasons(op: Op, tier: &Tier, cells: &[Vec<Printed>], format: TableFormat) -> String {
    let mut found: Vec<(String, String, Vec<String>)> = Vec::new();
    for (row, cells) in tier.rows.iter().zip(cells) {
        for (column, cell) in tier.columns.iter().zip(cells).filter(|(_, c)| c.shown == "-") {
            let key = template(&cell.why, op, row.0, column.0);
            let pair = if row.0.is_empty() { column.0.to_string() } else { format!("{} x {}", row.0, column.0) };
            match found.iter_mut().find(|(k, ..)| *k == key) {
                Some((.., pairs)) => pairs.push(pair),
                None => found.push((key, format!("{}{}", cell.why, cell.help), vec![pair])),
            }
        }
    }
    let mut text = String::new();
    for (_, why, pairs) in &found {
        let more =
            if pairs.len() > PAIRS { format!(", and {} more like it", pairs.len() - PAIRS) } else { String::new() };
        let first = pairs.iter().take(PAIRS).map(String::as_str).collect::<Vec<_>>().join(", ");
        text += &match format {
            TableFormat::Markdown => format!("\n- {first}{more}: {why}\n"),
            _ => format!("  - {first}{more}:\n      {why}\n"),
        };
    }
    text
}
