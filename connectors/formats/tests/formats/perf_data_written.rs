//! Recordings of perf as its format says how to write them: a header of places, events, records, and the names of events.

/// What each sample says, in this order: the number of its event, address, process and thread, time, processor, period, call chain.
const SAMPLE: u64 = 1 << 16 | 1 | 2 | 4 | 1 << 7 | 1 << 8 | 1 << 5;

/// That records which are no samples say the same of themselves, at their end.
const ALL_SAY: u64 = 1 << 18;

const ATTRIBUTE: usize = 112;
const HEADER: usize = 104;

/// Marks in call chains: what follows is of the kernel, of the process.
pub const KERNEL: u64 = (-128i64).cast_unsigned();
pub const USER: u64 = (-512i64).cast_unsigned();

/// The kinds of records, and of perf's own.
pub const COMM: u32 = 3;
pub const EXIT: u32 = 4;
pub const FORK: u32 = 7;
pub const OF_SAMPLE: u32 = 9;
pub const MMAP2: u32 = 10;
pub const COMPRESSED: u32 = 81;

pub fn u32s(numbers: &[u32]) -> Vec<u8> {
    numbers.iter().flat_map(|number| number.to_le_bytes()).collect()
}

pub fn u64s(numbers: &[u64]) -> Vec<u8> {
    numbers.iter().flat_map(|number| number.to_le_bytes()).collect()
}

/// A text with its zero, filled up to a multiple of 8 bytes.
pub fn text(text: &str) -> Vec<u8> {
    let mut bytes = text.as_bytes().to_vec();
    bytes.resize((text.len() + 1).next_multiple_of(8), 0);
    bytes
}

/// A record: kind and further marks, and what it holds.
pub fn record(kind: u32, misc: u16, body: &[u8]) -> Vec<u8> {
    let size = u16::try_from(8 + body.len()).unwrap();
    [&kind.to_le_bytes()[..], &misc.to_le_bytes(), &size.to_le_bytes(), body].concat()
}

/// What a record that is no sample says of itself: of the first event, on the first processor.
fn said(pid: u32, tid: u32, time: u64) -> Vec<u8> {
    [u32s(&[pid, tid]), u64s(&[time]), u32s(&[0, 0]), u64s(&[100])].concat()
}

pub fn comm(pid: u32, tid: u32, time: u64, name: &str) -> Vec<u8> {
    record(COMM, 0, &[u32s(&[pid, tid]), text(name), said(pid, tid, time)].concat())
}

pub fn fork(pid: u32, parent: u32, time: u64) -> Vec<u8> {
    record(FORK, 0, &[u32s(&[pid, parent, pid, parent]), u64s(&[time]), said(pid, pid, time)].concat())
}

pub fn exit(pid: u32, time: u64) -> Vec<u8> {
    record(EXIT, 0, &[u32s(&[pid, 1, pid, 1]), u64s(&[time]), said(pid, pid, time)].concat())
}

/// Code of a file, or memory that can be executed.
pub fn mmap2(pid: u32, time: u64, [start, length, offset]: [u64; 3], path: &str) -> Vec<u8> {
    let file = [u32s(&[8, 1]), u64s(&[4711, 0]), u32s(&[5, 2])].concat();
    let body = [u32s(&[pid, pid]), u64s(&[start, length, offset]), file, text(path), said(pid, pid, time)];
    record(MMAP2, 2, &body.concat())
}

/// The same with a build id that claims a length.
pub fn mmap2_of_build(pid: u32, time: u64, start: u64, length_of_id: u8, path: &str) -> Vec<u8> {
    let id = [&[length_of_id, 0, 0, 0][..], &[7; 20], &u32s(&[5, 2])].concat();
    let body = [u32s(&[pid, pid]), u64s(&[start, 0x1000, 0]), id, text(path), said(pid, pid, time)];
    record(MMAP2, 2 | 1 << 14, &body.concat())
}

/// A sample of an event by its place.
pub fn sample(event: u64, pid: u32, tid: u32, time: u64, chain: &[u64]) -> Vec<u8> {
    let address = chain.iter().copied().find(|address| *address < 1 << 63).unwrap_or(0);
    let head = [u64s(&[100 + event, address]), u32s(&[pid, tid]), u64s(&[time]), u32s(&[1, 0]), u64s(&[1_000_000])];
    let length = u64::try_from(chain.len()).unwrap();
    record(OF_SAMPLE, 2, &[head.concat(), u64s(&[length]), u64s(chain)].concat())
}

/// An attribute: kind and number of the event, and what its samples say beside what all do.
fn attribute((kind, number): (u32, u64), more: u64) -> Vec<u8> {
    let size = u32::try_from(ATTRIBUTE).unwrap();
    let mut bytes = [u32s(&[kind, size]), u64s(&[number, 1_000_000, SAMPLE | more, 0, ALL_SAY])].concat();
    bytes.resize(ATTRIBUTE, 0);
    bytes
}

/// The names and numbers of events.
fn names(events: &[(&str, (u32, u64))], more: u64) -> Vec<u8> {
    let length = |bytes: &[u8]| u32::try_from(bytes.len()).unwrap();
    let mut bytes = u32s(&[u32::try_from(events.len()).unwrap(), u32::try_from(ATTRIBUTE).unwrap()]);
    for (number, (name, event)) in (0u64..).zip(events) {
        let name = text(name);
        bytes.extend([attribute(*event, more), u32s(&[1, length(&name)]), name, u64s(&[100 + number])].concat());
    }
    bytes
}

/// A file of records of these events, whose samples say more than others.
pub fn file_of(events: &[(&str, (u32, u64))], more: u64, records: &[u8]) -> Vec<u8> {
    let (start, end) = around(events, more, records.len());
    [start, records.to_vec(), end].concat()
}

/// What stands before and behind records of so many bytes.
pub fn around(events: &[(&str, (u32, u64))], more: u64, length: usize) -> (Vec<u8>, Vec<u8>) {
    let number = |number: usize| u64::try_from(number).unwrap();
    let ids = HEADER;
    let attributes = ids + 8 * events.len();
    let data = attributes + (ATTRIBUTE + 16) * events.len();
    let names = names(events, more);
    let place_of_names = data + length + 16;
    let places = [HEADER, ATTRIBUTE + 16, attributes, (ATTRIBUTE + 16) * events.len(), data, length, 0, 0];
    let mut start = [b"PERFILE2".to_vec(), u64s(&places.map(number)), u64s(&[1 << 12, 0, 0, 0])].concat();
    start.extend((0..events.len()).flat_map(|event| u64s(&[100 + number(event)])));
    for (place, (_, event)) in events.iter().enumerate() {
        start.extend([attribute(*event, more), u64s(&[number(ids + 8 * place), 8])].concat());
    }
    (start, [u64s(&[number(place_of_names), number(names.len())]), names].concat())
}

/// A process that maps so much that each of as many children has to copy it, to map something itself.
pub fn processes(number: u32) -> Vec<u8> {
    let place = |number: u32| [0x1000 * u64::from(number), 0x1000, 0];
    let mapped = (0..number).map(|number| mmap2(1, 1, place(number), "/x"));
    let children = (2..number + 2).map(|child| [fork(child, 1, 2), mmap2(child, 3, place(child), "/y")].concat());
    mapped.chain(children).collect::<Vec<_>>().concat()
}

pub const CPU_CLOCK: (&str, (u32, u64)) = ("cpu-clock", (1, 0));
pub const PAGE_FAULTS: (&str, (u32, u64)) = ("page-faults", (1, 2));

/// A file of records of `cpu-clock`.
pub fn file(records: &[u8]) -> Vec<u8> {
    file_of(&[CPU_CLOCK], 0, records)
}

/// Two threads of a process and a child of it, six samples of `cpu-clock` and one of another event; records are not in the order of their
/// times, and no file of theirs is there.
pub fn good() -> Vec<u8> {
    let records = [
        comm(7, 7, 10, "shop"),
        mmap2(7, 11, [0x40_0000, 0x2000, 0x1000], "/srv/shop-is-not-here/shop"),
        mmap2(7, 12, [0x7f00_0000, 0x1000, 0], "//anon"),
        sample(0, 7, 7, 20, &[USER, 0x40_0010, 0x40_1010]),
        sample(0, 7, 7, 40, &[KERNEL, 0xffff_ffff_8100_0000, USER, 0x40_0010]),
        comm(7, 8, 14, "worker"),
        sample(0, 7, 8, 30, &[USER, 0x7f00_0010, 0x40_0020]),
        sample(1, 7, 8, 31, &[USER, 0x40_0020]),
        fork(9, 7, 50),
        sample(0, 9, 9, 60, &[USER, 0x40_0030]),
        comm(9, 9, 61, "child"),
        sample(0, 9, 9, 70, &[USER, 0x50_0000, 0x40_0030]),
        exit(9, 80),
        sample(0, 7, 7, 90, &[]),
    ];
    file_of(&[CPU_CLOCK, PAGE_FAULTS], 0, &records.concat())
}
