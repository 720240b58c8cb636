//! Submits the slices of an archive, and waits for their end.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::keeper::{REFUSED, SUBMITTED};
use super::queue::{Queue, ask, client, failed_launches};
use super::script::{OfRun, Script, exclude, limit_minutes, options, slice};
use crate::engine::task::Task;
use crate::files::{read_text_up_to, write_atomically};
use crate::finding::{Error, ExitCode};
use crate::process::{Companion, interrupted, tail};

/// Between two looks at the files that slices write at their end.
const LOOK: Duration = Duration::from_millis(200);
/// Between two questions to Slurm, at first and later.
const FIRST_QUESTIONS: Duration = Duration::from_millis(500);
const QUESTIONS: Duration = Duration::from_secs(15);
/// How long Slurm may give no answer: a controller that is restarted comes back.
const PATIENCE: Duration = Duration::from_secs(900);
/// How long an interrupt waits for the jobs to be cancelled.
const CANCELS: Duration = Duration::from_secs(120);
/// How often slices are released that nodes could not launch.
const MOST_RELEASES: u32 = 3;
/// How long an sbatch may go on whose keeper was killed.
const SUBMITS: Duration = Duration::from_secs(5);
/// The most of a file that a job writes for this tool, in bytes.
const MOST_SAID: u64 = 4096;
/// The folder of what the tool notes of its jobs, in the folder of a run: `jobs/1` and so on.
const JOBS: &str = "jobs";
/// A file in one of these: the job measures slices once more.
const REPEAT: &str = "repeat";
/// One with the path of the run's folder.
const PLACE: &str = "place";
/// One that keeps the scripts of the job from measuring.
const GIVEN_UP: &str = "given-up";
/// One that says that nothing of the job is left.
const OVER: &str = "over";
/// The folder in one of these in which scripts write how they ended, by the number of the slice.
const ENDED: &str = "ended";

/// The check whose slices are to be measured, and where.
pub struct Order<'a> {
    /// The check.
    pub task: &'a Task<'a>,
    /// A folder that all nodes see under this path, with the archive `gate.tar.zst` and the program
    /// `sparsek-gate`. Slices go to `slices/1` and so on, logs to `logs`.
    pub folder: &'a Path,
    /// How the names of its jobs begin, which those of no other check do.
    pub name: &'a str,
    /// The argv of [`super::keep`], up to its arguments: name and sbatch.
    pub keeper: Vec<String>,
}

/// A job: an array with one task for each of some slices.
pub struct Array<'a> {
    /// The slices, counted from 1; at least one.
    pub slices: &'a BTreeSet<u32>,
    /// Whether this is a second measurement beside the first, in `slices/1-repeat` and so on.
    pub is_repeat: bool,
    /// The nodes that get none of them, besides those that the configuration excludes.
    pub without: &'a BTreeSet<String>,
    /// Whether they go on with interrupted ones.
    pub resume: bool,
}

impl Array<'_> {
    /// What comes after the number of a slice in the names of its folder and its log.
    fn suffix(&self) -> &'static str {
        if self.is_repeat { "-repeat" } else { "" }
    }

    /// What `--array` of sbatch takes.
    fn tasks(&self) -> String {
        let numbers: Vec<String> = self.slices.iter().map(u32::to_string).collect();
        match (self.slices.first(), self.slices.last()) {
            (Some(first), Some(last)) if (last - first) as usize + 1 == numbers.len() => {
                format!("{first}-{last}")
            }
            _ => numbers.join(","),
        }
    }
}

/// How the script of a slice ended, as it wrote.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ended {
    /// Its exit code.
    pub code: i32,
    /// Its node.
    pub node: Option<String>,
}

impl Ended {
    /// Of what a script wrote, or something else in its name.
    fn parsed(text: &str) -> Option<Ended> {
        /// Longer than the name of a host can be.
        const LONG: usize = 300;
        let mut words = text.split_whitespace();
        let code = words.next()?.parse().ok()?;
        // It becomes a part of an argument of sbatch.
        let is_name = |word: &&str| {
            let mut bytes = word.bytes();
            let is_part = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
            word.len() < LONG && !word.starts_with('-') && bytes.all(is_part)
        };
        let node = words.next().filter(is_name).map(str::to_owned);
        Some(Ended { code, node })
    }
}

/// What became of a job.
pub enum Submitted {
    /// All of its slices have ended: how those did of which that is known.
    Ended(BTreeMap<u32, Ended>),
    /// Slurm did not take it, or will not start what is left of it.
    Unavailable(Error),
}

/// How the slices of earlier jobs of a run ended, without repeats.
pub fn ended_before(folder: &Path) -> BTreeMap<u32, Ended> {
    let jobs = jobs(folder).filter(|job| !job.join(REPEAT).exists());
    jobs.flat_map(|job| ended(&job)).collect()
}

/// Cancels what is left of the jobs of an interrupted run. Those of a copy of its folder are not its own.
///
/// # Errors
/// [`Error::Environment`] where they cannot be cancelled.
pub fn end_earlier(folder: &Path, name: &str) -> Result<(), Error> {
    for (number, job) in (1..).zip(jobs(folder)) {
        if is_done(&job, folder) {
            continue;
        }
        let name = job_name(name, number);
        // A job that is still being submitted measures nothing then.
        let given_up = job.join(GIVEN_UP);
        write_atomically(&given_up, b"").map_err(Error::io("write", &given_up))?;
        if !super::queue::cancel(&name, folder, CANCELS) {
            return Err(Error::Environment {
                what: "the jobs of an interrupted run cannot be cancelled".to_owned(),
                next: format!("scancel --name={name}, and run the check again"),
            });
        }
        is_over(&job)?;
    }
    Ok(())
}

/// Whether nothing is left of the jobs of a run, as far as it is noted.
pub fn are_over(folder: &Path) -> bool {
    jobs(folder).all(|job| is_done(&job, folder))
}

/// Whether nothing of a job is left to end: it is over, or another folder's, of which this one is a copy.
fn is_done(job: &Path, folder: &Path) -> bool {
    let is_own = read_text_up_to(&job.join(PLACE), MOST_SAID)
        .is_ok_and(|place| Some(place.as_str()) == folder.to_str());
    !is_own || job.join(OVER).exists()
}

/// Notes that nothing of a job is left.
fn is_over(job: &Path) -> Result<(), Error> {
    let over = job.join(OVER);
    write_atomically(&over, b"").map_err(Error::io("write", &over))
}

/// The folders of the jobs of a run, the first one first.
fn jobs(folder: &Path) -> impl Iterator<Item = PathBuf> {
    let jobs = (1..).map(move |number| job_folder(folder, number));
    jobs.take_while(|job| job.exists())
}

fn job_folder(folder: &Path, number: u32) -> PathBuf {
    folder.join(JOBS).join(number.to_string())
}

fn job_name(name: &str, number: u32) -> String {
    format!("{name}-{number}")
}

/// Whether this machine can submit jobs: asked before anything is built.
///
/// # Errors
/// [`Error::Environment`] where it has no sbatch.
pub fn refuse_without(dir: &Path) -> Result<(), Error> {
    let argv = ["sbatch", "--version"].map(str::to_owned);
    match ask(&argv, dir) {
        Ok(_) => Ok(()),
        Err(why) => Err(Error::Environment {
            what: format!("this machine cannot submit jobs to Slurm: {why}"),
            next: "run it on a login node of the cluster, or install the commands: apt-get install slurm-client".to_owned(),
        }),
    }
}

/// Submits slices and waits until all of them have ended, whatever they measured: how those ended that
/// wrote it. Each change is said to `note`. An error leaves no job.
///
/// # Errors
/// [`Error::Environment`] where Slurm gives no answer, or the process was ended that keeps the job;
/// [`Error::Interrupted`].
pub fn run(
    order: &Order<'_>,
    array: &Array<'_>,
    note: &mut dyn FnMut(&str),
) -> Result<Submitted, Error> {
    let job = Job::new(order, array)?;
    let mut argv = order.keeper.clone();
    argv.extend(["--name".to_owned(), job.name.clone(), "--".to_owned()]);
    argv.extend(job.sbatch()?);
    let keeper = Companion::start(
        &argv,
        &job.folder,
        &client(),
        &job.folder.join("keeper.log"),
    );
    let keeper = keeper.map_err(Error::io("start", &argv[0]))?;
    match waited(&job, &keeper, note) {
        Ok(None) => {
            is_over(&job.folder)?;
            keeper.release();
            let mut ended = ended(&job.folder);
            not_launched(&job, &mut ended, note);
            failures(&job, &ended, note);
            Ok(Submitted::Ended(ended))
        }
        Ok(Some(unavailable)) => {
            if keeper.act(CANCELS) {
                is_over(&job.folder)?;
                return Ok(Submitted::Unavailable(unavailable));
            }
            Err(Error::Environment {
                what: format!("the jobs called {} cannot be cancelled", job.name),
                next: format!("scancel --name={}, and run the check again", job.name),
            })
        }
        Err(error) => {
            if !keeper.act(CANCELS) {
                note(&format!(
                    "the jobs called {} are still being cancelled in the background",
                    job.name
                ));
            }
            Err(error)
        }
    }
}

/// An array that is submitted.
struct Job<'a> {
    order: &'a Order<'a>,
    array: &'a Array<'a>,
    /// Where its script is, and what its processes say.
    folder: PathBuf,
    name: String,
    number: u32,
}

impl<'a> Job<'a> {
    fn new(order: &'a Order<'a>, array: &'a Array<'a>) -> Result<Job<'a>, Error> {
        let mut numbers = (1..).filter(|number| !job_folder(order.folder, *number).exists());
        let number = numbers.next().unwrap_or(1);
        let folder = job_folder(order.folder, number);
        let logs = order.folder.join("logs");
        for path in [order.folder.join("slices"), logs, folder.join(ENDED)] {
            fs::create_dir_all(&path).map_err(Error::io("create", &path))?;
        }
        let place = order.folder.to_str().unwrap_or_default();
        let repeat = array.is_repeat.then_some((REPEAT, ""));
        for (name, text) in [(PLACE, place)].into_iter().chain(repeat) {
            let path = folder.join(name);
            write_atomically(&path, text.as_bytes()).map_err(Error::io("write", &path))?;
        }
        Ok(Job {
            order,
            array,
            folder,
            name: job_name(order.name, number),
            number,
        })
    }

    /// Writes the script of a slice: the argv that submits it.
    fn sbatch(&self) -> Result<Vec<String>, Error> {
        let Job { order, array, .. } = self;
        let settings = &order.task.settings.slurm;
        let text = order.folder.to_str().ok_or_else(|| {
            Error::Usage(format!(
                "{} cannot stand in a script: it is not UTF-8",
                order.folder.display()
            ))
        })?;
        let script = slice(&Script {
            settings,
            slices: order.task.slices,
            program: "./sparsek-gate",
            of_run: Some(OfRun {
                folder: text,
                job: &format!("{JOBS}/{}", self.number),
                suffix: array.suffix(),
                resume: array.resume,
            }),
        });
        let path = self.folder.join("slice.sh");
        write_atomically(&path, script.as_bytes()).map_err(Error::io("write", &path))?;
        let minutes = limit_minutes(order.task);
        let mut sbatch = options(settings, &self.name, &array.tasks(), minutes);
        sbatch.extend(exclude(settings, array.without));
        sbatch.extend([
            "--parsable".to_owned(),
            format!("--chdir={text}"),
            format!("--output={text}/logs/slice-%a{}.log", array.suffix()),
            "slice.sh".to_owned(),
        ]);
        Ok(sbatch)
    }

    fn log(&self, slice: u32) -> PathBuf {
        let name = format!("slice-{slice}{}.log", self.array.suffix());
        self.order.folder.join("logs").join(name)
    }
}

/// Waits for the number of the job, and for its end; why it is not taken or not started.
fn waited(
    job: &Job<'_>,
    keeper: &Companion,
    note: &mut dyn FnMut(&str),
) -> Result<Option<Error>, Error> {
    let said = |name: &str| read_text_up_to(&job.folder.join(name), MOST_SAID).ok();
    let number = loop {
        if interrupted() {
            return Err(Error::Interrupted);
        }
        if let Some(number) = said(SUBMITTED) {
            break number;
        }
        if let Some(why) = said(REFUSED) {
            return Ok(Some(refused(&why)));
        }
        is_there(job, keeper)?;
        std::thread::sleep(LOOK);
    };
    let slices = match job.array.slices.len() {
        1 => "1 slice".to_owned(),
        count => format!("{count} slices"),
    };
    note(&format!("Slurm job {number}: {slices}"));
    let first = Instant::now() + Duration::from_secs(10);
    let mut state = Wait::new(job.array);
    loop {
        if interrupted() {
            return Err(Error::Interrupted);
        }
        is_there(job, keeper)?;
        let ended = ended(&job.folder);
        let all_ended = job.array.slices.iter().all(|one| ended.contains_key(one));
        let between = match all_ended || Instant::now() < first {
            true => FIRST_QUESTIONS,
            false => QUESTIONS,
        };
        if state.asked.elapsed() >= between {
            match Queue::of(&job.name, &job.folder) {
                Ok(queue) => {
                    if let Some(never) = state.answered(queue) {
                        return Ok(Some(never));
                    }
                    state.release(job, note);
                }
                Err(why) => state.unanswered(why)?,
            }
        }
        if let Some(line) = state.line(ended.len(), &number) {
            note(&line);
        }
        if state.is_over(all_ended) {
            return Ok(None);
        }
        std::thread::sleep(LOOK);
    }
}

/// The keeper must be there as long as there may be a job.
fn is_there(job: &Job<'_>, keeper: &Companion) -> Result<(), Error> {
    let written = [SUBMITTED, REFUSED].map(|name| job.folder.join(name).exists());
    let ended = keeper.has_ended().unwrap_or(true);
    if !ended || written[1] {
        return Ok(());
    }
    // Nobody else is left to cancel. An sbatch that it left may still submit.
    if !written[0] {
        std::thread::sleep(SUBMITS);
    }
    let none = super::queue::cancel(&job.name, &job.folder, CANCELS);
    let rest = if none {
        ""
    } else {
        ", and cannot be cancelled"
    };
    Err(Error::Environment {
        what: format!(
            "the process that keeps the jobs called {} was ended{rest}",
            job.name
        ),
        next: format!("scancel --name={}, and run the check again", job.name),
    })
}

fn refused(why: &str) -> Error {
    Error::Environment {
        what: format!("Slurm takes no job: {why}"),
        next: "check [launch.slurm] in the configuration, and `sinfo`; docs/slurm.md".to_owned(),
    }
}

/// How the scripts of a job ended that have, by slice.
fn ended(job: &Path) -> BTreeMap<u32, Ended> {
    let entries = fs::read_dir(job.join(ENDED));
    let entries = entries.into_iter().flatten().flatten();
    entries
        .filter_map(|entry| {
            let slice = entry.file_name().to_str()?.parse().ok()?;
            let text = read_text_up_to(&entry.path(), MOST_SAID).ok()?;
            Some((slice, Ended::parsed(&text)?))
        })
        .collect()
}

/// What is known of the job.
struct Wait {
    slices: usize,
    /// Whether it waits for nodes of which some are excluded.
    is_elsewhere: bool,
    asked: Instant,
    answered: Instant,
    queue: Option<Queue>,
    /// How often slices were released that Slurm held.
    released: u32,
    /// How many answers in a row say that no job is left: between two states of a job that is
    /// requeued there may be a moment without one.
    empty: u32,
    said: String,
}

impl Wait {
    fn new(array: &Array<'_>) -> Wait {
        let now = Instant::now();
        Wait {
            slices: array.slices.len(),
            is_elsewhere: !array.without.is_empty(),
            asked: now.checked_sub(QUESTIONS).unwrap_or(now),
            answered: now,
            queue: None,
            released: 0,
            empty: 0,
            said: String::new(),
        }
    }

    /// Takes an answer; why what waits will never start, once nothing else runs.
    fn answered(&mut self, queue: Queue) -> Option<Error> {
        self.asked = Instant::now();
        self.answered = self.asked;
        self.empty = if queue.is_empty() { self.empty + 1 } else { 0 };
        let never = queue.never(self.is_elsewhere).map(str::to_owned);
        let reason = never.filter(|_| queue.running == 0);
        self.queue = Some(queue);
        reason.map(|reason| Error::Environment {
            what: format!("Slurm will not start the slices: {reason}"),
            next: "correct [launch.slurm] in the configuration: `time_limit_min`, `partition`, `constraint`, `gres`; docs/slurm.md".to_owned(),
        })
    }

    /// Releases slices that Slurm holds because a node could not launch them: it drains such a node, and
    /// starts them on another one some minutes later.
    fn release(&mut self, job: &Job<'_>, note: &mut dyn FnMut(&str)) {
        let is_held = self.queue.as_ref().is_some_and(Queue::is_held);
        if !is_held || self.released >= MOST_RELEASES {
            return;
        }
        self.released += 1;
        let argv = ["scontrol", "release", &format!("jobname={}", job.name)].map(str::to_owned);
        let answer = ask(&argv, &job.folder);
        let how = answer.map_or_else(|why| format!("; {why}"), |_| String::new());
        note(&format!(
            "a node could not launch a slice; released, {} of {MOST_RELEASES}{how}",
            self.released
        ));
    }

    fn unanswered(&mut self, why: String) -> Result<(), Error> {
        self.asked = Instant::now();
        if self.answered.elapsed() < PATIENCE {
            return Ok(());
        }
        Err(Error::Environment {
            what: format!("Slurm gives no answer: {why}"),
            next: "see whether `sinfo` works, and run the check again".to_owned(),
        })
    }

    /// Whether no job is left. Where not every slice has said how it ended, one answer is not enough.
    fn is_over(&self, all_ended: bool) -> bool {
        self.empty >= if all_ended { 1 } else { 2 }
    }

    /// The state in words, where it is another one than before.
    fn line(&mut self, ended: usize, number: &str) -> Option<String> {
        let queue = self.queue.as_ref()?;
        let mut line = format!(
            "Slurm job {number}: {ended} of {} slices ended",
            self.slices
        );
        if queue.running > 0 {
            line.push_str(&format!(", {} run", queue.running));
        }
        if queue.waiting > 0 {
            line.push_str(&format!(", {} wait", queue.waiting));
        }
        if let Some(reason) = &queue.reason {
            line.push_str(&format!(" ({reason})"));
        }
        let is_new = line != self.said;
        self.said.clone_from(&line);
        is_new.then_some(line)
    }
}

/// Adds the slices whose scripts their nodes could not start, as on a node without the folder.
fn not_launched(job: &Job<'_>, ended: &mut BTreeMap<u32, Ended>, note: &mut dyn FnMut(&str)) {
    let is_known = job.array.slices.iter().all(|one| ended.contains_key(one));
    if is_known {
        return;
    }
    match failed_launches(&job.name, &job.folder) {
        Ok(failed) => {
            for (slice, node) in failed {
                let code = i32::from(ExitCode::NotBegun as u8);
                let node = Some(node);
                ended.entry(slice).or_insert(Ended { code, node });
            }
        }
        Err(why) => note(&why),
    }
}

/// Says which slices did not end with 0, and shows the ends of their logs.
fn failures(job: &Job<'_>, ended: &BTreeMap<u32, Ended>, note: &mut dyn FnMut(&str)) {
    /// More than so many logs nobody reads.
    const MOST: usize = 5;
    let slices = job.array.slices.iter();
    let with_code = slices.map(|slice| (*slice, ended.get(slice).map(|ended| ended.code)));
    let failed: Vec<(u32, Option<i32>)> = with_code.filter(|(_, code)| *code != Some(0)).collect();
    for (slice, code) in failed.iter().take(MOST) {
        let log = job.log(*slice);
        let how = match code {
            None => "ended by Slurm".to_owned(),
            Some(code) => format!("exit code {code}"),
        };
        let of = if job.array.is_repeat {
            "the repeat of "
        } else {
            ""
        };
        note(&format!("{of}slice {slice}: {how}; {}", log.display()));
        let last = tail(&log, 5);
        if !last.is_empty() {
            note(&last);
        }
    }
    if failed.len() > MOST {
        note(&format!("{} slices failed in all", failed.len()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_script_wrote_is_a_code_and_the_name_of_a_node() {
        let ended = |code, node: Option<&str>| {
            let node = node.map(str::to_owned);
            Some(Ended { code, node })
        };
        for (text, expected) in [
            ("0 node-1.cluster\n", ended(0, Some("node-1.cluster"))),
            ("3 \n", ended(3, None)),
            ("3", ended(3, None)),
            ("3 a,b", ended(3, None)),
            ("3 --wrap=x", ended(3, None)),
            ("", None),
            ("x node", None),
        ] {
            assert_eq!(Ended::parsed(text), expected, "{text:?}");
        }
    }

    #[test]
    fn a_slice_ended_where_it_was_measured_first_and_last() {
        let folder = tempfile::tempdir().unwrap();
        for (job, slice, text, is_repeat) in [
            (1, 1, "75 one", false),
            (1, 2, "0 two", false),
            (2, 1, "0 three", false),
            (3, 2, "0 three", true),
        ] {
            let job = job_folder(folder.path(), job);
            fs::create_dir_all(job.join(ENDED)).unwrap();
            fs::write(job.join(ENDED).join(slice.to_string()), text).unwrap();
            if is_repeat {
                fs::write(job.join(REPEAT), "").unwrap();
            }
        }
        let ended = ended_before(folder.path());
        let nodes: Vec<Option<&str>> = ended.values().map(|one| one.node.as_deref()).collect();
        assert_eq!(nodes, [Some("three"), Some("two")]);
    }

    #[test]
    fn a_run_is_over_once_all_of_its_own_jobs_are() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path();
        assert!(are_over(folder));
        for number in [1, 2] {
            let job = job_folder(folder, number);
            fs::create_dir_all(&job).unwrap();
            fs::write(job.join(PLACE), folder.to_str().unwrap()).unwrap();
        }
        is_over(&job_folder(folder, 2)).unwrap();
        assert!(!are_over(folder));
        is_over(&job_folder(folder, 1)).unwrap();
        assert!(are_over(folder));
        // In a copy of the folder it says the other one.
        let third = job_folder(folder, 3);
        fs::create_dir(&third).unwrap();
        fs::write(third.join(PLACE), "/elsewhere").unwrap();
        assert!(are_over(folder));
    }

    #[test]
    fn an_array_has_the_slices_that_are_asked_for() {
        let tasks = |slices: &[u32]| {
            let slices = slices.iter().copied().collect();
            Array {
                slices: &slices,
                is_repeat: false,
                without: &BTreeSet::new(),
                resume: false,
            }
            .tasks()
        };
        assert_eq!(tasks(&[1, 2, 3]), "1-3");
        assert_eq!(tasks(&[2]), "2-2");
        assert_eq!(tasks(&[1, 3, 8]), "1,3,8");
    }
}
