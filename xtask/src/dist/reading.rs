//! Manual pages and completions, which the program itself writes.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

use super::tool;
use super::tree::Tree;
use crate::binaries;

/// A shell, the name of its script, and where Debian's shells look for it.
const COMPLETIONS: &[(&str, &str, &str)] = &[
    ("bash", "redrive.bash", "usr/share/bash-completion/completions/redrive"),
    ("zsh", "_redrive", "usr/share/zsh/vendor-completions/_redrive"),
    ("fish", "redrive.fish", "usr/share/fish/vendor_completions.d/redrive.fish"),
];

/// Writes `man/man1` and `completions` in the directory `out`.
pub(super) fn write(program: &Path, out: &Path) -> Result<()> {
    tool::output(binaries::redrive(program).arg("man-pages").arg(out.join("man/man1")))?;
    let completions = out.join("completions");
    fs::create_dir_all(&completions).context("making the directory of completions")?;
    for (shell, name, _) in COMPLETIONS {
        let script = tool::output(binaries::redrive(program).args(["completions", shell]))?;
        fs::write(completions.join(name), script).with_context(|| format!("writing the completions of {shell}"))?;
    }
    Ok(())
}

/// Installs what `write` has written.
pub(super) fn install(out: &Path, tree: &mut Tree) -> Result<()> {
    for (_, name, path) in COMPLETIONS {
        tree.install_file(path, 0o644, &out.join("completions").join(name))?;
    }
    for page in fs::read_dir(out.join("man/man1")).context("listing the manual pages")? {
        let page = page?;
        let path = format!("usr/share/man/man1/{}.gz", page.file_name().to_string_lossy());
        tree.install(&path, 0o644, &tool::gzip(&page.path())?)?;
    }
    Ok(())
}
