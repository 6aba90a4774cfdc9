//! `cargo xtask dist`: what users install, in `target/dist`.
//!
//! | module | its job |
//! | --- | --- |
//! | `binary` | builds the program, and keeps its debug information in a file of its own |
//! | `reading` | manual pages and completions, which the program itself writes |
//! | `unit` | the systemd unit, as the package installs it |
//! | `tree` | the package's files as they will be installed: paths, modes, times |
//! | `deb` | the package made of the tree |
//! | `licences` | the licences of the crates in the program |
//! | `source_date` | the one date of all files, so that the same binary gives the same package |
//! | `tool` | runs a program and returns what it printed |
//!
//! Not here: the container image (`deploy/Dockerfile`).

mod binary;
#[cfg(test)]
mod container_tests;
mod deb;
mod licences;
mod reading;
mod source_date;
#[cfg(test)]
mod tests;
mod tool;
mod tree;
mod unit;

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::binaries::{self, Profile};
use deb::Compression;
use source_date::SourceDate;
use tree::Tree;

/// The arguments of `cargo xtask dist`.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// Packages the dev build, which is quick to build: to try a change of the package itself
    #[arg(long)]
    debug_binary: bool,
}

/// Makes the binary, manual pages, completions, unit and package.
pub fn run(arguments: &Arguments) -> Result<()> {
    let built = binary::build(Profile::of(arguments.debug_binary))?;
    let out = binaries::scratch_dir("dist")?;
    let package = make(&built, &out, SourceDate::find()?, Compression::Xz)?;
    let megabytes = |path: &Path| fs::metadata(path).map(|file| file.len() as f64 / 1e6);
    println!("in {}:", out.display());
    println!(
        "  redrive         {:.1} MB, {:.1} MB before it was stripped",
        megabytes(&out.join("redrive"))?,
        megabytes(&built)?
    );
    println!("  redrive.debug   {:.1} MB, line numbers for its backtraces", megabytes(&out.join("redrive.debug"))?);
    println!("  {}   {:.1} MB", package.file_name().unwrap_or_default().to_string_lossy(), megabytes(&package)?);
    println!("  redrive.service, man/man1, completions");
    Ok(())
}

/// Makes everything in the directory `out` from the program `built`. Returns the path of the package.
fn make(built: &Path, out: &Path, date: SourceDate, compression: Compression) -> Result<PathBuf> {
    let program = binary::split(built, out)?;
    reading::write(&program, out)?;
    let deploy = binaries::workspace_root().join("deploy");
    let portable_unit = fs::read_to_string(deploy.join("redrive.service")).context("reading the systemd unit")?;
    fs::write(out.join("redrive.service"), &portable_unit).context("writing the systemd unit")?;

    let root = out.join("tree");
    let mut tree = Tree::new(&root)?;
    tree.install_file("usr/bin/redrive", 0o755, &program)?;
    tree.install("lib/systemd/system/redrive.service", 0o644, unit::for_the_package(&portable_unit)?.as_bytes())?;
    tree.install_file("etc/redrive/redrive.env", 0o640, &deploy.join("debian/redrive.env"))?;
    reading::install(out, &mut tree)?;
    deb::install_documents(&mut tree, date)?;
    let package = deb::build(&mut tree, out, date, compression)?;
    fs::remove_dir_all(&root).context("removing the package's tree")?;
    Ok(package)
}
