//! Running a program and knowing what it cost.

use std::io::Read as _;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use wait4::Wait4 as _;

/// What is read of the output at a time.
const BUFFER: usize = 256 * 1024;

/// One run of a program.
#[derive(Debug)]
pub(super) struct Cost {
    pub(super) started: Instant,
    pub(super) wall: Duration,
    /// User and system time of all its threads.
    pub(super) cpu: Duration,
    /// The most memory it had, in bytes.
    pub(super) peak: u64,
    pub(super) printed: u64,
    /// When the last of its output was there.
    pub(super) last_output: Instant,
}

/// Runs a program to its end, reading what it prints; its failure is ours.
pub(super) fn measure(command: &mut Command) -> Result<Cost> {
    measure_with(command, |_| {})
}

/// The same, showing the output to `see` in pieces.
pub(super) fn measure_with(command: &mut Command, mut see: impl FnMut(&[u8])) -> Result<Cost> {
    let program = command.get_program().to_string_lossy().into_owned();
    let mut buffer = vec![0; BUFFER];
    let started = Instant::now();
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .with_context(|| format!("`{program}` could not be started"))?;
    let mut output = child.stdout.take().context("no output")?;
    let errors = child.stderr.take();
    let (mut printed, mut last_output) = (0, started);
    loop {
        let read = output.read(&mut buffer)?;
        if read == 0 {
            break;
        }
        last_output = Instant::now();
        printed += read as u64;
        see(&buffer[..read]);
    }
    let end = child.wait4()?;
    let wall = started.elapsed();
    if !end.status.success() {
        let mut said = String::new();
        if let Some(mut errors) = errors {
            errors.read_to_string(&mut said)?;
        }
        bail!("`{program}` failed: {}\n{said}", end.status);
    }
    Ok(Cost {
        started,
        wall,
        cpu: end.rusage.utime + end.rusage.stime,
        peak: end.rusage.maxrss,
        printed,
        last_output,
    })
}

/// The most memory this process had so far, in bytes. A program that is started begins its count
/// there, so a peak below it cannot be told.
pub(super) fn own_peak() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let kilobytes = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:")?.split_whitespace().next())
        .and_then(|number| number.parse::<u64>().ok());
    kilobytes.unwrap_or_default() * 1024
}

pub(super) fn milliseconds(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e3
}

#[expect(clippy::cast_precision_loss, reason = "nobody reads that many digits")]
pub(super) fn megabytes(bytes: u64) -> f64 {
    bytes as f64 / 1e6
}
