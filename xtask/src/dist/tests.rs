//! Every package is made of the built program, installed where nothing else is, and started there.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use serde_json::Value;

use super::payload::Payload;
use super::{Artefact, artefacts, write};
use crate::environment;
use crate::shell::{self, output};

/// The program without its symbols, which nobody packs.
fn program() -> PathBuf {
    static STRIPPED: OnceLock<PathBuf> = OnceLock::new();
    let stripped = STRIPPED.get_or_init(|| {
        let from = shell::built_program().expect("it builds");
        let to = shell::target().join("debug/caliban.stripped");
        let made = to.with_extension(std::process::id().to_string());
        shell::run(Command::new("strip").arg(from).arg("-o").arg(&made)).expect("it is stripped");
        // Another process may be starting it.
        std::fs::rename(&made, &to).expect("it is put in place");
        to
    });
    stripped.clone()
}

fn packed() -> &'static [Artefact] {
    static PACKED: OnceLock<Vec<Artefact>> = OnceLock::new();
    PACKED.get_or_init(|| {
        let payload = Payload::gather(&program()).expect("it is gathered");
        artefacts(&payload).expect("it is packed")
    })
}

/// Writes the package whose name ends so, and tells where.
fn laid_out(into: &Path, is_it: impl Fn(&str) -> bool) -> PathBuf {
    let artefact = packed()
        .iter()
        .find(|it| is_it(&it.name))
        .expect("it is made");
    write(into, artefact).expect("it is written");
    into.join(&artefact.name)
}

fn is_kind(name: &str, extension: &str) -> bool {
    Path::new(name)
        .extension()
        .is_some_and(|it| it == extension)
}

/// What the program says of itself with an empty home.
fn version_of(program: &Path, home: &Path) -> String {
    let mut command = Command::new(program);
    command.arg("--version").env_clear();
    command.env("HOME", home).env("PATH", "/usr/bin:/bin");
    output(&mut command).expect("it starts")
}

fn expected() -> String {
    format!("caliban {}\n", env!("CARGO_PKG_VERSION"))
}

#[test]
fn the_same_payload_gives_the_same_bytes() {
    let packed = || {
        let mut payload = Payload::gather(&program()).expect("it is gathered");
        // A small one is packed as a large one is, and sooner.
        payload.program = b"\x7fELF\0GLIBC_2.34\0".repeat(1000);
        artefacts(&payload).expect("it is packed")
    };
    let (once, again) = (packed(), packed());
    assert_eq!(once.len(), again.len());
    for (one, other) in once.iter().zip(&again) {
        assert!(one == other, "{} differs from {}", one.name, other.name);
    }
}

#[test]
fn the_archive_is_unpacked_and_runs() {
    let root = tempfile::tempdir().expect("a directory");
    let archive = laid_out(root.path(), |name| name.ends_with(".tar.gz"));
    shell::run(
        Command::new("tar")
            .arg("xzf")
            .arg(&archive)
            .current_dir(root.path()),
    )
    .expect("it unpacks");
    let name = archive
        .file_name()
        .and_then(|name| name.to_str())
        .expect("a name");
    let inside = root.path().join(name.trim_end_matches(".tar.gz"));
    assert_eq!(version_of(&inside.join("caliban"), root.path()), expected());
    for paper in [
        "LICENSE",
        "README.md",
        "THIRD-PARTY.txt",
        "man/caliban.1",
        "completions/_caliban",
    ] {
        let bytes = std::fs::read(inside.join(paper)).expect(paper);
        assert!(!bytes.is_empty(), "{paper}");
    }
}

#[test]
fn the_debian_package_is_installed_and_removed() {
    let root = tempfile::tempdir().expect("a directory");
    let package = laid_out(root.path(), |name| is_kind(name, "deb"));
    let fields = output(Command::new("dpkg-deb").arg("--info").arg(&package)).expect("it is read");
    assert!(fields.contains("Depends: libc6 (>= 2."), "{fields}");
    let target = root.path().join("root");
    for made in ["var/lib/dpkg/info", "var/lib/dpkg/updates", "home"] {
        std::fs::create_dir_all(target.join(made)).expect("a directory");
    }
    std::fs::write(target.join("var/lib/dpkg/status"), "").expect("a file");
    let dpkg = |words: &[&str]| {
        let mut command = Command::new("dpkg");
        command.arg(format!("--root={}", target.display()));
        command.args(["--force-depends", "--force-not-root", "--log=/dev/null"]);
        output(command.args(words))
    };
    dpkg(&["--install", &package.to_string_lossy()]).expect("it is installed");
    let home = target.join("home");
    assert_eq!(
        version_of(&target.join("usr/bin/caliban"), &home),
        expected()
    );
    assert!(target.join("usr/bin/caliband").is_symlink());
    assert!(target.join("usr/share/man/man1/caliban.1.gz").is_file());
    dpkg(&["--purge", "caliban"]).expect("it is removed");
    assert!(!target.join("usr/bin/caliban").exists());
}

#[test]
fn the_npm_packages_are_installed_and_run() {
    let root = tempfile::tempdir().expect("a directory");
    let carrier = laid_out(root.path(), |name| {
        name.starts_with("npm-caliban-linux") || name.starts_with("npm-caliban-darwin")
    });
    let front = laid_out(root.path(), |name| {
        name == format!("npm-caliban-{}.tgz", env!("CARGO_PKG_VERSION"))
    });
    let mut npm = Command::new("npm");
    npm.args([
        "install",
        "--offline",
        "--no-audit",
        "--no-fund",
        "--omit=optional",
        "--prefix",
    ]);
    npm.arg(root.path()).arg(&carrier).arg(&front);
    npm.env("npm_config_cache", root.path().join("cache"))
        .env("HOME", root.path());
    output(&mut npm).expect("it is installed");
    let program = root.path().join("node_modules/.bin/caliban");
    let mut command = Command::new(&program);
    command.arg("--version").env("HOME", root.path());
    assert_eq!(output(&mut command).expect("it starts"), expected());
    let refused = Command::new(&program)
        .arg("--no-such-flag")
        .status()
        .expect("it starts");
    assert_eq!(refused.code(), Some(64), "the end is that of the program");
}

#[test]
fn the_wheel_is_installed_and_runs() {
    let root = tempfile::tempdir().expect("a directory");
    let wheel = laid_out(root.path(), |name| is_kind(name, "whl"));
    let target = root.path().join("venv");
    shell::run(
        Command::new(environment::python())
            .args(["-m", "venv"])
            .arg(&target),
    )
    .expect("an environment");
    let mut pip = Command::new(target.join("bin/pip"));
    pip.args([
        "install",
        "--no-index",
        "--no-deps",
        "--disable-pip-version-check",
        "--quiet",
    ]);
    shell::run(pip.arg(&wheel).env("HOME", root.path())).expect("it is installed");
    assert_eq!(
        version_of(&target.join("bin/caliban"), root.path()),
        expected()
    );
}

#[test]
fn the_bill_names_every_crate_and_the_sums_every_file() {
    let bill = packed()
        .iter()
        .find(|it| it.name.ends_with(".cdx.json"))
        .expect("it is made");
    let bill: Value = serde_json::from_slice(&bill.bytes).expect("JSON");
    assert_eq!(bill["bomFormat"], "CycloneDX");
    let components = bill["components"].as_array().expect("a list");
    let tokio = components
        .iter()
        .find(|it| it["name"] == "tokio")
        .expect("it is named");
    assert_eq!(
        tokio["hashes"][0]["content"].as_str().map(str::len),
        Some(64)
    );
    assert!(tokio["licenses"][0]["expression"].is_string());
    let references: Vec<&Value> = components.iter().map(|it| &it["bom-ref"]).collect();
    for node in bill["dependencies"].as_array().expect("a list") {
        for needed in node["dependsOn"].as_array().expect("a list") {
            assert!(references.contains(&needed), "{needed} is no component");
        }
    }
    let sums = packed().last().expect("the sums are last");
    let sums = String::from_utf8_lossy(&sums.bytes);
    assert_eq!(sums.lines().count() + 1, packed().len(), "{sums}");
}
