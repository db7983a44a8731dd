//! Aggregates of many groups at once: a batch's values are computed in one loop and added to the state of each row's
//! group.
//!
//! Guarantees: states are those of the accumulators of single groups, and merge with them. Does not: have extremes,
//! for which DataFusion keeps an accumulator for each group.

use std::sync::Arc;

use castwise::{DType, Prepared, Tensor};
use datafusion::arrow::array::{Array, ArrayRef, AsArray, BooleanArray, Float64Array, Int64Array, UInt64Array};
use datafusion::arrow::buffer::NullBuffer;
use datafusion::arrow::compute::prep_null_mask_filter;
use datafusion::arrow::datatypes::{Float64Type, Int64Type, UInt64Type};
use datafusion::common::{DataFusionError, Result};
use datafusion::logical_expr::{EmitTo, GroupsAccumulator};

use crate::columns::{array_of, cast_to};
use crate::compiled::{Compiled, as_run};
use crate::rows::columns_of;
use crate::state::{Kind, State};

/// The states of all groups.
pub(crate) struct Groups {
    pub(crate) compiled: Arc<Compiled>,
    pub(crate) kind: Kind,
    /// The values of a batch, in the dtype in which they are added.
    pub(crate) values: Arc<Prepared>,
    pub(crate) states: Vec<State>,
}

impl Groups {
    fn error(&self, e: castwise::Error) -> DataFusionError {
        as_run(&e, &self.compiled.source)
    }

    fn grow(&mut self, groups: usize) {
        self.states.resize(groups.max(self.states.len()), State::empty(self.kind));
    }

    /// Adds values to the groups of their rows.
    fn add(&mut self, values: &Tensor, groups: impl Iterator<Item = usize>) -> castwise::Result<()> {
        let states = &mut self.states;
        match self.kind {
            Kind::Integers => {
                groups.zip(values.as_slice::<i64>()?).for_each(|(g, x)| states[g].add_integers(*x, 1));
            }
            Kind::Moments { .. } => {
                groups.zip(values.as_slice::<f64>()?).for_each(|(g, x)| states[g].add_moments(*x, 0.0, 1));
            }
            _ => groups.zip(values.as_slice::<f64>()?).for_each(|(g, x)| states[g].add_floats(*x, 0.0, 1)),
        }
        Ok(())
    }
}

impl GroupsAccumulator for Groups {
    fn update_batch(
        &mut self,
        values: &[ArrayRef],
        groups: &[usize],
        filter: Option<&BooleanArray>,
        total: usize,
    ) -> Result<()> {
        self.grow(total);
        let filter = filter.map(|f| if f.null_count() > 0 { prep_null_mask_filter(f) } else { f.clone() });
        let Some((columns, mask)) = columns_of(&self.compiled, values, filter.as_ref())? else { return Ok(()) };
        let views = self.compiled.feeds.iter().map(|i| columns[*i].view()).collect::<castwise::Result<Vec<_>>>();
        let made = views.and_then(|views| self.values.run_views(&views)).map_err(|e| self.error(e))?;
        let Some(values) = made.first() else { return Ok(()) };
        let added = match mask {
            None => self.add(values, groups.iter().copied()),
            Some(mask) => {
                let kept = groups.iter().zip(mask.values()).filter(|(_, kept)| *kept).map(|(g, _)| *g);
                self.add(values, kept)
            }
        };
        added.map_err(|e| self.error(e))
    }

    fn merge_batch(&mut self, states: &[ArrayRef], groups: &[usize], total: usize) -> Result<()> {
        self.grow(total);
        for (row, group) in groups.iter().enumerate() {
            self.states[*group].merge(states, row);
        }
        Ok(())
    }

    fn evaluate(&mut self, emit: EmitTo) -> Result<ArrayRef> {
        let states = emit.take_needed(&mut self.states);
        let results: Vec<Option<Tensor>> = states.iter().map(State::result).collect();
        let valid = NullBuffer::from(results.iter().map(Option::is_some).collect::<Vec<bool>>());
        let wide = self.kind.wide().unwrap_or(DType::F64);
        let mut bytes = Vec::with_capacity(results.len() * wide.size());
        for result in &results {
            match result.as_ref().and_then(Tensor::as_bytes) {
                Some(value) => bytes.extend_from_slice(value),
                None => bytes.resize(bytes.len() + wide.size(), 0),
            }
        }
        let all = Tensor::from_bytes(wide, [results.len()], &bytes).map_err(|e| self.error(e))?;
        let cast = cast_to(&all, self.compiled.dtype).map_err(|e| self.error(e))?;
        array_of(cast, Some(valid).filter(|v| v.null_count() > 0))
    }

    fn state(&mut self, emit: EmitTo) -> Result<Vec<ArrayRef>> {
        let states = emit.take_needed(&mut self.states);
        let mut floats = [Vec::new(), Vec::new()];
        let (mut sums, mut counts) = (Vec::new(), Vec::new());
        for state in &states {
            match state {
                State::Integers { sum, count } => {
                    sums.push(*sum);
                    counts.push(*count);
                }
                State::Floats { sum: a, rest: b, count, .. } | State::Moments { mean: a, squares: b, count, .. } => {
                    floats[0].push(*a);
                    floats[1].push(*b);
                    counts.push(*count);
                }
                State::Extreme { .. } => {}
            }
        }
        let counts: ArrayRef = Arc::new(UInt64Array::from(counts));
        let [first, second] = floats;
        Ok(match self.kind {
            Kind::Integers => vec![Arc::new(Int64Array::from(sums)), counts],
            _ => vec![Arc::new(Float64Array::from(first)), Arc::new(Float64Array::from(second)), counts],
        })
    }

    fn convert_to_state(&self, values: &[ArrayRef], filter: Option<&BooleanArray>) -> Result<Vec<ArrayRef>> {
        let (compiled, values_of) = (self.compiled.clone(), self.values.clone());
        // Each row is a group.
        let mut rows = Groups { compiled, kind: self.kind, values: values_of, states: Vec::new() };
        let groups: Vec<usize> = (0..values.first().map_or(0, |v| v.len())).collect();
        rows.update_batch(values, &groups, filter, groups.len())?;
        rows.state(EmitTo::All)
    }

    fn size(&self) -> usize {
        self.states.capacity() * size_of::<State>()
    }
}

impl State {
    /// Adds the partial result in a row of arrays of states.
    pub(crate) fn merge(&mut self, states: &[ArrayRef], row: usize) {
        let counts = states.last().and_then(|c| c.as_primitive_opt::<UInt64Type>());
        let count = counts.filter(|c| c.is_valid(row)).map_or(0, |c| c.value(row));
        if count == 0 {
            return;
        }
        let float = |i: usize| states[i].as_primitive::<Float64Type>().value(row);
        match self {
            State::Integers { .. } => self.add_integers(states[0].as_primitive::<Int64Type>().value(row), count),
            State::Floats { .. } => self.add_floats(float(0), float(1), count),
            State::Moments { .. } => self.add_moments(float(0), float(1), count),
            State::Extreme { .. } => {}
        }
    }
}
