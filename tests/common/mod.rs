//! A project in a folder of its own, and the real program run in it.

#![allow(
    dead_code,
    reason = "every test binary uses another part of these helpers"
)]
#![expect(clippy::unwrap_used, reason = "a helper that fails fails its test")]

pub mod browser;
pub mod crash;
pub mod git;
pub mod locking;
pub mod outcome;
pub mod outcomes;
pub mod sealed;
pub mod sick;
pub mod slices;
pub mod slurm;
pub mod stand_in;
pub mod strace;

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::{LazyLock, OnceLock};
use std::time::Duration;

use serde_json::{Value as Json, json};
use sparsek_gate::baseline::{Entry, Lock};
use sparsek_gate::binary::STATIC_METRICS;
use sparsek_gate::hash::sha256_hex;
use sparsek_gate::metric::alias;
use sparsek_gate::profile::{Profile, Series, norm_text};
use sparsek_gate::terms::Phase;

/// The GPU that the recordings in the repository were taken on, as a folder.
pub const GPU: &str = "nvidia-h200";
/// The variants of the repository that these projects hold, sorted: enough for every state.
pub static VARIANTS: LazyLock<Vec<String>> = LazyLock::new(|| {
    ["baseline", "cp_async", "occupancy"]
        .map(str::to_owned)
        .to_vec()
});
/// What a baseline's files end in.
pub const ENDINGS: [&str; 4] = ["lock.toml", "norm.txt", "norm.txt.sha256", "profile.json"];
/// The recordings within a project.
pub const RECORDED: &str = "recorded";
/// How long a test waits before it fails: longer than a machine under load needs.
pub const PATIENCE: Duration = Duration::from_secs(300);

/// A project in a temporary folder.
pub struct Project {
    folder: tempfile::TempDir,
}

/// What a run of the program gave.
pub struct Ran {
    pub code: i32,
    pub out: String,
    pub err: String,
}

impl Ran {
    pub fn of(output: &Output) -> Ran {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        Ran {
            // A signal is no exit code, and never the expected one.
            code: output.status.code().unwrap_or(-1),
            out: text(&output.stdout),
            err: text(&output.stderr),
        }
    }

    /// Of a command that is run.
    pub fn by(command: &mut Command) -> Ran {
        Ran::of(&command.output().unwrap())
    }

    /// Fails the test with everything that was printed, unless the program exited so.
    #[track_caller]
    pub fn exits(self, code: i32) -> Ran {
        assert_eq!(
            self.code, code,
            "exit code\nstdout:\n{}\nstderr:\n{}",
            self.out, self.err
        );
        self
    }

    /// Fails the test unless the program exited so and printed this.
    #[track_caller]
    pub fn ends(self, code: i32, text: &str) -> Ran {
        self.exits(code).says(text)
    }

    #[track_caller]
    pub fn says(self, text: &str) -> Ran {
        let (out, err) = (&self.out, &self.err);
        assert!(
            out.contains(text) || err.contains(text),
            "nothing says {text:?}\nstdout:\n{out}\nstderr:\n{err}"
        );
        self
    }

    #[track_caller]
    pub fn json(&self) -> Report {
        let json = serde_json::from_str(&self.out);
        assert!(json.is_ok(), "{json:?}:\n{}\n{}", self.out, self.err);
        Report(json.unwrap())
    }
}

/// The JSON form of an outcome.
pub struct Report(pub Json);

impl Report {
    /// What is said of a variant of `bsr_gemm`.
    #[track_caller]
    pub fn variant(&self, variant: &str) -> &Json {
        let mut variants = self.0["variants"].as_array().unwrap().iter();
        let name = format!("bsr_gemm/{variant}");
        variants.find(|report| report["variant"] == name).unwrap()
    }

    /// Codes of the findings of a severity, in order.
    pub fn codes(&self, severity: &str) -> Vec<String> {
        let code = |finding: &Json| finding["code"].as_str().unwrap().to_owned();
        self.findings(severity).into_iter().map(code).collect()
    }

    pub fn denied(&self) -> Vec<String> {
        self.codes("deny")
    }

    pub fn warned(&self) -> Vec<String> {
        self.codes("warn")
    }

    pub fn findings(&self, severity: &str) -> Vec<&Json> {
        self.having("severity", severity)
    }

    fn having(&self, key: &str, value: &str) -> Vec<&Json> {
        let findings = self.0["findings"].as_array().unwrap().iter();
        findings.filter(|finding| finding[key] == value).collect()
    }

    /// Whether a finding with this code denies.
    pub fn denies(&self, code: &str) -> bool {
        self.denied().iter().any(|one| one == code)
    }

    /// Whether a finding with this code warns.
    pub fn warns(&self, code: &str) -> bool {
        self.warned().iter().any(|one| one == code)
    }

    /// One finding denies, which has this code, and its message contains these words.
    #[track_caller]
    pub fn denies_only(&self, code: &str, words: &[&str]) {
        assert_eq!(self.denied(), [code]);
        self.tells_all(code, words);
    }

    /// What denies, but for the findings with these codes.
    pub fn denied_besides(&self, codes: &[&str]) -> Vec<String> {
        let mut denied = self.denied();
        denied.retain(|code| !codes.contains(&code.as_str()));
        denied
    }

    /// What the findings with this code have there.
    pub fn fields(&self, code: &str, key: &str) -> Vec<&str> {
        let found = self.having("code", code).into_iter();
        found.filter_map(|one| one[key].as_str()).collect()
    }

    /// The message of the only finding with this code.
    #[track_caller]
    pub fn message(&self, code: &str) -> &str {
        let found = self.having("code", code);
        assert_eq!(found.len(), 1, "`{code}`: {:#}", self.0["findings"]);
        found[0]["message"].as_str().unwrap()
    }

    /// The message of the only finding with this code contains these words.
    #[track_caller]
    pub fn tells_all(&self, code: &str, words: &[&str]) {
        contains(self.message(code), words);
    }

    /// The verdict of a metric of a variant of `bsr_gemm`.
    #[track_caller]
    pub fn comparison(&self, variant: &str, metric: &str) -> &Json {
        let comparisons = self.variant(variant)["comparisons"].as_array().unwrap();
        let mut comparisons = comparisons.iter();
        comparisons.find(|it| it["metric"] == metric).unwrap()
    }

    #[track_caller]
    pub fn verdict(&self, variant: &str, metric: &str) -> &str {
        let verdict = &self.comparison(variant, metric)["verdict"];
        verdict.as_str().unwrap_or("recorded")
    }
}

impl Project {
    /// An empty folder.
    pub fn empty() -> Project {
        Project {
            folder: tempfile::tempdir().unwrap(),
        }
    }

    /// Everything in it as an archive. What takes long to make is made once, see [`Project::unpacked`].
    pub fn packed(&self) -> Vec<u8> {
        let mut pack = Command::new("tar");
        pack.args(["-cf", "-", "."]).current_dir(self.path(""));
        let output = pack.output().unwrap();
        assert!(output.status.success(), "{}", Ran::of(&output).err);
        output.stdout
    }

    /// A folder with what another one had. Another process writes its programs: see [`install`].
    pub fn unpacked(archive: &[u8]) -> Project {
        let project = Project::empty();
        let mut unpack = Command::new("tar");
        unpack.args(["-xf", "-"]).current_dir(project.path(""));
        let mut unpack = unpack.stdin(Stdio::piped()).spawn().unwrap();
        let mut input = unpack.stdin.take().unwrap();
        input.write_all(archive).unwrap();
        drop(input);
        assert!(unpack.wait().unwrap().success());
        project
    }

    /// The repository's configuration, kernels and recordings of [`VARIANTS`]; nothing is locked.
    /// What the compiler makes is only recorded: the static gate has tests of its own.
    pub fn unlocked() -> Project {
        let project = Project::empty();
        let repository = repository();
        let config = configuration();
        let own = "[static.occupancy]\nlevel = \"deny\"\n";
        assert!(config.contains(own));
        project.write("config.toml", config.replace(own, &recorded_only()));
        copy(&repository.join("kernels"), &project.path("kernels"));
        for variant in VARIANTS.iter() {
            copy(
                &repository.join("ci/recordings/h200/bsr_gemm").join(variant),
                &project.path(&format!("{RECORDED}/bsr_gemm/{variant}")),
            );
        }
        project
    }

    /// The same with recordings whose durations are ncu's.
    pub fn timed_by_ncu() -> Project {
        let project = Project::unlocked();
        for variant in VARIANTS.iter() {
            let folder = project.path(&format!("{RECORDED}/bsr_gemm/{variant}"));
            fs::remove_dir_all(&folder).unwrap();
            copy(&handed_over().join("h200/bsr_gemm").join(variant), &folder);
        }
        project
    }

    /// Puts captures beside recordings that contain their numbers, of which only the durations may be edited.
    pub fn prove(&self) {
        for variant in VARIANTS.iter() {
            let made = repository()
                .join("ci/recordings/h200/bsr_gemm")
                .join(variant);
            let own = self.path(&format!("{RECORDED}/bsr_gemm/{variant}"));
            if !own.join("profile.json").exists() {
                continue;
            }
            for entry in fs::read_dir(&made).unwrap().flatten() {
                let place = own.join(entry.file_name());
                if !place.exists() && fs::hard_link(entry.path(), &place).is_err() {
                    fs::copy(entry.path(), &place).unwrap();
                }
            }
            let read = |folder: &Path| -> Json {
                serde_json::from_slice(&fs::read(folder.join("profile.json")).unwrap()).unwrap()
            };
            let mut profile = read(&own);
            if samples_of(&profile) != samples_of(&read(&made)) {
                record_durations(&own, &mut profile);
                refresh(&mut profile);
                fs::write(own.join("profile.json"), profile.to_string()).unwrap();
            }
        }
    }

    /// With the repository's baselines.
    pub fn shipped() -> Project {
        let project = Project::unlocked();
        project.take_baselines(GPU);
        project
    }

    /// With the static gate too, as the repository's configuration has it.
    pub fn whole() -> Project {
        let project = Project::unlocked();
        project.write("config.toml", configuration());
        project.take_baselines(GPU);
        project.take_baselines("sm-90a+static");
        project
    }

    /// The repository's baselines of one folder.
    fn take_baselines(&self, folder: &str) {
        for variant in VARIANTS.iter() {
            for ending in ENDINGS {
                let file = format!("baselines/{folder}/bsr_gemm/{variant}.{ending}");
                self.write(&file, fs::read(repository().join(&file)).unwrap());
            }
        }
    }

    /// With baselines that were locked from the very recordings in the project.
    pub fn locked() -> Project {
        // Locking waits for the disk, so it is done once a test binary.
        static FILES: OnceLock<Vec<(String, String)>> = OnceLock::new();
        Project::with(FILES.get_or_init(|| {
            let project = Project::unlocked();
            project.lock("first measurement").exits(0);
            let all = |variant| ENDINGS.map(|ending| Project::baseline_path(variant, ending));
            let paths = VARIANTS.iter().flat_map(|variant| all(variant));
            project.texts(paths)
        }))
    }

    fn with(files: &[(String, String)]) -> Project {
        let project = Project::unlocked();
        for (path, text) in files {
            project.write(path, text);
        }
        project
    }

    /// Files with their texts.
    fn texts(&self, paths: impl IntoIterator<Item = String>) -> Vec<(String, String)> {
        let text = |path: String| (path.clone(), self.read(&path));
        paths.into_iter().map(text).collect()
    }

    /// Without noise in recordings and baselines, see [`steady`].
    pub fn steady() -> Project {
        static FILES: OnceLock<Vec<(String, String)>> = OnceLock::new();
        Project::with(FILES.get_or_init(|| {
            let project = Project::locked();
            project.calm();
            let mut paths = Vec::new();
            for variant in VARIANTS.iter() {
                paths.push(Project::profile_path(variant));
                paths.extend(ENDINGS.map(|ending| Project::baseline_path(variant, ending)));
            }
            project.texts(paths)
        }))
    }

    /// The same, timed by ncu.
    pub fn steady_by_ncu() -> Project {
        let project = Project::timed_by_ncu();
        project.lock("first measurement").exits(0);
        project.calm();
        project
    }

    fn calm(&self) {
        for variant in VARIANTS.iter() {
            self.edit_profile(variant, steady);
            self.forge(variant, steady);
        }
    }

    /// Puts the profile of a base beside a recorded profile: the same from captures of its own, but
    /// for an edit. Its eight processes are looked at as three rounds.
    pub fn add_base(&self, variant: &str, edit: impl FnOnce(&mut Json)) {
        let mut base = self.json(&Project::profile_path(variant));
        for capture in base["provenance"]["captures"].as_array_mut().unwrap() {
            let hash = capture["report"]["sha256"].as_str().unwrap();
            capture["report"]["sha256"] = json!(hash.chars().rev().collect::<String>());
        }
        edit(&mut base);
        self.write(&Project::base_path(variant), base.to_string());
    }

    pub fn path(&self, path: &str) -> PathBuf {
        self.folder.path().join(path)
    }

    pub fn read(&self, path: &str) -> String {
        fs::read_to_string(self.path(path)).unwrap()
    }

    pub fn write(&self, path: &str, text: impl AsRef<[u8]>) {
        let path = self.path(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        // Never through a link to a capture of the repository.
        let _ = fs::remove_file(&path);
        fs::write(path, text).unwrap();
    }

    /// Writes more at the end of a file.
    pub fn append(&self, path: &str, text: &str) {
        self.write(path, self.read(path) + text);
    }

    /// Writes a program, as [`write_program`] does.
    #[track_caller]
    pub fn program(&self, path: &str, text: &str) {
        write_program(&self.path(path), text);
    }

    /// Replaces text that must be there once.
    #[track_caller]
    pub fn replace(&self, path: &str, from: &str, to: &str) {
        let text = self.read(path);
        assert_eq!(text.matches(from).count(), 1, "{from:?} in {path}");
        self.write(path, text.replacen(from, to, 1));
    }

    /// Replaces text of the configuration that must be there once.
    #[track_caller]
    pub fn configure(&self, from: &str, to: &str) {
        self.replace("config.toml", from, to);
    }

    /// The program, in this folder, as a person without CI would call it.
    pub fn gate(&self) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_sparsek-gate"));
        command
            .current_dir(self.folder.path())
            .env_remove("CI")
            // A lock needs a name.
            .env("USER", "a tester")
            .env_remove("NVCC_CCBIN")
            .env_remove("NVCC_PREPEND_FLAGS")
            .env_remove("NVCC_APPEND_FLAGS")
            .stdin(Stdio::null());
        outside_pull_request(&mut command);
        command
    }

    /// The same with these arguments.
    pub fn gate_of(&self, arguments: impl Arguments) -> Command {
        let mut command = self.gate();
        command.args(arguments.list());
        command
    }

    pub fn run(&self, arguments: impl Arguments) -> Ran {
        Ran::by(&mut self.gate_of(arguments))
    }

    /// What a shell does in this folder.
    #[track_caller]
    pub fn shell(&self, script: &str) -> Ran {
        let mut shell = Command::new("sh");
        Ran::by(shell.args(["-ec", script]).current_dir(self.path(""))).exits(0)
    }

    pub fn lock(&self, reason: &str) -> Ran {
        self.run(&[
            "baseline", "--lock", "--reason", reason, "--who", "a tester", "--from", RECORDED,
        ])
    }

    /// Locks a profile on top of the ledger, as `baseline --lock` would with its captures.
    pub fn relock(&self, variant: &str, profile: &Profile, edit: impl FnOnce(&mut Lock)) {
        let (norm, text) = (norm_text(profile).unwrap(), profile.to_json());
        let path = Project::baseline_path(variant, "lock.toml");
        let mut lock = Lock::parse(&self.read(&path)).unwrap();
        edit(&mut lock);
        let entry = Entry {
            time: "2026-11-29T00:00:00Z".to_owned(),
            who: "Ada".to_owned(),
            reason: "faster epilogue".to_owned(),
            norm_sha256: sha256_hex(norm.as_bytes()),
            profile_sha256: sha256_hex(text.as_bytes()),
            code_sha256: lock.code_sha256(),
            previous: lock.head.clone(),
        };
        let id = format!("bsr_gemm/{variant}");
        self.write_baseline(GPU, &id, &norm, &text, (lock, entry));
    }

    /// Writes the files of a baseline, with this entry as the last one of the lock.
    pub fn write_baseline(
        &self,
        folder: &str,
        variant: &str,
        norm: &str,
        profile: &str,
        (mut lock, entry): (Lock, Entry),
    ) {
        lock.head = entry.hash();
        lock.ledger.push(entry);
        let name = variant.split('/').next_back().unwrap();
        let hash = format!("{}  {name}.norm.txt\n", sha256_hex(norm.as_bytes()));
        let lock = lock.to_toml();
        for (ending, text) in ENDINGS.iter().zip([&lock, norm, &hash, profile]) {
            self.write(&format!("baselines/{folder}/{variant}.{ending}"), text);
        }
    }

    /// `check --from` in its JSON form.
    #[track_caller]
    pub fn check(&self, names: &[&str], code: i32) -> Report {
        let mut arguments = vec!["check", "--from", RECORDED, "--format", "json"];
        arguments.extend(names);
        let report = self.run(&arguments).exits(code).json();
        assert_eq!(report.0["exit_code"], code);
        report
    }

    pub fn profile_path(variant: &str) -> String {
        format!("{RECORDED}/bsr_gemm/{variant}/profile.json")
    }

    pub fn base_path(variant: &str) -> String {
        format!("{RECORDED}/bsr_gemm/{variant}/base/profile.json")
    }

    pub fn baseline_path(variant: &str, ending: &str) -> String {
        format!("baselines/{GPU}/bsr_gemm/{variant}.{ending}")
    }

    pub fn json(&self, path: &str) -> Json {
        serde_json::from_str(&self.read(path)).unwrap()
    }

    /// Edits a JSON file.
    pub fn edit(&self, path: &str, edit: impl FnOnce(&mut Json)) {
        let mut json = self.json(path);
        edit(&mut json);
        self.write(path, serde_json::to_string_pretty(&json).unwrap());
    }

    /// Edits a recorded profile.
    pub fn edit_profile(&self, variant: &str, edit: impl FnOnce(&mut Json)) {
        self.edit(&Project::profile_path(variant), edit);
    }

    /// Takes lines that begin so out of the configuration.
    pub fn drop_config_lines(&self, start: &str) {
        let config = self.read("config.toml");
        let lines = config.lines();
        let kept: Vec<&str> = lines.filter(|line| !line.starts_with(start)).collect();
        assert_ne!(kept.len(), config.lines().count(), "{start:?}");
        self.write("config.toml", kept.join("\n") + "\n");
    }

    /// A folder of recordings in which each variant has those of the next: as true as the
    /// recorded ones and with other numbers.
    pub fn rotated(&self, folder: &str) {
        for (at, variant) in VARIANTS.iter().enumerate() {
            let next = &VARIANTS[(at + 1) % VARIANTS.len()];
            let target = format!("{folder}/bsr_gemm/{variant}");
            copy(
                &self.path(&format!("{RECORDED}/bsr_gemm/{next}")),
                &self.path(&target),
            );
            self.edit(&format!("{target}/profile.json"), |profile| {
                profile["variant"] = json!(format!("bsr_gemm/{variant}"));
                let source = format!("kernels/bsr_gemm/{variant}.cu");
                let hash = sparsek_gate::hash::sha256_file(&self.path(&source)).unwrap();
                let provenance = &mut profile["provenance"];
                provenance["sources"][&source] = json!(hash);
                let argv = provenance["build_argv"].as_array_mut().unwrap();
                argv.pop();
                argv.push(json!(source));
            });
        }
    }

    /// Replaces a locked profile by an edited one, with every hash and the lock made to fit: what
    /// somebody does who has the files and no captures.
    pub fn forge(&self, variant: &str, edit: impl FnOnce(&mut Json)) {
        self.forge_below(GPU, variant, edit);
    }

    /// The same of a baseline in another folder, that of a tier.
    pub fn forge_below(&self, folder: &str, variant: &str, edit: impl FnOnce(&mut Json)) {
        let path = format!("baselines/{folder}/bsr_gemm/{variant}.profile.json");
        let mut json = self.json(&path);
        edit(&mut json);
        refresh(&mut json);
        let profile = Profile::parse(json.to_string().as_bytes()).unwrap();
        let norm = norm_text(&profile).unwrap();
        self.forge_files_below(folder, variant, &norm, &profile.to_json());
    }

    /// Writes a normalized text and a profile, with hash and lock that fit them.
    pub fn forge_files(&self, variant: &str, norm: &str, profile: &str) {
        self.forge_files_below(GPU, variant, norm, profile);
    }

    fn forge_files_below(&self, folder: &str, variant: &str, norm: &str, profile: &str) {
        let path = format!("baselines/{folder}/bsr_gemm/{variant}.lock.toml");
        let mut lock = Lock::parse(&self.read(&path)).unwrap();
        let mut entry: Entry = lock.ledger.pop().unwrap();
        entry.norm_sha256 = sha256_hex(norm.as_bytes());
        entry.profile_sha256 = sha256_hex(profile.as_bytes());
        let id = format!("bsr_gemm/{variant}");
        self.write_baseline(folder, &id, norm, profile, (lock, entry));
    }
}

/// Copies a program. Another process writes the copy: what a test has open for writing, each process that
/// another test starts meanwhile inherits for a moment, and the system runs no program that is open for
/// writing ("Text file busy").
#[track_caller]
pub fn install(from: &Path, to: &Path) {
    fs::create_dir_all(to.parent().unwrap()).unwrap();
    let mut install = Command::new("install");
    install.args(["-m", "755"]).args([from, to]);
    Ran::of(&install.output().unwrap()).exits(0);
}

/// Writes a program that can be run at once: see [`install`].
#[track_caller]
pub fn write_program(path: &Path, text: &str) {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(text.as_bytes()).unwrap();
    install(file.path(), path);
}

/// Takes from a command's environment what says that it runs for a pull request: the tests
/// themselves may.
pub fn outside_pull_request(command: &mut Command) {
    // Each variable that the table names; its other words are the names of none.
    let table = include_str!("../../src/trust/service/table.rs");
    let words = || table.split(|c: char| c == '"' || c.is_whitespace());
    assert!(words().any(|word| word == "CI"), "names are found");
    for word in words().filter(|word| !word.contains('=')) {
        command.env_remove(word);
    }
}

/// Who publishes the tool, as recipes and pages name it: `OWNER/sparsek-gate` before anybody does.
pub fn published_as() -> &'static str {
    let repository = env!("CARGO_PKG_REPOSITORY");
    repository.strip_prefix("https://github.com/").unwrap()
}

/// The program, in the repository.
pub fn in_repository(arguments: &[&str]) -> Ran {
    let mut command = Project::empty().gate_of(arguments);
    Ran::by(command.current_dir(repository()))
}

/// The repository under test.
pub fn repository() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// Compares a text with a file of the repository; `UPDATE_DOCS=1` writes that file.
#[track_caller]
pub fn is_generated(name: &str, text: &str) {
    let path = repository().join(name);
    if std::env::var("UPDATE_DOCS").is_ok_and(|update| update == "1") {
        fs::write(&path, text).unwrap();
    }
    let found = fs::read_to_string(&path).unwrap_or_default();
    let differing = found.lines().zip(text.lines()).position(|(a, b)| a != b);
    let at = differing.unwrap_or(found.lines().count().min(text.lines().count()));
    let line = |text: &str| text.lines().nth(at).unwrap_or("nothing").to_owned();
    assert!(
        found == text,
        "{name} differs from line {} on:\n  was {}\n  is  {}\n\
         If that is intended: the same command with UPDATE_DOCS=1",
        at + 1,
        line(&found),
        line(text)
    );
}

/// The recordings of the repository, all unpacked.
pub fn recordings() -> PathBuf {
    let folder = repository().join("ci/recordings");
    evaluation::unpacked(&folder, env!("CARGO_TARGET_TMPDIR").as_ref()).unwrap()
}

/// What the stand-in of ncu hands over: reports that ncu timed.
pub fn handed_over() -> PathBuf {
    repository().join("tests/data/stand_in/recordings")
}

/// Says something even where the test passes: the harness keeps what `eprintln!` prints.
pub fn aloud(text: &str) {
    let _ = writeln!(std::io::stderr(), "{text}");
}

/// The words of a command line without quotes.
pub fn words(line: &str) -> Vec<&str> {
    line.split_whitespace().collect()
}

/// What a program is called with: a line of words without blanks in them, or a list of any.
pub trait Arguments {
    fn list(&self) -> Vec<&str>;
}

impl Arguments for &str {
    fn list(&self) -> Vec<&str> {
        words(self)
    }
}

impl Arguments for &String {
    fn list(&self) -> Vec<&str> {
        words(self)
    }
}

impl Arguments for &[&str] {
    fn list(&self) -> Vec<&str> {
        self.to_vec()
    }
}

impl<const N: usize> Arguments for &[&str; N] {
    fn list(&self) -> Vec<&str> {
        self.to_vec()
    }
}

impl Arguments for &Vec<&str> {
    fn list(&self) -> Vec<&str> {
        self.to_vec()
    }
}

/// A table in a text: a row a line, with `|` between its cells. `\n` in a cell is the end of a line.
pub fn rows<const N: usize>(table: &str) -> Vec<[String; N]> {
    let cells = |row: &str| -> Vec<String> {
        let cells = row.split(" |").map(str::trim);
        cells.map(|cell| cell.replace("\\n", "\n")).collect()
    };
    let lines = table.trim().lines();
    lines.map(|row| cells(row).try_into().unwrap()).collect()
}

/// Fails the test with the whole text, unless it contains all of these.
#[track_caller]
pub fn contains(text: &str, words: &[&str]) {
    for word in words {
        assert!(text.contains(word), "{word:?} is not in {text:?}");
    }
}

/// Whether all these programs are on the PATH; otherwise says aloud what is skipped, and fails in CI.
pub fn are_here(programs: &[&str]) -> bool {
    let absent = |program: &&&str| Command::new(program).arg("--version").output().is_err();
    let Some(missing) = programs.iter().find(absent) else {
        return true;
    };
    assert!(std::env::var_os("CI").is_none(), "{missing} is missing");
    aloud(&format!(
        "SKIPPED: a test that needs {missing}, which is not on the PATH (nvcc, nvdisasm, cuobjdump: \
         `ci/install-cuda.sh target/cuda && source target/cuda/env.sh`; cmake: `pip install cmake`; \
         make: `apt install make`)"
    ));
    false
}

/// Whether this machine has a driver, and so perhaps a GPU; says aloud that a test is skipped for it.
pub fn has_driver() -> bool {
    // SAFETY: only tries to open the library.
    let here = unsafe { cudarc::driver::sys::is_culib_present() };
    if here {
        aloud("SKIPPED: this machine has an NVIDIA driver");
    }
    here
}

/// What the schema for editors says against a configuration; empty where it accepts it.
pub fn schema_complaints(config: &str) -> Vec<String> {
    let schema = serde_json::from_str(&sparsek_gate::config::schema()).unwrap();
    let validator = jsonschema::draft7::new(&schema).unwrap();
    let config = as_editors_see(toml::from_str(config).unwrap());
    let complaints = validator.iter_errors(&config);
    complaints
        .map(|error| format!("{}: {error}", error.instance_path()))
        .collect()
}

/// Dates are text to a JSON Schema.
fn as_editors_see(value: toml::Value) -> Json {
    match value {
        toml::Value::Datetime(date) => json!(date.to_string()),
        toml::Value::Array(values) => values.into_iter().map(as_editors_see).collect(),
        toml::Value::Table(table) => table
            .into_iter()
            .map(|(key, value)| (key, as_editors_see(value)))
            .collect(),
        value => serde_json::to_value(value).unwrap(),
    }
}

/// The repository's configuration with [`VARIANTS`] and the faults, and no other variant. For tests that
/// edit its lines, each metric, suite and variant is a table with a key a line, and defaults are written.
pub fn configuration() -> String {
    let whole = fs::read_to_string(repository().join("config.toml")).unwrap();
    let mut whole: toml::Table = whole.parse().unwrap();
    let mut take = |key: &str| -> toml::Table {
        let table = whole.remove(key);
        table.map_or_else(toml::Table::new, |table| table.try_into().unwrap())
    };
    let table = |name: &str, lines: &str| format!("[{name}]\n{lines}\n");
    let mut text = table("paths", &lines_of(take("paths"), &[]));
    let mut toolchain = take("toolchain");
    let pins = toolchain.remove("pins").unwrap().try_into().unwrap();
    text += &table("toolchain", &lines_of(toolchain, &[]));
    text += &table("toolchain.pins", &lines_of(pins, &[]));
    let defaults = "launches = 20  # the default\nprocesses = 4  # the default\ntimeout_s = 120\n";
    let profile = lines_of(take("profile"), &[]);
    text += &table("profile", &format!("{defaults}{profile}"));
    text += &table("verify", "timeout_s = 60\n");
    for (name, metric) in take("metric") {
        let mut metric: toml::Table = metric.try_into().unwrap();
        // Those of other variants.
        if metric.contains_key("variants") {
            continue;
        }
        let counter = alias(&name).map(|alias| alias.role.counter().into());
        if let Some(counter) = counter {
            metric.entry("counter").or_insert(counter);
        }
        text += &table(&format!("metric.{name}"), &lines_of(metric, &["on"]));
    }
    for (name, metric) in take("static") {
        let metric = metric.try_into().unwrap();
        text += &table(&format!("static.{name}"), &lines_of(metric, &[]));
    }
    for (name, suite) in take("suite") {
        if !["bsr_gemm", "faults"].contains(&name.as_str()) {
            continue;
        }
        let mut suite: toml::Table = suite.try_into().unwrap();
        let variants: toml::Table = suite.remove("variant").unwrap().try_into().unwrap();
        text += &table(&format!("suite.{name}"), &lines_of(suite, &[]));
        for (variant, settings) in variants {
            if name == "faults" || VARIANTS.contains(&variant) {
                let settings = lines_of(settings.try_into().unwrap(), &[]);
                text += &table(&format!("suite.{name}.variant.{variant}"), &settings);
            }
        }
    }
    let missing: Vec<&String> = whole.keys().collect();
    assert!(missing.is_empty(), "{missing:?}");
    text
}

/// A table with a key a line, without these keys.
fn lines_of(table: toml::Table, without: &[&str]) -> String {
    let keys = in_order(&table).into_iter();
    let keys = keys.filter(|key| !without.contains(&key.as_str()));
    keys.map(|key| format!("{key} = {}\n", in_a_line(&table[key])))
        .collect()
}

/// The keys of a table, those that tests look for together in one order.
fn in_order(table: &toml::Table) -> Vec<&String> {
    const FIRST: [&str; 12] = [
        "description", "source", "expect", "counter", "direction", "tolerance", "stored",
        "against", "exact", "counts", "flop", "arch",
    ];
    let mut keys: Vec<&String> = table.keys().collect();
    keys.sort_by_key(|key| FIRST.iter().position(|first| first == key).unwrap_or(99));
    keys
}

fn in_a_line(value: &toml::Value) -> String {
    match value {
        toml::Value::Table(table) if table.is_empty() => "{}".to_owned(),
        toml::Value::Table(table) => {
            let keys = in_order(table).into_iter();
            let pairs = keys.map(|key| format!("{key} = {}", in_a_line(&table[key])));
            format!("{{ {} }}", pairs.collect::<Vec<_>>().join(", "))
        }
        toml::Value::Array(list) => {
            let list: Vec<String> = list.iter().map(in_a_line).collect();
            format!("[{}]", list.join(", "))
        }
        other => other.to_string(),
    }
}

/// What the compiler makes is only recorded.
fn recorded_only() -> String {
    let metrics = STATIC_METRICS.iter();
    let metrics = metrics.filter(|metric| metric.is_on("sm_90a"));
    let table = |name| format!("[static.{name}]\nlevel = \"record\"\n\n");
    metrics.map(|metric| table(metric.name)).collect()
}

/// The line of a configuration that passes what the stand-ins of `tests/data/stand_in` read.
pub const ENV_PASS: &str = r#"env_pass = ["ARGV", "CLOCKS", "CUDA_LAUNCH", "CUDA_MINOR", "CUDA_NAME", "DENIED", "IMPORT_SLEEPS", "JOURNAL", "LOG", "NVCC_RELEASE", "NVML_ERRORS", "NVML_GROWS", "NVML_LOST", "NVML_REASONS", "NVML_SICK", "NVML_WHEN", "NVML_XID", "RECORDINGS", "RECORDS", "REPORTS", "SANITIZED", "STAND_IN_CUPTI", "STATUS", "TARGET"]
"#;

/// Copies a folder. Captures are large and never written: a second name does, where the file systems
/// are the same.
pub fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &target);
        } else if target
            .extension()
            .is_some_and(|ending| ending == "ncu-rep" || ending == "csv")
        {
            fs::hard_link(entry.path(), &target)
                .or_else(|_| fs::copy(entry.path(), target).map(drop))
                .unwrap();
        } else {
            fs::copy(entry.path(), target).unwrap();
        }
    }
}

/// The samples of a metric of a profile's only kernel.
pub fn samples<'a>(profile: &'a mut Json, metric: &str) -> Vec<&'a mut Json> {
    let processes = profile["kernels"][0]["metrics"][metric]["samples"].as_array_mut();
    let processes = processes.unwrap().iter_mut();
    processes
        .flat_map(|it| it.as_array_mut().unwrap())
        .collect()
}

fn samples_of(profile: &Json) -> &Json {
    &profile["kernels"][0]["metrics"]["duration"]["samples"]
}

/// Lets the records of a recording say what its durations are, in whole nanoseconds.
fn record_durations(folder: &Path, profile: &mut Json) {
    for process in 0..samples_of(profile).as_array().unwrap().len() {
        let name = format!("capture-{}.records", process + 1);
        let path = folder.join(&name);
        let samples = &mut profile["kernels"][0]["metrics"]["duration"]["samples"][process];
        let mut samples = samples.as_array_mut().unwrap().iter_mut();
        let line = |line: &str| -> String {
            let mut words: Vec<String> = line.split(' ').map(str::to_owned).collect();
            if words[0] == "k" {
                let sample = samples.next().unwrap();
                *sample = json!(sample.as_f64().unwrap().round());
                let begin: u64 = words[2].parse().unwrap();
                words[3] = (begin + sample.as_f64().unwrap() as u64).to_string();
            }
            words.join(" ") + "\n"
        };
        let text: String = fs::read_to_string(&path)
            .unwrap()
            .lines()
            .map(line)
            .collect();
        fs::remove_file(&path).unwrap();
        fs::write(&path, &text).unwrap();
        let captures = profile["provenance"]["captures"].as_array_mut().unwrap();
        let of = captures
            .iter_mut()
            .find(|one| one["report"]["file"] == name.as_str());
        of.unwrap()["report"]["sha256"] = json!(sha256_hex(text.as_bytes()));
    }
}

/// Multiplies every sample of a metric.
pub fn scale(profile: &mut Json, metric: &str, factor: f64) {
    scale_processes(profile, metric, &[factor]);
}

/// Multiplies the samples of each process by the next of the factors, which repeat.
pub fn scale_processes(profile: &mut Json, metric: &str, factors: &[f64]) {
    let processes = profile["kernels"][0]["metrics"][metric]["samples"].as_array_mut();
    for (process, factor) in processes.unwrap().iter_mut().zip(factors.iter().cycle()) {
        for sample in process.as_array_mut().unwrap() {
            *sample = json!(sample.as_f64().unwrap() * factor);
        }
    }
    refresh(profile);
}

/// Adds to every sample of a metric.
pub fn shift(profile: &mut Json, metric: &str, by: f64) {
    for sample in samples(profile, metric) {
        *sample = json!(sample.as_f64().unwrap() + by);
    }
    refresh(profile);
}

/// Whether a metric or a capture of a profile is of the timing phase.
fn is_timing(value: &Json) -> bool {
    value["phase"] == json!(Phase::Timing)
}

/// Takes the noise out, of the timing phase: every launch reads the mean of all, but for a hundred
/// thousandth by which every second process differs. What a test then plants is all there is.
pub fn steady(profile: &mut Json) {
    let metrics = profile["identity"]["metrics"].as_object().unwrap().clone();
    for (alias, _) in metrics.into_iter().filter(|(_, metric)| is_timing(metric)) {
        let samples = samples(profile, &alias);
        let sum: f64 = samples.iter().map(|sample| sample.as_f64().unwrap()).sum();
        let mean = json!(sum / samples.len() as f64);
        samples
            .into_iter()
            .for_each(|sample| *sample = mean.clone());
        scale_processes(profile, &alias, &[1.0 - 5e-6, 1.0 + 5e-6]);
    }
}

/// An edit of a profile, and what it does in words.
pub type Damage = (&'static str, fn(&mut Json));

/// Ways in which the metric `tensor_core` is not there.
pub fn gaps() -> Vec<Damage> {
    vec![
        ("the metric is gone", |profile| {
            let metrics = &mut profile["kernels"][0]["metrics"];
            metrics.as_object_mut().unwrap().remove("tensor_core");
            let metrics = &mut profile["identity"]["metrics"];
            metrics.as_object_mut().unwrap().remove("tensor_core");
        }),
        ("the kernel does not hold it", |profile| {
            let metrics = &mut profile["kernels"][0]["metrics"];
            metrics.as_object_mut().unwrap().remove("tensor_core");
        }),
        ("it has another name", |profile| {
            for place in ["/identity/metrics", "/kernels/0/metrics"] {
                let metrics = profile.pointer_mut(place).unwrap();
                let metrics = metrics.as_object_mut().unwrap();
                let value = metrics.remove("tensor_core").unwrap();
                metrics.insert("tensor_cores".to_owned(), value);
            }
        }),
        ("one launch is null", |profile| {
            *samples(profile, "tensor_core")[7] = Json::Null;
        }),
        ("every launch is null", |profile| {
            for sample in samples(profile, "tensor_core") {
                *sample = Json::Null;
            }
        }),
        ("one launch is missing", |profile| {
            let series = &mut profile["kernels"][0]["metrics"]["tensor_core"]["samples"][0];
            series.as_array_mut().unwrap().pop();
        }),
        ("one process is missing", |profile| {
            let series = &mut profile["kernels"][0]["metrics"]["tensor_core"]["samples"];
            series.as_array_mut().unwrap().pop();
        }),
        ("there are no samples", |profile| {
            profile["kernels"][0]["metrics"]["tensor_core"]["samples"] = json!([[]]);
        }),
        ("the unit is not known", |profile| {
            profile["identity"]["metrics"]["tensor_core"]["unit"] = Json::Null;
        }),
        ("a launch reads below zero", |profile| {
            *samples(profile, "tensor_core")[3] = json!(-1.0);
        }),
    ]
}

/// Keeps the first launches only, of every metric.
pub fn keep_launches(profile: &mut Json, count: usize) {
    for kernel in profile["kernels"].as_array_mut().unwrap() {
        for series in kernel["metrics"].as_object_mut().unwrap().values_mut() {
            for process in series["samples"].as_array_mut().unwrap() {
                process.as_array_mut().unwrap().truncate(count);
            }
        }
    }
    profile["provenance"]["launches"] = json!(count);
    refresh(profile);
}

/// Keeps the first processes of the timing phase only: what was measured in fewer.
pub fn keep_processes(profile: &mut Json, count: usize) {
    let timing = |alias: &str, profile: &Json| is_timing(&profile["identity"]["metrics"][alias]);
    let whole = profile.clone();
    for kernel in profile["kernels"].as_array_mut().unwrap() {
        for (alias, series) in kernel["metrics"].as_object_mut().unwrap() {
            if timing(alias, &whole) {
                series["samples"].as_array_mut().unwrap().truncate(count);
            }
        }
    }
    let mut kept = 0;
    let captures = profile["provenance"]["captures"].as_array_mut().unwrap();
    captures.retain(|capture| {
        let timing = is_timing(capture);
        kept += usize::from(timing);
        !timing || kept <= count
    });
    profile["provenance"]["processes"] = json!(count);
    refresh(profile);
}

/// Writes the values and spreads that the samples give.
pub fn refresh(profile: &mut Json) {
    let parsed = Profile::parse(profile.to_string().as_bytes()).unwrap();
    let kernels = profile["kernels"].as_array_mut().unwrap();
    for (kernel, json_kernel) in parsed.kernels.iter().zip(kernels) {
        for (alias, series) in &kernel.metrics {
            let metric = parsed.identity.metrics.get(alias);
            let phase = metric.map_or(Phase::Timing, |metric| metric.phase);
            let machines = parsed.machines(phase);
            json_kernel["metrics"][alias] = json!(Series::new(series.samples.clone(), &machines));
        }
    }
}
