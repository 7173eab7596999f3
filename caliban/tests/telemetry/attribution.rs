//! Of whom what was consumed is told: of the model that answered, and once.

use std::fs;
use std::process::Command;

use caliban_testkit::{ErrorKind, Fault, Reply, Script};
use serde_json::{Value, json};

use crate::exported::{tells, told};
use crate::receiver::{Told, attribute};
use crate::support::{Bench, Ran, Wire, bare, run};

/// A bench whose routes are in the user's `caliban.toml`.
fn bench(routes: &str, replies: impl IntoIterator<Item = Reply>) -> (Bench, Command) {
    let bench = Bench::new(Wire::Anthropic, Script::new(replies));
    let folder = bench.home.path().join(".config/caliban");
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("caliban.toml"), routes).unwrap();
    let url = bench.server.url();
    let mut command = bare(bench.home.path(), bench.workspace.path());
    command
        .envs(Wire::Anthropic.variables(&url))
        .envs(Wire::Ollama.variables(&url))
        .args(["-p", "hi", "--output-format", "json"]);
    tells(&mut command);
    (bench, command)
}

fn route(purpose: &str, provider: &str, model: &str) -> String {
    format!("[[router.route]]\npurpose = '{purpose}'\nprovider = '{provider}'\nmodel = '{model}'\n")
}

/// What was told, and that its sums are those of the result.
fn summed(ran: &Ran) -> Told {
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let result: Value = serde_json::from_str(ran.stdout.lines().last().unwrap()).unwrap();
    let told = told(&ran.stderr);
    for (kind, field) in [("input", "input_tokens"), ("output", "output_tokens")] {
        let sum = told.sum("caliban.token.usage", &[("type", kind)]);
        assert_eq!(sum, result["usage"][field].as_f64().unwrap(), "{kind}");
    }
    let cost = told.sum("caliban.cost.usage", &[]);
    let expected = result["total_cost_usd"].as_f64().unwrap();
    assert!((cost - expected).abs() < 1e-9, "{cost} {expected}");
    let rest = told.sum("caliban.token.usage", &[("query_source", "auxiliary")]);
    assert_eq!(rest, 0.0);
    told
}

/// The models that requests were told of.
fn models(told: &Told) -> Vec<String> {
    let requests = told.events("api_request");
    let models = requests.map(|record| {
        let of = |name| attribute(record, name).unwrap_or_default();
        format!("{}/{}", of("provider"), of("model"))
    });
    models.collect()
}

#[test]
fn an_answer_of_another_route_is_told_of_that_route() {
    let routes = route("main_loop", "anthropic", "claude-sonnet-4-6")
        + &route("main_loop", "ollama", "llama3.1");
    let gone = Reply::fault(Fault::status_of(404, ErrorKind::ModelNotFound));
    let write = Reply::tool("Write", json!({"path": "a.rs", "content": "fn a() {}\n"}));
    let (_bench, mut command) = bench(&routes, [gone, write, Reply::text("Done.")]);
    let told = summed(&run(command.arg("--auto-allow")));
    assert_eq!(models(&told), ["ollama/llama3.1", "ollama/llama3.1"]);
    let of = |name, value| told.sum("caliban.token.usage", &[(name, value)]);
    assert_eq!(of("model", "claude-sonnet-4-6"), 0.0);
    assert!(of("provider", "ollama") > 0.0);
    let lines = told.sum("caliban.lines_of_code.count", &[("model", "llama3.1")]);
    assert_eq!(lines, 1.0);
    let spans: Vec<&Value> = told
        .spans()
        .filter(|span| span["name"] == "chat llama3.1")
        .collect();
    assert_eq!(spans.len(), 2);
    for span in spans {
        assert_eq!(attribute(span, "gen_ai.provider.name"), Some("ollama"));
        assert_eq!(attribute(span, "gen_ai.request.model"), Some("llama3.1"));
    }
}

#[test]
fn a_sub_agent_is_told_of_with_the_model_of_its_route() {
    let routes = route("main_loop", "anthropic", "claude-sonnet-4-6")
        + &route("sub_agent", "ollama", "llama3.1");
    let call = Reply::tool("AgentTool", json!({"description": "x", "prompt": "look"}));
    let replies = [call, Reply::text("Found."), Reply::text("Done.")];
    let (_bench, mut command) = bench(&routes, replies);
    let told = summed(&run(&mut command));
    let [main, sub] = ["anthropic/claude-sonnet-4-6", "ollama/llama3.1"];
    assert_eq!(models(&told), [main, sub, main]);
    let of = |source| {
        let of = [("query_source", source), ("provider", "ollama")];
        told.sum("caliban.token.usage", &of)
    };
    assert_eq!(of("main"), 0.0);
    assert!(of("subagent") > 0.0);
    let sub = told
        .spans()
        .find(|span| span["name"] == "invoke_agent subagent")
        .unwrap();
    assert_eq!(attribute(sub, "gen_ai.request.model"), Some("llama3.1"));
}
