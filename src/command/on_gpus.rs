//! `--gpus`: an archive that the GPUs of this host measure, each in a thread of its own. For `check`
//! each measures a slice, and together they are judged.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::archive::{self, Opened};
use super::from::Measured;
use super::judging::Judging;
use super::run_folder::RunFolder;
use super::slice::{self, Check, Whole};
use crate::cli::CheckArgs;
use crate::config::{Config, Selected};
use crate::device::{Gpu, GpusAsked, short_names};
use crate::finding::Error;
use crate::measure::{Batch, Bench, Watch as _};
use crate::parallel;
use crate::plan::SlicePlace;
use crate::process;
use crate::report::{Detail, Progress};
use crate::share::Known;
use crate::terms::counted;

/// A GPU, with a short name that no other of this host has.
#[derive(Clone)]
pub(super) struct Named {
    pub gpu: Gpu,
    pub short: String,
}

/// The GPUs of this host that are asked for. One is refused on which the variants could not be measured, for
/// tools, pins or counters.
pub(super) fn fit(asked: &GpusAsked, plan: &Selected) -> Result<Vec<Named>, Error> {
    let all = Gpu::all()?;
    let uuids = all.iter().map(|gpu| gpu.uuid.clone());
    let names: BTreeMap<String, String> = uuids.zip(short_names(&all)).collect();
    let named = asked.of(&all)?.into_iter().map(|gpu| {
        let config = Config {
            device: gpu.ordinal,
            ..plan.config.clone()
        };
        let batch = Batch {
            config: &config,
            variants: &plan.variants(),
            watch: &Progress::default(),
        };
        Bench::new(batch, &[], None)?;
        let short = names.get(&gpu.uuid).cloned().unwrap_or_default();
        Ok(Named { gpu, short })
    });
    named.collect()
}

/// Lets each GPU measure an archive, all at the same time: what each gave. One that fails does not
/// end the others; an interrupt ends all. `measure` gets the GPU's number, from 1, and a copy of the
/// archive that no other uses.
pub(super) fn on_each<T: Send>(
    (archive, sha256): (&Path, &str),
    gpus: &[Named],
    measure: impl Fn(u32, &Named, &Opened) -> Result<T, Error> + Sync,
) -> Result<Vec<Result<T, Error>>, Error> {
    let numbered: Vec<(u32, &Named)> = (1..).zip(gpus).collect();
    at_once(&numbered, |(number, named)| {
        let mut opened = archive::open(archive, Some(sha256))?;
        opened.judging.plan.config.device = named.gpu.ordinal;
        measure(*number, named, &opened)
    })
}

fn at_once<I: Sync, T: Send>(
    items: &[I],
    work: impl Fn(&I) -> Result<T, Error> + Sync,
) -> Result<Vec<Result<T, Error>>, Error> {
    if process::interrupted() {
        return Err(Error::Interrupted);
    }
    let ended = parallel::each(items, work);
    match ended
        .iter()
        .any(|one| matches!(one, Err(Error::Interrupted)))
    {
        true => Err(Error::Interrupted),
        false => Ok(ended),
    }
}

/// An error as a part of a sentence.
pub(super) fn words(error: &Error) -> String {
    error.to_string().replace("\n  next: ", "; ")
}

/// A slice that a GPU was to measure.
pub(super) struct OfGpu {
    pub folder: PathBuf,
    /// Which one it is and on which GPU, for a message.
    pub words: String,
    /// The slice; otherwise why there is none, in words.
    pub whole: Result<Whole, String>,
}

impl OfGpu {
    /// The slice is reported: its folder, and what is known of it.
    pub fn end(self) -> (PathBuf, Known) {
        let record = self.whole.and_then(|whole| {
            let sha256 = whole.run_file.end();
            sha256.ok_or_else(|| "its run.json is not what was written".to_owned())
        });
        let words = self.words;
        (self.folder, Known { words, record })
    }
}

/// Lets each GPU measure a slice of an archive into the folder `folder_of` its number. `variants` is
/// how many are to be measured; `by_it`, whether the slices are judged by the archive.
pub(super) fn slices(
    ((archive, sha256), by_it): ((&Path, &str), bool),
    (mut gpus, variants): (Vec<Named>, usize),
    folder_of: impl Fn(u32) -> PathBuf + Sync,
    resume: bool,
    detail: Detail,
) -> Result<Vec<OfGpu>, Error> {
    let with_part = gpus.len().min(variants.max(1));
    for Named { short, .. } in gpus.drain(with_part..) {
        let measured = counted(variants, "variant is", "variants are");
        let note = format!("{short} has no part: {measured} to be measured");
        Progress::with(detail).notes(&note);
    }
    let count = u32::try_from(gpus.len()).unwrap_or(u32::MAX);
    let ended = on_each((archive, sha256), &gpus, |index, gpu, opened| {
        let slice = SlicePlace { index, count };
        let watch = Progress::of_gpu(detail, &gpu.short);
        let check = Check {
            archive: by_it.then_some(sha256),
            ..opened.check()
        };
        slice::measured(&check, slice, &folder_of(index), resume, &watch)
    })?;
    let numbered = (1..).zip(&gpus).zip(ended);
    let slices = numbered.map(|((index, Named { gpu, .. }), whole)| OfGpu {
        folder: folder_of(index),
        words: format!("slice {index}/{count} on {}", gpu.uuid),
        whole: whole.map_err(|error| words(&error)),
    });
    Ok(slices.collect())
}

/// What GPUs of this host measured of a check, and the archive that it is judged by.
pub(super) struct OnGpus {
    pub run: RunFolder,
    pub folders: Vec<PathBuf>,
    /// sha256 of the archive.
    pub sha256: String,
    pub measured: Measured,
}

/// Packs an archive and lets its slices be measured.
pub(super) fn measured(current: Config, arguments: &CheckArgs) -> Result<OnGpus, Error> {
    let selection = &arguments.selection;
    let against = arguments.against.as_deref();
    let judging = Judging::in_checkout(current, &arguments.trusted, against, selection)?;
    // What this machine lacks is reported before anything is built.
    let gpus = fit(&arguments.gpus.clone().unwrap_or_default(), &judging.plan)?;
    let detail = arguments.verbosity.detail();
    let run = RunFolder::begin(&judging.plan.config, &Progress::with(detail))?;
    let (folder, archive) = (run.folder.as_path(), run.archive());
    let packed = archive::done(&judging, arguments.measure_all, &archive)?;
    // Nothing of the checkout is judged from now on.
    drop(judging);
    let sha256 = packed.content.summary.sha256;
    let measured = (gpus, packed.to_measure);
    let folder_of = |index: u32| folder.join("slices").join(index.to_string());
    let archive = ((archive.as_path(), sha256.as_str()), true);
    let slices = slices(archive, measured, folder_of, false, detail)?;
    let folders = slices.iter().map(|slice| slice.folder.clone()).collect();
    let known = slices.into_iter().map(OfGpu::end).collect();
    Progress::with(detail).notes(&format!("captures: {}", folder.display()));
    let spent = packed.spent;
    Ok(OnGpus {
        measured: Measured { spent, known },
        run,
        folders,
        sha256,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_gpu_that_fails_does_not_end_the_others_and_its_error_is_kept() {
        let work = |number: &u32| match number {
            1 => Err(Error::environment("it has no counters", "ask for them")),
            number => Ok(number * 2),
        };
        let ended = at_once(&[0, 1, 2], work).unwrap();
        assert!(matches!(ended[..], [Ok(0), Err(_), Ok(4)]));
        let error = ended[1].as_ref().unwrap_err();
        assert_eq!(words(error), "it has no counters; ask for them");
    }

    #[test]
    fn an_interrupt_of_one_gpu_ends_the_command() {
        let work = |number: &u32| match number {
            1 => Err(Error::Interrupted),
            number => Ok(*number),
        };
        let ended = at_once(&[0, 1, 2], work);
        assert!(matches!(ended, Err(Error::Interrupted)));
    }

    #[test]
    #[should_panic(expected = "a defect")]
    fn a_defect_on_one_gpu_is_that_of_the_command() {
        let _ = at_once(&[false, true, false], |panics| {
            assert!(!panics, "a defect");
            Ok(())
        });
    }
}
