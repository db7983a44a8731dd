//! The spans of the feature `tracing`: their names, fields and order.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use castwise::prelude::*;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

type Fields = BTreeMap<&'static str, u64>;

/// A subscriber that records the names and fields of all spans.
#[derive(Clone, Default)]
struct Recorder {
    spans: Arc<Mutex<Vec<(&'static str, Fields)>>>,
    next: Arc<AtomicU64>,
}

struct Into_<'a>(&'a mut Fields);

impl Visit for Into_<'_> {
    fn record_u64(&mut self, field: &Field, value: u64) {
        self.0.insert(field.name(), value);
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        panic!("{field} is {value:?}, not a number");
    }
}

impl Subscriber for Recorder {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target() == "castwise"
    }

    fn new_span(&self, span: &Attributes<'_>) -> Id {
        let mut fields = Fields::new();
        span.record(&mut Into_(&mut fields));
        self.spans.lock().unwrap().push((span.metadata().name(), fields));
        Id::from_u64(self.next.fetch_add(1, Ordering::Relaxed) + 1)
    }

    fn record(&self, span: &Id, values: &Record<'_>) {
        let at = span.into_u64() as usize - 1;
        values.record(&mut Into_(&mut self.spans.lock().unwrap()[at].1));
    }

    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn event(&self, _: &Event<'_>) {}
    fn enter(&self, _: &Id) {}
    fn exit(&self, _: &Id) {}
}

#[test]
fn each_stage_has_a_span_with_its_sizes() {
    let recorder = Recorder::default();
    let p = Program::new(Rules::Torch);
    let x = p.data("x", DType::F32, [None]);
    let y = (&x + 1) * &x;
    let exe = Executor::builder().threads(1).build();
    let t = Tensor::full([100], 2.0f32).unwrap();
    tracing::subscriber::with_default(recorder.clone(), || {
        for _ in 0..2 {
            exe.run(&p, feeds! { "x" => &t }, [&y]).unwrap();
        }
    });
    let spans = recorder.spans.lock().unwrap();
    let names: Vec<&str> = spans.iter().map(|(name, _)| *name).collect();
    let jit = exe.compiles() == 1;
    let expected = ["infer", "fuse", "run", "compile", "run"];
    assert_eq!(names, expected);
    let field = |at: usize, name: &str| spans[at].1.get(name).copied();
    assert_eq!((field(0, "nodes"), field(0, "typed_nodes")), (Some(3), Some(3)));
    assert_eq!((field(1, "fetches"), field(1, "kernels")), (Some(1), Some(1)));
    assert_eq!((field(2, "kernels"), field(2, "bytes")), (Some(1), Some(800)));
    assert_eq!((field(3, "steps"), field(3, "segments")), (Some(2), Some(u64::from(jit))));
    assert_eq!(spans[2].1, spans[4].1);
}
