use std::fs;
use std::io::{Cursor, Write};
use std::path::PathBuf;

use caliban_settings::{TREE_BYTES, TREE_ENTRIES};
use flate2::Compression;
use flate2::write::GzEncoder;
use tar::{Builder, EntryType, Header};
use zip::ZipWriter;
use zip::write::SimpleFileOptions;

use super::*;

struct Bench {
    temp: tempfile::TempDir,
}

impl Bench {
    fn new() -> Self {
        let temp = tempfile::tempdir().unwrap();
        fs::create_dir(temp.path().join("out")).unwrap();
        Self { temp }
    }

    fn out(&self) -> PathBuf {
        self.temp.path().join("out")
    }

    fn unpack(&self, bytes: &[u8]) -> Result<(), ArchiveError> {
        let path = self.temp.path().join("archive");
        fs::write(&path, bytes).unwrap();
        unpack(&path, &self.out())
    }

    /// What there is beside the archive and the directory it was unpacked into.
    fn strays(&self) -> usize {
        fs::read_dir(self.temp.path()).unwrap().count() - 2
    }
}

/// An entry whose name need not be one.
fn entry(name: &[u8], kind: EntryType, mode: u32, content: &[u8], link: &str) -> Vec<u8> {
    let mut header = Header::new_gnu();
    header.as_mut_bytes()[..name.len()].copy_from_slice(name);
    header.set_entry_type(kind);
    header.set_mode(mode);
    header.set_size(content.len() as u64);
    if !link.is_empty() {
        header.set_link_name_literal(link).unwrap();
    }
    header.set_cksum();
    let mut bytes = header.as_bytes().to_vec();
    bytes.extend(content);
    bytes.resize(bytes.len().next_multiple_of(512), 0);
    bytes
}

fn tarball(entries: &[Vec<u8>]) -> Vec<u8> {
    let mut gzip = GzEncoder::new(Vec::new(), Compression::fast());
    for entry in entries {
        gzip.write_all(entry).unwrap();
    }
    gzip.write_all(&[0; 1024]).unwrap();
    gzip.finish().unwrap()
}

fn file(name: &str) -> Vec<u8> {
    entry(name.as_bytes(), EntryType::Regular, 0o644, b"x", "")
}

fn zipped(entries: &[(&str, u32)]) -> Vec<u8> {
    let mut zip = ZipWriter::new(Cursor::new(Vec::new()));
    for (name, mode) in entries {
        let options = SimpleFileOptions::default().unix_permissions(*mode);
        zip.start_file(*name, options).unwrap();
        zip.write_all(b"x").unwrap();
    }
    zip.finish().unwrap().into_inner()
}

fn zipped_link(name: &str, target: &str) -> Vec<u8> {
    let mut zip = ZipWriter::new(Cursor::new(Vec::new()));
    zip.add_symlink(name, target, SimpleFileOptions::default())
        .unwrap();
    zip.finish().unwrap().into_inner()
}

#[cfg(unix)]
#[test]
fn files_and_directories_are_taken_with_little_of_their_mode() {
    use std::os::unix::fs::PermissionsExt;
    let program = entry(b"top/run.sh", EntryType::Regular, 0o4777, b"#!", "");
    let entries = [
        entry(b"pax_global_header", EntryType::XGlobalHeader, 0, b"", ""),
        entry(b"top/", EntryType::Directory, 0o777, b"", ""),
        program,
        file("./top/deep/er/a.md"),
    ];
    for bytes in [
        tarball(&entries),
        zipped(&[("top/run.sh", 0o4777), ("top/deep/er/a.md", 0o644)]),
    ] {
        let bench = Bench::new();
        bench.unpack(&bytes).unwrap();
        let mode = |name: &str| {
            let metadata = fs::metadata(bench.out().join(name)).unwrap();
            metadata.permissions().mode() & 0o7777
        };
        assert_eq!(mode("top/run.sh") & 0o7700, 0o700);
        assert_eq!(mode("top/deep/er/a.md") & 0o7111, 0);
    }
}

#[test]
fn hostile_archives_are_refused_and_leave_nothing_outside() {
    let link = |kind| entry(b"a", kind, 0o644, b"", "/etc/passwd");
    let special = |kind| entry(b"a", kind, 0o644, b"", "");
    let cases: Vec<(&str, Vec<u8>)> = vec![
        ("absolute", tarball(&[file("/tmp/evil")])),
        ("parent", tarball(&[file("../evil")])),
        ("hidden parent", tarball(&[file("a/../../evil")])),
        ("backslash", tarball(&[file("..\\evil")])),
        ("drive", tarball(&[file("C:evil")])),
        ("control", tarball(&[file("a\x1b[2Jb")])),
        (
            "not text",
            tarball(&[entry(b"a\xff", EntryType::Regular, 0o644, b"x", "")]),
        ),
        ("symbolic link", tarball(&[link(EntryType::Symlink)])),
        ("hard link", tarball(&[link(EntryType::Link)])),
        ("character device", tarball(&[special(EntryType::Char)])),
        ("block device", tarball(&[special(EntryType::Block)])),
        ("pipe", tarball(&[special(EntryType::Fifo)])),
        ("twice", tarball(&[file("a"), file("a")])),
        (
            "only case",
            tarball(&[file("README.md"), file("readme.md")]),
        ),
        ("file as directory", tarball(&[file("a"), file("a/b")])),
        ("directory as file", tarball(&[file("a/b"), file("A")])),
        ("cut", tarball(&[file("a")])[..40].to_vec()),
        ("no archive", b"MZ\x90\x00 whatever".to_vec()),
        ("empty", Vec::new()),
        ("zip parent", zipped(&[("../evil", 0o644)])),
        ("zip absolute", zipped(&[("/tmp/evil", 0o644)])),
        ("zip link", zipped_link("a", "/etc/passwd")),
        ("zip case", zipped(&[("a", 0o644), ("A", 0o644)])),
        ("zip cut", zipped(&[("a", 0o644)])[..30].to_vec()),
    ];
    for (what, bytes) in cases {
        let bench = Bench::new();
        let error = bench.unpack(&bytes).err();
        assert!(error.is_some(), "{what} was taken");
        assert_eq!(bench.strays(), 0, "{what}");
        assert!(!PathBuf::from("/tmp/evil").exists(), "{what}");
    }
}

#[test]
fn links_through_which_files_would_be_written_are_never_made() {
    let bench = Bench::new();
    let entries = [
        entry(b"d", EntryType::Symlink, 0o777, b"", ".."),
        file("d/evil"),
    ];
    let error = bench.unpack(&tarball(&entries)).unwrap_err();
    assert!(matches!(error, ArchiveError::Special(_)), "{error}");
    assert_eq!(bench.strays(), 0);
}

#[test]
fn bombs_end_at_the_bounds() {
    let bench = Bench::new();
    let many: Vec<Vec<u8>> = (0..=TREE_ENTRIES)
        .map(|index| {
            entry(
                format!("d{index}/").as_bytes(),
                EntryType::Directory,
                0o755,
                b"",
                "",
            )
        })
        .collect();
    let error = bench.unpack(&tarball(&many)).unwrap_err();
    assert!(matches!(error, ArchiveError::TooMany), "{error}");

    let bench = Bench::new();
    let zeros = vec![0; usize::try_from(TREE_BYTES).unwrap() + 1];
    let mut builder = Builder::new(GzEncoder::new(Vec::new(), Compression::fast()));
    let mut header = Header::new_gnu();
    header.set_size(zeros.len() as u64);
    header.set_mode(0o644);
    builder.append_data(&mut header, "zeros", &*zeros).unwrap();
    let bytes = builder.into_inner().unwrap().finish().unwrap();
    assert!(bytes.len() < 1024 * 1024, "it is small");
    let error = bench.unpack(&bytes).unwrap_err();
    assert!(matches!(error, ArchiveError::TooLarge), "{error}");
}
