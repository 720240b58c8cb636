//! `[toolchain]`.

use std::path::Path;

use super::file::File;
use crate::config::error::ConfigError;
use crate::config::model::Toolchain;
use crate::metric::{capability_of_arch, chip_of_arch};

impl File<'_> {
    /// The same with absolute paths, and with the chip of its target.
    pub(super) fn toolchain(
        &self,
        mut toolchain: Toolchain,
        root: &Path,
    ) -> Result<Toolchain, ConfigError> {
        let arch = &toolchain.arch;
        if capability_of_arch(arch).is_none() {
            let error = self.error(
                &["toolchain", "arch"],
                format!("`{arch}` is not a GPU target"),
            );
            return Err(error.help("write it as nvcc does, such as `sm_90a` or `sm_80`"));
        }
        toolchain.chip = chip_of_arch(arch);
        for tool in [
            &mut toolchain.nvcc,
            &mut toolchain.ncu,
            &mut toolchain.compute_sanitizer,
            &mut toolchain.cupti,
        ] {
            *tool = tool.take().map(|path| root.join(path));
        }
        Ok(toolchain)
    }
}
