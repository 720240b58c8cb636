//! Which kernels take no dynamic shared memory, from the PTX of their program: only there the compiler
//! names what they use of it. The form is that of the PTX ISA, "Kernel and Function Directives".

use std::collections::BTreeSet;

/// The mangled names of the kernels of a module that cannot use dynamic shared memory.
pub fn without_dynamic_shared(ptx: &str) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    let externs = ptx
        .lines()
        .filter(|line| line.starts_with(".extern .shared"));
    let externs: Vec<&str> = externs
        .filter_map(|line| line.split_whitespace().last()?.split('[').next())
        .collect();
    // A function of another module may use what this one does not name.
    let calls_tell = !externs.is_empty() || ptx.contains("\n.extern .func");
    for entry in ptx.split(".entry ").skip(1) {
        let body = entry.split("\n}").next().unwrap_or(entry);
        let is_word = |c: char| c.is_ascii_alphanumeric() || "_$%.".contains(c);
        let mut words = body.split(|c| !is_word(c));
        let name = words.next().unwrap_or_default().to_owned();
        let may_use = words.any(|word| {
            externs.contains(&word)
                || word.ends_with("_smem_size")
                || calls_tell && word.split('.').next() == Some("call")
        });
        if !may_use {
            names.insert(name);
        }
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kernel_takes_none_where_it_names_none_and_calls_nothing_that_might() {
        // As nvcc 13.0 writes it, shortened.
        let ptx = "
.version 9.0
.extern .shared .align 16 .b8 dyn[];

.func  (.param .b32 func_retval0) _Z1gi(
)
{
\tmov.u32 \t%r3, dyn;
}
\t// .globl\t_Z4nonePf
.visible .entry _Z4nonePf(
\t.param .u64 _Z4nonePf_param_0
)
.maxntid 64
{
\tst.global.u32 \t[%rd4], %r2;
\tret;
}
.visible .entry _Z4dynkPf(
)
{
\tmov.u32 \t%r3, dyn;
}
.visible .entry _Z5viafnPf(
)
{
\tcall.uni (retval0), _Z1gi, (param0);
}
.visible .entry _Z4sizePf(
)
{
\tmov.u32 \t%r1, %dynamic_smem_size;
}
";
        let of = |ptx: &str| without_dynamic_shared(ptx).into_iter().collect::<Vec<_>>();
        assert_eq!(of(ptx), ["_Z4nonePf"]);
        let alone = ptx.replace(".extern .shared .align 16 .b8 dyn[];", "");
        assert_eq!(of(&alone), ["_Z4dynkPf", "_Z4nonePf", "_Z5viafnPf"]);
        let linked = alone.replace(".version 9.0", ".version 9.0\n.extern .func _Z1hi");
        assert_eq!(of(&linked), ["_Z4dynkPf", "_Z4nonePf"]);
    }
}
