//! Numbers of things, as people say them.

/// `1 row`, `2 rows`: a number, and what it counts with the plural that adds an s.
pub fn counted(number: impl TryInto<u64>, noun: &str) -> String {
    let number = number.try_into().unwrap_or(u64::MAX);
    let plural = if number == 1 { "" } else { "s" };
    format!("{number} {noun}{plural}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_is_not_many() {
        for (number, expected) in [(0_u64, "0 rows"), (1, "1 row"), (2, "2 rows")] {
            assert_eq!(counted(number, "row"), expected);
        }
        assert_eq!(counted(1_usize, "byte"), "1 byte");
    }
}
