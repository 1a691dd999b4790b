package fleetdiff;

import java.util.concurrent.atomic.AtomicLong;

/** What one run of the job finds, and when. Source, cells and sink are threads of one process. */
final class Pass {
    private static final AtomicLong START = new AtomicLong();
    private static final AtomicLong TESTS = new AtomicLong();
    private static long end;
    private static long flags;
    private static long hash;

    private Pass() {}

    static void begin() {
        START.set(Long.MIN_VALUE);
        TESTS.set(0);
        end = flags = hash = 0;
    }

    /** A cell has filled its window: the clock starts with the last of them. */
    static void filled() {
        START.accumulateAndGet(System.nanoTime(), Math::max);
    }

    static void tested(int tests) {
        TESTS.addAndGet(tests);
    }

    /** The flags of a hop have reached the sink, a single thread. */
    static void flagged(int hop, long[] rows, int functions) {
        end = System.nanoTime();
        flags += rows.length;
        for (long row : rows) {
            long z = ((long) hop << 48 | row / functions << 32 | row % functions) + 0x9e3779b97f4a7c15L;
            z = (z ^ (z >>> 30)) * 0xbf58476d1ce4e5b9L;
            z = (z ^ (z >>> 27)) * 0x94d049bb133111ebL;
            hash += z ^ (z >>> 31);
        }
    }

    static String line() {
        return String.format("%d %d %d %016x", end - START.get(), flags, TESTS.get(), hash);
    }
}
