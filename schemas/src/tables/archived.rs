//! The columns of the archive: `counts`, `functions` and `call_trees`.

use std::sync::Arc;

use super::cells::blank_cell;
use super::{Column, Columns, TableRow, columns_of};
use crate::profile::ProfileType;
use crate::rows::{CallTreeRow, FunctionNameRow, PodCountsRow, Span};
use crate::time::Nanos;

const NO_SPAN: Span = Span { start_at: Nanos(0), end_at: Nanos(0) };

impl TableRow for PodCountsRow {
    const TABLE: &'static str = "counts";
    const SORTED_BY: &'static [&'static str] =
        &["service", "profile_type", "region", "cohort", "build", "pod", "hardware", "span_start_at"];

    fn columns() -> &'static [Column<Self>] {
        static COLUMNS: Columns<PodCountsRow> = Columns::new(|| {
            columns_of!(PodCountsRow:
                "span_start_at": span.start_at => "Start of the hops that the row sums up, in event time. Files are filed by it.",
                "span_end_at": span.end_at =>
                    "Their end. A late profile is in the hop at which it was counted, as in `ledger`.",
                "service": service => "The service.",
                "profile_type": profile_type => "What the profiler observed.",
                "region": cell.region => "Region of the cell; `*` where the configuration merges regions.",
                "cohort": cell.cohort => "Cohort of the cell; `*` where the configuration merges cohorts.",
                "build": build => "Build of the pod; `_overflow` beyond the limits of its service, as `pod`.",
                "hardware": hardware => "Kind of machine.",
                "pod": pod => "The pod.",
                "samples" in "samples": samples => "Samples that were counted.",
                "requests" in "requests": requests => "Requests that the pod served meanwhile; null if unknown.",
                "value": value => "What the samples stand for: ns in profiles of time, bytes in those of memory; null if the profiles do not say it.",
                "functions": functions => "Functions with samples, ascending: their names are in `functions`. The lists below have one element for each.",
                "self" in "samples": own => "Samples whose leaf is the function.",
                "total" in "samples": total => "Samples with the function anywhere on the stack, each counted once.",
                "self_value": own_value => "What the samples of `self` stand for, as `value`; an empty list if that is not known function by function.",
                "total_value": total_value => "The same of `total`.",
            )
        });
        &COLUMNS
    }

    fn blank() -> Self {
        Self {
            span: NO_SPAN,
            service: "".into(),
            profile_type: ProfileType::Cpu,
            cell: blank_cell(),
            build: "".into(),
            hardware: "".into(),
            pod: "".into(),
            samples: 0,
            requests: None,
            value: None,
            functions: Vec::new(),
            own: Vec::new(),
            total: Vec::new(),
            own_value: Vec::new(),
            total_value: Vec::new(),
        }
    }

    fn filed_at(&self) -> Nanos {
        self.span.start_at
    }
}

impl TableRow for FunctionNameRow {
    const TABLE: &'static str = "functions";
    const SORTED_BY: &'static [&'static str] = &["name", "function"];

    fn columns() -> &'static [Column<Self>] {
        static COLUMNS: Columns<FunctionNameRow> = Columns::new(|| {
            columns_of!(FunctionNameRow:
                "span_start_at": span.start_at => "Start of the hops in which the function has samples. Files are filed by it.",
                "span_end_at": span.end_at => "Their end.",
                "function": function =>
                    "The function in `counts` and `call_trees`: the xxh3-64 hash (seed 0) of its name, as a signed number. It is the same in all files.",
                "name": name => "Its name.",
            )
        });
        &COLUMNS
    }

    fn blank() -> Self {
        Self { span: NO_SPAN, function: 0, name: Arc::from("") }
    }

    fn filed_at(&self) -> Nanos {
        self.span.start_at
    }
}

impl TableRow for CallTreeRow {
    const TABLE: &'static str = "call_trees";
    const SORTED_BY: &'static [&'static str] =
        &["service", "profile_type", "region", "cohort", "build", "span_start_at"];

    fn columns() -> &'static [Column<Self>] {
        static COLUMNS: Columns<CallTreeRow> = Columns::new(|| {
            columns_of!(CallTreeRow:
                "span_start_at": span.start_at => "Start of the hops that the row sums up, in event time. Files are filed by it.",
                "span_end_at": span.end_at => "Their end.",
                "service": service => "The service.",
                "profile_type": profile_type => "What the profiler observed.",
                "region": cell.region => "Region of the cell; `*` where the configuration merges regions.",
                "cohort": cell.cohort => "Cohort of the cell; `*` where the configuration merges cohorts.",
                "build": build => "The build.",
                "nodes": nodes =>
                    "Call paths, ascending: a hash of their functions, root first, the same in all files. The lists below have one element for each.",
                "parents": parents => "The path without its last function; 0 if that is empty.",
                "functions": functions => "The last function of the path.",
                "samples" in "samples": samples => "Samples whose stack is the whole path; 0 if longer ones only begin with it.",
            )
        });
        &COLUMNS
    }

    fn blank() -> Self {
        Self {
            span: NO_SPAN,
            service: "".into(),
            profile_type: ProfileType::Cpu,
            cell: blank_cell(),
            build: "".into(),
            nodes: Vec::new(),
            parents: Vec::new(),
            functions: Vec::new(),
            samples: Vec::new(),
        }
    }

    fn filed_at(&self) -> Nanos {
        self.span.start_at
    }
}
