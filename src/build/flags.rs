//! Which flags a build by nvcc may have. nvcc passes its arguments on to a shell, a host compiler,
//! an assembler and two linkers, and many of their flags run programs or read files that no list
//! of dependencies names. So only known flags are accepted, and the rest is refused.

use std::path::Path;

use super::known_flags::{
    ATTACHED, HOST, HOST_VALUES, KNOWN, LINKER, LINKER_VALUES, NVLINK, OTHERS, PTXAS, PTXAS_VALUES,
    Takes, Tool, is_word,
};

/// What flags add to the files of a build.
#[derive(Clone, Debug, Default)]
pub(super) struct FlagInputs {
    /// Folders that are searched for headers.
    pub headers: Vec<String>,
    /// Folders that are searched for libraries.
    pub libraries: Vec<String>,
    /// Names of libraries (`-l`).
    pub names: Vec<String>,
    /// Objects and libraries that are linked.
    pub objects: Vec<String>,
    /// Folders where the program looks for its libraries when it starts (`-rpath`).
    pub at_start: Vec<String>,
    /// Whether the host code is compiled for the processor of this machine.
    pub native: bool,
}

/// The files and folders that flags name.
///
/// # Errors
/// The first flag that is refused, and why.
pub(super) fn flag_inputs(flags: &[String]) -> Result<FlagInputs, String> {
    let mut found = FlagInputs::default();
    // An option of another tool whose value must be the next word, for the same tool.
    let mut open: Option<(Tool, String)> = None;
    let mut words = flags.iter();
    while let Some(word) = words.next() {
        let Some((takes, attached)) = known(word) else {
            if word.starts_with('-') || word.starts_with('@') {
                return Err(unknown(word));
            }
            found.objects.push(object(word)?);
            continue;
        };
        let mut value = || match &attached {
            Some(value) => Ok(value.clone()),
            None => words
                .next()
                .cloned()
                .ok_or_else(|| format!("the flag `{word}` has no value")),
        };
        match takes {
            Takes::Nothing if attached.is_none() => {}
            Takes::Nothing => return Err(unknown(word)),
            Takes::Value(accepts) => {
                let value = value()?;
                if !accepts(&value) {
                    return Err(format!("the flag `{word}` has the unknown value `{value}`"));
                }
            }
            Takes::Macros => macros(word, &value()?)?,
            Takes::Includes => drop(paths(word, &value()?)?),
            Takes::Headers => found.headers.extend(paths(word, &value()?)?),
            Takes::Libraries => found.libraries.extend(paths(word, &value()?)?),
            Takes::Names => found.names.extend(names(word, &value()?)?),
            Takes::Options(tool) => {
                for option in value()?
                    .split([',', ' '])
                    .filter(|option| !option.is_empty())
                {
                    open = accept(tool, option, open.take(), &mut found)?;
                }
            }
        }
    }
    match open {
        Some((_, option)) => Err(format!("the option `{option}` has no value")),
        None => Ok(found),
    }
}

/// What a flag of nvcc takes, and the value that is attached to it; `None` for an unknown one.
fn known(word: &str) -> Option<(Takes, Option<String>)> {
    let body = word.strip_prefix("--").or_else(|| word.strip_prefix('-'))?;
    let (name, value) = match body.split_once('=') {
        Some((name, value)) => (name, Some(value.to_owned())),
        None => (body, None),
    };
    let takes = |name: &str| {
        let entry = KNOWN.iter().find(|(names, _)| names.contains(&name));
        entry.map(|(_, takes)| *takes)
    };
    if let Some(takes) = takes(name) {
        return Some((takes, value));
    }
    let (letter, rest) = body.split_at_checked(1)?;
    let attached = !word.starts_with("--")
        && ATTACHED.contains(&letter)
        && !rest.is_empty()
        && !OTHERS.contains(&name);
    attached.then(|| Some((takes(letter)?, Some(rest.to_owned()))))?
}

fn unknown(word: &str) -> String {
    let why = if word.contains("options-file") || word.contains("optf") || word.contains('@') {
        "flags in a file are not tracked: write them in `flags`"
    } else {
        "it is not in the list of flags whose files and programs are known"
    };
    format!("the flag `{word}` is refused: {why}")
}

/// Whether a shell sees nothing but a word in it, even without quotes.
fn is_plain(text: &str) -> bool {
    !text.is_empty()
        && text
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || "_+.,/=:-".contains(c))
}

/// Whether a shell sees nothing but a word in it, in double quotes.
fn is_quotable(text: &str) -> bool {
    let ends_quotes = |c: char| c.is_control() || "$`\\\"".contains(c);
    !text.is_empty() && !text.contains(ends_quotes)
}

/// Macros: nvcc splits them at commas, and quotes each with double quotes.
fn macros(word: &str, value: &str) -> Result<(), String> {
    let refused = |why: &str| {
        Err(format!(
            "the macro in `{}` is refused: {why}",
            word.escape_debug()
        ))
    };
    // A quotation mark may be escaped, as for a shell.
    let text = value.replace("\\\"", "\"");
    if text.contains(|c: char| c.is_control() || "$`\\".contains(c)) {
        return refused(
            "nvcc passes it through a shell, so it has no `$`, backtick, backslash or line break",
        );
    }
    if text
        .split(',')
        .any(|part| part.trim_start().starts_with(['@', '-']))
    {
        return refused("the compiler takes a part that begins with `@` or `-` for a flag");
    }
    Ok(())
}

fn paths(word: &str, value: &str) -> Result<Vec<String>, String> {
    let paths = value.split(',').map(|path| {
        if is_quotable(path) && !path.starts_with(['@', '-']) {
            Ok(path.to_owned())
        } else {
            Err(format!("the path `{}` of the flag `{word}` is refused: a shell or a compiler would read more than a path in it", path.escape_debug()))
        }
    });
    paths.collect()
}

fn names(word: &str, value: &str) -> Result<Vec<String>, String> {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_+.-".contains(c);
    let names = value.split(',').map(|name| {
        if !name.is_empty() && !name.starts_with('-') && name.chars().all(plain) {
            Ok(name.to_owned())
        } else {
            Err(format!(
                "the library `{name}` of the flag `{word}` is refused: name it as in `-lcublas`"
            ))
        }
    });
    names.collect()
}

/// An object or a library among the flags.
fn object(word: &str) -> Result<String, String> {
    let name = word.rsplit('/').next().unwrap_or(word);
    let linked = [".o", ".obj", ".a", ".so"]
        .iter()
        .any(|ending| name.ends_with(ending));
    if (linked || name.contains(".so.")) && is_quotable(word) {
        return Ok(word.to_owned());
    }
    Err(format!(
        "the flag `{}` is a second source or an unknown file, and the files of one source are tracked: include it in `source`",
        word.escape_debug()
    ))
}

/// Accepts one option of another tool; returns the option whose value must follow.
fn accept(
    tool: Tool,
    option: &str,
    open: Option<(Tool, String)>,
    found: &mut FlagInputs,
) -> Result<Option<(Tool, String)>, String> {
    let refused = || {
        Err(format!(
            "the option `{}` for {} is refused: {}",
            option.escape_debug(),
            tool.name(),
            if option.contains('@') || option.contains("options-file") || option.contains("optf") {
                "flags in a file are not tracked"
            } else {
                "it is not in the list of options whose files and programs are known"
            }
        ))
    };
    if !is_plain(option) {
        return refused();
    }
    if let Some((of, name)) = open {
        // Another tool would take the word for a file, and this one the next word for the value.
        let accepted = of == tool
            && match name.as_str() {
                "rpath" | "rpath-link" => at_start(option, found),
                _ => !option.starts_with('-'),
            };
        return if accepted { Ok(None) } else { refused() };
    }
    let next = match tool {
        Tool::Host => host(option, found).then_some(None),
        Tool::Ptxas => of_lists(option, PTXAS, PTXAS_VALUES),
        Tool::Nvlink => of_lists(option, NVLINK, &[]),
        Tool::Linker => {
            of_lists(option, LINKER, LINKER_VALUES).or_else(|| search_path(option, found))
        }
    };
    match next {
        Some(next) => Ok(next.map(|name| (tool, name))),
        None => refused(),
    }
}

/// Whether an option of the host compiler is known.
fn host(option: &str, found: &mut FlagInputs) -> bool {
    found.native |= option.ends_with("=native");
    let word = |c: char| c.is_ascii_alphanumeric() || "_+.=-".contains(c);
    let rest = |prefix: &str| {
        option
            .strip_prefix(prefix)
            .filter(|rest| rest.chars().all(word))
    };
    let warning =
        rest("-W").is_some_and(|rest| !rest.is_empty() && !matches!(rest, "a" | "l" | "p"));
    // `-mllvm` and `-mmlir` hand the next word to another tool.
    let machine = rest("-m").is_some_and(|rest| !matches!(rest.get(..4), Some("llvm" | "mlir")));
    let off = rest("-fno-").is_some_and(|rest| !rest.contains('='));
    let define = rest("-D")
        .or_else(|| rest("-U"))
        .is_some_and(|rest| !rest.is_empty());
    let valued = HOST_VALUES
        .iter()
        .any(|name| rest(name).is_some_and(|rest| !rest.is_empty()));
    HOST.contains(&option) || warning || machine || off || define || valued
}

/// Whether an option is in one of two lists; the name of the option whose value must follow.
fn of_lists(option: &str, alone: &[&str], valued: &[&str]) -> Option<Option<String>> {
    let body = option
        .strip_prefix("--")
        .or_else(|| option.strip_prefix('-'))?;
    if alone.contains(&body) {
        return Some(None);
    }
    match body.split_once('=') {
        Some((name, value)) => {
            let accepted = valued.contains(&name) && is_word(value);
            accepted.then_some(None)
        }
        None => valued.contains(&body).then(|| Some(body.to_owned())),
    }
}

/// `-rpath` with its folders, or with none yet.
fn search_path(option: &str, found: &mut FlagInputs) -> Option<Option<String>> {
    let body = option
        .strip_prefix("--")
        .or_else(|| option.strip_prefix('-'))?;
    match body.split_once('=') {
        Some(("rpath" | "rpath-link", folders)) => at_start(folders, found).then_some(None),
        None if matches!(body, "rpath" | "rpath-link") => Some(Some(body.to_owned())),
        _ => None,
    }
}

/// Whether the libraries of all folders of a list come with the system or a toolkit. The folders
/// are noted: a project may lie below one of these, too.
fn at_start(folders: &str, found: &mut FlagInputs) -> bool {
    const SYSTEM: [&str; 5] = ["/usr", "/lib", "/lib32", "/lib64", "/opt"];
    let mut folders = folders.split(':');
    folders.all(|folder| {
        found.at_start.push(folder.to_owned());
        let path = Path::new(folder);
        !folder.contains("..") && SYSTEM.iter().any(|system| path.starts_with(system))
    })
}

/// Whether a source's path is nothing but a path for nvcc and its shell.
pub(super) fn source_is_plain(source: &str) -> bool {
    is_quotable(source) && !source.starts_with(['-', '@']) && !source.contains('\'')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn inputs(flags: &[&str]) -> Result<FlagInputs, String> {
        let flags: Vec<String> = flags.iter().map(|flag| (*flag).to_owned()).collect();
        flag_inputs(&flags)
    }

    #[test]
    fn known_flags_are_accepted_in_each_way_to_write_them() {
        for flags in [
            &["-O3", "-std=c++17", "-lineinfo", "-G", "-rdc=true"][..],
            &[
                "-gencode=arch=compute_90a,code=sm_90a",
                "-gencode",
                "arch=compute_80,code=[sm_80,compute_80]",
            ],
            &[
                "-Xptxas",
                "-v",
                "-Xptxas=-dlcm=ca,-O3",
                "--ptxas-options=-v",
                "-Xptxas",
                "-maxrregcount",
                "-Xptxas",
                "32",
            ],
            &[
                "-DTILE=8",
                "-D",
                "A=f(1) + 'c' & <b>;",
                "-DNAME=\"a b\"",
                "-DNAME=\\\"a\\\"",
                "-UX",
            ],
            &[
                "-Iinclude",
                "-I",
                "a,b",
                "-isystem",
                "x y",
                "-isystem=z",
                "-include",
                "pre.h",
            ],
            &[
                "-Llib",
                "-lcublas",
                "-l",
                "cudart",
                "part.o",
                "lib/libx.so.1",
            ],
            &[
                "-Xcompiler",
                "-O2 -Wall,-march=native,-fno-exceptions,-fopenmp",
            ],
            &[
                "-Xlinker",
                "-z,now",
                "-Xlinker",
                "-rpath",
                "-Xlinker",
                "/usr/local/cuda/lib64",
                "-Xlinker",
                "--as-needed",
            ],
            &[
                "--use_fast_math",
                "--expt-relaxed-constexpr",
                "-maxrregcount=24",
                "-t4",
                "--threads",
                "4",
            ],
        ] {
            assert!(inputs(flags).is_ok(), "{:?}", inputs(flags));
        }
        let found = inputs(&["-Ia,b", "-Llib", "-lx", "p.o", "-Xcompiler=-mtune=native"]).unwrap();
        assert_eq!(found.headers, ["a", "b"]);
        assert_eq!(
            (found.libraries, found.names, found.objects),
            (vec!["lib".into()], vec!["x".into()], vec!["p.o".into()])
        );
        assert!(found.native);
    }

    #[test]
    fn flags_that_run_or_read_what_is_not_tracked_are_refused() {
        for flags in [
            &["-run"][..],
            &["--run"],
            &["-run-args", "x"],
            &["-ccbin", "./tools/g++"],
            &["-ccbin=./tools"],
            &["--compiler-bindir=./tools"],
            &["-arbin", "./ar"],
            &["-ldir=x"],
            &["-ldir", "x"],
            &["-target-dir", "x"],
            &["-o", "x"],
            &["--output-file=x"],
            &["-odir", "x"],
            &["--keep-dir", "/tmp"],
            &["-keep"],
            &["-MF", "x"],
            &["--dependency-output=x"],
            &["-objtemp"],
            &["-time=x"],
            &["-fdevice-time-trace=x"],
            &["-clean"],
            &["-optf", "flags.txt"],
            &["--options-file=flags.txt"],
            &["@flags.txt"],
            &["-Xcompiler", "@opts.txt"],
            &["-Xcompiler=-O2,@opts.txt"],
            &["-Xptxas=--options-file=opts.txt"],
            &["-Xptxas", "-optf,o"],
            &["-Xptxas", "x.ptx"],
            &["-Xptxas", "-dlcm=ca", "-Xptxas", "ca"],
            &["-Xptxas", "-o,x"],
            &["-Xnvlink", "-optf=x"],
            &["-Xcompiler", "-B./tools/"],
            &["-Xcompiler", "-wrapper,./tools/w"],
            &["-Xcompiler", "-fplugin=./p.so"],
            &["-Xcompiler", "-specs=./s"],
            &["-Xcompiler", "-fuse-ld=gold"],
            &["-Xcompiler", "-Wl,@x"],
            &["-Xcompiler", "-Wa,x"],
            &["-Xcompiler", "-Wp,x"],
            &["-Xcompiler", "-include,x.h"],
            &["-Xcompiler", "-mllvm"],
            &["-Xcompiler", "-fprofile-use=x"],
            &["-Xcompiler", "-flto"],
            &["-Xcompiler", "-D$(x)"],
            &["-Xcompiler", "-DX;x"],
            &["-Xcompiler", "x.o"],
            &["-Xcompiler", "-P"],
            &["-Xlinker", "@x"],
            &["-Xlinker", "-T,x.ld"],
            &["-Xlinker", "-plugin=./p.so"],
            &["-Xlinker", "--version-script=x"],
            &["-Xlinker", "-rpath=lib"],
            &["-Xlinker", "-rpath,/usr/../work"],
            &["-Xlinker", "-rpath=/usr/lib:lib"],
            &["-Xlinker", "-rpath=/usr/lib:"],
            &["-Xlinker", "-rpath", "-Xlinker", "/usr/lib:/srv/lib"],
            &["-Xlinker", "-rpath=/library"],
            // What closes an option of the linker is an object for the host compiler.
            &["-Xlinker", "-z", "-Xcompiler", "x.o", "-Xlinker", "-s"],
            &["-Xptxas", "-maxrregcount", "-Xcompiler", "x.o"],
            &["-Xlinker", "x.o"],
            &["-Xlinker", "-rpath"],
            &["-DX=$(x)"],
            &["-DX=`x`"],
            &["-DX=\\\\\"; x; \\\\\""],
            &["-DX=1\n-run"],
            &["-D@x"],
            &["-DX=1,@x"],
            &["-D", "-run"],
            &["-DX=a\\b"],
            &["-I$(x)"],
            &["-I", "@x"],
            &["-I", "-run"],
            &["-isystem", "@x"],
            &["-l:x.o"],
            &["-l", "../x"],
            &["-lx;y"],
            &["x.cu"],
            &["x.ptx"],
            &["x"],
            &["$(x).o"],
            &["-I\"; x; \""],
            &["-arch=native"],
            &["-x", "cu\n"],
            &["-I"],
            &["-forward-unknown-opts"],
            &["--forward-unknown-to-host-compiler"],
            &["-use-local-env"],
            &["-dryrun"],
            &["-E"],
            &["-c"],
            &["-M"],
            &["-maxrregcount=$(x)"],
            &["-qpp-config", "x"],
            &["-hls=gen-lcs"],
            &["-lib"],
            &["-link"],
            &["---O3"],
            &["-"],
            &["--"],
            &[""],
            &["-é"],
        ] {
            assert!(inputs(flags).is_err(), "{flags:?} is accepted");
        }
        for source in [
            "-run", "@x", "$(x).cu", "`x`.cu", "a\".cu", "a\n.cu", "a\\.cu",
        ] {
            assert!(!source_is_plain(source), "{source}");
        }
        assert!(source_is_plain("kernels/my kernel (1).cu"));
    }
}
