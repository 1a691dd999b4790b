//! The symbols of programs and libraries, with their addresses as places in the file, since that is what is mapped.

use std::fs::File;
use std::io::{Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};

use object::elf::{self, FileHeader32, FileHeader64};
use object::read::elf::{FileHeader, ProgramHeader as _, SectionHeader as _, SectionTable, Sym as _};
use object::read::{ReadCache, ReadRef};
use object::{Endianness, FileKind, SectionIndex};

use super::files::{self, DEBUG, PROGRAM, VDSO};
use super::table::{Binding, Symbol, Table};

/// Most bytes of a section that is read. A guess: browsers with all their symbols have 200 MB.
const LARGEST_SECTION: u64 = 512 << 20;

/// Largest part of the kernel that processes have mapped. A guess: it has 2 or 4 pages.
const LARGEST_VDSO: u64 = 1 << 20;

/// What is known of a file.
struct Image {
    build_id: Option<Vec<u8>>,
    segments: Vec<Segment>,
    symbols: Vec<Symbol>,
    names: Vec<u8>,
    has_own_symbols: bool,
    linkage: Vec<Symbol>,
}

/// A part that is loaded.
#[derive(Clone, Copy, Debug)]
struct Segment {
    address: u64,
    length: u64,
    offset: u64,
}

/// The symbols of a program or library, from the file itself or from one beside it.
pub(super) fn of_file(path: &str, build_id: Option<&[u8]>) -> Option<Table> {
    let kept = files::of_build(build_id.unwrap_or_default(), PROGRAM);
    let paths = kept.iter().map(PathBuf::as_path).chain([Path::new(path)]);
    let image = paths.into_iter().find_map(|path| open(path, build_id, &[]));
    if image.as_ref().is_some_and(|image| image.has_own_symbols) {
        return image.map(Image::into_table);
    }
    // A recording without build ids means the file that is there.
    let build_id = build_id.or_else(|| image.as_ref()?.build_id.as_deref());
    let segments = image.as_ref().map_or(&[][..], |image| image.segments.as_slice());
    let beside = files::of_build(build_id.unwrap_or_default(), DEBUG);
    let mut beside = beside.iter().filter_map(|path| open(path, build_id, segments));
    match (beside.find(|beside| beside.has_own_symbols), image) {
        (Some(beside), Some(image)) => Some(beside.with_linkage_of(image).into_table()),
        (beside, image) => beside.or(image).map(Image::into_table),
    }
}

/// The symbols of the part of the kernel that processes have mapped: from where perf keeps it, or from this process.
pub(super) fn of_vdso(build_id: Option<&[u8]>) -> Option<Table> {
    let kept = files::of_build(build_id.unwrap_or_default(), VDSO);
    let image = kept.iter().find_map(|path| open(path, build_id, &[]));
    image.or_else(|| parsed(own_vdso()?.as_slice(), &[]).filter(|image| image.fits(build_id))).map(Image::into_table)
}

fn open(path: &Path, build_id: Option<&[u8]>, segments: &[Segment]) -> Option<Image> {
    let cache: ReadCache<File> = ReadCache::new(files::open(path)?);
    parsed(&cache, segments).filter(|image| image.fits(build_id))
}

/// The image of it that this process has.
fn own_vdso() -> Option<Vec<u8>> {
    let maps = std::fs::read_to_string("/proc/self/maps").ok()?;
    let range = maps.lines().find(|line| line.ends_with("[vdso]"))?.split_whitespace().next()?;
    let (start, end) = range.split_once('-')?;
    let number = |digits: &str| u64::from_str_radix(digits, 16).ok();
    let (start, length) = (number(start)?, number(end)?.checked_sub(number(start)?)?);
    let mut memory = File::open("/proc/self/mem").ok()?;
    memory.seek(SeekFrom::Start(start)).ok()?;
    let mut image = Vec::new();
    memory.take(length.min(LARGEST_VDSO)).read_to_end(&mut image).ok()?;
    Some(image)
}

/// Reads a file; places are those of other segments, if there are any: a file of symbols alone does not have what is loaded.
fn parsed<'d, R: ReadRef<'d>>(data: R, segments: &[Segment]) -> Option<Image> {
    match FileKind::parse(data).ok()? {
        FileKind::Elf32 => read::<FileHeader32<Endianness>, R>(data, segments),
        FileKind::Elf64 => read::<FileHeader64<Endianness>, R>(data, segments),
        _ => None,
    }
}

fn read<'d, E: FileHeader<Endian = Endianness>, R: ReadRef<'d>>(data: R, segments: &[Segment]) -> Option<Image> {
    let header = E::parse(data).ok()?;
    let order = header.endian().ok()?;
    let sections = header.sections(order, data).ok()?;
    let loaded =
        header.program_headers(order, data).ok()?.iter().filter(|segment| segment.p_type(order) == elf::PT_LOAD);
    let loaded = loaded.map(|segment| Segment {
        address: segment.p_vaddr(order).into(),
        length: segment.p_memsz(order).into(),
        offset: segment.p_offset(order).into(),
    });
    let segments = if segments.is_empty() { loaded.collect() } else { segments.to_vec() };
    let mut reader = Reader {
        file: Sections { header, order, sections, data },
        image: Image {
            build_id: None,
            segments,
            symbols: Vec::new(),
            names: Vec::new(),
            has_own_symbols: false,
            linkage: Vec::new(),
        },
    };
    reader.read();
    Some(reader.image)
}

/// What an ELF file consists of.
struct Sections<'d, E: FileHeader, R: ReadRef<'d>> {
    header: &'d E,
    order: Endianness,
    sections: SectionTable<'d, E, R>,
    data: R,
}

/// Reads the sections of a file that say of symbols.
struct Reader<'d, E: FileHeader, R: ReadRef<'d>> {
    file: Sections<'d, E, R>,
    image: Image,
}

impl<'d, E: FileHeader<Endian = Endianness>, R: ReadRef<'d>> Sections<'d, E, R> {
    /// What a section holds, if that is not too much.
    fn content(&self, section: &E::SectionHeader) -> Option<&'d [u8]> {
        let fits = section.sh_size(self.order).into() <= LARGEST_SECTION;
        section.data(self.order, self.data).ok().filter(|_| fits)
    }

    fn name(&self, section: &E::SectionHeader) -> &'d [u8] {
        self.sections.section_name(self.order, section).unwrap_or_default()
    }

    fn named(&self, name: &str) -> Option<&'d E::SectionHeader> {
        self.sections.iter().find(|section| self.name(section) == name.as_bytes())
    }

    /// The symbols of a section of symbols, and their names.
    fn symbols(&self, section: &E::SectionHeader) -> Option<(&'d [E::Sym], &'d [u8])> {
        let link = usize::try_from(section.sh_link(self.order)).ok()?;
        let names = self.content(self.sections.section(SectionIndex(link)).ok()?)?;
        self.content(section)?;
        Some((section.data_as_array(self.order, self.data).ok()?, names))
    }
}

impl<'d, E: FileHeader<Endian = Endianness>, R: ReadRef<'d>> Reader<'d, E, R> {
    fn read(&mut self) {
        let order = self.file.order;
        let sections: Vec<&'d E::SectionHeader> = self.file.sections.iter().collect();
        for section in sections {
            match section.sh_type(order) {
                elf::SHT_SYMTAB => {
                    self.image.has_own_symbols = true;
                    self.add_symbols(section);
                }
                elf::SHT_DYNSYM => self.add_symbols(section),
                elf::SHT_NOTE if self.image.build_id.is_none() => self.image.build_id = self.build_id(section),
                _ => {}
            }
        }
        self.add_linkage();
    }

    fn build_id(&self, section: &E::SectionHeader) -> Option<Vec<u8>> {
        self.file.content(section)?;
        let mut notes = section.notes(self.file.order, self.file.data).ok()??;
        while let Ok(Some(note)) = notes.next() {
            if note.name() == elf::ELF_NOTE_GNU && note.n_type(self.file.order) == elf::NT_GNU_BUILD_ID {
                return Some(note.desc().to_owned());
            }
        }
        None
    }

    fn add_symbols(&mut self, section: &E::SectionHeader) {
        let Some((symbols, names)) = self.file.symbols(section) else { return };
        let first = self.image.names.len();
        self.image.names.extend_from_slice(names);
        // A name that has no end would go on in the next.
        self.image.names.push(0);
        for symbol in symbols {
            let found = self.symbol(symbol, names, first);
            self.image.symbols.extend(found);
        }
    }

    /// A symbol, if perf takes it for one: a function or an object, or a label in code or data.
    fn symbol(&self, symbol: &E::Sym, names: &[u8], first: usize) -> Option<Symbol> {
        let (order, file) = (self.file.order, &self.file);
        let place = usize::try_from(symbol.st_name(order)).ok().filter(|place| *place != 0)?;
        let of_section = symbol.st_shndx(order);
        if of_section == elf::SHN_UNDEF || of_section.is_special() {
            return None;
        }
        let section = file.sections.section(SectionIndex(usize::from(of_section.0))).ok()?;
        let has_type = symbol.st_type() != elf::STT_NOTYPE;
        let is_wanted = match symbol.st_type() {
            elf::STT_FUNC | elf::STT_GNU_IFUNC | elf::STT_OBJECT => true,
            elf::STT_NOTYPE => {
                let is_hidden = [elf::STV_HIDDEN, elf::STV_INTERNAL].contains(&symbol.st_visibility());
                let holds = |part: &[u8]| file.name(section).windows(4).any(|window| window == part);
                !is_hidden && (holds(b"text") || holds(b"data"))
            }
            _ => false,
        };
        // What ARM's assemblers mark is no function.
        let is_mark = is_arm(file.header.e_machine(order)) && names.get(place) == Some(&b'$');
        if !is_wanted || is_mark || !section.sh_flags(order).contains(elf::SHF_ALLOC) {
            return None;
        }
        let address: u64 = symbol.st_value(order).into();
        let start = self.image.offset(address).or_else(|| {
            address.checked_sub(section.sh_addr(order).into())?.checked_add(section.sh_offset(order).into())
        })?;
        let binding = match symbol.st_bind() {
            elf::STB_GLOBAL => Binding::Global,
            elf::STB_WEAK => Binding::Weak,
            _ => Binding::Local,
        };
        let end = start.saturating_add(symbol.st_size(order).into());
        Some(Symbol { start, end, binding, has_type, name: first + place, is_linkage: false })
    }

    /// Where functions of libraries are called from: one entry for each, in the order in which they are bound.
    ///
    /// NB: perf takes the length of an entry from the section, and finds none of what lld links, which does not write it there.
    fn add_linkage(&mut self) {
        let (order, file) = (self.file.order, &self.file);
        let (first, each) = match file.header.e_machine(order) {
            elf::EM_AARCH64 => (32, 16),
            elf::EM_ARM => (20, 12),
            _ => (16, 16),
        };
        let bound = file.named(".rela.plt").filter(|_| file.header.is_class_64());
        let (Some(bound), Some(linkage)) = (bound, file.named(".plt")) else { return };
        let symbols = file.sections.section(SectionIndex(usize::try_from(bound.sh_link(order)).unwrap_or(0)));
        let Some((symbols, names)) = symbols.ok().and_then(|section| file.symbols(section)) else { return };
        let Some(entries) = file.content(bound) else { return };
        let start: u64 = linkage.sh_offset(order).into();
        let base = self.image.names.len();
        let mut found = Vec::new();
        for (number, entry) in (0u64..).zip(entries.chunks_exact(24)) {
            // The number of the symbol is the upper half of the second word.
            let half = if order == Endianness::Little { entry.get(12..16) } else { entry.get(8..12) };
            let half: Option<[u8; 4]> = half.and_then(|half| half.try_into().ok());
            let symbol =
                half.map(
                    |half| {
                        if order == Endianness::Little { u32::from_le_bytes(half) } else { u32::from_be_bytes(half) }
                    },
                );
            let symbol = symbol.and_then(|symbol| symbols.get(usize::try_from(symbol).ok()?));
            let Some(name) = symbol.and_then(|symbol| usize::try_from(symbol.st_name(order)).ok()) else { continue };
            let start = start.saturating_add(first + each * number);
            let (end, binding) = (start.saturating_add(each), Binding::Global);
            found.push(Symbol { start, end, binding, has_type: true, name: base + name, is_linkage: true });
        }
        self.image.names.extend_from_slice(names);
        self.image.names.push(0);
        self.image.linkage = found;
    }
}

fn is_arm(machine: elf::Machine) -> bool {
    [elf::EM_ARM, elf::EM_AARCH64].contains(&machine)
}

impl Image {
    /// Whether it is of a build, if the recording says of which.
    fn fits(&self, build_id: Option<&[u8]>) -> bool {
        build_id.is_none_or(|wanted| self.build_id.as_deref() == Some(wanted))
    }

    /// Where in the file an address is.
    fn offset(&self, address: u64) -> Option<u64> {
        let within = |segment: &&Segment| address.checked_sub(segment.address).is_some_and(|way| way < segment.length);
        let segment = self.segments.iter().find(within)?;
        (address - segment.address).checked_add(segment.offset)
    }

    /// Its symbols, with the linkage of the program that they are of.
    fn with_linkage_of(mut self, program: Self) -> Self {
        let first = self.names.len();
        self.names.extend_from_slice(&program.names);
        self.linkage = program.linkage;
        self.linkage.iter_mut().for_each(|symbol| symbol.name += first);
        self
    }

    /// NB: perf adds the linkage only to other symbols, and so a program that has none has no names at all.
    fn into_table(mut self) -> Table {
        if !self.symbols.is_empty() {
            self.symbols.append(&mut self.linkage);
        }
        Table::new(self.symbols, self.names)
    }
}
