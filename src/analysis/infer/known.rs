//! What inference knows of a program's first nodes, which the program keeps for the next inference to continue from.
//!
//! Guarantees: what a typed program shares with it (its nodes) is copied before it grows. Does not: type anything.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use petgraph::graph::NodeIndex;

use crate::base::error::Diagnostic;
use crate::base::limits::Limits;
use crate::base::shape::SymDim;
use crate::base::view::Slice;
use crate::graph::typed::{DimCheck, DynDim, NodeId, TypedNode};
use crate::promotion::Settings;

/// In place of the typed node of a node that is faulty, or uses one that is.
pub(super) const FAULTY: NodeId = NodeId::MAX;

/// The distinct shapes met so far.
#[derive(Debug, Default)]
pub(super) struct Shapes {
    pub(super) list: Vec<Arc<[SymDim]>>,
    ids: HashMap<Arc<[SymDim]>, u32>,
    /// Broadcasts already worked out.
    pub(super) pairs: HashMap<(u32, u32), u32>,
}

impl Shapes {
    pub(super) fn id(&mut self, shape: &[SymDim]) -> u32 {
        if let Some(id) = self.ids.get(shape) {
            return *id;
        }
        let (id, shape): (u32, Arc<[SymDim]>) = (self.list.len() as u32, shape.into());
        self.list.push(shape.clone());
        self.ids.insert(shape, id);
        id
    }
}

/// The first nodes of a program, typed.
#[derive(Debug)]
pub(super) struct Inference {
    pub(super) settings: Settings,
    pub(super) limits: Limits,
    pub(super) nodes: Arc<Vec<TypedNode>>,
    pub(super) shapes: Shapes,
    pub(super) dyn_dims: Vec<DynDim>,
    pub(super) named_dims: HashMap<Arc<str>, u32>,
    /// The symbols of slices of dynamic dims, so that equal slices are one.
    pub(super) sliced_dims: HashMap<(SymDim, Slice), u32>,
    pub(super) checks: Vec<DimCheck>,
    pub(super) checked: HashSet<(SymDim, SymDim)>,
    /// The placeholders, and their positions by name.
    pub(super) feeds: Vec<NodeId>,
    pub(super) feed_index: HashMap<Arc<str>, u32>,
    /// For each node of the program that was visited, its typed node.
    pub(super) of_program: Arc<Vec<NodeId>>,
    pub(super) faults: Vec<Diagnostic>,
}

impl Inference {
    pub(super) fn new(settings: Settings, limits: Limits) -> Inference {
        Inference {
            settings,
            limits,
            nodes: Arc::default(),
            shapes: Shapes::default(),
            dyn_dims: Vec::new(),
            named_dims: HashMap::new(),
            sliced_dims: HashMap::new(),
            checks: Vec::new(),
            checked: HashSet::new(),
            feeds: Vec::new(),
            feed_index: HashMap::new(),
            of_program: Arc::default(),
            faults: Vec::new(),
        }
    }

    /// The typed node of a node that was visited; `None` if it is faulty.
    pub(super) fn known(&self, node: NodeIndex) -> Option<NodeId> {
        self.of_program.get(node.index()).copied().filter(|id| *id != FAULTY)
    }
}
