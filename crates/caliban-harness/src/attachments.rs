//! What a prompt names with `@path` or `@server:resource`: its content goes along.
//!
//! Only files of the workspace are attached, and none that rules or protected places close to
//! reading: a prompt may carry text of strangers, who must not be able to name a key file. What is
//! named and does not go along is said.

mod part;

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use caliban_agent::{Closed, ReadGuard, Workspace};
use caliban_images::{Scaling, ingest};
use caliban_model::{Block, Image, Message, Role, ToolContent};
use caliban_settings::variables::names;

use self::part::{Lines, listing};
use crate::choosing::further_directories;
use crate::configuration::Configuration;
use crate::error::{LaunchError, Problem};
use crate::options::RunOptions;
use crate::permissions::reading;

/// How much may go along.
#[derive(Debug, Clone, Copy)]
pub(crate) struct AttachmentLimits {
    /// Of one text.
    pub(crate) one: u64,
    /// Of all texts together.
    pub(crate) all: u64,
    /// Of an image as it is sent; a larger one is made smaller.
    pub(crate) images: caliban_images::Limits,
}

impl AttachmentLimits {
    pub(crate) const DEFAULT: Self = Self {
        one: 256 * 1024,
        all: 1024 * 1024,
        images: caliban_images::Limits::DEFAULT,
    };
}

/// What the prompts of a run may attach.
#[derive(Debug, Clone)]
pub struct Attachments {
    /// Where files may lie.
    workspace: Workspace,
    home: PathBuf,
    limits: AttachmentLimits,
    reading: Arc<dyn ReadGuard>,
}

impl Attachments {
    pub(crate) fn new(
        options: &RunOptions,
        configuration: &Configuration,
    ) -> Result<Self, LaunchError> {
        let environment = configuration.environment();
        let number = |option: Option<u64>, name, default: u64| match option {
            Some(number) => Ok(number),
            None => Ok::<_, LaunchError>(environment.number(name)?.unwrap_or(default)),
        };
        let default = AttachmentLimits::DEFAULT;
        let limits = AttachmentLimits {
            one: number(
                options.limits.max_attach_bytes,
                names::CALIBAN_MAX_ATTACH_BYTES,
                default.one,
            )?,
            all: number(
                options.limits.attach_budget_bytes,
                names::CALIBAN_ATTACH_BUDGET_BYTES,
                default.all,
            )?,
            images: configuration.image_limits(),
        };
        let workspace = Workspace::new(
            &configuration.workspace,
            &further_directories(&options.tools, configuration)?,
            Some(configuration.process.home.clone()),
            options.tools.confinement,
        );
        Ok(Self {
            workspace: workspace
                .map_err(Problem::from_error)
                .map_err(LaunchError::Configuration)?,
            home: configuration.process.home.clone(),
            limits,
            reading: reading(options, configuration)?,
        })
    }

    /// The same in the workspace of a session, whose directories may change.
    pub(crate) fn within(self, workspace: &Workspace) -> Self {
        Self {
            workspace: workspace.clone(),
            ..self
        }
    }

    /// How large images are sent.
    pub(crate) fn images(&self) -> caliban_images::Limits {
        self.limits.images
    }

    /// A prompt with the files that it names, before there is a session.
    pub fn with_files(&self, prompt: &str) -> Result<Attached, LaunchError> {
        self.attach(prompt, &*self.reading, &[])
    }

    /// The prompt with the files that it names and that may be read. What begins like one of
    /// `servers` is a resource of it.
    pub(crate) fn attach(
        &self,
        prompt: &str,
        reading: &dyn ReadGuard,
        servers: &[Arc<str>],
    ) -> Result<Attached, LaunchError> {
        let limits = self.limits;
        let mut blocks = vec![Block::text(prompt)];
        let mut notices = Notices::default();
        let mut total = 0;
        let mut attached: Vec<(PathBuf, Option<Lines>)> = Vec::new();
        for name in references(prompt) {
            if is_resource(name, servers).is_some() {
                continue;
            }
            let (name, file, lines) = match self.find(name) {
                Found::Inside(name, file, lines) => (name, file, lines),
                Found::Folder(name, folder) => {
                    match folder.listed(reading) {
                        Ok(Ok(listed)) if !attached.contains(&(folder.real.clone(), None)) => {
                            blocks.push(Block::text(format!(
                                "<folder path=\"{name}\">\n{listed}\n</folder>"
                            )));
                            attached.push((folder.real, None));
                        }
                        Ok(Ok(_)) => {}
                        Ok(Err(closed)) => {
                            notices.add(format!("`@{name}` does not go along: {closed}"));
                        }
                        Err(error) => {
                            notices.add(format!("`@{name}` does not go along: {error}"));
                        }
                    }
                    continue;
                }
                Found::Outside => {
                    notices.add(format!(
                        "`@{name}` is outside the workspace and does not go along; `--add-dir` adds its directory"
                    ));
                    continue;
                }
                Found::Nothing => {
                    notices.add(format!(
                        "`@{name}` names no file of the workspace; it is sent as text only"
                    ));
                    continue;
                }
            };
            if attached.contains(&(file.real.clone(), lines)) {
                continue;
            }
            let opened = match file.open(name, reading)? {
                Ok(opened) => opened,
                Err(closed) => {
                    notices.add(format!("`@{name}` does not go along: {closed}"));
                    continue;
                }
            };
            let block = if is_image(&file.real) {
                let (image, notice) = image(name, opened, limits.images)?;
                notices.texts.extend(notice);
                Block::Image(image)
            } else {
                let text = match lines {
                    Some(lines) => lines.of(name, opened, limits.one)?,
                    None => text(name, opened, limits.one)?,
                };
                total += text.len() as u64;
                if total > limits.all {
                    return Err(LaunchError::configuration(format!(
                        "the attachments of the prompt have more than {} bytes together; raise `--attach-budget-bytes` or name fewer",
                        limits.all
                    )));
                }
                Block::text(format!("<file path=\"{name}\">\n{text}\n</file>"))
            };
            blocks.push(block);
            attached.push((file.real, lines));
        }
        Ok(Attached {
            message: Message::new(Role::User, blocks),
            notices: notices.told(),
        })
    }

    /// Punctuation behind a name is not part of it.
    fn find<'a>(&self, name: &'a str) -> Found<'a> {
        let shorter =
            name.trim_end_matches([',', '.', ';', ':', '!', '?', ')', ']', '}', '\'', '"', '`']);
        let given = |name: &str| match name.strip_prefix("~/") {
            Some(rest) => self.home.join(rest),
            None => self.workspace.root().join(name),
        };
        let is_inside = |file: &NamedFile| {
            let additional = self.workspace.additional();
            let mut roots = std::iter::once(self.workspace.root())
                .chain(additional.iter().map(PathBuf::as_path));
            roots.any(|root| file.real.starts_with(root))
        };
        let of = |name: &str| {
            let given = given(name);
            let real = given.canonicalize().ok()?;
            Some(NamedFile { given, real })
        };
        let mut is_elsewhere = false;
        // A file may be called what looks like a range of lines.
        let ranged = [name, shorter].map(|shown| (shown, Lines::behind(shown)));
        let spellings = [(name, None), (shorter, None)].into_iter().chain(
            ranged
                .into_iter()
                .filter_map(|(shown, ranged)| Some((shown, Some(ranged?)))),
        );
        for (shown, ranged) in spellings {
            let path = ranged.map_or(shown, |(path, _)| path);
            if path.is_empty() {
                continue;
            }
            let Some(file) = of(path) else {
                continue;
            };
            let lines = ranged.map(|(_, lines)| lines);
            let (is_file, is_folder) = (file.real.is_file(), file.real.is_dir());
            match (is_inside(&file), lines) {
                (true, _) if is_file => return Found::Inside(shown, file, lines),
                (true, None) if is_folder => return Found::Folder(shown, file),
                (false, _) => is_elsewhere |= is_file || is_folder,
                (true, _) => {}
            }
        }
        if is_elsewhere {
            Found::Outside
        } else {
            Found::Nothing
        }
    }

    /// Reads the resources of servers that a prompt names, and sends them along. Returns what the
    /// user should know about those that do not.
    pub(crate) async fn add_resources(
        &self,
        typed: &str,
        reading: &dyn ReadGuard,
        servers: &caliban_mcp::Servers,
        message: &mut Message,
    ) -> Result<Vec<String>, LaunchError> {
        let names = server_names(servers);
        let mut notices = Notices::default();
        let mut total = 0;
        for reference in references(typed) {
            let Some((server, resource)) = is_resource(reference, &names) else {
                continue;
            };
            let (resource, args) = template_arguments(resource);
            let address = match servers.resource_address(server, resource, &args).await {
                Ok(address) => address,
                Err(error) => {
                    notices.add(as_text_only(reference, &error));
                    continue;
                }
            };
            if let Some(path) = address.file()
                && let Err(closed) = may_read(&path, reading)
            {
                notices.add(format!("`@{reference}` does not go along: {closed}"));
                continue;
            }
            let content = match servers.read_resource(server, &address).await {
                Ok(content) => content,
                Err(error) => {
                    notices.add(as_text_only(reference, &error));
                    continue;
                }
            };
            for part in content {
                let block = match part {
                    ToolContent::Text { text } => {
                        total += text.len() as u64;
                        if text.len() as u64 > self.limits.one || total > self.limits.all {
                            return Err(LaunchError::no_input(format!(
                                "`@{reference}` cannot be read: it is too large to be attached"
                            )));
                        }
                        Block::text(format!(
                            "<resource server=\"{server}\" name=\"{resource}\">\n{text}\n</resource>"
                        ))
                    }
                    ToolContent::Image(image) => Block::Image(image),
                };
                message.content.push(block);
            }
        }
        Ok(notices.told())
    }
}

pub(crate) fn server_names(servers: &caliban_mcp::Servers) -> Vec<Arc<str>> {
    servers.status().into_iter().map(|it| it.name).collect()
}

/// The server and its resource that a reference names.
fn is_resource<'a>(reference: &'a str, servers: &[Arc<str>]) -> Option<(&'a str, &'a str)> {
    let named = reference.split_once(':');
    named.filter(|(server, _)| servers.iter().any(|name| **name == **server))
}

/// Text of strangers may only look like the name of a resource, so none is needed for a prompt.
fn as_text_only(reference: &str, error: &caliban_mcp::McpError) -> String {
    format!("`@{reference}` is sent as text only: {error}")
}

/// Whether a file may be read that somebody else opens.
fn may_read(path: &Path, reading: &dyn ReadGuard) -> Result<(), Closed> {
    let real = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    reading.by_name(path, &real)?;
    match std::fs::metadata(&real) {
        Ok(meta) => reading.by_identity(&meta),
        Err(_) => Ok(()),
    }
}

/// How many notices about one prompt are told.
const MAX_NOTICES: usize = 5;

/// What the user should know about a prompt: text that was pasted may hold many things that only
/// look like names.
#[derive(Debug, Default)]
struct Notices {
    texts: Vec<String>,
    more: usize,
}

impl Notices {
    fn add(&mut self, text: String) {
        if self.texts.contains(&text) {
            return;
        }
        if self.texts.len() < MAX_NOTICES {
            self.texts.push(text);
        } else {
            self.more += 1;
        }
    }

    fn told(mut self) -> Vec<String> {
        if self.more > 0 {
            let more = self.more;
            self.texts
                .push(format!("{more} more names behind `@` do not go along"));
        }
        self.texts
    }
}

/// `name(a,b)` is a template with what fills its places.
fn template_arguments(resource: &str) -> (&str, Vec<String>) {
    match resource.strip_suffix(')').and_then(|it| it.split_once('(')) {
        Some((name, args)) => {
            let args = args.split(',').map(|arg| arg.trim().to_owned());
            (name, args.collect())
        }
        None => (resource, Vec::new()),
    }
}

/// A prompt with what it names.
#[derive(Debug)]
pub struct Attached {
    pub message: Message,
    /// What the user should know about it.
    pub notices: Vec<String>,
}

fn text(name: &str, file: File, most: u64) -> Result<String, LaunchError> {
    let remedy = "raise `--max-attach-bytes` or name a smaller file";
    let text = String::from_utf8(read(name, file, most, remedy)?);
    text.ok()
        .filter(|text| !text.contains('\0'))
        .ok_or_else(|| LaunchError::configuration(format!("`@{name}` is not a text file")))
}

fn image(
    name: &str,
    file: File,
    limits: caliban_images::Limits,
) -> Result<(Image, Option<String>), LaunchError> {
    let bytes = read(name, file, caliban_images::MAX_FILE, "make it smaller")?;
    let ingested = ingest(&bytes, limits)
        .map_err(|problem| LaunchError::configuration(format!("the image `@{name}` {problem}")))?;
    let notice = match (ingested.scaling, ingested.image.dims) {
        (Scaling::Downscaled { from }, Some(to)) => Some(format!(
            "`@{name}` is sent [downscaled] from {}x{} to {}x{} pixels",
            from.0, from.1, to.0, to.1
        )),
        (Scaling::Downscaled { .. } | Scaling::Kept, _) => None,
    };
    Ok((ingested.image, notice))
}

fn unreadable(name: &str, error: &std::io::Error) -> LaunchError {
    LaunchError::configuration(format!("`@{name}` cannot be read: {error}"))
}

fn read(name: &str, file: File, most: u64, remedy: &str) -> Result<Vec<u8>, LaunchError> {
    let unreadable = |error: std::io::Error| unreadable(name, &error);
    let mut bytes = Vec::new();
    let size = file.metadata().map_err(unreadable)?.len();
    file.take(most.saturating_add(1))
        .read_to_end(&mut bytes)
        .map_err(unreadable)?;
    if bytes.len() as u64 > most {
        return Err(LaunchError::configuration(format!(
            "`@{name}` has {size} bytes; at most {most} are attached: {remedy}"
        )));
    }
    Ok(bytes)
}

/// What looks like an image is taken as one; its bytes say which, and whether it can be sent.
fn is_image(path: &Path) -> bool {
    let extension = path.extension().and_then(|extension| extension.to_str());
    extension.is_some_and(|extension| {
        [
            "png", "jpg", "jpeg", "gif", "webp", "bmp", "tif", "tiff", "heic", "avif", "ico",
        ]
        .iter()
        .any(|known| extension.eq_ignore_ascii_case(known))
    })
}

/// Leaves out the images that the conversation holds already: they are sent with it anyway.
pub(crate) fn leave_out_known<'a>(
    message: &mut Message,
    earlier: impl IntoIterator<Item = &'a Message>,
) {
    let mut known: Vec<Image> = earlier
        .into_iter()
        .flat_map(|message| &message.content)
        .filter_map(|block| match block {
            Block::Image(image) => Some(image.clone()),
            _ => None,
        })
        .collect();
    for block in &mut message.content {
        if let Block::Image(image) = block {
            if known.iter().any(|known| known.source == image.source) {
                *block = Block::text("[an image that was shown before]");
            } else {
                known.push(image.clone());
            }
        }
    }
}

/// The names after each `@` that begins a word; `@"a b"` for names with blanks.
fn references(prompt: &str) -> impl Iterator<Item = &str> {
    prompt.match_indices('@').filter_map(|(at, _)| {
        let begins = prompt[..at]
            .chars()
            .next_back()
            .is_none_or(|before| before.is_whitespace() || "([{'\"`".contains(before));
        let rest = &prompt[at + 1..];
        let name = match rest.strip_prefix('"') {
            Some(quoted) => quoted.split('"').next().unwrap_or_default(),
            None => rest.split(char::is_whitespace).next().unwrap_or_default(),
        };
        (begins && !name.is_empty()).then_some(name)
    })
}

/// What a name means.
enum Found<'a> {
    /// A regular file of the workspace, the name without what is no part of it, and the lines of
    /// it that are meant where not all are.
    Inside(&'a str, NamedFile, Option<Lines>),
    /// A folder of the workspace.
    Folder(&'a str, NamedFile),
    /// Something elsewhere.
    Outside,
    Nothing,
}

/// A file that a prompt names.
struct NamedFile {
    given: PathBuf,
    /// With all links followed.
    real: PathBuf,
}

impl NamedFile {
    /// What is in it, where it is a folder and may be looked into.
    fn listed(&self, reading: &dyn ReadGuard) -> std::io::Result<Result<String, Closed>> {
        match reading.by_name(&self.given, &self.real) {
            Ok(()) => listing(&self.real).map(Ok),
            Err(closed) => Ok(Err(closed)),
        }
    }

    /// Opens it if it may be read.
    fn open(
        &self,
        name: &str,
        reading: &dyn ReadGuard,
    ) -> Result<Result<File, Closed>, LaunchError> {
        if let Err(closed) = reading.by_name(&self.given, &self.real) {
            return Ok(Err(closed));
        }
        let file = File::open(&self.real).map_err(|error| unreadable(name, &error))?;
        let meta = file.metadata().map_err(|error| unreadable(name, &error))?;
        Ok(reading.by_identity(&meta).map(|()| file))
    }
}

#[cfg(test)]
mod tests {
    use base64::Engine;
    use caliban_agent::{Confinement, OpenReading};

    use super::*;

    fn texts(message: &Message) -> Vec<String> {
        message
            .content
            .iter()
            .map(|block| match block {
                Block::Text { text, .. } => text.clone(),
                Block::Image(image) => image.mime.as_str().to_owned(),
                other => panic!("{other:?}"),
            })
            .collect()
    }

    fn attachments(root: &Path, limits: AttachmentLimits) -> Attachments {
        Attachments {
            workspace: Workspace::new(root, &[], None, Confinement::Open).unwrap(),
            home: root.join("home"),
            limits,
            reading: OpenReading::shared(),
        }
    }

    #[test]
    fn files_of_the_workspace_go_along_and_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap().join("w");
        std::fs::create_dir_all(&root).unwrap();
        std::fs::write(root.join("a.txt"), "alpha").unwrap();
        std::fs::write(root.join("b c.md"), "beta").unwrap();
        std::fs::write(root.join("p.png"), dot()).unwrap();
        std::fs::write(root.join("broken.png"), &dot()[..40]).unwrap();
        std::fs::write(folder.path().join("secret"), "s").unwrap();
        std::os::unix::fs::symlink("../secret", root.join("link")).unwrap();
        let attach = |prompt: &str, limits| attachments(&root, limits).with_files(prompt);
        let prompt =
            "see @a.txt, @a.txt and @\"b c.md\" (@p.png); mail me@a.txt @nobody @../secret @link";
        let attached = attach(prompt, AttachmentLimits::DEFAULT).unwrap();
        let told = attached.notices.join("\n");
        for name in ["@nobody", "@../secret", "@link"] {
            assert!(told.contains(name), "{told}");
        }
        assert_eq!(attached.notices.len(), 3, "{told}");
        assert_eq!(
            texts(&attached.message),
            [
                prompt,
                "<file path=\"a.txt\">\nalpha\n</file>",
                "<file path=\"b c.md\">\nbeta\n</file>",
                "image/png"
            ]
        );
        let limits = |one, all| AttachmentLimits {
            one,
            all,
            ..AttachmentLimits::DEFAULT
        };
        assert!(attach("@a.txt", limits(4, 100)).is_err());
        assert!(attach("@a.txt @\"b c.md\"", limits(100, 8)).is_err());
        assert!(attach("@a.txt @\"b c.md\"", limits(5, 9)).is_ok());
        let damaged = attach("@broken.png", AttachmentLimits::DEFAULT).unwrap_err();
        assert!(damaged.to_string().contains("damaged"), "{damaged}");
    }

    #[test]
    fn lines_and_folders_go_along() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap().join("w");
        std::fs::create_dir_all(root.join("src/inner")).unwrap();
        std::fs::write(root.join("src/a.txt"), "one\ntwo\nthree\nfour\n").unwrap();
        std::fs::write(root.join("b:2"), "whole").unwrap();
        let attach = |prompt: &str| {
            let attached = attachments(&root, AttachmentLimits::DEFAULT).with_files(prompt);
            let attached = attached.unwrap();
            assert_eq!(attached.notices, Vec::<String>::new());
            texts(&attached.message)[1..].to_vec()
        };
        let file = |name: &str, text: &str| format!("<file path=\"{name}\">\n{text}\n</file>");
        for (prompt, name, text) in [
            ("@src/a.txt:2-3.", "src/a.txt:2-3", "two\nthree"),
            ("@src/a.txt:4", "src/a.txt:4", "four"),
            ("@src/a.txt:3-90", "src/a.txt:3-90", "three\nfour"),
            // A file of this very name comes first.
            ("@b:2", "b:2", "whole"),
        ] {
            assert_eq!(attach(prompt), [file(name, text)], "{prompt}");
        }
        let listed = "<folder path=\"src/\">\na.txt\ninner/\n</folder>";
        assert_eq!(attach("what is in @src/ ?"), [listed]);
        let outside = attachments(&root, AttachmentLimits::DEFAULT).with_files("@..");
        assert!(outside.unwrap().notices[0].contains("outside the workspace"));
    }

    #[test]
    fn an_image_is_sent_once() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        std::fs::write(root.join("a.png"), dot()).unwrap();
        std::fs::write(root.join("b.png"), dot()).unwrap();
        let attached = || attachments(&root, AttachmentLimits::DEFAULT).with_files("@a.png @b.png");
        let mut first = attached().unwrap().message;
        leave_out_known(&mut first, []);
        let note = "[an image that was shown before]";
        assert_eq!(texts(&first)[1..], ["image/png", note]);
        let mut second = attached().unwrap().message;
        leave_out_known(&mut second, [&first]);
        assert_eq!(texts(&second)[1..], [note, note]);
    }

    /// A picture of one pixel.
    fn dot() -> Vec<u8> {
        base64::engine::general_purpose::STANDARD
            .decode("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==")
            .unwrap()
    }
}
