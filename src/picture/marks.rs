//! What each node of a typed program may lose: its class, and the words for it.
//!
//! Guarantees: a cast has the class of [`CastLoss`], and an op that of what it loses before a wider dtype takes its value,
//! as the library's notes say. Does not: decide what is lost.

use crate::base::dtype::{Category, DType};
use crate::graph::typed::TypedProgram;
use crate::graph::view::NodeKind;
use crate::promotion::CastLoss;

/// The class of a node, which is its colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Class {
    /// An op, which loses nothing that its dtype does not show.
    Op,
    /// A placeholder or constant.
    Input,
    /// A cast that is exact.
    Exact,
    /// A cast or an op that may round.
    Rounds,
    /// A cast or an op that may leave the range.
    Range,
}

impl Class {
    /// The name of the class in the picture.
    pub(super) fn name(self) -> &'static str {
        match self {
            Class::Op => "op",
            Class::Input => "input",
            Class::Exact => "exact",
            Class::Rounds => "rounds",
            Class::Range => "range",
        }
    }
}

impl From<CastLoss> for Class {
    fn from(loss: CastLoss) -> Class {
        match loss {
            CastLoss::Exact => Class::Exact,
            CastLoss::Rounds => Class::Rounds,
            CastLoss::Range => Class::Range,
        }
    }
}

/// What a node loses.
#[derive(Clone, Debug)]
pub(super) struct Mark {
    pub(super) class: Class,
    /// The words in the box.
    pub(super) badge: Option<String>,
    /// The words for the pointer.
    pub(super) hints: Vec<String>,
}

/// What may happen to values that leave the range of a dtype.
fn beyond(from: DType, to: DType) -> &'static str {
    match (from.category(), to.category()) {
        (_, Category::Bool) => "only zero or not is kept",
        (Category::Complex, Category::Int | Category::Float) => "the imaginary part is dropped",
        (_, Category::Int) if from.category() == Category::Float => "may saturate",
        (_, Category::Int) => "may wrap",
        _ => "may overflow",
    }
}

/// The marks of all nodes, in order.
pub(super) fn marks(typed: &TypedProgram) -> Vec<Mark> {
    let mut all: Vec<Mark> = typed
        .nodes()
        .map(|n| {
            let (mut badge, mut hints) = (None, Vec::new());
            let class = match &n.kind {
                NodeKind::Feed(_) | NodeKind::Constant(_) => Class::Input,
                NodeKind::Cast { note, .. } => {
                    let loss = match note.loss {
                        CastLoss::Exact => "exact",
                        CastLoss::Rounds => "rounds",
                        CastLoss::Range => beyond(note.from, note.to),
                    };
                    badge = (note.loss != CastLoss::Exact).then(|| loss.to_string());
                    let operand = note.op.def().operands.get(note.operand).copied().unwrap_or_default();
                    let of = format!(", for operand {operand} of {}", note.op);
                    let of = if note.reason == crate::promotion::Reason::Requested { "" } else { &of };
                    hints.push(format!("rule: {}{of}", note.reason.words(note.to)));
                    hints.push(format!("loss: {loss}"));
                    note.loss.into()
                }
                _ => Class::Op,
            };
            Mark { class, badge, hints }
        })
        .collect();
    let mut add = |node: usize, class: Class, badge: String, hint: String| {
        let Some(mark) = all.get_mut(node) else { return };
        mark.class = mark.class.max(class);
        mark.badge.get_or_insert(badge);
        mark.hints.push(hint);
    };
    for n in typed.hidden_wraps() {
        let hint = format!("may wrap in {}: {}, before {} takes the value", n.dtype, n.ranges(), n.to);
        add(n.node, Class::Range, format!("may wrap in {}", n.dtype), hint);
    }
    for n in typed.hidden_roundings() {
        let hint = format!("rounds to {} before {} takes the value", n.dtype, n.to);
        add(n.node, Class::Rounds, format!("rounds to {}", n.dtype), hint);
    }
    for s in typed.changed_scalars() {
        let changed = format!("{} is {} in {}", s.value, s.used, s.to);
        add(s.node, s.loss.into(), changed.clone(), changed);
    }
    all
}
