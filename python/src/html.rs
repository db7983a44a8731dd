//! Typed programs as pictures and tables of HTML, for notebooks.
//!
//! Guarantees: one row a node, in order; casts are coloured by what they may lose, as in the command's drawings; text from
//! outside is escaped; no script, no style beside the cells' own and that of the picture, which has a class of its own.

use castwise::{CastLoss, NodeKind, TypedProgram};

use crate::cli::draw::{colour, label};

/// Rows of one table at most.
const MOST: usize = 500;

/// Text as HTML.
pub fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

/// A program with a heading: a picture and a table.
pub fn table(heading: &str, typed: &TypedProgram) -> String {
    let casts = typed.casts();
    let count = |l: CastLoss| casts.iter().filter(|c| c.loss == l).count();
    let (exact, rounds, range) = (count(CastLoss::Exact), count(CastLoss::Rounds), count(CastLoss::Range));
    let mut text = format!(
        "<div><code>{}</code><br>{} cast{}: {exact} exact, {rounds} that round, {range} that may leave the range\
         <div style=\"overflow:auto;max-height:40em\">{}</div><table><tr><th>value</th><th>op</th><th>operands</th><th>type</th><th>source</th></tr>",
        escaped(heading),
        casts.len(),
        if casts.len() == 1 { "" } else { "s" },
        typed.to_svg()
    );
    let results = typed.results();
    for (i, n) in typed.nodes().enumerate().take(MOST) {
        let [what, of] = label(&n).map(|l| escaped(&l));
        let operands: Vec<String> = n.kind.inputs().iter().map(|from| format!("%{from}")).collect();
        let bold = if results.contains(&i) { ";font-weight:bold" } else { "" };
        let class = match &n.kind {
            NodeKind::Cast { note, .. } if note.loss == CastLoss::Exact => "exact",
            NodeKind::Cast { note, .. } if note.loss == CastLoss::Rounds => "rounds",
            NodeKind::Cast { .. } => "range",
            _ => "node",
        };
        text += &format!(
            "<tr class=\"castwise-{class}\" style=\"background:{};color:#000{bold}\"><td>%{i}</td><td>{what}</td>\
             <td>{}</td><td>{of}</td><td>{}</td></tr>",
            colour(&n),
            operands.join(", "),
            escaped(&n.location.to_string())
        );
    }
    if typed.len() > MOST {
        text += &format!("<tr><td colspan=\"5\">(and {} more)</td></tr>", typed.len() - MOST);
    }
    text + "</table></div>"
}
