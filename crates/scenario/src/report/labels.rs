//! Where labels go, so that none touches another and none leaves its picture.

/// Labels in a column: for each wanted height a height between `from` and `to`, in the same order from top to bottom
/// and at least `gap` apart, as near to the wanted one as that allows. If there is too little room they are as far
/// apart as there is.
pub(super) fn spread(wanted: &[f64], gap: f64, from: f64, to: f64) -> Vec<f64> {
    let between = wanted.len().saturating_sub(1).max(1) as f64;
    let gap = gap.min((to - from) / between);
    let mut order: Vec<usize> = (0..wanted.len()).collect();
    order.sort_by(|one, other| wanted[*one].total_cmp(&wanted[*other]));
    let mut places = vec![0.0; wanted.len()];
    let mut least = from;
    for at in &order {
        places[*at] = wanted[*at].max(least);
        least = places[*at] + gap;
    }
    let mut most = to;
    for at in order.iter().rev() {
        places[*at] = places[*at].min(most);
        most = places[*at] - gap;
    }
    places
}

/// Labels in a row, each with its wanted middle and its width, from left to right: the middle that each gets, moved so
/// that it is between `from` and `to`; nothing for one that would come nearer than `gap` to the one before it.
pub(super) fn apart(wanted: &[(f64, f64)], gap: f64, from: f64, to: f64) -> Vec<Option<f64>> {
    let mut free = f64::NEG_INFINITY;
    let place = |&(middle, width): &(f64, f64)| {
        let half = width / 2.0;
        let middle = middle.min(to - half).max(from + half);
        if middle - half < free || middle + half > to + 1e-6 {
            return None;
        }
        free = middle + half + gap;
        Some(middle)
    };
    wanted.iter().map(place).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_in_a_column_keep_their_order_and_their_distance() {
        let cases: [(&[f64], &[f64]); 6] = [
            (&[], &[]),
            (&[50.0], &[50.0]),
            (&[10.0, 60.0], &[10.0, 60.0]),
            (&[50.0, 50.0, 50.0], &[50.0, 60.0, 70.0]),
            (&[99.0, 98.0, 99.0], &[90.0, 80.0, 100.0]),
            (&[-5.0, 200.0], &[0.0, 100.0]),
        ];
        for (wanted, expected) in cases {
            assert_eq!(spread(wanted, 10.0, 0.0, 100.0), expected, "{wanted:?}");
        }
        assert_eq!(spread(&[0.0; 5], 50.0, 0.0, 100.0), [0.0, 25.0, 50.0, 75.0, 100.0], "too little room");
    }

    #[test]
    fn labels_in_a_row_are_moved_inside_or_left_out() {
        let cases = [
            (vec![], vec![]),
            (vec![(0.0, 20.0), (50.0, 20.0), (100.0, 20.0)], vec![Some(10.0), Some(50.0), Some(90.0)]),
            (vec![(50.0, 20.0), (60.0, 20.0), (80.0, 20.0)], vec![Some(50.0), None, Some(80.0)]),
            (vec![(95.0, 20.0), (100.0, 20.0)], vec![Some(90.0), None]),
            (vec![(50.0, 200.0)], vec![None]),
        ];
        for (wanted, expected) in cases {
            assert_eq!(apart(&wanted, 5.0, 0.0, 100.0), expected, "{wanted:?}");
        }
    }
}
