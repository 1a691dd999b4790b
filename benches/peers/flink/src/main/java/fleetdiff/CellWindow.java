package fleetdiff;

import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.nio.ByteOrder;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.commons.numbers.gamma.Erfc;
import org.apache.flink.api.java.tuple.Tuple5;

/** What the window holds of one cell: dense counts by function and arm, and the profiles that have yet to come in or to leave. */
final class CellWindow {
    static final double Q = 0.05;
    static final int MIN_COUNT = 30;
    /** Chi-square with 1 degree of freedom at p = .05, less a little: Benjamini-Hochberg flags no row below. */
    private static final double CANDIDATE = 3.84;

    private static final VarHandle INTS = MethodHandles.byteArrayViewVarHandle(int[].class, ByteOrder.LITTLE_ENDIAN);
    private static final VarHandle SHORTS = MethodHandles.byteArrayViewVarHandle(short[].class, ByteOrder.LITTLE_ENDIAN);

    private final int window;
    /** Base and head of a function side by side. */
    private final int[] counts;
    private final long[] samples = new long[2];
    /** By hop and arm. */
    private final Map<Integer, List<List<byte[]>>> profiles = new HashMap<>();
    private final double[] p;
    private final int[] flaggable;

    CellWindow(int functions, int window) {
        this.window = window;
        counts = new int[2 * functions];
        p = new double[functions];
        flaggable = new int[functions];
    }

    /** Keeps a profile until its hop ends; whether it is the first of that hop. */
    boolean keep(int hop, int arm, byte[] records) {
        List<List<byte[]>> arms = profiles.get(hop);
        boolean first = arms == null;
        if (first) {
            arms = List.of(new ArrayList<>(), new ArrayList<>());
            profiles.put(hop, arms);
        }
        arms.get(arm).add(records);
        return first;
    }

    /** Ends a hop: its profiles come, and those of the hop that leaves the window go. */
    void slide(int hop) {
        change(profiles.get(hop), 1);
        change(profiles.remove(hop - window), -1);
    }

    private void change(List<List<byte[]>> arms, int sign) {
        for (int arm = 0; arms != null && arm < 2; arm++) {
            long whole = 0;
            for (byte[] records : arms.get(arm)) {
                for (int at = 0; at < records.length; at += Fleet.RECORD) {
                    int count = (short) SHORTS.get(records, at + 4);
                    counts[2 * (int) INTS.get(records, at) + arm] += sign * count;
                    whole += count;
                }
            }
            samples[arm] += sign * whole;
        }
    }

    /** Hop, cell, number of tests, and p and function of each row that may be flagged. */
    Tuple5<Integer, Integer, Integer, double[], int[]> test(int hop, int cell) {
        int tests = 0;
        int candidates = 0;
        if (samples[0] > 0 && samples[1] > 0) {
            for (int function = 0; 2 * function < counts.length; function++) {
                int base = counts[2 * function];
                int head = counts[2 * function + 1];
                if (base + head < MIN_COUNT) {
                    continue;
                }
                tests++;
                double g = statistic(base, head);
                if (g > CANDIDATE) {
                    p[candidates] = Erfc.value(Math.sqrt(g / 2));
                    flaggable[candidates++] = function;
                }
            }
        }
        return Tuple5.of(hop, cell, tests, Arrays.copyOf(p, candidates), Arrays.copyOf(flaggable, candidates));
    }

    /** G of the table of the function against the rest of the cell's samples. */
    private double statistic(int base, int head) {
        double ofBase = samples[0];
        double ofHead = samples[1];
        double share = (base + head) / (ofBase + ofHead);
        return 2 * (term(base, ofBase * share)
                + term(head, ofHead * share)
                + term(ofBase - base, ofBase * (1 - share))
                + term(ofHead - head, ofHead * (1 - share)));
    }

    private static double term(double count, double expected) {
        return count > 0 ? count * Math.log(count / expected) : 0;
    }
}
