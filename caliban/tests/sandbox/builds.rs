//! Everyday work in the sandbox: what people build with works there, without a network.

use std::path::{Path, PathBuf};
use std::process::Command;

use rstest::rstest;
use serde_json::json;

use crate::support::{Bench, Ran, bare, run};
use crate::{ON, bash, bench, calls, result, unavailable, write};

/// Runs a line of a shell as a confined command would be, in a workspace with these files.
fn built(files: &[(&str, &str)], line: &str) -> (Bench, Ran) {
    let bench = bench(ON, bash("true"));
    for (path, text) in files {
        write(&bench.workspace.path().join(path), text);
    }
    let mut command = bare(bench.home.path(), bench.workspace.path());
    if let Some(directory) = toolchain() {
        let path = std::env::var("PATH").unwrap_or_default();
        command.env("PATH", format!("{}:{path}", directory.display()));
    }
    let ran = run(command.args(["sandbox", "exec", "--", "bash", "-c", line]));
    (bench, ran)
}

/// Where cargo itself is, and not what chooses one: that looks in a home that is not there.
fn toolchain() -> Option<PathBuf> {
    let cargo = option_env!("CARGO").map(Path::new)?;
    cargo.parent().map(Path::to_owned)
}

fn is_missing(program: &str) -> bool {
    let found = Command::new(program).arg("--version").output();
    let is_missing = !found.is_ok_and(|it| it.status.success());
    if is_missing {
        eprintln!("skipped: there is no {program} here");
    }
    is_missing
}

#[rstest]
#[case::git(
    "git",
    &[("a.txt", "a\n")],
    "git init -q && git -c user.name=a -c user.email=a@b commit -q --allow-empty -m first \
     && git add a.txt && git -c user.name=a -c user.email=a@b commit -q -m second \
     && git checkout -q -b other && echo b >> a.txt && git stash -q 2>/dev/null; \
     git log --oneline | wc -l | grep -x 2",
    ".git/HEAD"
)]
#[case::make(
    "make",
    &[("Makefile", "out: in.txt\n\ttr a-z A-Z < in.txt > out\n"), ("in.txt", "text\n")],
    "make && make && grep -x TEXT out",
    "out"
)]
#[case::python(
    "python3",
    &[
        ("add.py", "def add(a, b):\n    return a + b\n"),
        ("test_add.py", "import unittest, tempfile, multiprocessing, add\nclass T(unittest.TestCase):\n    def test_add(self):\n        with tempfile.NamedTemporaryFile() as file, multiprocessing.Pool(2) as pool:\n            self.assertEqual(pool.map(abs, [-1, 2]), [1, 2])\n            self.assertEqual(add.add(1, 2), 3)\n"),
    ],
    "python3 -m unittest -q && python3 -m compileall -q . && touch tested",
    "tested"
)]
#[case::python_environment(
    "python3",
    &[("hello.py", "print('hello')\n")],
    "python3 -m venv --without-pip env && env/bin/python hello.py > said && grep -x hello said",
    "said"
)]
#[case::npm(
    "npm",
    &[
        ("package.json", r#"{"name":"a","version":"1.0.0","scripts":{"test":"node test.js"},"dependencies":{"dep":"file:./dep"}}"#),
        ("dep/package.json", r#"{"name":"dep","version":"1.0.0","main":"index.js"}"#),
        ("dep/index.js", "module.exports = 42;\n"),
        ("test.js", "require('fs').writeFileSync('said', String(require('dep')));\n"),
    ],
    "npm install --offline --no-audit --no-fund && npm test && grep -x 42 said",
    "said"
)]
#[case::cargo(
    "cargo",
    &[
        ("Cargo.toml", "[package]\nname = \"tiny\"\nversion = \"0.1.0\"\nedition = \"2021\"\n[workspace]\n"),
        ("build.rs", "fn main() { println!(\"cargo:rustc-env=MADE=built\"); }\n"),
        ("src/main.rs", "fn main() { println!(\"{}\", env!(\"MADE\")); }\n"),
    ],
    "cargo build --offline -q && target/debug/tiny > said && grep -x built said",
    "said"
)]
fn everyday_builds_succeed(
    #[case] program: &str,
    #[case] files: &[(&str, &str)],
    #[case] line: &str,
    #[case] made: &str,
) {
    if unavailable() || is_missing(program) {
        return;
    }
    let (bench, ran) = built(files, line);
    assert_eq!(ran.code, Some(0), "{}\n{}", ran.stdout, ran.stderr);
    assert!(bench.workspace.path().join(made).exists());
}

/// Made by one command, an environment is used and added to by the next ones of the session.
#[test]
fn an_environment_outlives_the_command_that_made_it() {
    if unavailable() || is_missing("python3") {
        return;
    }
    let commands = [
        "python3 -m venv --without-pip env",
        "env/bin/python -c 'print(6 * 7)' > said",
        "echo '#!/bin/sh' > env/bin/tool && chmod +x env/bin/tool && env/bin/tool",
    ];
    let script = calls(
        commands
            .map(|command| ("Bash", json!({"command": command})))
            .to_vec(),
    );
    let bench = bench(ON, script);
    let ran = bench.run(["--no-permissions", "-p", "go"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let root = bench.workspace.path();
    let said = std::fs::read_to_string(root.join("said"));
    assert_eq!(said.unwrap_or_default(), "42\n", "{}", result(&bench));
    assert!(root.join("env/bin/tool").exists(), "{}", result(&bench));
    // In another session it is what it is for everybody: read-only.
    let ran =
        run(bare(bench.home.path(), root).args(["sandbox", "exec", "--", "touch", "env/bin/tool"]));
    assert_ne!(ran.code, Some(0));
}

#[test]
fn pip_installs_what_is_there() {
    if unavailable() || is_missing("python3") {
        return;
    }
    let mut imports = Command::new("python3");
    let imported = imports
        .args(["-c", "import setuptools, pip, wheel"])
        .output();
    if !imported.is_ok_and(|done| done.status.success()) {
        eprintln!("skipped: python3 has no pip, setuptools and wheel here");
        return;
    }
    let files = [
        (
            "setup.py",
            "from setuptools import setup\nsetup(name='tiny', version='1', py_modules=['tiny'])\n",
        ),
        ("tiny.py", "VALUE = 42\n"),
    ];
    let line = "python3 -m pip install -q --no-index --no-build-isolation --no-deps --target lib . \
                && PYTHONPATH=lib python3 -c 'import tiny; print(tiny.__file__)' | grep /lib/";
    let (_bench, ran) = built(&files, line);
    assert_eq!(ran.code, Some(0), "{}\n{}", ran.stdout, ran.stderr);
}
