//! Views of arrays by their indices: what the library is compared with. Shares no code with it.

use castwise::{Slice, View};

/// Elements in row-major order under a shape.
#[derive(Clone, Debug, PartialEq)]
pub struct Array<T> {
    pub shape: Vec<usize>,
    pub elements: Vec<T>,
}

/// Every index of a shape, in row-major order.
fn indices(shape: &[usize]) -> Vec<Vec<usize>> {
    shape.iter().fold(vec![vec![]], |all, n| {
        all.iter().flat_map(|front| (0..*n).map(move |i| [&front[..], &[i]].concat())).collect()
    })
}

fn dim(d: i64, rank: usize) -> Option<usize> {
    let n = rank.max(1) as i64;
    (-n..n).contains(&d).then(|| if d < 0 { (d + n) as usize } else { d as usize })
}

impl<T: Clone> Array<T> {
    pub fn get(&self, index: &[usize]) -> &T {
        &self.elements[index.iter().zip(&self.shape).fold(0, |at, (i, n)| at * n + i)]
    }

    /// The elements that `from` gives for the indices of a shape.
    fn picked(&self, shape: Vec<usize>, from: impl Fn(&[usize]) -> Vec<usize>) -> Array<T> {
        let elements = indices(&shape).iter().map(|to| self.get(&from(to)).clone()).collect();
        Array { shape, elements }
    }

    pub fn broadcast(&self, shape: &[usize]) -> Array<T> {
        let front = shape.len() - self.shape.len();
        let own = |i: &[usize]| i[front..].iter().zip(&self.shape).map(|(i, n)| if *n == 1 { 0 } else { *i }).collect();
        self.picked(shape.to_vec(), own)
    }

    /// The elements of each group of a reduction, the dims staying with extent 1.
    pub fn groups(&self, dims: &[usize]) -> Array<Vec<T>> {
        let kept: Vec<usize> =
            self.shape.iter().enumerate().map(|(i, n)| if dims.contains(&i) { 1 } else { *n }).collect();
        let mut all = Array { elements: vec![Vec::new(); kept.iter().product()], shape: kept };
        for (index, e) in indices(&self.shape).iter().zip(&self.elements) {
            let to = index.iter().enumerate().map(|(i, n)| if dims.contains(&i) { 0 } else { *n });
            let at = to.zip(&all.shape).fold(0, |at, (i, n)| at * n + i);
            all.elements[at].push(e.clone());
        }
        all
    }

    /// The view, or `None` if PyTorch refuses it.
    pub fn view(&self, view: &View) -> Option<Array<T>> {
        let rank = self.shape.len();
        let unique = |dims: &[i64]| -> Option<Vec<usize>> {
            let all: Option<Vec<usize>> = dims.iter().map(|d| dim(*d, rank)).collect();
            all.filter(|all| all.iter().enumerate().all(|(i, d)| !all[..i].contains(d)))
        };
        Some(match view {
            View::Transpose(a, b) => {
                let (a, b) = (dim(*a, rank)?, dim(*b, rank)?);
                if rank == 0 {
                    return Some(self.clone());
                }
                let swapped = |i: &[usize]| {
                    let mut i = i.to_vec();
                    i.swap(a, b);
                    i
                };
                self.picked(swapped(&self.shape), swapped)
            }
            View::Permute(order) => {
                let order = unique(order).filter(|o| o.len() == rank)?;
                let shape = order.iter().map(|d| self.shape[*d]).collect();
                self.picked(shape, |to| (0..rank).map(|d| to[order.iter().position(|o| *o == d).unwrap()]).collect())
            }
            View::Unsqueeze(d) => {
                let mut shape = self.shape.clone();
                shape.insert(dim(*d, rank + 1)?, 1);
                Array { shape, elements: self.elements.clone() }
            }
            View::Squeeze(d) => {
                let (d, mut shape) = (dim(*d, rank)?, self.shape.clone());
                if shape.get(d) == Some(&1) {
                    shape.remove(d);
                }
                Array { shape, elements: self.elements.clone() }
            }
            View::Expand(to) => {
                let front = to.len().checked_sub(rank)?;
                let one = |(i, n): (usize, &i64)| match i.checked_sub(front).map(|i| self.shape[i]) {
                    Some(old) if *n == -1 || *n == old as i64 => Some(old),
                    None | Some(1) if *n >= 0 => Some(*n as usize),
                    _ => None,
                };
                self.broadcast(&to.iter().enumerate().map(one).collect::<Option<Vec<_>>>()?)
            }
            View::Slice(d, Slice { start, end, step }) => {
                let d = dim(*d, rank).filter(|_| rank > 0 && *step > 0)?;
                let n = self.shape[d] as i64;
                let at = |b: &i64| if *b < 0 { b.saturating_add(n).max(0) } else { *b };
                let (from, to) = (start.as_ref().map_or(0, at), end.as_ref().map_or(n, at));
                let taken: Vec<usize> =
                    (0..n).filter(|i| *i >= from && *i < to && (i - from) % step == 0).map(|i| i as usize).collect();
                let mut shape = self.shape.clone();
                shape[d] = taken.len();
                self.picked(shape, |i| i.iter().enumerate().map(|(k, i)| if k == d { taken[*i] } else { *i }).collect())
            }
            View::Flip(dims) => {
                let dims = unique(dims)?;
                let own = |(k, i): (usize, &usize)| if dims.contains(&k) { self.shape[k] - 1 - i } else { *i };
                self.picked(self.shape.clone(), |i| i.iter().enumerate().map(own).collect())
            }
            View::Reshape(to) => {
                let known: i64 = to.iter().filter(|n| **n != -1).product();
                let n = self.elements.len() as i64;
                let rest = match to.iter().filter(|n| **n == -1).count() {
                    _ if to.iter().any(|n| *n < -1) => return None,
                    0 if known == n => 1,
                    1 if known > 0 && n % known == 0 => n / known,
                    _ => return None,
                };
                let shape = to.iter().map(|n| if *n == -1 { rest } else { *n } as usize).collect();
                Array { shape, elements: self.elements.clone() }
            }
            _ => return None,
        })
    }
}
