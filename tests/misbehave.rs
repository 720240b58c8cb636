//! Programs under test that do what they should not, one a line, on a machine of stand-ins: how the
//! check ends, with which finding, and that no process is left.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use crate::common::stand_in::Machine;
use crate::common::{self, ENV_PASS, Ran, aloud};

/// A signal ended the tool: no exit code, and no report.
const KILLED: i32 = -1;

/// Seconds of a `sleep` that only these programs call.
const SLEEP: &str = "31415";

const SUITE: &str = r#"
[suite.bsr_gemm]
args = ["--m", "8192", "--n", "8192", "--k", "8192", "--blocks-per-row", "16"]
verify_args = ["--result", "{result}"]
profile_args = ["--mode", "profile"]
kernels = "regex:^bsr_gemm_"
work = { flop = 68719476736, bytes_written = 268435456 }

[suite.bsr_gemm.variant.baseline]
run = ["sh", "program.sh"]
inputs = ["program.sh"]
expect = ["bsr_gemm_baseline"]
"#;

/// What the programs find: the folder of the captures, their ncu, the process that runs it.
const HELP: &str = r#"
captures=.sparsek-gate/profiles/bsr_gemm/baseline
gate() { awk '{ print $4 }' /proc/$PPID/stat; }
stem() { tr '\0' '\n' </proc/$PPID/cmdline | sed -n '/^--export$/{n;p;}'; }
export_of() { tr '\0' '\n' </proc/$PPID/cmdline | sed -n "/^--$1\$/{n;p;}"; }
good="$PWD/good.ncu-rep"
"#;

/// One program: what it does besides, while its numbers are checked and while it is profiled, and how
/// the check ends: with this code and finding, and words of its message; without one it passes.
#[derive(Clone, Copy)]
struct Line {
    what: &'static str,
    verified: &'static str,
    profiled: &'static str,
    code: i32,
    denied: &'static str,
}

const fn profiled(what: &'static str, profiled: &'static str) -> Line {
    Line {
        what,
        verified: "",
        profiled,
        code: 0,
        denied: "",
    }
}

const fn verified(what: &'static str, verified: &'static str) -> Line {
    Line {
        verified,
        ..profiled(what, "")
    }
}

impl Line {
    /// It fails with this finding, and words of its message.
    const fn fails(self, denied: &'static str) -> Line {
        Line {
            code: 5,
            denied,
            ..self
        }
    }

    /// The tool itself ends so, and reports nothing.
    const fn ends(self, code: i32) -> Line {
        Line { code, ..self }
    }
}

/// What is written in the place of a result, each of which fails the program.
const NO_RESULTS: &[&str] = &[
    "echo '{\"correct\"' >\"$result\"; exit 0",
    "echo '{\"correct\": \"true\"}' >\"$result\"; exit 0",
    "exit 0",
    ": >\"$result\"; exit 0",
    "truncate -s 100G \"$result\"; exit 0",
    "mkfifo \"$result\"; exit 0",
    "mkdir \"$result\"; exit 0",
    "ln -s /dev/zero \"$result\"; exit 0",
    "ln -s \"$result\" \"$result\"; exit 0",
];

const LINES: &[Line] = &[
    profiled("does nothing else", ""),
    // It ends or stops what runs it.
    profiled("kills ncu", "kill -KILL $PPID; exit 0").fails("program-failed: ended with"),
    profiled("kills its process group", "kill -KILL 0").fails("program-failed: ended with"),
    verified("kills its process group when checked", "kill -KILL 0")
        .fails("program-failed: ended with"),
    profiled("stops itself", "kill -STOP $$").fails("timed-out"),
    profiled("stops ncu", "kill -STOP $PPID; exec sleep 31415").fails("timed-out"),
    profiled("stops its process group", "kill -STOP 0").fails("timed-out"),
    verified("sleeps beyond its limit", "exec sleep 31415").fails("timed-out"),
    verified(
        "ignores SIGTERM, and sleeps beyond its limit",
        "trap '' TERM; while :; do sleep 31415; done",
    )
    .fails("timed-out"),
    profiled(
        "asks the tool to end",
        "kill -TERM $(gate); exec sleep 31415",
    )
    .ends(130),
    profiled("kills the tool", "kill -KILL $(gate)").ends(KILLED),
    // It outlives.
    profiled("leaves a child", "sleep 31415 >/dev/null 2>&1 &"),
    profiled("leaves a session", "setsid sleep 31415 >/dev/null 2>&1 &"),
    profiled(
        "leaves a grandchild without a mark",
        "(env -i setsid sh -c 'sleep 31415 & sleep 31415' &) >/dev/null 2>&1",
    ),
    verified(
        "leaves a grandchild without a mark when checked",
        "(env -i setsid sh -c 'sleep 31415 & sleep 31415' &) >/dev/null 2>&1",
    ),
    profiled(
        "leaves a stopped grandchild without a mark",
        "(env -i setsid sh -c 'kill -STOP $$; sleep 31415' &) >/dev/null 2>&1",
    ),
    profiled(
        "leaves 200 processes",
        "i=0; while [ $i -lt 200 ]; do i=$((i + 1)); (env -i setsid sleep 31415 &) >/dev/null 2>&1; done",
    ),
    profiled(
        "leaves a process that starts itself again and again",
        "(env -i setsid sh -c 'n=0; while [ $n -lt 300 ]; do n=$((n + 1)); (sleep 31415 &); done' &) >/dev/null 2>&1",
    ),
    // What it prints.
    verified("prints for ever", "exec yes").fails("program-failed: ended with"),
    profiled("prints for ever on standard error", "exec yes >&2").fails("profiler-failed"),
    profiled("closes its files", "exec 0<&- 1>&- 2>&-"),
    profiled(
        "prints what ncu prints",
        "echo '==PROF== Connected to process 1 (ncu)'; echo '==ERROR== ERR_NVGPUCTRPERM'; \
         echo '==WARNING== No kernels were profiled.'; echo '==PROF== Report: /tmp/x.ncu-rep'; \
         echo '\"ID\",\"Process ID\",\"Kernel Name\"'; echo '\"0\",\"1\",\"bsr_gemm_baseline\"'",
    ),
    profiled(
        "prints what ncu prints on standard error",
        "echo '==ERROR== ERR_NVGPUCTRPERM' >&2; echo '==ERROR== LibraryNotLoaded' >&2",
    ),
    // Reports.
    profiled(
        "leaves a report and fails",
        "cp \"$good\" \"$(stem).ncu-rep\"; exit 3",
    )
    .fails("program-failed: the program failed"),
    profiled(
        "leaves a report with the other ending beside that of ncu",
        "cp \"$good\" \"$(stem).ncu-repz\"",
    )
    .fails("altered-during-run"),
    profiled(
        "leaves a report and kills ncu",
        "cp \"$good\" \"$(stem).ncu-rep\"; kill -KILL $PPID",
    )
    .fails("program-failed: ended with"),
    profiled(
        "leaves reports under the names of later processes, and fails there",
        "[ -e $captures/capture-1.ncu-rep ] && exit 3; cp \"$good\" $captures/capture-1.ncu-rep; \
         cp \"$good\" $captures/capture-2.ncu-rep",
    )
    .fails("program-failed: the program failed"),
    profiled(
        "leaves a FIFO, a folder and a link under the names of later processes",
        "for n in 1 2; do [ -e $captures/capture-$n.argv ] || { mkfifo $captures/capture-$n.argv; \
         mkdir $captures/capture-$n.ncu-rep; ln -s /dev/zero $captures/capture-$n.ncu.log; }; done",
    ),
    profiled(
        "appends to the report of an earlier process",
        "[ ! -e $captures/capture-1.ncu-rep ] || echo x >>$captures/capture-1.ncu-rep",
    )
    .fails("altered-during-run"),
    profiled(
        "replaces the report of an earlier process by a link to itself elsewhere",
        "old=$captures/counting.ncu-rep; [ ! -f $old ] || [ -L $old ] || { mv $old moved; ln -s \"$PWD/moved\" $old; }",
    )
    .fails("altered-during-run"),
    profiled(
        "writes to the command line of its own process",
        "echo 'ncu --nothing' >\"$(stem).argv\"",
    )
    .fails("altered-during-run"),
    profiled(
        "writes to the command line of an earlier process",
        "[ ! -e $captures/counting.argv ] || echo x >$captures/counting.argv",
    )
    .fails("altered-during-run"),
    profiled("removes the work folder", "rm -rf .sparsek-gate").fails("altered-during-run"),
    profiled(
        "makes an endless file of ncu's log",
        "rm -f \"$(export_of log-file)\"; ln -s /dev/zero \"$(export_of log-file)\"; exit 3",
    )
    .fails("profiler-failed"),
    profiled(
        "makes a FIFO of the report",
        "rm -f \"$(stem).ncu-rep\"; mkfifo \"$(stem).ncu-rep\"; kill -KILL $PPID",
    )
    .fails("program-failed: ended with"),
    // Rules.
    profiled("writes to the configuration", "echo >>config.toml").fails("altered-during-run"),
    profiled(
        "writes to a baseline",
        "for file in baselines/*/bsr_gemm/baseline.norm.txt; do echo >>$file; done",
    )
    .fails("altered-during-run"),
    verified(
        "adds a baseline",
        "for folder in baselines/*/bsr_gemm; do cp $folder/baseline.norm.txt $folder/notes.txt; done",
    )
    .fails("altered-during-run"),
    verified("leaves a hook for git", "touch .git/hooks/post-checkout").fails("altered-during-run"),
    verified(
        "writes to the settings of git",
        "printf '[core]\\nfsmonitor = /bin/true\\n' >>.git/config",
    )
    .fails("altered-during-run"),
    // The result file.
    verified(
        "says that its numbers are wrong and exits with 0",
        "echo '{\"correct\": false}' >\"$result\"; exit 0",
    )
    .fails("wrong-numbers"),
    verified(
        "makes a FIFO of its log and fails",
        "log=${result%/*}/program.log; rm -f \"$log\"; mkfifo \"$log\"; exit 3",
    )
    .fails("program-failed: the program failed"),
];

/// A project with a locked baseline.
fn locked() -> Machine {
    static LOCKED: OnceLock<Vec<u8>> = OnceLock::new();
    Machine::once(&LOCKED, || lock(Machine::new()))
}

fn lock(machine: Machine) -> Machine {
    let text = common::configuration();
    let (settings, _) = text.split_once("[suite.").unwrap();
    let ncu = "[toolchain]\nncu = \"bin/ncu\"\n";
    let settings = settings
        .replacen("[toolchain]\n", ncu, 1)
        .replacen("processes = 4 ", "processes = 2 ", 1);
    machine.write("config.toml", format!("{ENV_PASS}{settings}{SUITE}"));
    let recorded = common::handed_over().join("h200/bsr_gemm/baseline/capture-1.ncu-rep");
    fs::copy(recorded, machine.path("good.ncu-rep")).unwrap();
    machine.write("program.sh", program("", ""));
    machine.git("init --quiet");
    machine.lock_measured();
    machine
}

/// A program that has the reports of an H200 made of it, and does something else before it ends.
fn program(verified: &str, profiled: &str) -> String {
    format!(
        "result=; for word; do [ \"$last\" != --result ] || result=$word; last=$word; done\n{HELP}\n\
         case \" $* \" in *' --mode profile '*)\n\
         echo 'variant: baseline'\necho 'recorded: h200'\n{profiled}\nexit 0 ;; esac\n\
         {verified}\necho '{{\"correct\": true}}' >\"$result\"\n"
    )
}

/// The processes that still sleep for a program of a project.
fn left(folder: &Path) -> Vec<String> {
    let processes = fs::read_dir("/proc").unwrap().flatten();
    processes
        .filter_map(|process| {
            let argv = fs::read(process.path().join("cmdline")).ok()?;
            let argv = String::from_utf8_lossy(&argv).replace('\0', " ");
            let cwd = fs::read_link(process.path().join("cwd")).ok()?;
            (argv.contains(SLEEP) && cwd == folder).then_some(argv)
        })
        .collect()
}

/// A command as the argument of another one.
fn under(mut outer: Command, inner: &Command) -> Command {
    outer.arg(inner.get_program()).args(inner.get_args());
    if let Some(folder) = inner.get_current_dir() {
        outer.current_dir(folder);
    }
    for (name, value) in inner.get_envs() {
        match value {
            Some(value) => outer.env(name, value),
            None => outer.env_remove(name),
        };
    }
    outer
}

/// Runs one line in a project of its own.
fn run(line: &Line, machine: &Machine) -> Result<(), String> {
    let project = &machine.project;
    project.write("program.sh", program(line.verified, line.profiled));
    for file in ["journal", "reports"] {
        project.write(file, "");
    }
    if line.denied == "timed-out" {
        project.configure("timeout_s = 120", "timeout_s = 3");
        project.configure("timeout_s = 60", "timeout_s = 3");
    }
    let began = Instant::now();
    // A tool that waits for ever fails the line, and not the whole run.
    let mut limit = Command::new("timeout");
    limit.args(["--signal", "KILL", "600"]);
    let gate = machine.gate("check --format json");
    let ran = Ran::of(&under(limit, &gate).output().unwrap());
    let took = began.elapsed();
    // Gone at once, not in a moment.
    let processes = left(&project.path("").canonicalize().unwrap());
    let mut wrong = Vec::new();
    if ran.code != line.code {
        wrong.push(format!("it exits with {}, not {}", ran.code, line.code));
    }
    if line.code != 130 && line.code != KILLED {
        let report = ran.json();
        let (code, words) = line.denied.split_once(": ").unwrap_or((line.denied, ""));
        let denied = report.findings("deny");
        let is_expected = match denied[..] {
            [] => code.is_empty(),
            [one] => one["code"] == code && one["message"].to_string().contains(words),
            _ => false,
        };
        if !is_expected {
            wrong.push(format!("it reports {denied:?}, not {:?}", line.denied));
        }
    }
    if !processes.is_empty() {
        wrong.push(format!(
            "{} processes are left: {}",
            processes.len(),
            processes[0]
        ));
    }
    if took > Duration::from_secs(500) {
        wrong.push(format!("it took {took:?}"));
    }
    match wrong.is_empty() {
        true => Ok(()),
        false => Err(format!(
            "{}: {}\n{}{}",
            line.what,
            wrong.join("; "),
            ran.out,
            ran.err
        )),
    }
}

#[test]
fn a_program_that_misbehaves_gets_no_silent_pass_and_leaves_no_process() {
    let only = std::env::var("MISBEHAVE").unwrap_or_default();
    let no_result = |script| verified(script, script).fails("program-failed: result file");
    let no_results = NO_RESULTS.iter().copied().map(no_result);
    let mut lines: Vec<Line> = no_results.chain(LINES.iter().copied()).collect();
    lines.retain(|line| line.what.contains(&only));
    let workers = 3;
    let work = |worker: usize| {
        let lines = lines.iter().skip(worker).step_by(workers);
        let wrong = lines.filter_map(|line| run(line, &locked()).err());
        wrong.collect::<Vec<String>>()
    };
    let wrong: Vec<String> = std::thread::scope(|scope| {
        let workers = (0..workers).map(|worker| scope.spawn(move || work(worker)));
        let workers: Vec<_> = workers.collect();
        let wrong = workers.into_iter().map(|worker| worker.join().unwrap());
        wrong.flatten().collect()
    });
    let all = wrong.join("\n");
    assert!(wrong.is_empty(), "{} lines:\n{all}", wrong.len());
}

#[test]
fn what_a_program_wrote_of_another_variant_is_found() {
    // Measured before the other one, and after it.
    let cases = "
aaa | for file in .sparsek-gate/builds/*/program; do echo 'sleep 1' >>$file; done | the program
zzz | echo ' ' >>.sparsek-gate/profiles/bsr_gemm/baseline/profile.json | changed while programs ran: .sparsek-gate/profiles/bsr_gemm/baseline/profile.json";
    for [name, script, finding] in &common::rows(cases) {
        let machine = Machine::new();
        let own = format!(
            "\n[suite.bsr_gemm.variant.{name}]\nrun = [\"sh\", \"own.sh\"]\n\
             inputs = [\"own.sh\"]\nexpect = [\"bsr_gemm_baseline\"]\n"
        );
        machine.append("config.toml", &own);
        let script = format!("{script}\necho 'variant: baseline'\necho 'recorded: h200'\n");
        machine.write("own.sh", script);
        let ran = machine.run("profile --format json").exits(5);
        let report = ran.json();
        let messages = report.fields("altered-during-run", "message");
        let found = messages.iter().any(|one| one.starts_with(finding));
        assert!(found, "{messages:?}");
    }
}

#[test]
fn a_change_cannot_write_to_the_base_that_it_is_measured_beside() {
    const FOUND: [&str; 1] = ["altered-during-run"];
    let of_each = |does: &str| format!("for base in .sparsek-gate/worktrees/*; do {does}; done");
    // What the change's build and its program do to the base's checkout, and what denies.
    for (build, profiled, code, denied) in [
        ("", "", 0, &[][..]),
        ("echo 'exit 1' >>$base/program.in", "", 5, &FOUND),
        ("", "echo 'sleep 0' >>$base/program.sh", 5, &[FOUND[0]; 3]),
        // What no `inputs` name, and its program may read.
        ("", "echo 2 >$base/size.txt", 5, &FOUND),
        ("", "rm $base/size.txt", 5, &FOUND),
        ("", "echo 2 >$base/new.txt", 5, &FOUND),
        ("", "echo 2 >$base/tmp/size.pyc", 5, &FOUND),
        ("", "echo 2 >$base/tmp/output", 0, &[]),
    ] {
        let machine = locked();
        let run = "run = [\"sh\", \"program.sh\"]";
        let with_build = format!("build = [\"sh\", \"build.sh\"]\n{run}");
        machine.configure(run, &with_build);
        machine.configure("inputs = [\"program.sh\"]", "inputs = [\"program.in\"]");
        let ignored = ".sparsek-gate/\njournal\nreports\nargv\nprogram.sh\ntmp/\nhome/\n";
        machine.write(".gitignore", ignored);
        machine.write("build.sh", "mkdir -p tmp; cp program.in program.sh\n");
        machine.write("program.in", program("", ""));
        machine.write("size.txt", "1\n");
        machine.git("add --all");
        machine.git("commit --quiet --message base");
        let [builds, measures] = [build, profiled].map(|does| match does {
            "" => String::new(),
            does => of_each(does),
        });
        machine.write("build.sh", format!("cp program.in program.sh\n{builds}\n"));
        machine.write("program.in", program("", &measures));
        for file in ["journal", "reports"] {
            machine.write(file, "");
        }
        let ran = machine.run("check --against HEAD --format json");
        let report = ran.exits(code).json();
        assert_eq!(report.denied(), denied, "{build}{profiled}");
        let is_lost = denied.len() > 1;
        let warned = &["base-unavailable"][..usize::from(is_lost)];
        assert_eq!(report.warned(), warned, "{build}{profiled}");
        if denied == FOUND {
            let message = report.message("altered-during-run");
            let own = [
                "in the base: ",
                "changed while programs ran: .sparsek-gate/worktrees/",
            ];
            assert!(own.iter().any(|own| message.starts_with(own)), "{message}");
        }
    }
}

#[test]
fn a_program_that_fills_the_disk_gets_no_pass() {
    let machine = locked();
    // A file system of its own, that nobody else sees.
    let within = |script: &str| {
        let mount = format!("mount -t tmpfs -o size=2m tmpfs .sparsek-gate && {script}");
        let mut command = Command::new("unshare");
        command.args(["--user", "--map-root-user", "--mount", "sh", "-c", &mount]);
        command.current_dir(machine.path(""));
        command
    };
    let own = within("true").output();
    if !own.is_ok_and(|output| output.status.success()) {
        aloud("SKIPPED: a full disk, unshare cannot make a mount namespace here");
        return;
    }
    let fill = "cat /dev/zero >.sparsek-gate/fill 2>&1";
    for (verified, profiled) in [(fill, ""), ("", fill)] {
        machine.write("program.sh", program(verified, profiled));
        let gate = machine.gate("check --format json");
        let ran = Ran::by(&mut under(within("exec \"$0\" \"$@\""), &gate));
        let said = format!("{}: {}{}", ran.code, ran.out, ran.err);
        assert!([3, 5].contains(&ran.code), "{said}");
        let named = ["No space left", "profiler-failed", "program-failed"];
        assert!(named.iter().any(|name| said.contains(name)), "{said}");
    }
}

#[test]
fn a_program_that_launches_nothing_or_another_kernel_is_not_measured() {
    let machine = locked();
    let recorded = "echo 'variant: baseline'\necho 'recorded: h200'";
    let other = recorded.replace("baseline", "cp_async");
    for script in ["exit 0", &other] {
        let whole = program("", "").replace(recorded, script);
        machine.write("program.sh", whole);
        let report = machine.run("check --format json").json();
        assert!(report.denies("kernel-missing"), "{:?}", report.denied());
    }
}
