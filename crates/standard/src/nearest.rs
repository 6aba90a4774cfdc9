//! Finds the known name that a misspelt one probably means.

/// Longer names are not compared.
const MAX_CHARACTERS: usize = 100;

/// The most letters that may be wrong; in a short name, a third of them.
const MAX_DISTANCE: usize = 5;

/// The candidate that is closest to `name`, if one is close enough for a typing mistake.
pub fn nearest<'a>(name: &str, candidates: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    if name.chars().nth(MAX_CHARACTERS).is_some() {
        return None;
    }
    let name: Vec<char> = name.chars().collect();
    let limit = (name.len() / 3).clamp(1, MAX_DISTANCE);
    candidates
        .filter_map(|candidate| {
            let letters: Vec<char> = candidate.chars().take(MAX_CHARACTERS + 1).collect();
            distance(&name, &letters, limit).map(|distance| (distance, candidate))
        })
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// How many letters have to be put in, taken out or changed to make one word of the other; nothing if more than
/// `limit`.
fn distance(from: &[char], to: &[char], limit: usize) -> Option<usize> {
    if from.len().abs_diff(to.len()) > limit {
        return None;
    }
    // Only what lies near the diagonal can stay within the limit; the rest is too far and is not looked at.
    let far = limit + 1;
    let mut row: Vec<usize> = (0..=to.len()).map(|column| column.min(far)).collect();
    for (taken, letter) in from.iter().enumerate() {
        let (first, last) = (taken.saturating_sub(limit), (taken + 1 + limit).min(to.len()));
        let mut diagonal = row[first];
        row[first] = if first == 0 { (taken + 1).min(far) } else { far };
        for at in first..last {
            let changed = diagonal + usize::from(*letter != to[at]);
            diagonal = row[at + 1];
            row[at + 1] = changed.min(row[at] + 1).min(diagonal + 1).min(far);
        }
    }
    Some(row[to.len()]).filter(|distance| *distance <= limit)
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
    fn distance_counts_single_letter_changes_up_to_a_limit() {
        for (from, to, limit, expected) in [
            ("", "", 1, Some(0)),
            ("a", "", 1, Some(1)),
            ("kitten", "sitting", 5, Some(3)),
            ("kitten", "sitting", 3, Some(3)),
            ("kitten", "sitting", 2, None),
            ("abcdef", "xabcde", 2, Some(2)),
            ("same", "same", 1, Some(0)),
            ("a", "abc", 1, None),
        ] {
            let letters = |word: &str| word.chars().collect::<Vec<_>>();
            assert_eq!(distance(&letters(from), &letters(to), limit), expected, "{from} → {to}");
        }
    }

    #[test]
    fn a_name_that_is_too_long_is_no_slip() {
        for (length, expected) in [(MAX_CHARACTERS, true), (MAX_CHARACTERS + 1, false)] {
            let name = "x".repeat(length);
            let known = format!("{}y", "x".repeat(length - 1));
            assert_eq!(nearest(&name, [known.as_str()].into_iter()).is_some(), expected, "{length}");
        }
    }
}
