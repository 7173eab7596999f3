//! The table of hazardous arguments.
//!
//! `-x` is a letter in a cluster of options, `--long` also its abbreviations, `-word` an option
//! with one or two dashes, `word=`, `word:` and `word+` the beginning of a word, `~part` a part
//! of one, `@` every operand, `*` every argument, anything else a whole word.

use std::collections::HashMap;
use std::sync::LazyLock;

use super::HazardKind::{self, LoadsCode, RunsProgram, SendsFile, WritesFile};

/// The hazards of some programs; each field is a list of words.
pub(super) struct Spec {
    programs: &'static str,
    pub(super) area: Area,
    runs: &'static str,
    loads: &'static str,
    writes: &'static str,
    sends: &'static str,
}

/// Where in the command the options mean this.
#[derive(Debug, Clone, Copy)]
pub(super) enum Area {
    Anywhere,
    /// Up to the subcommand.
    BeforeSubcommand,
    /// After one of these subcommands.
    Under(&'static str),
}

/// The specifications of a program.
pub(super) fn of(program: &str) -> &'static [&'static Spec] {
    static BY_PROGRAM: LazyLock<HashMap<&str, Vec<&Spec>>> = LazyLock::new(|| {
        let mut by_program: HashMap<&str, Vec<&Spec>> = HashMap::new();
        for spec in HAZARDS {
            for program in spec.programs.split_whitespace() {
                by_program.entry(program).or_default().push(spec);
            }
        }
        by_program
    });
    BY_PROGRAM.get(program).map_or(&[], Vec::as_slice)
}

impl Spec {
    /// The arguments and what they do.
    pub(super) fn options(&self) -> impl Iterator<Item = (&'static str, HazardKind)> {
        [
            (self.runs, RunsProgram),
            (self.loads, LoadsCode),
            (self.writes, WritesFile),
            (self.sends, SendsFile),
        ]
        .into_iter()
        .flat_map(|(options, kind)| options.split_whitespace().map(move |option| (option, kind)))
    }
}

const NONE: Spec = Spec {
    programs: "",
    area: Area::Anywhere,
    runs: "",
    loads: "",
    writes: "",
    sends: "",
};

const HAZARDS: &[Spec] = &[
    // Searching and listing.
    Spec {
        programs: "find gfind",
        runs: "-exec -execdir -ok -okdir",
        writes: "-delete -fprint -fprint0 -fprintf -fls",
        ..NONE
    },
    Spec {
        programs: "fd fdfind",
        runs: "-x -X --exec --exec-batch",
        ..NONE
    },
    Spec {
        programs: "rg",
        runs: "--pre --hostname-bin",
        ..NONE
    },
    Spec {
        programs: "ag ack",
        runs: "--pager",
        loads: "--ackrc",
        ..NONE
    },
    Spec {
        programs: "tree",
        writes: "-o -R",
        ..NONE
    },
    Spec {
        programs: "fzf",
        runs: "--preview --bind --listen",
        ..NONE
    },
    Spec {
        programs: "file",
        writes: "-C --compile",
        ..NONE
    },
    // Text.
    Spec {
        programs: "sed gsed",
        loads: "-f --file",
        writes: "-i --in-place -I",
        ..NONE
    },
    Spec {
        programs: "awk gawk mawk nawk",
        loads: "-f --file -E --exec -i --include -l --load -e --source -D --debug",
        writes: "-o -p -d --pretty-print --profile --dump-variables",
        ..NONE
    },
    Spec {
        programs: "sort gsort",
        runs: "--compress-program",
        loads: "--files0-from",
        writes: "-o --output -T --temporary-directory",
        ..NONE
    },
    Spec {
        programs: "shuf iconv xmllint xsltproc",
        writes: "-o --output",
        ..NONE
    },
    Spec {
        programs: "split",
        runs: "--filter",
        ..NONE
    },
    Spec {
        programs: "sdiff diff3",
        runs: "--diff-program",
        writes: "-o --output",
        ..NONE
    },
    Spec {
        programs: "yq",
        writes: "-i --inplace -s --split-exp",
        ..NONE
    },
    Spec {
        programs: "tee sponge",
        writes: "@",
        ..NONE
    },
    // Pagers, manuals and editors.
    Spec {
        programs: "man",
        runs: "-P --pager -H --html -p --preprocessor -X --gxditview",
        loads: "-C --config-file -l --local-file",
        ..NONE
    },
    Spec {
        programs: "less more most",
        runs: "+",
        loads: "-k --lesskey-file --lesskey-src",
        writes: "-o -O --log-file",
        ..NONE
    },
    Spec {
        programs: "bat delta",
        runs: "--pager",
        ..NONE
    },
    Spec {
        programs: "vi vim nvim view ex rvim vimdiff gvim",
        runs: "-c --cmd +",
        loads: "-S -s -u -U -l",
        writes: "-w -W",
        ..NONE
    },
    Spec {
        programs: "emacs emacsclient",
        runs: "--eval --execute -e -f --funcall -eval",
        loads: "-l --load --script -x -load",
        ..NONE
    },
    // Version control.
    Spec {
        programs: "git",
        area: Area::BeforeSubcommand,
        runs: "-c --config-env --exec-path",
        loads: "-C --git-dir --work-tree --namespace --super-prefix",
        ..NONE
    },
    Spec {
        programs: "git",
        area: Area::Under(
            "diff log show whatchanged stash range-diff diff-tree diff-index diff-files \
                     format-patch shortlog reflog rev-list",
        ),
        runs: "--ext-diff",
        loads: "--no-index",
        writes: "--output --output-directory",
        ..NONE
    },
    Spec {
        programs: "git",
        area: Area::Under("format-patch"),
        writes: "-o",
        ..NONE
    },
    Spec {
        programs: "git",
        area: Area::Under("grep"),
        runs: "-O --open-files-in-pager --ext-grep",
        ..NONE
    },
    Spec {
        programs: "git",
        area: Area::Under(
            "clone fetch pull push ls-remote remote submodule fetch-pack send-pack \
                     archive",
        ),
        runs: "--upload-pack --receive-pack --exec --upload-archive ext:: --config --remote \
               --server-option",
        loads: "--template",
        ..NONE
    },
    Spec {
        programs: "git",
        area: Area::Under("clone"),
        runs: "-u -c",
        ..NONE
    },
    Spec {
        programs: "git",
        area: Area::Under("init"),
        loads: "--template",
        ..NONE
    },
    Spec {
        programs: "git",
        area: Area::Under("archive bundle"),
        writes: "-o --output",
        ..NONE
    },
    Spec {
        programs: "git",
        area: Area::Under("rebase"),
        runs: "-x --exec",
        ..NONE
    },
    Spec {
        programs: "git",
        area: Area::Under("bisect"),
        runs: "run",
        ..NONE
    },
    Spec {
        programs: "git",
        area: Area::Under("submodule"),
        runs: "foreach",
        ..NONE
    },
    Spec {
        programs: "git",
        area: Area::Under(
            "config credential daemon difftool filter-branch for-each-repo gui hook \
                     instaweb mergetool p4 send-email shell svn web--browse fast-import \
                     update-index update-ref maintenance",
        ),
        runs: "*",
        ..NONE
    },
    Spec {
        programs: "hg",
        runs: "--config",
        loads: "--cwd -R --repository",
        ..NONE
    },
    Spec {
        programs: "svn",
        runs: "--config-option --diff-cmd --editor-cmd",
        loads: "--config-dir",
        ..NONE
    },
    Spec {
        programs: "gh",
        runs: "alias extension ext",
        ..NONE
    },
    // Archives and copies.
    Spec {
        programs: "tar bsdtar gtar",
        runs: "--checkpoint-action --to-command -I --use-compress-program --rsh-command \
               --rmt-command -F --info-script --new-volume-script",
        loads: "-T --files-from",
        writes: "-C --directory -P --absolute-names --index-file",
        ..NONE
    },
    Spec {
        programs: "zip",
        runs: "-T -TT --unzip-command --test",
        ..NONE
    },
    Spec {
        programs: "unzip",
        writes: "-d",
        ..NONE
    },
    Spec {
        programs: "cpio",
        runs: "--rsh-command",
        writes: "-O -F",
        ..NONE
    },
    Spec {
        programs: "rsync",
        runs: "-e --rsh --rsync-path -M --remote-option --daemon",
        loads: "--config --files-from",
        writes: "--log-file --write-batch",
        ..NONE
    },
    Spec {
        programs: "dd",
        writes: "of=",
        ..NONE
    },
    // Network.
    Spec {
        programs: "ssh scp sftp sshfs",
        runs: "-o -S -D -J -W -L -R",
        loads: "-F -I",
        writes: "-E",
        ..NONE
    },
    Spec {
        programs: "ssh-keygen ssh-add",
        loads: "-D -s -w",
        writes: "-f",
        ..NONE
    },
    Spec {
        programs: "curl",
        loads: "-K --config --engine",
        writes: "-o --output -O --remote-name --remote-name-all --output-dir -c --cookie-jar -D \
                 --dump-header --trace --trace-ascii --stderr --libcurl --etag-save --hsts \
                 --alt-svc -J",
        sends: "-T --upload-file -F --form ~@ file: --netrc-file -n --netrc",
        ..NONE
    },
    Spec {
        programs: "wget wget2",
        runs: "--use-askpass",
        loads: "-e --execute --config -i --input-file",
        writes: "-O --output-document -P --directory-prefix -o --output-file -a --append-output \
                 --save-cookies --warc-file",
        sends: "--post-file --body-file",
        ..NONE
    },
    Spec {
        programs: "nc ncat netcat",
        runs: "-e -c --exec --sh-exec --lua-exec",
        ..NONE
    },
    Spec {
        programs: "openssl",
        loads: "-engine -provider -config",
        writes: "-out -keyout",
        ..NONE
    },
    Spec {
        programs: "gpg gpg2",
        runs: "--agent-program --photo-viewer",
        loads: "--homedir --options",
        writes: "-o --output",
        ..NONE
    },
    // Interpreters: their operands are scripts, which a rule names; code in an option is more.
    Spec {
        programs: "python python2 python3 pypy pypy3",
        runs: "-c",
        ..NONE
    },
    Spec {
        programs: "node nodejs bun deno tsx ts-node",
        runs: "-e --eval -p --print eval",
        loads: "-r --require --import --loader --experimental-loader --preload",
        ..NONE
    },
    Spec {
        programs: "perl",
        runs: "-e -E",
        loads: "-M -m -I -d",
        writes: "-i",
        ..NONE
    },
    Spec {
        programs: "ruby",
        runs: "-e",
        loads: "-r -I",
        writes: "-i",
        ..NONE
    },
    Spec {
        programs: "php",
        runs: "-r -B -R -E",
        loads: "-d -c -z",
        ..NONE
    },
    Spec {
        programs: "lua luajit",
        runs: "-e",
        loads: "-l",
        ..NONE
    },
    Spec {
        programs: "julia elixir iex scala ghc R Rscript osascript groovy gnuplot",
        runs: "-e -E --eval",
        loads: "-L",
        ..NONE
    },
    Spec {
        programs: "java",
        runs: "-XX:",
        loads: "-javaagent: -agentlib: -agentpath: -cp -classpath",
        ..NONE
    },
    Spec {
        programs: "sqlite3",
        runs: "~. -cmd",
        loads: "-init ~load_extension",
        sends: "~readfile",
        ..NONE
    },
    Spec {
        programs: "psql",
        runs: "-c --command",
        loads: "-f --file",
        writes: "-o --output -L",
        ..NONE
    },
    Spec {
        programs: "mysql mariadb",
        runs: "-e --execute --pager --init-command",
        writes: "--tee",
        ..NONE
    },
    // Building, packaging, testing.
    Spec {
        programs: "make gmake ninja",
        runs: "~= --eval -E",
        loads: "-f --file --makefile -C --directory -I",
        ..NONE
    },
    Spec {
        programs: "cmake",
        runs: "-E -D",
        loads: "-P -C",
        ..NONE
    },
    Spec {
        programs: "npm pnpm yarn",
        runs: "--script-shell exec x dlx create init -c --call explore",
        loads: "--prefix -C --dir --cwd --userconfig --globalconfig --node-options --registry \
                config",
        ..NONE
    },
    Spec {
        programs: "npx bunx uvx pipx",
        runs: "*",
        ..NONE
    },
    Spec {
        programs: "cargo",
        runs: "--config",
        loads: "-Z --manifest-path -C",
        writes: "--target-dir --out-dir --root --artifact-dir",
        ..NONE
    },
    Spec {
        programs: "rustc rustdoc clippy-driver",
        runs: "-C --codegen",
        loads: "-Z --extern",
        writes: "-o --out-dir",
        ..NONE
    },
    Spec {
        programs: "go",
        runs: "-exec -toolexec -vettool -ldflags -gcflags -gccgoflags generate tool",
        loads: "-C -overlay -modfile env",
        writes: "-o -coverprofile -cpuprofile -outputdir",
        ..NONE
    },
    Spec {
        programs: "gcc g++ cc c++ clang clang++ ld",
        runs: "-wrapper -B ~-specs -fuse-ld",
        loads: "~-fplugin ~@ -plugin",
        writes: "-o",
        ..NONE
    },
    Spec {
        programs: "pip pip3 uv",
        runs: "--python",
        loads: "-i --index-url --extra-index-url --find-links -f config --config-file \
                --directory --with",
        writes: "-t --target",
        ..NONE
    },
    Spec {
        programs: "pytest py.test",
        loads: "-p -c --rootdir --confcutdir -o --override-ini --pdbcls",
        writes: "--basetemp --junitxml",
        ..NONE
    },
    Spec {
        programs: "mvn gradle gradlew",
        runs: "-D",
        loads: "-I --init-script -f -b -p -s --settings",
        ..NONE
    },
    Spec {
        programs: "eslint prettier jest mocha vitest webpack vite rollup tsc",
        loads: "-c --config --plugin --rulesdir -r --require -f --format --globalSetup",
        writes: "-o --output-file --fix --write -w --outDir",
        ..NONE
    },
    Spec {
        programs: "pandoc",
        runs: "-F --filter --pdf-engine",
        loads: "-L --lua-filter",
        writes: "-o --output",
        ..NONE
    },
    Spec {
        programs: "latex pdflatex xelatex lualatex tex",
        runs: "-shell-escape -enable-write18",
        writes: "-output-directory",
        ..NONE
    },
    Spec {
        programs: "terraform tofu",
        loads: "-chdir -plugin-dir",
        ..NONE
    },
    // Containers and services.
    Spec {
        programs: "docker podman nerdctl",
        runs: "--privileged --pid --cap-add --security-opt -H --host --entrypoint --userns exec",
        loads: "--config",
        writes: "-v --volume --mount --device cp",
        sends: "--env-file",
        ..NONE
    },
    Spec {
        programs: "kubectl",
        runs: "--kubeconfig exec plugin",
        loads: "-f --filename --token -s --server",
        writes: "cp",
        ..NONE
    },
    Spec {
        programs: "crontab",
        runs: "*",
        ..NONE
    },
    // The shell's own.
    Spec {
        programs: "history",
        loads: "-r -n",
        writes: "-a -w",
        ..NONE
    },
    Spec {
        programs: "mapfile readarray",
        runs: "-C",
        ..NONE
    },
    Spec {
        programs: "compgen fc",
        runs: "*",
        ..NONE
    },
    Spec {
        programs: "time",
        writes: "-o --output",
        ..NONE
    },
    // Wrappers whose options are not modelled: every argument may be or begin what they run.
    Spec {
        programs: "ansible asdf bwrap busybox catchsegv chpst chroot conda cross-env \
                   dbus-run-session dotenv entr expect fakeroot firejail gdb gosu hatch \
                   hyperfine just lldb ltrace mise nix nix-shell nodemon nsenter numactl \
                   parallel perf pkexec proot prlimit rlwrap run-parts runcon runuser screen \
                   script setarch setpriv socat start-stop-daemon strace su su-exec sudoedit \
                   systemd-run task tini tmux toolbox unbuffer unshare valgrind xvfb-run",
        runs: "*",
        ..NONE
    },
];
