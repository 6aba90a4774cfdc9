//! Files and directories that only their owner can read: bodies carry whatever callers send.
//!
//! The local object store makes both with the rights that the process's umask leaves. So directories are made here before
//! it needs them, and a file is closed to others before it gets its name; until then it lies in a closed directory. The
//! place itself keeps its rights if it was there before, because whoever made it may have had a reason.

use std::io;
use std::path::Path;

/// Makes a directory, and those above it that are missing, for the owner alone. What was made is made durable.
pub(crate) fn make_directory(directory: &Path) -> io::Result<()> {
    if directory.is_dir() {
        return Ok(());
    }
    let missing: Vec<&Path> = directory.ancestors().take_while(|path| is_missing(path)).collect();
    for_the_owner().recursive(true).create(directory)?;
    // A directory's own name is to survive, too.
    missing.into_iter().rev().filter_map(Path::parent).try_for_each(sync)
}

/// The same below `root`, which must be there.
pub(crate) fn make_directory_below(root: &Path, directory: &Path) -> io::Result<()> {
    let missing: Vec<&Path> = directory.ancestors().take_while(|path| *path != root && !path.is_dir()).collect();
    for directory in missing.into_iter().rev() {
        match for_the_owner().create(directory) {
            // Another upload needs it as well.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            made => made?,
        }
        directory.parent().map_or(Ok(()), sync)?;
    }
    Ok(())
}

fn for_the_owner() -> std::fs::DirBuilder {
    let mut builder = std::fs::DirBuilder::new();
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder
}

/// Closes a file to everybody but its owner.
pub(crate) fn close_file(file: &Path) -> io::Result<()> {
    close(file, 0o600)
}

/// Closes a directory to everybody but its owner, if it is there and is open to others.
pub(crate) fn close_directory(directory: &Path) -> io::Result<()> {
    if directory.is_dir() { close(directory, 0o700) } else { Ok(()) }
}

fn close(path: &Path, mode: u32) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt as _;
    if std::fs::metadata(path)?.permissions().mode() & 0o077 == 0 {
        return Ok(());
    }
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode))
}

fn is_missing(path: &Path) -> bool {
    !path.as_os_str().is_empty() && !path.exists()
}

fn sync(directory: &Path) -> io::Result<()> {
    let directory = if directory.as_os_str().is_empty() { Path::new(".") } else { directory };
    std::fs::File::open(directory)?.sync_all()
}
