//! The mean of decorrelated waits.
//!
//! Each wait is drawn up to three times the one before and then capped, so the mean of a wait does not follow from the
//! mean of the one before: that would say too much, up to eight times as much for a high cap. So the whole distribution
//! is carried from wait to wait, on a grid between the initial delay and the cap, and with a mass of its own at the
//! cap. The tests compare it with draws: it is within 2 % of their mean.

use std::time::Duration;

use crate::backoff::Backoff;

/// The grid's number of cells. Each is a few percent wide for usual policies, 9 % for the widest possible one.
const CELLS: u32 = 256;

/// The mean of the sum of the first `retries` waits.
pub(super) fn mean(backoff: &Backoff, retries: u32) -> Duration {
    let (initial, cap) = (backoff.ceiling(1).as_secs_f64(), backoff.longest().as_secs_f64());
    if cap <= initial {
        return backoff.longest().saturating_mul(retries);
    }
    let grid = Grid::new(initial, cap);
    let mut waits = Waits { points: vec![(initial, 1.0)], at_cap: 0.0 };
    let mut sum = 0.0;
    for _ in 0..retries {
        sum += waits.mean_of_next(initial, cap);
        waits = grid.next(&waits);
    }
    Duration::try_from_secs_f64(sum).unwrap_or(Duration::MAX)
}

/// The distribution of one wait: probabilities of single values, ascending, and the one of the cap.
struct Waits {
    points: Vec<(f64, f64)>,
    at_cap: f64,
}

impl Waits {
    /// Every value with its probability, the cap last.
    fn all(&self, cap: f64) -> impl Iterator<Item = (f64, f64)> {
        self.points.iter().copied().chain([(cap, self.at_cap)])
    }

    fn mean_of_next(&self, initial: f64, cap: f64) -> f64 {
        self.all(cap).map(|(wait, probability)| probability * mean_after(wait, initial, cap)).sum()
    }
}

/// The mean of `min(cap, uniform(initial, wait * 3))`.
fn mean_after(wait: f64, initial: f64, cap: f64) -> f64 {
    let upper = wait * 3.0;
    if upper <= cap {
        return f64::midpoint(initial, upper);
    }
    ((cap * cap - initial * initial) / 2.0 + cap * (upper - cap)) / (upper - initial)
}

/// Cells between the initial delay and the cap, each wider than the one before by the same factor.
struct Grid {
    edges: Vec<f64>,
}

impl Grid {
    fn new(initial: f64, cap: f64) -> Grid {
        let edge = |cell: u32| initial * (cap / initial).powf(f64::from(cell) / f64::from(CELLS));
        Grid { edges: (0..CELLS).map(edge).chain([cap]).collect() }
    }

    /// The distribution of the wait after `waits`.
    ///
    /// A wait's range begins at the first edge and ends in one cell, or beyond the cap. The cells below that one get
    /// its density, which is noted at its last whole cell and summed up from above.
    fn next(&self, waits: &Waits) -> Waits {
        let (initial, cap) = (self.edges[0], self.edges[self.edges.len() - 1]);
        let cells = self.edges.len() - 1;
        let (mut density_up_to, mut parts) = (vec![0.0; cells + 1], vec![0.0; cells]);
        let (mut at_cap, mut cell) = (0.0, 0);
        for (wait, probability) in waits.all(cap) {
            let upper = wait * 3.0;
            let density = probability / (upper - initial);
            while cell < cells && self.edges[cell + 1] <= upper {
                cell += 1;
            }
            density_up_to[cell] += density;
            match parts.get_mut(cell) {
                Some(part) => *part += density * (upper - self.edges[cell]),
                None => at_cap += density * (upper - cap),
            }
        }
        let mut density = density_up_to[cells];
        let mut points = Vec::with_capacity(cells);
        for cell in (0..cells).rev() {
            let (from, to) = (self.edges[cell], self.edges[cell + 1]);
            points.push((f64::midpoint(from, to), density * (to - from) + parts[cell]));
            density += density_up_to[cell];
        }
        points.reverse();
        Waits { points, at_cap }
    }
}
