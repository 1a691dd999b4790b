//! The messages of `profile.proto` (github.com/google/pprof, Apache-2.0), written out by hand; comments give what this
//! program relies on.

/// A whole profile.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Profile {
    /// What the values of a sample are, column by column.
    #[prost(message, repeated, tag = "1")]
    pub sample_type: Vec<ValueType>,
    /// What was seen.
    #[prost(message, repeated, tag = "2")]
    pub sample: Vec<Sample>,
    /// Binaries and libraries.
    #[prost(message, repeated, tag = "3")]
    pub mapping: Vec<Mapping>,
    /// Program counters.
    #[prost(message, repeated, tag = "4")]
    pub location: Vec<Location>,
    /// Functions.
    #[prost(message, repeated, tag = "5")]
    pub function: Vec<Function>,
    /// All strings; the first is empty.
    #[prost(string, repeated, tag = "6")]
    pub string_table: Vec<String>,
    /// Index of a pattern of frames to drop in display.
    #[prost(int64, tag = "7")]
    pub drop_frames: i64,
    /// Index of a pattern of frames to keep in display.
    #[prost(int64, tag = "8")]
    pub keep_frames: i64,
    /// Nanoseconds since the Unix epoch at which it was taken.
    #[prost(int64, tag = "9")]
    pub time_nanos: i64,
    /// Nanoseconds from then over which it was taken.
    #[prost(int64, tag = "10")]
    pub duration_nanos: i64,
    /// What the period is measured in.
    #[prost(message, optional, tag = "11")]
    pub period_type: Option<ValueType>,
    /// What passes between two samples.
    #[prost(int64, tag = "12")]
    pub period: i64,
    /// Indexes of free text.
    #[prost(int64, repeated, tag = "13")]
    pub comment: Vec<i64>,
    /// Index of the column that a viewer shows first.
    #[prost(int64, tag = "14")]
    pub default_sample_type: i64,
}

/// The meaning of a column.
#[derive(Clone, Copy, PartialEq, prost::Message)]
pub struct ValueType {
    /// Index of its name.
    #[prost(int64, tag = "1")]
    pub r#type: i64,
    /// Index of its unit's name.
    #[prost(int64, tag = "2")]
    pub unit: i64,
}

/// A stack and its values.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Sample {
    /// Locations by id, leaf first.
    #[prost(uint64, repeated, tag = "1")]
    pub location_id: Vec<u64>,
    /// One value a column.
    #[prost(int64, repeated, tag = "2")]
    pub value: Vec<i64>,
    /// More about it.
    #[prost(message, repeated, tag = "3")]
    pub label: Vec<Label>,
}

/// A key with a text or a number.
#[derive(Clone, Copy, PartialEq, prost::Message)]
pub struct Label {
    /// Index of the key.
    #[prost(int64, tag = "1")]
    pub key: i64,
    /// Index of the text, if it is one.
    #[prost(int64, tag = "2")]
    pub str: i64,
    /// The number, if it is one.
    #[prost(int64, tag = "3")]
    pub num: i64,
    /// Index of the number's unit.
    #[prost(int64, tag = "4")]
    pub num_unit: i64,
}

/// A binary or library in memory.
#[derive(Clone, Copy, PartialEq, prost::Message)]
pub struct Mapping {
    /// Its id, not 0.
    #[prost(uint64, tag = "1")]
    pub id: u64,
    /// First address.
    #[prost(uint64, tag = "2")]
    pub memory_start: u64,
    /// Address behind the last.
    #[prost(uint64, tag = "3")]
    pub memory_limit: u64,
    /// Offset in the file.
    #[prost(uint64, tag = "4")]
    pub file_offset: u64,
    /// Index of the file's name.
    #[prost(int64, tag = "5")]
    pub filename: i64,
    /// Index of its build id.
    #[prost(int64, tag = "6")]
    pub build_id: i64,
    /// Whether function names are known.
    #[prost(bool, tag = "7")]
    pub has_functions: bool,
    /// Whether file names are known.
    #[prost(bool, tag = "8")]
    pub has_filenames: bool,
    /// Whether line numbers are known.
    #[prost(bool, tag = "9")]
    pub has_line_numbers: bool,
    /// Whether inlined frames are known.
    #[prost(bool, tag = "10")]
    pub has_inline_frames: bool,
}

/// A program counter.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Location {
    /// Its id, not 0.
    #[prost(uint64, tag = "1")]
    pub id: u64,
    /// Where it is mapped.
    #[prost(uint64, tag = "2")]
    pub mapping_id: u64,
    /// The address.
    #[prost(uint64, tag = "3")]
    pub address: u64,
    /// Its functions, innermost (inlined) first; none if it has no symbol.
    #[prost(message, repeated, tag = "4")]
    pub line: Vec<Line>,
    /// Whether symbols of folded functions were merged.
    #[prost(bool, tag = "5")]
    pub is_folded: bool,
}

/// A function at a location.
#[derive(Clone, Copy, PartialEq, prost::Message)]
pub struct Line {
    /// Which function; 0 is none.
    #[prost(uint64, tag = "1")]
    pub function_id: u64,
    /// Line in the source.
    #[prost(int64, tag = "2")]
    pub line: i64,
    /// Column in the source.
    #[prost(int64, tag = "3")]
    pub column: i64,
}

/// A function.
#[derive(Clone, Copy, PartialEq, prost::Message)]
pub struct Function {
    /// Its id, not 0.
    #[prost(uint64, tag = "1")]
    pub id: u64,
    /// Index of its name for people.
    #[prost(int64, tag = "2")]
    pub name: i64,
    /// Index of its name for the linker.
    #[prost(int64, tag = "3")]
    pub system_name: i64,
    /// Index of its source file.
    #[prost(int64, tag = "4")]
    pub filename: i64,
    /// Line at which it begins.
    #[prost(int64, tag = "5")]
    pub start_line: i64,
}
