//! Paths: counts over equal intervals are drawn as steps, because slopes between them were not measured.

use super::number::place;
use super::scale::Scale;

/// A line along the tops of the steps, each `width` wide on the scale `x`, from 0.
pub(super) fn line(values: impl Iterator<Item = f64>, width: f64, x: &Scale, y: &Scale) -> String {
    let mut path = String::new();
    trace(&mut path, 'M', values.collect::<Vec<_>>().iter().copied().enumerate(), width, x, y, true);
    path
}

/// The area between two lines of steps.
pub(super) fn area(lower: &[f64], upper: &[f64], width: f64, x: &Scale, y: &Scale) -> String {
    if lower.iter().zip(upper).all(|(lower, upper)| lower >= upper) {
        return String::new();
    }
    let mut path = String::new();
    trace(&mut path, 'M', upper.iter().copied().enumerate(), width, x, y, true);
    trace(&mut path, 'L', lower.iter().copied().enumerate().rev(), width, x, y, false);
    path.push('Z');
    path
}

/// Walks along steps from their first to their last; steps of the same height are one.
fn trace(
    path: &mut String,
    begin: char,
    steps: impl Iterator<Item = (usize, f64)>,
    width: f64,
    x: &Scale,
    y: &Scale,
    rightwards: bool,
) {
    let (enters, leaves) = if rightwards { (0.0, 1.0) } else { (1.0, 0.0) };
    let mut last: Option<(String, String)> = None;
    for (at, value) in steps {
        let (enter, leave) = (place(x.at((at as f64 + enters) * width)), place(x.at((at as f64 + leaves) * width)));
        let height = place(y.at(value));
        match &last {
            None => *path += &format!("{begin}{enter} {height}"),
            Some((before, _)) if *before == height => {}
            Some((_, left)) => *path += &format!("H{left}V{height}"),
        }
        last = Some((height, leave));
    }
    if let Some((_, left)) = last {
        *path += &format!("H{left}");
    }
}

/// A line from point to point.
pub(super) fn through(points: &[(f64, f64)], x: &Scale, y: &Scale) -> String {
    let mut path = String::new();
    let mut last = None;
    for &(across, up) in points {
        let point = (place(x.at(across)), place(y.at(up)));
        if last.as_ref() != Some(&point) {
            let begin = if path.is_empty() { 'M' } else { 'L' };
            path += &format!("{begin}{} {}", point.0, point.1);
            last = Some(point);
        }
    }
    path
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scales() -> (Scale, Scale) {
        (Scale::linear(0.0, 4.0, 0.0, 40.0), Scale::linear(0.0, 10.0, 100.0, 0.0))
    }

    #[test]
    fn a_line_goes_in_steps_and_equal_ones_are_one() {
        let (x, y) = scales();
        for (values, expected) in
            [(vec![], ""), (vec![5.0], "M0 50H10"), (vec![5.0, 5.0, 0.0, 10.0], "M0 50H20V100H30V0H40")]
        {
            assert_eq!(line(values.iter().copied(), 1.0, &x, &y), expected, "{values:?}");
        }
    }

    #[test]
    fn an_area_goes_there_along_the_top_and_back_along_the_bottom() {
        let (x, y) = scales();
        assert_eq!(area(&[0.0, 1.0], &[5.0, 5.0], 1.0, &x, &y), "M0 50H20L20 90H10V100H0Z");
        assert_eq!(area(&[1.0, 2.0], &[1.0, 2.0], 1.0, &x, &y), "", "nothing to see");
        assert_eq!(area(&[], &[], 1.0, &x, &y), "");
    }

    #[test]
    fn a_line_through_points_leaves_out_what_is_at_the_same_place() {
        let (x, y) = scales();
        assert_eq!(through(&[(0.0, 0.0), (0.001, 0.0), (4.0, 10.0)], &x, &y), "M0 100L40 0");
        assert_eq!(through(&[], &x, &y), "");
    }
}
