//! The known name that somebody probably meant.

/// The candidate that is closest to `name`, unless none is close enough to be a slip of the fingers.
pub fn nearest<'a>(name: &str, candidates: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let limit = (name.len() / 3).max(1);
    candidates
        .map(|candidate| (distance(name, candidate), candidate))
        .filter(|(distance, _)| *distance <= limit)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// How many letters have to be put in, taken out or changed to make one word of the other.
fn distance(from: &str, to: &str) -> usize {
    let to: Vec<char> = to.chars().collect();
    let mut row: Vec<usize> = (0..=to.len()).collect();
    for (taken, letter) in from.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = taken + 1;
        for (at, other) in to.iter().enumerate() {
            let changed = diagonal + usize::from(letter != *other);
            diagonal = row[at + 1];
            row[at + 1] = changed.min(row[at] + 1).min(diagonal + 1);
        }
    }
    row[to.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_finds_its_word_and_another_word_finds_nothing() {
        let known = || ["REDRIVE_LISTEN", "REDRIVE_DATA_DIR"].into_iter();
        assert_eq!(nearest("REDRIVE_LISTN", known()), Some("REDRIVE_LISTEN"));
        assert_eq!(nearest("REDRIVE_DATADIR", known()), Some("REDRIVE_DATA_DIR"));
        assert_eq!(nearest("SOMETHING_ELSE", known()), None);
    }

    #[test]
    fn distance_counts_single_letter_changes() {
        for (from, to, expected) in [("", "", 0), ("a", "", 1), ("kitten", "sitting", 3), ("same", "same", 0)] {
            assert_eq!(distance(from, to), expected, "{from} → {to}");
        }
    }
}
