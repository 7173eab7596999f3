//! The recipes of the guide as scripts: what people copy must work.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test may panic"
)]

mod support;

use std::process::{Command, Stdio};

use caliban_testkit::{Reply, Script};
use serde_json::json;
use support::{Bench, Ran, Wire, run};

/// Runs a script in bash with `caliban` on its path.
fn script(bench: &Bench, text: &str) -> Ran {
    let programs = bench.home.path().join("programs");
    std::fs::create_dir_all(&programs).unwrap();
    let link = programs.join("caliban");
    if !link.exists() {
        std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_caliban"), link).unwrap();
    }
    let path = format!(
        "{}:{}",
        programs.display(),
        std::env::var("PATH").unwrap_or_default()
    );
    let template = bench.command();
    let mut command = Command::new("bash");
    command
        .args(["-c", text])
        .env_clear()
        .envs(
            template
                .get_envs()
                .filter_map(|(key, value)| Some((key, value?))),
        )
        .env("PATH", path)
        .current_dir(bench.workspace.path())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    run(&mut command)
}

#[test]
fn a_simple_answer() {
    let bench = Bench::new(Wire::Anthropic, Script::new([Reply::text("Looks fine.")]));
    let ran = script(
        &bench,
        r#"caliban --bare --max-budget-usd 0.50 --permission-mode acceptEdits --no-save \
             -p "Review the diff for obvious bugs and print a one-sentence verdict.""#,
    );
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "Looks fine.\n"));
}

#[test]
fn a_gate_on_a_structured_verdict() {
    for (verdict, code) in [("pass", 0), ("fail", 1)] {
        let answer = json!({"verdict": verdict, "reason": "because"}).to_string();
        let bench = Bench::new(Wire::Anthropic, Script::new([Reply::text(answer)]));
        let ran = script(
            &bench,
            r#"set -euo pipefail
            RESULT=$(caliban --output-format json \
              --json-schema '{"type":"object","required":["verdict","reason"]}' \
              --bare --max-budget-usd 1.00 --permission-mode acceptEdits \
              --allow "Bash:git diff*" --allow "Read" --no-save \
              -p "Review the staged changes. Reply ONLY with JSON.")
            VERDICT=$(echo "$RESULT" | jq -r '.structured_output.verdict')
            if [ "$VERDICT" = "pass" ]; then
              echo "Review passed: $(echo "$RESULT" | jq -r '.structured_output.reason')"
            else
              echo "Review failed: $(echo "$RESULT" | jq -r '.structured_output.reason')"; exit 1
            fi"#,
        );
        assert_eq!(ran.code, Some(code), "{}", ran.stderr);
        assert!(ran.stdout.contains("because"), "{}", ran.stdout);
    }
}

#[test]
fn a_pipeline_of_several_turns() {
    let replies = Script::new([
        Reply::tool("Bash", json!({"command": "cargo test --version"})),
        Reply::text("No failures."),
        Reply::text("Nothing to fix."),
    ]);
    let bench = Bench::new(Wire::Anthropic, replies);
    let ran = script(
        &bench,
        r#"set -euo pipefail
        TASKS=$(cat <<'EOF'
{"type":"user","content":"Run the test suite and report any failures."}
{"type":"user","content":"If any tests failed, suggest a fix."}
EOF
)
        LAST_RESULT=""; TOOL_CALLS=0
        while IFS= read -r line; do
          [ -z "$line" ] && continue
          case "$(echo "$line" | jq -r '.type')" in
            system) [ "$(echo "$line" | jq -r '.subtype')" = "init" ] && echo "[init] model=$(echo "$line" | jq -r '.model')" ;;
            tool_use) TOOL_CALLS=$((TOOL_CALLS + 1)); echo "[tool] $(echo "$line" | jq -r '.name')" ;;
            result) LAST_RESULT="$line"; echo "[result] subtype=$(echo "$line" | jq -r '.subtype') tool_calls=$TOOL_CALLS" ;;
          esac
        done < <(echo "$TASKS" | caliban --output-format stream-json --input-format stream-json \
          --bare --max-budget-usd 2.00 --permission-mode acceptEdits --allow "Bash:cargo test*" --no-save)
        [ "$(echo "$LAST_RESULT" | jq -r '.subtype')" = "success" ]"#,
    );
    assert_eq!(ran.code, Some(0), "{} {}", ran.stdout, ran.stderr);
    assert_eq!(
        ran.stdout,
        "[init] model=anthropic/claude-sonnet-4-6\n[tool] Bash\n\
         [result] subtype=success tool_calls=1\n[result] subtype=success tool_calls=1\n"
    );
}

#[test]
fn exit_codes_tell_what_happened() {
    let looping = || Reply::tool("Read", json!({"path": "missing"})).times(9);
    let bench = Bench::new(Wire::Anthropic, Script::new([looping()]));
    let ran = script(
        &bench,
        r#"caliban --bare --max-turns 2 -p "summarize the diff" || {
          CODE=$?
          case $CODE in 75) echo "Max turns exceeded";; 137) echo "Budget cap hit";; *) echo "Error: exit $CODE";; esac
          exit $CODE
        }"#,
    );
    assert_eq!(
        (ran.code, ran.stdout.as_str()),
        (Some(75), "Max turns exceeded\n")
    );
}
