//! All that a file says of its samples, before it is decided which of them are read and what names their frames.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::Arc;

use fleetdiff_schemas::profile::Stack;
use fleetdiff_schemas::rejected::Rejection;
use fleetdiff_schemas::time::TimeRange;

use crate::budget::{ALLOCATION, Budget};
use crate::names::{Names, Naming};
use crate::sink::{FrameDetails, FrameKind, SampleDetails, SampleSink};
use crate::ticks::FoundPeriod;

/// What a frame and a text are counted as: each stands in a list and in a map.
const FRAME: usize = 192;
const TEXT: usize = 96;

type Map<K> = HashMap<K, u32, foldhash::fast::RandomState>;

/// What is known of a frame, by places in the tables of [`Observed`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Frame {
    /// Its name as it is counted where nothing else is asked for.
    pub(crate) name: u32,
    /// The function alone, as `--symbols` and `--parent` know it.
    pub(crate) symbol: u32,
    pub(crate) dso: Option<u32>,
    pub(crate) line: Option<u32>,
    pub(crate) kind: FrameKind,
}

/// Samples of one stack of which the same is known.
#[derive(Clone, Debug)]
pub(crate) struct Sample {
    /// Its frames are places in the table of frames.
    pub(crate) stack: Stack,
    pub(crate) details: SampleDetails,
}

/// What counts were divided by though nobody said so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Divisor {
    /// A number that all counts are multiples of, which was taken for a period.
    Number(u64),
    /// A time that all values are multiples of, which was taken for the tick.
    Time(FoundPeriod),
}

/// All that was read of a profile.
pub(crate) struct Observed<'n> {
    pub(crate) names: Names<'n>,
    pub(crate) frames: Vec<Frame>,
    places: Map<Frame>,
    pub(crate) texts: Vec<Arc<str>>,
    text_places: Map<Arc<str>>,
    pub(crate) samples: Vec<Sample>,
    /// When the first and the last sample was taken, those that were not kept among them.
    pub(crate) span: Option<[i64; 2]>,
    /// Whether it matters when each sample was taken; else those of one stack may be one entry.
    pub(crate) times_wanted: bool,
    /// What weights are, as `alloc_space/bytes` or `cycles`.
    pub(crate) unit: Option<Arc<str>>,
    /// The window that the file itself names.
    pub(crate) window: Option<TimeRange>,
    /// By what every count was divided, if nobody said so.
    pub(crate) period: Option<Divisor>,
    /// Samples that were left out, since the file does not say of what stacks they are.
    pub(crate) lost: u64,
    pub(crate) budget: Budget,
}

impl<'n> Observed<'n> {
    /// Nothing yet; what is held is charged to this budget.
    pub(crate) fn new(naming: &'n mut Naming, budget: &Budget) -> Self {
        Self {
            names: Names::new(naming, budget),
            frames: Vec::new(),
            places: Map::default(),
            texts: Vec::new(),
            text_places: Map::default(),
            samples: Vec::new(),
            span: None,
            times_wanted: false,
            unit: None,
            window: None,
            period: None,
            lost: 0,
            budget: budget.clone(),
        }
    }

    /// The place of a function by the name that it is counted under.
    pub(crate) fn counted(&mut self, name: &Arc<str>) -> Result<u32, Rejection> {
        let index = self.names.index_of_counted(name)?;
        let symbol = self.text_of(Arc::clone(name))?;
        self.place(Frame { name: index, symbol, dso: None, line: None, kind: FrameKind::Function })
    }

    /// Puts a name into the table of names, whether a frame has it or not.
    pub(crate) fn know(&mut self, name: &str) -> Result<(), Rejection> {
        self.names.index_of(name).map(|_| ())
    }

    fn place(&mut self, frame: Frame) -> Result<u32, Rejection> {
        let next = self.frames.len();
        if !self.places.contains_key(&frame) {
            self.budget.take(FRAME)?;
        }
        Ok(place_of(&mut self.places, frame, next, || self.frames.push(frame)))
    }

    fn text_of(&mut self, text: Arc<str>) -> Result<u32, Rejection> {
        let next = self.texts.len();
        if !self.text_places.contains_key(&text) {
            self.budget.take(TEXT + text.len())?;
        }
        Ok(place_of(&mut self.text_places, Arc::clone(&text), next, || self.texts.push(text)))
    }

    /// Gives inlined frames the program or library of the frame that they were inlined into.
    fn home(&mut self, frames: &mut [u32]) -> Result<(), Rejection> {
        let mut dso = None;
        for place in frames {
            let Some(frame) = at(&self.frames, *place).copied() else { continue };
            if frame.kind == FrameKind::Inlined {
                *place = self.place(Frame { dso, ..frame })?;
            } else {
                dso = frame.dso;
            }
        }
        Ok(())
    }
}

impl SampleSink for Observed<'_> {
    const KEEPS_DETAILS: bool = true;

    fn wants_times(&self) -> bool {
        self.times_wanted
    }

    fn frame(&mut self, name: &str, details: FrameDetails<'_>) -> Result<u32, Rejection> {
        let name = self.names.index_of(name)?;
        let symbol = match details.symbol {
            Some(symbol) => {
                let symbol = self.names.normalised(symbol);
                self.text(symbol.as_ref())?
            }
            None => {
                let name = self.names.name(name);
                self.text_of(name)?
            }
        };
        let dso = details.dso.map(|dso| self.text(dso)).transpose()?;
        let line = details.line.map(|line| self.text(line)).transpose()?;
        self.place(Frame { name, symbol, dso, line, kind: details.kind })
    }

    fn frame_at_line(&mut self, frame: u32, line: &str) -> Result<u32, Rejection> {
        let line = Some(self.text(line)?);
        match at(&self.frames, frame).copied() {
            Some(known) => self.place(Frame { line, ..known }),
            None => Ok(frame),
        }
    }

    fn text(&mut self, text: &str) -> Result<u32, Rejection> {
        if let Some(place) = self.text_places.get(text) {
            return Ok(*place);
        }
        self.text_of(text.into())
    }

    fn sample(&mut self, mut stack: Stack, details: SampleDetails) -> Result<(), Rejection> {
        if stack.count == 0 {
            return Ok(());
        }
        self.budget.take(ALLOCATION)?;
        self.home(&mut stack.frames)?;
        if let Some(at) = details.at {
            let [first, last] = self.span.unwrap_or([at, at]);
            self.span = Some([first.min(at), last.max(at)]);
        }
        self.budget.push(&mut self.samples, Sample { stack, details })
    }

    fn len(&self) -> usize {
        self.samples.len()
    }

    fn keep(&mut self, mut wanted: impl FnMut(usize) -> bool) {
        let mut places = 0..;
        self.samples.retain(|_| places.next().is_some_and(&mut wanted));
    }

    fn cut_back(&mut self, samples: usize) {
        self.samples.truncate(samples);
    }

    fn weighed_in(&mut self, unit: &str) {
        self.unit = Some(unit.into());
    }

    fn lost(&mut self, samples: u64) {
        self.lost = self.lost.saturating_add(samples);
    }

    fn ticked(&mut self, found: FoundPeriod) {
        self.period = Some(Divisor::Time(found));
    }

    fn divide(&mut self, period: u64) -> bool {
        for sample in &mut self.samples {
            sample.details.weight = Some(sample.stack.count);
            sample.stack.count /= period.max(1);
        }
        (self.unit, self.period) = (Some("period".into()), Some(Divisor::Number(period)));
        true
    }
}

/// Something of a table by its place.
pub(crate) fn at<T>(table: &[T], place: u32) -> Option<&T> {
    usize::try_from(place).ok().and_then(|place| table.get(place))
}

fn place_of<K: Eq + Hash>(places: &mut Map<K>, key: K, next: usize, add: impl FnOnce()) -> u32 {
    // NB: there are fewer than 2^32, for a file is smaller than that; the last is a ceiling never reached.
    *places.entry(key).or_insert_with(|| {
        add();
        u32::try_from(next).unwrap_or(u32::MAX)
    })
}
