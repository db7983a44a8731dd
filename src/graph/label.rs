//! What a node of a typed program is, in a few words: for drawings and tables.
//!
//! Guarantees: names are as they were given, so who prints them escapes them. Does not: say what a node loses.

use crate::graph::view::{NodeKind, NodeOperand, NodeView};

impl NodeView<'_> {
    /// What the node is: a name, an op with its scalars, a cast with its reason. `operand` gives the words for an operand
    /// that is the node at a position.
    ///
    /// ```
    /// use castwise::prelude::*;
    /// let p = Program::new(Rules::Torch);
    /// let _ = p.data("x", DType::BF16, [2]) * 0.5;
    /// let typed = p.infer()?;
    /// let labels: Vec<String> = typed.nodes().map(|n| n.label(|i| format!("%{i}"))).collect();
    /// assert_eq!(labels, ["x", "mul(%0, 0.5:f32)"]);
    /// # Ok::<(), castwise::Error>(())
    /// ```
    pub fn label(&self, operand: impl Fn(usize) -> String) -> String {
        match &self.kind {
            NodeKind::Feed(name) => name.to_string(),
            NodeKind::Constant(_) => "constant".to_string(),
            NodeKind::Apply { op, operands, .. } => {
                let operand = |o: &NodeOperand| match o {
                    NodeOperand::Node(i) => operand(*i),
                    NodeOperand::Scalar(s, d) => format!("{s}:{d}"),
                };
                format!("{op}({})", operands.iter().map(operand).collect::<Vec<_>>().join(", "))
            }
            NodeKind::Cast { note, .. } => format!("cast, {} ({})", note.loss, note.reason.words(note.to)),
            NodeKind::Reduce { op, dims, .. } => format!("{op} over {dims:?}"),
            NodeKind::Line { op, dim, .. } => format!("{op} along {dim}"),
            NodeKind::Extent { .. } => "count".to_string(),
            NodeKind::Bits { .. } => "view_as".to_string(),
            NodeKind::Indexed { how, dim, .. } => format!("{} along {dim}", how.name()),
            NodeKind::Blocks { size, .. } => format!("blocks {size}"),
            NodeKind::Generate { generator, .. } => format!("{} {generator}", generator.name()),
            NodeKind::View { view: Some(view), .. } => format!("{} {view}", view.name()),
            NodeKind::View { view: None, .. } => "view".to_string(),
        }
    }
}
