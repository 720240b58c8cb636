//! Submits the slices of an archive, and waits for their end.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use super::keeper::{REFUSED, SUBMITTED};
use super::queue::{Queue, ask, client};
use super::script::{Script, limit_minutes, options, slice};
use crate::engine::task::Task;
use crate::files::{read_text_up_to, write_atomically};
use crate::finding::Error;
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
/// How long an sbatch may go on whose keeper was killed.
const SUBMITS: Duration = Duration::from_secs(5);
/// The most of a file that a job writes for this tool, in bytes.
const MOST_SAID: u64 = 4096;

/// What is to be measured, and where.
pub struct Order<'a> {
    /// The check.
    pub task: &'a Task<'a>,
    /// A folder that all nodes see under this path, with the archive `gate.tar.zst` and the program
    /// `sparsek-gate`. Slices go to `slices/1` and so on, logs to `logs`.
    pub folder: &'a Path,
    /// The name of the job, which no other has.
    pub name: &'a str,
    /// The argv of [`super::keep`], up to its arguments: name and sbatch.
    pub keeper: Vec<String>,
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

/// Submits the slices and waits until all of them have ended, whatever they measured. Each change is
/// said to `note`. An error leaves no job.
///
/// # Errors
/// [`Error::Environment`] where Slurm refuses the job or gives no answer; [`Error::Interrupted`].
pub fn run(order: &Order<'_>, note: &mut dyn FnMut(&str)) -> Result<(), Error> {
    let folder = order.folder;
    for name in ["slices", "logs", "ended"] {
        let path = folder.join(name);
        fs::create_dir_all(&path).map_err(Error::io("create", &path))?;
    }
    let settings = &order.task.settings.slurm;
    let text = folder.to_str().ok_or_else(|| {
        Error::Usage(format!(
            "{} cannot stand in a script: it is not UTF-8",
            folder.display()
        ))
    })?;
    let script = slice(&Script {
        settings,
        slices: order.task.slices,
        program: "./sparsek-gate",
        folder: Some(text),
    });
    let path = folder.join("slice.sh");
    write_atomically(&path, script.as_bytes()).map_err(Error::io("write", &path))?;
    let (slices, minutes) = (order.task.slices, limit_minutes(order.task));
    let mut sbatch = options(settings, order.name, slices, minutes);
    sbatch.extend([
        "--parsable".to_owned(),
        format!("--chdir={text}"),
        format!("--output={text}/logs/slice-%a.log"),
        "slice.sh".to_owned(),
    ]);
    let mut argv = order.keeper.clone();
    argv.extend(["--name".to_owned(), order.name.to_owned(), "--".to_owned()]);
    argv.extend(sbatch);
    let log = folder.join("logs/keeper.log");
    let keeper = Companion::start(&argv, folder, &client(), &log);
    let keeper = keeper.map_err(Error::io("start", &argv[0]))?;
    match waited(order, &keeper, note) {
        Ok(()) => {
            keeper.release();
            failures(order, note);
            Ok(())
        }
        Err(error) => {
            if !keeper.act(CANCELS) {
                note(&format!(
                    "the jobs called {} are still being cancelled in the background",
                    order.name
                ));
            }
            Err(error)
        }
    }
}

/// Waits for the number of the job, and for its end.
fn waited(order: &Order<'_>, keeper: &Companion, note: &mut dyn FnMut(&str)) -> Result<(), Error> {
    let said = |name: &str| read_text_up_to(&order.folder.join(name), MOST_SAID).ok();
    let number = loop {
        if interrupted() {
            return Err(Error::Interrupted);
        }
        if let Some(number) = said(SUBMITTED) {
            break number;
        }
        if let Some(why) = said(REFUSED) {
            return Err(refused(&why));
        }
        is_there(order, keeper)?;
        std::thread::sleep(LOOK);
    };
    let slices = order.task.slices;
    note(&format!("Slurm job {number}: {slices} slices"));
    let first = Instant::now() + Duration::from_secs(10);
    let mut state = Wait::new(slices);
    loop {
        if interrupted() {
            return Err(Error::Interrupted);
        }
        is_there(order, keeper)?;
        let ended = ended(order);
        let all_ended = ended.len() >= slices as usize;
        let between = match all_ended || Instant::now() < first {
            true => FIRST_QUESTIONS,
            false => QUESTIONS,
        };
        if state.asked.elapsed() >= between {
            match Queue::of(order.name, order.folder) {
                Ok(queue) => state.answered(queue)?,
                Err(why) => state.unanswered(why)?,
            }
        }
        if let Some(line) = state.line(ended.len(), &number) {
            note(&line);
        }
        if state.is_over(all_ended) {
            return Ok(());
        }
        std::thread::sleep(LOOK);
    }
}

/// The keeper must be there as long as there may be a job.
fn is_there(order: &Order<'_>, keeper: &Companion) -> Result<(), Error> {
    let written = [SUBMITTED, REFUSED].map(|name| order.folder.join(name).exists());
    let ended = keeper.has_ended().unwrap_or(true);
    if !ended || written[1] {
        return Ok(());
    }
    // Nobody else is left to cancel. An sbatch that it left may still submit.
    if !written[0] {
        std::thread::sleep(SUBMITS);
    }
    let none = super::queue::cancel(order.name, order.folder, CANCELS);
    let rest = if none {
        ""
    } else {
        ", and cannot be cancelled"
    };
    Err(Error::Environment {
        what: format!(
            "the process that keeps the jobs called {} was ended{rest}",
            order.name
        ),
        next: format!("scancel --name={}, and run the check again", order.name),
    })
}

fn refused(why: &str) -> Error {
    Error::Environment {
        what: format!("Slurm takes no job: {why}"),
        next: "check [launch.slurm] in the configuration, and `sinfo`; docs/slurm.md".to_owned(),
    }
}

/// The slices whose scripts have ended.
fn ended(order: &Order<'_>) -> BTreeSet<u32> {
    let entries = fs::read_dir(order.folder.join("ended"));
    let names = entries.into_iter().flatten().flatten();
    names
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .filter(|slice| (1..=order.task.slices).contains(slice))
        .collect()
}

/// What is known of the job.
struct Wait {
    slices: u32,
    asked: Instant,
    answered: Instant,
    queue: Option<Queue>,
    /// How many answers in a row say that no job is left: between two states of a job that is
    /// requeued there may be a moment without one.
    empty: u32,
    said: String,
}

impl Wait {
    fn new(slices: u32) -> Wait {
        let now = Instant::now();
        Wait {
            slices,
            asked: now.checked_sub(QUESTIONS).unwrap_or(now),
            answered: now,
            queue: None,
            empty: 0,
            said: String::new(),
        }
    }

    fn answered(&mut self, queue: Queue) -> Result<(), Error> {
        self.asked = Instant::now();
        self.answered = self.asked;
        self.empty = if queue.is_empty() { self.empty + 1 } else { 0 };
        let never = queue.never().map(str::to_owned);
        self.queue = Some(queue);
        match never {
            None => Ok(()),
            Some(reason) => Err(Error::Environment {
                what: format!("Slurm will not start the slices: {reason}"),
                next: "correct [launch.slurm] in the configuration: `time_limit_min`, `partition`, `constraint`, `gres`; docs/slurm.md".to_owned(),
            }),
        }
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

/// Says which slices did not end with 0, and shows the ends of their logs.
fn failures(order: &Order<'_>, note: &mut dyn FnMut(&str)) {
    /// More than so many logs nobody reads.
    const MOST: usize = 5;
    let mut failed = Vec::new();
    for slice in 1..=order.task.slices {
        let path = order.folder.join("ended").join(slice.to_string());
        let code = read_text_up_to(&path, MOST_SAID).unwrap_or_default();
        if code.trim() != "0" {
            failed.push((slice, code.trim().to_owned()));
        }
    }
    for (slice, code) in failed.iter().take(MOST) {
        let log = order.folder.join(format!("logs/slice-{slice}.log"));
        let how = match code.as_str() {
            "" => "ended by Slurm".to_owned(),
            code => format!("exit code {code}"),
        };
        note(&format!("slice {slice}: {how}; {}", log.display()));
        let last = tail(&log, 5);
        if !last.is_empty() {
            note(&last);
        }
    }
    if failed.len() > MOST {
        note(&format!("{} slices failed in all", failed.len()));
    }
}
