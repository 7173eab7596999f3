//! The page: a few files in the program as they are in its sources, and nothing from elsewhere.

use axum::extract::Request;
use axum::http::{Method, StatusCode, header};
use axum::response::{IntoResponse, Response};

/// A file of the page.
struct File {
    path: &'static str,
    kind: &'static str,
    text: &'static str,
}

const HTML: &str = "text/html; charset=utf-8";
const SCRIPT: &str = "text/javascript; charset=utf-8";
const STYLE: &str = "text/css; charset=utf-8";
const PICTURE: &str = "image/svg+xml";

macro_rules! files {
    ($($path:literal = $kind:ident $name:literal;)+) => {
        [$(File { path: $path, kind: $kind, text: include_str!(concat!("page/", $name)) }),+]
    };
}

const FILES: [File; 12] = files! {
    "/" = HTML "page.html";
    "/page/page.css" = STYLE "page.css";
    "/page/icon.svg" = PICTURE "icon.svg";
    "/page/main.js" = SCRIPT "main.js";
    "/page/api.js" = SCRIPT "api.js";
    "/page/composer.js" = SCRIPT "composer.js";
    "/page/diff.js" = SCRIPT "diff.js";
    "/page/dom.js" = SCRIPT "dom.js";
    "/page/markdown.js" = SCRIPT "markdown.js";
    "/page/questions.js" = SCRIPT "questions.js";
    "/page/sessions.js" = SCRIPT "sessions.js";
    "/page/transcript.js" = SCRIPT "transcript.js";
};

/// The paths of the page, which hold nothing of anybody's.
pub fn page_paths() -> impl Iterator<Item = &'static str> {
    FILES.iter().map(|file| file.path)
}

/// Whether a request is for the page itself.
pub(crate) fn is_wanted(request: &Request) -> bool {
    *request.method() == Method::GET && page_paths().any(|path| path == request.uri().path())
}

pub(crate) async fn file(request: Request) -> Response {
    let path = request.uri().path();
    match FILES.iter().find(|file| file.path == path) {
        Some(file) => ([(header::CONTENT_TYPE, file.kind)], file.text).into_response(),
        None => StatusCode::NOT_FOUND.into_response(),
    }
}
