//! Recordings of Flight Recorder, written field by field.

/// A type: its number, its name and its fields.
type Type = (u64, &'static str, &'static [Field]);

/// A field: its name, the number of its type, and whether it is a constant (c) or a list (l).
type Field = (&'static str, u64, &'static str);

const TYPES: [Type; 23] = [
    (1, "long", &[]),
    (2, "java.lang.String", &[]),
    (3, "java.lang.Thread", &[("osName", 2, ""), ("osThreadId", 1, ""), ("javaName", 2, ""), ("javaThreadId", 1, "")]),
    (4, "jdk.types.StackTrace", &[("truncated", 12, ""), ("frames", 5, "l")]),
    (5, "jdk.types.StackFrame", &[("method", 6, "c"), ("lineNumber", 1, ""), ("type", 10, "c")]),
    (6, "jdk.types.Method", &[("type", 7, "c"), ("name", 8, "c")]),
    (7, "java.lang.Class", &[("name", 8, "c")]),
    (8, "jdk.types.Symbol", &[("string", 2, "")]),
    (9, "jdk.types.ThreadState", &[("name", 2, "")]),
    (10, "jdk.types.FrameType", &[("description", 2, "")]),
    (11, "double", &[]),
    (12, "boolean", &[]),
    (13, "jdk.types.Circle", &[("inner", 13, "")]),
    (
        20,
        "jdk.ExecutionSample",
        &[("startTime", 1, ""), ("sampledThread", 3, "c"), ("stackTrace", 4, "c"), ("state", 9, "c")],
    ),
    (
        21,
        "jdk.CPUTimeSample",
        &[
            ("startTime", 1, ""),
            ("stackTrace", 4, "c"),
            ("eventThread", 3, "c"),
            ("failed", 12, ""),
            ("samplingPeriod", 1, ""),
        ],
    ),
    (
        22,
        "jdk.ThreadPark",
        &[
            ("startTime", 1, ""),
            ("duration", 1, ""),
            ("eventThread", 3, "c"),
            ("stackTrace", 4, "c"),
            ("parkedClass", 7, "c"),
        ],
    ),
    (
        23,
        "profiler.Malloc",
        &[("startTime", 1, ""), ("eventThread", 3, "c"), ("stackTrace", 4, "c"), ("address", 1, ""), ("size", 1, "")],
    ),
    (24, "jdk.ActiveSetting", &[("startTime", 1, ""), ("id", 1, ""), ("name", 2, ""), ("value", 2, "")]),
    (
        25,
        "jdk.NativeMethodSample",
        &[("startTime", 1, ""), ("sampledThread", 3, "c"), ("stackTrace", 4, "c"), ("state", 9, "c")],
    ),
    (26, "jdk.CPULoad", &[("startTime", 1, ""), ("user", 11, "")]),
    (27, "jdk.ActiveRecording", &[("startTime", 1, ""), ("id", 1, "")]),
    (28, "profiler.Window", &[("startTime", 1, ""), ("duration", 1, "")]),
    (29, "profiler.Log", &[("startTime", 1, ""), ("level", 1, ""), ("message", 2, "")]),
];

/// A number as the format writes it.
pub fn number(mut value: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    for _ in 0..8 {
        let low = u8::try_from(value & 0x7f).unwrap();
        value >>= 7;
        if value == 0 {
            bytes.push(low);
            return bytes;
        }
        bytes.push(low | 0x80);
    }
    bytes.push(u8::try_from(value).unwrap());
    bytes
}

fn numbers(values: &[u64]) -> Vec<u8> {
    values.iter().flat_map(|value| number(*value)).collect()
}

/// A text as the format writes it.
pub fn text(text: &str) -> Vec<u8> {
    [&[3][..], &number(u64::try_from(text.len()).unwrap()), text.as_bytes()].concat()
}

/// An event with its size; a size is as long as it is, which makes it longer by one byte up to 127.
pub fn event(kind: u64, body: &[u8]) -> Vec<u8> {
    let inner = [&number(kind)[..], body].concat();
    let length = u64::try_from(inner.len()).unwrap();
    // Four bytes, as the JDK writes sizes.
    let size = length + 4;
    let low = |shift: u64| u8::try_from(size >> shift & 0x7f).unwrap();
    [&[low(0) | 0x80, low(7) | 0x80, low(14) | 0x80, low(21)][..], &inner].concat()
}

fn metadata(types: &[Type]) -> Vec<u8> {
    let mut texts: Vec<String> = Vec::new();
    let mut place = |text: &str| {
        let found = texts.iter().position(|known| known == text);
        let place = found.unwrap_or_else(|| {
            texts.push(text.to_owned());
            texts.len() - 1
        });
        u64::try_from(place).unwrap()
    };
    let mut classes = Vec::new();
    for (id, name, fields) in types {
        classes.extend(numbers(&[place("class"), 2, place("id"), place(&id.to_string()), place("name"), place(name)]));
        classes.extend(number(u64::try_from(fields.len()).unwrap()));
        for (name, class, how) in *fields {
            let mut attributes = vec![place("name"), place(name), place("class"), place(&class.to_string())];
            if how.contains('c') {
                attributes.extend([place("constantPool"), place("true")]);
            }
            if how.contains('l') {
                attributes.extend([place("dimension"), place("1")]);
            }
            classes.extend(numbers(&[place("field"), u64::try_from(attributes.len() / 2).unwrap()]));
            classes.extend(numbers(&attributes));
            classes.push(0);
        }
    }
    let root = numbers(&[place("root"), 0, 1, place("metadata"), 0, u64::try_from(types.len()).unwrap()]);
    let table: Vec<u8> = texts.iter().flat_map(|name| text(name)).collect();
    let head = numbers(&[7, 0, 1, u64::try_from(texts.len()).unwrap()]);
    event(0, &[head, table, root, classes].concat())
}

/// A list of constants of one type.
pub fn list(kind: u64, constants: &[Vec<u8>]) -> Vec<u8> {
    let mut bytes = numbers(&[kind, u64::try_from(constants.len()).unwrap()]);
    for (constant, id) in constants.iter().zip(1u64..) {
        bytes.extend(number(id));
        bytes.extend(constant);
    }
    bytes
}

/// Constants of every type: stacks 1 (main, work), 2 (main, wait) and 3 (main, a function of the kernel), threads 1 and 2.
pub fn lists() -> Vec<Vec<u8>> {
    let stack = |methods: &[u64]| {
        let frames =
            methods.iter().flat_map(|method| numbers(&[*method, 40 + method, if *method == 4 { 2 } else { 1 }]));
        [vec![0], number(u64::try_from(methods.len()).unwrap()), frames.collect()].concat()
    };
    let thread = |name: &str, id: u64| [text(name), number(id), text(name), number(id)].concat();
    vec![
        list(3, &[thread("till-1", 11), thread("till-2", 12)]),
        list(4, &[stack(&[2, 1]), stack(&[3, 1]), stack(&[4, 1])]),
        list(6, &[numbers(&[1, 1]), numbers(&[1, 2]), numbers(&[1, 3]), numbers(&[0, 4])]),
        list(7, &[number(5), number(6), number(7)]),
        list(
            8,
            &[
                "main",
                "work",
                "wait",
                "vfs_read",
                "shop/Cart",
                "java/util/concurrent/locks/ReentrantLock$NonfairSync",
                "java/util/concurrent/LinkedBlockingQueue",
            ]
            .map(text),
        ),
        list(9, &["STATE_RUNNABLE", "STATE_DEFAULT", "STATE_SLEEPING"].map(text)),
        list(10, &["JIT compiled", "Kernel"].map(text)),
    ]
}

/// A chunk of these events and constants.
pub fn chunk(events: &[Vec<u8>], lists: &[Vec<u8>]) -> Vec<u8> {
    let types: Vec<_> = TYPES.into_iter().filter(|(id, ..)| ![28, 29].contains(id)).collect();
    chunk_of(&types, events, lists)
}

/// The same as async-profiler writes it.
pub fn chunk_of_async_profiler(events: &[Vec<u8>]) -> Vec<u8> {
    chunk_of(&TYPES, events, &lists())
}

/// The same as async-profiler before 3.0 writes it.
pub fn chunk_of_old_async_profiler(events: &[Vec<u8>]) -> Vec<u8> {
    let types: Vec<_> = TYPES.into_iter().filter(|(id, ..)| *id != 28).collect();
    chunk_of(&types, events, &lists())
}

fn chunk_of(types: &[Type], events: &[Vec<u8>], lists: &[Vec<u8>]) -> Vec<u8> {
    let mut body = events.concat();
    let constants_at = 68 + body.len();
    body.extend(event(1, &[vec![0, 0, 0, 0], number(u64::try_from(lists.len()).unwrap()), lists.concat()].concat()));
    let metadata_at = 68 + body.len();
    body.extend(metadata(types));
    let numbers = [68 + body.len(), constants_at, metadata_at].map(|value| u64::try_from(value).unwrap());
    // Start, duration, ticks at the start, ticks a second.
    let times = [1_700_000_000_000_000_000, 10_000_000_000, 5_000, 1_000_000];
    let header: Vec<u8> = numbers.into_iter().chain(times).flat_map(u64::to_be_bytes).collect();
    [&b"FLR\0\0\x02\0\x01"[..], &header, &[0, 0, 0, 1], &body].concat()
}

/// A chunk around so many bytes of events: what stands before and what behind them.
pub fn around(events: usize) -> (Vec<u8>, Vec<u8>) {
    let mut whole = chunk(&[], &lists());
    for place in [8, 16, 24] {
        let number: [u8; 8] = whole[place..place + 8].try_into().unwrap();
        let moved = u64::from_be_bytes(number) + u64::try_from(events).unwrap();
        whole[place..place + 8].copy_from_slice(&moved.to_be_bytes());
    }
    let behind = whole.split_off(68);
    (whole, behind)
}

/// `jdk.ExecutionSample` or one of the same fields.
pub fn sample(kind: u64, tick: u64, thread: u64, stack: u64, state: u64) -> Vec<u8> {
    event(kind, &numbers(&[tick, thread, stack, state]))
}

/// An event of numbers.
pub fn plain(kind: u64, values: &[u64]) -> Vec<u8> {
    event(kind, &numbers(values))
}

/// A setting of a type of event.
pub fn setting(id: u64, name: &str, value: &str) -> Vec<u8> {
    event(24, &[numbers(&[5_000, id]), text(name), text(value)].concat())
}

/// Two chunks: three samples of the JDK and its period, and two of async-profiler.
pub fn good() -> Vec<u8> {
    let load = event(26, &[number(5_000), vec![0; 8]].concat());
    let first = [
        setting(20, "period", "10 ms"),
        load,
        sample(20, 6_000, 1, 1, 1),
        sample(20, 16_000, 1, 1, 1),
        sample(25, 16_000, 2, 2, 1),
        sample(20, 26_000, 2, 2, 1),
    ];
    let second = [sample(20, 36_000, 2, 3, 2), sample(20, 46_000, 1, 1, 2), sample(20, 46_000, 1, 2, 3)];
    [chunk(&first, &lists()), chunk_of_async_profiler(&second)].concat()
}
