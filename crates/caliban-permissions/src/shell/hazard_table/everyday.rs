//! Hazards of everyday tools.

use super::{NONE, Spec};

pub(super) const SPECS: &[Spec] = &[
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
];
