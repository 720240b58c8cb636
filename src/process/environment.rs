//! Which variables of its own environment this tool passes to the programs that it runs.
//!
//! A program under test is code of the change. In a pipeline the environment holds tokens, keys,
//! and the files by which a step speaks to the service. So only the variables of a list are passed,
//! and those that the configuration names (`env_pass`).

use crate::disk;
use crate::terms::words;
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::Path;
use std::sync::{PoisonError, RwLock};

/// The variables that every program gets: those of the user and the machine; of the toolkit, the driver
/// and the profiler; of Python and its libraries; of threads. A name that ends with `*` stands for all that begin so,
/// except those that [`is_credential`] finds.
const PASSED: [&str; 46] = words(
    "PATH HOME USER LOGNAME SHELL TERM TZ TMPDIR XDG_CACHE_HOME XDG_CONFIG_HOME XDG_DATA_HOME \
     XDG_RUNTIME_DIR XDG_STATE_HOME LD_LIBRARY_PATH CUDA_HOME CUDA_PATH CUDA_ROOT \
     CUDA_VISIBLE_DEVICES CUDA_DEVICE_ORDER CUDA_DEVICE_MAX_CONNECTIONS CUDA_DISABLE_PTX_JIT \
     CUDA_FORCE_PTX_JIT CUDA_LAUNCH_BLOCKING CUDA_MODULE_LOADING CUDA_CACHE_* CUDA_MPS_* \
     NVIDIA_VISIBLE_DEVICES NVIDIA_DRIVER_CAPABILITIES NVIDIA_TF32_OVERRIDE NV_COMPUTE_PROFILER_* \
     VIRTUAL_ENV CONDA_PREFIX CONDA_DEFAULT_ENV PYTHONPATH PYTHONHOME PYTHONHASHSEED \
     PYTHONUNBUFFERED PYTHONDONTWRITEBYTECODE PYTHONNOUSERSITE TORCH_HOME TORCH_CUDA_ARCH_LIST \
     TORCH_EXTENSIONS_DIR TRITON_CACHE_DIR OMP_* MKL_NUM_THREADS OPENBLAS_NUM_THREADS",
);
/// The locale of every program, whatever the user's is: ncu and programs print numbers by it, which
/// this tool reads, and a measurement must not depend on it. Not C.UTF-8, which older systems lack, where
/// a C++ program such as ncu then ends. Python reads and writes UTF-8 under C, too.
const LOCALE: (&str, &str) = ("LC_ALL", "C");
/// Lists of folders. A part that is empty or relative is a folder of the project, which the change
/// chooses.
const FOLDER_LISTS: [&str; 3] = ["PATH", "LD_LIBRARY_PATH", "PYTHONPATH"];

/// What the configuration names besides.
static NAMED: RwLock<Vec<String>> = RwLock::new(Vec::new());

/// From now on programs also get these variables, and no others that were named before.
pub fn pass(names: &[String]) {
    let mut named = NAMED.write().unwrap_or_else(PoisonError::into_inner);
    named.clear();
    named.extend_from_slice(names);
}

/// The names of the variables that a program gets now, sorted, without those that are not set.
pub fn passed() -> Vec<String> {
    inherited()
        .into_keys()
        .map(|name| name.to_string_lossy().into_owned())
        .collect()
}

/// The environment of a program that only answers a question in a folder, as git does. Folders of the
/// repository that the folder is in are not searched: a program of the change would answer.
pub(super) fn of_query(dir: &Path) -> BTreeMap<OsString, OsString> {
    let mut env = inherited();
    for name in FOLDER_LISTS.map(OsStr::new) {
        if let Some(list) = env.remove(name)
            && let Some(list) = parts_outside(&list, dir)
        {
            env.insert(name.to_owned(), list);
        }
    }
    env
}

/// The parts of a list of folders that are absolute and not in the repository that a folder is in;
/// `None` where there are none.
pub fn parts_outside(list: &OsStr, dir: &Path) -> Option<OsString> {
    let dir = dir.canonicalize().unwrap_or_default();
    // The outermost: the merge that is judged lies in the checkout.
    let repositories = dir
        .ancestors()
        .filter(|dir| disk::is_there(dir.join(".git")));
    let repository = repositories.last();
    let inside = |part: &Path| {
        repository.is_some_and(|repository| {
            let real = part.canonicalize();
            part.starts_with(repository) || real.is_ok_and(|real| real.starts_with(repository))
        })
    };
    parts_of(list, |part| part.is_absolute() && !inside(part))
}

/// What a program gets now of this tool's own environment.
pub fn inherited() -> BTreeMap<OsString, OsString> {
    let named = NAMED.read().unwrap_or_else(PoisonError::into_inner);
    let mut env: BTreeMap<_, _> = std::env::vars_os()
        .filter(|(name, _)| {
            let Some(name) = name.to_str() else {
                return false;
            };
            named.iter().any(|it| it == name) || PASSED.iter().any(|it| fits(it, name))
        })
        .filter_map(|(name, value)| {
            let list = FOLDER_LISTS.iter().any(|it| name == OsStr::new(it));
            let value = if list { absolute_parts(&value)? } else { value };
            Some((name, value))
        })
        .collect();
    let (name, value) = LOCALE;
    env.entry(name.into()).or_insert_with(|| value.into());
    env
}

fn fits(listed: &str, name: &str) -> bool {
    match listed.strip_suffix('*') {
        Some(begin) => name.starts_with(begin) && !is_credential(name),
        None => listed == name,
    }
}

/// The parts of a list of folders that are absolute; `None` where there are none.
pub fn absolute_parts(list: &OsStr) -> Option<OsString> {
    parts_of(list, Path::is_absolute)
}

/// Some parts of a list of folders; `None` where there are none.
fn parts_of(list: &OsStr, kept: impl Fn(&Path) -> bool) -> Option<OsString> {
    let parts = std::env::split_paths(list).filter(|part| kept(part));
    std::env::join_paths(parts)
        .ok()
        .filter(|list| !list.is_empty())
}

/// Whether a variable, by its name, holds a credential or leads to one, or is a file by which a step
/// of a pipeline speaks to its service.
pub fn is_credential(name: &str) -> bool {
    const WHOLE: [&str; 7] = words(
        "SSH_AUTH_SOCK SSH_AGENT_PID GITHUB_ENV GITHUB_OUTPUT GITHUB_PATH GITHUB_STATE \
         GITHUB_STEP_SUMMARY",
    );
    const BEGINNINGS: [&str; 4] = ["ACTIONS_", "AWS_", "AZURE_", "GOOGLE_"];
    const PARTS: [&str; 12] = words(
        "TOKEN SECRET PASSWORD PASSWD PASSPHRASE CREDENTIAL PRIVATE APIKEY AUTH NETRC ASKPASS \
         COOKIE",
    );
    let name = name.to_ascii_uppercase();
    let words = || name.split('_');
    WHOLE.contains(&name.as_str())
        || BEGINNINGS.iter().any(|begin| name.starts_with(begin))
        || PARTS.iter().any(|part| name.contains(part))
        || words().any(|word| ["KEY", "KEYS", "PAT", "PASS", "PWD"].contains(&word))
            && name.contains('_')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_credential_is_on_the_list_and_none_comes_in_by_a_beginning() {
        for name in PASSED {
            assert!(!is_credential(name.trim_end_matches('*')), "{name}");
        }
        let credentials = "GH_TOKEN GITHUB_TOKEN CI_JOB_TOKEN \
                           AWS_SESSION_TOKEN NVIDIA_API_KEY HF_TOKEN DOCKER_AUTH_CONFIG \
                           GIT_ASKPASS MY_PAT OMP_SECRET ACTIONS_RUNTIME_URL \
                           ACTIONS_ID_TOKEN_REQUEST_URL GITHUB_ENV SSH_AUTH_SOCK";
        for name in credentials.split(' ') {
            assert!(is_credential(name), "{name}");
            let found: Vec<_> = PASSED.iter().filter(|it| fits(it, name)).collect();
            assert!(found.is_empty(), "{name}: {found:?}");
        }
        for name in "PWD KEYBOARD PATH SLURM_JOB_ID CC MONKEY_BARS".split(' ') {
            assert!(!is_credential(name), "{name}");
        }
    }

    #[test]
    fn what_selects_code_is_not_on_the_list() {
        let selecting = "LD_PRELOAD LD_AUDIT CUDA_INJECTION64_PATH CPATH CPLUS_INCLUDE_PATH \
                         NVCC_CCBIN NVCC_APPEND_FLAGS BASH_ENV ENV PYTHONSTARTUP \
                         GCC_EXEC_PREFIX GIT_DIR";
        for name in selecting.split(' ') {
            assert!(!PASSED.iter().any(|it| fits(it, name)), "{name}");
        }
    }

    #[test]
    fn a_list_of_folders_keeps_its_absolute_parts() {
        for (list, kept) in [
            ("/a:/b", Some("/a:/b")),
            ("./bin:/a::/b:", Some("/a:/b")),
            ("bin", None),
            ("", None),
        ] {
            let kept = kept.map(OsString::from);
            assert_eq!(absolute_parts(OsStr::new(list)), kept, "{list}");
        }
    }
}
