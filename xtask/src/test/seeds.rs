//! Seeds of the simulator that are derived from the commit: each commit tests new ones, and can repeat them.

use std::process::Command;

/// Seeds below this are run anyway.
const ABOVE: u64 = 1_000_000_000;
/// The least distance between the seeds of two commits.
const APART: u64 = 1_000;

/// The first seed of this commit; a fixed one where there is no commit.
pub fn of_this_commit() -> u64 {
    let asked = Command::new("git").args(["rev-parse", "HEAD"]).output();
    let hash = asked.ok().filter(|asked| asked.status.success()).map(|asked| asked.stdout).unwrap_or_default();
    of_hash(&String::from_utf8_lossy(&hash))
}

fn of_hash(hash: &str) -> u64 {
    let beginning = hash.get(..8).and_then(|digits| u64::from_str_radix(digits, 16).ok());
    ABOVE + beginning.unwrap_or(0) * APART
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_commit_has_seeds_of_its_own() {
        assert_eq!(of_hash("0000000a99\n"), ABOVE + 10 * APART);
        assert_eq!(of_hash(""), ABOVE);
        assert_eq!(of_hash("not a hash"), ABOVE);
    }
}
