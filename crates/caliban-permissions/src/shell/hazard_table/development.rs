//! Hazards of version control, interpreters, builds, containers and wrappers.

use super::{Area, NONE, Spec};

pub(super) const SPECS: &[Spec] = &[
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
        area: Area::BeforeSubcommand,
        runs: "alias extension ext",
        ..NONE
    },
    // Interpreters: their operands are scripts, which a rule names; code in an option is more,
    // unless the rule is about every call.
    Spec {
        programs: "python python2 python3 pypy pypy3",
        code: "-c",
        ..NONE
    },
    Spec {
        programs: "node nodejs bun deno tsx ts-node",
        code: "-e --eval -p --print eval -r --require --import --loader --experimental-loader \
               --preload",
        ..NONE
    },
    Spec {
        programs: "perl",
        code: "-e -E -M -m -I -d -i",
        ..NONE
    },
    Spec {
        programs: "ruby",
        code: "-e -r -I -i",
        ..NONE
    },
    Spec {
        programs: "php",
        code: "-r -B -R -E -d -c -z",
        ..NONE
    },
    Spec {
        programs: "lua luajit",
        code: "-e -l",
        ..NONE
    },
    Spec {
        programs: "julia elixir iex scala ghc R Rscript osascript groovy gnuplot",
        code: "-e -E --eval -L",
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
        runs: "-cmd",
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
        area: Area::BeforeSubcommand,
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
