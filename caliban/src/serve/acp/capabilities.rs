//! What both sides say of themselves when they meet.

use caliban_harness::{Process, RunOptions, configure, provider};
use caliban_model::ProviderKind;
use caliban_protocol::acp::v1::{
    AgentAuthCapabilities, AgentCapabilities, AuthMethod, AuthMethodTerminal, ClientCapabilities,
    ElicitationCapabilities, Implementation, InitializeRequest, InitializeResponse,
    LogoutCapabilities, McpCapabilities, PromptCapabilities,
    SessionAdditionalDirectoriesCapabilities, SessionCapabilities, SessionCloseCapabilities,
    SessionDeleteCapabilities, SessionListCapabilities, SessionResumeCapabilities,
};
use caliban_protocol::acp::{ProtocolVersion, Taken, Wishes};

/// What the client understands.
#[derive(Debug, Clone, Copy)]
pub(super) struct Client {
    pub(super) wishes: Wishes,
    /// Whether it shows forms on behalf of servers.
    pub(super) forms: Taken,
    /// Whether it runs us in a terminal to log in.
    terminal: Taken,
}

impl Client {
    pub(super) fn new(request: &InitializeRequest) -> Self {
        let capabilities: &ClientCapabilities = &request.client_capabilities;
        let session = capabilities.session.as_ref();
        let elicitation = capabilities.elicitation.as_ref();
        Self {
            wishes: Wishes {
                notices: taken(session.is_some_and(|it| it.notices.is_some())),
                compaction: taken(session.is_some_and(|it| it.compaction.is_some())),
            },
            forms: taken(elicitation.is_some_and(ElicitationCapabilities::supports_form)),
            terminal: taken(capabilities.auth.terminal),
        }
    }
}

fn taken(is_taken: bool) -> Taken {
    if is_taken { Taken::Yes } else { Taken::No }
}

/// What we can do, for this client. The version is ours, whichever it asked for: one that cannot
/// speak it goes away.
pub(super) fn introduction(
    client: Client,
    options: &RunOptions,
    process: &Process,
) -> InitializeResponse {
    let chosen = chosen(options, process);
    // Who answers may still change, so what cannot be told is not ruled out.
    let sees = chosen
        .as_ref()
        .is_none_or(|(kind, model)| caliban_model::capabilities(kind.as_str(), model).vision);
    let session = SessionCapabilities::new()
        .list(SessionListCapabilities::new())
        .delete(SessionDeleteCapabilities::new())
        .additional_directories(SessionAdditionalDirectoriesCapabilities::new())
        .resume(SessionResumeCapabilities::new())
        .close(SessionCloseCapabilities::new());
    let capabilities = AgentCapabilities::new()
        .load_session(true)
        .prompt_capabilities(PromptCapabilities::new().image(sees).embedded_context(true))
        .mcp_capabilities(McpCapabilities::new().http(true).sse(true))
        .session_capabilities(session)
        .auth(AgentAuthCapabilities::new().logout(LogoutCapabilities::new()));
    let version = env!("CARGO_PKG_VERSION");
    InitializeResponse::new(ProtocolVersion::V1)
        .agent_capabilities(capabilities)
        .agent_info(Implementation::new("caliban", version).title("Caliban"))
        .auth_methods(methods(client, chosen.map(|(kind, _)| kind)))
}

/// Who would answer with which model; nothing where the configuration cannot be read.
fn chosen(options: &RunOptions, process: &Process) -> Option<(ProviderKind, String)> {
    let configuration = configure(options, process.clone()).ok()?;
    let named = options.model.model.as_deref();
    let kind = provider::kind(options.model.provider, named, &configuration).ok()?;
    let model = provider::model(named, kind, &configuration);
    Some((kind, model))
}

/// A key is given in a terminal, where the client has one to offer.
fn methods(client: Client, kind: Option<ProviderKind>) -> Vec<AuthMethod> {
    let needs_key = kind.is_none_or(|kind| !kind.key_variables().is_empty());
    if client.terminal == Taken::No || !needs_key {
        return Vec::new();
    }
    let method = AuthMethodTerminal::new("key", "Give a provider's key")
        .description("Asks for the key and keeps it where only you can read it.")
        .args(vec!["--login".to_owned()]);
    vec![AuthMethod::Terminal(method)]
}
