//! The driver and the GPU, as they describe themselves.

use super::{Check, Patient};
use crate::device::{Gpu, Health};

/// So many degrees below the temperature at which the clock is lowered, it is told.
const NEAR_C: u32 = 5;

pub(super) fn checks(patient: &Patient<'_>, gpu: &Gpu, checks: &mut Vec<Check>) {
    let config = patient.config;
    let toolchain = &config.toolchain;
    let driver = gpu.driver.as_deref();
    checks.push(Check::pinned(
        "driver",
        format!(
            "{}, serves CUDA {}",
            driver.unwrap_or("of a version that cannot be told"),
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
    checks.push(if patient.configured {
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
            if Health::any_mig() {
                checks.push(split_gpu("sudo nvidia-smi -mig 0"));
            }
            checks.push(Check::warn(
                "GPU state",
                unwatched.to_string(),
                "see that the driver's libnvidia-ml.so.1 can be loaded; in a container: NVIDIA_DRIVER_CAPABILITIES=compute,utility",
            ));
        }
    }
}

/// The GPU is split into instances.
fn split_gpu(undone_by: &str) -> Check {
    Check::warn(
        "MIG",
        "on: an instance shares memory and power with the others, and its clocks cannot be locked",
        format!("where nothing else needs it: {undone_by}"),
    )
}

fn state(gpu: &Gpu, health: &Health, checks: &mut Vec<Check>) {
    let id = &gpu.uuid;
    checks.push(match health.mig {
        None => Check::skipped("MIG", "the GPU does not tell"),
        Some(false) => Check::ok("MIG", "off"),
        Some(true) => split_gpu(&format!("sudo nvidia-smi -i {id} -mig 0")),
    });
    let (faults, limits) = (health.slowdowns(true), health.slowdowns(false));
    checks.push(if !faults.is_empty() {
        Check::fail(
            "throttling",
            format!("the GPU lowers its clock: {}", faults.join(", ")),
            format!("let it cool, or see its power supply: nvidia-smi -i {id} -q -d PERFORMANCE,TEMPERATURE,POWER"),
        )
    } else if !limits.is_empty() {
        Check::warn(
            "throttling",
            format!("the GPU keeps within its limits: {}", limits.join(", ")),
            "end what runs on it; where its own kernels do that, `clock_control = \"base\"` holds the clock below",
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
            format!("numbers may be wrong; reset the GPU, and see: nvidia-smi -i {id} -q -d ECC,ROW_REMAPPER"),
        ),
        (Some(true), count) => Check::ok(
            "ECC",
            count.map_or("on", |_| "on, no uncorrected error"),
        ),
        (Some(false), _) => Check::warn(
            "ECC",
            "off: an error of the memory goes unseen, and its bandwidth may be another",
            format!("sudo nvidia-smi -i {id} -e 1, and reboot"),
        ),
        (None, _) => Check::skipped("ECC", "the GPU does not tell"),
    });
    checks.push(
        match (health.reading.temperature_c, health.slowdown_temperature_c) {
            (None, _) => Check::skipped("temperature", "the GPU does not tell"),
            (Some(now), Some(limit)) if now + NEAR_C >= limit => Check::warn(
                "temperature",
                format!("{now} °C; the clock is lowered from {limit} °C"),
                "let it cool, and see to its cooling",
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
                "on the GPU: {}; what is measured beside them cannot be locked",
                others.join(", ")
            ),
            "end them, or set `gpu.device` to a GPU of your own",
        )
    });
}
