//! What a prompt names with `@path` or `@server:resource`: its content goes along.
//!
//! Only files of the workspace are attached: a prompt may carry text of strangers, who must not be
//! able to name a key file.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use caliban_images::{Scaling, ingest};
use caliban_model::{Block, Image, Message, Role, ToolContent};
use caliban_settings::variables::names;

use crate::choosing::further_directories;
use crate::configuration::Configuration;
use crate::error::{LaunchError, Problem};
use crate::options::RunOptions;

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
    /// Where files may lie; canonical.
    roots: Vec<PathBuf>,
    limits: AttachmentLimits,
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
            images: configuration
                .router
                .as_ref()
                .map_or(default.images, |router| {
                    let images = router.file.images;
                    caliban_images::Limits {
                        max_bytes: images.max_bytes,
                        longest_edge: images.downscale_target,
                    }
                }),
        };
        let more = further_directories(&options.tools, configuration)?
            .into_iter()
            .filter_map(|path| path.canonicalize().ok());
        let roots = std::iter::once(configuration.workspace.clone())
            .chain(more)
            .collect();
        Ok(Self { roots, limits })
    }

    /// A prompt with the files that it names.
    pub fn with_files(&self, prompt: &str) -> Result<Attached, LaunchError> {
        attach(prompt, &self.roots, self.limits)
    }

    /// Reads the resources of servers that a prompt names, and sends them along.
    pub async fn add_resources(
        &self,
        typed: &str,
        servers: &caliban_mcp::Servers,
        message: &mut Message,
    ) -> Result<(), LaunchError> {
        let names: Vec<Arc<str>> = servers.status().into_iter().map(|it| it.name).collect();
        let mut total = 0;
        for reference in references(typed) {
            let known = |(server, _): &(&str, &str)| names.iter().any(|name| **name == **server);
            let Some((server, resource)) = reference.split_once(':').filter(known) else {
                continue;
            };
            let (resource, args) = template_arguments(resource);
            let unreadable = |reason: &str| format!("`@{reference}` cannot be read: {reason}");
            let content = servers
                .read_resource(server, resource, &args)
                .await
                .map_err(|error| Problem::caused(unreadable(&error.to_string()), error))
                .map_err(LaunchError::NoInput)?;
            for part in content {
                let block = match part {
                    ToolContent::Text { text } => {
                        total += text.len() as u64;
                        if text.len() as u64 > self.limits.one || total > self.limits.all {
                            let reason = unreadable("it is too large to be attached");
                            return Err(LaunchError::no_input(reason));
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
        Ok(())
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

/// The prompt with what it names. `roots` are canonical.
fn attach(
    prompt: &str,
    roots: &[PathBuf],
    limits: AttachmentLimits,
) -> Result<Attached, LaunchError> {
    let mut blocks = vec![Block::text(prompt)];
    let mut notices = Vec::new();
    let mut total = 0;
    let mut attached: Vec<PathBuf> = Vec::new();
    for name in references(prompt) {
        let (name, path) = match find(name, roots) {
            Found::Inside(name, path) => (name, path),
            Found::Outside => {
                notices.push(format!(
                    "`@{name}` is outside the workspace and does not go along; `--add-dir` adds its directory"
                ));
                continue;
            }
            Found::Nothing => continue,
        };
        if attached.contains(&path) {
            continue;
        }
        let block = if is_image(&path) {
            let (image, notice) = image(name, &path, limits.images)?;
            notices.extend(notice);
            Block::Image(image)
        } else {
            let text = text(name, &path, limits.one)?;
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
        attached.push(path);
    }
    Ok(Attached {
        message: Message::new(Role::User, blocks),
        notices,
    })
}

fn text(name: &str, path: &Path, most: u64) -> Result<String, LaunchError> {
    let remedy = "raise `--max-attach-bytes` or name a smaller file";
    String::from_utf8(read(name, path, most, remedy)?)
        .map_err(|_| LaunchError::configuration(format!("`@{name}` is not a text file")))
}

fn image(
    name: &str,
    path: &Path,
    limits: caliban_images::Limits,
) -> Result<(Image, Option<String>), LaunchError> {
    let bytes = read(name, path, caliban_images::MAX_FILE, "make it smaller")?;
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

fn read(name: &str, path: &Path, most: u64, remedy: &str) -> Result<Vec<u8>, LaunchError> {
    let unreadable = |error: std::io::Error| {
        LaunchError::configuration(format!("`@{name}` cannot be read: {error}"))
    };
    let mut bytes = Vec::new();
    let file = File::open(path).map_err(unreadable)?;
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

/// What looks like an image is taken as one; its bytes say which.
fn is_image(path: &Path) -> bool {
    let extension = path.extension().and_then(|extension| extension.to_str());
    extension.is_some_and(|extension| {
        ["png", "jpg", "jpeg", "gif", "webp"]
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
    /// A regular file of the workspace, and the name without what is no part of it.
    Inside(&'a str, PathBuf),
    /// A regular file elsewhere.
    Outside,
    Nothing,
}

/// Punctuation behind a name is not part of it.
fn find<'a>(name: &'a str, roots: &[PathBuf]) -> Found<'a> {
    let shorter =
        name.trim_end_matches([',', '.', ';', ':', '!', '?', ')', ']', '}', '\'', '"', '`']);
    let base = roots.first();
    let file = [name, shorter].into_iter().find_map(|name| {
        let path = base?.join(name).canonicalize().ok()?;
        path.is_file().then_some((name, path))
    });
    match file {
        None => Found::Nothing,
        Some((name, path)) if roots.iter().any(|root| path.starts_with(root)) => {
            Found::Inside(name, path)
        }
        Some(_) => Found::Outside,
    }
}

#[cfg(test)]
mod tests {
    use base64::Engine;

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
        let attach = |prompt: &str, limits| attach(prompt, std::slice::from_ref(&root), limits);
        let prompt =
            "see @a.txt, @a.txt and @\"b c.md\" (@p.png); mail me@a.txt @nobody @../secret @link";
        let attached = attach(prompt, AttachmentLimits::DEFAULT).unwrap();
        assert_eq!(attached.notices.len(), 2, "{:?}", attached.notices);
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
    fn an_image_is_sent_once() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        std::fs::write(root.join("a.png"), dot()).unwrap();
        std::fs::write(root.join("b.png"), dot()).unwrap();
        let attached = || {
            attach(
                "@a.png @b.png",
                std::slice::from_ref(&root),
                AttachmentLimits::DEFAULT,
            )
        };
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
