//! What a file says of its samples, before it is decided which of them are read and what names their frames.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::Arc;

use fleetdiff_schemas::profile::Stack;
use fleetdiff_schemas::rejected::{Reason, Rejection};
use fleetdiff_schemas::time::TimeRange;

use crate::Options;
use crate::names::{Names, Naming};

type Map<K> = HashMap<K, u32, foldhash::fast::RandomState>;

/// What is known of a frame, by places in the tables of [`Observed`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Frame {
    /// Its name as it is counted where nothing else is asked for.
    pub(super) name: u32,
    /// The function alone, as `--symbols` and `--parent` know it.
    pub(super) symbol: u32,
    pub(super) dso: Option<u32>,
    pub(super) line: Option<u32>,
    pub(super) kind: FrameKind,
}

/// What kind of frame it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) enum FrameKind {
    /// A function.
    #[default]
    Function,
    /// A function without a symbol; its name is a stand-in.
    Nameless,
    /// A function that was inlined into its caller, so that it is of the caller's file.
    Inlined,
    /// The name of the thread, as the root of its stacks.
    Thread,
}

/// What a decoder knows of a frame.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Said<'a> {
    /// The function without what its name has of marks; the name itself if there are none.
    pub(crate) symbol: Option<&'a str>,
    /// Program or library, with its path.
    pub(crate) dso: Option<&'a str>,
    /// `file:line`.
    pub(crate) line: Option<&'a str>,
    pub(crate) kind: FrameKind,
}

/// What is known of a sample beside its stack.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct About {
    /// The thread's name, as a place in the table of texts.
    pub(crate) comm: Option<u32>,
    pub(crate) pid: Option<i64>,
    pub(crate) tid: Option<i64>,
    pub(crate) cpu: Option<i64>,
    /// When it was taken, in nanoseconds of the file's own clock.
    pub(crate) at: Option<i64>,
    /// What it weighs: bytes, nanoseconds, a period.
    pub(crate) weight: Option<u64>,
}

/// Samples of one stack that are alike in all that is known of them.
#[derive(Clone, Debug)]
pub(crate) struct Sample {
    /// Its frames are places in the table of frames.
    pub(super) stack: Stack,
    pub(super) about: About,
}

/// All that was read of a profile.
pub(crate) struct Observed<'n> {
    pub(super) names: Names<'n>,
    pub(super) frames: Vec<Frame>,
    places: Map<Frame>,
    pub(super) texts: Vec<Arc<str>>,
    text_places: Map<Arc<str>>,
    pub(super) samples: Vec<Sample>,
    /// When the first and the last sample was taken, those that were not kept among them.
    pub(super) span: Option<[i64; 2]>,
    /// Whether it matters when each sample was taken; else those of one stack may be one entry.
    pub(crate) times_wanted: bool,
    /// What weights are, as `alloc_space/bytes` or `cycles`.
    pub(crate) unit: Option<Arc<str>>,
    /// The window that the file itself names.
    pub(crate) window: Option<TimeRange>,
    /// By what every count was divided, for it was taken for a period.
    pub(crate) period: Option<u64>,
    most: usize,
    frames_left: usize,
}

impl<'n> Observed<'n> {
    /// Nothing yet. As much is held as a decoder of stacks would hold ([`super::super::collected`]).
    pub(crate) fn new(naming: &'n mut Naming, options: &Options) -> Self {
        Self {
            names: Names::with_capacity(naming, 0),
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
            most: options.max_bytes / 32,
            frames_left: options.max_bytes / 2,
        }
    }

    /// The place of a frame.
    ///
    /// # Errors
    /// `too_large` if there are too many.
    pub(crate) fn frame(&mut self, name: &str, said: Said<'_>) -> Result<u32, Rejection> {
        let name = self.names.index_of(name);
        let symbol = match said.symbol {
            Some(symbol) => self.text(crate::names::normalised(symbol).as_ref())?,
            None => {
                let name = self.names.name(name);
                self.text_of(name)?
            }
        };
        let dso = said.dso.map(|dso| self.text(dso)).transpose()?;
        let line = said.line.map(|line| self.text(line)).transpose()?;
        self.place(Frame { name, symbol, dso, line, kind: said.kind })
    }

    /// The place of a function by the name that it is counted under.
    pub(crate) fn counted(&mut self, name: &Arc<str>) -> Result<u32, Rejection> {
        let index = self.names.index_of_counted(name);
        let symbol = self.text_of(Arc::clone(name))?;
        self.place(Frame { name: index, symbol, dso: None, line: None, kind: FrameKind::Function })
    }

    /// Puts a name into the table of names, whether a frame has it or not.
    pub(crate) fn know(&mut self, name: &str) {
        self.names.index_of(name);
    }

    /// The place of a frame that is like another but for the file or line that it is of.
    pub(crate) fn with_line(&mut self, frame: u32, line: &str) -> Result<u32, Rejection> {
        let line = Some(self.text(line)?);
        match super::at(&self.frames, frame).copied() {
            Some(known) => self.place(Frame { line, ..known }),
            None => Ok(frame),
        }
    }

    fn place(&mut self, frame: Frame) -> Result<u32, Rejection> {
        let next = self.frames.len();
        if next >= self.most || self.names.len() > self.most {
            return Err(too_many("frames"));
        }
        Ok(place_of(&mut self.places, frame, next, || self.frames.push(frame)))
    }

    /// The place of a text.
    pub(crate) fn text(&mut self, text: &str) -> Result<u32, Rejection> {
        if let Some(place) = self.text_places.get(text) {
            return Ok(*place);
        }
        self.text_of(text.into())
    }

    fn text_of(&mut self, text: Arc<str>) -> Result<u32, Rejection> {
        let next = self.texts.len();
        if next >= self.most {
            return Err(too_many("texts"));
        }
        Ok(place_of(&mut self.text_places, Arc::clone(&text), next, || self.texts.push(text)))
    }

    /// Adds so many samples of a stack, root first; none leave no trace.
    ///
    /// # Errors
    /// `too_large` if there are too many stacks or frames.
    pub(crate) fn push(&mut self, mut stack: Stack, about: About) -> Result<(), Rejection> {
        if stack.count == 0 {
            return Ok(());
        }
        if self.samples.len() >= self.most {
            return Err(too_many("stacks"));
        }
        self.frames_left = self.frames_left.checked_sub(stack.frames.len()).ok_or_else(|| too_many("frames"))?;
        self.home(&mut stack.frames)?;
        if let Some(at) = about.at {
            let [first, last] = self.span.unwrap_or([at, at]);
            self.span = Some([first.min(at), last.max(at)]);
        }
        self.samples.push(Sample { stack, about });
        Ok(())
    }

    /// Gives inlined frames the program or library of the frame that they were inlined into.
    fn home(&mut self, frames: &mut [u32]) -> Result<(), Rejection> {
        let mut dso = None;
        for place in frames {
            let Some(frame) = super::at(&self.frames, *place).copied() else { continue };
            if frame.kind == FrameKind::Inlined {
                *place = self.place(Frame { dso, ..frame })?;
            } else {
                dso = frame.dso;
            }
        }
        Ok(())
    }

    /// Divides every count by a period; what was written is the weight.
    pub(crate) fn divide(&mut self, period: u64) {
        for sample in &mut self.samples {
            sample.about.weight = Some(sample.stack.count);
            sample.stack.count /= period.max(1);
        }
        (self.unit, self.period) = (Some("period".into()), Some(period));
    }

    /// How many bytes of names may be made of what was read: as many as a record may have.
    pub(super) fn room(&self) -> usize {
        self.most.saturating_mul(32)
    }

    /// How many samples there are.
    pub(crate) fn len(&self) -> usize {
        self.samples.len()
    }

    /// Keeps the samples for whose place this holds.
    pub(crate) fn keep(&mut self, mut wanted: impl FnMut(usize) -> bool) {
        let mut places = 0..;
        self.samples.retain(|_| places.next().is_some_and(&mut wanted));
    }

    /// Takes back all samples but the first so many.
    pub(crate) fn cut_back(&mut self, samples: usize) {
        self.samples.truncate(samples);
    }
}

fn place_of<K: Eq + Hash>(places: &mut Map<K>, key: K, next: usize, add: impl FnOnce()) -> u32 {
    // NB: there are fewer than 2^32, for a file is smaller than that; the last is a ceiling never reached.
    *places.entry(key).or_insert_with(|| {
        add();
        u32::try_from(next).unwrap_or(u32::MAX)
    })
}

#[cold]
fn too_many(what: &str) -> Rejection {
    Rejection::new(Reason::TooLarge, format!("too many {what} to hold"))
}
