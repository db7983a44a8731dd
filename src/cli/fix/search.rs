//! The search for a small set of casts.
//!
//! Guarantees: no cast of a set that is found can be left out, and none can have a narrower dtype of the candidates, without
//! the set reaching the goal no longer. Does not: find the smallest set in every case: it adds the best cast of each step
//! (tests compare it with an exhaustive search).

use super::edits::Edit;

/// How good a set of casts is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Score {
    /// Whether the goal is reached.
    pub(super) reached: bool,
    /// What is left: less is better.
    pub(super) left: f64,
}

/// What rates sets of casts; `None` for one that is not valid.
pub(super) trait Judge {
    type Error;
    fn score(&mut self, edits: &[Edit]) -> Result<Option<Score>, Self::Error>;
}

/// The casts of a set at most.
pub(super) const MOST_CASTS: usize = 8;

/// The result of a search: the best set, and whether it reaches the goal.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Found {
    pub(super) edits: Vec<Edit>,
    pub(super) score: Score,
    /// The number of sets that were rated.
    pub(super) rated: usize,
}

/// Adds the cast that leaves least, one after the other, until the goal is reached or nothing helps; then leaves out what is
/// not needed. Of casts that leave as much, the first one is taken: candidates are in the order of their cost.
pub(super) fn greedy<J: Judge>(judge: &mut J, candidates: &[Edit]) -> Result<Option<Found>, J::Error> {
    let Some(score) = judge.score(&[])? else { return Ok(None) };
    let mut found = Found { edits: Vec::new(), score, rated: 1 };
    while !found.score.reached && found.edits.len() < MOST_CASTS {
        let mut best: Option<(Edit, Score)> = None;
        for candidate in candidates {
            if found.edits.iter().any(|e| e.span == candidate.span) {
                continue;
            }
            let edits = [&found.edits[..], std::slice::from_ref(candidate)].concat();
            found.rated += 1;
            let Some(score) = judge.score(&edits)? else { continue };
            let than = best.as_ref().map_or(found.score, |(_, s)| *s);
            if better(score, than) {
                best = Some((candidate.clone(), score));
            }
        }
        let Some((edit, score)) = best else { break };
        found.edits.push(edit);
        found.score = score;
    }
    if found.score.reached {
        prune(judge, candidates, &mut found)?;
    }
    Ok(Some(found))
}

/// Whether a set is better than another, by more than what rounding of the scores may be.
fn better(a: Score, b: Score) -> bool {
    (a.reached && !b.reached) || a.reached == b.reached && a.left < b.left * (1.0 - 1e-9)
}

/// Leaves out casts that are not needed, and narrows the others.
fn prune<J: Judge>(judge: &mut J, candidates: &[Edit], found: &mut Found) -> Result<(), J::Error> {
    let mut at = 0;
    while at < found.edits.len() {
        let mut edits = found.edits.clone();
        edits.remove(at);
        found.rated += 1;
        match judge.score(&edits)? {
            Some(score) if score.reached => (found.edits, found.score) = (edits, score),
            _ => at += 1,
        }
    }
    for at in 0..found.edits.len() {
        // Candidates are in the order of their cost, so the first that is enough is the cheapest.
        let own = found.edits[at].clone();
        for candidate in candidates.iter().filter(|c| c.span == own.span).take_while(|c| **c != own) {
            let mut edits = found.edits.clone();
            edits[at] = candidate.clone();
            found.rated += 1;
            if let Some(score) = judge.score(&edits)?.filter(|s| s.reached) {
                (found.edits, found.score) = (edits, score);
                break;
            }
        }
    }
    Ok(())
}

/// The smallest set that reaches the goal, of at most so many casts: every set is rated, the smaller ones first.
#[cfg(test)]
pub(super) fn exhaustive<J: Judge>(judge: &mut J, candidates: &[Edit], most: usize) -> Result<Option<Found>, J::Error> {
    let mut rated = 0;
    for size in 0..=most {
        let mut chosen: Vec<usize> = (0..size).collect();
        loop {
            if chosen.iter().all(|i| *i < candidates.len()) {
                let edits: Vec<Edit> = chosen.iter().map(|i| candidates[*i].clone()).collect();
                let apart = edits.iter().enumerate().all(|(i, e)| edits[..i].iter().all(|o| o.span != e.span));
                rated += 1;
                if apart && let Some(score) = judge.score(&edits)?.filter(|s| s.reached) {
                    return Ok(Some(Found { edits, score, rated }));
                }
            }
            // The next combination.
            let Some(i) = (0..size).rev().find(|i| chosen[*i] + size - i < candidates.len()) else { break };
            chosen[i] += 1;
            (i + 1..size).for_each(|k| chosen[k] = chosen[k - 1] + 1);
        }
    }
    Ok(None)
}
