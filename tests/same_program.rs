//! `check --against`: a variant whose program is the base's is not measured, and every case in which
//! it must be. Compiler, ncu and the driver are stand-ins; programs are small C programs, and the
//! reports that are handed over are those that the real ncu recorded on an H200.

use std::sync::OnceLock;

use crate::common::stand_in::{Machine, NVCC_OF_C};
use crate::common::{Report, rows};

/// A second variant beside `baseline`, and one that the compiler does not build.
const SECOND: &str = r#"
[suite.bsr_gemm.variant.cp_async]
source = "kernels/b.cu"
expect = ["bsr_gemm_cp_async"]
"#;

/// Prints what the stand-in of ncu needs to hear; `body` runs before.
fn program(variant: &str, head: &str, body: &str) -> String {
    format!(
        "{head}\nint puts(const char *);\nint main(int count, char **words) {{\n{body}\n\
         puts(\"variant: {variant}\\nrecorded: h200\");\nreturn 0;\n}}\n"
    )
}

/// Two variants, locked and committed.
fn checkout() -> Machine {
    static LOCKED: OnceLock<Vec<u8>> = OnceLock::new();
    let checkout = Machine::once(&LOCKED, make);
    // The script of ncu names the folder.
    checkout.commit();
    checkout
}

fn make() -> Machine {
    let machine = Machine::new();
    machine.program("toolkit/bin/nvcc", NVCC_OF_C);
    let project = &machine.project;
    let config = project.read("config.toml");
    project.write("config.toml", config + SECOND);
    let config = project.read("config.toml");
    let listed = config.lines().find(|line| line.starts_with("unread = "));
    project.configure(listed.unwrap(), "unread = [\"*.md\", \"baselines/**\"]");
    project.write("kernels/a.cu", program("baseline", "", ""));
    project.write(
        "kernels/b.cu",
        program("cp_async", "#include \"b.cuh\"", ""),
    );
    project.write("kernels/b.cuh", "extern int unused;\n");
    project.write("README.md", "Words.\n");
    machine.without("");
    lock(&machine);
    machine
}

fn lock(checkout: &Machine) {
    checkout.lock_measured();
    checkout.commit();
    checkout.write("journal", "");
}

/// The variants that were measured by the latest run.
fn measured(checkout: &Machine) -> Vec<String> {
    let journal = checkout.read("journal");
    let names = journal.lines().filter_map(|line| line.split(' ').nth(1));
    let mut names: Vec<String> = names.map(str::to_owned).collect();
    names.sort();
    names.dedup();
    checkout.write("journal", "");
    names
}

/// The variants that a report says have the base's program.
fn same(report: &Report) -> Vec<&str> {
    let same = report.0["same_programs"].as_array();
    same.into_iter()
        .flatten()
        .map(|one| one["variant"].as_str().unwrap())
        .collect()
}

const BOTH: [&str; 2] = ["bsr_gemm/baseline", "bsr_gemm/cp_async"];

#[test]
fn an_unchanged_program_needs_no_gpu_and_every_report_says_so() {
    let checkout = checkout();
    let blind = checkout.with_libraries(&[]);
    let report = blind.check(&["--against", "HEAD"], 0);
    assert_eq!(same(&report), BOTH);
    assert!(report.denied().is_empty());
    assert_eq!(measured(&blind), [""; 0]);
    let sha256 = report.0["same_programs"][0]["program"].as_str().unwrap();
    assert_eq!(sha256.len(), 64);

    let text = |format| {
        let arguments = ["check", "--against", "HEAD", "--format", format];
        blind.run(&arguments).exits(0).out
    };
    for format in ["text", "markdown", "html", "github"] {
        let text = text(format);
        assert!(text.contains("2 same-program"), "{format}: {text}");
    }
    for format in ["text", "markdown", "html", "junit"] {
        // Markdown escapes the underscore.
        let text = text(format).replace("\\_", "_");
        assert!(text.contains("bsr_gemm/cp_async"), "{format}: {text}");
        assert!(text.contains("byte for byte"), "{format}: {text}");
    }
    // And the warning that HEAD is compared with itself.
    assert_eq!(text("junit").matches("<skipped").count(), 3);

    // With something to measure, the GPU is missing.
    blind.write("kernels/b.cu", program("cp_async", "", "puts(\"more\");"));
    blind.run("check --against HEAD").exits(3);
}

/// What changes, by a shell, and the variants that must then be measured.
const CHANGES: &str = r#"
documentation | echo more >README.md |
the source of another variant | sed -i 's/^return/puts("more");&/' kernels/b.cu | cp_async
a comment in the header of another variant | echo '// more' >>kernels/b.cuh | cp_async
a file that nobody is known to read | echo 1 >weights.bin | baseline cp_async
documentation in another folder | echo Words. >kernels/README.md | baseline cp_async
the configuration | sed -i '1i # more' config.toml | baseline cp_async
a source that the index hides | git update-index --skip-worktree kernels/a.cu; sed -i 's/^return/puts("more");&/' kernels/a.cu | baseline
a removed file | rm kernels/notes.txt | baseline cp_async
an ignored file that is tracked | echo data.bin >.gitignore; echo 1 >data.bin; git add --force .gitignore data.bin | baseline cp_async
"#;

#[test]
fn what_changed_decides_which_variants_are_measured() {
    let checkout = checkout();
    checkout.write("kernels/notes.txt", "notes\n");
    checkout.commit();
    for [what, change, expected] in rows(CHANGES) {
        checkout.shell(&change);
        let report = checkout.check(&["--against", "HEAD"], 0);
        assert_eq!(measured(&checkout).join(" "), expected, "{what}");
        let mut unmeasured = BOTH.to_vec();
        unmeasured.retain(|name| !expected.contains(&name["bsr_gemm/".len()..]));
        assert_eq!(same(&report), unmeasured, "{what}");
        checkout.git("update-index --no-skip-worktree kernels/a.cu");
        checkout.git("reset --quiet --hard");
        checkout.git("clean --quiet -fd");
    }
}

#[test]
fn a_program_that_may_load_what_changed_is_measured() {
    // Each reads, or may read, the header of the other variant while it runs.
    let programs = [
        ("int system(const char *);", "system(words[1])"),
        ("const char *header = \"b.cuh\";", "puts(header)"),
        ("const char *compiler = \"libnvrtc.so\";", "puts(compiler)"),
    ];
    let checkout = checkout();
    for (head, body) in programs {
        let body = format!("if (count > 9) {body};");
        checkout.write("kernels/a.cu", program("baseline", head, &body));
        checkout.commit();
        checkout.write("kernels/b.cuh", "extern int other;\n");
        let report = checkout.check(&["--against", "HEAD"], 0);
        assert_eq!(same(&report), [""; 0], "{head}");
        assert_eq!(measured(&checkout), ["baseline", "cp_async"]);
        checkout.git("checkout --quiet kernels/b.cuh");
        checkout.write("README.md", "Other words.\n");
        let report = checkout.check(&["--against", "HEAD"], 0);
        assert_eq!(same(&report), BOTH, "{head}");
        checkout.git("checkout --quiet README.md");
    }
}

#[test]
fn a_file_that_arguments_or_variables_name_is_measured() {
    let checkout = checkout();
    let source = "source = \"kernels/a.cu\"\n";
    let mut before = source.to_owned();
    for setting in [
        "env = { HEADER = \"kernels/b.cuh\" }",
        "profile_args = [\"--header=kernels/b.cuh\"]",
    ] {
        let named = format!("{source}{setting}\n");
        checkout.configure(&before, &named);
        checkout.commit();
        checkout.write("kernels/b.cuh", "extern int other;\n");
        let report = checkout.check(&["--against", "HEAD"], 0);
        assert_eq!(same(&report), [""; 0], "{setting}");
        assert_eq!(measured(&checkout), ["baseline", "cp_async"], "{setting}");
        checkout.git("checkout --quiet kernels/b.cuh");
        before = named;
    }
}

#[test]
fn a_change_cannot_say_itself_that_only_the_compiler_reads_a_file() {
    let checkout = checkout();
    checkout.write("kernels/table.h", "\n");
    checkout.commit();
    checkout.write("kernels/table.h", "// another\n");
    checkout.write(
        "kernels/b.cu",
        program("cp_async", "#include \"table.h\"", ""),
    );
    let report = checkout.check(&["--against", "HEAD"], 0);
    assert_eq!(same(&report), [""; 0]);
    assert_eq!(measured(&checkout), ["baseline", "cp_async"]);

    // The base has no such file, so none of its programs depends on it.
    checkout.git("checkout --quiet kernels/table.h");
    checkout.write("kernels/new.h", "\n");
    checkout.write(
        "kernels/b.cu",
        program("cp_async", "#include \"new.h\"", "puts(\"more\");"),
    );
    let report = checkout.check(&["--against", "HEAD"], 0);
    assert_eq!(same(&report), ["bsr_gemm/baseline"]);
}

#[test]
fn a_build_command_may_write_what_another_program_reads() {
    let checkout = checkout();
    checkout.program(
        "c.sh",
        "#!/bin/sh\necho 'variant: baseline'\necho 'recorded: h200'\n",
    );
    let config = checkout.read("config.toml");
    let command = "[suite.bsr_gemm.variant.command]\n\
        build = [\"cp\", \"kernels/b.cuh\", \".sparsek-gate/table\"]\n\
        run = [\"sh\", \"c.sh\"]\nexpect = [\"bsr_gemm_baseline\"]\n";
    checkout.write("config.toml", format!("{config}\n{command}"));
    lock(&checkout);
    checkout.write("kernels/b.cuh", "extern int other;\n");
    let report = checkout.check(&["--against", "HEAD"], 0);
    assert_eq!(same(&report), [""; 0]);
    measured(&checkout);
    // Documentation is not read by anything; the command itself is.
    checkout.git("checkout --quiet kernels/b.cuh");
    checkout.write("README.md", "Other words.\n");
    let report = checkout.check(&["--against", "HEAD"], 0);
    assert_eq!(same(&report), BOTH);
}

#[test]
fn a_variant_whose_base_does_not_build_is_measured() {
    let checkout = checkout();
    let works = checkout.read("kernels/b.cu");
    checkout.write("kernels/b.cu", "no program\n");
    checkout.commit();
    checkout.write("kernels/b.cu", &works);
    let report = checkout.check(&["--against", "HEAD"], 0);
    assert_eq!(same(&report), ["bsr_gemm/baseline"]);
    assert_eq!(measured(&checkout), ["cp_async"]);
    assert_eq!(report.variant("cp_async")["mode"], "stored");
}

#[test]
fn other_arguments_or_variables_are_measured_with_the_same_program() {
    let checkout = checkout();
    checkout.configure("[\"*.md\",", "[\"*.md\", \"config.toml\",");
    checkout.commit();
    for setting in ["env = { MODE = \"fast\" }", "profile_args = [\"--fast\"]"] {
        let variant = "source = \"kernels/b.cu\"\n";
        let changed = format!("{variant}{setting}\n");
        checkout.configure(variant, &changed);
        let report = checkout.check(&["--against", "HEAD"], 0);
        assert_eq!(same(&report), ["bsr_gemm/baseline"], "{setting}");
        assert_eq!(measured(&checkout), ["cp_async"], "{setting}");
        checkout.configure(&changed, variant);
    }
}

#[test]
fn a_new_variant_is_measured_and_the_others_are_not() {
    let checkout = checkout();
    let config = checkout.read("config.toml");
    let unread = config.replace("[\"*.md\",", "[\"*.md\", \"config.toml\",");
    checkout.write("config.toml", &unread);
    checkout.commit();
    let new = SECOND
        .replace("cp_async", "occupancy")
        .replace("b.cu", "c.cu");
    checkout.write("config.toml", &(unread + &new));
    checkout.write(
        "kernels/c.cu",
        program("occupancy", "#include \"c.cuh\"", ""),
    );
    checkout.write("kernels/c.cuh", "extern int unused;\n");
    let report = checkout.check(&["--against", "HEAD"], 0);
    let new = report.message("base-unavailable");
    assert!(new.ends_with("has no such variant: it is new, and counts once this is merged"));
    assert_eq!(same(&report), BOTH);
    assert_eq!(measured(&checkout), ["occupancy"]);
    // Without a base beside it, nothing says that it is new.
    checkout.check(&[], 4).denies("new-baseline");
}

#[test]
fn a_variant_without_a_baseline_is_measured_and_compared_with_its_base_alone() {
    let checkout = checkout();
    let baseline = "baselines/nvidia-h200/bsr_gemm/cp_async.*";
    checkout.git(&["rm", "--quiet", baseline]);
    checkout.commit();
    let report = checkout.check(&["--against", "HEAD"], 0);
    assert_eq!(same(&report), ["bsr_gemm/baseline"]);
    assert_eq!(measured(&checkout), ["cp_async"]);
}

#[test]
fn hard_limits_are_judged_on_the_baseline_or_measured() {
    let checkout = checkout();
    let limit = |max: &str| {
        let metric = "[metric.duration]\n";
        let limited = format!("{metric}max = {max}\n");
        checkout.configure(metric, &limited);
        checkout.commit();
        limited
    };
    let limited = limit("10000000.0");
    let report = checkout.check(&["--against", "HEAD"], 0);
    assert_eq!(same(&report), BOTH);
    assert_eq!(measured(&checkout), [""; 0]);
    let words = report.0["same_programs"][0]["limits"][0].as_str().unwrap();
    assert!(words.contains("duration"), "{words}");
    checkout.configure(&limited, "[metric.duration]\n");

    limit("1000.0");
    let report = checkout.check(&["--against", "HEAD"], 1);
    assert_eq!(same(&report), [""; 0]);
    assert!(report.denies("limit-exceeded"));
    assert_eq!(measured(&checkout), ["baseline", "cp_async"]);
}

#[test]
fn a_variant_of_a_command_is_measured_unless_nothing_changed() {
    let checkout = checkout();
    let script = "#!/bin/sh\necho 'variant: cp_async'\necho 'recorded: h200'\n";
    checkout.program("b.sh", script);
    let source = "source = \"kernels/b.cu\"\n";
    let run = "run = [\"sh\", \"b.sh\"]\ninputs = [\"b.sh\"]\n";
    checkout.configure(source, run);
    lock(&checkout);
    let report = checkout.check(&["--against", "HEAD"], 0);
    assert_eq!(same(&report), BOTH);
    checkout.write("README.md", "Other words.\n");
    let report = checkout.check(&["--against", "HEAD"], 0);
    assert_eq!(same(&report), ["bsr_gemm/baseline"]);
    assert_eq!(measured(&checkout), ["cp_async"]);
}

#[test]
fn everything_is_measured_where_it_is_asked_for_and_against_a_stored_baseline() {
    let checkout = checkout();
    for arguments in [&["--against", "HEAD", "--measure-all"][..], &[]] {
        let report = checkout.check(arguments, 0);
        assert_eq!(same(&report), [""; 0]);
        assert_eq!(
            measured(&checkout),
            ["baseline", "cp_async"],
            "{arguments:?}"
        );
    }
    // There is nothing to ask for without a comparison side by side.
    checkout.run("check --measure-all").exits(2);
}

#[test]
fn a_check_says_how_long_it_will_take_and_where_its_time_went() {
    let checkout = checkout();
    let costs = checkout.path(".sparsek-gate/costs.json");
    assert!(
        costs.exists(),
        "the profile that was locked noted what it took"
    );
    let arguments = ["check", "--against", "HEAD", "--measure-all", "--format"];
    let ran = checkout.run(&[&arguments[..], &["json"]].concat()).exits(0);
    assert!(ran.err.contains("2 variants will take "), "{}", ran.err);
    let report = ran.json();
    let spent = &report.0["spent"];
    let profiled = checkout.read("journal").lines().count();
    assert!(spent["profiled"].as_u64().unwrap() >= profiled as u64);
    let profile_s = spent["profile_s"].as_f64().unwrap();
    assert!(spent["start_s"].as_f64().unwrap() <= profile_s);
    for part in ["build_s", "verify_s", "profile_s", "start_s"] {
        let seconds = spent[part].as_f64().unwrap();
        assert!(
            seconds > 0.0 && seconds < report.0["wall_s"].as_f64().unwrap(),
            "{part}"
        );
    }
    // Whoever writes there, decides nothing.
    std::fs::write(costs, "{\"bsr_gemm/baseline\": 1e999}").unwrap();
    let ran = checkout.run(&[&arguments[..], &["text"]].concat()).exits(0);
    assert!(!ran.err.contains("will take"), "{}", ran.err);
    assert!(ran.out.contains("profiled processes "), "{}", ran.out);
    assert!(
        ran.out.contains(" until the first launch of each)"),
        "{}",
        ran.out
    );
    checkout.write("README.md", "Other words.\n");
    let ran = checkout.run("check --against HEAD").exits(0);
    assert!(
        ran.out.contains("time: ") && !ran.out.contains("profiled"),
        "{}",
        ran.out
    );
}

#[test]
fn a_change_cannot_say_itself_which_files_no_program_reads() {
    let checkout = checkout();
    checkout.git("update-ref refs/remotes/origin/main HEAD");
    checkout.git("checkout --quiet -b change");
    checkout.configure("[\"*.md\",", "[\"**\",");
    checkout.write("weights.bin", "1");
    checkout.commit();
    let target = "refs/remotes/origin/main";
    let arguments = ["--against", target, "--baseline-ref", target];
    let report = checkout.check(&arguments, 4);
    assert_eq!(same(&report), [""; 0]);
    assert_eq!(report.denied(), ["policy-changed"]);
    assert_eq!(measured(&checkout), ["baseline", "cp_async"]);
}
