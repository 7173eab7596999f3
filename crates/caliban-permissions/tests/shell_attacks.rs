//! Known ways around the matching of commands. Each is refused, shows the hidden command, or
//! shows the argument that does the harm; and a denial finds the command wherever it hides.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test may panic"
)]

use caliban_permissions::shell::{Command, Completeness, lenient, strict};
use rstest::rstest;

/// Whether the line is proven to run `rm`, wrapped or not.
fn shows_rm(line: &str) -> bool {
    let Ok(script) = strict(line) else {
        return false;
    };
    script
        .commands
        .iter()
        .flat_map(Command::all)
        .any(|command| {
            command
                .words
                .first()
                .is_some_and(|word| word.text.ends_with("rm"))
        })
}

fn denial_finds_rm(line: &str) -> bool {
    let found = lenient(line);
    found
        .candidates
        .iter()
        .any(|candidate| candidate.words.first().is_some_and(|word| word == "rm"))
}

#[rstest]
// A chain of any kind: the whole line begins with what is allowed.
#[case("ls && rm x")]
#[case("ls; rm x")]
#[case("ls | rm x")]
#[case("ls || rm x")]
#[case("ls & rm x")]
#[case("ls |& rm x")]
#[case("ls\nrm x")]
#[case("ls &&\n\n# comment\nrm x")]
// Substitutions and everything else that runs before the command itself.
#[case("ls $(rm x)")]
#[case("ls `rm x`")]
#[case("ls <(rm x)")]
#[case("ls > >(rm x)")]
#[case("ls \"$(rm x)\"")]
#[case("ls ${a:-$(rm x)}")]
#[case("ls \"${a:-`rm x`}\"")]
#[case("ls ${a/x/$(rm x)}")]
#[case("x=$(rm x)")]
#[case("x=(a $(rm x))")]
#[case("ls > $(rm x)")]
#[case("cat <<EOF\n$(rm x)\nEOF")]
#[case("cat <<< $(rm x)")]
#[case("echo {a,$(rm x)}")]
#[case("[[ $(rm x) ]]")]
#[case("for i in $(rm x); do ls; done")]
#[case("case $(rm x) in *) ls;; esac")]
#[case("echo \"a\\\"b $(rm x)\"")]
// Groups, loops, conditions, functions.
#[case("(ls; rm x)")]
#[case("{ ls; rm x; }")]
#[case("if ls; then rm x; fi")]
#[case("while ls; do rm x; done")]
#[case("case a in a) rm x;; esac")]
#[case("f() { rm x; }; f")]
#[case("function f { rm x; }; f")]
#[case("! rm x")]
#[case("time rm x")]
#[case("time -p rm x")]
// Wrappers.
#[case("sudo rm x")]
#[case("env FOO=1 rm x")]
#[case("timeout 5 rm x")]
#[case("nice nohup rm x")]
#[case("xargs rm")]
#[case("ls | xargs -n1 rm -f")]
#[case("find . -exec rm {} ;")]
#[case("find . -exec rm {} \\;")]
#[case("find . -name a -o -ok rm {} +")]
#[case("bash -c 'rm x'")]
#[case("bash -c \"ls; rm x\"")]
#[case("sh -c 'sh -c \"rm x\"'")]
#[case("eval 'rm x'")]
#[case("eval rm x")]
#[case("exec rm x")]
#[case("command rm x")]
#[case("ssh host rm x")]
#[case("watch rm x")]
#[case("trap 'rm x' EXIT")]
// The same program by another spelling.
#[case("/bin/rm x")]
#[case("./rm x")]
#[case("r\"m\" x")]
#[case("'r'm x")]
#[case("r''m x")]
#[case("\\rm x")]
#[case("$'rm' x")]
#[case("$'\\x72m' x")]
#[case("$'\\162m' x")]
#[case("{rm,-rf,x}")]
#[case("> out rm x")]
#[case("A=1 rm x")]
fn a_hidden_command_is_shown(#[case] line: &str) {
    if line.contains("-exec rm {} ;") {
        // Without the backslash the command of `find` has no end.
        assert!(strict(line).is_err());
    } else {
        assert!(shows_rm(line), "{:?}", strict(line));
    }
    assert!(denial_finds_rm(line), "{:?}", lenient(line));
}

#[rstest]
// Built at run time.
#[case("r$@m x")]
#[case("r${x}m x")]
#[case("r$(true)m x")]
#[case("r`true`m x")]
#[case("rm$IFS-rf$IFS.")]
#[case("rm${IFS}x")]
#[case("x=rm; $x y")]
#[case("x='rm y'; $x")]
#[case("for c in rm; do $c x; done")]
#[case("bash -c \"$(echo rm x)\"")]
#[case("sh -c rm\\ x\\ $y")]
#[case("ls | xargs -I{} sh -c 'rm {}'")]
#[case("find . -exec sh -c 'rm {}' \\;")]
#[case("eval \"rm $x\"")]
#[case("ssh host \"rm $x\"")]
#[case("r\\\nm x")]
// From the input of a shell or an interpreter.
#[case("echo rm x | sh")]
#[case("bash <<EOF\nrm x\nEOF")]
#[case("bash <<'EOF'\nls\nrm x\nEOF")]
#[case("sh <<< 'rm x'")]
#[case("cat <<EOF | bash -s\nrm x\nEOF")]
#[case("echo 'rm x' | xargs -0 sh -c")]
#[case("echo 'import os; os.system(\"rm x\")' | python3")]
// Arithmetic, which runs what is in a subscript.
#[case("echo $(( a[$(rm x)] ))")]
#[case("((a[$(rm x)]=1))")]
#[case("a[$(rm x)]=1")]
#[case("echo ${a[$(rm x)]}")]
#[case("echo ${x:$(rm x)}")]
#[case("let 'a[$(rm x)]=1'")]
#[case("[[ -v a[$(rm x)] ]]")]
#[case("read 'a[$(rm x)]'")]
#[case("printf -v 'a[$(rm x)]' x")]
#[case("echo $[ $(rm x) ]")]
// Where quotes and ends are not where they seem to be.
#[case("echo \"${x:-'$(rm x)'}\"")]
#[case("echo $(cat <<EOF\na\nEOF)\nrm x\nEOF\n)")]
#[case("cat <<E\\\nOF\nEOF\nrm x")]
#[case("cat <<EOF\nx\\\nEOF\nrm x\nEOF")]
#[case("echo a\rrm x")]
#[case("echo $\"$(rm x)\"")]
#[case("coproc rm x")]
#[case("((rm x) )")]
// `sh` may not be bash.
#[case("sh -c '((rm x))'")]
#[case("sh -c 'ls &>x rm y'")]
#[case("sh -c 'x+=1 rm y'")]
#[case("sh -c '{rm,x}'")]
// A shell or interpreter inside of another's text.
#[case("zsh -c 'rm x'")]
#[case("sudo -i rm x")]
#[case("env -S 'rm x'")]
fn what_cannot_be_read_is_refused_and_a_denial_finds_it(#[case] line: &str) {
    assert!(strict(line).is_err(), "{:?}", strict(line));
    assert!(denial_finds_rm(line), "{:?}", lenient(line));
}

#[rstest]
#[case("$CMD x")]
#[case("${x@P}")]
#[case("echo \"${x@P}\"")]
#[case("echo ${!x}")]
#[case("/bin/r? x")]
#[case("\"$@\"")]
#[case("read x; echo $((x))")]
#[case("x=$(cat f); [[ $x -eq 1 ]]")]
#[case("echo $((x))")]
// Builtins that change what later commands mean.
#[case("alias ls=rm; ls")]
#[case("hash -p /tmp/x ls; ls")]
#[case("enable -f x y; y")]
#[case("export PATH=/tmp:$PATH; ls")]
#[case("declare -x LD_PRELOAD=x; ls")]
#[case("typeset -n x=PATH; x=/tmp; ls")]
#[case("declare -i x; x='a[0]'")]
#[case("export \"$x\"; ls")]
#[case("command export X=$y; ls")]
#[case("export $y; ls")]
#[case("readonly IFS=x")]
#[case("set -k; ls LD_PRELOAD=x")]
#[case("shopt -s expand_aliases; ls")]
#[case("shopt -s extglob\nls !(a)")]
#[case("source x; ls")]
#[case(". x; ls")]
#[case("for PATH in /tmp; do ls; done")]
#[case("read PATH < f; ls")]
#[case("printf -v PATH x; ls")]
#[case(": ${PATH:=x}; ls")]
#[case("((PATH=1)); ls")]
#[case("mapfile PATH; ls")]
#[case("trap \"$x\" EXIT")]
#[case("ls() { id; }; ls")]
#[case("git() { id; }; git status")]
// Variables that load, run or look up.
#[case("LD_PRELOAD=x ls")]
#[case("PATH=. ls")]
#[case("GIT_SSH_COMMAND=x git fetch")]
#[case("GIT_PAGER=x git log")]
#[case("NODE_OPTIONS=x node y.js")]
#[case("BASH_ENV=x bash y")]
#[case("IFS=x; ls")]
#[case("env LD_PRELOAD=x ls")]
#[case("sudo LD_PRELOAD=x ls")]
#[case("timeout 5 env PATH=. ls")]
#[case("PAGER=x EDITOR=y ls")]
// Characters that a reader does not see as what they are.
#[case("ls\u{a0}x")]
#[case("ls \u{202e}x")]
#[case("ls \u{200b}x")]
#[case("ls\u{b}x")]
#[case("ls \u{1b}[2Jx")]
#[case("ls\0x")]
// Network by redirection.
#[case("cat < /dev/tcp/host/80")]
#[case("exec 3<>/dev/tcp/host/80")]
#[case("echo x > /dev/udp/host/53")]
// Operands of a wrapper where the program would be.
#[case("timeout $x rm y")]
#[case("timeout 5 $x")]
#[case("sudo \"$x\"")]
#[case("xargs $x")]
#[case("find . -exec {} \\;")]
#[case("find . -exec rm $x \\;")]
#[case("nice --unknown rm x")]
#[case("ssh host -oProxyCommand=x")]
// Not valid, or valid only with other settings.
#[case("ls &&")]
#[case("ls )")]
#[case("ls; }")]
#[case("ls ;; rm x")]
#[case("echo !(a|b)")]
#[case("if ls; then")]
#[case("echo 'a")]
#[case("{ ls }")]
#[case("ls 99999999999>x")]
#[case("cat <<EOF\nno end")]
fn what_is_not_provable_is_refused(#[case] line: &str) {
    assert!(strict(line).is_err(), "{:?}", strict(line));
}

#[rstest]
#[case("echo \"a; rm x\"")]
#[case("echo 'a\n rm x'")]
#[case("git rm x")]
#[case("git commit -m 'rm old files'")]
#[case("git commit -m \"$(cat <<'EOF'\nrm this; rm that\nEOF\n)\"")]
#[case("grep -rn 'rm -rf' .")]
#[case("man rm")]
#[case("which rm")]
#[case("cat > notes <<'EOF'\nrm x\nEOF")]
#[case("farm seed")]
#[case("npm run rm")]
fn a_name_that_is_only_mentioned_is_not_denied(#[case] line: &str) {
    assert!(strict(line).is_ok(), "{:?}", strict(line));
    assert!(!denial_finds_rm(line), "{:?}", lenient(line));
}

#[rstest]
#[case("mystery rm x")]
#[case("mystery --flag value -- rm x")]
#[case("mystery 'rm x'")]
#[case("git -c alias.x='!rm y' x")]
#[case("git bisect run rm x")]
#[case("git rebase -x 'rm y' main")]
#[case("sed 's/a/rm x/e' f")]
#[case("awk 'BEGIN{system(\"rm x\")}'")]
#[case("python3 -c 'import os; os.system(\"rm x\")'")]
#[case("tar cf a b --checkpoint-action=exec='rm x'")]
#[case("parallel rm ::: x")]
#[case("docker exec c rm x")]
#[case("npm exec -- rm x")]
fn operands_that_may_be_run_are_denied(#[case] line: &str) {
    assert!(denial_finds_rm(line), "{:?}", lenient(line));
}

#[test]
fn over_a_limit_the_search_says_so() {
    let complete = |line: &str| lenient(line).complete;
    assert_eq!(complete("ls"), Completeness::Complete);
    assert_eq!(
        complete(&format!("echo {}", "x".repeat(70_000))),
        Completeness::Cut
    );
    assert_eq!(
        complete(&"ls;mystery;a b;".repeat(4000)),
        Completeness::Complete
    );
    assert_eq!(
        complete(&format!("mystery {}", "x ".repeat(2000))),
        Completeness::Cut
    );
    assert_eq!(complete(&"$(".repeat(100)), Completeness::Cut);
    let many: Vec<String> = (0..5000).map(|n| format!("c{n}")).collect();
    assert_eq!(complete(&many.join(";")), Completeness::Cut);
}
