//! A directory that is a plugin, read: its manifest, and what it brings. Nothing of it runs.

use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};

use caliban_context::{CommandPlace, PluginPlace};
use caliban_settings::hex;
use serde_json::{Map, Value};
use sha2::{Digest as _, Sha256};

use crate::hooks::{self, HookTable};
use crate::manifest::{self, Form, Inlinable, Listing, Manifest, ManifestError};
use crate::name::PluginName;
use crate::places::OwnPlaces;
use crate::relative::{LeadsOut, RelativePath};
use crate::servers::{self, ServerTable};

/// Where a manifest may be, in the order they are looked for.
pub const MANIFESTS: [(&str, Form); 2] = [
    (".claude-plugin/plugin.json", Form::Claude),
    ("plugin.json", Form::Native),
];
/// The largest file of hooks or servers, in bytes.
const LARGEST: u64 = 1024 * 1024;

/// How a plugin comes by its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Naming {
    /// It must be called as its directory, and must have a manifest.
    AsDirectory,
    /// As its manifest says, else as its directory.
    Free,
}

#[derive(Debug, thiserror::Error)]
pub enum PackageError {
    #[error("`{}` is not a directory", .0.display())]
    NotADirectory(PathBuf),
    #[error("`{}` has no `plugin.json`", .0.display())]
    NoManifest(PathBuf),
    #[error("`{}`: {source}", path.display())]
    Manifest {
        path: PathBuf,
        source: ManifestError,
    },
    #[error("`{}`: {reason}", path.display())]
    Unreadable { path: PathBuf, reason: String },
    #[error("its manifest calls it `{name}` and its directory is `{directory}`")]
    Misplaced { name: PluginName, directory: String },
    #[error(transparent)]
    LeadsOut(#[from] LeadsOut),
}

/// A plugin that was read.
#[derive(Debug, Clone, PartialEq)]
pub struct Package {
    /// Canonical.
    pub root: PathBuf,
    pub manifest: Manifest,
    /// The digest of the manifest's file, in hexadecimal digits.
    pub manifest_sha256: String,
    pub skills: Vec<PathBuf>,
    pub commands: Vec<CommandPlace>,
    pub styles: Vec<PathBuf>,
    /// Files of agents, and directories of them.
    pub agents: Vec<PathBuf>,
    pub hooks: HookTable,
    pub servers: ServerTable,
    /// Where programs are that commands may use.
    pub programs: Option<PathBuf>,
    /// What is worth knowing about it.
    pub remarks: Vec<String>,
}

impl Package {
    /// Reads a plugin.
    pub fn read(directory: &Path, naming: Naming) -> Result<Self, PackageError> {
        let root = directory
            .canonicalize()
            .ok()
            .filter(|root| root.is_dir())
            .ok_or_else(|| PackageError::NotADirectory(directory.to_owned()))?;
        let (manifest, manifest_sha256) = manifest(&root, directory, naming)?;
        let mut reader = Reader {
            remarks: manifest.remarks.clone(),
            root: &root,
        };
        let declared = &manifest.declared;
        let skills = reader.skills(&declared.skills)?;
        let commands = reader.commands(&manifest)?;
        let styles = reader.places(&declared.styles, "output-styles")?;
        let agents = reader.places(&declared.agents, "agents")?;
        let hooks = reader.hooks(&declared.hooks)?;
        let servers = reader.servers(&declared.servers)?;
        let programs = reader.usual("bin")?.filter(|path| path.is_dir());
        if root.join("CLAUDE.md").exists() {
            reader
                .remarks
                .push("its `CLAUDE.md` is not read".to_owned());
        }
        Ok(Self {
            remarks: reader.remarks,
            root,
            manifest,
            manifest_sha256,
            skills,
            commands,
            styles,
            agents,
            hooks,
            servers,
            programs,
        })
    }

    pub fn name(&self) -> &PluginName {
        &self.manifest.name
    }

    /// What skills, styles, commands and agents are read from; `data` is where it keeps what it writes.
    pub fn place(&self, data: PathBuf) -> PluginPlace {
        PluginPlace {
            name: self.name().to_string(),
            path: self.root.clone(),
            data,
            agents: self.agents.clone(),
            skills: self.skills.clone(),
            styles: self.styles.clone(),
            commands: self.commands.clone(),
        }
    }

    /// The names of its programs.
    pub fn program_names(&self) -> Vec<String> {
        let entries = self.programs.iter().filter_map(|it| fs::read_dir(it).ok());
        let entries = entries.flatten().filter_map(Result::ok);
        let programs = entries.filter(|entry| is_program(&entry.path()));
        let names = programs.map(|entry| entry.file_name().to_string_lossy().into_owned());
        let mut names: Vec<String> = names.collect();
        names.sort_unstable();
        names
    }

    /// Its hooks with its own places filled in.
    pub fn hooks_at(&self, places: &OwnPlaces) -> HookTable {
        hooks::expanded(&self.hooks, places)
    }

    /// Its servers under the names that everybody knows them by.
    pub fn servers_at(&self, places: &OwnPlaces) -> ServerTable {
        let named = |(name, server)| {
            let name = format!("{}:{name}", self.name());
            (name, servers::expanded(server, places))
        };
        self.servers.iter().map(named).collect()
    }
}

/// The manifest of a directory, with the digest of its file.
fn manifest(
    root: &Path,
    directory: &Path,
    naming: Naming,
) -> Result<(Manifest, String), PackageError> {
    let called = directory.file_name().or_else(|| root.file_name());
    let called = called.and_then(|name| name.to_str()).unwrap_or_default();
    for (name, form) in MANIFESTS {
        let place = RelativePath::parse(name)?;
        let Some(path) = place.within(root)? else {
            continue;
        };
        let text = read_bounded(&path, manifest::LARGEST)?;
        let failed = |source| PackageError::Manifest {
            path: directory.join(name),
            source,
        };
        let manifest = Manifest::parse(&text, form).map_err(failed)?;
        if naming == Naming::AsDirectory && manifest.name.as_str() != called {
            return Err(PackageError::Misplaced {
                name: manifest.name,
                directory: called.to_owned(),
            });
        }
        return Ok((manifest, hex(&Sha256::digest(text.as_bytes()))));
    }
    let usual = [
        "skills",
        "commands",
        "agents",
        "hooks",
        "output-styles",
        "SKILL.md",
        ".mcp.json",
    ];
    let name = called.parse::<PluginName>();
    match (naming, name) {
        (Naming::Free, Ok(name)) if usual.iter().any(|part| root.join(part).exists()) => {
            Ok((Manifest::bare(name), hex(&Sha256::digest(b""))))
        }
        _ => Err(PackageError::NoManifest(directory.to_owned())),
    }
}

#[cfg(unix)]
fn is_program(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt as _;
    fs::metadata(path).is_ok_and(|it| it.is_file() && it.permissions().mode() & 0o111 != 0)
}

#[cfg(not(unix))]
fn is_program(path: &Path) -> bool {
    path.is_file()
}

/// Reads a file of text, whole or not at all.
fn read_bounded(path: &Path, limit: u64) -> Result<String, PackageError> {
    let failed = |reason: String| PackageError::Unreadable {
        path: path.to_owned(),
        reason,
    };
    let metadata = fs::metadata(path).map_err(|error| failed(error.to_string()))?;
    // Before opening: opening a pipe would wait for its other end.
    if !metadata.is_file() {
        return Err(failed("it is not a regular file".to_owned()));
    }
    let mut text = String::new();
    let file = File::open(path).map_err(|error| failed(error.to_string()))?;
    file.take(limit + 1)
        .read_to_string(&mut text)
        .map_err(|error| failed(error.to_string()))?;
    if text.len() as u64 > limit {
        return Err(failed(format!("it is larger than {limit} bytes")));
    }
    Ok(text)
}

struct Reader<'a> {
    root: &'a Path,
    remarks: Vec<String>,
}

impl Reader<'_> {
    /// A place that was named; one that is not there is told.
    fn named(&mut self, path: &RelativePath) -> Result<Option<PathBuf>, PackageError> {
        let place = path.within(self.root)?;
        if place.is_none() {
            self.remarks
                .push(format!("`{path}` is named and is not there"));
        }
        Ok(place)
    }

    fn usual(&self, name: &str) -> Result<Option<PathBuf>, PackageError> {
        Ok(RelativePath::parse(name)?.within(self.root)?)
    }

    fn places(
        &mut self,
        listing: &Listing<RelativePath>,
        usual: &str,
    ) -> Result<Vec<PathBuf>, PackageError> {
        let mut places = Vec::new();
        if listing.has_usual() {
            places.extend(self.usual(usual)?);
        }
        for path in listing.items() {
            places.extend(self.named(path)?);
        }
        places.dedup();
        Ok(places)
    }

    fn skills(&mut self, listing: &Listing<RelativePath>) -> Result<Vec<PathBuf>, PackageError> {
        let mut places = self.places(listing, "skills")?;
        if listing.has_usual() && places.is_empty() && self.usual("SKILL.md")?.is_some() {
            places.push(self.root.to_owned());
        }
        Ok(places)
    }

    fn commands(&mut self, manifest: &Manifest) -> Result<Vec<CommandPlace>, PackageError> {
        let listing = &manifest.declared.commands;
        let mut places = Vec::new();
        if listing.has_usual()
            && let Some(path) = self.usual("commands")?
        {
            places.push(CommandPlace::at(path));
        }
        for source in listing.items() {
            let path = match &source.path {
                Some(path) => self.named(path)?,
                None => Some(self.root.to_owned()),
            };
            if let Some(path) = path {
                places.push(CommandPlace {
                    path,
                    name: source.name.clone(),
                    says: source.says.clone(),
                });
            }
        }
        Ok(places)
    }

    /// The documents of a part that may stand in files or in the manifest.
    fn documents(
        &mut self,
        listing: &Listing<Inlinable>,
        usual: &[&str],
    ) -> Result<Vec<Map<String, Value>>, PackageError> {
        let mut files = Vec::new();
        if listing.has_usual() {
            for name in usual {
                files.extend(self.usual(name)?);
            }
        }
        let mut documents = Vec::new();
        for item in listing.items() {
            match item {
                Inlinable::Inline(document) => documents.push(document.clone()),
                Inlinable::File(path) => files.extend(self.named(path)?),
            }
        }
        files.sort_unstable();
        files.dedup();
        for path in files {
            let text = read_bounded(&path, LARGEST)?;
            match serde_json::from_str(&text) {
                Ok(Value::Object(document)) => documents.push(document),
                Ok(_) => self.not_used(&path, "it is not a JSON object"),
                Err(error) => self.not_used(&path, &error.to_string()),
            }
        }
        Ok(documents)
    }

    fn not_used(&mut self, path: &Path, reason: &str) {
        let path = path.strip_prefix(self.root).unwrap_or(path);
        self.remarks
            .push(format!("`{}` is not used: {reason}", path.display()));
    }

    fn hooks(&mut self, listing: &Listing<Inlinable>) -> Result<HookTable, PackageError> {
        let mut table = HookTable::new();
        for document in self.documents(listing, &["hooks/hooks.json"])? {
            for (event, entries) in hooks::read(&document, &mut self.remarks) {
                table.entry(event).or_default().extend(entries);
            }
        }
        Ok(table)
    }

    fn servers(&mut self, listing: &Listing<Inlinable>) -> Result<ServerTable, PackageError> {
        let mut table = ServerTable::new();
        for document in self.documents(listing, &[".mcp.json", "mcp/.mcp.json"])? {
            table.extend(servers::read(&document, &mut self.remarks));
        }
        Ok(table)
    }
}
