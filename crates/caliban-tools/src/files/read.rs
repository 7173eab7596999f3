//! Read: shows a page of a text file, or an image.

use std::io::{BufReader, Cursor, Read};
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use caliban_agent::{Details, Effect, ToolContext, ToolOutput, ToolStatus, TypedTool, Workspace};
use caliban_model::{CancellationToken, Image, ImageMime, ImageSource, ToolContent};
use schemars::JsonSchema;
use serde::Deserialize;

use super::error::FileError;
use super::opener::{Opened, Place, Stoppable};
use super::pager::{End, Lines, Page, Rest, page};
use super::state::{FileState, Fingerprint, Seen};
use super::text::{Encoding, Fidelity, SAMPLE, binary_kind};
use super::{conflict_key_for, measure, on_disk};

/// Lines shown unless told otherwise.
const DEFAULT_LINES: u64 = 2000;
/// The largest file that is read whole; larger ones are streamed, page by page.
const WHOLE_LIMIT: u64 = 5_000_000;
/// Bytes read at a time from a file that is streamed.
const STREAM_BUFFER: usize = 64 * 1024;
/// The largest image that is passed on; it is made smaller on its way to the model.
const IMAGE_LIMIT: u64 = 64 * 1024 * 1024;

#[derive(Debug)]
pub struct ReadTool {
    state: Arc<FileState>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ReadInput {
    /// Absolute, or relative to the working directory.
    #[serde(alias = "file_path")]
    path: String,
    /// First line, from 1.
    #[serde(default)]
    offset: Option<u64>,
    /// Number of lines; 2000 if absent.
    #[serde(default)]
    limit: Option<u64>,
    /// Which pages of a document, where documents can be read.
    #[serde(default, rename = "pages")]
    #[schemars(skip)]
    _pages: Option<String>,
}

impl ReadTool {
    pub fn new(state: Arc<FileState>) -> Self {
        Self { state }
    }
}

impl TypedTool for ReadTool {
    type Input = ReadInput;

    const NAME: &'static str = "Read";
    const DESCRIPTION: &'static str = "Reads a text file as numbered lines, or shows an image \
        (png, jpeg, gif, webp). Long files come in pages: read on with offset. The line number \
        and the tab after it are not part of the file.";
    const EFFECT: Effect = Effect::ReadOnly;

    fn first_arg(&self, input: &ReadInput) -> Option<String> {
        Some(input.path.clone())
    }

    /// A read after an edit in the same turn must see the edit.
    fn conflict_key(&self, input: &ReadInput, workspace: &Workspace) -> Option<String> {
        conflict_key_for(&input.path, workspace)
    }

    /// A page is made obsolete by a newer reading of the same page only.
    fn supersession_key(&self, input: &ReadInput) -> Option<String> {
        let spelled: std::path::PathBuf = std::path::Path::new(&input.path).components().collect();
        let first = input.offset.unwrap_or(1).max(1);
        let limit = input.limit.unwrap_or(DEFAULT_LINES);
        Some(match (first, limit) {
            (1, DEFAULT_LINES) => spelled.display().to_string(),
            (first, limit) => format!("{}:{first}+{limit}", spelled.display()),
        })
    }

    async fn run(&self, input: ReadInput, context: ToolContext) -> ToolOutput {
        let state = Arc::clone(&self.state);
        on_disk(&context, move |site, stop| {
            if input.limit == Some(0) {
                return Err(FileError::Invalid("limit must be at least 1.".to_owned()));
            }
            let place = Place::to_read(site, &input.path)?;
            read(&place, &input, &state, stop)
        })
        .await
    }
}

/// The first bytes of a file: all of it, or a sample of one that is too large.
enum Head {
    Whole(Vec<u8>),
    Sample(Vec<u8>),
}

fn read(
    place: &Place,
    input: &ReadInput,
    state: &FileState,
    stop: &CancellationToken,
) -> Result<ToolOutput, FileError> {
    let opened = place.open()?;
    place.check_readable(&opened)?;
    let head = head(place, &opened, stop)?;
    let (Head::Whole(bytes) | Head::Sample(bytes)) = &head;
    let size = opened.meta.len().max(bytes.len() as u64);
    if let Some(mime) = ImageMime::sniff(bytes) {
        return image(place, &opened, bytes, mime, state, stop);
    }
    if let Some(kind) = binary_kind(bytes) {
        return Err(FileError::Unsuited(format!(
            "`{}` is {kind} ({}), which Read cannot show as text. Use Bash with a program that \
             understands it, such as `file`, `strings` or `xxd | head`.",
            place.shown,
            measure::size(size)
        )));
    }
    let wanted = Lines {
        first: input.offset.unwrap_or(1).max(1),
        limit: input.limit.unwrap_or(DEFAULT_LINES),
    };
    let encoding = Encoding::of(bytes);
    match head {
        Head::Whole(bytes) => {
            state.record(place.real(), Seen::Whole(Fingerprint::of(&bytes)));
            if bytes.len() == encoding.mark().len() {
                return Ok(ToolOutput::ok(format!("`{}` is empty.", place.shown)));
            }
            let shown = whole(&bytes, encoding, wanted)
                .map_err(|error| FileError::io("read", &place.shown, error))?;
            report(place, &shown, wanted, encoding, size)
        }
        Head::Sample(bytes) => {
            check_pageable(place, input, encoding, size)?;
            state.record(place.real(), Seen::Part(opened.stamp()));
            let mut start = Cursor::new(bytes);
            start.set_position(encoding.mark().len() as u64);
            let reader = BufReader::with_capacity(
                STREAM_BUFFER,
                start.chain(Stoppable::new(&opened.file, stop)),
            );
            let shown = page(reader, wanted, Rest::Skip)
                .map_err(|error| FileError::io("read", &place.shown, error))?;
            report(place, &shown, wanted, encoding, size)
        }
    }
}

/// Reads the file if it is small, else a sample. The size on record is not to be trusted: files
/// of the kernel claim to be empty, and files grow.
fn head(place: &Place, opened: &Opened, stop: &CancellationToken) -> Result<Head, FileError> {
    let limit = match opened.meta.len() {
        0..=WHOLE_LIMIT => WHOLE_LIMIT + 1,
        _ => SAMPLE as u64,
    };
    let mut bytes = Vec::new();
    Stoppable::new(&opened.file, stop)
        .take(limit)
        .read_to_end(&mut bytes)
        .map_err(|error| FileError::io("read", &place.shown, error))?;
    Ok(match limit {
        _ if bytes.len() as u64 == limit => Head::Sample(bytes),
        _ => Head::Whole(bytes),
    })
}

fn whole(bytes: &[u8], encoding: Encoding, wanted: Lines) -> std::io::Result<Page> {
    match encoding {
        Encoding::Utf8 | Encoding::Utf8Marked => {
            page(&bytes[encoding.mark().len()..], wanted, Rest::Count)
        }
        Encoding::Utf16Little | Encoding::Utf16Big => {
            let (text, fidelity) = encoding.decode(bytes);
            let mut page = page(text.as_bytes(), wanted, Rest::Count)?;
            page.fidelity = fidelity;
            Ok(page)
        }
    }
}

fn check_pageable(
    place: &Place,
    input: &ReadInput,
    encoding: Encoding,
    size: u64,
) -> Result<(), FileError> {
    let shown = &place.shown;
    let size = measure::size(size);
    match encoding {
        Encoding::Utf16Little | Encoding::Utf16Big => Err(FileError::Unsuited(format!(
            "`{shown}` is UTF-16 text of {size}, too large to read. Convert it with `iconv` in \
             Bash first."
        ))),
        Encoding::Utf8 | Encoding::Utf8Marked if input.offset.or(input.limit).is_none() => {
            Err(FileError::Unsuited(format!(
                "`{shown}` has {size}, too much to read at once. Read it in pages with offset \
                 and limit (offset 1, limit {DEFAULT_LINES}), or find the place with Grep."
            )))
        }
        Encoding::Utf8 | Encoding::Utf8Marked => Ok(()),
    }
}

/// The page, with a note on everything it does not show.
fn report(
    place: &Place,
    page: &Page,
    wanted: Lines,
    encoding: Encoding,
    size: u64,
) -> Result<ToolOutput, FileError> {
    if page.shown == 0
        && let End::Total(total) = page.end
    {
        return Err(FileError::Invalid(format!(
            "`{}` has only {}; offset {} is beyond its end.",
            place.shown,
            measure::count(total, "line"),
            wanted.first
        )));
    }
    let mut text = page.text.clone();
    let last = wanted.first + page.shown - 1;
    let mut note = |note: String| {
        text.push_str(&note);
        text.push('\n');
    };
    match page.end {
        End::Total(total) if last < total => note(format!(
            "(lines {}-{last} of {total}; read on with offset {})",
            wanted.first,
            last + 1
        )),
        End::Total(total) if wanted.first > 1 => {
            note(format!("(lines {}-{last} of {total})", wanted.first));
        }
        End::Total(_) => {}
        End::More => note(format!(
            "(lines {}-{last} of a file of {}; read on with offset {})",
            wanted.first,
            measure::size(size),
            last + 1
        )),
    }
    match encoding {
        Encoding::Utf8 | Encoding::Utf8Marked => {}
        Encoding::Utf16Little | Encoding::Utf16Big => {
            note("(the file is UTF-16; shown decoded)".to_owned());
        }
    }
    match page.fidelity {
        Fidelity::Exact => {}
        Fidelity::Replaced => {
            note("(bytes that are not valid text are shown as \u{fffd})".to_owned());
        }
    }
    Ok(ToolOutput::ok(text).with_details(Details::Page {
        path: place.real().display().to_string(),
        first: wanted.first,
        shown: page.shown,
        total: match page.end {
            End::Total(total) => Some(total),
            End::More => None,
        },
    }))
}

fn image(
    place: &Place,
    opened: &Opened,
    head: &[u8],
    mime: ImageMime,
    state: &FileState,
    stop: &CancellationToken,
) -> Result<ToolOutput, FileError> {
    let too_large = |size| {
        Err(FileError::Unsuited(format!(
            "`{}` is an image ({}) of {}; at most {} can be shown. Make a smaller copy first.",
            place.shown,
            mime.as_str(),
            measure::size(size),
            measure::size(IMAGE_LIMIT)
        )))
    };
    if opened.meta.len() > IMAGE_LIMIT {
        return too_large(opened.meta.len());
    }
    let mut bytes = head.to_vec();
    Stoppable::new(&opened.file, stop)
        .take(IMAGE_LIMIT + 1 - bytes.len() as u64)
        .read_to_end(&mut bytes)
        .map_err(|error| FileError::io("read", &place.shown, error))?;
    let size = bytes.len() as u64;
    if size > IMAGE_LIMIT {
        return too_large(size);
    }
    state.record(place.real(), Seen::Whole(Fingerprint::of(&bytes)));
    let text = format!(
        "`{}` is an image ({}, {}).",
        place.shown,
        mime.as_str(),
        measure::size(size)
    );
    Ok(ToolOutput::of(
        ToolStatus::Ok,
        vec![
            ToolContent::Text { text },
            ToolContent::Image(Image {
                mime,
                dims: None,
                source: ImageSource::Base64 {
                    data: STANDARD.encode(&bytes).into(),
                },
            }),
        ],
    ))
}
