//! Why a profile cannot be written.

/// A profile that cannot be written in a format of stacks.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unencodable {
    /// Its stacks were folded away.
    #[error("the profile holds counts by function, but this format holds stacks")]
    Folded,
    /// A frame or a count that the format has no place for.
    #[error("a stack refers to a name beyond the table, or its count exceeds 2^63 - 1")]
    OutOfRange,
    /// OTLP has no number for it.
    #[error("its window begins before 1970, for which otlp has no number; pprof and delta have")]
    TooEarly,
    /// A name that a text would be read back with another meaning.
    #[error("{format} cannot hold {text:?}; pprof, otlp and delta can")]
    Text {
        /// The format, in words.
        format: &'static str,
        /// A frame, or the frames of a line.
        text: String,
    },
    /// A text of stacks has no place for what single samples are labelled with.
    #[error("{format} cannot hold the cohort {cohort:?} of single samples; pprof, otlp and delta can")]
    Cohort {
        /// The format, in words.
        format: &'static str,
        /// The cohort.
        cohort: String,
    },
    /// `perf script` prints the thread of each sample, and functions of waiting are those of their thread.
    #[error(
        "perf_script names the thread of each sample, but {function:?} is of no thread; folded, pprof, otlp and delta can hold it"
    )]
    Threadless {
        /// The function.
        function: String,
    },
    /// `perf script` prints a sample without a stack as one of a function without a symbol.
    #[error("perf_script cannot hold a sample without a stack; the other formats can")]
    Stackless,
    /// `perf script` prints an event for each sample.
    #[error(
        "perf_script prints each of its {samples} samples, more than {most} MiB of text in all; the other formats hold counts"
    )]
    TooLong {
        /// Raw samples of the profile.
        samples: u64,
        /// The largest text that is written, in MiB.
        most: usize,
    },
}
