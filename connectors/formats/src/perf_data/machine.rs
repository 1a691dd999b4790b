//! Threads, their names and what they have mapped, as records say one by one. The rules are those of perf (`tools/perf/util/machine.c`).

use std::collections::{HashMap, VecDeque};
use std::rc::Rc;

use fleetdiff_schemas::rejected::Rejection;
use linux_perf_event_reader::{
    CommOrExecRecord, CpuMode, EventRecord, ForkOrExitRecord, Mmap2FileId, Mmap2Record, MmapRecord, RawData,
    RawEventRecord, RecordType,
};

use super::maps::{AddressSpace, Mapping};
use crate::budget::Budget;

/// What a thread and an object are counted as, beside their names.
const THREAD: usize = 256;
const OBJECT: usize = 256;

/// How many threads that ended are remembered: samples of them may still come.
const ENDED: usize = 4096;

/// That a thread was there before the recording, so that it has nothing of its parent; in a record of a fork.
const WAS_THERE: u16 = 1 << 13;
/// That a mapping's record has a build id.
const HAS_BUILD_ID: u16 = 1 << 14;
/// Where that has its length, and how long it can be.
const BUILD_ID_LENGTH: usize = 32;
const LONGEST_BUILD_ID: u8 = 20;
/// Of a mapping: that it can be executed; that it is of huge pages.
const EXECUTABLE: u32 = 4;
const HUGE: u32 = 0x4_0000;

/// How the kernel's own mapping is named, before the symbol that says where it is.
pub(super) const KERNEL: &str = "[kernel.kallsyms]";

/// A program, a library, or what else can be mapped.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Object {
    /// As perf prints it.
    pub(super) name: Rc<str>,
    pub(super) kind: Kind,
    pub(super) build_id: Option<Vec<u8>>,
}

/// Where its functions are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Kind {
    /// In the file of its name.
    File,
    /// In the table that a JIT compiler wrote.
    Jitted,
    /// In the part of the kernel that processes have mapped.
    Vdso,
    /// In the kernel, or in one of its modules.
    Kernel,
    /// Nowhere.
    Data,
}

#[derive(Debug)]
struct Thread {
    pid: i32,
    comm: Option<Rc<str>>,
    space: AddressSpace,
    has_ended: bool,
}

impl Thread {
    /// One of which nothing is known but its process.
    fn of(pid: i32) -> Self {
        Self { pid, comm: None, space: AddressSpace::default(), has_ended: false }
    }
}

/// The machine at the time of the record that was taken last.
pub(super) struct Machine<'b> {
    threads: HashMap<i32, Thread, foldhash::fast::RandomState>,
    ended: VecDeque<i32>,
    kernel: AddressSpace,
    pub(super) objects: Objects,
    budget: &'b Budget,
}

/// All objects, and where the kernel was.
#[derive(Debug)]
pub(super) struct Objects {
    pub(super) list: Vec<Object>,
    places: HashMap<Object, u32, foldhash::fast::RandomState>,
    /// A symbol of the kernel and its address.
    pub(super) landmark: Option<(String, u64)>,
}

/// The kernel is the first object.
const THE_KERNEL: u32 = 0;

impl<'b> Machine<'b> {
    pub(super) fn new(budget: &'b Budget) -> Self {
        let kernel = Object { name: KERNEL.into(), kind: Kind::Kernel, build_id: None };
        let mut machine = Self {
            threads: HashMap::default(),
            ended: VecDeque::new(),
            kernel: AddressSpace::default(),
            objects: Objects {
                places: [(kernel.clone(), THE_KERNEL)].into_iter().collect(),
                list: vec![kernel],
                landmark: None,
            },
            budget,
        };
        let idle = Thread { pid: 0, comm: Some("swapper".into()), space: AddressSpace::default(), has_ended: false };
        machine.threads.insert(0, idle);
        machine
    }

    /// Takes what a record says; one that cannot be read says nothing.
    ///
    /// # Errors
    /// `too_large`.
    pub(super) fn take(&mut self, record: &RawEventRecord<'_>) -> Result<(), Rejection> {
        if !is_readable(record) {
            return Ok(());
        }
        match record.parse() {
            Ok(EventRecord::Comm(comm)) => self.rename(&comm),
            Ok(EventRecord::Fork(fork)) => self.fork(&fork, record.misc & WAS_THERE != 0),
            Ok(EventRecord::Exit(exit)) => {
                self.end(exit.tid);
                Ok(())
            }
            Ok(EventRecord::Mmap(map)) => self.map_plainly(&map),
            Ok(EventRecord::Mmap2(map)) => self.map(&map),
            _ => Ok(()),
        }
    }

    /// The name of a thread.
    pub(super) fn comm(&mut self, pid: i32, tid: i32) -> Result<Rc<str>, Rejection> {
        let known = self.thread(pid, tid)?.comm.clone();
        Ok(known.unwrap_or_else(|| format!(":{tid}").into()))
    }

    /// What a thread has mapped.
    pub(super) fn space(&mut self, pid: i32, tid: i32) -> Result<AddressSpace, Rejection> {
        Ok(self.thread(pid, tid)?.space.clone())
    }

    /// Where in the kernel or its modules an address is.
    pub(super) fn in_kernel(&self, address: u64) -> (u32, u64) {
        self.kernel.find(address).map_or((THE_KERNEL, address), |(object, _)| (object, address))
    }

    /// A thread, which is known from now on. A thread has what its process has mapped, which is known by its first thread.
    fn thread(&mut self, pid: i32, tid: i32) -> Result<&mut Thread, Rejection> {
        let known = self.threads.get(&tid).map(|thread| thread.pid);
        let is_nobodys = known == Some(-1) && pid != -1;
        if known.is_none() || is_nobodys {
            let leads = pid == tid || pid == -1;
            let space = if leads { None } else { Some(self.leader(pid)?) };
            if known.is_none() {
                self.budget.take(THREAD)?;
            }
            let thread = self.threads.entry(tid).or_insert_with(|| Thread::of(pid));
            thread.pid = pid;
            thread.space = space.unwrap_or_else(|| thread.space.clone());
            return Ok(thread);
        }
        Ok(self.threads.entry(tid).or_insert_with(|| Thread::of(pid)))
    }

    /// What the first thread of a process has mapped.
    fn leader(&mut self, pid: i32) -> Result<AddressSpace, Rejection> {
        if !self.threads.contains_key(&pid) {
            self.budget.take(THREAD)?;
        }
        Ok(self.threads.entry(pid).or_insert_with(|| Thread::of(pid)).space.clone())
    }

    fn forget(&mut self, tid: i32) {
        if self.threads.remove(&tid).is_some() {
            self.budget.give_back(THREAD);
        }
    }

    fn rename(&mut self, comm: &CommOrExecRecord<'_>) -> Result<(), Rejection> {
        let name = text(comm.name);
        self.thread(comm.pid, comm.tid)?.comm = Some(name.into());
        Ok(())
    }

    fn fork(&mut self, fork: &ForkOrExitRecord, was_there: bool) -> Result<(), Rejection> {
        if self.thread(fork.ppid, fork.ptid)?.pid != fork.ppid {
            // The number was given to another, and that was not recorded.
            self.forget(fork.ptid);
        }
        let parent = self.thread(fork.ppid, fork.ptid)?;
        let (comm, space, parents) = (parent.comm.clone(), parent.space.clone(), parent.pid);
        self.forget(fork.tid);
        let child = self.thread(fork.pid, fork.tid)?;
        child.comm = comm;
        if child.pid != parents && !was_there {
            child.space = space.forked();
        }
        Ok(())
    }

    fn end(&mut self, tid: i32) {
        let Some(thread) = self.threads.get_mut(&tid) else { return };
        thread.has_ended = true;
        self.ended.push_back(tid);
        if self.ended.len() > ENDED
            && let Some(oldest) = self.ended.pop_front()
            && self.threads.get(&oldest).is_some_and(|thread| thread.has_ended)
        {
            self.forget(oldest);
        }
    }

    fn map_plainly(&mut self, map: &MmapRecord<'_>) -> Result<(), Rejection> {
        let protection = if map.is_executable { EXECUTABLE } else { 0 };
        self.map(&Mmap2Record {
            pid: map.pid,
            tid: map.tid,
            address: map.address,
            length: map.length,
            page_offset: map.page_offset,
            file_id: Mmap2FileId::BuildId(Vec::new()),
            protection,
            flags: 0,
            cpu_mode: map.cpu_mode,
            path: map.path,
        })
    }

    fn map(&mut self, map: &Mmap2Record<'_>) -> Result<(), Rejection> {
        let build_id = match &map.file_id {
            Mmap2FileId::BuildId(id) if !id.is_empty() => Some(id.clone()),
            _ => None,
        };
        let path = text(map.path);
        match map.cpu_mode {
            CpuMode::Kernel => self.map_kernel(map, &path),
            CpuMode::GuestKernel | CpuMode::GuestUser | CpuMode::Hypervisor => Ok(()),
            _ => self.map_in_process(map, &path, build_id),
        }
    }

    fn map_in_process(
        &mut self,
        map: &Mmap2Record<'_>,
        path: &str,
        build_id: Option<Vec<u8>>,
    ) -> Result<(), Rejection> {
        let is_anonymous = ["//anon", "/dev/zero", "/anon_hugepage"].iter().any(|start| path.starts_with(start));
        let of_nothing = is_anonymous
            || map.flags & HUGE != 0
            || path.starts_with("[stack")
            || path.starts_with("/SYSV")
            || path == "[heap]";
        let kind = match () {
            () if of_nothing && map.protection & EXECUTABLE != 0 => Kind::Jitted,
            () if of_nothing => Kind::Data,
            () if path == "[vdso]" => Kind::Vdso,
            () if path.starts_with('/') => Kind::File,
            () => Kind::Data,
        };
        let name = if kind == Kind::Jitted { format!("/tmp/perf-{}.map", map.pid) } else { path.to_owned() };
        let object = self.objects.place(Object { name: name.into(), kind, build_id }, self.budget)?;
        let mapping = Mapping {
            end: map.address.saturating_add(map.length),
            offset: if kind == Kind::Vdso { 0 } else { map.page_offset },
            object,
            is_identical: of_nothing,
        };
        self.space(map.pid, map.tid)?.map(map.address, mapping, self.budget)
    }

    /// The kernel itself, or one of its modules, which perf names by its file without the ending.
    fn map_kernel(&mut self, map: &Mmap2Record<'_>, path: &str) -> Result<(), Rejection> {
        if let Some(landmark) = path.strip_prefix(KERNEL) {
            self.objects.landmark.get_or_insert_with(|| (landmark.to_owned(), map.page_offset));
            return Ok(());
        }
        let file = path.rsplit('/').next().unwrap_or(path);
        let name = match file.split_once(".ko") {
            Some((module, _)) => format!("[{}]", module.replace('-', "_")),
            None => file.to_owned(),
        };
        let object = Object { name: name.into(), kind: Kind::Kernel, build_id: None };
        let object = self.objects.place(object, self.budget)?;
        let end = map.address.saturating_add(map.length);
        let mapping = Mapping { end, offset: 0, object, is_identical: true };
        self.kernel.map(map.address, mapping, self.budget)
    }
}

impl Objects {
    fn place(&mut self, object: Object, budget: &Budget) -> Result<u32, Rejection> {
        if let Some(place) = self.places.get(&object) {
            return Ok(*place);
        }
        budget.take(OBJECT + 2 * object.name.len())?;
        // NB: there are fewer than 2^32, for a recording is smaller than that; the last is a ceiling never reached.
        let place = u32::try_from(self.list.len()).unwrap_or(u32::MAX);
        budget.push(&mut self.list, object.clone())?;
        self.places.insert(object, place);
        Ok(place)
    }
}

/// Whether the reader of records can read it: it takes a build id's length at its word.
fn is_readable(record: &RawEventRecord<'_>) -> bool {
    if record.record_type != RecordType::MMAP2 || record.misc & HAS_BUILD_ID == 0 {
        return true;
    }
    record.data.as_slice().get(BUILD_ID_LENGTH).is_some_and(|length| *length <= LONGEST_BUILD_ID)
}

fn text(bytes: RawData<'_>) -> String {
    String::from_utf8_lossy(&bytes.as_slice()).into_owned()
}
