//! Symbols by their addresses; which of several is taken is decided as perf decides it (`tools/perf/util/symbol.c`).

use super::bytes::until_zero;
use super::spelling;

/// How far an address may be behind the last symbol: perf rounds up to pages.
const PAGE: u64 = 4096;

/// How many symbols that begin before an address are looked at, for one that reaches over those behind it.
const FEW: usize = 16;

/// A symbol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Symbol {
    pub(super) start: u64,
    /// The address behind its last; its first one if its length is not known.
    pub(super) end: u64,
    pub(super) binding: Binding,
    pub(super) has_type: bool,
    /// Where its name begins in the table's text.
    pub(super) name: usize,
    /// Whether it is where a library's function of that name is called from.
    pub(super) is_linkage: bool,
}

/// Who else can use a symbol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Binding {
    Local,
    Global,
    Weak,
}

/// Symbols in the order of their addresses, no two of which begin at the same.
#[derive(Debug)]
pub(super) struct Table {
    symbols: Vec<Symbol>,
    /// Names, each ended by a zero.
    names: Vec<u8>,
}

impl Table {
    /// A table of symbols whose names are in a text.
    pub(super) fn new(mut symbols: Vec<Symbol>, names: Vec<u8>) -> Self {
        symbols.sort_by_key(|symbol| symbol.start);
        let starts: Vec<u64> = symbols.iter().skip(1).map(|symbol| symbol.start).collect();
        let after = starts.into_iter().map(Some).chain([None]);
        for (symbol, next) in symbols.iter_mut().zip(after).filter(|(symbol, _)| symbol.end <= symbol.start) {
            symbol.end = next.unwrap_or_else(|| symbol.start.next_multiple_of(PAGE).saturating_add(PAGE));
        }
        let mut table = Self { symbols: Vec::new(), names };
        for symbol in symbols {
            match table.symbols.last().copied() {
                Some(known) if known.start == symbol.start => {
                    if table.is_better(&symbol, &known) {
                        table.symbols.pop();
                        table.symbols.push(symbol);
                    }
                }
                _ => table.symbols.push(symbol),
            }
        }
        table
    }

    /// The name of the function at an address.
    pub(super) fn find(&self, address: u64) -> Option<String> {
        let behind = self.symbols.partition_point(|symbol| symbol.start <= address);
        let before = self.symbols.get(..behind)?.iter().rev().take(FEW);
        let symbol = before.into_iter().find(|symbol| address < symbol.end || address == symbol.start)?;
        let name = self.written_out(symbol);
        Some(if symbol.is_linkage { format!("{name}@plt") } else { name })
    }

    fn written_out(&self, symbol: &Symbol) -> String {
        let name = String::from_utf8_lossy(self.name(symbol));
        spelling::plain(&name).unwrap_or_else(|| name.into_owned())
    }

    fn name(&self, symbol: &Symbol) -> &[u8] {
        until_zero(self.names.get(symbol.name..).unwrap_or_default())
    }

    /// Whether a symbol is taken instead of one that begins at the same address and was met before.
    fn is_better(&self, new: &Symbol, known: &Symbol) -> bool {
        let has_length = |symbol: &Symbol| symbol.end > symbol.start;
        let is = |symbol: &Symbol, binding| symbol.binding == binding;
        has_length(new)
            .cmp(&has_length(known))
            .then_with(|| new.has_type.cmp(&known.has_type))
            .then_with(|| is(known, Binding::Weak).cmp(&is(new, Binding::Weak)))
            .then_with(|| is(new, Binding::Global).cmp(&is(known, Binding::Global)))
            .then_with(|| {
                let [new, known] = [new, known].map(|symbol| self.written_out(symbol));
                let underscores = |name: &str| name.bytes().take_while(|byte| *byte == b'_').count();
                underscores(&known).cmp(&underscores(&new)).then(new.len().cmp(&known.len()))
            })
            .is_gt()
    }
}
