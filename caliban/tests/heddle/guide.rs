//! The client in the guide, run as it is printed.

use std::process::{Command, Stdio};

use caliban_testkit::Reply;
use serde_json::json;

use crate::bench;

const GUIDE: &str = include_str!("../../../docs/heddle.md");

#[test]
fn the_client_of_the_guide_works() {
    let program = GUIDE
        .split("```python\n")
        .nth(1)
        .and_then(|rest| rest.split("```").next())
        .expect("a client in Python");
    let bench = bench([
        Reply::tool("Read", json!({"path": "notes.txt"})),
        Reply::text("Buy milk."),
    ]);
    std::fs::write(bench.workspace.path().join("notes.txt"), "milk\n").unwrap();
    let programs = bench.home.path().join("programs");
    std::fs::create_dir_all(&programs).unwrap();
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_caliban"), programs.join("caliban")).unwrap();
    let path = format!(
        "{}:{}",
        programs.display(),
        std::env::var("PATH").unwrap_or_default()
    );
    let template = bench.command();
    let variables = template.get_envs();
    let ran = Command::new("python3")
        .args(["-c", program, "What do my notes say?"])
        .envs(variables.filter_map(|(name, value)| Some((name, value?))))
        .env("PATH", path)
        .current_dir(bench.workspace.path())
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let errors = String::from_utf8(ran.stderr).unwrap();
    assert_eq!(
        (
            ran.status.code(),
            String::from_utf8(ran.stdout).unwrap().as_str()
        ),
        (
            Some(0),
            "[read_file] {\"file_path\": \"notes.txt\"}\nBuy milk.\n"
        ),
        "{errors}"
    );
}
