//! Interprets bytes as a sequence of calls of the public interface, many of them invalid: handles of other programs,
//! feeds that do not match, impossible shapes, views out of range, cancelled tokens.

use castwise::prelude::*;
use castwise::shape::{Dim, Dims};

use super::{Bytes, EXECUTORS, application, token};

/// Names, some of them with control characters or reserved words.
const NAMES: [&str; 8] = ["x", "y", "", "\u{1b}[2J", "sqrt", "a b", "\u{202e}x", "nan"];

/// Extents, some of them impossible.
const EXTENTS: [usize; 12] = [0, 1, 2, 3, 7, 16, 33, 1 << 31, 1 << 32, 1 << 59, isize::MAX as usize, usize::MAX];

#[derive(Default)]
struct World {
    programs: Vec<Program>,
    vars: Vec<Var>,
    tensors: Vec<Tensor>,
    prepared: Vec<castwise::Prepared>,
}

impl World {
    fn tensor(&self, b: &mut Bytes<'_>) -> Tensor {
        self.tensors[b.byte() % self.tensors.len()].clone()
    }

    fn program(&self, b: &mut Bytes<'_>) -> Program {
        self.programs[b.byte() % self.programs.len()].clone()
    }

    fn vars(&self, b: &mut Bytes<'_>) -> Vec<Var> {
        (0..b.byte() % 4).filter_map(|_| self.vars.get(b.byte() % self.vars.len().max(1)).cloned()).collect()
    }

    fn keep(&mut self, made: castwise::Result<Tensor>) {
        match made {
            // A later call may compute with all elements of the tensor, so its size is limited.
            Ok(t) if t.numel() < 20_000 => self.tensors.push(t),
            Ok(t) => assert!(t.raw_size_is_possible()),
            Err(e) => assert!(!e.to_string().is_empty() && !e.to_string().contains("internal error"), "{e}"),
        }
    }
}

/// The properties of a tensor that is too large to compute with.
trait Sized {
    fn raw_size_is_possible(&self) -> bool;
}

impl Sized for Tensor {
    fn raw_size_is_possible(&self) -> bool {
        self.numel().checked_mul(self.dtype().size()).is_some_and(|n| isize::try_from(n).is_ok())
    }
}

fn shape(b: &mut Bytes<'_>, most: usize) -> Vec<usize> {
    (0..b.byte() % 5).map(|_| EXTENTS[b.byte() % most]).collect()
}

fn dims(b: &mut Bytes<'_>) -> Dims {
    let one = |b: &mut Bytes<'_>| match b.byte() % 4 {
        0 => Dim::Dynamic,
        1 => Dim::Named(b.pick(&NAMES).into()),
        _ => Dim::Fixed(b.pick(&EXTENTS)),
    };
    let rank = if b.byte() == 7 { 66 } else { b.byte() % 4 };
    Dims((0..rank).map(|_| one(b)).collect())
}

/// One call on a tensor.
fn view(w: &mut World, b: &mut Bytes<'_>) {
    let t = w.tensor(b);
    let made = match b.byte() % 9 {
        0 => t.transpose(b.byte() % 5, b.byte() % 5),
        1 => t.permute(&(0..b.byte() % 5).map(|_| b.byte() % 4).collect::<Vec<_>>()),
        2 => t.slice(b.byte() % 4, b.pick(&EXTENTS), b.pick(&EXTENTS), b.pick(&EXTENTS)),
        3 => t.flip(b.byte() % 4),
        4 => t.broadcast_to(shape(b, EXTENTS.len())),
        5 => t.reshape(shape(b, EXTENTS.len())),
        6 => t.unsqueeze(b.byte() % 6),
        7 => t.contiguous(),
        _ => {
            let _ = (t.to_vec::<f32>(), t.as_slice::<bool>().is_ok(), t.item::<i64>(), t.as_bytes().is_some());
            let _ = format!("{t:?}");
            Ok(t)
        }
    };
    w.keep(made);
}

fn run(w: &mut World, b: &mut Bytes<'_>) {
    let (p, vars) = (w.program(b), w.vars(b));
    let names = p.feed_names();
    let mut feeds: Vec<(String, Tensor)> = names.iter().map(|n| (n.clone(), w.tensor(b))).collect();
    match b.byte() % 6 {
        0 => feeds.push((b.pick(&NAMES).into(), w.tensor(b))),
        1 => drop(feeds.pop()),
        _ => {}
    }
    let how = b.byte() % 5;
    EXECUTORS.with(|both| {
        let exe = &both[b.byte() % 2];
        let made = match how {
            0 => exe.run(&p, feeds, &vars),
            1 => exe.run_with(&p, feeds, &vars, &token(b)),
            2 => {
                let mut into: Vec<Tensor> = (0..vars.len()).map(|_| w.tensor(b)).collect();
                exe.run_into(&p, feeds, &vars, &mut into).map(|()| into)
            }
            3 => exe.dump(&p, &vars).map(|_| vec![]),
            _ => exe.prepare(&p, &vars).map(|made| {
                w.prepared.push(made);
                vec![]
            }),
        };
        match made {
            Ok(all) => all.into_iter().for_each(|t| w.keep(Ok(t))),
            Err(e) => assert!(!e.to_string().contains("internal error"), "{e}\n{p}"),
        }
    });
}

pub fn calls(data: &[u8]) {
    let b = &mut Bytes(data);
    let mut w = World { programs: vec![Program::new(Rules::Torch), Program::new(Rules::Paddle)], ..World::default() };
    w.tensors.push(Tensor::scalar(2.5f32));
    for _ in 0..60 {
        if b.0.is_empty() {
            break;
        }
        match b.byte() % 10 {
            0 => {
                let d = b.dtype();
                let shape = b.pick(&[&[][..], &[3], &[2, 3], &[0, 2], &[17]]);
                let t = b.tensor(d, shape);
                w.keep(Ok(t));
            }
            1 => {
                let (d, few) = (b.dtype(), [0u8, 1, 2, 3]);
                let made = Tensor::from_bytes(d, shape(b, EXTENTS.len()), &few[..b.byte() % 5]);
                w.keep(made);
            }
            2 | 3 => view(&mut w, b),
            4 => {
                let p = w.program(b);
                let v = if b.byte() % 3 == 0 {
                    p.constant(w.tensor(b))
                } else {
                    let (name, d) = (b.pick(&NAMES), b.dtype());
                    p.data(name, d, dims(b))
                };
                w.vars.push(v);
            }
            5 | 6 if !w.vars.is_empty() => {
                let v = application(b, &w.vars);
                w.vars.push(v);
            }
            7 => {
                let p = w.program(b);
                let _ = (p.check(), p.infer().map(|t| t.to_string().len()), p.to_string());
                w.vars.extend(p.var(b.byte()).into_iter().chain(p.feed(b.pick(&NAMES))));
                if w.programs.len() < 6 && b.byte().is_multiple_of(3) {
                    w.programs.push(p.with_rules(b.pick(Rules::ALL)));
                }
            }
            8 => {
                let given: Vec<Tensor> = (0..b.byte() % 3).map(|_| w.tensor(b)).collect();
                if let Some(step) = w.prepared.last() {
                    let refs: Vec<&Tensor> = given.iter().collect();
                    let _ = (step.run(&refs), step.run_with(&refs, &token(b)));
                }
            }
            _ => run(&mut w, b),
        }
    }
}
