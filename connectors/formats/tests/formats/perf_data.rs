//! Recordings of perf, beside what `perf script` prints of them: of programs that are recorded here and now.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::process::{Command, Output};

use fleetdiff_formats::reading::Reading;
use fleetdiff_formats::{Format, Options, format_of};
use fleetdiff_schemas::profile::{Profile, ProfileType};
use fleetdiff_schemas::rejected::{Reason, Rejection};
use tempfile::TempDir;

use super::fixtures::{labels, options, part, written_out};

/// Functions that call each other, threads that do the same, and a child; the file is compiled with and without symbols.
const PROGRAM: &str = r#"
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#define OWN __attribute__((noinline))
static volatile long sink;
OWN static long inner(long n) { long sum = 0; for (long i = 0; i < n; i++) sum += i ^ sink; sink = sum; return sum; }
OWN long outer(long n) { long sum = inner(n) + 1; sink = sum; return sum; }
OWN long copies(long n) { char *a = malloc(1 << 16), *b = calloc(1, 1 << 16); for (long i = 0; i < n; i++) memcpy(a, b, 1 << 16); sink = a[7]; free(a); free(b); return sink; }
OWN long system_calls(long n) { for (long i = 0; i < n; i++) sink += getppid(); return sink; }
OWN void *thread(void *of) { for (int i = 0; i < 40; i++) outer(200000); return of; }
int main(int count, char **words) {
    pthread_t threads[3];
    for (int i = 0; i < 3; i++) { pthread_create(&threads[i], NULL, thread, NULL); pthread_setname_np(threads[i], i == 1 ? "odd one; 2" : "worker"); }
    if (fork() == 0) { copies(2000); _exit(0); }
    for (int i = 0; i < 40 * (count > 1 ? 5 : 1); i++) { outer(200000); copies(50); system_calls(20000); }
    for (int i = 0; i < 3; i++) pthread_join(threads[i], NULL);
    wait(NULL);
    return 0;
}
"#;

/// A folder in which programs are made and recorded.
pub struct Recorder {
    folder: TempDir,
}

impl Recorder {
    pub fn new() -> Self {
        Self { folder: TempDir::new().unwrap() }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Runs a command of the shell in the folder. For perf that is its home too, so that what it keeps there is of no other test.
    fn shell(&self, command: &str) -> Output {
        let home = self.folder.path().as_os_str().to_owned();
        let home = command.starts_with("perf ").then_some(("HOME", home));
        Command::new("sh").args(["-c", command]).current_dir(&self.folder).envs(home).output().unwrap()
    }

    pub fn succeed(&self, command: &str) -> Vec<u8> {
        let output = self.shell(command);
        assert!(output.status.success(), "{command}: {}", String::from_utf8_lossy(&output.stderr));
        output.stdout
    }

    pub fn compile(&self, options: &str, name: &str) {
        fs::write(self.path("program.c"), PROGRAM).unwrap();
        self.succeed(&format!("cc -O0 -fno-omit-frame-pointer {options} -pthread -o {name} program.c"));
    }

    /// Records; nothing if perf cannot record here.
    fn record(&self, arguments: &str) -> Option<Vec<u8>> {
        let output = self.shell(&format!("perf record -q -o perf.data {arguments}"));
        if fs::metadata(self.path("perf.data")).map_or(0, |file| file.len()) == 0 {
            eprintln!("perf cannot record here: {}", String::from_utf8_lossy(&output.stderr).trim());
            return None;
        }
        Some(fs::read(self.path("perf.data")).unwrap())
    }

    /// The text that perf prints of the recording.
    fn text(&self) -> Vec<u8> {
        self.succeed("perf script --no-inline -F +pid -i perf.data")
    }

    /// Records, and compares the recording with its text.
    fn agrees(&self, arguments: &str) -> Option<Compared> {
        let recording = self.record(arguments)?;
        Some(self.agree(&recording, arguments, ""))
    }

    /// Compares a recording with its text: as it is decoded, and in all details that a comparison of files may ask for. Only stacks that
    /// begin so are compared.
    fn agree(&self, recording: &[u8], what: &str, beginning: &str) -> Compared {
        let begins = |stacks: BTreeMap<String, u64>| -> BTreeMap<String, u64> {
            stacks.into_iter().filter(|(stack, _)| stack.starts_with(beginning)).collect()
        };
        assert_eq!(format_of("x.folded", recording), Format::PerfData);
        let text = self.text();
        for keys in ["comm,pid,tid,dso,symbol", "dso"] {
            let (ours, theirs) =
                (in_detail(Format::PerfData, recording, keys), in_detail(Format::PerfScript, &text, keys));
            for (ours, theirs) in ours.into_iter().zip(theirs) {
                same(&begins(ours), &begins(theirs), &format!("{what}, {keys}"));
            }
        }
        let text = part(&mut *Format::PerfScript.decoder(&Options::default()), &text, &Ok(labels(ProfileType::Cpu)));
        let (ours, theirs) = (begins(stacks(&decode(recording).unwrap())), begins(stacks(&text.unwrap())));
        same(&ours, &theirs, what);
        let compared = Compared { samples: ours.values().sum(), stacks: ours };
        eprintln!("{what}: {} samples of {} stacks", compared.samples, compared.stacks.len());
        compared
    }
}

/// Whether a recording and its text say the same; if not, what differs is printed.
fn same(ours: &BTreeMap<String, u64>, theirs: &BTreeMap<String, u64>, what: &str) {
    let ours = &with_linkage_as_in(theirs, ours);
    let differ = |stack: &&String| ours.get(*stack) != theirs.get(*stack);
    for stack in ours.keys().chain(theirs.keys()).filter(differ) {
        eprintln!("{stack}: {:?}, perf script {:?}", ours.get(stack), theirs.get(stack));
    }
    assert!(ours == theirs, "{what}");
}

/// Stacks of ours with `_init` where a library's function is called from, if `perf script` has no other name for it.
///
/// NB: `_init` has no length, and perf ends it where the next symbol of the program begins, which is behind the linkage. Which of the two
/// it then finds for an address depends on the shape of its tree; of a program of Debian's compiler it is `_init` for the first entry.
fn with_linkage_as_in(theirs: &BTreeMap<String, u64>, ours: &BTreeMap<String, u64>) -> BTreeMap<String, u64> {
    let as_init = |frame: &str| match frame.strip_suffix("@plt").map(|name| name.rsplit_once("  ")) {
        Some(Some((keys, _))) => format!("{keys}  _init"),
        Some(None) => "_init".to_owned(),
        None => frame.to_owned(),
    };
    let mut found = BTreeMap::new();
    for (stack, count) in ours {
        let other = stack.split(';').map(as_init).collect::<Vec<_>>().join(";");
        let is_other = !theirs.contains_key(stack) && theirs.contains_key(&other);
        *found.entry(if is_other { other } else { stack.clone() }).or_insert(0) += count;
    }
    found
}

/// What a recording and its text agree on.
struct Compared {
    samples: u64,
    stacks: BTreeMap<String, u64>,
}

impl Compared {
    /// Samples whose stacks end so.
    fn of(&self, leaf: &str) -> u64 {
        self.stacks.iter().filter(|(stack, _)| stack.ends_with(leaf)).map(|(_, count)| count).sum()
    }
}

pub fn decode(bytes: &[u8]) -> Result<Profile, Rejection> {
    part(&mut *Format::PerfData.decoder(&options(Format::PerfData)), bytes, &Ok(labels(ProfileType::Cpu)))
}

/// Samples by stack whose frames are named by these keys, and what they weigh.
fn in_detail(format: Format, bytes: &[u8], keys: &str) -> [BTreeMap<String, u64>; 2] {
    let reading = Reading { keys: Some(keys.parse().unwrap()), ..Reading::default() };
    let run = reading.runs(format, bytes, &labels(ProfileType::Cpu), &options(format)).remove(0).unwrap();
    let weights = run.weights.map(|weights| stacks(&weights.profile)).unwrap_or_default();
    [stacks(&run.profile), weights]
}

/// Samples by stack, frames joined.
pub fn stacks(profile: &Profile) -> BTreeMap<String, u64> {
    let mut found = BTreeMap::new();
    for (frames, count, _) in written_out(profile) {
        *found.entry(frames.join(";")).or_insert(0) += count;
    }
    found
}

#[test]
fn oracle_frame_pointers_threads_and_forks() {
    let recorder = Recorder::new();
    recorder.compile("", "program");
    let Some(compared) = recorder.agrees("-e cpu-clock -F 4999 --call-graph fp -- ./program") else { return };
    assert!(compared.samples > 200 && compared.of(";outer;inner") > 50, "{:?}", compared.stacks);
    assert!(compared.stacks.keys().any(|stack| stack.starts_with("odd_one:_2;")), "{:?}", compared.stacks);
}

#[test]
fn oracle_all_processors_and_no_call_chains() {
    let recorder = Recorder::new();
    recorder.compile("", "of_everything");
    let everything = "-e cpu-clock -F 4999 -a -g -- ./of_everything";
    let Some(recording) = recorder.record(everything) else { return };
    // What else runs on the machine, programs of other tests too, may be another program by now.
    let compared = recorder.agree(&recording, everything, "of_everything");
    assert!(compared.of(";outer;inner") > 50, "{:?}", compared.stacks);
    let compared = recorder.agrees("-e cpu-clock -F 4999 --sample-cpu -- ./of_everything").unwrap();
    assert!(compared.of("of_everything;inner") > 50, "{:?}", compared.stacks);
}

#[test]
fn oracle_several_events_and_those_of_which_none_is_cpu() {
    let recorder = Recorder::new();
    recorder.compile("", "program");
    let events = "-e page-faults -e cpu-clock -e context-switches";
    let Some(compared) = recorder.agrees(&format!("{events} -F 4999 -g -- ./program")) else { return };
    assert!(compared.of(";outer;inner") > 50, "{:?}", compared.stacks);
    let compared = recorder.agrees("-e page-faults -c 1 -g -- ./program").unwrap();
    assert!(compared.samples > 50, "{:?}", compared.stacks);
    let recording = recorder.record("-e page-faults -e context-switches -c 1 -g -- ./program").unwrap();
    assert_eq!(decode(&recording).unwrap_err().reason, Reason::UnitMismatch);
}

#[test]
fn oracle_stripped_static_and_optimised_programs() {
    let recorder = Recorder::new();
    for (options, name) in
        [("-s", "stripped"), ("-static", "static"), ("-rdynamic -s", "exporting"), ("-no-pie", "fixed")]
    {
        recorder.compile(options, name);
        let Some(compared) = recorder.agrees(&format!("-e cpu-clock -F 2999 -g -- ./{name}")) else { return };
        assert!(compared.samples > 100, "{:?}", compared.stacks);
    }
}

/// Where functions of libraries are called from has their names, whatever perf takes it for.
#[test]
fn regression_entries_of_the_linkage_that_perf_takes_for_init() {
    const CALLS: &str = "
        #include <stdlib.h>
        int main(void) { for (int i = 0; i < 30000000; i++) { free(NULL); rand(); } return 0; }";
    let recorder = Recorder::new();
    fs::write(recorder.path("calls.c"), CALLS).unwrap();
    recorder.succeed("cc -O0 -fno-builtin -fno-omit-frame-pointer -o calls calls.c");
    let Some(compared) = recorder.agrees("-e cpu-clock -F 4999 -g -- ./calls") else { return };
    let calls = [";free@plt", ";rand@plt", ";_init"].map(|leaf| compared.of(leaf));
    eprintln!("free, rand, _init: {calls:?}");
    assert!(calls[0] > 10 && calls[1] > 10 && calls[2] == 0, "{:?}", compared.stacks);
}

#[test]
fn oracle_compressed_recordings_and_streams() {
    let recorder = Recorder::new();
    recorder.compile("", "program");
    let Some(compared) = recorder.agrees("-z -e cpu-clock -F 4999 -g -- ./program") else { return };
    assert!(compared.of(";outer;inner") > 50, "{:?}", compared.stacks);
    recorder.succeed("perf record -q -o - -e cpu-clock -e page-faults -F 4999 -g -- ./program > stream.data");
    fs::rename(recorder.path("stream.data"), recorder.path("perf.data")).unwrap();
    let compared = recorder.agree(&fs::read(recorder.path("perf.data")).unwrap(), "a stream", "");
    assert!(compared.of(";outer;inner") > 50, "{:?}", compared.stacks);
}

/// A shell that starts programs: other programs and libraries come to the addresses of those before them.
#[test]
fn oracle_programs_that_start_others() {
    let recorder = Recorder::new();
    recorder.compile("", "program");
    let command =
        "sh -c 'for i in 1 2 3; do ls -lR /usr/lib > /dev/null; ./program; done; (./program; ./program) & wait'";
    let Some(compared) = recorder.agrees(&format!("-e cpu-clock -F 1999 -g -- {command}")) else { return };
    assert!(compared.stacks.keys().any(|stack| stack.starts_with("ls;")), "{:?}", compared.stacks);
}

/// What names of C++ and Rust become.
#[test]
fn oracle_names_of_other_languages() {
    const CPP: &str = "
        #include <vector>
        #include <string>
        #include <algorithm>
        namespace shop { namespace { template <typename T> struct Basket { std::vector<T> items;
            __attribute__((noinline)) T total(const std::string &of, T (*each)(T)) const { T sum = T(); for (auto item : items) sum += each(item); return sum + T(of.size()); }
            __attribute__((noinline)) bool operator<(const Basket &other) const { return total(\"a\", [](T of) { return of + 1; }) < other.total(\"b\", [](T of) { return of * 2; }); } }; } }
        int main() { shop::Basket<long> one{std::vector<long>(500, 3)}, two{std::vector<long>(400, 5)}; long less = 0; for (int i = 0; i < 60000; i++) less += one < two; return less == 1; }";
    const RUST: &str = "
        use std::collections::BTreeMap;
        trait Price { fn price(&self) -> u64; }
        struct Item(u64);
        impl Price for Item { #[inline(never)] fn price(&self) -> u64 { (0..self.0).map(|n| std::hint::black_box(n ^ 7)).sum() } }
        #[inline(never)] fn total<P: Price>(items: &BTreeMap<String, P>) -> u64 { items.values().map(Price::price).sum() }
        fn main() { let items: BTreeMap<String, Item> = (0..200).map(|n| (n.to_string(), Item(n))).collect(); for _ in 0..3000 { std::hint::black_box(total(&items)); } }";
    let recorder = Recorder::new();
    fs::write(recorder.path("shop.cc"), CPP).unwrap();
    fs::write(recorder.path("shop.rs"), RUST).unwrap();
    let cpp = recorder.shell("c++ -O1 -fno-omit-frame-pointer -o shop-cc shop.cc").status.success();
    recorder.succeed("rustc -O -C force-frame-pointers=yes -o shop-rs shop.rs");
    recorder.succeed("rustc -O -C force-frame-pointers=yes -C symbol-mangling-version=v0 -o shop-v0 shop.rs");
    if !cpp {
        eprintln!("no compiler of C++ here: its names are not compared");
    }
    for program in ["shop-cc", "shop-rs", "shop-v0"].into_iter().filter(|program| cpp || *program != "shop-cc") {
        let Some(compared) = recorder.agrees(&format!("-e cpu-clock -F 1999 -g -- ./{program}")) else { return };
        assert!(compared.samples > 50, "{:?}", compared.stacks);
    }
}

/// Code that a program makes itself and names in a table, and the kernel's code in processes.
#[test]
fn oracle_code_that_was_made_and_the_vdso() {
    const JIT: &str = r#"
        #include <stdio.h>
        #include <string.h>
        #include <sys/mman.h>
        #include <time.h>
        #include <unistd.h>
        __attribute__((noinline, aligned(64))) static long body(long n) { volatile long sum = 0; for (long i = 0; i < n; i++) sum += i; return sum; }
        int main(int count, char **named) {
            char *code = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), path[64];
            memcpy(code, (void *)body, 256); memcpy(code + 1024, (void *)body, 256);
            snprintf(path, sizeof path, "/tmp/perf-%d.map", getpid());
            FILE *map = fopen(path, "w");
            fprintf(map, "%lx 100 Lshop/Basket;::total->Lshop/Price;::add\n", (long)code); fclose(map);
            if (count > 1) puts(path);
            for (int i = 0; i < 40; i++) { ((long (*)(long))code)(400000); ((long (*)(long))(code + 1024))(200000); }
            struct timespec now; for (int i = 0; i < 1000000; i++) clock_gettime(CLOCK_MONOTONIC, &now);
            return 0;
        }"#;
    let recorder = Recorder::new();
    fs::write(recorder.path("jit.c"), JIT).unwrap();
    recorder.succeed("cc -O0 -fno-omit-frame-pointer -o jit jit.c");
    let compared = recorder.agrees("-e cpu-clock -F 1999 -g -- ./jit named > path");
    let path = fs::read_to_string(recorder.path("path")).unwrap_or_default();
    let removed = fs::remove_file(path.trim());
    let Some(compared) = compared else { return };
    removed.unwrap();
    assert!(compared.of("shop/Basket:::total;shop/Price:::add_[i]") > 20, "{:?}", compared.stacks);
    assert!(compared.of("__vdso_clock_gettime") > 5, "{:?}", compared.stacks);
}

/// A program that was built anew is another: neither perf nor we give its functions to the addresses of the old one.
#[test]
fn oracle_a_program_that_is_another_by_now() {
    let recorder = Recorder::new();
    recorder.compile("-DOF=1", "program");
    let Some(recording) = recorder.record("-N -e cpu-clock -F 1999 -g -- ./program") else { return };
    fs::write(recorder.path("other.c"), "int inner; int main(void) { return inner; }").unwrap();
    recorder.succeed("cc -o program other.c");
    let compared = recorder.agree(&recording, "a program that is another by now", "");
    assert!(compared.of(";[program];[program]") > 50 && compared.of("inner") == 0, "{:?}", compared.stacks);
}

#[test]
fn what_is_not_read_is_refused_by_its_name_with_the_command_that_converts_it() {
    let recorder = Recorder::new();
    recorder.compile("", "program");
    let Some(dwarf) = recorder.record("-e cpu-clock -F 499 --call-graph dwarf,4096 -- ./program") else { return };
    let group = recorder.record("-e '{cpu-clock,page-faults}:S' -F 499 -g -- ./program").unwrap();
    let whole = recorder.record("-e cpu-clock -F 499 -g -- ./program").unwrap();
    let nowhere = part(&mut *Format::PerfData.decoder(&Options::default()), &whole, &Ok(labels(ProfileType::Cpu)));
    let cases = [
        (decode(&dwarf), Reason::UnsupportedType, "--call-graph dwarf"),
        (decode(&group), Reason::UnsupportedType, ":S"),
        (decode(&whole[..whole.len() / 2]), Reason::Truncated, "cut"),
        (nowhere, Reason::UnsupportedType, "only the machine knows"),
    ];
    for (read, reason, said) in cases {
        let fault = read.unwrap_err();
        assert_eq!(fault.reason, reason, "{fault:?}");
        let says = |text: &str| fault.detail.contains(text);
        assert!(says("a recording of perf (perf.data)") && says("perf script -F +pid -i") && says(said), "{fault:?}");
    }
    let none = recorder.record("-e page-faults:k -c 1000000 -g -- true").unwrap();
    assert_eq!(decode(&none).unwrap_err().reason, Reason::Empty);
}

/// Ways to record that change which records there are, how they are laid out and in which order they come.
#[test]
fn oracle_other_ways_to_record() {
    let recorder = Recorder::new();
    recorder.compile("", "program");
    let ways = [
        "--buildid-mmap",
        "--per-thread",
        "-d -T --sample-identifier",
        "--intr-regs=ip,sp --user-regs=ip,sp",
        "--switch-events --namespaces",
        "--all-user",
        "-k monotonic",
    ];
    let mut compared = 0;
    for way in ways {
        let arguments = format!("-e cpu-clock -F 1999 -g {way} -- ./program");
        compared += u32::from(recorder.agrees(&arguments).is_some());
        fs::remove_file(recorder.path("perf.data")).ok();
    }
    // A process that runs already.
    let attached = "-e cpu-clock -F 1999 -g -p $(./program long > /dev/null 2>&1 & echo $!)";
    compared += u32::from(recorder.agrees(attached).is_some());
    eprintln!("{compared} of {} ways", ways.len() + 1);
}

/// Of a point in the kernel's code, a sample has the stack of whoever comes there. NB: asked for fields (`-F +pid`), perf leaves out the stacks of such events.
#[test]
fn oracle_threads_that_stop_running() {
    let recorder = Recorder::new();
    recorder.compile("", "program");
    let Some(recording) = recorder.record("-e sched:sched_switch -g -- ./program") else { return };
    let (text, labels) = (recorder.succeed("perf script --no-inline -i perf.data"), Ok(labels(ProfileType::OffCpu)));
    let read =
        |format: Format, bytes: &[u8]| stacks(&part(&mut *format.decoder(&options(format)), bytes, &labels).unwrap());
    let (ours, theirs) = (read(Format::PerfData, &recording), read(Format::PerfScript, &text));
    same(&ours, &theirs, "sched:sched_switch");
    assert!(ours.keys().any(|stack| stack.contains("main @ program;")), "{ours:?}");
    eprintln!("sched:sched_switch: {} samples of {} stacks", ours.values().sum::<u64>(), ours.len());
}
