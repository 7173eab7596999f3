//! The resources.

use std::fmt::Write as _;

use axum::Router;
use axum::extract::{DefaultBodyLimit, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::middleware::from_fn;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use caliban_serve::{
    Action, Answer, Blob, Cancel, Close, Code, Content, Decision, Done, Effort, MediaType, Open,
    Problem, Purge, Queue, Scope, Send, Sent, SentState, Set, TabState, Wish,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::Server;
use crate::extract::{Bytes, Json, MaybeJson, Path, Query};
use crate::guard::{COOKIE, HELD_BACK, has_failed_often};
use crate::paging::{Page, Paging};
use crate::problem::Refusal;
use crate::{body, document, events, page, page_paths};

/// The largest body with a token.
const LOGIN: usize = 4 * 1024;

pub(crate) type Answered = Result<Response, Refusal>;

/// Every path there is.
pub(crate) fn routes() -> Router<Server> {
    let page = page_paths().fold(Router::new(), |router, path| {
        router.route(path, get(page::file))
    });
    page.route("/healthz", get(health))
        .route("/v1/openapi.json", get(openapi))
        .route("/v1/events", get(events::states))
        .route("/v1/ws", get(events::states_socket))
        .route("/v1/models", get(models))
        .route("/v1/saved", get(saved))
        .route("/v1/sessions", get(list).post(open))
        .route("/v1/sessions/{id}", get(show).patch(change).delete(close))
        .route("/v1/sessions/{id}/prompts", get(prompts).post(prompt))
        .route(
            "/v1/sessions/{id}/prompts/{prompt}",
            get(standing).delete(cancel),
        )
        .route("/v1/sessions/{id}/interrupt", post(interrupt))
        .route("/v1/sessions/{id}/questions", get(questions))
        .route("/v1/sessions/{id}/questions/{question}", post(answer))
        .route("/v1/sessions/{id}/messages", get(messages))
        .route("/v1/sessions/{id}/blobs", post(upload))
        .route("/v1/sessions/{id}/blobs/{digest}", get(blob))
        .route("/v1/sessions/{id}/events", get(events::stream))
        .route("/v1/sessions/{id}/ws", get(events::socket))
        .fallback(nothing)
        .method_not_allowed_fallback(not_that)
        .layer(DefaultBodyLimit::max(body::LARGEST))
        .layer(from_fn(body::idle))
        // Strangers come here, too.
        .merge(
            Router::new()
                .route("/v1/login", post(login))
                .method_not_allowed_fallback(not_that)
                .layer(DefaultBodyLimit::max(LOGIN))
                .layer(from_fn(body::whole)),
        )
}

async fn nothing() -> Refusal {
    Refusal::new(
        StatusCode::NOT_FOUND,
        "no_such_path",
        "there is nothing at this path",
    )
}

async fn not_that() -> Refusal {
    Refusal::new(
        StatusCode::METHOD_NOT_ALLOWED,
        "method_not_allowed",
        "this cannot be done at this path",
    )
}

async fn health() -> Response {
    axum::Json(json!({"ok": true})).into_response()
}

async fn openapi() -> Response {
    axum::Json(document::openapi()).into_response()
}

/// The token that a page was opened with.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Login {
    token: String,
}

async fn login(State(server): State<Server>, Json(login): Json<Login>) -> Answered {
    let Some(cookie) = server.access.log_in(&login.token) else {
        if has_failed_often() {
            tokio::time::sleep(HELD_BACK).await;
        }
        let (status, code) = (StatusCode::UNAUTHORIZED, "unauthorized");
        return Err(Refusal::new(
            status,
            code,
            "this is not the token of the server",
        ));
    };
    let cookie = format!("{COOKIE}={cookie}; {}", server.access.cookie_attributes());
    let mut response = StatusCode::NO_CONTENT.into_response();
    if let Ok(cookie) = HeaderValue::from_str(&cookie) {
        response.headers_mut().insert(header::SET_COOKIE, cookie);
    }
    Ok(response)
}

/// Does something and makes a response of what came of it.
async fn done(server: &Server, status: StatusCode, wish: Wish) -> Answered {
    let bad = |reason: String| Problem::new(Code::BadRequest, reason);
    wish.check().map_err(bad)?;
    Ok((status, axum::Json(server.registry.ask(wish).await?)).into_response())
}

async fn list(State(server): State<Server>, Query(paging): Query<Paging>) -> Answered {
    let Page { items, cursor } = paging.of(server.registry.views(), |view| view.tab.as_str())?;
    Ok(axum::Json(json!({"sessions": items, "cursor": cursor})).into_response())
}

/// Sessions that can be gone on with, the newest first.
async fn saved(State(server): State<Server>, Query(paging): Query<Paging>) -> Answered {
    let saved = server.registry.saved().await?;
    let Page { items, cursor } = paging.of(saved, |saved| saved.session.as_str())?;
    Ok(axum::Json(json!({"sessions": items, "cursor": cursor})).into_response())
}

async fn models(State(server): State<Server>) -> Answered {
    let models = server.registry.models().await?;
    Ok(axum::Json(json!({"models": models})).into_response())
}

/// What is worked on and what waits, with what it says.
async fn prompts(State(server): State<Server>, Path(tab): Path<String>) -> Answered {
    let prompts = server.registry.prompts(&tab).await?;
    Ok(axum::Json(json!({"prompts": prompts})).into_response())
}

async fn open(State(server): State<Server>, Json(open): Json<Open>) -> Answered {
    let wish = Wish::Open(Box::new(open));
    let bad = |reason: String| Problem::new(Code::BadRequest, reason);
    wish.check().map_err(bad)?;
    let done = server.registry.ask(wish).await?;
    let (status, place) = match &done {
        // Nothing was made: it is joined.
        Done::Opened(opened) if opened.existing => (StatusCode::OK, None),
        Done::Opened(opened) => (StatusCode::CREATED, place(&opened.view.tab)),
        _ => (StatusCode::CREATED, None),
    };
    let mut response = (status, axum::Json(done)).into_response();
    if let Some(place) = place {
        response.headers_mut().insert(header::LOCATION, place);
    }
    Ok(response)
}

/// Where a session is found.
fn place(tab: &str) -> Option<HeaderValue> {
    let mut place = "/v1/sessions/".to_owned();
    for byte in tab.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            place.push(char::from(byte));
        } else {
            // Writing to a text cannot fail.
            let _ = write!(place, "%{byte:02X}");
        }
    }
    HeaderValue::from_str(&place).ok()
}

async fn show(State(server): State<Server>, Path(tab): Path<String>) -> Answered {
    Ok(axum::Json(server.registry.view(&tab)?).into_response())
}

/// What shall be otherwise.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Change {
    /// What the session is called from now on; while nothing is worked on.
    #[serde(default)]
    name: Option<String>,
    #[serde(default)]
    model: Option<String>,
    /// A permission mode.
    #[serde(default)]
    mode: Option<String>,
    #[serde(default)]
    effort: Option<Effort>,
}

async fn change(
    State(server): State<Server>,
    Path(tab): Path<String>,
    Json(change): Json<Change>,
) -> Answered {
    let is_only_name = change.model.is_none() && change.mode.is_none() && change.effort.is_none();
    if let Some(name) = &change.name {
        rename(&server, &tab, name).await?;
        if is_only_name {
            return Ok(axum::Json(server.registry.view(&tab)?).into_response());
        }
    }
    let mode = change
        .mode
        .map(|mode| serde_json::from_value(Value::String(mode)))
        .transpose();
    let set = Set {
        tab: tab.clone(),
        model: change.model,
        mode: mode.map_err(|error| Problem::new(Code::BadRequest, error.to_string()))?,
        effort: change.effort,
    };
    done(&server, StatusCode::OK, Wish::Set(set)).await?;
    Ok(axum::Json(server.registry.view(&tab)?).into_response())
}

/// Calls a session something else. It does that itself, by the command that everybody has for it.
async fn rename(server: &Server, tab: &str, name: &str) -> Result<(), Refusal> {
    let bad = |reason: &str| Problem::new(Code::BadRequest, reason);
    if name.trim().is_empty() || name.chars().any(char::is_control) {
        return Err(bad("`name` must be a line of text").into());
    }
    match server.registry.view(tab)?.state {
        TabState::Idle => {}
        TabState::Ended | TabState::Dead => {
            return Err(Problem::new(Code::Ended, "the session has ended").into());
        }
        TabState::Connecting | TabState::Running | TabState::Waiting => {
            let reason = "something is worked on; a session is renamed when that is done";
            return Err(Problem::new(Code::Busy, reason).into());
        }
    }
    let wish = Wish::Send(Send {
        tab: tab.to_owned(),
        request: None,
        content: Content::Text(format!("/rename {name}")),
    });
    let Done::Sent(sent) = server.registry.ask(wish).await? else {
        return Ok(());
    };
    let Done::Sent(ended) = server.registry.result_of(tab, &sent.request).await? else {
        return Ok(());
    };
    let result = ended.result.unwrap_or_default();
    if result["is_error"] == true {
        let reason = result["error"].as_str().unwrap_or("it was not renamed");
        return Err(bad(reason).into());
    }
    Ok(())
}

#[derive(Debug, Default, Deserialize)]
pub(crate) struct Closing {
    #[serde(default)]
    purge: bool,
}

async fn close(
    State(server): State<Server>,
    Path(tab): Path<String>,
    Query(closing): Query<Closing>,
) -> Answered {
    let session = if closing.purge {
        Purge::Remove
    } else {
        Purge::Keep
    };
    done(&server, StatusCode::OK, Wish::Close(Close { tab, session })).await
}

/// Something to work on.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct NewPrompt {
    /// Names this piece of work in its session: the same one is worked on once.
    #[serde(default)]
    request_id: Option<String>,
    content: Content,
}

#[derive(Debug, Default, Deserialize)]
pub(crate) struct Waiting {
    #[serde(default)]
    wait: bool,
}

async fn prompt(
    State(server): State<Server>,
    Path(tab): Path<String>,
    Query(Waiting { wait }): Query<Waiting>,
    Json(NewPrompt {
        request_id: request,
        content,
    }): Json<NewPrompt>,
) -> Answered {
    let wish = Wish::Send(Send {
        tab: tab.clone(),
        request,
        content,
    });
    wish.check()
        .map_err(|reason| Problem::new(Code::BadRequest, reason))?;
    let mut sent = server.registry.ask(wish).await?;
    let Done::Sent(standing) = &sent else {
        return Ok(axum::Json(sent).into_response());
    };
    let mut status = if standing.duplicate {
        StatusCode::OK
    } else {
        StatusCode::ACCEPTED
    };
    if wait && standing.state != SentState::Ended {
        sent = server
            .registry
            .result_of(&tab, &standing.request.clone())
            .await?;
        status = StatusCode::OK;
    }
    Ok(prompted(status, sent))
}

/// A prompt as a resource.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Prompt {
    id: String,
    /// The same.
    request_id: String,
    #[serde(flatten)]
    standing: Sent,
}

/// Answers with a prompt as a resource.
fn prompted(status: StatusCode, done: Done) -> Response {
    match done {
        Done::Sent(standing) => {
            let id = standing.request.clone();
            let prompt = Prompt {
                request_id: id.clone(),
                id,
                standing: *standing,
            };
            (status, axum::Json(prompt)).into_response()
        }
        other => (status, axum::Json(other)).into_response(),
    }
}

async fn standing(
    State(server): State<Server>,
    Path((tab, request)): Path<(String, String)>,
    Query(Waiting { wait }): Query<Waiting>,
) -> Answered {
    let found = if wait {
        server.registry.result_of(&tab, &request).await?
    } else {
        server.registry.standing(&tab, &request).await?
    };
    Ok(prompted(StatusCode::OK, found))
}

async fn cancel(
    State(server): State<Server>,
    Path((tab, request)): Path<(String, String)>,
) -> Answered {
    let cancel = Cancel {
        tab,
        request: Some(request),
        queue: Queue::Keep,
    };
    done(&server, StatusCode::OK, Wish::Cancel(cancel)).await
}

/// What is stopped beside what is worked on.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Interrupting {
    queue: Queue,
}

async fn interrupt(
    State(server): State<Server>,
    Path(tab): Path<String>,
    MaybeJson(Interrupting { queue }): MaybeJson<Interrupting>,
) -> Answered {
    let cancel = Cancel {
        tab,
        request: None,
        queue,
    };
    done(&server, StatusCode::OK, Wish::Cancel(cancel)).await
}

async fn questions(State(server): State<Server>, Path(tab): Path<String>) -> Answered {
    let view = server.registry.view(&tab)?;
    Ok(axum::Json(json!({"questions": view.questions})).into_response())
}

/// An answer: one of the options, or the words of the line protocol.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct NewAnswer {
    option: Option<AnswerOption>,
    decision: Option<Decision>,
    scope: Scope,
    reason: Option<String>,
    input: Option<Value>,
    action: Option<Action>,
    content: Option<Value>,
}

#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum AnswerOption {
    Allow,
    /// This one and those like it, for the rest of the session.
    AllowSession,
    Deny,
}

async fn answer(
    State(server): State<Server>,
    Path((tab, question)): Path<(String, String)>,
    Json(given): Json<NewAnswer>,
) -> Answered {
    let (decision, scope) = match given.option {
        Some(AnswerOption::Allow) => (Some(Decision::Allow), Scope::Once),
        Some(AnswerOption::AllowSession) => (Some(Decision::Allow), Scope::Session),
        Some(AnswerOption::Deny) => (Some(Decision::Deny), Scope::Once),
        None => (given.decision, given.scope),
    };
    let answer = Answer {
        tab,
        question,
        decision,
        scope,
        reason: given.reason,
        input: given.input,
        action: given.action,
        content: given.content,
    };
    done(&server, StatusCode::OK, Wish::Answer(answer)).await
}

/// Which messages are wanted.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct Wanted {
    /// Where an earlier page said that it goes on.
    after: Option<usize>,
    limit: Option<usize>,
}

/// Messages in a page, unless fewer are asked for.
const MESSAGES: usize = 256;

async fn messages(
    State(server): State<Server>,
    Path(tab): Path<String>,
    Query(wanted): Query<Wanted>,
) -> Answered {
    let most = wanted.limit.unwrap_or(MESSAGES).clamp(1, MESSAGES);
    let from = wanted.after.unwrap_or(0);
    let page = server.registry.messages(&tab, from, most).await?;
    let next = page.next;
    Ok(axum::Json(json!({"messages": page.messages, "next": next})).into_response())
}

/// Keeps a picture, which the next prompts can show by its digest.
async fn upload(
    State(server): State<Server>,
    Path(tab): Path<String>,
    headers: HeaderMap,
    Bytes(body): Bytes,
) -> Answered {
    server.registry.view(&tab)?;
    let kind = headers.get(header::CONTENT_TYPE);
    let kind = kind.and_then(|kind| kind.to_str().ok());
    let Some(media_type) = kind.and_then(MediaType::named) else {
        return Err(Refusal::new(
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            "no_picture",
            "only PNG, JPEG, GIF and WebP can be uploaded",
        ));
    };
    if body.is_empty() || body.len() > PICTURE {
        return Err(Refusal::new(
            StatusCode::PAYLOAD_TOO_LARGE,
            "too_large",
            format!("a picture has 1 to {PICTURE} bytes"),
        ));
    }
    let bytes = body.len();
    let digest = server.registry.upload(Blob {
        media_type,
        bytes: body.to_vec().into(),
    });
    let uploaded = json!({"digest": digest, "media_type": media_type, "bytes": bytes});
    Ok((StatusCode::CREATED, axum::Json(uploaded)).into_response())
}

/// The largest picture.
const PICTURE: usize = 20 * 1024 * 1024;

async fn blob(
    State(server): State<Server>,
    Path((tab, digest)): Path<(String, String)>,
) -> Answered {
    match server.registry.blob(&tab, &digest).await? {
        // It is one of four kinds of pictures, whatever its bytes are.
        Some(blob) => {
            let kind = [(header::CONTENT_TYPE, blob.media_type.as_str())];
            Ok((kind, blob.bytes.to_vec()).into_response())
        }
        None => Err(Refusal::new(
            StatusCode::NOT_FOUND,
            "no_such_blob",
            "there is no picture of this digest",
        )),
    }
}
