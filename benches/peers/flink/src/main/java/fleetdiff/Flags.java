package fleetdiff;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.flink.api.java.tuple.Tuple2;
import org.apache.flink.api.java.tuple.Tuple5;
import org.apache.flink.streaming.api.functions.ProcessFunction;
import org.apache.flink.util.Collector;

/** The second step: Benjamini-Hochberg over the rows of all cells, once all of them have reported a hop. Gives hop and cell * functions + function. */
final class Flags extends ProcessFunction<Tuple5<Integer, Integer, Integer, double[], int[]>, Tuple2<Integer, long[]>> {
    private final int cells;
    private final long functions;
    private final Map<Integer, List<Tuple5<Integer, Integer, Integer, double[], int[]>>> open = new HashMap<>();

    Flags(int cells, int functions) {
        this.cells = cells;
        this.functions = functions;
    }

    @Override
    public void processElement(
            Tuple5<Integer, Integer, Integer, double[], int[]> cell, Context context, Collector<Tuple2<Integer, long[]>> out) {
        // The element itself is reused by the runtime; its arrays are not.
        List<Tuple5<Integer, Integer, Integer, double[], int[]>> hop = open.computeIfAbsent(cell.f0, absent -> new ArrayList<>(cells));
        hop.add(cell.copy());
        if (hop.size() == cells) {
            open.remove(cell.f0);
            int tests = hop.stream().mapToInt(of -> of.f2).sum();
            Pass.tested(tests);
            out.collect(Tuple2.of(cell.f0, flagged(hop, tests)));
        }
    }

    private long[] flagged(List<Tuple5<Integer, Integer, Integer, double[], int[]>> hop, int tests) {
        double[] p = hop.stream().flatMapToDouble(of -> Arrays.stream(of.f3)).sorted().toArray();
        int last = p.length - 1;
        while (last >= 0 && p[last] * tests > CellWindow.Q * (last + 1)) {
            last--;
        }
        long[] flags = new long[last + 1];
        int flagged = 0;
        for (Tuple5<Integer, Integer, Integer, double[], int[]> of : hop) {
            for (int row = 0; last >= 0 && row < of.f3.length; row++) {
                if (of.f3[row] <= p[last]) {
                    flags[flagged++] = of.f1 * functions + of.f4[row];
                }
            }
        }
        return flags;
    }
}
