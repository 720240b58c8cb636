//! The results of a report: launches of kernels, ranges, command lists and graphs.

use std::sync::Arc;

use super::block::Block;
use super::layout::{LAYOUTS, Layout};
use super::memory::Memory;
use super::metric_values::MetricValues;
use super::strings::StringTable;
use super::wire::Slice;
use crate::error::ReadError;
use crate::launch::{Kernel, Launch, ResultKind};
use crate::metrics::Metrics;
use crate::value::Value;

/// Memory of a launch without its names and metrics, in bytes: the list of launches grows, and a
/// launch has the lists of its metrics.
const LAUNCH: usize = 2 * size_of::<Launch>() + 256;

/// Turns result messages into launches.
pub(super) struct Decoder {
    metrics: MetricValues,
    memory: Memory,
}

/// The fields of a result message, without its metrics.
#[derive(Default)]
struct Fields {
    kernel: Kernel,
    grid: Option<[u64; 3]>,
    block: Option<[u64; 3]>,
    context: Option<u32>,
    stream: Option<u32>,
    clock_locked: Option<bool>,
}

impl Decoder {
    pub(super) fn new(strings: &StringTable<'_>, mut memory: Memory) -> Result<Decoder, ReadError> {
        let metrics = MetricValues::new(strings, &mut memory)?;
        Ok(Decoder { metrics, memory })
    }

    /// Adds the launches of a block, and returns what follows them in the payload.
    pub(super) fn results<'a>(
        &mut self,
        block: &Block<'a>,
        launches: &mut Vec<Launch>,
    ) -> Result<Slice<'a>, ReadError> {
        let mut payload = block.payload;
        // Each turn takes at least four bytes, so a wrong count ends with the payload.
        for _ in 0..block.sources {
            payload.take_sized("a source")?;
        }
        for (layout, count) in LAYOUTS.iter().zip(block.results) {
            for _ in 0..count {
                let message = payload.take_sized(format_args!("a {} result", layout.name))?;
                self.memory.take(LAUNCH, message.offset())?;
                let mut launch = self.launch(layout, message)?;
                launch.process_id = block.process_id;
                launches.push(launch);
            }
        }
        Ok(payload)
    }

    fn launch(&mut self, layout: &Layout, message: Slice<'_>) -> Result<Launch, ReadError> {
        let fields = self.fields(layout, message)?;
        let (metrics, compute_capability) = self.metrics.finish(&mut self.memory)?;
        let size = |field: Option<[u64; 3]>, names| {
            field
                .or_else(|| integers(&metrics, names))
                .unwrap_or([0; 3])
        };
        let ordinal = |name| integers(&metrics, [name]).and_then(|[id]| u32::try_from(id).ok());
        Ok(Launch {
            kind: layout.kind,
            kernel: Arc::new(fields.kernel),
            grid: size(fields.grid, GRID),
            block: size(fields.block, BLOCK),
            process_id: None,
            device: ordinal("launch__device_id"),
            context: fields.context.or_else(|| ordinal("launch__context_id")),
            stream: fields.stream.or_else(|| ordinal("launch__stream_id")),
            clock_locked: fields.clock_locked,
            compute_capability,
            metrics,
            labels: Vec::new(),
        })
    }

    /// `ProfileResult { 5: KernelMangledName, 6: KernelFunctionName, 7: KernelDemangledName,
    /// 10: GridSize, 11: BlockSize, 13: MetricResults, 22: ContextID, 23: StreamID, 25: ClockStatus }`.
    /// The other kinds of results have the fields of their [`Layout`].
    fn fields(&mut self, layout: &Layout, mut message: Slice<'_>) -> Result<Fields, ReadError> {
        let is_kernel = layout.kind == ResultKind::Kernel;
        let mut fields = Fields::default();
        if !is_kernel {
            layout.name.clone_into(&mut fields.kernel.function);
        }
        while let Some(field) = message.field()? {
            let number = Some(field.number);
            match field.number {
                number if number == layout.metrics => {
                    self.metrics.read(field.bytes()?, &mut self.memory)?;
                }
                5 if is_kernel => fields.kernel.mangled = self.name(field.bytes()?)?,
                6 if is_kernel => {
                    fields.kernel.function = self.name(field.bytes()?)?.unwrap_or_default();
                }
                7 if is_kernel => fields.kernel.demangled = self.name(field.bytes()?)?,
                10 if is_kernel => fields.grid = Some(dimensions(field.bytes()?)?),
                11 if is_kernel => fields.block = Some(dimensions(field.bytes()?)?),
                _ if number == layout.context => fields.context = Some(field.integer_32()?),
                _ if number == layout.stream => fields.stream = Some(field.integer_32()?),
                _ if number == layout.clock => {
                    // `ClockStatus { 1: RequestedLock, 2: ExecutedLocked }`.
                    let locked = field.bytes()?.integer(2)?;
                    fields.clock_locked = locked.map(|locked| locked != 0);
                }
                _ => {}
            }
        }
        Ok(fields)
    }

    /// The name of a kernel. That of a library kernel may be empty.
    fn name(&mut self, text: Slice<'_>) -> Result<Option<String>, ReadError> {
        if text.bytes.is_empty() {
            return Ok(None);
        }
        let name = text.text()?;
        self.memory
            .take(name.len().saturating_add(16), text.offset())?;
        Ok(Some(name))
    }
}

/// Metrics that state grid and block where the message has no field for them.
const GRID: [&str; 3] = [
    "launch__grid_dim_x", "launch__grid_dim_y", "launch__grid_dim_z",
];
const BLOCK: [&str; 3] = [
    "launch__block_dim_x", "launch__block_dim_y", "launch__block_dim_z",
];

/// The values of these metrics, if all are integers.
fn integers<const N: usize>(metrics: &Metrics, names: [&str; N]) -> Option<[u64; N]> {
    let mut values = [0; N];
    for (value, name) in values.iter_mut().zip(names) {
        let Value::Integer(number) = metrics.get(name)?.value else {
            return None;
        };
        *value = number;
    }
    Some(values)
}

/// `Uint64x3 { 1: X, 2: Y, 3: Z }`.
fn dimensions(mut message: Slice<'_>) -> Result<[u64; 3], ReadError> {
    let mut size = [0; 3];
    while let Some(field) = message.field()? {
        match field.number {
            1 => size[0] = field.integer()?,
            2 => size[1] = field.integer()?,
            3 => size[2] = field.integer()?,
            _ => {}
        }
    }
    Ok(size)
}
