//! The messages of `opentelemetry/proto/profiles/v1development/profiles.proto`, with those of `common.proto` and
//! `resource.proto` that it holds (github.com/open-telemetry/opentelemetry-proto 1.10, Apache-2.0), written out by hand; fields
//! that this program neither reads nor writes are left out. Every index is one into a table of the [`Dictionary`].

/// `ExportProfilesServiceRequest`: what the Collector writes as one record.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Request {
    /// Profiles by whose they are.
    #[prost(message, repeated, tag = "1")]
    pub resource_profiles: Vec<ResourceProfiles>,
    /// What all of them refer to.
    #[prost(message, optional, tag = "2")]
    pub dictionary: Option<Dictionary>,
}

/// `ProfilesDictionary`: the tables of a record. The first entry of each is its zero value.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Dictionary {
    /// Program counters.
    #[prost(message, repeated, tag = "2")]
    pub location_table: Vec<Location>,
    /// Functions.
    #[prost(message, repeated, tag = "3")]
    pub function_table: Vec<Function>,
    /// All strings.
    #[prost(string, repeated, tag = "5")]
    pub string_table: Vec<String>,
    /// Attributes of profiles and samples.
    #[prost(message, repeated, tag = "6")]
    pub attribute_table: Vec<KeyValueAndUnit>,
    /// Stacks.
    #[prost(message, repeated, tag = "7")]
    pub stack_table: Vec<Stack>,
}

/// The profiles of one process, pod or machine.
#[derive(Clone, PartialEq, prost::Message)]
pub struct ResourceProfiles {
    /// Whose they are.
    #[prost(message, optional, tag = "1")]
    pub resource: Option<Resource>,
    /// Profiles by who took them.
    #[prost(message, repeated, tag = "2")]
    pub scope_profiles: Vec<ScopeProfiles>,
}

/// Whose telemetry it is.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Resource {
    /// Its attributes.
    #[prost(message, repeated, tag = "1")]
    pub attributes: Vec<KeyValue>,
}

/// The profiles that one instrumentation took.
#[derive(Clone, PartialEq, prost::Message)]
pub struct ScopeProfiles {
    /// Which one.
    #[prost(message, optional, tag = "1")]
    pub scope: Option<Scope>,
    /// The profiles.
    #[prost(message, repeated, tag = "2")]
    pub profiles: Vec<Profile>,
}

/// `InstrumentationScope`.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Scope {
    /// Its name.
    #[prost(string, tag = "1")]
    pub name: String,
    /// Its version.
    #[prost(string, tag = "2")]
    pub version: String,
    /// Its attributes.
    #[prost(message, repeated, tag = "3")]
    pub attributes: Vec<KeyValue>,
}

/// An attribute of a resource or a scope, its texts inline or by reference.
#[derive(Clone, PartialEq, prost::Message)]
pub struct KeyValue {
    /// Its name, if that is not a reference.
    #[prost(string, tag = "1")]
    pub key: String,
    /// Its value.
    #[prost(message, optional, tag = "2")]
    pub value: Option<AnyValue>,
    /// Its name as a reference.
    #[prost(int32, tag = "3")]
    pub key_strindex: i32,
}

/// A value of an attribute.
#[derive(Clone, PartialEq, prost::Message)]
pub struct AnyValue {
    /// The value; none is the empty one.
    #[prost(oneof = "Any", tags = "1, 2, 3, 4, 5, 8")]
    pub value: Option<Any>,
}

/// The kinds of values that are read.
#[derive(Clone, PartialEq, prost::Oneof)]
pub enum Any {
    /// Text.
    #[prost(string, tag = "1")]
    Text(String),
    /// True or false.
    #[prost(bool, tag = "2")]
    Bool(bool),
    /// A whole number.
    #[prost(int64, tag = "3")]
    Int(i64),
    /// A number.
    #[prost(double, tag = "4")]
    Double(f64),
    /// Several values.
    #[prost(message, tag = "5")]
    Array(Array),
    /// Text by reference.
    #[prost(int32, tag = "8")]
    Reference(i32),
}

/// `ArrayValue`.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Array {
    /// The values.
    #[prost(message, repeated, tag = "1")]
    pub values: Vec<AnyValue>,
}

/// Samples of one sample type over one window.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Profile {
    /// What the values of its samples are.
    #[prost(message, optional, tag = "1")]
    pub sample_type: Option<ValueType>,
    /// What was seen.
    #[prost(message, repeated, tag = "2")]
    pub samples: Vec<Sample>,
    /// Nanoseconds since the Unix epoch at which the window starts.
    #[prost(fixed64, tag = "3")]
    pub time_unix_nano: u64,
    /// Its length.
    #[prost(uint64, tag = "4")]
    pub duration_nano: u64,
    /// What the period is measured in.
    #[prost(message, optional, tag = "5")]
    pub period_type: Option<ValueType>,
    /// What passes between two samples.
    #[prost(int64, tag = "6")]
    pub period: i64,
    /// Its attributes.
    #[prost(int32, repeated, tag = "11")]
    pub attribute_indices: Vec<i32>,
}

/// The meaning of values.
#[derive(Clone, Copy, PartialEq, prost::Message)]
pub struct ValueType {
    /// Index of its name.
    #[prost(int32, tag = "1")]
    pub type_strindex: i32,
    /// Index of its unit's name.
    #[prost(int32, tag = "2")]
    pub unit_strindex: i32,
}

/// Observations of one stack.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Sample {
    /// The stack.
    #[prost(int32, tag = "1")]
    pub stack_index: i32,
    /// Its attributes.
    #[prost(int32, repeated, tag = "2")]
    pub attribute_indices: Vec<i32>,
    /// One value, or one a timestamp, or none: each timestamp is then one observation.
    #[prost(int64, repeated, tag = "4")]
    pub values: Vec<i64>,
    /// When, nanoseconds since the Unix epoch.
    #[prost(fixed64, repeated, tag = "5")]
    pub timestamps_unix_nano: Vec<u64>,
}

/// A stack.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Stack {
    /// Its locations, leaf first.
    #[prost(int32, repeated, tag = "1")]
    pub location_indices: Vec<i32>,
}

/// A program counter.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Location {
    /// The address.
    #[prost(uint64, tag = "2")]
    pub address: u64,
    /// Its functions, innermost (inlined) first; none if it has no symbol.
    #[prost(message, repeated, tag = "3")]
    pub lines: Vec<Line>,
}

/// A function at a location.
#[derive(Clone, Copy, PartialEq, prost::Message)]
pub struct Line {
    /// The function; 0 is none.
    #[prost(int32, tag = "1")]
    pub function_index: i32,
    /// Line in the source.
    #[prost(int64, tag = "2")]
    pub line: i64,
}

/// A function.
#[derive(Clone, Copy, PartialEq, prost::Message)]
pub struct Function {
    /// Index of its name for people.
    #[prost(int32, tag = "1")]
    pub name_strindex: i32,
    /// Index of its name for the linker.
    #[prost(int32, tag = "2")]
    pub system_name_strindex: i32,
}

/// An attribute of a profile or a sample.
#[derive(Clone, PartialEq, prost::Message)]
pub struct KeyValueAndUnit {
    /// Index of its name.
    #[prost(int32, tag = "1")]
    pub key_strindex: i32,
    /// Its value.
    #[prost(message, optional, tag = "2")]
    pub value: Option<AnyValue>,
    /// Index of its unit's name.
    #[prost(int32, tag = "3")]
    pub unit_strindex: i32,
}
