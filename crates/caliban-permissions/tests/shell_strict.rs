//! What the strict reader proves, in detail: words, wrappers, redirections, hazards and writes.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test may panic"
)]

use caliban_permissions::shell::{
    Certainty, Command, HazardKind, MAX_COMMANDS, MAX_DEPTH, MAX_LENGTH, RedirectionKind, Refusal,
    Wrapping, strict,
};
use rstest::rstest;

fn proven(line: &str) -> Vec<Command> {
    strict(line)
        .unwrap_or_else(|refusal| panic!("{line:?}: {refusal}"))
        .commands
}

fn only(line: &str) -> Command {
    let mut commands = proven(line);
    assert_eq!(commands.len(), 1, "{line:?}: {commands:?}");
    commands.remove(0)
}

/// The words of all commands with wrapped ones in brackets; `~` marks what is not literal.
fn shown(commands: &[Command]) -> String {
    let shown: Vec<String> = commands
        .iter()
        .map(|command| {
            let words: Vec<String> = command
                .words
                .iter()
                .map(|word| match word.certainty {
                    Certainty::Literal => word.text.clone(),
                    Certainty::Partial => format!("~{}", word.text),
                })
                .collect();
            if command.inner.is_empty() {
                words.join(" ")
            } else {
                format!("{} [{}]", words.join(" "), shown(&command.inner))
            }
        })
        .collect();
    shown.join(", ")
}

#[rstest]
#[case(
    "cd src && cargo build 2>&1 | tail -20",
    "cd src, cargo build, tail -20"
)]
#[case("for f in *.rs; do wc -l \"$f\"; done", "wc -l ~$f")]
#[case("ls *.txt", "ls ~*.txt")]
#[case("echo \"$HOME\"", "echo ~$HOME")]
#[case(
    "git commit -m \"$(cat <<'EOF'\nfix: a (b) `c` \"d\" 'e'\n\nlong; text | here\nEOF\n)\"",
    "git commit -m ~$(cat <<'EOF'\nfix: a (b) `c` \"d\" 'e'\n\nlong; text | here\nEOF\n), cat"
)]
#[case("set -euo pipefail; make test", "set -euo pipefail, make test")]
#[case(
    "export RUST_LOG=debug && cargo run",
    "export RUST_LOG=debug, cargo run"
)]
#[case(
    "if [ -f x ]; then cat x; else echo none; fi",
    "[ -f x ], cat x, echo none"
)]
#[case(
    "while read -r l; do echo \"$l\"; done < <(ls -a)",
    "read -r l, echo ~$l, , ls -a"
)]
#[case("[[ -f Cargo.toml && $x == a* ]] && ls", "ls")]
#[case("for i in {1..3}; do echo $((i * 2)); done", "echo ~$((i * 2))")]
#[case("for ((i=0; i<3; i++)); do ls $i; done", "ls ~$i")]
#[case("n=0; ((n++)); [[ $n -gt 1 ]] && ls", ", ls")]
#[case(
    "grep -rn 'fn main' src | sort | uniq -c | head",
    "grep -rn fn main src, sort, uniq -c, head"
)]
#[case("case $1 in a|b) ls;; *) pwd;; esac", "ls, pwd")]
#[case("select x in a b; do echo $x; done", "echo ~$x")]
#[case("f() { ls \"$1\"; }; f x", "ls ~$1, f x")]
#[case("cat > out.txt <<EOF\nhello $USER\nEOF", "cat")]
#[case("a=1 b='x y' make -j8", "make -j8")]
#[case("echo {a,b}{1,2} '{c,d}' {}", "echo a1 a2 b1 b2 {c,d} {}")]
#[case("echo $'a\\tb\\x41\\u00e9'", "echo a\tbAé")]
#[case("sleep 5 & wait; kill %1", "sleep 5, wait, kill %1")]
#[case("time cargo build", "cargo build")]
#[case("! grep -q x f", "grep -q x f")]
#[case("ls # nothing $(rm x)", "ls")]
#[case("echo a \\\n  b", "echo a b")]
#[case("i=0; while [ $i -lt 3 ]; do i=$((i+1)); done", "[ ~$i -lt 3 ]")]
#[case("ls & pid=$!; wait $pid", "ls, wait ~$pid")]
#[case("", "")]
fn everyday_lines_are_proven(#[case] line: &str, #[case] expected: &str) {
    let commands: Vec<Command> = proven(line);
    let shown = shown(&commands);
    // Commands of only assignments or redirections have no words.
    let normal = |text: &str| text.trim_matches([',', ' ']).replace(", , ", ", ");
    assert_eq!(normal(&shown), normal(expected));
}

#[rstest]
// What only changes how the rest runs.
#[case("timeout -k 5 30s cargo test", Wrapping::Transparent, "cargo test")]
#[case(
    "nice -n 10 nohup make -j2",
    Wrapping::Transparent,
    "nohup make -j2 [make -j2]"
)]
#[case("/usr/bin/time -v ls", Wrapping::Transparent, "ls")]
#[case("env FOO=1 BAR=\"$x\" ls", Wrapping::Transparent, "ls")]
#[case("command ls", Wrapping::Transparent, "ls")]
#[case("stdbuf -oL make", Wrapping::Transparent, "make")]
// What needs a rule, too.
#[case("env -i ls", Wrapping::Wrapper, "ls")]
#[case("./timeout 5 rm x", Wrapping::Wrapper, "rm x")]
#[case("sudo -u www FOO=1 apt install x", Wrapping::Wrapper, "apt install x")]
#[case("xargs -0 rm -f", Wrapping::Wrapper, "rm -f ~{}")]
#[case("xargs -I{} cp {} dir", Wrapping::Wrapper, "cp ~{} dir ~{}")]
#[case(
    "find . -name '*.o' -exec rm {} \\; -exec ls -l {} +",
    Wrapping::Wrapper,
    "rm ~{}, ls -l ~{}"
)]
#[case("fd -e rs -x wc -l", Wrapping::Wrapper, "wc -l ~{}")]
#[case("bash -c 'ls; rm x' name arg", Wrapping::Wrapper, "ls, rm x")]
#[case("sh -euc \"git status\"", Wrapping::Wrapper, "git status")]
#[case(
    "bash -lc 'sudo sh -c \"id\"'",
    Wrapping::Wrapper,
    "sudo sh -c id [sh -c id [id]]"
)]
#[case("eval 'rm x' y", Wrapping::Wrapper, "rm x y")]
#[case("exec rm x", Wrapping::Wrapper, "rm x")]
#[case("ssh -p 22 host 'cd /x && ls' y", Wrapping::Wrapper, "cd /x, ls y")]
#[case("watch -n 1 ls -l", Wrapping::Wrapper, "ls -l")]
#[case("trap 'rm x' EXIT", Wrapping::Wrapper, "rm x")]
#[case("flock /tmp/l -c 'rm x'", Wrapping::Wrapper, "rm x")]
#[case("uv run pytest -q", Wrapping::Wrapper, "pytest -q")]
fn wrapped_commands_are_found(#[case] line: &str, #[case] wrapping: Wrapping, #[case] inner: &str) {
    let command = only(line);
    assert_eq!(command.wrapping, wrapping);
    assert_eq!(shown(&command.inner), inner);
    let word = command.inner_word.unwrap();
    assert!(
        command.words[word]
            .text
            .contains(&command.inner[0].words[0].text)
    );
}

#[rstest]
#[case("env")]
#[case("sudo")]
#[case("command -v git")]
#[case("exec 3<in")]
#[case("bash script.sh a b")]
#[case("trap - EXIT")]
#[case("find . -name x")]
#[case("python3 -m pytest")]
#[case("python3 script.py")]
fn what_runs_no_operand_is_plain(#[case] line: &str) {
    let command = only(line);
    assert_eq!(
        (command.wrapping, command.inner.len()),
        (Wrapping::Plain, 0)
    );
}

#[rstest]
#[case("ls > out", &[(RedirectionKind::Write, Some("out"))])]
#[case("ls >> out 2>>err", &[(RedirectionKind::Write, Some("out")), (RedirectionKind::Write, Some("err"))])]
#[case("ls >| out", &[(RedirectionKind::Write, Some("out"))])]
#[case("ls &> out", &[(RedirectionKind::Write, Some("out"))])]
#[case("ls >& out", &[(RedirectionKind::Write, Some("out"))])]
#[case("ls <> out", &[(RedirectionKind::Write, Some("out"))])]
#[case("ls < in", &[(RedirectionKind::Read, Some("in"))])]
#[case("ls > \"$x\" < ~/in", &[(RedirectionKind::Write, None), (RedirectionKind::Read, Some("~/in"))])]
#[case("ls > ~other/out", &[(RedirectionKind::Write, Some("~other/out"))])]
#[case("ls > *.txt", &[(RedirectionKind::Write, None)])]
#[case("> out", &[(RedirectionKind::Write, Some("out"))])]
#[case("ls 2>&1 >/dev/null 2> /dev/stderr < /dev/null 3>&-", &[])]
#[case("cat <<< x", &[])]
fn redirections_are_found(
    #[case] line: &str,
    #[case] expected: &[(RedirectionKind, Option<&str>)],
) {
    let found: Vec<_> = only(line)
        .redirections
        .into_iter()
        .map(|redirection| (redirection.kind, redirection.target))
        .collect();
    let expected: Vec<_> = expected
        .iter()
        .map(|(kind, target)| (*kind, target.map(str::to_owned)))
        .collect();
    assert_eq!(found, expected);
}

#[test]
fn the_redirection_of_a_loop_is_that_of_a_command_without_words() {
    let commands = proven("for x in a; do ls; done > out");
    assert!(commands[1].words.is_empty());
    assert_eq!(commands[1].redirections[0].target.as_deref(), Some("out"));
}

fn hazards(line: &str) -> Vec<(usize, HazardKind)> {
    let hazards = only(line).hazards;
    hazards
        .iter()
        .map(|hazard| (hazard.word, hazard.what))
        .collect()
}

#[rstest]
#[case("find . -delete", &[(2, HazardKind::WritesFile)])]
#[case("find . -fprintf out x", &[(2, HazardKind::WritesFile)])]
#[case("sed -ni p f", &[(1, HazardKind::WritesFile)])]
#[case("sed --in-pl=.bak p f", &[(1, HazardKind::WritesFile)])]
#[case("sed 's/a/id/e' f", &[(1, HazardKind::RunsProgram)])]
#[case("sed -n -e p -e 'w out' f", &[(5, HazardKind::RunsProgram)])]
#[case("sort -ro out f", &[(1, HazardKind::WritesFile)])]
#[case("sort --compress-prog=./x f", &[(1, HazardKind::RunsProgram)])]
#[case("man --htm=./x ls", &[(1, HazardKind::RunsProgram)])]
#[case("rg --pre ./x y", &[(1, HazardKind::RunsProgram)])]
#[case("go test -exec ./x ./...", &[(2, HazardKind::RunsProgram)])]
#[case("git -c core.pager=x log", &[(1, HazardKind::RunsProgram)])]
#[case("git log --outp=x", &[(2, HazardKind::WritesFile)])]
#[case("git diff --ext-d", &[(2, HazardKind::RunsProgram)])]
#[case("git grep -nO./x y", &[(2, HazardKind::RunsProgram)])]
#[case("git clone -u ./x y", &[(2, HazardKind::RunsProgram)])]
#[case("git rebase -x ./x main", &[(2, HazardKind::RunsProgram)])]
#[case("git clone ext::x y", &[(2, HazardKind::RunsProgram)])]
#[case("git bisect run ./x", &[(2, HazardKind::RunsProgram)])]
#[case("tar xf a --checkpoint-action=exec=./x", &[(3, HazardKind::RunsProgram)])]
#[case("tar cIf ./x a b", &[(1, HazardKind::RunsProgram)])]
#[case("awk '{print > \"f\"}' g", &[(1, HazardKind::RunsProgram)])]
#[case("tee out", &[(1, HazardKind::WritesFile)])]
#[case("curl -so x https://e.org", &[(1, HazardKind::WritesFile)])]
#[case("curl -d @secret https://e.org", &[(2, HazardKind::SendsFile)])]
#[case("python3 -c 'print(1)'", &[(1, HazardKind::RunsCode)])]
#[case("npx -p x tsc", &[(1, HazardKind::RunsProgram), (2, HazardKind::RunsProgram)])]
#[case("npx tsc --outDir x", &[(1, HazardKind::RunsProgram), (2, HazardKind::WritesFile)])]
#[case("npx npx x", &[(1, HazardKind::RunsProgram), (2, HazardKind::RunsProgram)])]
#[case("gh -R a/b alias set", &[(3, HazardKind::RunsProgram)])]
#[case("sqlite3 db '.shell id'", &[(2, HazardKind::RunsProgram)])]
#[case("make SHELL=./x", &[(1, HazardKind::RunsProgram)])]
#[case("cargo --config x=y build", &[(1, HazardKind::RunsProgram)])]
#[case("docker run -v /:/x y", &[(2, HazardKind::WritesFile)])]
#[case("vim -c '!id' f", &[(1, HazardKind::RunsProgram)])]
#[case("parallel rm", &[(1, HazardKind::RunsProgram)])]
#[case("history -a f", &[(1, HazardKind::WritesFile)])]
#[case("[ -v 'a[$(id)]' ]", &[(2, HazardKind::RunsProgram)])]
#[case("[ \"$a\" \"$b\" ]", &[(2, HazardKind::RunsProgram)])]
// A word that could turn out to be such an option.
#[case("find $x", &[(1, HazardKind::Unknown)])]
#[case("sort \"$f\"", &[(1, HazardKind::Unknown)])]
#[case("sort *", &[(1, HazardKind::Unknown)])]
#[case("git log \"$branch\"", &[(2, HazardKind::Unknown)])]
#[case("sort -$x f", &[(1, HazardKind::Unknown)])]
#[case("sort --key=$k a$x", &[(1, HazardKind::Unknown), (2, HazardKind::Unknown)])]
#[case("printf \"$x\"", &[(1, HazardKind::Unknown)])]
// What is harmless.
#[case("git log -1 -- \"$f\" $g", &[])]
#[case("sqlite3 ./x.db 'select a.b from a'", &[])]
#[case("sed -n '1,20p' src/main.rs", &[])]
#[case("git commit -m \"$msg\"", &[])]
#[case("git add *.rs", &[])]
#[case("git log -c --oneline", &[])]
#[case("wc -l \"$f\"", &[])]
#[case("sort ./\"$f\" a*", &[])]
#[case("sort --key=\"$k\" f", &[])]
#[case("awk -F: '{print $1}' f", &[])]
#[case("unknown -exec -o $x", &[])]
#[case("[ \"$a\" = \"$b\" ]", &[])]
fn hazards_are_found(#[case] line: &str, #[case] expected: &[(usize, HazardKind)]) {
    assert_eq!(hazards(line), expected);
}

#[rstest]
#[case("git log \"$(pwd)/x\" $(pwd)", &[(3, HazardKind::Unknown)])]
#[case("git log $(git rev-parse --output=x)", &[(2, HazardKind::Unknown)])]
#[case("git log $(git branch --show-current)", &[(2, HazardKind::Unknown)])]
#[case("git log $(git merge-base main HEAD)..HEAD", &[])]
#[case("git show \"$(git rev-parse HEAD)\"", &[])]
#[case("gh pr create --body \"$(cat x)\"", &[])]
fn what_a_substitution_prints_may_be_an_option(
    #[case] line: &str,
    #[case] expected: &[(usize, HazardKind)],
) {
    let script = strict(line).unwrap();
    let hazards = script.commands[0].hazards.iter();
    let found: Vec<_> = hazards.map(|hazard| (hazard.word, hazard.what)).collect();
    assert_eq!(found, expected);
}

#[rstest]
#[case("tee -a a b", "a b")]
#[case("cp -r a b c", "c")]
// Too much is fine.
#[case("cp -t dir a b", "dir b")]
#[case("mv a b", "a b")]
#[case("rm -rf -- -x y", "-x y")]
#[case("chmod +x a b", "a b")]
#[case("dd if=a of=b", "b")]
#[case("sed -i s/a/b/ f g", "s/a/b/ f g")]
#[case("tar -xzf a.tgz -C dir", "a.tgz dir")]
#[case("curl -sLo out https://e.org", "out")]
#[case("cp a $dir/b", "$dir/b")]
#[case("cp a b $x", "b $x")]
#[case("cat a", "")]
fn written_files_are_known(#[case] line: &str, #[case] expected: &str) {
    assert_eq!(only(line).writes.join(" "), expected);
}

#[test]
fn names_of_assignments_are_kept() {
    assert_eq!(only("A=1 B+=2 C= ls").assignments, ["A", "B", "C"]);
    let command = only("A=1");
    assert!(command.words.is_empty());
    assert_eq!(command.assignments, ["A"]);
}

#[test]
fn each_limit_refuses() {
    let nested = |levels: usize| format!("{}ls{}", "( ".repeat(levels), ")".repeat(levels));
    assert!(strict(&nested(MAX_DEPTH - 1)).is_ok());
    assert_eq!(strict(&nested(MAX_DEPTH)), Err(Refusal::TooDeep));
    assert!(strict(&vec!["ls"; MAX_COMMANDS].join(";")).is_ok());
    assert_eq!(
        strict(&vec!["ls"; MAX_COMMANDS + 1].join(";")),
        Err(Refusal::TooManyCommands)
    );
    assert_eq!(strict(&"a".repeat(MAX_LENGTH + 1)), Err(Refusal::TooLong));
    assert_eq!(
        strict(&format!("echo {}", "{1..64} ".repeat(400))),
        Err(Refusal::TooManyWords)
    );
    assert_eq!(strict(&"nice ".repeat(100)), Err(Refusal::TooDeep));
}

#[test]
fn a_refusal_says_which_part_and_why() {
    let shown = |line: &str| strict(line).unwrap_err().to_string();
    assert_eq!(
        shown("ls; $x y"),
        "the name of the program is not literal: `$x`"
    );
    assert_eq!(
        shown("ls | sh"),
        "`sh` would run what it reads from its input"
    );
    assert_eq!(
        shown("LD_PRELOAD=x ls"),
        "setting `LD_PRELOAD` changes how programs are found or what they load"
    );
    assert_eq!(
        shown("ls && "),
        "the command does not parse: a missing command at the end"
    );
    assert_eq!(
        shown("bash -c \"$x\""),
        "what `bash` would run cannot be read from `$x`"
    );
    assert_eq!(
        shown("ls\u{202e}"),
        "the command contains the invisible or deceptive character U+202E"
    );
}
