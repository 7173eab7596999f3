//! A seeded mutation fuzz of the two readers over the cases, reproducible by its count.
//! `CALIBAN_FUZZ_CASES` sets how many lines are tried.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test may panic"
)]

mod support;

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const CASES: usize = 20_000;
/// Every so many proven lines, bash is asked whether it accepts the line. Nothing is run.
const ASK_BASH: usize = 40;
const LONG: Duration = Duration::from_secs(5);

const PARTS: &[&str] = &[
    "$(",
    ")",
    "`",
    "\"",
    "'",
    "\\",
    "\n",
    ";",
    "&&",
    "||",
    "|",
    "&",
    "(",
    "{",
    "}",
    "${",
    "$((",
    "))",
    "<<E\n",
    "\nE\n",
    "<<-'E'\n",
    "<",
    ">",
    ">&",
    "<(",
    " ",
    "\t",
    "#",
    "$",
    "$x",
    "$'",
    "\\x41",
    "{a,b}",
    "{1..3}",
    "*",
    "~",
    "[",
    "]",
    "[[ ",
    " ]]",
    "=",
    "+=",
    "x=",
    "if ",
    "; then ",
    "; fi",
    "case ",
    " in ",
    "esac",
    ";;",
    "for x in ",
    "; do ",
    "; done",
    "eval ",
    "bash -c ",
    "sudo ",
    "xargs ",
    "-exec ",
    "time ",
    "! ",
    "rm x",
    "\\\n",
    "é",
];

/// A generator of numbers that is the same everywhere (`SplitMix64`).
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        usize::try_from((z ^ (z >> 31)) % u64::try_from(limit.max(1)).unwrap()).unwrap()
    }
}

fn mutated(numbers: &mut Numbers, corpus: &[String]) -> String {
    let mut line: Vec<char> = corpus[numbers.below(corpus.len())].chars().collect();
    for _ in 0..=numbers.below(4) {
        let at = numbers.below(line.len() + 1);
        match numbers.below(5) {
            0 => {
                let end = (at + 1 + numbers.below(4)).min(line.len());
                line.drain(at.min(end)..end);
            }
            1 => {
                let other: Vec<char> = corpus[numbers.below(corpus.len())].chars().collect();
                let start = numbers.below(other.len() + 1);
                line.splice(at..at, other[start..].iter().copied());
            }
            2 => {
                let end = (at + numbers.below(12)).min(line.len());
                let copy = line[at.min(end)..end].to_vec();
                line.splice(at..at, copy);
            }
            _ => {
                let part = PARTS[numbers.below(PARTS.len())];
                line.splice(at..at, part.chars());
            }
        }
    }
    line.into_iter().collect()
}

fn bash_accepts(line: &str) -> bool {
    Command::new("/bin/bash")
        .args(["--noprofile", "--norc", "-n", "-c", line])
        .env_clear()
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .unwrap()
        .success()
}

#[test]
fn mutated_lines_keep_the_promises() {
    let cases = std::env::var("CALIBAN_FUZZ_CASES")
        .map_or(CASES, |count| count.parse().expect("a number of cases"));
    let corpus = support::corpus();
    let mut numbers = Numbers(1);
    let mut proven = 0;
    for _ in 0..cases {
        let line = mutated(&mut numbers, &corpus);
        let start = Instant::now();
        if support::assert_denial_sees_what_is_proven(&line) {
            proven += 1;
            support::assert_chaining_keeps_commands(&line);
            if proven % ASK_BASH == 0 {
                assert!(bash_accepts(&line), "bash rejects {line:?}");
            }
        }
        assert!(
            start.elapsed() < LONG,
            "{line:?} took {:?}",
            start.elapsed()
        );
    }
    println!("{proven} of {cases} lines were proven");
}
