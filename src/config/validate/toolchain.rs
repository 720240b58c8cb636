//! `[toolchain]`.

use std::path::Path;

use super::File;
use crate::config::raw::RawToolchain;
use crate::config::{ConfigError, Toolchain};
use crate::metric;

impl File<'_> {
    pub(super) fn toolchain(
        &self,
        raw: RawToolchain,
        root: &Path,
    ) -> Result<Toolchain, ConfigError> {
        let arch = raw.arch.unwrap_or_else(|| "sm_90a".to_owned());
        let Some((chip, chip_name)) = metric::chip_of_arch(&arch) else {
            return Err(self
                .error(
                    &["toolchain", "arch"],
                    format!("`{arch}` is not a GPU target"),
                )
                .help(Some(
                    "write it as nvcc does, such as `sm_90a` or `sm_80`".into(),
                )));
        };
        Ok(Toolchain {
            arch,
            chip,
            chip_name,
            nvcc: raw.nvcc.map(|path| root.join(path)),
            ncu: raw.ncu.map(|path| root.join(path)),
            cupti: raw.cupti.map(|path| root.join(path)),
            flags: raw.flags.unwrap_or_else(|| {
                ["-O3", "-std=c++17", "-lineinfo"]
                    .map(String::from)
                    .to_vec()
            }),
        })
    }
}
