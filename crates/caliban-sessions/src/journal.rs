//! The journal: reading it whatever state it is in, and appending to it without ever leaving a
//! record that could run into the next.

use std::io::{self, BufRead as _, BufReader, Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use jiff::Timestamp;

use crate::disk::{Disk, DiskFile, DiskReader};
use crate::line::{LONGEST_LINE, Line, encode_header};
use crate::paths::Paths;
use crate::record::Header;
use crate::replace::{prepare, publish};
use crate::state::Replica;

/// Bytes read at a time.
const BUFFER: usize = 256 << 10;
/// How often an interrupted write is repeated.
const INTERRUPTIONS: u32 = 16;

/// Reads a journal line by line, its memory bounded by the longest line.
#[derive(Debug)]
pub(crate) struct Scanner {
    reader: BufReader<Box<dyn DiskReader>>,
    buffer: Vec<u8>,
    /// Where the next line begins.
    offset: u64,
    number: u64,
}

/// A line and where it is.
#[derive(Debug)]
pub(crate) struct Scanned<'a> {
    /// Counted from 1.
    pub(crate) number: u64,
    pub(crate) start: u64,
    pub(crate) end: u64,
    pub(crate) found: Found<'a>,
}

#[derive(Debug)]
pub(crate) enum Found<'a> {
    Line(Line<'a>),
    /// Not a record; the problem.
    Bad(String),
    /// The file ends within this line.
    Unterminated,
}

impl Scanner {
    pub(crate) fn new(reader: Box<dyn DiskReader>) -> Self {
        Self {
            reader: BufReader::with_capacity(BUFFER, reader),
            buffer: Vec::new(),
            offset: 0,
            number: 0,
        }
    }

    /// The header, if the journal begins with one. To be called before anything else.
    pub(crate) fn header(&mut self) -> io::Result<Option<Box<Header>>> {
        let header = match self.next()? {
            Some(Scanned {
                found: Found::Line(line),
                ..
            }) => line.header(),
            Some(_) | None => None,
        };
        self.reader.seek(SeekFrom::Start(0))?;
        (self.offset, self.number) = (0, 0);
        Ok(header)
    }

    pub(crate) fn next(&mut self) -> io::Result<Option<Scanned<'_>>> {
        self.buffer.clear();
        let limit = LONGEST_LINE as u64;
        let mut len = (&mut self.reader)
            .take(limit)
            .read_until(b'\n', &mut self.buffer)? as u64;
        if len == 0 {
            return Ok(None);
        }
        let mut is_terminated = self.buffer.ends_with(b"\n");
        let is_too_long = len == limit && !is_terminated;
        if is_too_long {
            self.buffer = Vec::new();
            // How a line ends that nobody will read does not matter.
            let skipped = self.reader.skip_until(b'\n')? as u64;
            len += skipped;
            is_terminated = skipped > 0;
        }
        let start = self.offset;
        self.offset += len;
        self.number += 1;
        let found = if !is_terminated {
            Found::Unterminated
        } else if is_too_long {
            Found::Bad(format!("it is longer than {LONGEST_LINE} bytes"))
        } else {
            let line = self.buffer.strip_suffix(b"\n").unwrap_or_default();
            Line::parse(line).map_or_else(Found::Bad, Found::Line)
        };
        Ok(Some(Scanned {
            number: self.number,
            start,
            end: self.offset,
            found,
        }))
    }
}

/// A journal that is written to.
#[derive(Debug)]
pub(crate) struct Journal {
    pub(crate) path: PathBuf,
    pub(crate) file: Arc<dyn DiskFile>,
    /// Where the last whole record ends.
    pub(crate) len: u64,
    tail: Tail,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Tail {
    Whole,
    /// There may be a part of a record after the last whole one.
    Torn,
}

impl Journal {
    /// A new, durable journal that continues after `replica` and takes the place of any other.
    /// Its header is the next record.
    pub(crate) fn create(
        disk: &dyn Disk,
        paths: &Paths,
        replica: &Replica,
        at: Timestamp,
    ) -> io::Result<Self> {
        let path = paths.journal();
        let temporary = Paths::replacement(&path);
        let header = encode_header(replica.seq + 1, at, &replica.header())?;
        let (file, len) = prepare(disk, &temporary, |file| file.write_all(&header))?;
        publish(disk, &temporary, &path)?;
        Ok(Self {
            path,
            file,
            len,
            tail: Tail::Whole,
        })
    }

    /// Continues a journal whose last whole record ends at `len`, where the file ends.
    pub(crate) fn open(disk: &dyn Disk, path: PathBuf, len: u64) -> io::Result<Self> {
        Ok(Self {
            file: disk.append(&path)?,
            path,
            len,
            tail: Tail::Whole,
        })
    }

    /// Appends a line whole or not at all.
    pub(crate) fn append(&mut self, line: &[u8]) -> io::Result<()> {
        self.cut()?;
        self.tail = Tail::Torn;
        match self.write(line) {
            Ok(written) if written == line.len() => {
                self.len += written as u64;
                self.tail = Tail::Whole;
                Ok(())
            }
            Ok(_) => {
                // Should this fail too, it is tried again before the next record.
                let _ = self.cut();
                Err(io::Error::new(
                    io::ErrorKind::StorageFull,
                    "only part of a record could be written",
                ))
            }
            Err(error) => {
                let _ = self.cut();
                Err(error)
            }
        }
    }

    fn write(&self, line: &[u8]) -> io::Result<usize> {
        let mut interruptions = 0;
        loop {
            match self.file.write(line) {
                Err(error)
                    if error.kind() == io::ErrorKind::Interrupted
                        && interruptions < INTERRUPTIONS =>
                {
                    interruptions += 1;
                }
                other => return other,
            }
        }
    }

    /// Removes a part of a record, so that the next one begins a line.
    fn cut(&mut self) -> io::Result<()> {
        if self.tail == Tail::Torn {
            self.file.truncate(self.len)?;
            self.tail = Tail::Whole;
        }
        Ok(())
    }
}

/// Moves what follows `start` out of a journal, into a file beside it.
pub(crate) fn set_aside(disk: &dyn Disk, path: &Path, start: u64, aside: &Path) -> io::Result<()> {
    let mut reader = disk.read(path)?;
    reader.seek(SeekFrom::Start(start))?;
    prepare(disk, aside, |file| io::copy(&mut reader, file).map(drop))?;
    disk.sync_directory(aside.parent().unwrap_or(Path::new(".")))?;
    let file = disk.append(path)?;
    file.truncate(start)?;
    file.sync()
}
