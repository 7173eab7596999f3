//! Where the functions of the program lie in it: those that every run needs together, in the order of
//! `link-order.txt`. See `docs/adr/0064-what-runs-together-lies-together.md`.

use std::path::Path;
use std::process::Command;

/// The first C library that understands packed relocations.
const PACKED_SINCE: (u32, u32) = (2, 36);

fn main() {
    tell("rerun-if-changed=build.rs");
    tell("rerun-if-changed=link-order.txt");
    if !is_optimised_for_linux() || has_linker_of_its_own() {
        return;
    }
    let directory = variable("CARGO_MANIFEST_DIR");
    let order = Path::new(&directory).join("link-order.txt");
    // Functions that are gone since are no reason for a word each.
    link_with("-Wl,--no-warn-symbol-ordering");
    link_with(&format!("-Wl,--symbol-ordering-file={}", order.display()));
    // The same code is there once, whatever types it is for.
    link_with("-Wl,--icf=all");
    if stays_here() && library().is_some_and(|version| version >= PACKED_SINCE) {
        link_with("-Wl,-z,pack-relative-relocs");
    }
}

/// Where the compiler brings a linker of its own that understands all this.
fn is_optimised_for_linux() -> bool {
    variable("PROFILE") == "release" && variable("TARGET") == "x86_64-unknown-linux-gnu"
}

/// Whether somebody chose another linker, which may not understand it.
fn has_linker_of_its_own() -> bool {
    let flags = variable("CARGO_ENCODED_RUSTFLAGS");
    !variable("RUSTC_LINKER").is_empty()
        || ["linker", "fuse-ld", "link-self-contained"]
            .iter()
            .any(|choice| flags.contains(choice))
}

/// Whether the program is for this machine: what the `dist` profile makes goes to others, whose C library may
/// be older.
fn stays_here() -> bool {
    let place = variable("OUT_DIR");
    let is_shipped = Path::new(&place)
        .components()
        .any(|part| part.as_os_str() == "dist");
    !is_shipped && variable("HOST") == variable("TARGET")
}

/// The version of this machine's C library.
fn library() -> Option<(u32, u32)> {
    let output = Command::new("getconf")
        .arg("GNU_LIBC_VERSION")
        .output()
        .ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    let (major, minor) = text.trim().strip_prefix("glibc ")?.split_once('.')?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}

fn variable(name: &str) -> String {
    std::env::var(name).unwrap_or_default()
}

fn link_with(flag: &str) {
    tell(&format!("rustc-link-arg-bins={flag}"));
}

fn tell(line: &str) {
    println!("cargo:{line}");
}
