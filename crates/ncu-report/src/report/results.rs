//! The results of a report: kernels, ranges, command lists, graphs.

use std::sync::Arc;

use super::source::{Role, Sources};
use super::{Block, StringTable};
use crate::counter::{Chip, Unit, unit_of};
use crate::error::ReadError;
use crate::wire::Slice;
use crate::{Kernel, Launch, Measurement, Metrics, ResultKind, Value};

/// How many bytes of memory one byte of the file may turn into. Real reports stay below 2; a
/// crafted one, full of empty results, is refused before it fills the machine.
pub(super) const MEMORY_PER_BYTE: usize = 16;

/// The fields by which a result message of one kind differs from another.
struct Layout {
    kind: ResultKind,
    name: &'static str,
    metrics: u64,
    context: Option<u64>,
    stream: Option<u64>,
    clock: Option<u64>,
}

/// Attributes of the device, which every result carries among its metrics.
const COMPUTE_CAPABILITY_MAJOR: &str = "device__attribute_compute_capability_major";
const COMPUTE_CAPABILITY_MINOR: &str = "device__attribute_compute_capability_minor";

/// In the order in which a payload holds them.
const LAYOUTS: [Layout; 4] = [
    Layout {
        kind: ResultKind::Kernel,
        name: "kernel",
        metrics: 13,
        context: Some(22),
        stream: Some(23),
        clock: Some(25),
    },
    Layout {
        kind: ResultKind::Range,
        name: "range",
        metrics: 4,
        context: None,
        stream: None,
        clock: None,
    },
    Layout {
        kind: ResultKind::CommandList,
        name: "cmdlist",
        metrics: 4,
        context: None,
        stream: None,
        clock: None,
    },
    Layout {
        kind: ResultKind::Graph,
        name: "graph",
        metrics: 4,
        context: Some(11),
        stream: Some(12),
        clock: Some(13),
    },
];

/// Turns result messages into launches.
pub(super) struct Decoder<'a> {
    names: Vec<Arc<str>>,
    /// For each `NameId` the place of its name in sorted order.
    rank: Vec<u32>,
    major: Option<u32>,
    minor: Option<u32>,
    /// The unit of each `NameId` on the chip that was seen last.
    units: Vec<Option<Unit>>,
    units_chip: Chip,
    memory_left: usize,
    /// Kept between results for its memory: rank, `NameId`, value.
    found: Vec<(u32, u32, Value)>,
    /// The names of the result before, which mostly are those of the next one too.
    last_ranks: Vec<u32>,
    last_names: Arc<[Arc<str>]>,
    /// What the lists of each `NameId` say of single instructions.
    roles: Vec<Option<Role>>,
    sources: Sources<'a>,
    /// The lists of the result that is being read, kept between results for its memory.
    lists: Vec<(Role, Slice<'a>)>,
}

impl<'a> Decoder<'a> {
    pub(super) fn new(
        strings: &StringTable<'_>,
        sources: Sources<'a>,
        file_size: usize,
    ) -> Decoder<'a> {
        let names: Vec<Arc<str>> = strings
            .strings
            .iter()
            .map(|name| Arc::from(String::from_utf8_lossy(name).as_ref()))
            .collect();
        let mut order: Vec<u32> = (0..).take(names.len()).collect();
        order.sort_by(|&a, &b| names[a as usize].cmp(&names[b as usize]));
        let mut rank = vec![0; names.len()];
        let mut place = 0;
        for pair in order.windows(2) {
            // A name that stands in the table twice is one name.
            place += u32::from(names[pair[0] as usize] != names[pair[1] as usize]);
            rank[pair[1] as usize] = place;
        }
        let id_of = |name: &str| {
            (0_u32..)
                .zip(&names)
                .find(|(_, candidate)| ***candidate == *name)
                .map(|(id, _)| id)
        };
        let roles = names.iter().map(|name| Role::of(name)).collect();
        Decoder {
            major: id_of(COMPUTE_CAPABILITY_MAJOR),
            minor: id_of(COMPUTE_CAPABILITY_MINOR),
            units: vec![None; names.len()],
            units_chip: Chip::Other,
            rank,
            names,
            // A small file may have overheads that a factor alone would not allow.
            memory_left: file_size
                .saturating_mul(MEMORY_PER_BYTE)
                .saturating_add(1 << 16),
            found: Vec::new(),
            last_ranks: Vec::new(),
            last_names: Arc::default(),
            roles,
            sources,
            lists: Vec::new(),
        }
    }

    fn spend(&mut self, bytes: usize, offset: usize) -> Result<(), ReadError> {
        spend(&mut self.memory_left, bytes, offset)
    }

    pub(super) fn results(
        &mut self,
        block: &Block<'a>,
        tolerant: bool,
        launches: &mut Vec<Launch>,
    ) -> Result<(), ReadError> {
        let mut payload = block.payload;
        // Each turn consumes at least four bytes, so a false count ends at the payload's end.
        for _ in 0..block.sources {
            payload.take_sized("a source")?;
        }
        let counts = [
            block.kernels,
            block.ranges,
            block.command_lists,
            block.graphs,
        ];
        for (layout, count) in LAYOUTS.iter().zip(counts) {
            for _ in 0..count {
                let message = payload.take_sized(format_args!("a {} result", layout.name))?;
                self.spend(size_of::<Launch>(), message.offset)?;
                launches.push(self.result(layout, message, block.process_id)?);
            }
        }
        // A newer format may add results of a new kind behind those that are known here.
        if !payload.bytes.is_empty() && !tolerant {
            return Err(ReadError::report(
                payload.offset,
                format!(
                    "{} bytes follow the last result that the block's header counts",
                    payload.bytes.len()
                ),
            ));
        }
        Ok(())
    }

    fn result(
        &mut self,
        layout: &Layout,
        mut message: Slice<'a>,
        process_id: Option<u32>,
    ) -> Result<Launch, ReadError> {
        let is_kernel = layout.kind == ResultKind::Kernel;
        let mut launch = Launch {
            kind: layout.kind,
            kernel: Kernel::default(),
            grid: [0; 3],
            block: [0; 3],
            process_id,
            device: None,
            context: None,
            stream: None,
            clock_locked: None,
            compute_capability: None,
            metrics: Metrics::new(),
            labels: Vec::new(),
            source: None,
        };
        let mut reference = None;
        let (mut grid, mut block) = (None, None);
        self.found.clear();
        self.lists.clear();
        while let Some(field) = message.field()? {
            match field.number {
                number if number == layout.metrics => self.metric(field.bytes()?)?,
                5 if is_kernel => launch.kernel.mangled = name(field.bytes()?),
                6 if is_kernel => launch.kernel.function = field.bytes()?.text(),
                7 if is_kernel => launch.kernel.demangled = name(field.bytes()?),
                10 if is_kernel => grid = Some(dimensions(field.bytes()?)?),
                15 if is_kernel => reference = source_reference(field.bytes()?)?,
                11 if is_kernel => block = Some(dimensions(field.bytes()?)?),
                number if Some(number) == layout.context => {
                    launch.context = Some(field.integer_32()?);
                }
                number if Some(number) == layout.stream => {
                    launch.stream = Some(field.integer_32()?);
                }
                number if Some(number) == layout.clock => {
                    launch.clock_locked = clock_locked(field.bytes()?)?;
                }
                _ => {}
            }
        }
        if !self.lists.is_empty() {
            let left = &mut self.memory_left;
            launch.source = self
                .sources
                .counters(reference, &self.lists, |bytes, offset| {
                    spend(left, bytes, offset)
                })?;
        }
        launch.compute_capability = self.compute_capability();
        launch.metrics = self.measurements(launch.chip());
        if !is_kernel {
            launch.kernel.function = layout.name.to_owned();
        }
        let attribute = |name: &str| match launch.metrics.get(name)?.value {
            Value::Integer(number) => Some(number),
            _ => None,
        };
        let small = |name: &str| attribute(name).and_then(|number| u32::try_from(number).ok());
        let size = |x, y, z| match (attribute(x), attribute(y), attribute(z)) {
            (Some(x), Some(y), Some(z)) => [x, y, z],
            _ => [0; 3],
        };
        launch.grid = grid.unwrap_or_else(|| {
            size(
                "launch__grid_dim_x",
                "launch__grid_dim_y",
                "launch__grid_dim_z",
            )
        });
        launch.block = block.unwrap_or_else(|| {
            size(
                "launch__block_dim_x",
                "launch__block_dim_y",
                "launch__block_dim_z",
            )
        });
        launch.device = small("launch__device_id");
        launch.context = launch.context.or_else(|| small("launch__context_id"));
        launch.stream = launch.stream.or_else(|| small("launch__stream_id"));
        Ok(launch)
    }

    /// `ProfileMetricResult { 1: NameId, 2: MetricValue, 3: per-instance values }`. A metric of
    /// which only instances were taken has no scalar.
    fn metric(&mut self, mut message: Slice<'a>) -> Result<(), ReadError> {
        let offset = message.offset;
        let mut id = None;
        let mut value = Value::Missing;
        let instances = message;
        let mut has_instances = false;
        while let Some(field) = message.field()? {
            match field.number {
                3 => has_instances = true,
                1 => id = Some(field.integer()?),
                2 => value = scalar(field.bytes()?)?,
                _ => {}
            }
        }
        let id = id.and_then(|id| u32::try_from(id).ok()).ok_or_else(|| {
            ReadError::report(offset, "expected the NameId of a metric, found none")
        })?;
        let Some(&rank) = self.rank.get(id as usize) else {
            return Err(ReadError::report(
                offset,
                format!(
                    "a metric has the NameId {id}, the string table ends at {}",
                    self.rank.len()
                ),
            ));
        };
        self.spend(size_of::<(Arc<str>, Measurement)>(), offset)?;
        self.found.push((rank, id, value));
        if let (true, Some(role)) = (has_instances, &self.roles[id as usize]) {
            let mut fields = instances;
            while let Some(field) = fields.field()? {
                if field.number == 3 {
                    self.lists.push((role.clone(), field.bytes()?));
                }
            }
        }
        Ok(())
    }

    /// Of the device that the metrics found last were measured on.
    fn compute_capability(&self) -> Option<(u64, u64)> {
        let attribute = |id: Option<u32>| {
            self.found.iter().find_map(|(_, found, value)| match value {
                Value::Integer(number) if Some(*found) == id => Some(*number),
                _ => None,
            })
        };
        Some((attribute(self.major)?, attribute(self.minor)?))
    }

    /// The metrics found last, under their names and with their units on `chip`.
    fn measurements(&mut self, chip: Chip) -> Metrics {
        if chip != self.units_chip {
            self.units_chip = chip;
            self.units.fill(None);
        }
        // Some metrics come twice, with the same value.
        self.found.sort_by_key(|(rank, ..)| *rank);
        self.found.dedup_by_key(|(rank, ..)| *rank);
        let ranks = self.found.iter().map(|(rank, ..)| *rank);
        if !ranks.clone().eq(self.last_ranks.iter().copied()) {
            self.last_ranks = ranks.collect();
            let names = self
                .found
                .iter()
                .map(|(_, id, _)| Arc::clone(&self.names[*id as usize]));
            self.last_names = names.collect();
        }
        let (names, units) = (&self.names, &mut self.units);
        let values = self.found.drain(..).map(|(_, id, value)| {
            let unit =
                *units[id as usize].get_or_insert_with(|| unit_of(chip, &names[id as usize]));
            Measurement { value, unit }
        });
        Metrics::from_sorted(Arc::clone(&self.last_names), values)
    }
}

/// Takes what something costs in memory from what is left.
fn spend(left: &mut usize, bytes: usize, offset: usize) -> Result<(), ReadError> {
    *left = left.checked_sub(bytes).ok_or_else(|| {
        ReadError::report(
            offset,
            format!(
                "the results so far need more than {MEMORY_PER_BYTE} times the memory of the \
                 file, as no real report does"
            ),
        )
    })?;
    Ok(())
}

/// `ProfileMetricValue { 1: string, 2: float, 3: double, 4: uint32, 5: uint64 }`.
pub(super) fn scalar(mut message: Slice<'_>) -> Result<Value, ReadError> {
    let mut value = Value::Missing;
    let finite = |number: f64| match number.is_finite() {
        true => Value::Float(number),
        false => Value::Missing,
    };
    while let Some(field) = message.field()? {
        match field.number {
            1 => value = Value::Text(field.bytes()?.text().into()),
            2 => value = finite(f64::from(field.float()?)),
            3 => value = finite(field.double()?),
            4 => value = Value::Integer(u64::from(field.integer_32()?)),
            5 => value = Value::Integer(field.integer()?),
            _ => {}
        }
    }
    Ok(value)
}

/// A name of a kernel; library kernels may have an empty one.
fn name(text: Slice<'_>) -> Option<String> {
    (!text.bytes.is_empty()).then(|| text.text())
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

/// `{ 1: Reference }` of the code that ran.
fn source_reference(mut message: Slice<'_>) -> Result<Option<u64>, ReadError> {
    let mut reference = None;
    while let Some(field) = message.field()? {
        if field.number == 1 {
            reference = Some(field.integer()?);
        }
    }
    Ok(reference)
}

/// `ClockStatus { 1: RequestedLock, 2: ExecutedLocked }`.
fn clock_locked(mut message: Slice<'_>) -> Result<Option<bool>, ReadError> {
    let mut locked = None;
    while let Some(field) = message.field()? {
        if field.number == 2 {
            locked = Some(field.integer()? != 0);
        }
    }
    Ok(locked)
}
