//! Every target of `redrive-fuzz` for libFuzzer; `REDRIVE_FUZZ_TARGET` says which. `cargo xtask fuzz --engine libfuzzer`.

#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use redrive_fuzz::{Target, find};

static TARGET: LazyLock<&Target> = LazyLock::new(|| {
    let name = std::env::var("REDRIVE_FUZZ_TARGET").expect("REDRIVE_FUZZ_TARGET says which target is fed");
    find(&name).expect("there is such a target")
});

fuzz_target!(|input: &[u8]| (TARGET.run)(input));
