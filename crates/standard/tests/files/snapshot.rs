//! The output that was last reviewed and accepted.

use std::fs;
use std::path::Path;

/// Set to anything, it lets the snapshots be written instead of compared.
const BLESS: &str = "REDRIVE_BLESS";

/// That `printed` is what the file at `path` says.
#[track_caller]
pub(crate) fn is_as_blessed(path: &Path, printed: &str) {
    if std::env::var_os(BLESS).is_some() {
        fs::write(path, printed).unwrap();
        return;
    }
    let expected = fs::read_to_string(path).unwrap_or_default();
    let path = path.display();
    assert_eq!(printed, expected, "{path} differs; run this test with {BLESS}=1 to write it, then read the diff");
}
