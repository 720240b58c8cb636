//! The driver and the GPU, as they describe themselves.

use super::check::{Check, Setup};
use crate::device::{Gpu, Health, any_mig};

/// A temperature so many degrees below the one at which the clock is lowered is a warning.
const NEAR_C: u32 = 5;

pub(super) fn checks(setup: &Setup<'_>, gpu: &Gpu, checks: &mut Vec<Check>) {
    let config = setup.config;
    let toolchain = &config.toolchain;
    let driver = gpu.driver.as_deref();
    checks.push(Check::pinned(
        "driver",
        format!(
            "{}, supports CUDA {}",
            driver.unwrap_or("of an unknown version"),
            gpu.cuda
        ),
        toolchain.pins.driver(driver).as_ref(),
        config,
    ));
    checks.push(Check::pinned(
        "GPU",
        format!(
            "{}, {:.0} GiB, {} SMs, {}",
            gpu.name,
            gpu.memory_bytes as f64 / f64::from(1 << 30),
            gpu.multiprocessors,
            gpu.uuid
        ),
        toolchain.pins.gpu(&gpu.name).as_ref(),
        config,
    ));
    let capability = format!("compute capability {}", gpu.compute_capability);
    checks.push(if setup.configured {
        let pin = toolchain.arch_pin(&gpu.compute_capability);
        Check::pinned("target", capability, pin.as_ref(), config)
    } else {
        Check::skipped(
            "target",
            format!("{capability}; no configuration asks for a target"),
        )
    });
    match Health::of(&gpu.uuid) {
        Ok(health) => state(gpu, &health, checks),
        Err(unwatched) => {
            if any_mig() {
                checks.push(split_gpu("sudo nvidia-smi -mig 0"));
            }
            checks.push(Check::warn(
                "GPU state",
                unwatched.to_string(),
                "make the driver's libnvidia-ml.so.1 loadable; in a container: NVIDIA_DRIVER_CAPABILITIES=compute,utility",
            ));
        }
    }
}

/// The GPU is split into instances.
fn split_gpu(undone_by: &str) -> Check {
    Check::warn(
        "MIG",
        "on: an instance shares memory and power with the others, and its clocks cannot be locked",
        format!("where nothing else needs it, switch it off: {undone_by}"),
    )
}

fn state(gpu: &Gpu, health: &Health, checks: &mut Vec<Check>) {
    let id = &gpu.uuid;
    checks.push(match health.mig {
        None => Check::skipped("MIG", "the GPU does not report it"),
        Some(false) => Check::ok("MIG", "off"),
        Some(true) => split_gpu(&format!("sudo nvidia-smi -i {id} -mig 0")),
    });
    let (faults, limits) = (health.slowdowns(true), health.slowdowns(false));
    checks.push(if !faults.is_empty() {
        Check::fail(
            "throttling",
            format!("the GPU lowers its clock: {}", faults.join(", ")),
            format!("let it cool, or check its power supply: nvidia-smi -i {id} -q -d PERFORMANCE,TEMPERATURE,POWER"),
        )
    } else if !limits.is_empty() {
        Check::warn(
            "throttling",
            format!("the GPU lowers its clock to stay within its limits: {}", limits.join(", ")),
            "end what runs on it; where the measured kernels cause it, set `clock_control = \"base\"`, a clock within the limits",
        )
    } else {
        let clock = health.reading.sm_clock_mhz;
        let clock = clock.map_or_else(String::new, |mhz| format!(", {mhz} MHz now"));
        Check::ok("throttling", format!("none{clock}"))
    });
    checks.push(match (health.ecc, health.uncorrected_errors) {
        (_, Some(count @ 1..)) => Check::fail(
            "ECC",
            format!("{count} memory errors could not be corrected since the driver was loaded"),
            format!("numbers may be wrong; reset the GPU, and check: nvidia-smi -i {id} -q -d ECC,ROW_REMAPPER"),
        ),
        (Some(true), count) => Check::ok(
            "ECC",
            count.map_or("on", |_| "on, no uncorrected error"),
        ),
        (Some(false), _) => Check::warn(
            "ECC",
            "off: memory errors are not detected, and the memory bandwidth may differ",
            format!("sudo nvidia-smi -i {id} -e 1, and reboot"),
        ),
        (None, _) => Check::skipped("ECC", "the GPU does not report it"),
    });
    checks.push(
        match (health.reading.temperature_c, health.slowdown_temperature_c) {
            (None, _) => Check::skipped("temperature", "the GPU does not report it"),
            (Some(now), Some(limit)) if now + NEAR_C >= limit => Check::warn(
                "temperature",
                format!("{now} °C; the clock is lowered from {limit} °C"),
                "let it cool, and check its cooling",
            ),
            (Some(now), _) => Check::ok("temperature", format!("{now} °C")),
        },
    );
    let others = health.others();
    checks.push(if others.is_empty() {
        Check::ok("other processes", "none on the GPU")
    } else {
        Check::warn(
            "other processes",
            format!(
                "on the GPU: {}; a profile measured beside them cannot be locked",
                others.join(", ")
            ),
            "end them, or set CUDA_VISIBLE_DEVICES to a GPU of your own",
        )
    });
}
