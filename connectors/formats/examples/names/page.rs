//! The page itself: one section per runtime, one line per rule.

use fleetdiff_formats::names::{RUNTIMES, Rule, rules};

const INTRODUCTION: &str = "\
<!-- Generated: cargo run --release -p fleetdiff-formats --example names > docs/names.md -->
# Names of functions: every rule
A function is identified by its name, so a name must not contain what changes though the function does not: a line, a hash, the number that a process
gave to a class. The rules below take that off, in every format except `delta`, for `replay`, `watch` and `diff`. `dataflow.rewrites`
comes after them ([formats.md](formats.md#names)).

- All rules are applied, in the order of this page, until none changes the name.
- `dataflow.name_rules_off` (`--name-rules-off`) switches rules off by their names, or all rules of a runtime: `[\"jvm-lambda\", \"go\"]`.
- Names that become the same are one function. Functions that one build keeps apart on purpose stay apart, even if their numbers shift with an
  edit: `main.serve.func1` and `func2` of Go, `{closure#0}` and `{closure#1}` of Rust, `{lambda(int)#1}` and `#2` of C++, `lambda$run$0` of javac. Where only a
  line, a hash or a number by order distinguishes functions, they become one; their rules say so.
- `_[k]`, `_[j]` and `_[i]` at the end of a name stay.
- Empty names, and names of which nothing is left, are counted as `_unsymbolised`.
- Patterns are those of the Rust crate regex, in `connectors/formats/src/names/rules`.
";

/// The whole page.
pub fn rules_of_names() -> String {
    let sections = RUNTIMES.map(section);
    format!("{INTRODUCTION}\n{}", sections.join("\n"))
}

fn section(runtime: &str) -> String {
    let lines = rules().iter().filter(|rule| rule.runtime == runtime).map(line);
    let head = "| rule | what | examples | stays |\n|---|---|---|---|\n";
    format!("## `{runtime}`\n{head}{}", lines.collect::<String>())
}

fn line(rule: &Rule) -> String {
    let examples = rule.examples.iter().map(|[raw, counted]| format!("{} → {}", code(raw), code(counted)));
    let keeps = rule.keeps.iter().map(|name| code(name));
    format!(
        "| `{}` | {} | {} | {} |\n",
        rule.name,
        rule.what,
        examples.collect::<Vec<_>>().join("<br>"),
        keeps.collect::<Vec<_>>().join("<br>")
    )
}

/// A name as code in a cell of a table.
fn code(name: &str) -> String {
    let escaped = name.replace('|', "\\|");
    if name.contains('`') { format!("`` {escaped} ``") } else { format!("`{escaped}`") }
}
