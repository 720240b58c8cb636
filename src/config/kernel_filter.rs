//! Which kernels are profiled.

/// Which kernels ncu profiles, by the function's own name.
#[derive(Clone, Debug)]
pub enum KernelFilter {
    /// Every one.
    All,
    /// The one of that name.
    Name(String),
    /// Those that the expression is found in.
    Pattern(regex::Regex),
}

/// Most bytes of a compiled pattern: short ones can take long to compile.
const MOST_OF_PATTERN: usize = 1 << 18;

impl KernelFilter {
    /// Of `kernels` in the configuration.
    ///
    /// # Errors
    /// Says that a pattern is understood only by ncu, or by none.
    pub fn of(kernels: Option<&str>) -> Result<KernelFilter, String> {
        let Some(filter) = kernels else {
            return Ok(KernelFilter::All);
        };
        let Some(pattern) = filter.strip_prefix("regex:") else {
            return Ok(KernelFilter::Name(filter.to_owned()));
        };
        let mut expression = regex::RegexBuilder::new(pattern);
        let expression = expression.size_limit(MOST_OF_PATTERN).build();
        let expression = expression.map_err(|error| {
            let text = error.to_string();
            let last = text.lines().last().unwrap_or_default();
            let last = last.trim_start_matches("error: ");
            let why = match text.contains("look-around") || text.contains("backreference") {
                true => "is understood only by ncu",
                false => "is not a regular expression",
            };
            format!("the pattern `{pattern}` of `kernels` {why}: {last}")
        })?;
        Ok(KernelFilter::Pattern(expression))
    }

    /// Whether a function of that name is profiled.
    pub fn matches(&self, name: &str) -> bool {
        match self {
            KernelFilter::All => true,
            KernelFilter::Name(wanted) => wanted == name,
            KernelFilter::Pattern(pattern) => pattern.is_match(name),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_matched_whole_and_a_pattern_anywhere() {
        let name = KernelFilter::of(Some("gemm")).unwrap();
        assert!(name.matches("gemm") && !name.matches("bsr_gemm"));
        let pattern = KernelFilter::of(Some("regex:gemm$")).unwrap();
        assert!(pattern.matches("bsr_gemm") && !pattern.matches("gemm_fast"));
        assert!(KernelFilter::of(None).unwrap().matches("anything"));
    }

    #[test]
    fn a_pattern_that_only_ncu_understands_is_reported() {
        let why = KernelFilter::of(Some("regex:^(?!slow)")).unwrap_err();
        assert!(why.contains("understood only by ncu"), "{why}");
    }
}
