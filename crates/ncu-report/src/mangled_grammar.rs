//! Which mangled names are demangled.
//!
//! The demangler tries one rule after the other and starts again where a rule fails in the middle
//! of a name, so that a crafted name of 50 bytes takes it hours. It never starts again within a name
//! that follows the rules here: the part of the Itanium C++ ABI that names of kernels are made of.
//! It has no conversions, and no expressions beyond operators, literals and parameters. Each byte
//! is read once.

#![warn(clippy::arithmetic_side_effects)]

/// Deepest nesting; the demangler stops at it too.
const DEEPEST: usize = 96;

/// Whether the demangler reads a name without starting again.
pub(crate) fn is_plain(mangled: &str) -> bool {
    let mut name = Name {
        rest: mangled.as_bytes(),
        substitutions: 0,
        depth: 0,
    };
    // What follows a point is a suffix of the compiler.
    name.starts("_Z") && name.encoding().is_some() && matches!(name.rest, [] | [b'.', ..])
}

/// The function in a mangled name whose template arguments or parameters are not plain: the last
/// name before them. No kernel is a member of a class, so the first template arguments are its own.
pub(crate) fn function_part(mangled: &str) -> Option<&str> {
    let mut name = Name {
        rest: mangled.as_bytes(),
        substitutions: u64::MAX,
        depth: 0,
    };
    name.need("_Z")?;
    let is_nested = name.starts("N");
    let mut last = None;
    while is_nested || last.is_none() {
        match name.peek() {
            Some(b'S') => name.reference()?,
            Some(b'L') => name.need("L")?,
            Some(b'0'..=b'9') => {
                last = std::str::from_utf8(name.identifier()?).ok();
            }
            Some(b'I' | b'E') => break,
            _ => return None,
        }
    }
    last
}

struct Name<'a> {
    rest: &'a [u8],
    /// The number of parts that `S_`, `S0_` … may refer to.
    substitutions: u64,
    depth: usize,
}

impl<'a> Name<'a> {
    fn peek(&self) -> Option<u8> {
        self.rest.first().copied()
    }

    /// Takes a text if it is next.
    fn starts(&mut self, text: &str) -> bool {
        let rest = self.rest.strip_prefix(text.as_bytes());
        self.rest = rest.unwrap_or(self.rest);
        rest.is_some()
    }

    fn need(&mut self, text: &str) -> Option<()> {
        self.starts(text).then_some(())
    }

    fn substitution(&mut self) -> Option<()> {
        self.substitutions = self.substitutions.saturating_add(1);
        Some(())
    }

    /// Takes the bytes that are like this, and returns how many they are.
    fn skip(&mut self, like: impl Fn(u8) -> bool) -> usize {
        let count = self.rest.iter().take_while(|byte| like(**byte)).count();
        self.rest = self.rest.get(count..).unwrap_or_default();
        count
    }

    fn nested(&mut self, rule: impl FnOnce(&mut Self) -> Option<()>) -> Option<()> {
        self.depth = self.depth.checked_add(1)?;
        (self.depth < DEEPEST).then_some(())?;
        rule(self)?;
        self.depth = self.depth.saturating_sub(1);
        Some(())
    }

    /// A decimal number of a few digits, without leading zeros.
    fn number(&mut self) -> Option<usize> {
        let digits = self.rest;
        let count = self.skip(|byte| byte.is_ascii_digit());
        let digits = std::str::from_utf8(digits.get(..count)?).ok()?;
        let plain = (1..10).contains(&count) && (count == 1 || !digits.starts_with('0'));
        plain.then(|| digits.parse().ok())?
    }

    /// A number that may be absent, and an underscore.
    fn optional_number(&mut self) -> Option<()> {
        if self.peek()?.is_ascii_digit() {
            self.number()?;
        }
        self.need("_")
    }

    fn encoding(&mut self) -> Option<()> {
        self.nested(|name| {
            name.name()?;
            while !matches!(name.peek(), None | Some(b'E' | b'.')) {
                name.type_()?;
            }
            Some(())
        })
    }

    fn name(&mut self) -> Option<()> {
        self.nested(|name| match name.peek()? {
            b'N' => name.nested_name(),
            b'Z' => name.local_name(),
            b'S' if !name.rest.starts_with(b"St") => {
                name.reference()?;
                name.arguments()
            }
            _ => {
                name.starts("St");
                name.unqualified()?;
                if name.peek() == Some(b'I') {
                    name.substitution()?;
                    name.arguments()?;
                }
                Some(())
            }
        })
    }

    /// `N [qualifiers] parts E`.
    fn nested_name(&mut self) -> Option<()> {
        self.need("N")?;
        for qualifier in ["r", "V", "K"] {
            self.starts(qualifier);
        }
        if !self.starts("R") {
            self.starts("O");
        }
        // What is before: nothing, what template arguments may follow, or what they may not.
        let (mut first, mut is_template, mut is_name) = (true, false, false);
        loop {
            match self.peek()? {
                b'E' if is_name => return self.need("E"),
                b'S' if first => {
                    self.reference()?;
                    (first, is_template) = (false, true);
                    continue;
                }
                b'T' if first => {
                    self.parameter()?;
                    is_template = true;
                }
                b'I' if is_template => {
                    self.arguments()?;
                    (is_template, is_name) = (false, true);
                }
                b'M' | b'E' | b'S' | b'T' | b'I' => return None,
                _ => {
                    self.unqualified()?;
                    (is_template, is_name) = (true, true);
                }
            }
            first = false;
            if self.peek() != Some(b'E') {
                self.substitution()?;
            }
            // A member whose initializer the next part is in.
            if is_template && is_name && self.starts("M") && self.peek() == Some(b'E') {
                return None;
            }
        }
    }

    /// `Z encoding E name [discriminator]`.
    fn local_name(&mut self) -> Option<()> {
        self.need("Z")?;
        self.encoding()?;
        self.need("E")?;
        if self.starts("s") {
            return self.discriminator();
        }
        if self.peek()? == b'd' {
            return None;
        }
        self.name()?;
        self.discriminator()
    }

    /// `_ digit` or `__ number _`, or nothing.
    fn discriminator(&mut self) -> Option<()> {
        if self.starts("__") {
            let number = self.number()?;
            return (number >= 10).then_some(()).and_then(|()| self.need("_"));
        }
        if self.starts("_") {
            let digit = self.peek()?;
            self.rest = self.rest.get(1..)?;
            return digit.is_ascii_digit().then_some(());
        }
        Some(())
    }

    /// A part of a name, with its tags.
    fn unqualified(&mut self) -> Option<()> {
        match self.peek()? {
            b'0'..=b'9' => self.source_name()?,
            b'L' => {
                self.need("L")?;
                self.source_name()?;
                self.discriminator()?;
            }
            b'C' | b'D' => {
                let [_, b'1'..=b'3', rest @ ..] = self.rest else {
                    return None;
                };
                self.rest = rest;
            }
            b'U' if self.starts("Ut") => self.optional_number()?,
            b'U' => {
                self.need("Ul")?;
                if !self.starts("v") {
                    self.types("")?;
                }
                self.need("E")?;
                self.optional_number()?;
            }
            _ => {
                let operator = self.rest.get(..2)?;
                OPERATORS
                    .iter()
                    .any(|known| known.as_bytes() == operator)
                    .then_some(())?;
                self.rest = self.rest.get(2..)?;
            }
        }
        while self.starts("B") {
            self.source_name()?;
        }
        Some(())
    }

    fn source_name(&mut self) -> Option<()> {
        self.identifier().map(drop)
    }

    /// A length, and that many letters.
    fn identifier(&mut self) -> Option<&'a [u8]> {
        let length = self.number().filter(|length| *length > 0)?;
        let (name, rest) = self.rest.split_at_checked(length)?;
        self.rest = rest;
        let is_letter = |byte: &u8| byte.is_ascii_alphanumeric() || b"_$.".contains(byte);
        name.iter().all(is_letter).then_some(name)
    }

    /// `S_`, `S0_`, `Sa` …, of a part that was before.
    fn reference(&mut self) -> Option<()> {
        self.need("S")?;
        if let Some(b't' | b'a' | b'b' | b's' | b'i' | b'o' | b'd') = self.peek() {
            self.rest = self.rest.get(1..)?;
            return Some(());
        }
        let digits = self.rest;
        let count = self.skip(|byte| byte.is_ascii_digit() || byte.is_ascii_uppercase());
        self.need("_")?;
        let index = match std::str::from_utf8(digits.get(..count)?).ok()? {
            "" => 0,
            text if count > 1 && text.starts_with('0') => return None,
            text => u64::from_str_radix(text, 36).ok()?.checked_add(1)?,
        };
        (index < self.substitutions).then_some(())
    }

    /// `T_`, `T0_` …
    fn parameter(&mut self) -> Option<()> {
        self.need("T")?;
        self.optional_number()
    }

    /// `I argument… E`.
    fn arguments(&mut self) -> Option<()> {
        self.nested(|name| {
            name.need("I")?;
            name.argument()?;
            while !name.starts("E") {
                name.argument()?;
            }
            Some(())
        })
    }

    fn argument(&mut self) -> Option<()> {
        self.nested(|name| match name.peek()? {
            b'L' => name.literal(),
            b'X' => {
                name.need("X")?;
                name.expression()?;
                name.need("E")
            }
            b'J' | b'I' => {
                name.rest = name.rest.get(1..)?;
                while !name.starts("E") {
                    name.argument()?;
                }
                Some(())
            }
            _ => name.type_(),
        })
    }

    /// `L type value E` or `L mangled name E`.
    fn literal(&mut self) -> Option<()> {
        self.need("L")?;
        if self.starts("_Z") {
            self.encoding()?;
        } else {
            self.type_()?;
            self.skip(|byte| byte.is_ascii_alphanumeric() && byte != b'E');
        }
        self.need("E")
    }

    /// An operator with its operands, a literal, or a template parameter.
    fn expression(&mut self) -> Option<()> {
        self.nested(|name| match name.peek()? {
            b'L' => name.literal(),
            b'T' => name.parameter(),
            _ => {
                let operator = name.rest.get(..2)?;
                name.rest = name.rest.get(2..)?;
                let operands = OPERANDS
                    .iter()
                    .position(|known| known.iter().any(|known| known.as_bytes() == operator))?;
                for _ in 0..=operands {
                    name.expression()?;
                }
                Some(())
            }
        })
    }

    /// One type at least, up to an `E` that is not taken, or to one of the bytes before it.
    fn types(&mut self, before: &str) -> Option<()> {
        self.type_()?;
        loop {
            match self.rest {
                [b'E', ..] => return Some(()),
                [end, b'E', ..] if before.as_bytes().contains(end) => return Some(()),
                _ => self.type_()?,
            }
        }
    }

    fn type_(&mut self) -> Option<()> {
        self.nested(|name| match name.peek()? {
            b'a'..=b'j' | b'l'..=b'o' | b's' | b't' | b'v'..=b'z' => {
                name.rest = name.rest.get(1..)?;
                Some(())
            }
            b'u' => {
                name.need("u")?;
                name.source_name()
            }
            b'S' if !name.rest.starts_with(b"St") => {
                name.reference()?;
                if name.peek() == Some(b'I') {
                    name.arguments()?;
                    name.substitution()?;
                }
                Some(())
            }
            b'T' => {
                name.parameter()?;
                name.substitution()?;
                if name.peek() == Some(b'I') {
                    name.arguments()?;
                    name.substitution()?;
                }
                Some(())
            }
            b'D' => name.type_d(),
            b'r' | b'V' | b'K' | b'P' | b'R' | b'O' | b'F' | b'A' | b'M' => name.compound(),
            b'N' | b'Z' | b'S' | b'0'..=b'9' => {
                name.name()?;
                name.substitution()
            }
            _ => None,
        })
    }

    /// A type that begins with a `D`.
    fn type_d(&mut self) -> Option<()> {
        if self.starts("DF16b") {
            return Some(());
        }
        if self.starts("DF") {
            self.number()?;
            return self.need("_");
        }
        if self.starts("Dp") {
            self.type_()?;
            return self.substitution();
        }
        if self.starts("Dv") {
            self.number()?;
            self.need("_")?;
            self.type_()?;
            return self.substitution();
        }
        let [_, kind, rest @ ..] = self.rest else {
            return None;
        };
        self.rest = rest;
        b"defhisuacn".contains(kind).then_some(())
    }

    /// A type that is made of another one.
    fn compound(&mut self) -> Option<()> {
        let before = self.rest.len();
        for qualifier in ["r", "V", "K"] {
            self.starts(qualifier);
        }
        let is_qualified = self.rest.len() < before;
        if is_qualified && self.peek() != Some(b'F') {
            self.type_()?;
            return self.substitution();
        }
        let kind = self.peek()?;
        self.rest = self.rest.get(1..)?;
        match kind {
            b'F' => {
                self.types("RO")?;
                if !self.starts("R") {
                    self.starts("O");
                }
                self.need("E")?;
            }
            b'A' => {
                self.optional_number()?;
                self.type_()?;
            }
            b'M' => {
                self.type_()?;
                self.type_()?;
            }
            _ => self.type_()?,
        }
        self.substitution()
    }
}

/// The operators, besides conversions and literals.
const OPERATORS: [&str; 48] = [
    "nw", "na", "dl", "da", "ps", "ng", "ad", "de", "co", "pl", "mi", "ml", "dv", "rm", "an", "or",
    "eo", "aS", "pL", "mI", "mL", "dV", "rM", "aN", "oR", "eO", "ls", "rs", "lS", "rS", "eq", "ne",
    "lt", "gt", "le", "ge", "nt", "aa", "oo", "pp", "mm", "cm", "pm", "pt", "cl", "ix", "qu", "ss",
];

/// The operators of expressions, by the number of their operands from 1.
const OPERANDS: [&[&str]; 3] = [
    &["ad", "ng", "nt", "co"],
    &[
        "aa", "oo", "eq", "ne", "lt", "gt", "le", "ge", "pl", "mi", "ml", "dv", "rm", "an", "or",
        "eo", "ls", "rs",
    ],
    &["qu"],
];
