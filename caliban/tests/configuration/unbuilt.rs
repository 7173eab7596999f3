//! What is set in vain is said, and refused where somebody would rely on it.

use rstest::rstest;

use crate::support::run;
use crate::{answers, bench, plain, project, runs_command, user, warnings, write};

const ROUTES: &str = "[[router.route]]\npurpose = 'main_loop'\nprovider = 'ollama'\n\
                      model = 'llama3.1'\n";

#[rstest]
#[case::plugins(
    "strict_plugin_only_customization = true",
    "`strict_plugin_only_customization`: this version has no plugins"
)]
fn a_key_that_is_relied_on_refuses_the_run(#[case] settings: &str, #[case] said: &str) {
    let bench = bench(runs_command("touch ran"));
    user(&bench, settings);
    let ran = run(plain(&bench).args(["-p", "hi", "--allow", "Bash"]));
    assert_eq!(ran.code, Some(78), "{}", ran.stderr);
    assert!(ran.stderr.contains(said), "{}", ran.stderr);
    assert!(bench.server.model_requests().is_empty());
    // Looking at the settings is still possible, and a flag lifts what is above it.
    let shown = run(plain(&bench).args(["config", "print"]));
    assert_eq!(shown.code, Some(0), "{}", shown.stderr);
    let overlay = r#"{"strict_plugin_only_customization": false}"#;
    let ran = run(plain(&bench).args(["-p", "hi", "--settings", overlay]));
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
}

/// Whoever wrote them does not expect prompts elsewhere, and whoever runs them not there.
#[test]
fn routes_of_a_project_that_is_not_trusted_are_not_passed_over() {
    let file = bench(answers());
    write(&file.workspace.path().join("caliban.toml"), ROUTES);
    let setting = bench(answers());
    project(&setting, ROUTES);
    for bench in [file, setting] {
        let ran = run(plain(&bench).args(["-p", "hi"]));
        assert_eq!(ran.code, Some(78), "{}", ran.stderr);
        assert!(ran.stderr.contains("is not trusted"), "{}", ran.stderr);
        assert!(ran.stderr.contains("caliban trust"), "{}", ran.stderr);
        assert!(bench.server.model_requests().is_empty());
    }
}

#[test]
fn every_other_key_is_told_by_its_part() {
    let bench = bench(answers());
    let told = warnings(plain(&bench).args(["--setting-sources", "user"]));
    assert_eq!(told, Vec::<String>::new());
    user(
        &bench,
        "agent = 'a'\neditor_mode = 'vim'\n\
         status_line = { command = 's' }\n[plugins]\nenabled = ['p']\n",
    );
    assert_eq!(
        warnings(&mut plain(&bench)),
        [
            "`agent` is set and has no effect: this version has no agent profiles",
            "`plugins.enabled` is set and has no effect: this version has no plugins",
        ]
    );
}

#[test]
fn variables_of_parts_that_are_not_there_are_told_too() {
    let bench = bench(answers());
    let told = warnings(
        plain(&bench)
            .env("CALIBAN_ENABLED_PLUGINS", "a")
            // These ask for what is so anyway, or are meant for others.
            .env("CALIBAN_NO_PLUGINS", "1")
            .env("DO_NOT_TRACK", "1")
            .env("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:1"),
    );
    assert_eq!(
        told,
        ["`CALIBAN_ENABLED_PLUGINS` is set and has no effect: this version has no plugins",]
    );
    let strict = "CALIBAN_STRICT_PLUGIN_ONLY_CUSTOMIZATION";
    let ran = run(plain(&bench).args(["-p", "hi"]).env(strict, "1"));
    assert_eq!(ran.code, Some(78), "{}", ran.stderr);
    assert!(ran.stderr.contains(strict), "{}", ran.stderr);
}
