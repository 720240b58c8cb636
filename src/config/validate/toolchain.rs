//! `[toolchain]`.

use std::path::Path;

use super::file::File;
use crate::config::error::ConfigError;
use crate::config::model::Toolchain;
use crate::config::pins::{Mismatch, Pins};
use crate::config::raw::{DEFAULT_ARCH, RawPins, RawToolchain};
use crate::config::version_range::VersionRange;
use crate::metric::{capability_of_arch, chip_of_arch};

impl File<'_> {
    pub(super) fn toolchain(
        &self,
        raw: RawToolchain,
        root: &Path,
    ) -> Result<Toolchain, ConfigError> {
        let arch = raw.arch.unwrap_or_else(|| DEFAULT_ARCH.to_owned());
        if capability_of_arch(&arch).is_none() {
            return Err(self
                .error(
                    &["toolchain", "arch"],
                    format!("`{arch}` is not a GPU target"),
                )
                .help(Some(
                    "write it as nvcc does, such as `sm_90a` or `sm_80`".into(),
                )));
        }
        Ok(Toolchain {
            chip: chip_of_arch(&arch),
            arch,
            nvcc: raw.nvcc.map(|path| root.join(path)),
            ncu: raw.ncu.map(|path| root.join(path)),
            compute_sanitizer: raw.compute_sanitizer.map(|path| root.join(path)),
            cupti: raw.cupti.map(|path| root.join(path)),
            flags: raw.flags.unwrap_or_else(|| {
                ["-O3", "-std=c++17", "-lineinfo"]
                    .map(String::from)
                    .to_vec()
            }),
            pins: self.pins(raw.pins)?,
        })
    }

    fn pins(&self, raw: RawPins) -> Result<Pins, ConfigError> {
        let range = |key: &str, text: Option<String>| {
            text.map(|text| VersionRange::parse(&text))
                .transpose()
                .map_err(|why| {
                    self.error(&["toolchain", "pins", key], why)
                        .help(Some("write `13.0` for every version that begins with it, or bounds such as `>=2025.3, <2027`".into()))
                })
        };
        let gpus = raw.gpus.unwrap_or_default();
        if gpus.iter().any(|name| name.trim().is_empty()) {
            return Err(self
                .error(&["toolchain", "pins", "gpus"], "a GPU model has a name")
                .help(Some(
                    "`nvidia-smi -L` prints it, such as `NVIDIA H200`; `*` stands for any text"
                        .into(),
                )));
        }
        Ok(Pins {
            cuda: range("cuda", raw.cuda)?,
            ncu: range("ncu", raw.ncu)?,
            driver: range("driver", raw.driver)?,
            gpus,
            mismatch: raw.mismatch.unwrap_or(Mismatch::Deny),
        })
    }
}
