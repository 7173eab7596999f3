//! Who answers: what flags before a command mean, and keys that nobody asks for.

use caliban_testkit::Checks;
use rstest::rstest;

use crate::support::run;
use crate::{answers, bench, plain, user};

#[rstest]
#[case::before(&["--provider", "openai", "models"])]
#[case::after(&["models", "--provider", "openai"])]
#[case::model(&["--model", "gpt-5.5", "models"])]
fn flags_before_a_command_count(#[case] words: &[&str]) {
    let bench = bench(answers());
    run(plain(&bench).args(words));
    let asked = bench.server.requests();
    assert!(!asked.is_empty());
    // Anthropic's requests carry its version.
    assert!(
        asked
            .iter()
            .all(|request| request.header("anthropic-version").is_none())
    );
}

#[rstest]
#[case("", &["--model", "gpt-4.1"], "/v1/chat/completions")]
#[case("[model]\nprovider = 'openai'\nname = 'gpt-4.1'", &["--model", "claude-opus-4-7"], "/v1/messages")]
#[case("", &["--model", "gpt-4.1", "--provider", "anthropic"], "/v1/messages")]
#[case("", &["--model", "gpt-oss:20b"], "/v1/messages")]
fn the_model_names_its_provider(
    #[case] settings: &str,
    #[case] flags: &[&str],
    #[case] path: &str,
) {
    let bench = bench(answers());
    user(&bench, settings);
    let ran = run(plain(&bench).args(["-p", "hi"]).args(flags));
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let request = bench.server.model_requests().pop().unwrap();
    assert_eq!(
        (request.path.as_str(), request.json()["model"].as_str()),
        (path, Some(flags[1]))
    );
    // A variable that names the provider decides.
    let ran = run(plain(&bench)
        .args(["-p", "hi", "--model", "gpt-4.1"])
        .env("CALIBAN_PROVIDER", "anthropic"));
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert_eq!(
        bench.server.model_requests().pop().unwrap().path,
        "/v1/messages"
    );
}

#[test]
fn the_model_of_a_flag_moves_a_session_to_its_provider() {
    let bench = bench(answers());
    let ask = |flags: &[&str]| {
        let ran = run(plain(&bench)
            .args(["-p", "hi", "--session", "s"])
            .args(flags));
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        bench.server.model_requests().pop().unwrap().path
    };
    assert_eq!(ask(&[]), "/v1/messages");
    assert_eq!(ask(&["--model", "gpt-4.1"]), "/v1/chat/completions");
    assert_eq!(ask(&[]), "/v1/chat/completions");
}

#[test]
fn a_key_is_needed_only_by_the_vendor() {
    let bench = bench(answers().checks(Checks::Keyless));
    for (model, key, base) in [
        ("claude-opus-4-7", "ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL"),
        ("gpt-4.1", "OPENAI_API_KEY", "OPENAI_BASE_URL"),
    ] {
        let ran = run(plain(&bench)
            .args(["-p", "hi", "--model", model])
            .env_remove(key));
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        let request = bench.server.model_requests().pop().unwrap();
        assert!(request.header("authorization").is_none() && request.header("x-api-key").is_none());
        let ran = run(plain(&bench)
            .args(["-p", "hi", "--model", model])
            .env_remove(key)
            .env_remove(base));
        assert_eq!(ran.code, Some(78), "{}", ran.stderr);
        assert!(ran.stderr.contains(key), "{}", ran.stderr);
    }
}
