//! The GPUs of this host: one queue a GPU, which a process of this program measures.

mod said;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use crate::device::Gpu;
use crate::finding::Error;
use crate::measure::gpu_env;
use crate::process::{Companion, Ending, Finished, interrupted};
use said::Said;

/// How often the log of a process is read after its end, at most.
const LAST: u32 = 100;
/// Between two looks at the processes.
const LOOK: Duration = Duration::from_millis(50);
/// How long an interrupt waits for the processes to stop what they run.
const STOPS: Duration = Duration::from_secs(60);

/// The jobs that one GPU measures one after the other.
#[derive(Clone, Debug)]
pub struct Queue {
    /// The GPU.
    pub gpu: Gpu,
    /// A short name of it, for people.
    pub short: String,
    /// What it measures, in words: `slice 1/2`.
    pub what: String,
    /// The arguments of this program that measure it. It must end at the end of standard input.
    pub arguments: Vec<String>,
    /// The folder to run it in.
    pub dir: PathBuf,
    /// The file for what it says meanwhile.
    pub log: PathBuf,
}

impl Queue {
    /// What it is, for a message: `slice 1/2 on GPU-… (log FILE)`.
    pub fn words(&self) -> String {
        let (what, gpu, log) = (&self.what, &self.gpu.uuid, self.log.display());
        format!("{what} on {gpu} (log {log})")
    }
}

/// How the process of a queue ended.
#[derive(Debug)]
pub struct Ended {
    /// How it ended.
    pub ending: Ending,
    /// How long it ran.
    pub wall: Duration,
    /// What it printed, which no program under test could change; empty where it was too much.
    pub printed: Vec<u8>,
}

/// Measures queues at the same time, each on its GPU alone, and waits until all have ended, however
/// they did. What they say, and how one failed, goes to `note`. An error leaves no process. To be
/// called where nothing else runs programs: what has lost its parent is killed.
///
/// # Errors
/// [`Error::Io`] where a process cannot be started; [`Error::Interrupted`].
pub fn run(queues: &[Queue], note: &mut dyn FnMut(&str)) -> Result<Vec<Ended>, Error> {
    let mut running: Vec<Running<'_>> = Vec::new();
    for queue in queues {
        match Running::start(queue) {
            Ok(started) => running.push(started),
            Err(error) => {
                stop(running);
                return Err(error);
            }
        }
    }
    match waited(&mut running, note) {
        Ok(()) => Ok(running
            .into_iter()
            .filter_map(|queue| queue.ended)
            .collect()),
        Err(error) => {
            stop(running);
            Err(error)
        }
    }
}

fn waited(running: &mut [Running<'_>], note: &mut dyn FnMut(&str)) -> Result<(), Error> {
    while running.iter().any(|queue| queue.ended.is_none()) {
        if interrupted() {
            return Err(Error::Interrupted);
        }
        for queue in running.iter_mut().filter(|queue| queue.ended.is_none()) {
            queue.look(note)?;
        }
        std::thread::sleep(LOOK);
    }
    Ok(())
}

fn stop(running: Vec<Running<'_>>) {
    let left = running.into_iter().filter(|queue| queue.ended.is_none());
    Companion::stop_all(left.map(|queue| queue.process).collect(), STOPS);
}

/// A queue that is measured.
struct Running<'q> {
    queue: &'q Queue,
    process: Companion,
    said: Said,
    ended: Option<Ended>,
}

impl<'q> Running<'q> {
    fn start(queue: &'q Queue) -> Result<Running<'q>, Error> {
        let env: BTreeMap<String, String> = gpu_env(&queue.gpu);
        let process = Companion::start_measuring(&queue.arguments, &queue.dir, &env, &queue.log);
        Ok(Running {
            queue,
            process: process.map_err(Error::io("start", &queue.what))?,
            said: Said::of(&queue.log),
            ended: None,
        })
    }

    /// Passes on what it says, and sees whether it has ended.
    fn look(&mut self, note: &mut dyn FnMut(&str)) -> Result<(), Error> {
        let queue = self.queue;
        let finished = self.process.finished();
        let finished = finished.map_err(Error::io("wait for", &queue.what))?;
        self.ended = finished.map(|Finished { ending, wall }| Ended {
            ending,
            wall,
            printed: self.process.printed().unwrap_or_default(),
        });
        // What it said last must not be lost, and a program under test may write there without end.
        let most = if self.ended.is_some() { LAST } else { 1 };
        for _ in 0..most {
            let lines = self.said.lines();
            for line in &lines {
                note(&format!("{}: {line}", queue.short));
            }
            if lines.is_empty() {
                break;
            }
        }
        let ending = self.ended.as_ref().map(|ended| ended.ending);
        if let Some(ending) = ending.filter(|ending| *ending != Ending::Exited(0)) {
            note(&format!("{}: {ending}", queue.words()));
        }
        Ok(())
    }
}
