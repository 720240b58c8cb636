//! Which flags a build by nvcc may have. nvcc passes its arguments on to a shell, a host compiler,
//! an assembler and two linkers, and many of their flags run programs, or read files that no tool
//! lists. So only known flags are accepted, and the rest is refused.

use crate::terms::{nearest, words};

/// What flags add to a build.
#[derive(Clone, Debug, Default)]
pub(super) struct FlagInputs {
    /// Folders that are searched for headers and libraries.
    pub folders: Vec<String>,
    /// Headers that every source includes.
    pub headers: Vec<String>,
    /// Objects and libraries.
    pub objects: Vec<String>,
    /// Macros, as they are written.
    pub macros: Vec<String>,
    /// Whether the host code is compiled for the processor of this machine.
    pub native: bool,
    /// Whether a library is asked for: code that other programs launch.
    pub library: bool,
}

/// What follows the name of a flag of nvcc.
#[derive(Clone, Copy)]
enum Takes {
    Nothing,
    /// Nothing: it asks for no program.
    Library,
    /// Words, numbers or targets, separated by commas.
    Value,
    Macros,
    /// Files that the compiler includes, and lists itself.
    Includes,
    Folders,
    /// Names of libraries.
    Names,
    /// Options of the host compiler, or of ptxas.
    Options(Tool),
}

/// A tool that nvcc passes options on to.
#[derive(Clone, Copy)]
enum Tool {
    Host,
    Ptxas,
}

/// The known flags of nvcc.
const KNOWN: &[(&[&str], Takes)] = &[
    (
        &words::<23>(
            "lineinfo generate-line-info G device-debug g debug use_fast_math restrict \
             expt-relaxed-constexpr extended-lambda expt-extended-lambda \
             extra-device-vectorization dlto dlink-time-opt src-in-ptx source-in-ptx res-usage \
             resource-usage allow-unsupported-compiler w disable-warnings \
             Wno-deprecated-declarations Wno-deprecated-gpu-targets",
        ),
        Takes::Nothing,
    ),
    (
        &words::<25>(
            "O optimize std ftz prec-div prec-sqrt fmad rdc relocatable-device-code maxrregcount \
             t threads split-compile default-stream cudart Werror diag-error diag-suppress \
             diag-warn arch gpu-architecture code gpu-code gencode generate-code",
        ),
        Takes::Value,
    ),
    (&LIBRARY, Takes::Library),
    (&["D", "define-macro", "U", "undefine-macro"], Takes::Macros),
    (&["include", "pre-include"], Takes::Includes),
    (
        &["I", "include-path", "isystem", "system-include"],
        Takes::Folders,
    ),
    (&["L", "library-path"], Takes::Folders),
    (&["l", "library"], Takes::Names),
    (
        &["Xcompiler", "compiler-options"],
        Takes::Options(Tool::Host),
    ),
    (&["Xptxas", "ptxas-options"], Takes::Options(Tool::Ptxas)),
];

/// Flags that ask for an object, machine code or a shared library in place of a program.
const LIBRARY: [&str; 7] = words("c compile dc device-c cubin fatbin shared");

/// The flags with which nvcc compiles a library, in place of those that ask for a form of it: the machine
/// code is the same in each.
pub(super) fn as_objects(argv: &mut Vec<String>) {
    let body = |flag: &str| flag.trim_start_matches('-').to_owned();
    let asks = |flag: &String| flag.starts_with('-') && LIBRARY.contains(&body(flag).as_str());
    let to_link = argv
        .iter()
        .any(|flag| asks(flag) && ["dc", "device-c"].contains(&&*body(flag)));
    argv.retain(|flag| !asks(flag));
    argv.push(if to_link { "-dc" } else { "-c" }.to_owned());
}

/// Flags of one letter whose value may follow without a blank.
const ATTACHED: [&str; 7] = ["O", "D", "U", "I", "L", "l", "t"];

/// Flags of nvcc that begin with one of those letters and mean something else.
const OTHERS: [&str; 5] = ["ldir", "lib", "link", "lto", "ltoir"];

/// Known options of the host compiler that take no value.
const HOST: &[&str] = &words::<23>(
    "-g -ggdb -w -s -pipe -pthread -pedantic -rdynamic -fopenmp -fopenmp-simd -fPIC -fPIE \
     -ffast-math -fpermissive -fexceptions -frtti -funroll-loops -fomit-frame-pointer \
     -fstrict-aliasing -fwrapv -ftree-vectorize -fdata-sections -ffunction-sections",
);

/// Beginnings of known options of the host compiler: a word ends them.
const HOST_BEGIN: &[&str] =
    &words::<10>("-O -W -m -D -U -fno- -std= -fvisibility= -ffp-contract= -fsanitize=");

/// Known options of ptxas. A value follows `=`.
const PTXAS: &[&str] = &words::<27>(
    "v verbose w disable-warnings Werror warning-as-error warn-spills warn-on-spills \
     warn-lmem-usage warn-on-local-memory-usage warn-double-usage lineinfo generate-line-info O0 \
     O1 O2 O3 O4 opt-level allow-expensive-optimizations maxrregcount register-usage-level dlcm \
     def-load-cache dscm def-store-cache fmad",
);

/// The files and folders that flags name.
///
/// # Errors
/// The first flag that is refused, and why.
pub(super) fn flag_inputs(flags: &[String]) -> Result<FlagInputs, String> {
    let mut found = FlagInputs::default();
    let mut words = flags.iter();
    while let Some(word) = words.next() {
        let Some((takes, attached)) = known(word) else {
            object(word)?;
            found.objects.push(word.clone());
            continue;
        };
        let mut further = word.split_whitespace().skip(1);
        let is_flag = |word: &str| word.starts_with('-') && known(word).is_some();
        // The value of a macro may have blanks, and its name has none.
        let name = word.split('=').next().unwrap_or_default();
        let two = matches!(takes, Takes::Macros) && name.contains(' ');
        if two || !matches!(takes, Takes::Options(_)) && further.any(is_flag) {
            return Err(unknown(word));
        }
        if let Takes::Nothing | Takes::Library = takes {
            if attached.is_some() {
                return Err(unknown(word));
            }
            found.library |= matches!(takes, Takes::Library);
            continue;
        }
        let value = attached.or_else(|| words.next().cloned());
        let value = value.ok_or_else(|| format!("the flag `{word}` has no value"))?;
        match takes {
            Takes::Nothing | Takes::Library => {}
            Takes::Value => {
                if !value.split(',').all(is_value) {
                    return Err(format!("the flag `{word}` has the unknown value `{value}`"));
                }
            }
            Takes::Macros => {
                macros(word, &value)?;
                found.macros.push(value);
            }
            Takes::Includes => found.headers.extend(paths(word, &value)?),
            Takes::Folders => found.folders.extend(paths(word, &value)?),
            Takes::Names => names(word, &value)?,
            Takes::Options(tool) => {
                let options = value.split([',', ' ']);
                for option in options.filter(|option| !option.is_empty()) {
                    accept(tool, option)?;
                    found.native |= option.ends_with("=native");
                }
            }
        }
    }
    Ok(found)
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
        && !OTHERS.contains(&name)
        && (!"Ot".contains(letter) || rest.chars().all(|c| c.is_ascii_digit()));
    attached.then(|| Some((takes(letter)?, Some(rest.to_owned()))))?
}

/// Whether a flag is the end of the name of another one, as `--fast-math` is.
fn is_end_of(word: &str, name: &str) -> bool {
    let end = word.trim_start_matches('-').replace('_', "-");
    end.len() > 3 && name.replace('_', "-").ends_with(&format!("-{end}"))
}

fn unknown(word: &str) -> String {
    let names = KNOWN.iter().flat_map(|(names, _)| names.iter());
    let names: Vec<&str> = names.copied().collect();
    let why = if word.contains("options-file") || word.contains("optf") || word.contains('@') {
        "flags in a file are not tracked: write them in `flags`".to_owned()
    } else if matches!(word, "-o" | "--output-file" | "-ptx" | "--ptx") {
        "remove it: the tool names what it builds, and compares machine code".to_owned()
    } else if word.contains("ccbin") || word.contains("compiler-bindir") {
        "the environment variable NVCC_CCBIN names the host compiler".to_owned()
    } else if word.contains(' ') {
        let items: Vec<&str> = word.split_whitespace().collect();
        match items[..] {
            [name, value] if name.starts_with("-D") && !value.starts_with('-') => {
                format!("a constant is one word: write `\"{name}={value}\"`")
            }
            _ => format!("one argument is one item: write `{items:?}`"),
        }
    } else if word
        .strip_prefix("-0")
        .is_some_and(|it| it.parse::<u8>().is_ok())
    {
        format!("did you mean `-O{}`?", &word[2..])
    } else if word.starts_with("-O") && word[2..].starts_with(|c: char| c.is_ascii_digit()) {
        "nvcc takes a number: write `-O3`".to_owned()
    } else if host(word) && !word.starts_with("-max") {
        format!("it is one of the host compiler: write `-Xcompiler={word}`")
    } else if word.starts_with("-o") && word[2..].starts_with(|c: char| c.is_ascii_digit()) {
        format!("did you mean `-O{}`?", &word[2..])
    } else if let Some(whole) = names.iter().find(|name| is_end_of(word, name)) {
        format!("did you mean `--{whole}`?")
    } else if let Some(near) = nearest(word.trim_start_matches('-'), &names)
        && strsim::damerau_levenshtein(word.trim_start_matches('-'), near) <= word.len() / 4
    {
        let dashes = if near.len() > 1 { "--" } else { "-" };
        format!("did you mean `{dashes}{near}`?")
    } else {
        "this tool does not know which files and programs it uses".to_owned()
    };
    format!("the flag `{}` is refused: {why}", word.escape_debug())
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
        if is_quotable(path) && !path.starts_with(['@', '-', '~']) {
            Ok(path.to_owned())
        } else if path.starts_with(['$', '~']) {
            Err(format!("`{word}`: `~` and variables are not expanded: write the path itself"))
        } else {
            Err(format!("the path `{}` of the flag `{word}` is refused: a shell or a compiler would read more than a path in it", path.escape_debug()))
        }
    });
    paths.collect()
}

fn names(word: &str, value: &str) -> Result<(), String> {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_+.-".contains(c);
    let is_name =
        |name: &str| !name.is_empty() && !name.starts_with('-') && name.chars().all(plain);
    match value.split(',').find(|name| !is_name(name)) {
        None => Ok(()),
        Some(name) => Err(format!(
            "the library `{}` of the flag `{word}` is refused: name it as in `-lcublas`",
            name.escape_debug()
        )),
    }
}

/// Accepts an object or a library among the flags.
fn object(word: &str) -> Result<(), String> {
    if word.starts_with(['-', '@']) {
        return Err(unknown(word));
    }
    let name = word.rsplit('/').next().unwrap_or(word);
    let endings = [".o", ".obj", ".a", ".so"];
    let linked = endings.iter().any(|ending| name.ends_with(ending)) || name.contains(".so.");
    if linked && is_quotable(word) {
        return Ok(());
    }
    let is_flag = KNOWN.iter().any(|(names, _)| names.contains(&word));
    if is_flag
        || word
            .strip_prefix('O')
            .is_some_and(|it| it.parse::<u8>().is_ok())
    {
        return Err(format!(
            "the flag `{word}` is refused: did you mean `-{word}`?"
        ));
    }
    Err(format!(
        "the flag `{}` is a second source or an unknown file: name it in `source`",
        word.escape_debug()
    ))
}

/// Whether a value is a word, a number or a target that is not asked of the machine.
fn is_value(value: &str) -> bool {
    let part = |c: char| c.is_ascii_alphanumeric() || "_+-=[]".contains(c);
    let plain = !value.is_empty() && value.chars().all(part);
    plain && !value.starts_with('-') && !value.contains("native")
}

/// Accepts one option of another tool.
fn accept(tool: Tool, option: &str) -> Result<(), String> {
    let (name, known) = match tool {
        Tool::Host => ("the host compiler", host(option)),
        Tool::Ptxas => ("ptxas", ptxas(option)),
    };
    let body = option.trim_start_matches('-');
    let near = nearest(body, PTXAS).filter(|near| {
        matches!(tool, Tool::Ptxas) && strsim::damerau_levenshtein(body, near) <= body.len() / 4
    });
    let why = match near {
        _ if known => return Ok(()),
        Some(near) => format!("did you mean `--{near}`?"),
        None => "this tool does not know which files and programs it uses".to_owned(),
    };
    let option = option.escape_debug();
    Err(format!(
        "the option `{option}` for {name} is refused: {why}"
    ))
}

fn host(option: &str) -> bool {
    let word = |c: char| c.is_ascii_alphanumeric() || "_+.=-".contains(c);
    let begins = HOST_BEGIN.iter().any(|begin| {
        let rest = option.strip_prefix(begin);
        rest.is_some_and(|rest| {
            rest.chars().all(word) && !(*begin == "-fno-" && rest.contains('='))
        })
    });
    // These pass the next word on to another tool.
    let passes_on = matches!(option, "-Wa" | "-Wl" | "-Wp")
        || option.starts_with("-mllvm")
        || option.starts_with("-mmlir");
    HOST.contains(&option) || (begins && !passes_on)
}

fn ptxas(option: &str) -> bool {
    let body = option.trim_start_matches('-');
    let (name, value) = body.split_once('=').unwrap_or((body, "1"));
    option.starts_with('-') && PTXAS.contains(&name) && is_value(value)
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
            "-O3 -std=c++17 -lineinfo -G -rdc=true",
            "-gencode=arch=compute_90a,code=sm_90a",
            "-gencode arch=compute_80,code=[sm_80,compute_80]",
            "-Xptxas -v -Xptxas=-dlcm=ca,-O3 --ptxas-options=-v -Xptxas -maxrregcount=32",
            "-DTILE=8 -DNAME=\\\"a\\\" -UX",
            "-Iinclude -I a,b -isystem=z -include pre.h",
            "-Llib -lcublas -l cudart part.o lib/libx.so.1",
            "-Xcompiler -Wall,-march=native,-fno-exceptions,-fopenmp,-DX=1",
            "--use_fast_math --expt-relaxed-constexpr -maxrregcount=24 -t4 --threads 4",
        ] {
            let flags: Vec<&str> = flags.split(' ').collect();
            assert!(inputs(&flags).is_ok(), "{:?}", inputs(&flags));
        }
        // With blanks in one argument.
        for flags in [
            &["-D", "A=f(1) + 'c' & <b>;", "-DNAME=\"a b\""][..],
            &["-isystem", "x y"],
            &["-Xcompiler", "-O2 -Wall"],
        ] {
            assert!(inputs(flags).is_ok(), "{:?}", inputs(flags));
        }
        let found = inputs(&["-Ia,b", "-Llib", "-Xcompiler=-mtune=native", "-DX=1"]).unwrap();
        assert_eq!(found.folders, ["a", "b", "lib"]);
        assert_eq!(found.macros, ["X=1"]);
        assert!(found.native && !inputs(&["-O3"]).unwrap().native);
        for flag in ["-c", "--compile", "-dc", "--cubin", "-shared", "--fatbin"] {
            assert!(inputs(&[flag]).unwrap().library, "{flag}");
            let mut argv = ["nvcc", "-O3", flag, "-DX=1"].map(str::to_owned).to_vec();
            as_objects(&mut argv);
            let last = if flag == "-dc" { "-dc" } else { "-c" };
            assert_eq!(argv, ["nvcc", "-O3", "-DX=1", last]);
        }
    }

    #[test]
    fn flags_that_run_or_read_what_is_not_tracked_are_refused() {
        // Each takes the arguments of its line, one at a time.
        for (option, arguments) in [
            (
                "-Xcompiler",
                "@opts.txt -B./tools/ -wrapper,./tools/w -fplugin=./p.so -specs=./s -fuse-ld=gold \
                 -Wl,@x -Wa,x -Wp,x -include,x.h -mllvm -fprofile-use=x -flto -D$(x) -DX;x x.o -P",
            ),
            ("-Xptxas", "-optf,o x.ptx ca -o,x"),
            ("-Xnvlink", "-optf=x"),
            (
                "-Xlinker",
                "@x -T,x.ld -plugin=./p.so --version-script=x -rpath=/usr/lib x.o",
            ),
            ("-ccbin", "./tools/g++"),
            ("-arbin", "./ar"),
            ("-optf", "flags.txt"),
            ("--keep-dir", "/tmp"),
            ("-run-args", "x"),
            ("-ldir", "x"),
            ("-target-dir", "x"),
            ("-o", "x"),
            ("-odir", "x"),
            ("-MF", "x"),
            ("-qpp-config", "x"),
            ("-D", "-run"),
            ("-I", "@x -run"),
            ("-isystem", "@x"),
            ("-l", "../x"),
            ("-x", "cu\n"),
        ] {
            for argument in arguments.split(' ') {
                let flags = [option, argument];
                assert!(inputs(&flags).is_err(), "{flags:?} is accepted");
            }
        }
        let alone = "-run --run -ccbin=./tools --compiler-bindir=./tools -ldir=x --output-file=x \
                     -keep --dependency-output=x -objtemp -time=x -fdevice-time-trace=x -clean \
                     --options-file=flags.txt @flags.txt -Xcompiler=-O2,@opts.txt \
                     -Xptxas=--options-file=opts.txt -DX=$(x) -DX=`x` -D@x -DX=1,@x -DX=a\\b -I$(x) \
                     -l:x.o -lx;y x.cu x.ptx x $(x).o -arch=native -I -forward-unknown-opts \
                     --forward-unknown-to-host-compiler -use-local-env -dryrun -E -M \
                     -maxrregcount=$(x) -hls=gen-lcs -lib -link ---O3 - -- -é";
        let with_blanks = ["-DX=\\\\\"; x; \\\\\"", "-DX=1\n-run", "-I\"; x; \"", ""];
        for flag in alone.split(' ').chain(with_blanks) {
            assert!(inputs(&[flag]).is_err(), "{flag:?} is accepted");
        }
        for source in [
            "-run", "@x", "$(x).cu", "`x`.cu", "a\".cu", "a\n.cu", "a\\.cu",
        ] {
            assert!(!source_is_plain(source), "{source}");
        }
        assert!(source_is_plain("kernels/my kernel (1).cu"));
    }
}
