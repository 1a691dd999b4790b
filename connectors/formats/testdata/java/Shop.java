// Two threads that work, allocate, wait for one lock, and sleep; recorded for the tests of the reader of Flight Recorder.
import java.util.HashMap;
import java.util.Map;

public class Shop {
    static final Object TILL = new Object();
    static volatile long sink;

    static long price(long seed) {
        long sum = seed;
        for (int i = 0; i < 20_000; i++) sum = sum * 6364136223846793005L + i;
        return sum;
    }

    static long tax(long seed) {
        long sum = seed;
        for (int i = 0; i < 10_000; i++) sum ^= sum << 13 ^ sum >>> 7;
        return sum;
    }

    static Map<Long, byte[]> cart(long seed) {
        Map<Long, byte[]> cart = new HashMap<>();
        for (long i = 0; i < 40; i++) cart.put(seed + i, new byte[1_000]);
        return cart;
    }

    static void pay(long millis) throws Exception {
        synchronized (TILL) { Thread.sleep(millis); }
    }

    static void serve(long until) {
        try {
            for (long turn = 0; System.nanoTime() < until; turn++) {
                for (int i = 0; i < 40; i++) { sink += price(i) + tax(i); }
                sink += cart(turn).size();
                Runnable later = () -> sink += price(sink);
                later.run();
                if (turn % 50 == 0) pay(25);
            }
        } catch (Exception error) { throw new RuntimeException(error); }
    }

    public static void main(String[] arguments) throws Exception {
        long until = System.nanoTime() + Long.parseLong(arguments[0]) * 1_000_000L;
        Thread[] threads = { new Thread(() -> serve(until), "till-1"), new Thread(() -> serve(until), "till-2") };
        for (Thread thread : threads) thread.start();
        for (Thread thread : threads) thread.join();
    }
}
