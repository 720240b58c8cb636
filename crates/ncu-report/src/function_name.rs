//! The function name in the signature of a kernel.

/// The function name in a signature: without parameters, template arguments, namespaces and return
/// type. A report states the same name. A signature that cannot be parsed is returned whole.
///
/// ```
/// use ncu_report::function_name;
///
/// assert_eq!(function_name("void k2<float, 8>(T1 *, int)"), "k2");
/// assert_eq!(function_name("void <unnamed>::softmax<float>(float *)"), "softmax");
/// ```
pub fn function_name(signature: &str) -> &str {
    let text = signature.trim();
    let text = match text.rfind(')') {
        // Only a qualifier of the function (`const`) may follow the parameters.
        Some(close) if is_qualifier(&text[close + 1..]) => match opening(&text[..=close]) {
            Some(open) if open > 0 => text[..open].trim_end(),
            _ => text,
        },
        _ => text,
    };
    let without_arguments = match opening(text) {
        Some(open) if open > 0 && text.ends_with('>') && !is_operator(text) => {
            text[..open].trim_end()
        }
        _ => text,
    };
    let name = last_component(without_arguments);
    if name.is_empty() {
        signature.trim()
    } else {
        name
    }
}

fn is_qualifier(text: &str) -> bool {
    matches!(
        text.trim(),
        "" | "const" | "const &" | "&" | "&&" | "noexcept" | "const noexcept"
    )
}

/// The position of the bracket that the last byte of `text` closes.
fn opening(text: &str) -> Option<usize> {
    let mut closed = Vec::new();
    let bytes = text.as_bytes();
    for (at, &byte) in bytes.iter().enumerate().rev() {
        let in_angles = closed.last() == Some(&b'>');
        match byte {
            b')' | b']' | b'}' => closed.push(byte),
            // The arrow of a trailing return type is no bracket, and neither is a comparison in
            // parentheses.
            b'>' if (closed.is_empty() || in_angles) && !text[..at].ends_with('-') => {
                closed.push(byte);
            }
            b'(' | b'[' | b'{' => {
                let expected = match byte {
                    b'(' => b')',
                    b'[' => b']',
                    _ => b'}',
                };
                // A closing angle bracket without an opening one was an operator.
                while closed
                    .last()
                    .is_some_and(|&last| last == b'>' && expected != last)
                {
                    closed.pop();
                }
                if closed.pop() != Some(expected) {
                    return None;
                }
            }
            b'<' if in_angles => {
                closed.pop();
            }
            _ => {}
        }
        if closed.is_empty() {
            return (at + 1 < bytes.len()).then_some(at);
        }
    }
    None
}

/// `operator>` and similar names end in a bracket that closes nothing.
fn is_operator(text: &str) -> bool {
    ["operator>", "operator>>", "operator->", "operator<=>"]
        .iter()
        .any(|operator| text.ends_with(operator))
}

/// The text after the last `::` or space outside all brackets.
fn last_component(text: &str) -> &str {
    let mut end = text.len();
    while end > 0 {
        let head = &text[..end];
        if head.ends_with([')', ']', '}', '>']) && !is_operator(head) {
            match opening(head) {
                Some(open) => {
                    end = open;
                    continue;
                }
                None => return text,
            }
        }
        if head.ends_with("::") || head.ends_with(' ') {
            let component = &text[end..];
            // `operator ()` and `operator bool` are written with a space.
            if let Some(before) = head.trim_end().strip_suffix("operator") {
                end = before.len();
                continue;
            }
            return component;
        }
        end -= head.chars().next_back().map_or(1, char::len_utf8);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::function_name;

    #[test]
    fn the_function_name_is_the_last_component() {
        let table = "
k1(float *, int) | k1
void k2<float, 8>(T1 *, int) | k2
bsr_gemm_wmma(const int *, const __half *, float *, int) | bsr_gemm_wmma
graph | graph
void at::native::vectorized_elementwise_kernel<4, at::native::Add<float>, at::detail::Array<char *, 3>>(int, T2, T3) | vectorized_elementwise_kernel
void <unnamed>::softmax<float>(float *) | softmax
(anonymous namespace)::scan(int) | scan
void ns::(anonymous namespace)::scan<(int)3>(int) | scan
void run<lambda(int) (instance 1)>(T1) | run
void run<main::[lambda(int, float) (instance 1)]>(T1, T2) | run
void run<(bool)(3 > 2)>(int) | run
void apply<&Op::operator()>(int) | apply
void f(int)::{lambda(int)#1}::operator()(int) const | operator()
std::vector<int, 3> make<T1>(void (*)(int)) | make
k(int (*)[4], float (&)[2]) | k
";
        for row in table.trim().lines() {
            let (signature, name) = row.split_once(" |").unwrap();
            let name = name.trim();
            assert_eq!(function_name(signature), name, "{signature}");
        }
    }

    #[test]
    fn the_name_in_a_signature_that_cannot_be_parsed_is_never_empty() {
        for signature in [
            "(", ")", "()", ">(", "<>()", "a<b(c", "::", "é)", "x::(", "void ",
        ] {
            let name = function_name(signature);
            assert!(
                !name.is_empty() && signature.contains(name),
                "{signature}: {name}"
            );
        }
    }
}
