use std::sync::Arc;

use fleetdiff_schemas::config::Config;
use fleetdiff_schemas::identity::Identity;
use fleetdiff_schemas::profile::{Profile, ProfileType, Samples, Stack, Temporality};
use fleetdiff_schemas::time::{Nanos, TimeRange};
use proptest::prelude::*;

use super::*;

/// Whether a stack, written root first, is idle.
fn idle(lists: &Idle, stack: &str) -> bool {
    is_idle(stack.split(';').map(|name| lists.says(name)))
}

/// Stacks of a runtime that are idle, and stacks that are not.
fn check(idle_stacks: &[&str], busy_stacks: &[&str]) {
    let lists = Idle::new(&Config::default());
    idle_stacks.iter().for_each(|stack| assert!(idle(&lists, stack), "not idle: {stack}"));
    busy_stacks.iter().for_each(|stack| assert!(!idle(&lists, stack), "idle: {stack}"));
}

fn own(entries: &[&str]) -> Idle {
    let idle = entries.iter().map(|&entry| entry.into()).collect();
    Idle::new(&Config { idle_defaults: false, idle, ..Config::default() })
}

#[test]
fn kernel_and_libc() {
    check(
        &[
            "start_thread;loop;epoll_wait;do_syscall_64;do_epoll_wait;ep_poll;schedule",
            "main;serve;accept4;__x64_sys_accept4_[k];inet_csk_accept_[k];schedule_timeout_[k]",
            "signals;__sigtimedwait",
        ],
        &[
            "main;handle;pthread_mutex_lock;__x64_sys_futex;futex_wait;schedule",
            "main;handle;pthread_cond_wait;futex_wait_queue",
            "main;handle;PQgetResult;poll;do_sys_poll;schedule",
            "main;handle;try_again;nanosleep;hrtimer_nanosleep;schedule",
            "main;handle;wake;ep_poll_callback",
            "main;compile;accept;visit_node",
        ],
    );
}

#[test]
fn go() {
    check(
        &[
            "runtime.mcall;runtime.park_m;runtime.schedule;runtime.findRunnable;runtime.stopm;runtime.futex",
            "runtime.gcBgMarkWorker;runtime.gopark",
            "main.main;net/http.(*Server).Serve;net.(*TCPListener).Accept;net.(*netFD).accept;runtime.netpollblock",
        ],
        &[
            "net/http.(*conn).serve;main.handle;net.(*netFD).Read;internal/poll.(*FD).Read;runtime.netpollblock",
            "net/http.(*conn).serve;main.handle;sync.(*Mutex).Lock;runtime.semacquire1;runtime.gopark",
            "runtime.gcBgMarkWorker;runtime.systemstack;runtime.gcBgMarkWorker.func2;runtime.gcDrain",
            "runtime.mcall;runtime.park_m;runtime.schedule;runtime.stoplockedm;runtime.mPark;runtime.futexsleep",
        ],
    );
}

#[test]
fn jvm() {
    check(
        &[
            "java/lang/Thread.run;java/util/concurrent/ThreadPoolExecutor$Worker.run;java/util/concurrent/ThreadPoolExecutor.getTask_[j];java/util/concurrent/LinkedBlockingQueue.take;jdk/internal/misc/Unsafe.park",
            "java.lang.Thread.run;java.util.concurrent.ThreadPoolExecutor.getTask;java.util.concurrent.locks.LockSupport.park",
            "java.util.concurrent.ForkJoinWorkerThread.run;java.util.concurrent.ForkJoinPool.runWorker;java.util.concurrent.ForkJoinPool.awaitWork",
            "io/netty/channel/nio/NioEventLoop.run;sun/nio/ch/SelectorImpl.select;sun/nio/ch/EPoll.wait",
            "java.lang.ref.Finalizer$FinalizerThread.run;java.lang.ref.ReferenceQueue.remove(long)",
            "java/net/ServerSocket.implAccept;sun/nio/ch/NioSocketImpl.accept",
        ],
        &[
            "java/util/concurrent/ThreadPoolExecutor.runWorker;com/shop/Cart.total;java/util/concurrent/locks/LockSupport.park",
            "java/util/concurrent/ThreadPoolExecutor.runWorker;com/shop/Cart.total;java/util/concurrent/FutureTask.get",
            "com/shop/Metrics.report;java/util/concurrent/ThreadPoolExecutor.getTaskCount",
            "java/util/concurrent/ForkJoinPool.runWorker;com/shop/Cart.total;java/lang/Object.wait",
            "com/shop/Files.read;org/apache/hadoop/net/SocketIOWithTimeout$SelectorPool.select;sun/nio/ch/EPoll.wait",
            "com/shop/Client.call;sun/nio/ch/EPollArrayWrapper.epollCtl",
        ],
    );
}

/// Maps of symbols that `perf` reads write a class as the machine does, with the sign that divides the frames above.
#[test]
fn jvm_by_maps_of_symbols() {
    let lists = Idle::new(&Config::default());
    assert_eq!(lists.says("Lsun/nio/ch/EPollArrayWrapper;::poll"), Says::Idle);
    assert_eq!(lists.says("Ljava/util/concurrent/ThreadPoolExecutor;::getTask"), Says::Idle);
    assert_eq!(lists.says("Ljava/util/concurrent/ThreadPoolExecutor;::runWorker"), Says::Nothing);
}

#[test]
fn node() {
    check(
        &[
            "(idle)",
            "node::Start;uv_run;uv__io_poll;epoll_pwait",
            "node::TaskQueue<v8::Task>::BlockingPop();uv_cond_wait",
        ],
        &[
            "node::Start;uv_run;uv__io_poll;uv__stream_io;handle (server.js);readSync (fs.js)",
            "worker;uv__fs_work;read",
        ],
    );
}

#[test]
fn python() {
    check(
        &[
            "<module> (app.py);run_forever (asyncio/base_events.py);_run_once (asyncio/base_events.py);select (selectors.py)",
            "_run_once;EpollSelector.select",
            "serve (server.py);accept (socket.py)",
        ],
        &[
            "_run_once (asyncio/base_events.py);handle (app.py);get (requests/api.py);recv_into (socket.py)",
            "handle (app.py);run (subprocess.py);_communicate (subprocess.py);select (selectors.py)",
            "handle (app.py);execute (psycopg/cursor.py);wait_epoll (psycopg/waiting.py);epoll_wait",
            "handle (app.py);wait (threading.py)",
        ],
    );
}

#[test]
fn dotnet() {
    check(
        &[
            "System.Threading.PortableThreadPool+WorkerThread.WorkerThreadStart();System.Threading.LowLevelLifoSemaphore.Wait(int32,bool)",
            "bool [System.Private.CoreLib] System.Threading.LowLevelLifoSemaphore::WaitForSignal(int32)[Optimized]",
            "System.Net.Sockets.SocketAsyncEngine.EventLoop();Interop+Sys.WaitForSocketEvents",
        ],
        &[
            "System.Threading.PortableThreadPool+WorkerThread.WorkerThreadStart();Shop.Cart.Total();System.Threading.Monitor.Wait(object)",
            "Shop.Cart.Total();System.Threading.ManualResetEventSlim.Wait(int32)",
        ],
    );
}

#[test]
fn ruby() {
    check(
        &[
            "Thread#new;Puma::Server#handle_servers;IO.select",
            "block in run - puma/server.rb;handle_servers - puma/server.rb;select - <internal>",
            "Sidekiq::BasicFetch#retrieve_work;RedisClient#blocking_call",
        ],
        &[
            "thread_start_func_2;Cart#total;Net::BufferedIO#rbuf_fill;IO#wait_readable",
            "Arel::Visitors::Visitor#accept",
            "Cart#total;Thread::Queue#pop",
        ],
    );
}

#[test]
fn rust() {
    check(
        &[
            "tokio::runtime::scheduler::multi_thread::worker::run;tokio::runtime::scheduler::multi_thread::worker::Context::park_timeout;mio::poll::Poll::poll",
            "tokio::runtime::scheduler::multi_thread::worker::Context::park;parking_lot::condvar::Condvar::wait",
        ],
        &[
            "tokio::runtime::runtime::Runtime::block_on;tokio::runtime::park::CachedParkThread::block_on;shop::fetch;tokio::runtime::park::CachedParkThread::park",
            "shop::total;std::sys::sync::mutex::futex::Mutex::lock_contended",
            "tokio::runtime::blocking::pool::Inner::run;shop::read;std::fs::File::read",
        ],
    );
}

#[test]
fn cpp() {
    check(
        &[
            "folly::ThreadPoolExecutor::runTask;folly::PriorityLifoSemMPMCQueue<folly::CPUThreadPoolExecutor::CPUTask, 0>::try_take_for;folly::LifoSem::wait",
            "bthread::TaskGroup::run_main_task;bthread::TaskGroup::wait_task(unsigned long*);futex_wait",
        ],
        &[
            "handle;grpc::internal::BlockingUnaryCall;grpc_completion_queue_pluck;pollset_work;epoll_wait;ep_poll",
            "ngx_epoll_process_events;ngx_http_handler;read",
            "handle;std::condition_variable::wait(std::unique_lock<std::mutex>&)",
        ],
    );
}

#[test]
fn threads_and_kinds_of_frames_do_not_matter() {
    let lists = own(&["wait*work", "fixed_[j]"]);
    for name in
        ["wait_for_work", "waitwork", "wait_for_work @ pool-1", "wait_for_work_[k]", "wait_for_work_[j] @ a @ b"]
    {
        assert_eq!(idle(&lists, name), !name.ends_with("@ b"), "{name}");
    }
    assert!(idle(&lists, "fixed_[j]") && !idle(&lists, "fixed"));
    assert!(!idle(&lists, "await_for_work") && !idle(&lists, "wait_for_works"));
}

#[test]
fn an_entry_may_be_of_a_thread() {
    let lists = own(&["cond_wait @ bio_*", "*poll", "!sync @ bio_aof"]);
    assert!(idle(&lists, "cond_wait @ bio_aof") && idle(&lists, "cond_wait_[k] @ bio_free"));
    assert!(!idle(&lists, "cond_wait @ server") && !idle(&lists, "cond_wait") && !idle(&lists, "wait @ bio_aof"));
    assert!(
        idle(&lists, "ep_poll @ server") && !idle(&lists, "work @ poll"),
        "an entry without a thread is of functions"
    );
    assert!(!idle(&lists, "cond_wait @ bio_aof;sync @ bio_aof") && idle(&lists, "cond_wait @ bio_aof;sync @ bio_free"));
    assert!(!idle(&lists, "cond_wait @ x @ bio_aof"), "the last @ divides");
}

#[test]
fn a_kept_function_keeps_its_stacks_wherever_it_is() {
    let lists = own(&["poll", "!call*"]);
    assert!(idle(&lists, "main;poll") && idle(&lists, "poll;inner"));
    assert!(!idle(&lists, "call_out;poll") && !idle(&lists, "poll;call"));
    assert!(own(&[]).is_empty() && !Idle::new(&Config::default()).is_empty());
    let both = Idle::new(&Config { idle: vec!["!ep_poll".into(), "rest".into()], ..Config::default() });
    assert!(!idle(&both, "main;ep_poll") && idle(&both, "main;rest") && idle(&both, "runtime.findRunnable"));
}

fn profile(profile_type: ProfileType, temporality: Temporality, samples: Samples) -> Profile {
    let identity = Identity {
        service: "shop".into(),
        build: "v1".into(),
        region: "east".into(),
        cohort: "all".into(),
        hardware: "h".into(),
        node: None,
        pod: "p".into(),
        process_start: None,
    };
    let names = ["main", "ep_poll", "work"].map(Arc::from).to_vec().into();
    let window = TimeRange { start: Nanos(0), end: Nanos(10) };
    Profile { identity: identity.into(), profile_type, temporality, window, requests: None, names, samples }
}

#[test]
fn only_whole_stacks_of_passing_time_within_a_window_are_taken_out() {
    let stack = |frames: &[u32], count| Stack { frames: frames.to_vec(), count, cohort: None, value: 0 };
    let stacks = vec![stack(&[0, 1], 95), stack(&[0, 2], 4), stack(&[], 1), stack(&[0, 9], 2)];
    let take = |kind, temporality| {
        let mut taken = profile(kind, temporality, Samples::Stacks(stacks.clone()));
        let idle = IdleStacks::new(&Config::default()).take_from(&mut taken, &[5, 3, 8]);
        (idle, taken.total())
    };
    assert_eq!(take(ProfileType::OffCpu, Temporality::Delta), (95, 7));
    assert_eq!(take(ProfileType::Wall, Temporality::Delta), (95, 7));
    assert_eq!(take(ProfileType::OffCpu, Temporality::Cumulative), (0, 102));
    for (kind, _) in
        ProfileType::ALL.iter().filter(|(kind, _)| ![ProfileType::OffCpu, ProfileType::Wall].contains(kind))
    {
        assert_eq!(take(*kind, Temporality::Delta), (0, 102), "{kind:?}");
    }
}

proptest! {
    /// A name has the parts of a glob if some cut of it does.
    #[test]
    fn oracle_globs_equal_trying_every_cut(glob in "[ab*]{0,6}", name in "[ab]{0,8}") {
        fn fits(glob: &[u8], name: &[u8]) -> bool {
            match glob.split_first() {
                None => name.is_empty(),
                Some((b'*', glob)) => (0..=name.len()).any(|cut| fits(glob, &name[cut..])),
                Some((letter, glob)) => name.split_first().is_some_and(|(first, name)| first == letter && fits(glob, name)),
            }
        }
        let mut patterns = Patterns::default();
        patterns.add(&glob);
        prop_assert_eq!(patterns.have(&name), fits(glob.as_bytes(), name.as_bytes()));
    }
}
