//! Where kernels are defined in their sources, found in the text without a compiler, so that a
//! report can point there. A kernel that is not found has no line rather than a wrong one.

use std::collections::BTreeMap;

/// Longest chain of macros that stand for one another; a longer one is a circle.
const DEEPEST: usize = 8;

/// The kernels that a source defines or declares.
#[derive(Clone, Debug, Default)]
pub struct Kernels {
    /// As the text spells them, in its order.
    found: Vec<Found>,
    /// Values of the macros that the text itself defines.
    constants: BTreeMap<String, String>,
}

#[derive(Clone, Debug)]
struct Found {
    name: String,
    /// From 1.
    line: u32,
    /// Whether it has a body.
    defined: bool,
}

impl Kernels {
    /// Of CUDA C++: the functions that are `__global__`, each at the line of that word.
    pub fn in_cuda(text: &str) -> Kernels {
        let code = blanked_cuda(text);
        let mut kernels = Kernels::default();
        let mut tokens = Vec::new();
        let mut continues = false;
        for (line, number) in code.lines().zip(1..) {
            let directive = continues || line.trim_start().starts_with('#');
            if !directive {
                tokens.extend(tokens_of(line).map(|token| (token, number)));
                continue;
            }
            if !continues {
                kernels.constants.extend(definition(line));
            }
            continues = line.trim_end().ends_with('\\');
        }
        for (at, (token, line)) in tokens.iter().enumerate() {
            if *token == "__global__"
                && let Some((name, defined)) = function(&tokens[at + 1..])
            {
                kernels.found.push(Found {
                    name: name.to_owned(),
                    line: *line,
                    defined,
                });
            }
        }
        kernels
    }

    /// Of Python: every function, since the text does not show which of them become kernels.
    pub fn in_python(text: &str) -> Kernels {
        let code = blanked_python(text);
        let name = |line: &str| {
            let line = line.trim_start();
            let rest = line.strip_prefix("async ").unwrap_or(line).trim_start();
            let rest = rest.strip_prefix("def ")?.trim_start();
            let end = rest.find(|c: char| !is_name(c))?;
            Some(rest[..end].to_owned())
        };
        let found = code.lines().zip(1..).filter_map(|(line, number)| {
            Some(Found {
                name: name(line)?,
                line: number,
                defined: true,
            })
        });
        Kernels {
            found: found.collect(),
            constants: BTreeMap::new(),
        }
    }

    /// The line, from 1, of a kernel's definition; of a declaration where there is no definition.
    /// `constants` are those of the command line: they replace what the text itself defines.
    pub fn line(&self, kernel: &str, constants: &BTreeMap<String, String>) -> Option<u32> {
        let is_it = |found: &&Found| self.stands_for(&found.name, constants) == kernel;
        let named: Vec<&Found> = self.found.iter().filter(is_it).collect();
        let defined = named.iter().find(|found| found.defined);
        defined.or(named.first()).map(|found| found.line)
    }

    fn stands_for<'a>(&'a self, name: &'a str, constants: &'a BTreeMap<String, String>) -> &'a str {
        let mut name = name;
        for _ in 0..DEEPEST {
            match constants.get(name).or_else(|| self.constants.get(name)) {
                Some(value) => name = value.trim(),
                None => break,
            }
        }
        name
    }
}

/// `#define NAME VALUE`, of a macro without parameters.
fn definition(line: &str) -> Option<(String, String)> {
    let rest = line.trim_start().strip_prefix('#')?.trim_start();
    let rest = rest.strip_prefix("define")?;
    let rest = rest.strip_prefix([' ', '\t'])?.trim_start();
    let end = rest.find(|c: char| !is_name(c)).unwrap_or(rest.len());
    let (name, value) = rest.split_at(end);
    (!value.starts_with('(')).then(|| (name.to_owned(), value.trim().to_owned()))
}

/// The name of the function whose declaration goes on with these tokens, and whether it has a body.
fn function<'a>(tokens: &[(&'a str, u32)]) -> Option<(&'a str, bool)> {
    let mut name: Option<&str> = None;
    let mut at = 0;
    while let Some((token, _)) = tokens.get(at) {
        match *token {
            // `__launch_bounds__(256)`, `alignas(16)`, `__attribute__((...))`: no function.
            attribute if is_attribute(attribute) => name = None,
            // Template arguments: of a return type, or of a specialization's name.
            "<" => {
                at = closing(tokens, at)?;
            }
            "[" => at = closing(tokens, at)?,
            "(" => {
                let close = closing(tokens, at)?;
                if let Some(name) = name {
                    let then = tokens[close + 1..].iter().map(|(token, _)| *token);
                    // `noexcept` and the like may stand between.
                    let end = then.clone().find(|token| matches!(*token, "{" | ";" | "}"));
                    return Some((name, end == Some("{")));
                }
                at = close;
            }
            ";" | "{" | "}" | "=" => return None,
            word if word.starts_with(is_name) => name = Some(word),
            _ => name = None,
        }
        at += 1;
    }
    None
}

fn is_attribute(word: &str) -> bool {
    (word.starts_with("__") && word.ends_with("__"))
        || matches!(
            word,
            "alignas" | "decltype" | "noexcept" | "explicit" | "requires"
        )
}

/// Where the bracket closes that opens at a token. Within angle brackets, parentheses may contain
/// what looks like one.
fn closing(tokens: &[(&str, u32)], open: usize) -> Option<usize> {
    let mut expected: Vec<&str> = Vec::new();
    for (at, (token, _)) in tokens.iter().enumerate().skip(open) {
        match *token {
            "(" => expected.push(")"),
            "[" => expected.push("]"),
            "{" => expected.push("}"),
            "<" if expected.last().is_none_or(|last| *last == ">") => expected.push(">"),
            ")" | "]" | "}" | ">" if expected.last() == Some(token) => {
                expected.pop();
                if expected.is_empty() {
                    return Some(at);
                }
            }
            ";" if expected.last() == Some(&">") => return None,
            _ => {}
        }
    }
    None
}

fn is_name(c: char) -> bool {
    c.is_alphanumeric() || c == '_' || c == '$'
}

/// Words and single characters.
fn tokens_of(line: &str) -> impl Iterator<Item = &str> {
    let mut rest = line;
    std::iter::from_fn(move || {
        rest = rest.trim_start();
        let first = rest.chars().next()?;
        let end = if is_name(first) {
            rest.find(|c: char| !is_name(c)).unwrap_or(rest.len())
        } else {
            first.len_utf8()
        };
        let (token, after) = rest.split_at(end);
        rest = after;
        Some(token)
    })
}

/// The text with blanks for comments, quoted text and `#if 0`; every line keeps its number.
fn blanked_cuda(text: &str) -> String {
    let mut code = String::with_capacity(text.len());
    let mut rest = text;
    let mut before = ' ';
    while let Some(c) = rest.chars().next() {
        let length = match c {
            '/' if rest.starts_with("//") => {
                // A backslash at its end continues a comment.
                let mut end = 0;
                loop {
                    let line = rest[end..].find('\n').map_or(rest.len(), |at| end + at);
                    if line == rest.len() || !rest[..line].trim_end_matches('\r').ends_with('\\') {
                        break line;
                    }
                    end = line + 1;
                }
            }
            '/' if rest.starts_with("/*") => rest[2..].find("*/").map_or(rest.len(), |at| at + 4),
            'R' if rest.starts_with("R\"") && !is_name(before) => raw_string(rest),
            '"' => quoted(rest, '"'),
            // 1'000'000 is a number.
            '\'' if !before.is_alphanumeric() => quoted(rest, '\''),
            c => {
                code.push(c);
                before = c;
                rest = &rest[c.len_utf8()..];
                continue;
            }
        };
        before = ' ';
        blank(&mut code, &rest[..length]);
        rest = &rest[length..];
    }
    without_dead_branches(&code)
}

fn blank(code: &mut String, text: &str) {
    code.push(' ');
    code.extend(text.chars().filter(|c| *c == '\n'));
}

/// Bytes of a quoted text, its quotes included; it ends with its line at the latest.
fn quoted(text: &str, quote: char) -> usize {
    let mut escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '\n' => return at,
            c if c == quote => return at + c.len_utf8(),
            _ => {}
        }
    }
    text.len()
}

/// Bytes of `R"mark(...)mark"`.
fn raw_string(text: &str) -> usize {
    let Some((mark, _)) = text[2..].split_once('(') else {
        return text.len();
    };
    let end = format!("){mark}\"");
    text.find(&end).map_or(text.len(), |at| at + end.len())
}

/// Without the text between `#if 0` and its `#else` or `#endif`.
fn without_dead_branches(code: &str) -> String {
    let mut kept = String::with_capacity(code.len());
    // Of each open conditional, whether its branch is dead.
    let mut open: Vec<bool> = Vec::new();
    for line in code.split_inclusive('\n') {
        let directive = line.trim_start().strip_prefix('#').map(str::trim);
        match directive {
            Some(text) if text.starts_with("if") => {
                let condition = text.strip_prefix("if").map(str::trim);
                open.push(matches!(condition, Some("0" | "(0)" | "false")));
            }
            Some(text) if text.starts_with("el") => {
                if let Some(dead) = open.last_mut() {
                    *dead = false;
                }
            }
            Some(text) if text.starts_with("endif") => drop(open.pop()),
            _ => {}
        }
        if open.contains(&true) {
            kept.extend(line.chars().filter(|c| *c == '\n'));
        } else {
            kept.push_str(line);
        }
    }
    kept
}

/// The text with blanks for comments and quoted text; every line keeps its number.
fn blanked_python(text: &str) -> String {
    let mut code = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let length = match c {
            '#' => rest.find('\n').unwrap_or(rest.len()),
            '"' | '\'' => {
                let triple: String = std::iter::repeat_n(c, 3).collect();
                if rest.starts_with(&triple) {
                    triple_quoted(rest, &triple)
                } else {
                    quoted(rest, c)
                }
            }
            c => {
                code.push(c);
                rest = &rest[c.len_utf8()..];
                continue;
            }
        };
        blank(&mut code, &rest[..length]);
        rest = &rest[length..];
    }
    code
}

fn triple_quoted(text: &str, quotes: &str) -> usize {
    let mut escaped = false;
    for (at, c) in text.char_indices().skip(3) {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            _ if text[at..].starts_with(quotes) => return at + 3,
            _ => {}
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(text: &str, kernel: &str) -> Option<u32> {
        Kernels::in_cuda(text).line(kernel, &BTreeMap::new())
    }

    #[test]
    fn comments_quotes_and_dead_branches_define_nothing() {
        let text = "\
// __global__ void k() {}
/* __global__ void k() {}
*/ const char* s = \"__global__ void k() {}\\\"\"; char c = '\"'; int n = 1'000;
const char* r = R\"x(\" __global__ void k() {} )\" )x\"; // continued \\
__global__ void k() {}
#if 0
__global__ void k() {}
#if 1
__global__ void k() {}
#endif
#endif
#define MAKE() \\
  __global__ void k() {}
__global__ void other() { k(); }
__global__ void k();
__global__ void k() {}
";
        assert_eq!(line(text, "k"), Some(16));
        assert_eq!(line(text, "other"), Some(14));
        assert_eq!(line(text, "void"), None);
        assert_eq!(line(text, "s"), None);
    }

    #[test]
    fn a_definition_may_span_several_lines_with_bounds_and_templates() {
        for text in [
            "template <int N, typename T = std::pair<int, float>>\n__global__ void\n__launch_bounds__(256, (N > 2) ? 2 : 1)\nk(const T* a)\n{ }",
            "extern \"C\"\nstatic __global__ __launch_bounds__(128) __cluster_dims__(2, 1, 1) void\n  k\n  (int a) { }",
            "template <>\n__global__ void k<float>(float* a) { }",
            "namespace n {\n__global__ typename std::enable_if<(1 > 0), void>::type k(int (*f)(int)) {} }",
            "\n[[maybe_unused]] __global__ __attribute__((used)) [[gnu::noinline]] void k() noexcept {\n}",
        ] {
            assert_eq!(line(text, "k"), Some(2), "{text}");
            assert_eq!(line(text, "a"), None, "{text}");
        }
        assert_eq!(line("__global__ void k();\n", "k"), Some(1));
        assert_eq!(line("__global__ void", "k"), None);
        assert_eq!(line("__global__ void k(", "k"), None);
        assert_eq!(line("", "k"), None);
    }

    #[test]
    fn a_name_may_be_a_constant_of_the_text_or_of_the_command_line() {
        let text = "#ifndef KERNEL_NAME\n#define KERNEL_NAME slow\n#endif\n__global__ void\nKERNEL_NAME(int n) {}\n";
        assert_eq!(line(text, "slow"), Some(4));
        let constants = BTreeMap::from([
            ("KERNEL_NAME".to_owned(), "FAST".to_owned()),
            ("FAST".to_owned(), "fast".to_owned()),
        ]);
        assert_eq!(Kernels::in_cuda(text).line("fast", &constants), Some(4));
        assert_eq!(Kernels::in_cuda(text).line("slow", &constants), None);
        let circle = BTreeMap::from([("KERNEL_NAME".to_owned(), "KERNEL_NAME".to_owned())]);
        assert_eq!(Kernels::in_cuda(text).line("slow", &circle), None);
    }

    #[test]
    fn python_kernels_are_functions_outside_of_quotes() {
        let text = "\"\"\"\ndef k(a):\n\"\"\"\n# def k(a):\ns = 'def k('\n@triton.jit\ndef k_other(a): pass\n@triton.jit\ndef  k (a):\n  pass\n";
        let line = |kernel| Kernels::in_python(text).line(kernel, &BTreeMap::new());
        assert_eq!(line("k"), Some(9));
        assert_eq!(line("k_other"), Some(7));
        assert_eq!(line("a"), None);
    }
}
