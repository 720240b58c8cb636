//! What is to be measured, from the file that `$SPARSEK_GATE_COUNTERS_REQUEST` names:
//!
//! ```text
//! sparsek-gate counter request 1
//! skip <selected launches before the first that is measured>
//! count <launches that are measured>
//! each <the most of them of each kernel, at each grid and block; skip counts these too>  or no line
//! flush <1: the caches are flushed before each>
//! counter <name>            once a counter, in the order of the values
//! kernel <mangled name>     once a selected kernel
//! other <mangled name>      once a kernel that is known and not selected
//! end
//! ```

use std::collections::HashMap;

/// What the file says.
pub struct Request {
    pub skip: u64,
    pub count: u64,
    /// 0 where launches are counted over all kernels.
    pub each: u64,
    pub flush: bool,
    pub counters: Vec<String>,
    /// Whether a kernel is selected, of each that is known.
    kernels: HashMap<Vec<u8>, bool>,
}

impl Request {
    /// Of the file that the environment names.
    pub fn read() -> Result<Request, String> {
        let path = std::env::var_os("SPARSEK_GATE_COUNTERS_REQUEST").unwrap_or_default();
        let text = std::fs::read(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        Request::parse(&text).ok_or_else(|| format!("{} is not a whole request", path.display()))
    }

    fn parse(text: &[u8]) -> Option<Request> {
        let mut request = Request {
            skip: 0,
            count: 0,
            each: 0,
            flush: false,
            counters: Vec::new(),
            kernels: HashMap::new(),
        };
        let mut lines = text
            .strip_prefix(b"sparsek-gate counter request 1\n")?
            .split_inclusive(|byte| *byte == b'\n');
        loop {
            let line = lines.next()?.strip_suffix(b"\n")?;
            if line == b"end" {
                break;
            }
            let space = line.iter().position(|byte| *byte == b' ')?;
            let (key, value) = (&line[..space], &line[space + 1..]);
            let words = || String::from_utf8(value.to_vec()).ok();
            match key {
                b"skip" => request.skip = words()?.parse().ok()?,
                b"count" => request.count = words()?.parse().ok()?,
                b"each" => request.each = words()?.parse().ok()?,
                b"flush" => request.flush = value == b"1",
                b"counter" => request.counters.push(words()?),
                b"kernel" => drop(request.kernels.insert(value.to_vec(), true)),
                b"other" => drop(request.kernels.insert(value.to_vec(), false)),
                _ => return None,
            }
        }
        let whole = request.count > 0 && !request.counters.is_empty() && lines.next().is_none();
        whole.then_some(request)
    }

    /// Whether a kernel of this mangled name is selected; `None` where it is not known.
    pub fn selects(&self, name: &[u8]) -> Option<bool> {
        self.kernels.get(name).copied()
    }
}
