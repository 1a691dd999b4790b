package fleetdiff;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.file.Path;
import org.apache.flink.api.common.eventtime.Watermark;
import org.apache.flink.api.common.eventtime.WatermarkGenerator;
import org.apache.flink.api.common.eventtime.WatermarkOutput;
import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.api.common.functions.OpenContext;
import org.apache.flink.api.common.state.ValueState;
import org.apache.flink.api.common.state.ValueStateDescriptor;
import org.apache.flink.api.common.typeinfo.TypeHint;
import org.apache.flink.api.common.typeinfo.TypeInformation;
import org.apache.flink.api.java.tuple.Tuple2;
import org.apache.flink.api.java.tuple.Tuple4;
import org.apache.flink.api.java.tuple.Tuple5;
import org.apache.flink.streaming.api.environment.LocalStreamEnvironment;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.api.functions.KeyedProcessFunction;
import org.apache.flink.streaming.api.functions.ProcessFunction;
import org.apache.flink.streaming.api.functions.sink.v2.DiscardingSink;
import org.apache.flink.util.Collector;

/**
 * The job in Flink: profiles by event time, keyed by cell, dense counts as state; a hop ends with the watermark; Benjamini-Hochberg over all
 * cells in a second step. Each line of stdin is a run of the whole job in this JVM, with nanoseconds, flags, tests and the hash of flags of
 * the measured hops on stdout.
 */
public final class Peer {
    private static final int PARALLELISM = 2;

    private static Fleet fleet;

    private Peer() {}

    public static void main(String[] arguments) throws Exception {
        fleet = new Fleet(Path.of(arguments[0]));
        BufferedReader words = new BufferedReader(new InputStreamReader(System.in));
        while (words.readLine() != null) {
            Pass.begin();
            run();
            System.out.println(Pass.line());
        }
    }

    private static void run() throws Exception {
        LocalStreamEnvironment environment = StreamExecutionEnvironment.createLocalEnvironment(PARALLELISM);
        environment.getConfig().enableObjectReuse();
        environment
                .fromSequence(0, fleet.profiles.size() - 1)
                .setParallelism(1)
                .map(number -> fleet.profiles.get(number.intValue()))
                .returns(new TypeHint<Tuple4<Integer, Integer, Integer, byte[]>>() {})
                .setParallelism(1)
                .assignTimestampsAndWatermarks(
                        WatermarkStrategy.<Tuple4<Integer, Integer, Integer, byte[]>>forGenerator(context -> new Hops())
                                .withTimestampAssigner((profile, before) -> profile.f0))
                .setParallelism(1)
                .keyBy(profile -> profile.f1)
                .process(new Cells())
                .process(new Flags(fleet.cells, fleet.functions))
                .setParallelism(1)
                .process(new Results())
                .setParallelism(1)
                .sinkTo(new DiscardingSink<>())
                .setParallelism(1);
        environment.execute();
    }

    /** The first profile of a hop ends the hop before. */
    private static final class Hops implements WatermarkGenerator<Tuple4<Integer, Integer, Integer, byte[]>> {
        private long hop = -1;

        @Override
        public void onEvent(Tuple4<Integer, Integer, Integer, byte[]> profile, long timestamp, WatermarkOutput output) {
            if (timestamp > hop) {
                hop = timestamp;
                output.emitWatermark(new Watermark(hop - 1));
            }
        }

        @Override
        public void onPeriodicEmit(WatermarkOutput output) {}
    }

    /** The first step: the window of each cell, and its tests. */
    private static final class Cells
            extends KeyedProcessFunction<
                    Integer, Tuple4<Integer, Integer, Integer, byte[]>, Tuple5<Integer, Integer, Integer, double[], int[]>> {
        private transient ValueState<CellWindow> windows;

        @Override
        public void open(OpenContext context) {
            windows = getRuntimeContext().getState(new ValueStateDescriptor<>("window", TypeInformation.of(CellWindow.class)));
        }

        @Override
        public void processElement(
                Tuple4<Integer, Integer, Integer, byte[]> profile,
                Context context,
                Collector<Tuple5<Integer, Integer, Integer, double[], int[]>> out)
                throws Exception {
            CellWindow window = windows.value();
            if (window == null) {
                window = new CellWindow(fleet.functions, fleet.window);
                windows.update(window);
            }
            if (window.keep(profile.f0, profile.f2, profile.f3)) {
                context.timerService().registerEventTimeTimer(profile.f0);
            }
        }

        @Override
        public void onTimer(long time, OnTimerContext context, Collector<Tuple5<Integer, Integer, Integer, double[], int[]>> out)
                throws Exception {
            int hop = (int) time;
            CellWindow window = windows.value();
            window.slide(hop);
            if (hop >= fleet.window) {
                out.collect(window.test(hop, context.getCurrentKey()));
            } else if (hop == fleet.window - 1) {
                Pass.filled();
            }
        }
    }

    /** The sink: a single thread. */
    private static final class Results extends ProcessFunction<Tuple2<Integer, long[]>, Void> {
        @Override
        public void processElement(Tuple2<Integer, long[]> hop, Context context, Collector<Void> out) {
            Pass.flagged(hop.f0, hop.f1, fleet.functions);
        }
    }
}
