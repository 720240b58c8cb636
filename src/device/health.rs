//! What NVML reports about a GPU at one moment, before anything is measured on it.

use nvml_wrapper::enum_wrappers::device::TemperatureThreshold;

use super::faults::uncorrected;
use super::state::{Owner, Reading, Slowdown};
use super::watcher::{NvmlProbe, Unwatched, settled};

/// The health of a GPU. Values that it does not report are absent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Health {
    /// Its state, with only those slowdowns and processes that two readings saw.
    pub reading: Reading,
    /// Whether it is split into instances (MIG).
    pub mig: Option<bool>,
    /// Whether errors of its memory are corrected (ECC).
    pub ecc: Option<bool>,
    /// Memory errors that could not be corrected, since the driver was loaded.
    pub uncorrected_errors: Option<u64>,
    /// Temperature of the chip, in degrees Celsius, from which the hardware lowers the clock.
    pub slowdown_temperature_c: Option<u32>,
}

impl Health {
    /// Asks NVML about the GPU of a UUID.
    ///
    /// # Errors
    /// [`Unwatched`] where there is no NVML, or where it does not show the GPU.
    pub fn of(uuid: &str) -> Result<Health, Unwatched> {
        let mut probe = NvmlProbe::open(uuid)?;
        let reading = settled(&mut probe, |reading| {
            !reading.slowdown.is_empty() || !reading.processes.is_empty()
        });
        let device = &probe.device;
        let ecc = device.is_ecc_enabled().ok();
        Ok(Health {
            reading,
            mig: device.mig_mode().ok().map(|mode| mode.current != 0),
            ecc: ecc.map(|ecc| ecc.currently_enabled),
            uncorrected_errors: uncorrected(device),
            slowdown_temperature_c: device
                .temperature_threshold(TemperatureThreshold::Slowdown)
                .ok(),
        })
    }

    /// That NVML shows the GPU of a UUID.
    ///
    /// # Errors
    /// As [`Health::of`].
    pub fn is_shown(uuid: &str) -> Result<(), Unwatched> {
        NvmlProbe::open(uuid).map(|_| ())
    }

    /// Processes on the GPU that are not of this run, in words.
    pub fn others(&self) -> Vec<String> {
        let others = self.reading.processes.iter();
        others
            .filter(|(_, owner)| *owner != Owner::Ours)
            .map(|(process, _)| match &process.name {
                Some(name) => format!("{} ({name})", process.pid),
                None => process.pid.to_string(),
            })
            .collect()
    }

    /// The reasons for which it runs below its clock, in words: those that are faults of the machine,
    /// or those that follow from its settings.
    pub fn slowdowns(&self, faults: bool) -> Vec<&'static str> {
        let reasons = self.reading.slowdown.iter();
        reasons
            .filter(|reason| reason.is_fault() == faults)
            .map(|reason| Slowdown::as_str(*reason))
            .collect()
    }

    /// What prevents that profiles measured now can be locked, in words.
    pub fn obstacles(&self) -> Vec<String> {
        let mut obstacles = Vec::new();
        let others = self.others();
        if !others.is_empty() {
            obstacles.push(format!(
                "another process is on the GPU: {}",
                others.join(", ")
            ));
        }
        let faults = self.slowdowns(true);
        if !faults.is_empty() {
            obstacles.push(format!("the GPU lowers its clock: {}", faults.join(", ")));
        }
        obstacles
    }
}
